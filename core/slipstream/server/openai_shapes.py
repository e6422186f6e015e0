"""Pieces of JSON that OpenAI's routes share."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any

from slipstream.errors import SlipstreamError
from slipstream.events import Choice, Finish
from slipstream.server import sse
from slipstream.server.backend import Backend, ServerTokeniser
from slipstream.server.errors import describe, openai_body
from slipstream.server.reply import Chosen, Finished, Usage
from slipstream.types import ModelInfo

Json = dict[str, Any]  # Any: a JSON document


def new_id(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(12)}"


def now() -> int:
    return int(time.time())


def usage_of(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def reason_of(finished: Finished) -> str:
    if finished.reason is Finish.LENGTH:
        return "length"
    return "tool_calls" if finished.called else "stop"


def error_event(error: SlipstreamError) -> bytes:
    """For a stream that has begun: the SDKs raise it, and read no further."""
    return sse.event(openai_body(describe(error)))


class TokenTexts:
    """What tokens say, looked up once each. End tokens say nothing that is part of the answer."""

    def __init__(self, backend: Backend, info: ModelInfo | None = None) -> None:
        """Name the model of the answer's job where it is known: by now the backend may have lost it."""
        self._backend = backend
        self._ends = frozenset((info or backend.info()).end_ids)
        self._texts: dict[int, str] = {}

    async def of(self, chosen: Chosen) -> list[tuple[int, Choice]]:
        """The tokens that count, when their texts are known."""
        pairs = [pair for pair in zip(chosen.tokens, chosen.choices, strict=False) if pair[0] not in self._ends]
        wanted = {token for token, _ in pairs} | {token for _, choice in pairs for token, _ in choice.top}
        if missing := wanted - self._texts.keys():

            def look_up(tokeniser: ServerTokeniser) -> None:
                self._texts.update({token: tokeniser.spell([token]) for token in missing})

            await self._backend.tokenise(look_up)
        return pairs

    def __getitem__(self, token: int) -> str:
        return self._texts[token]

    async def entries(self, chosen: Iterable[Chosen]) -> list[Json]:
        """In the form of chat completions."""
        entries: list[Json] = []
        for one in chosen:
            for token, choice in await self.of(one):
                best = [self._entry(other, logprob) for other, logprob in choice.top]
                entries.append(self._entry(token, choice.logprob) | {"top_logprobs": best})
        return entries

    def _entry(self, token: int, logprob: float) -> Json:
        text = self._texts[token]
        return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}
