"""What a setting is: a key, where it is shown, a default that gives its kind, words and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

Value = bool | int | str
CONTEXT = "Settings"  # of the translations


class Page(StrEnum):
    GENERAL = "general"
    APPEARANCE = "appearance"
    CHAT = "chat"
    MODELS = "models"
    PERFORMANCE = "performance"
    SERVER = "server"
    UPDATES = "updates"
    PRIVACY = "privacy"
    ABOUT = "about"


class Detail(StrEnum):
    """How much is shown. Nothing behaves differently."""

    SIMPLE = "simple"  # speed, fit, stop
    STANDARD = "standard"
    EXPERT = "expert"  # curves, rounds, raw JSON


@dataclass(frozen=True, slots=True)
class Setting:
    """One row. `choices` maps stored values to words; numbers have bounds and a unit."""

    key: str
    page: Page
    default: Value
    label: str
    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict[str, str])
    low: int = 0
    high: int = 0
    step: int = 1
    unit: str = ""
    lowest: str = ""  # words for the lowest number, where it means something else
    is_folder: bool = False
    is_font: bool = False
    is_mac_only: bool = False
    is_secret: bool = False  # never in the exported file
    for_engine: bool = False  # the command line honours it too: slipstream.store.preferences

    def check(self, value: object) -> Value | None:
        """The value in this row's kind, or None when it is not one."""
        match self.default:
            case bool():
                if isinstance(value, bool):
                    return value
                return {"true": True, "false": False}.get(str(value).lower())
            case int():
                try:
                    number = int(cast(str, value))
                except (TypeError, ValueError):
                    return None
                return number if self.low <= number <= self.high else None
            case str():
                text = str(value)
                return text if not self.choices or text in self.choices else None
