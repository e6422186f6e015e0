"""Benchmark worker: mlx-lm's own loops, plain and with a draft model. Also renders prompts for every other arm."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

import mlx.core as mx
from mlx_lm import load, stream_generate
from worker import Generated, Handler, Stopwatch, answer, serve, versions


def open_worker(args: argparse.Namespace) -> tuple[dict[str, Any], Mapping[str, Handler]]:
    loaded: tuple[Any, ...] = load(args.target)
    model, tokenizer = loaded[0], loaded[1]
    draft: Any = load(args.draft_model)[0] if args.draft_model else None

    def tokenise(prompts: list[str]) -> list[list[int]]:
        return [
            list(tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True))
            for prompt in prompts
        ]

    def generate(arm: str, prompt_ids: list[int], max_tokens: int, end_ids: list[int]) -> Generated:
        tokenizer.eos_token_ids = set(end_ids)
        run = partial(stream_generate, model, tokenizer, prompt_ids, max_tokens=max_tokens)
        if arm == "draft":
            run = partial(run, draft_model=draft, num_draft_tokens=args.draft_tokens)
        ids: list[int] = []
        forwards = 0
        watch = Stopwatch()
        for response in run():
            watch.mark()
            ids.append(int(response.token))
            forwards += not response.from_draft  # each forward of the target adds one token of its own
        # Plain: the first token came from the prompt's forward. With a draft model that loop does not tell them apart.
        return answer(ids, watch, forwards - (arm != "draft"), {1: forwards - 1} if arm != "draft" else None)

    info = {
        "arms": {"plain": "stream_generate"}
        | ({"draft": f"stream_generate with {args.draft_model}, {args.draft_tokens} drafts"} if draft else {}),
        "end_ids": sorted(int(token) for token in tokenizer.eos_token_ids),
        "versions": versions("mlx", "mlx-lm", "transformers"),
        "device": str(mx.default_device()),
        "device_name": device_name(),
        "dtype": str(model.model.embed_tokens(mx.array([[0]])).dtype).removeprefix("mlx.core."),
        "notes": [],
    }
    return info, {"tokenise": tokenise, "generate": generate}


def device_name() -> str:
    """As the backend calls it; empty where it does not say."""
    try:
        return str(mx.device_info().get("device_name", ""))
    except (RuntimeError, AttributeError):
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft-model", help="a small model of the same vocabulary")
    parser.add_argument("--draft-tokens", type=int, default=3)
    args = parser.parse_args()
    serve(lambda: open_worker(args))


if __name__ == "__main__":
    main()
