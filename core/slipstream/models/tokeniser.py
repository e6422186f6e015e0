"""A model's tokeniser and chat template, as the engine needs them. Reads files; no MLX arrays, any one thread."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipstream.errors import InvalidRequest, ModelIncomplete
from slipstream.types import Chat, Prompt, Text, Tokens


class Tokeniser:
    """Prompts to ids and ids to text. Raises ModelIncomplete when the folder's tokeniser cannot be read."""

    def __init__(self, folder: Path) -> None:
        # transformers takes seconds to import; only those who need it wait.
        from mlx_lm.utils import load_tokenizer

        try:
            self._tokenizer: Any = load_tokenizer(folder)
        except Exception as error:  # whatever the library trips over, the files are the reason
            raise ModelIncomplete(
                f"{folder}: the tokenizer files are missing or damaged ({error}); download the model again"
            ) from error
        self.end_ids = _end_ids(folder) | {int(token) for token in self._tokenizer.eos_token_ids}

    def encode(self, prompt: Prompt) -> list[int]:
        """Ids of a prompt. Raises InvalidRequest when it has none, or its messages do not fit the template."""
        match prompt:
            case Tokens(ids):
                out = list(ids)
            case Text(text):
                out = self._tokenizer.encode(text)
            case Chat(messages, tools, template):
                out = self._render(messages, tools, template)
        if not out:
            raise InvalidRequest("the prompt is empty; write something to answer")
        return out

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    @property
    def has_chat_template(self) -> bool:
        return bool(self._tokenizer.has_chat_template)

    def _render(self, messages: Sequence[Any], tools: Sequence[Any], template: Any) -> list[int]:
        if not self.has_chat_template:
            raise InvalidRequest("this model has no chat template; send plain text (--raw-prompt)")
        try:
            return self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tools=[dict(tool) for tool in tools] or None,
                add_generation_prompt=True,
                **template,
            )
        except Exception as error:  # a template is a program of the model's author: it raises what it likes
            raise InvalidRequest(f"the model's chat template refuses these messages: {error}") from error


def _end_ids(folder: Path) -> set[int]:
    """End tokens named by the model's config files; the tokeniser's own come on top."""
    found: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            config: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise ModelIncomplete(f"{path} is not valid JSON; download the model again") from error
        for part in (config, config.get("text_config") or {}):
            ids = part.get("eos_token_id")
            found |= {ids} if isinstance(ids, int) else set(ids or ())
    return found
