"""Numbers of bytes in words."""

from __future__ import annotations


def words(count: float) -> str:
    """In powers of ten, as disks and downloads are counted: "4.2 GB", "13.0 MB", "96 bytes"."""
    if count >= 10**9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 10**5 else f"{count:,.0f} bytes"
