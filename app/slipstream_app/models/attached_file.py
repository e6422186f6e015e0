"""The text of a file that goes with a message, read when it is added. A PDF takes long: not on the window's thread."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path

from slipstream_app.messages import Attachment

logger = logging.getLogger(__name__)

MAX_BYTES = 4 * 1024 * 1024  # of a file; more text than any context takes
MAX_PDF_BYTES = 64 * 1024 * 1024  # most of which is pictures and fonts
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp", ".tif", ".tiff", ".svgz", ".avif"}


class Refused(Exception):
    """Why a file cannot be attached: a key of the composer's sentences, and the file's name."""

    def __init__(self, reason: str, name: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


def read(path: Path, is_wanted: Callable[[], bool] = lambda: True) -> Attachment:
    """The text of a file. `is_wanted` is asked before each page of a PDF.

    Raises Refused: "image", "large", "large_pdf", "unreadable", "locked", "pdf_empty", "binary", or "unwanted".
    """
    name = path.name
    if path.suffix.lower() in _IMAGES:
        raise Refused("image", name)
    try:
        if not path.is_file():  # a folder, or a pipe that never ends
            raise Refused("unreadable", name)
        with path.open("rb") as file:
            is_pdf = file.read(4) == b"%PDF"
            if path.stat().st_size > (MAX_PDF_BYTES if is_pdf else MAX_BYTES):
                raise Refused("large_pdf" if is_pdf else "large", name)
            file.seek(0)
            data = file.read()
    except OSError as error:
        raise Refused("unreadable", name) from error
    if is_pdf:
        return Attachment(name, _pdf_text(data, name, is_wanted))
    for encoding in ("utf-8-sig", *(("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ())):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return Attachment(name, text)
    raise Refused("binary", name)


def _pdf_text(data: bytes, name: str, is_wanted: Callable[[], bool]) -> str:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    pages: list[str] = []
    length = 0
    try:
        for page in PdfReader(io.BytesIO(data)).pages:
            if not is_wanted():
                raise Refused("unwanted", name)
            pages.append(page.extract_text().strip())
            length += len(pages[-1])
            if length > MAX_BYTES:
                raise Refused("large", name)
    except Refused:
        raise
    except (FileNotDecryptedError, DependencyError) as error:  # without its password, or in a cipher that is not here
        raise Refused("locked", name) from error
    except Exception as error:  # a damaged file makes it raise whatever its own code runs into
        logger.info("%s: %s: %s", name, type(error).__name__, error)
        raise Refused("unreadable", name) from error
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise Refused("pdf_empty", name)
    return text
