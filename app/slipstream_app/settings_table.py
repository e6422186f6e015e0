"""Every setting is one row here: its key, kind, default and words. The Settings window is made from the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from slipstream_app.strings import mark

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


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "general/language",
        Page.GENERAL,
        "system",
        mark("Settings", "Language"),
        mark("Settings", "Takes effect when Slipstream is opened again."),
        choices={"system": mark("Settings", "As the system"), "en": "English", "de": "Deutsch"},
    ),
    Setting(
        "general/detail",
        Page.GENERAL,
        "standard",
        mark("Settings", "Detail"),
        mark("Settings", "How much is shown. Nothing behaves differently."),
        choices={
            "simple": mark("Settings", "Simple: speed, fit, stop"),
            "standard": mark("Settings", "Standard"),
            "expert": mark("Settings", "Expert: curves, rounds, raw JSON"),
        },
    ),
    Setting(
        "general/menu_bar",
        Page.GENERAL,
        True,
        mark("Settings", "Show in the menu bar"),
        mark("Settings", "Speed, server and model at hand while the window is closed."),
    ),
    Setting(
        "general/login_item",
        Page.GENERAL,
        False,
        mark("Settings", "Open at login"),
        mark("Settings", "Slipstream starts in the menu bar, without a window."),
        is_mac_only=True,
    ),
    Setting(
        "general/load_at_start",
        Page.GENERAL,
        True,
        mark("Settings", "Load the last pair when opened"),
    ),
    Setting(
        "appearance/scheme",
        Page.APPEARANCE,
        "system",
        mark("Settings", "Appearance"),
        choices={
            "system": mark("Settings", "As the system"),
            "light": mark("Settings", "Light"),
            "dark": mark("Settings", "Dark"),
        },
    ),
    Setting(
        "appearance/accent",
        Page.APPEARANCE,
        "system",
        mark("Settings", "Accent colour"),
        mark("Settings", "The system's is used where it can be read against the background."),
        choices={
            "system": mark("Settings", "As the system"),
            "blue": mark("Settings", "Blue"),
            "purple": mark("Settings", "Purple"),
            "pink": mark("Settings", "Pink"),
            "red": mark("Settings", "Red"),
            "orange": mark("Settings", "Orange"),
            "green": mark("Settings", "Green"),
            "graphite": mark("Settings", "Graphite"),
        },
    ),
    Setting(
        "appearance/zoom", Page.APPEARANCE, 100, mark("Settings", "Text size"), low=80, high=200, unit="%", step=10
    ),
    Setting(
        "appearance/code_font",
        Page.APPEARANCE,
        "",
        mark("Settings", "Code font"),
        is_font=True,
    ),
    Setting(
        "appearance/reduce_motion",
        Page.APPEARANCE,
        False,
        mark("Settings", "Reduce motion"),
        mark("Settings", "Replays and gauges jump instead of moving."),
    ),
    Setting(
        "chat/return_sends",
        Page.CHAT,
        True,
        mark("Settings", "Return sends"),
        mark("Settings", "Off: Return breaks the line and Command-Return sends."),
    ),
    Setting(
        "chat/max_tokens",
        Page.CHAT,
        0,
        mark("Settings", "Longest reply"),
        mark("Settings", "For new chats; each chat can have its own."),
        low=0,
        high=131072,
        step=256,
        unit=mark("Settings", "tokens"),
        lowest=mark("Settings", "What fits the context"),
    ),
    Setting(
        "chat/titles",
        Page.CHAT,
        "question",
        mark("Settings", "Titles of chats"),
        mark("Settings", "For new chats; a title can be changed in the list."),
        choices={
            "question": mark("Settings", "The first words of the question"),
            "date": mark("Settings", "Date and time: the list shows no words of a chat"),
        },
    ),
    Setting(
        "chat/keep_days",
        Page.CHAT,
        0,
        mark("Settings", "Delete chats after"),
        mark("Settings", "Counted from the last message; done when Slipstream is opened."),
        low=0,
        high=3650,
        step=30,
        unit=mark("Settings", "days"),
        lowest=mark("Settings", "Never"),
    ),
    Setting(
        "models/folder",
        Page.MODELS,
        "",
        mark("Settings", "Another folder with models"),
        mark("Settings", "Looked through beside the shared model cache. Nothing is copied."),
        is_folder=True,
        for_engine=True,
    ),
    Setting(
        "models/bits",
        Page.MODELS,
        "",
        mark("Settings", "Preferred bits"),
        mark(
            "Settings",
            "Of models that are suggested or downloaded by name, where they are published so. "
            "Fewer bits take less memory and are faster; more keep closer to the original.",
        ),
        choices={
            "": mark("Settings", "As recommended for each model"),
            "4-bit": mark("Settings", "4 bits"),
            "8-bit": mark("Settings", "8 bits"),
            "bf16": mark("Settings", "16 bits (bfloat16)"),
        },
        for_engine=True,
    ),
    Setting(
        "models/limit_gb",
        Page.MODELS,
        0,
        mark("Settings", "Disk for models"),
        mark(
            "Settings",
            "A download that would pass it is refused. Nothing is deleted by itself; the button shows what could go.",
        ),
        low=0,
        high=100_000,
        step=10,
        unit="GB",
        lowest=mark("Settings", "No limit"),
        for_engine=True,
    ),
    Setting(
        "performance/mode",
        Page.PERFORMANCE,
        "auto",
        mark("Settings", "Who drafts"),
        mark(
            "Settings",
            "For new chats. The text is the same under every choice; only the speed differs. "
            "Where the loaded pair has no such drafter, Automatic holds.",
        ),
        choices={
            "auto": mark("Settings", "Automatic"),
            "dspark": "DSpark",
            "dflash": "DFlash",
            "mtp": mark("Settings", "MTP heads of the model"),
            "lookup": mark("Settings", "Lookup in the text so far"),
            "baseline": mark("Settings", "Nobody: plain decoding"),
        },
    ),
    Setting(
        "performance/max_draft",
        Page.PERFORMANCE,
        0,
        mark("Settings", "Longest draft"),
        low=0,
        high=64,
        unit=mark("Settings", "tokens"),
        lowest=mark("Settings", "As the drafter likes"),
    ),
    Setting(
        "performance/kv_bits",
        Page.PERFORMANCE,
        "0",
        mark("Settings", "Memory of the context"),
        mark("Settings", "Packed, it takes less memory and rounds a little. From the next load on."),
        choices={
            "0": mark("Settings", "Full precision"),
            "8": mark("Settings", "8 bits"),
            "4": mark("Settings", "4 bits"),
        },
        for_engine=True,
    ),
    Setting(
        "performance/max_batch",
        Page.PERFORMANCE,
        1,
        mark("Settings", "Answers written together"),
        mark(
            "Settings",
            "For agents that ask several things at once: more in all, each one a little slower, every text the same. "
            "From the next load on.",
        ),
        low=1,
        high=16,
        for_engine=True,
    ),
    Setting(
        "performance/unload_minutes",
        Page.PERFORMANCE,
        0,
        mark("Settings", "Unload when idle for"),
        mark("Settings", "The next request to the server loads it again."),
        low=0,
        high=1440,
        step=5,
        unit=mark("Settings", "minutes"),
        lowest=mark("Settings", "Never: it stays loaded"),
    ),
    Setting(
        "performance/cache_ram_gb",
        Page.PERFORMANCE,
        -1,
        mark("Settings", "Prompts kept in memory"),
        mark("Settings", "A prompt that begins as an earlier one is read from there. From the next load on."),
        low=-1,
        high=512,
        unit="GB",
        lowest=mark("Settings", "An eighth of the memory"),
        for_engine=True,
    ),
    Setting(
        "performance/cache_disk_gb",
        Page.PERFORMANCE,
        -1,
        mark("Settings", "Prompts kept on disk"),
        mark("Settings", "They outlive a restart. From the next load on."),
        low=-1,
        high=2048,
        unit="GB",
        lowest=mark("Settings", "10 GB at most"),
        for_engine=True,
    ),
    Setting(
        "server/at_start",
        Page.SERVER,
        False,
        mark("Settings", "Start the server when Slipstream is opened"),
    ),
    Setting("server/port", Page.SERVER, 8765, mark("Settings", "Port"), low=1024, high=65535, for_engine=True),
    Setting(
        "server/network",
        Page.SERVER,
        False,
        mark("Settings", "Let other devices on the network in"),
        mark("Settings", "They need the key; one is made if there is none."),
    ),
    Setting(
        "server/key",
        Page.SERVER,
        "",
        mark("Settings", "Key"),
        mark("Settings", "What clients must send. Empty: none is asked for, on this machine alone."),
        is_secret=True,
    ),
    Setting(
        "server/origins",
        Page.SERVER,
        "",
        mark("Settings", "Web pages that may call it"),
        mark("Settings", "Such as https://chat.example, with spaces between. Any other page is refused."),
    ),
    Setting(
        "server/load_on_request",
        Page.SERVER,
        True,
        mark("Settings", "Load the last pair when a request comes"),
        mark("Settings", "Off: requests are refused while no model is loaded."),
    ),
    Setting(
        "server/prompt_limit",
        Page.SERVER,
        "refuse",
        mark("Settings", "Prompts that do not fit"),
        mark("Settings", "What was dropped is said to the client and in the list of requests. Agents want a refusal."),
        choices={
            "refuse": mark("Settings", "Refuse, with the length"),
            "drop_oldest": mark("Settings", "Drop the oldest turns"),
        },
    ),
    Setting(
        "server/keep_text",
        Page.SERVER,
        False,
        mark("Settings", "Keep request text"),
        mark("Settings", "Shows what clients sent in the list of requests, until Slipstream is quit."),
    ),
    Setting(
        "updates/check",
        Page.UPDATES,
        False,
        mark("Settings", "Look for updates once a day"),
        mark(
            "Settings",
            "One request to the list of releases; nothing about you is sent. Nothing is installed by itself.",
        ),
    ),
    Setting(
        "updates/channel",
        Page.UPDATES,
        "stable",
        mark("Settings", "Channel"),
        choices={
            "stable": mark("Settings", "Finished releases"),
            "early": mark("Settings", "Pre-releases too: earlier, and less tried"),
        },
    ),
)

BY_KEY = {row.key: row for row in SETTINGS}
