"""Claude Code: `settings.json`, whose `env` beats the shell's variables, and a launcher with its own settings.

What it needs was measured with 2.1.332 (docs: code.claude.com/docs/en/settings and model-config).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from slipstream.agents import client, write
from slipstream.agents.client import Installed, Launch, TestReport
from slipstream.agents.config import (
    IDLE_TIMEOUT_MS,
    NO_KEY,
    REQUEST_TIMEOUT_MS,
    ConfigRefused,
    ModelCard,
    Note,
    Place,
    ServerAddress,
)
from slipstream.agents.document import Json
from slipstream.agents.plan import Plan, Setting, Wanted, draw_up, read_json

NAME: str = "claude-code"
TITLE: str = "Claude Code"
INSTALL: str = "npm install -g @anthropic-ai/claude-code"
ROOM_NEEDED = 65_536  # the first turn alone is 12 to 24 thousand tokens
TRAFFIC = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"
ASKS = "default"  # before each edit and command: the least that works, and what goes on unasked is the user's to say
TOOLS = ("Read", "Bash(cat *)")  # all that the test may do


def find() -> Installed | None:
    return client.find("claude")


def plan(server: ServerAddress, model: ModelCard, place: Place) -> Plan:
    path = _settings_path(place)
    settings = [Setting(("env", name), value) for name, value in _env(server, model).items()]
    settings.append(Setting(("permissions", "defaultMode"), choose=_mode))
    drawn = draw_up(NAME, [Wanted(path, "json", tuple(settings))], place, server, _notes(path, model))
    return drawn if drawn.is_empty else replace(drawn, notes=(*drawn.notes, *_besides(path)))


def launcher(
    server: ServerAddress, model: ModelCard, place: Place, program: Path, args: tuple[str, ...], folder: Path
) -> Launch:
    """Start it with a settings file in `folder`, which ranks above the user's own and leaves that one alone."""
    mode = _mode(_user_mode(_settings_path(place)))
    # An empty key: the user's own, meant for Anthropic, is not sent to us.
    body = {
        "env": {**_env(server, model), "ANTHROPIC_API_KEY": ""},
        "permissions": {"defaultMode": mode},
    }
    settings = folder / "settings.json"
    settings.write_text(json.dumps(body), "utf-8")
    return Launch((str(program), "--settings", str(settings), *args), _cleared())


def test(server: ServerAddress, model: ModelCard, limit_s: float = client.TEST_TIMEOUT_S) -> TestReport:
    def prepare(installed: Installed, folder: Path, prompt: str) -> Launch:
        home = folder / "claude"
        write.apply(plan(server, model, Place(folder, {"CLAUDE_CONFIG_DIR": str(home)}, folder / "journals")))
        env = {
            **_cleared(),
            "CLAUDE_CONFIG_DIR": str(home),
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }
        argv = (str(installed.path), "-p", prompt, "--output-format", "json", "--allowedTools", *TOOLS)
        return Launch(argv, env)

    return client.tool_round("claude", INSTALL, server, prepare, limit_s)


def _settings_path(place: Place) -> Path:
    return place.path("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"


def _env(server: ServerAddress, model: ModelCard) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": server.url,  # without /v1
        "ANTHROPIC_AUTH_TOKEN": server.key or NO_KEY,
        "ANTHROPIC_MODEL": model.name,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model.name,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": model.name,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": model.name,
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(model.context),  # else it assumes a million
        # Else it keeps 32000 tokens of the window free for an answer, and finds every prompt too long for a small one.
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(model.max_output),
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # it would change the prompt's first line
        TRAFFIC: "1",  # a look at the network, and a request for a title that waits for the model
        "CLAUDE_STREAM_IDLE_TIMEOUT_MS": str(IDLE_TIMEOUT_MS),
        "API_TIMEOUT_MS": str(REQUEST_TIMEOUT_MS),
    }


def _mode(current: Json) -> Json:
    """Keep the user's. The client's default is "auto", which needs a safety check that only its maker's server does."""
    return ASKS if current in (None, "auto") else current


def _user_mode(path: Path) -> Json:
    try:
        return read_json(path, ("permissions", "defaultMode"))
    except ConfigRefused:
        return None  # the client ignores such a file too


def _notes(path: Path, model: ModelCard) -> list[Note]:
    notes: list[Note] = []
    if model.context < ROOM_NEEDED:
        text = (
            f"{TITLE} fills 12 to 24 thousand tokens before your first word, and {model.name} has room for "
            f"{model.context}. At least {ROOM_NEEDED} are recommended."
        )
        notes.append(Note("small_context", text))
    if read_json(path, ("env", "ANTHROPIC_API_KEY")):
        text = f"{path} also sets ANTHROPIC_API_KEY, which is then sent to this server beside its own key."
        notes.append(Note("two_keys", text))
    return notes


def _besides(path: Path) -> list[Note]:
    """What is written that does more than name the server and the model."""
    notes: list[Note] = []
    if _user_mode(path) in (None, "auto"):
        text = (
            f"permissions.defaultMode becomes {ASKS!r}, so {TITLE} asks before edits and commands: its automatic "
            "mode needs a check that only Anthropic's server does."
        )
        notes.append(Note("asks_first", text))
    if read_json(path, ("env", TRAFFIC)) is None:
        text = f"{TRAFFIC}=1 stops {TITLE}'s own updates, telemetry and titles; titles would wait for this model."
        notes.append(Note("less_traffic", text))
    return notes


def _cleared() -> dict[str, str | None]:
    return {**client.without_foreign()}
