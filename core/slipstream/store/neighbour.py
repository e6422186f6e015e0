"""Who already answers at an address of this machine."""

from __future__ import annotations

import http.client
import json
from contextlib import closing

ASK_S = 2.0


def is_slipstream(port: int, host: str = "127.0.0.1") -> bool:
    """Our root says who answers."""
    with closing(http.client.HTTPConnection(host, port, timeout=ASK_S)) as connection:
        try:
            connection.request("GET", "/")
            answer = json.loads(connection.getresponse().read(65536))
        except (OSError, http.client.HTTPException, ValueError):
            return False
    return isinstance(answer, dict) and answer.get("name") == "Slipstream"


def next_port(port: int) -> int:
    """Another one to try."""
    return port - 1 if port == 65535 else port + 1
