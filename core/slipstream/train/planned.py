"""What was chosen when a run began. Costs are measured once: another measurement would choose another drafter.

Standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slipstream.store.atomic import write_text
from slipstream.train.planning import Estimate

PLANNED = "planned.json"


def keep(run: Path, asked: Mapping[str, Any], chosen: Estimate) -> None:
    """`run`: the folder of its checkpoints. `asked`: what the choice depends on, beside the machine."""
    write_text(run / PLANNED, json.dumps({"asked": asked, "chosen": asdict(chosen)}, indent=1) + "\n")


def kept(run: Path, asked: Mapping[str, Any]) -> Estimate | None:
    """The choice of an earlier sitting; None: there was none, or it was for something else and nothing is learned yet.

    What is asked otherwise of a run that has learned something, its checkpoint refuses by name.
    """
    try:
        stored: Any = json.loads((run / PLANNED).read_text("utf-8"))  # Any: JSON
        chosen = Estimate(**stored["chosen"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_begun = any(run.glob("step-*"))
    return chosen if is_begun or stored["asked"] == json.loads(json.dumps(asked)) else None
