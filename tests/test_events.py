from __future__ import annotations

import pytest

from slipstream.events import Timings, decode_tps


def test_p22_one_number_one_meaning() -> None:
    first = Timings(
        queued_s=0.0,
        started_s=0.0,
        first_token_s=0.60,
        last_token_s=1.40,
        prompt_tokens=791,
        reused_tokens=0,
        output_tokens=101,
        rounds=40,
    )
    assert first.ttft_s == pytest.approx(0.60)
    assert round(first.prefill_tps) == 1318
    assert first.decode_tps == pytest.approx(125)
    assert first.tokens_per_round == pytest.approx(2.5)  # 100 tokens after the first, by 40 forwards

    second = Timings(10.0, 10.0, 10.05, 10.05, prompt_tokens=791, reused_tokens=780, output_tokens=1, rounds=0)
    assert second.ttft_s == pytest.approx(0.05)
    assert second.reused_tokens > 0  # what labels its ttft as cached
    assert second.prefill_tps == pytest.approx(11 / 0.05)


def test_waiting_in_the_queue_counts_for_the_user_and_not_for_the_prefill() -> None:
    timings = Timings(0.0, 2.0, 2.5, 3.0, prompt_tokens=100, reused_tokens=0, output_tokens=2, rounds=1)
    assert timings.ttft_s == 2.5
    assert timings.prefill_tps == 200


@pytest.mark.parametrize("tokens", [0, 1])
def test_too_few_tokens_have_no_rate(tokens: int) -> None:
    assert decode_tps(tokens, 0.0, 1.0) == 0.0
    timings = Timings(0.0, 0.0, 0.0, 0.0, 5, 0, tokens, 0)
    assert (timings.decode_tps, timings.prefill_tps, timings.tokens_per_round) == (0.0, 0.0, 0.0)


def test_a_clock_that_did_not_move_divides_nothing() -> None:
    assert decode_tps(5, 1.0, 1.0) == 0.0
