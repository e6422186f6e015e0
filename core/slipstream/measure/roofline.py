"""How fast plain decoding could be if nothing but reading the weights took time, and where real runs stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slipstream.curves import Curves

GB = 10**9


@dataclass(frozen=True, slots=True)
class Standing:
    """One way of decoding against the ceiling of plain decoding. `tps`: tokens a second."""

    name: str
    tps: float
    ceiling_tps: float

    @property
    def share(self) -> float:
        """More than 1: faster than plain decoding can be on this machine, however well it is written."""
        return self.tps / self.ceiling_tps


def sentences(curves: Curves, runs: Sequence[Standing], wanted: Sequence[int] = (), room: int = 0) -> Iterator[str]:
    """`wanted`: contexts that were to be measured. `room`: tokens that the model has room for."""
    yield f"Memory gives {curves.bandwidth / GB:,.1f} GB a second to a product with one row."
    yield (
        f"A token reads {curves.weight_bytes / GB:.3f} GB of weights, and {curves.row_bytes / 1000:.1f} kB of cache "
        "for each token before it."
    )
    for context in curves.contexts:
        ceiling, plain = curves.ceiling_tps(context), 1000 / curves.verify_ms(1, context)
        yield (
            f"Behind {context:,} tokens plain decoding can make {ceiling:,.1f} tokens a second at most; "
            f"one forward at a time makes {plain:,.1f} ({plain / ceiling:.0%} of it)."
        )
    for context in wanted:
        if context not in curves.contexts:
            why = f"the model ends at {room:,}" if context >= room else "there was too little room or time"
            yield f"Behind {context:,} tokens nothing was measured: {why}."
    for run in runs:
        share = f"{run.share:.2f}×" if run.share > 1 else f"{run.share:.0%} of"
        yield f"{run.name} made {run.tps:,.1f} tokens a second: {share} the ceiling of plain decoding."
