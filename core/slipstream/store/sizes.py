"""Numbers of bytes in words."""

from __future__ import annotations


def words(count: float) -> str:
    """In powers of ten, as disks and downloads are counted: "4.2 GB", "13.0 MB", "96 bytes"."""
    if count < 10**5:
        return f"{count:,.0f} bytes"
    is_large = round(count / 1e6, 1) >= 1000  # what rounds to a thousand is one of the next unit
    return f"{count / 1e9:.1f} GB" if is_large else f"{count / 1e6:.1f} MB"
