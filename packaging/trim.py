"""Trims a site folder, links its frameworks as codesign wants them, and keeps the arm64 part of each file.

    python packaging/trim.py SITE

Nothing happens the second time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bundle
import machos

if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: trim.py SITE (a folder with packages)")
    site = Path(sys.argv[1])
    removed, links, thinned = bundle.trim(site), bundle.mend_frameworks(site), machos.thin(site)
    print(f"{removed:,} bytes removed, {links} links made, {thinned:,} bytes of other architectures removed")
