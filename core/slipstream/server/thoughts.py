"""Thoughts in a form that clients send back unread: Anthropic's `signature`, OpenAI's `encrypted_content`.

Nothing is kept here and nothing is secret: the text itself is in it, so that a client which returns only this gives
the model its thoughts back, also after a restart.
"""

from __future__ import annotations

import base64
import binascii
import zlib

_MARK = "slip1."
MAX_THOUGHT = 4 * 1024 * 1024  # bytes; what a client sends may be made to grow


def seal(thought: str) -> str:
    packed = zlib.compress(thought.encode("utf-8", "replace"), 1)
    return _MARK + base64.urlsafe_b64encode(packed).decode()


def unseal(sealed: str | None) -> str:
    """Empty for what another server made, or what was damaged on its way."""
    if not sealed or not sealed.startswith(_MARK):
        return ""
    try:
        packed = base64.urlsafe_b64decode(sealed.removeprefix(_MARK))
        reader = zlib.decompressobj()
        raw = reader.decompress(packed, MAX_THOUGHT)
        return raw.decode() if reader.eof else ""
    except (binascii.Error, zlib.error, ValueError):
        return ""
