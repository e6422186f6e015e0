"""Where the bundle starts: the window, or with arguments the command line. `--hidden` opens in the menu bar alone."""

from __future__ import annotations

import sys

from slipstream_app.command import main, open_window

if __name__ == "__main__":
    sys.exit(open_window(is_hidden=True) if sys.argv[1:] == ["--hidden"] else main())
