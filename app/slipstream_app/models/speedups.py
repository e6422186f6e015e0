"""How much faster each pair answers than plain decoding, as it was measured on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

from slipstream_app.settings import Settings


class Speedups:
    """Kept across starts. A race's figures take the place of earlier ones."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def record(self, pair: str, ratios: Mapping[str, float]) -> None:
        """`ratios`: of plain decoding's speed, by mode. Only of answers that were the same to the token."""
        if ratios:
            self._settings.remember(f"measured/{pair}", json.dumps({**self._all(pair), **ratios}))

    def by_mode(self, pair: str) -> dict[str, float]:
        """Of plain decoding's speed, by who drafts; empty before it was measured."""
        return self._all(pair)

    def best(self, pair: str) -> float | None:
        """Of whoever drafts best; None before it was measured."""
        return max(self._all(pair).values(), default=None)

    def slower(self, pair: str) -> float | None:
        """The best ratio where plain decoding is faster than any drafter."""
        best = self.best(pair)
        return best if best is not None and best < 1 else None

    def _all(self, pair: str) -> dict[str, float]:
        try:
            stored: object = json.loads(str(self._settings.recall(f"measured/{pair}", "{}") or "{}"))
        except ValueError:
            return {}
        return {str(mode): float(ratio) for mode, ratio in stored.items()} if isinstance(stored, dict) else {}
