"""`python -m slipstream_app`: the window. `--hidden` starts in the menu bar alone."""

from __future__ import annotations

import sys

from slipstream_app.command import open_window

if __name__ == "__main__":
    sys.exit(open_window(is_hidden="--hidden" in sys.argv[1:]))
