"""What dmgbuild puts on the disk image, and where; run as a program it checks and prints the layout.

dmgbuild executes this file and reads these names; `defines` is what its -D options said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# dmgbuild executes the text of this file from the repository's root, without __file__.
ROOT = Path(__file__).resolve().parents[1] if "__file__" in globals() else Path.cwd()
application = str(globals().get("defines", {}).get("app", ROOT / "build" / "dist" / "Slipstream.app"))

files = [application]
symlinks = {"Applications": "/Applications"}
format = "ULMO"  # noqa: A001 - dmgbuild's name; LZMA, which macOS 10.15 and later read
filesystem = "HFS+"
icon = str(ROOT / "build" / "icon" / "Slipstream.icns")
background = str(ROOT / "build" / "icon" / "dmg-background.png")
window_rect = ((200, 200), (640, 400))
icon_size = 128
text_size = 13
icon_locations = {"Slipstream.app": (170, 200), "Applications": (470, 200)}
show_status_bar = show_tab_view = show_toolbar = show_pathbar = show_sidebar = False


def layout() -> dict[str, Any]:
    """As the window will show it. Raises ValueError where an item has no place or lies outside the window."""
    shown = [Path(file).name for file in files] + list(symlinks)
    if set(shown) != set(icon_locations):
        raise ValueError(f"{shown} are shown, and places are given for {list(icon_locations)}")
    (_, (width, height)), half = window_rect, icon_size // 2
    for name, (x, y) in icon_locations.items():
        if not (half <= x <= width - half and half <= y <= height - half):
            raise ValueError(f"{name} at {x}, {y} is cut off by the window of {width} × {height}")
    return {"size": (width, height), "items": icon_locations, "links": symlinks, "format": format}


if __name__ == "__main__":
    print(layout())
