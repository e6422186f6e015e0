"""The options of a request, where each of them may come from: the client, the model's authors, or us."""

from __future__ import annotations

import dataclasses
import json
import logging
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.server.conversation import AS_MUCH_AS_FITS
from slipstream.server.fields import Fields, wrong
from slipstream.types import Acceptance, Mode, ModelInfo, Options

logger = logging.getLogger(__name__)

_FROM_AUTHORS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


@lru_cache(maxsize=8)
def defaults_of(info: ModelInfo) -> Options:
    """What the model's authors recommend in generation_config.json; greedy where they say nothing."""
    try:
        found: Any = json.loads((Path(info.path) / "generation_config.json").read_text())
        if not isinstance(found, dict) or not found.get("do_sample"):
            return Options()
        return Options(**{name: found[name] for name in _FROM_AUTHORS if found.get(name) is not None})
    except (FileNotFoundError, NotADirectoryError):
        return Options()
    except (OSError, ValueError, InvalidRequest) as error:
        logger.warning("generation_config.json of %s is not usable (%s); answers are greedy", info.name, error)
        return Options()


def make_options(info: ModelInfo, *, seed: int | None = None, max_tokens: int | None = None, **given: Any) -> Options:
    """Options of the client's values; None means that the client said nothing. Any: checked by Options itself."""
    return dataclasses.replace(
        defaults_of(info),
        seed=secrets.randbits(32) if seed is None else seed % 2**64,
        max_tokens=AS_MUCH_AS_FITS if max_tokens is None else min(max_tokens, AS_MUCH_AS_FITS),
        **{name: value for name, value in given.items() if value is not None},
    )


def read_sampling(fields: Fields) -> dict[str, Any]:
    """What every dialect takes at a request's top, whether its own API names it or not; for `make_options`."""
    return {
        "temperature": fields.number("temperature", 0, 2),
        "top_p": fields.number("top_p", 0, 1),
        "top_k": fields.whole("top_k", 0, 2**31),
        "min_p": fields.number("min_p", 0, 1),
        "repetition_penalty": fields.number("repetition_penalty", 1e-3, 1e3),
        "presence_penalty": fields.number("presence_penalty", -2, 2),
        "frequency_penalty": fields.number("frequency_penalty", -2, 2),
        "seed": fields.whole("seed"),
        **_read_drafting(fields),
    }


def _read_drafting(fields: Fields) -> dict[str, Any]:
    """The request's own `slipstream` object: who drafts, and how much. The text is the same under every mode."""
    own = fields.object("slipstream")
    if own is None:
        return {}
    mode = own.one_of("mode", *(mode.value for mode in Mode))
    acceptance = own.one_of("acceptance", *(kind.value for kind in Acceptance))
    max_draft = own.whole("max_draft", 0, 64)
    own.ignore("prompt_limit")  # which `read_limit` reads
    own.note_unknown("slipstream")
    return {
        "mode": None if mode is None else Mode(mode),
        "max_draft": max_draft,
        "acceptance": None if acceptance is None else Acceptance(acceptance),
    }


def read_bias(fields: Fields, name: str, info: ModelInfo) -> Mapping[int, float] | None:
    given = fields.object(name)
    if given is None:
        return None
    bias: dict[int, float] = {}
    for token in given.names:
        if not token.isascii() or not token.isdigit() or len(token) > 9 or int(token) >= info.vocabulary:
            raise wrong(given.at(token[:20]), f"named by a token id below {info.vocabulary}", token)
        if (value := given.number(token, -100, 100)) is not None:
            bias[int(token)] = float(value)
    return bias
