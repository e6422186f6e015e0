"""Codex: a provider in `config.toml`, and a catalog of models beside it that keeps the prompt short.

What it needs was measured with 0.171.0. The catalog alone takes the first request from 40 to 22 KB, and without
the tools for sub-agents and goals it is 9 KB.
"""

from __future__ import annotations

from pathlib import Path

from slipstream.agents import client, write
from slipstream.agents.client import Installed, Launch, TestReport
from slipstream.agents.config import IDLE_TIMEOUT_MS, PROVIDER, ModelCard, Note, Place, ServerAddress
from slipstream.agents.document import Json
from slipstream.agents.plan import Plan, Setting, Wanted, draw_up, read_toml

NAME: str = "codex"
TITLE: str = "Codex"
INSTALL: str = "npm install -g @openai/codex"
CATALOG = "slipstream-models.json"
INSTRUCTIONS = "You are a coding agent. Use the tools to do what the user asks. Be brief."
LEVELS = ("low", "medium", "high")
TOOL_OUTPUT_TOKENS = 10_000


def find() -> Installed | None:
    return client.find("codex")


def plan(server: ServerAddress, model: ModelCard, place: Place) -> Plan:
    folder = place.path("CODEX_HOME", ".codex")
    path, catalog = folder / "config.toml", folder / CATALOG
    entry = ("model_providers", PROVIDER)
    settings = [
        Setting(("model",), model.name),
        Setting(("model_provider",), PROVIDER),
        Setting(("model_catalog_json",), str(catalog)),
        Setting(("model_context_window",), model.context),
        Setting(("web_search",), choose=_unless_set("disabled")),  # it runs on the maker's servers
        Setting(("agents", "enabled"), choose=_unless_set(False)),
        Setting(("features", "goals"), choose=_unless_set(False)),
        Setting((*entry, "name"), "Slipstream"),
        Setting((*entry, "base_url"), server.v1),
        Setting((*entry, "wire_api"), "responses"),
        Setting((*entry, "stream_idle_timeout_ms"), IDLE_TIMEOUT_MS),
    ]
    if server.key:
        settings.append(Setting((*entry, "experimental_bearer_token"), server.key))
    wanted = [
        Wanted(catalog, "json", (Setting(("models",), [_model(model)]),)),
        Wanted(path, "toml", tuple(settings), owned=(entry,)),
    ]
    return draw_up(NAME, wanted, place, server, _notes(path))


def test(server: ServerAddress, model: ModelCard, limit_s: float = client.TEST_TIMEOUT_S) -> TestReport:
    def prepare(installed: Installed, folder: Path, prompt: str) -> Launch:
        home = folder / "codex"
        write.apply(plan(server, model, Place(folder, {"CODEX_HOME": str(home)}, folder / "journals")))
        quiet = ("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false")
        # The sandbox stays on: the test only reads.
        argv = (str(installed.path), *quiet, "exec", "--skip-git-repo-check", "--json", prompt)
        return Launch(argv, {**client.without_foreign(), "CODEX_HOME": str(home)})

    return client.tool_round("codex", INSTALL, server, prepare, limit_s)


def _unless_set(value: Json):
    def choose(current: Json) -> Json:
        return value if current is None else current

    return choose


def _notes(path: Path) -> list[Note]:
    profile = read_toml(path, ("profile",))
    if not isinstance(profile, str):
        return []
    text = f"{path} chooses the profile {profile!r}; what that profile sets counts before what is written here."
    return [Note("profile", text)]


def _model(model: ModelCard) -> dict[str, Json]:
    """An entry of the catalog, in the form of `codex debug models`."""
    return {
        "slug": model.name,
        "display_name": model.label,
        "description": "Runs on this machine.",
        "base_instructions": INSTRUCTIONS,
        "default_reasoning_level": "medium" if model.thinking else None,
        "supported_reasoning_levels": [
            {"effort": level, "description": level.capitalize()} for level in LEVELS if model.thinking
        ],
        "shell_type": "unified_exec",
        "apply_patch_tool_type": None,
        "web_search_tool_type": "text",
        "supports_reasoning_summaries": model.thinking,
        "default_reasoning_summary": "none",
        "support_verbosity": False,
        "default_verbosity": None,
        "supports_parallel_tool_calls": True,
        "supports_image_detail_original": False,
        "supports_search_tool": False,
        "truncation_policy": {"mode": "tokens", "limit": TOOL_OUTPUT_TOKENS},
        "context_window": model.context,
        "max_context_window": model.context,
        "effective_context_window_percent": 95,
        "input_modalities": ["text", "image"] if model.images else ["text"],
        "experimental_supported_tools": [],
        "visibility": "list",
        "supported_in_api": True,
        "priority": 1,
        "availability_nux": None,
        "upgrade": None,
    }
