"""Which targets are worth a drafter, and what it takes."""

from __future__ import annotations

from typing import Any

import pytest

from slipstream.errors import InvalidRequest
from slipstream.train.planning import MACHINES, Estimate, estimate, machine_of, measured, size_of

QWEN3_4B: dict[str, Any] = {
    "hidden_size": 2560,
    "num_hidden_layers": 36,
    "vocab_size": 151936,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 9728,
    "head_dim": 128,
    "quantization": {"bits": 4, "group_size": 64},
}
QWEN3_30B_A3B = QWEN3_4B | {
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}


def of(config: dict[str, Any], **more: Any) -> Estimate:
    size = size_of(config)
    assert size is not None
    return estimate(size, machine_of("Apple M4 Pro"), conversations=8192, **more)


def test_sizes_are_what_the_models_have() -> None:
    dense, sparse = size_of(QWEN3_4B), size_of(QWEN3_30B_A3B)
    assert dense is not None
    assert sparse is not None
    assert dense.parameters == dense.active == pytest.approx(4.02e9, rel=0.01)
    assert sparse.parameters == pytest.approx(30.2e9, rel=0.02)
    assert sparse.active == pytest.approx(3.03e9, rel=0.02)
    assert size_of({"hidden_size": 3}) is None


def test_dense_models_gain_and_sparse_ones_are_refused_with_a_reason() -> None:
    assert of(QWEN3_4B).is_worth_it
    sparse = of(QWEN3_30B_A3B)
    assert not sparse.is_worth_it
    assert "few of its weights" in sparse.reason


def test_more_time_more_conversations_and_more_layers_draft_better() -> None:
    assert of(QWEN3_4B, minutes=60).per_round > of(QWEN3_4B, minutes=10).per_round
    assert of(QWEN3_4B, layers=5).per_round > of(QWEN3_4B, layers=1).per_round
    assert of(QWEN3_4B, minutes=60).training_s == 3600


def test_longer_drafts_are_for_targets_that_check_them_cheaply() -> None:
    size = size_of(QWEN3_4B)
    assert size is not None
    cheap, dear = (measured(MACHINES["M4"], 0.02, verify) for verify in (0.021, 0.06))
    assert estimate(size, cheap, conversations=65536).proposals == 10
    assert estimate(size, dear, conversations=65536).proposals == 5
    of_seven = estimate(size, cheap, conversations=65536, layers=3, proposals=7)
    of_ten = estimate(size, cheap, conversations=65536, layers=3, proposals=10)
    assert of_seven.per_round < of_ten.per_round < of_seven.per_round + 1


def test_measured_costs_decide() -> None:
    size = size_of(QWEN3_4B)
    assert size is not None
    dear = measured(MACHINES["M4"], 0.02, 0.09)
    assert not estimate(size, dear, conversations=8192).is_worth_it
    with pytest.raises(InvalidRequest, match="too small"):
        estimate(size, dear, conversations=8192, layers=40)
