"""What an agent is told: which server, which model, and where on this machine its files are. Touches no file."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.store.paths import data_dir, home
from slipstream.store.preferences import DEFAULT_PORT

DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
PROVIDER = "slipstream"  # our name in every client's list of providers
NO_KEY = "slipstream"  # clients that insist on a key get this one when the server has none
UNKNOWN_CONTEXT = 32_768  # told when nobody says: too small only compacts early, too large breaks the session
MAX_OUTPUT = 16_384
# A slow machine may read a long prompt for minutes; the clients' own limits are 300 s (agents.md section 8).
IDLE_TIMEOUT_MS = 1_800_000
REQUEST_TIMEOUT_MS = 3_600_000
LOOKUP_TIMEOUT_S = 5.0
DATA_FOLDER = (".local", "share", "slipstream")
# How servers name the window in their list of models; ours is the first.
CONTEXT_FIELDS = ("context_window", "context_length", "max_model_len", "max_input_tokens")


class ConfigRefused(SlipstreamError):
    """Nothing was changed, and the message says why."""

    code = "config_refused"


class ServerUnreachable(SlipstreamError):
    code = "server_unreachable"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the server listens: `url` without /v1 and without a slash at its end."""

    url: str = DEFAULT_URL
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        url = self.url.rstrip("/").removesuffix("/v1").rstrip("/")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host, parts = None, urlsplit("")
        wrong = parts.scheme not in ("http", "https") or parts.query or parts.fragment or "@" in parts.netloc
        if wrong or not host or any(c.isspace() or not c.isprintable() for c in url):
            raise InvalidRequest(f"the address must look like {DEFAULT_URL}, not {self.url!r}", option="url")
        if self.key is not None and (not self.key or any(not "!" <= c <= "~" for c in self.key)):
            raise InvalidRequest("the key must be printable ASCII without blanks", option="key")
        object.__setattr__(self, "url", url)

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a client must know of the model that is served."""

    name: str  # as the server calls it
    context: int = UNKNOWN_CONTEXT  # tokens of prompt and answer together
    thinking: bool = True
    images: bool = False
    title: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or self.name != self.name.strip():
            raise InvalidRequest(f"the model's name must be printable text, not {self.name!r}", option="model")
        if self.context < 1024:
            raise InvalidRequest(f"the context must be at least 1024 tokens, not {self.context}", option="context")

    @property
    def label(self) -> str:
        return self.title or self.name

    @property
    def max_output(self) -> int:
        return min(MAX_OUTPUT, self.context // 4)


@dataclass(frozen=True, slots=True)
class Place:
    """Whose files: a home folder, and the variables with which its owner moved things."""

    home: Path
    env: Mapping[str, str]
    journals: Path  # what undo needs is kept here, readable by the owner alone

    @staticmethod
    def here() -> Place:
        return Place(home(), dict(os.environ), data_dir() / "agents")

    @staticmethod
    def at(home: Path) -> Place:
        """Another home folder. This process's variables speak of its own home, so they do not count there."""
        home = home.absolute()
        data = ("Library", "Application Support", "Slipstream") if sys.platform == "darwin" else DATA_FOLDER
        return Place(home, {}, home.joinpath(*data, "agents"))

    def path(self, variable: str, *default: str) -> Path:
        """The file or folder that `variable` names, or `default` under the home folder."""
        moved = self.env.get(variable)
        if not moved:
            return self.home.joinpath(*default)
        if moved == "~" or moved.startswith("~/"):
            return self.home / moved[2:]
        return Path(moved).absolute()


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know before writing; `code` is for programs, `text` for people."""

    code: str
    text: str


def served_models(server: ServerAddress, timeout_s: float = LOOKUP_TIMEOUT_S) -> list[ModelCard]:
    """Ask the server what it serves. Raises ServerUnreachable."""
    request = urllib.request.Request(f"{server.v1}/models")
    if server.key:
        request.add_header("Authorization", f"Bearer {server.key}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            body = json.loads(answer.read(4_000_000))
        return [card for item in body["data"] if (card := _card(item))]
    except urllib.error.HTTPError as error:
        hint = "; give its key with --key" if error.code in (401, 403) else ""
        raise ServerUnreachable(f"{server.url} answered with status {error.code}{hint}", url=server.url) from error
    except OSError as error:
        text = f"no server answers at {server.url}; start one with: slipstream serve"
        raise ServerUnreachable(text, url=server.url) from error
    except (ValueError, KeyError, TypeError) as error:
        text = f"what answers at {server.url} does not list its models; is it Slipstream?"
        raise ServerUnreachable(text, url=server.url) from error


def choose_model(server: ServerAddress, name: str | None, context: int | None) -> tuple[ModelCard, tuple[Note, ...]]:
    """The served model, or the one that is named. Without a server, `name` is believed and the window is a guess."""
    try:
        cards = served_models(server)
    except ServerUnreachable as error:
        if name is None:
            text = f"{error.message}; or name the model with --model and its window with --context"
            raise ServerUnreachable(text, **error.facts) from error
        if context is not None:
            return ModelCard(name, context), ()
        text = (
            f"{server.url} does not answer, so the window is taken to be {UNKNOWN_CONTEXT} tokens. "
            "Run this again while the server runs, or give --context."
        )
        return ModelCard(name), (Note("context_guessed", text),)
    notes: tuple[Note, ...] = ()
    card = next((card for card in cards if name in (None, card.name)), None)
    if card is None and name is None:
        raise ServerUnreachable(f"{server.url} serves no model; load one, or give --model", url=server.url)
    if card is None:
        card = ModelCard(name or "")
        listed = ", ".join(card.name for card in cards) or "none"
        notes = (Note("model_not_listed", f"{server.url} does not list {name!r}; it lists: {listed}."),)
    if context is not None:
        card = ModelCard(card.name, context, card.thinking, card.images, card.title)
    return card, notes


def _card(item: Any) -> ModelCard | None:  # Any: another program's JSON
    context = next((item[name] for name in CONTEXT_FIELDS if isinstance(item.get(name), int)), UNKNOWN_CONTEXT)
    abilities = item.get("capabilities")
    known: dict[str, Any] = abilities if isinstance(abilities, dict) else {}
    title = item.get("display_name")
    try:
        return ModelCard(
            name=str(item["id"]),
            context=context,
            thinking=_can(known, "thinking", True),
            images=_can(known, "image_input", False),
            title=title if isinstance(title, str) and title.isprintable() else "",
        )
    except InvalidRequest:
        return None


def _can(abilities: Mapping[str, Any], name: str, unknown: bool) -> bool:
    """Anthropic's form of an ability, or a plain one."""
    said = abilities.get(name)
    if isinstance(said, dict):
        said = said.get("supported")
    return said if isinstance(said, bool) else unknown
