"""Time to the first token, from chunks that were read before."""

from __future__ import annotations

import pytest

from slipstream.curves import Curves
from slipstream.engine.pace import Pace


def test_nothing_is_promised_before_something_was_read() -> None:
    assert Pace().seconds(0, 100) is None


def test_a_flat_pace() -> None:
    pace = Pace()
    pace.learn(0, 32, 64.0)  # 2 ms a token
    assert pace.seconds(0, 1000) == pytest.approx(2.0)
    assert pace.seconds(600, 1000) == pytest.approx(0.8)
    assert pace.seconds(1000, 1000) == 0.0


def test_later_tokens_cost_more() -> None:
    """1 ms at the beginning and 1 ms more for every 4,000 tokens before it: the integral is known."""
    pace = Pace()
    for depth in range(0, 16_000, 512):
        middle = depth + 256
        pace.learn(depth, 512, 512 * (1 + middle / 4000))
    for start, stop in ((0, 16_000), (3000, 9000), (0, 32_000)):
        true = ((stop - start) + (stop**2 - start**2) / 8000) / 1000
        assert pace.seconds(start, stop) == pytest.approx(true, rel=0.06), (start, stop)


def test_a_machine_that_slows_down_is_noticed() -> None:
    pace = Pace()
    pace.start_from(Curves(prefill={128: {512: 512.0}, 4096: {512: 1024.0}}))
    before = pace.seconds(0, 512)
    for _ in range(20):
        pace.learn(0, 512, 1536.0)
    after = pace.seconds(0, 512)
    assert before is not None
    assert after is not None
    assert before == pytest.approx(0.512, rel=0.05)
    assert after == pytest.approx(1.536, rel=0.05)
