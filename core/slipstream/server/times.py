"""Times as clients write them."""

from __future__ import annotations

import re

from slipstream.server.fields import Fields, wrong
from slipstream.server.model_host import MAX_KEEP_ALIVE_S

_UNITS = {"": 1.0, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_time(fields: Fields, name: str) -> float | None:
    """Seconds, or a time as Go writes it: 5m, 1h30m, -1. Below 0: for ever."""
    value = fields.raw(name)
    if value is None:
        return None
    seconds: float | None = None
    if isinstance(value, str):
        parts = re.fullmatch(r"(-?)((?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+|\d+(?:\.\d+)?)", value)
        if parts:
            pieces = re.findall(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)?", parts[2])
            seconds = sum(float(number) * _UNITS[unit] for number, unit in pieces) * (-1 if parts[1] else 1)
    else:
        seconds = fields.number(name)
    if seconds is None:
        raise wrong(name, "seconds, or a time such as 5m", value)
    return min(seconds, MAX_KEEP_ALIVE_S)
