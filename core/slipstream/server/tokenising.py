"""The server's own tokeniser, read from the model's folder: the engine's belongs to the engine's thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slipstream.models.tokeniser import Tokeniser
from slipstream.prompt.output import OutputStyle, detect


class FolderTokeniser(Tokeniser):
    """Also knows how the model marks its thoughts and calls."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        kind = getattr(self._tokenizer, "tool_parser_type", None)
        kind = kind if isinstance(kind, str) else None
        self.style: OutputStyle = detect(self.chat_template, self._tokenizer.get_vocab(), kind)

    def spell(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)

    @property
    def chat_template(self) -> str:
        template = getattr(self._tokenizer, "chat_template", None)
        if isinstance(template, dict):  # several, by purpose
            template = template.get("tool_use") or template.get("default")
        return template if isinstance(template, str) else ""
