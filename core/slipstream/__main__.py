"""`python -m slipstream`: the command line without the window."""

import signal
import sys


def main() -> int:
    # Until the command runs, and after it, Ctrl-C just ends the process: Python would print where it was importing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from slipstream.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
