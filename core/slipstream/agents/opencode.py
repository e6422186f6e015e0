"""opencode: a provider with its window in `opencode.json` or `opencode.jsonc`.

What it needs was measured with 1.18.33.
"""

from __future__ import annotations

from pathlib import Path

from slipstream.agents import client, write
from slipstream.agents.client import Installed, Launch, TestReport
from slipstream.agents.config import PROVIDER, ModelCard, Place, ServerAddress
from slipstream.agents.document import Json
from slipstream.agents.plan import Plan, Setting, Wanted, draw_up

NAME: str = "opencode"
TITLE: str = "opencode"
INSTALL: str = "npm install -g opencode-ai"
SCHEMA = "https://opencode.ai/config.json"
FILES = ("opencode.jsonc", "opencode.json", "config.json")  # read in the other order, so the first counts most
QUIET: dict[str, str | None] = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}


def find() -> Installed | None:
    return client.find("opencode")


def plan(server: ServerAddress, model: ModelCard, place: Place) -> Plan:
    entry = ("provider", PROVIDER)
    chosen = f"{PROVIDER}/{model.name}"
    ours = (*entry, "models", model.name)
    settings = [
        # The client puts this in by itself where it is missing; then undo could not give the file back exactly.
        Setting(("$schema",), choose=lambda current: current or SCHEMA),
        Setting(("model",), chosen),
        Setting(("small_model",), chosen),  # titles; else it may look for another provider
        Setting(("enabled_providers",), choose=_with_ours),
        Setting(("disabled_providers",), choose=_without_ours),
        Setting((*entry, "npm"), "@ai-sdk/openai-compatible"),
        Setting((*entry, "name"), "Slipstream"),
        Setting((*entry, "options", "baseURL"), server.v1),
        Setting((*ours, "name"), model.label),
        Setting((*ours, "reasoning"), model.thinking),
        Setting((*ours, "tool_call"), True),
        Setting((*ours, "attachment"), model.images),
        Setting((*ours, "limit", "context"), model.context),  # without it there is no compaction
        Setting((*ours, "limit", "output"), model.max_output),
    ]
    if server.key:
        settings.append(Setting((*entry, "options", "apiKey"), server.key))
    return draw_up(NAME, [Wanted(_path(place), "jsonc", tuple(settings), owned=(entry,))], place, server)


def test(server: ServerAddress, model: ModelCard, limit_s: float = client.TEST_TIMEOUT_S) -> TestReport:
    def prepare(installed: Installed, folder: Path, prompt: str) -> Launch:
        moved: dict[str, str] = {
            f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        write.apply(plan(server, model, Place(folder, moved, folder / "journals")))
        argv = (str(installed.path), "run", "--format", "json", prompt)
        return Launch(argv, {**client.without_foreign(), **QUIET, **moved})

    return client.tool_round("opencode", INSTALL, server, prepare, limit_s)


def _path(place: Place) -> Path:
    """The file that ranks highest among those that the user has."""
    if place.env.get("OPENCODE_CONFIG_DIR"):
        folder = place.path("OPENCODE_CONFIG_DIR")
    elif place.env.get("OPENCODE_CONFIG"):
        return place.path("OPENCODE_CONFIG")
    else:
        folder = place.path("XDG_CONFIG_HOME", ".config") / "opencode"
    return next((path for name in FILES if (path := folder / name).exists()), folder / "opencode.json")


def _with_ours(current: Json) -> Json:
    """A list that names the only providers to load must name ours."""
    if isinstance(current, list) and PROVIDER not in current:
        return [*current, PROVIDER]
    return current


def _without_ours(current: Json) -> Json:
    if isinstance(current, list) and PROVIDER in current:
        return [name for name in current if name != PROVIDER]
    return current
