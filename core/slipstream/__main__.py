"""`python -m slipstream`: the command line without the window."""

import sys

from slipstream.cli import main

sys.exit(main())
