"""The server's options as the settings have them, and what stands in their way: a taken port, and by whom."""

from __future__ import annotations

import re
import secrets
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from slipstream_app.bridge.server import ServerOptions
from slipstream_app.settings import Settings

LISTENING = "0A"  # in /proc/net/tcp
_TRIES = 50


def server_options(settings: Settings, pair: str = "") -> ServerOptions:
    """As the settings have it. Letting the network in makes a key when there is none.

    `pair`: the title of what a request may have loaded.
    """
    is_wide = settings.flag("server/network")
    if is_wide and not settings.text("server/key"):
        settings.set("server/key", new_key())
    return ServerOptions(
        host="0.0.0.0" if is_wide else "127.0.0.1",
        port=settings.number("server/port"),
        key=settings.text("server/key") or None,
        origins=tuple(settings.text("server/origins").split()),
        prompt_limit=settings.text("server/prompt_limit"),
        loads=pair if settings.flag("server/load_on_request") else "",
    )


def new_key() -> str:
    return f"slip-{secrets.token_urlsafe(24)}"


def next_free(port: int, host: str = "127.0.0.1") -> int | None:
    """The first port after this one that can be listened on."""
    for candidate in range(port + 1, min(port + 1 + _TRIES, 65536)):
        with socket.socket() as one, suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((host, candidate))
            return candidate
    return None


def local_address() -> str:
    """How other devices reach this machine. Connecting a datagram socket sends nothing; it only picks the route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))  # a documentation address (RFC 5737): never a real host
            return str(one.getsockname()[0])
        except OSError:
            return socket.gethostname()


def who_listens(port: int) -> str | None:
    """Name and number of the process that listens on a port; None when nobody does, or it is another user's."""
    return _by_lsof(port) if sys.platform == "darwin" else _by_proc(port)


def _by_lsof(port: int) -> str | None:
    asked = ["/usr/sbin/lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    number, name = re.search(r"^p(\d+)", told, re.M), re.search(r"^c(.+)", told, re.M)
    return f"{name[1]} ({number[1]})" if number and name else None


def _by_proc(port: int, proc: Path = Path("/proc")) -> str | None:
    inodes: set[str] = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    if not inodes:
        return None
    for process in proc.glob("[0-9]*"):
        with suppress(OSError):
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} ({process.name})"
    return None
