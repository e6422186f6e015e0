"""What making a drafter would take and bring, before anything is made: the planner's answer for a model."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipstream.curves import Curves
from slipstream.errors import InvalidRequest
from slipstream.store import machine
from slipstream.train import planning
from slipstream_app import mac

AMOUNTS = (2048, 8192, 32768)  # conversations: short, usual, thorough
USUAL = AMOUNTS[1]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The planner's estimate, and whether this machine's own measurements went into it."""

    estimate: planning.Estimate
    is_measured: bool

    @property
    def seconds(self) -> float:
        return self.estimate.writing_s + self.estimate.training_s


def forecast(folder: Path, curves: Curves | None, conversations: int = USUAL) -> Forecast:
    """For the model in a folder. Reads its config; raises InvalidRequest when that does not say enough.

    `curves`: what was measured with this model on this machine.
    """
    try:
        config: Mapping[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"the config of {folder.name} cannot be read ({error}); choose another model") from error
    size = planning.size_of(config)
    if size is None:
        raise InvalidRequest("this model's config does not say how large it is; choose another model")
    found = planning.machine_of(machine.chip() if mac.IS_MAC else platform.machine())
    is_measured = curves is not None and bool(curves.target)
    if curves is not None and is_measured:
        context = curves.contexts[0]
        plain, verify = (curves.verify_ms(rows, context) / 1000 for rows in (1, planning.PROPOSALS + 1))
        found = planning.measured(found, plain, verify)
    try:
        return Forecast(planning.estimate(size, found, conversations=conversations), is_measured)
    except InvalidRequest as error:
        raise InvalidRequest(error.message.partition("; use --")[0]) from error  # options are the command's
