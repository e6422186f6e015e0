"""Measuring the loaded model for a client: a job in the inbox like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from slipstream.curves import Curves
from slipstream.errors import Closed
from slipstream.events import Failed, Measured
from slipstream.server.backend import Backend
from slipstream.server.stream import Stream
from slipstream.types import Calibrate


async def calibrate(backend: Backend, force: bool) -> Mapping[str, Any]:  # Any: a JSON document
    """The curves that were measured. Raises Unsteady, and what `Stream.open` raises. Leaving early cancels it."""
    stream = await Stream.open(backend, Calibrate(force))
    curves: Curves | None = None
    async with stream:
        async for event in stream:
            match event:
                case Measured(curves=curves):
                    pass
                case Failed(error):
                    raise error
                case _:
                    pass
    if curves is None:
        raise Closed("nothing was measured: the model was unloaded meanwhile")
    return {"model": stream.info.name, **asdict(curves)}
