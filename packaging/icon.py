"""Draws the app's icon and writes it as .icns (and as PNG for the disk image's window). Runs anywhere Qt does.

python packaging/icon.py build/icon
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SVG = Path(__file__).with_name("icon.svg")
BACKGROUND = Path(__file__).with_name("dmg-background.svg")
# Apple's types for PNG data and their pixels; the second of a pair is the @2x form of half the size.
TYPES = {
    b"icp4": 16,
    b"icp5": 32,
    b"ic11": 32,
    b"ic12": 64,
    b"ic07": 128,
    b"ic13": 256,
    b"ic08": 256,
    b"ic14": 512,
    b"ic09": 512,
    b"ic10": 1024,
}


def png(svg: Path, width: int, height: int) -> bytes:
    renderer = QSvgRenderer(str(svg))
    if not renderer.isValid():
        raise ValueError(f"{svg} is no SVG that Qt can draw")
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # pyright: ignore[reportCallIssue, reportArgumentType] - a device and a format
    return bytes(data.data())


def icns(pictures: dict[bytes, bytes]) -> bytes:
    """An icon file: a header, then each picture with its type and length, both counting their own eight bytes."""
    body = b"".join(kind + struct.pack(">I", len(data) + 8) + data for kind, data in pictures.items())
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {size: png(SVG, size, size) for size in sorted(set(TYPES.values()))}
    (folder / "Slipstream.icns").write_bytes(icns({kind: sizes[size] for kind, size in TYPES.items()}))
    (folder / "Slipstream.png").write_bytes(sizes[512])
    (folder / "dmg-background.png").write_bytes(png(BACKGROUND, 640, 400))
    (folder / "dmg-background@2x.png").write_bytes(png(BACKGROUND, 1280, 800))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: icon.py FOLDER")
    main(Path(sys.argv[1]))
