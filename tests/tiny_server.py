"""The server around a real engine: a tiny model of bytes, grammars and all."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from prompt.templates import TAGGED
from slipstream import service
from slipstream.engine.engine import open_engine
from slipstream.engine.pair import Pair
from slipstream.jobs import Inbox
from slipstream.server.app import HttpServer
from slipstream.server.backend import Backend
from tiny_runs import write_target


@contextmanager
def serving_tiny(
    folder: Path, *, links: Iterable[tuple[int, int]] | None = None, template: str = TAGGED
) -> Generator[str]:
    """Its URL. `links`: the model is a chain, as in `write_target`; else it says anything that the grammar allows."""
    write_target(folder, links=links, max_position_embeddings=8192)
    (folder / "chat_template.jinja").write_text(template)
    inbox = Inbox(64)
    backend = Backend(inbox)
    server = HttpServer(backend, port=0)
    thread = threading.Thread(target=service.serve, args=(inbox, lambda _: open_engine(Pair(folder, ())), backend.note))
    thread.start()
    try:
        server.start()
        while not backend.is_loaded:
            time.sleep(0.01)
        yield server.url
    finally:
        inbox.close()
        server.stop()
        thread.join(10)
        backend.close()
        assert not thread.is_alive()
