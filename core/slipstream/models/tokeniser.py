"""A model's tokeniser and chat template, as the engine needs them. Reads files; no MLX arrays, any one thread."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from slipstream.errors import InvalidRequest, ModelIncomplete, reason
from slipstream.prompt.output import is_marker
from slipstream.prompt.respell import Located
from slipstream.types import Chat, Prompt, Text, Tokens


class Tokeniser:
    """Prompts to ids and ids to text. Raises ModelIncomplete when the folder's tokeniser cannot be read."""

    def __init__(self, folder: Path) -> None:
        end_ids = _end_ids(folder)
        # transformers takes seconds to import; only those who need it wait.
        from mlx_lm.utils import load_tokenizer

        try:
            self._tokenizer: Any = load_tokenizer(folder)
        except Exception as error:  # whatever the library trips over, the files are the reason
            raise ModelIncomplete(
                f"{folder}: the tokenizer files are missing or damaged ({reason(error)}); download the model again"
            ) from error
        # The engine says itself what is too long; the library would write it to stderr as well.
        self._tokenizer._tokenizer.model_max_length = sys.maxsize
        self.end_ids = end_ids | {int(token) for token in self._tokenizer.eos_token_ids}
        added: Mapping[int, Any] = getattr(self.huggingface, "added_tokens_decoder", {})
        # Many families mark thoughts and calls by special tokens: without those nobody could tell them from the rest.
        self._shown = {id_ for id_, token in added.items() if token.special and is_marker(token.content)} - self.end_ids
        self._hidden = {id_ for id_, token in added.items() if token.special} - self._shown
        self._decode = _decoding(self.huggingface)

    def encode(self, prompt: Prompt) -> list[int]:
        """Ids of a prompt. Raises InvalidRequest when it has none, or its messages do not fit the template."""
        match prompt:
            case Tokens(ids):
                out = list(ids)
            case Text(text):
                try:
                    out = self._tokenizer.encode(text)
                except (TypeError, ValueError) as error:  # half of a surrogate pair, which JSON can spell
                    raise InvalidRequest("the prompt is no valid text; send it as UTF-8") from error
            case Chat():
                out = self._render(prompt, tokenize=True)
        if not out:
            raise InvalidRequest("the prompt is empty; write something to answer")
        return out

    def decode(self, ids: Sequence[int]) -> str:
        """The text, without special tokens but for those that mark thoughts and calls."""
        if self._shown:
            ids = [id_ for id_ in ids if id_ not in self._hidden]
        return self._decode(list(ids), skip_special_tokens=not self._shown)

    @property
    def huggingface(self) -> Any:
        """The library's own tokenizer, for what needs its vocabulary."""
        return self._tokenizer._tokenizer

    @property
    def has_chat_template(self) -> bool:
        return bool(self._tokenizer.has_chat_template)

    def locate(self, chat: Chat) -> Located | None:
        """A conversation's ids, and where they stand in its text. None where the library cannot say."""
        if not self.huggingface.is_fast:
            return None
        text = self._render(chat, tokenize=False)
        found = self.huggingface(text, add_special_tokens=False, return_offsets_mapping=True)
        return Located(text, found["input_ids"], found["offset_mapping"])

    def _render(self, chat: Chat, *, tokenize: bool) -> Any:
        """Ids, or the text they are made of."""
        if not self.has_chat_template:
            raise InvalidRequest("this model has no chat template; send plain text (--raw-prompt)")
        if taken := sorted(_NOT_VARIABLES & chat.template.keys()):
            raise InvalidRequest(f"{taken[0]} cannot be set for the chat template; leave it out", option=taken[0])
        try:
            return self._tokenizer.apply_chat_template(
                [dict(message) for message in chat.messages],
                tools=[dict(tool) for tool in chat.tools] or None,
                add_generation_prompt=True,
                tokenize=tokenize,
                **chat.template,
            )
        except Exception as error:  # a template is a program of the model's author: it raises what it likes
            if not _is_text(chat.messages):
                raise InvalidRequest("the prompt is no valid text; send it as UTF-8") from error
            raise InvalidRequest(f"the model's chat template refuses these messages: {reason(error)}") from error


def _is_text(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Not where half of a surrogate pair is in it, which JSON can spell and a terminal of another encoding can send."""
    try:
        json.dumps(messages, ensure_ascii=False, default=dict).encode()
    except UnicodeEncodeError:
        return False
    return True


def _decoding(tokenizer: Any) -> Callable[..., str]:
    """`decode` of the library underneath, where transformers' adds nothing to it: a round decodes twice."""
    from transformers import PreTrainedTokenizerFast

    kind = type(tokenizer)
    if isinstance(tokenizer, PreTrainedTokenizerFast) and (
        kind.decode is PreTrainedTokenizerFast.decode and kind._decode is PreTrainedTokenizerFast._decode
    ):
        underneath: Any = tokenizer._tokenizer
        return underneath.decode
    decode: Any = partial(tokenizer.decode, clean_up_tokenization_spaces=False)
    return decode


# Arguments of apply_chat_template that are not the template's variables: they would change what comes out, or bring a
# template of the sender's own.
_NOT_VARIABLES = frozenset(
    (
        *("conversation", "tools", "chat_template", "add_generation_prompt", "continue_final_message", "tokenize"),
        *("padding", "truncation", "max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask"),
        "tokenizer_kwargs",
    )
)


def _end_ids(folder: Path) -> set[int]:
    """End tokens named by the model's config files; the tokeniser's own come on top."""
    found: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            config: dict[str, Any] = dict(json.loads(path.read_text()))
            for part in (config, config.get("text_config") or {}):
                ids: Any = part.get("eos_token_id")  # Any: the file may say anything
                found |= {int(token) for token in (ids if isinstance(ids, list) else [ids]) if ids is not None}
        except (ValueError, TypeError, AttributeError) as error:
            raise ModelIncomplete(f"{path} is damaged ({reason(error)}); download the model again") from error
    return found
