"""What making a drafter would take and bring, before anything is made: the planner's answer for a model."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace

from slipstream.curves import Curves
from slipstream.errors import InvalidRequest
from slipstream.store import machine
from slipstream.store.candidate import Candidate
from slipstream.store.paths import data_dir
from slipstream.train import planning
from slipstream_app import mac
from slipstream_app.models.memory import held_bytes

AMOUNTS = (2048, 8192, 32768)  # conversations: short, usual, thorough
USUAL = AMOUNTS[1]
CPU_BYTES = 4  # of a number where a CPU computes


@dataclass(frozen=True, slots=True)
class Forecast:
    """The planner's estimate, and whether this machine's own measurements went into it."""

    estimate: planning.Estimate
    is_measured: bool

    needed: int  # bytes of the model as training holds it, beside which the drafter takes a little
    held: int  # bytes that this process has now, the chat's model included
    limit: int  # bytes that models may take on this machine

    @property
    def seconds(self) -> float:
        return self.estimate.writing_s + self.estimate.training_s

    @property
    def fits(self) -> bool:
        """Whether it could be made here at all."""
        return self.needed <= self.limit


def forecast(model: Candidate, curves: Curves | None, conversations: int = USUAL) -> Forecast:
    """For a model by its config and headers. Raises InvalidRequest when these do not say enough.

    `curves`: what was measured with this model on this machine.
    """
    size = planning.size_of(model.config)
    if size is None:
        raise InvalidRequest("this model's config does not say how large it is; choose another model")
    size = replace(size, bits=8 * model.stored / model.elements)  # also where the config is that of a GGUF
    here = mac.machine(data_dir())
    needed = model.elements * (model.element_bytes if mac.IS_MAC else CPU_BYTES)
    found = planning.machine_of(machine.chip() if mac.IS_MAC else platform.machine())
    is_measured = curves is not None and bool(curves.target)
    if curves is not None and is_measured:
        context = curves.contexts[0]
        plain, verify = (curves.verify_ms(rows, context) / 1000 for rows in (1, planning.PROPOSALS + 1))
        found = planning.measured(found, plain, verify)
    try:
        estimate = planning.estimate(size, found, conversations=conversations)
    except InvalidRequest as error:
        raise InvalidRequest(error.message.partition("; use --")[0]) from error  # options are the command's
    return Forecast(estimate, is_measured, needed, held_bytes(), here.gpu_bytes)
