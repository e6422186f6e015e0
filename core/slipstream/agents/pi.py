"""pi: a provider in `models.json` and the default in `settings.json`; the launcher brings an extension instead.

What it needs was measured with 1.6.0 (its docs/models-configuration.md lists the fields).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from slipstream.agents import client, write
from slipstream.agents.client import Installed, Launch, TestReport
from slipstream.agents.config import NO_KEY, PROVIDER, ModelCard, Place, ServerAddress
from slipstream.agents.document import Json
from slipstream.agents.plan import Plan, Setting, Wanted, draw_up

NAME: str = "pi"
TITLE: str = "pi"
INSTALL: str = "npm install -g @earendil-works/pi-coding-agent"
API = "openai-completions"
KEY_VARIABLE = "SLIPSTREAM_API_KEY"
QUIET: dict[str, str | None] = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}


def find() -> Installed | None:
    return client.find("pi")


def plan(server: ServerAddress, model: ModelCard, place: Place) -> Plan:
    folder = place.path("PI_CODING_AGENT_DIR", ".pi", "agent")
    entry = ("providers", PROVIDER)
    card = _model(model)

    def with_ours(current: Json) -> Json:
        others = [item for item in current if not _is_named(item, model.name)] if isinstance(current, list) else []
        return [*others, card]

    models = Wanted(
        folder / "models.json",
        "jsonc",  # pi allows comments here, and only here
        (
            Setting((*entry, "name"), "Slipstream"),
            Setting((*entry, "baseUrl"), server.v1),
            Setting((*entry, "api"), API),
            Setting((*entry, "apiKey"), _literal(server.key or NO_KEY)),
            Setting((*entry, "models"), choose=with_ours),
        ),
        owned=(entry,),
    )
    settings = (Setting(("defaultProvider",), PROVIDER), Setting(("defaultModel",), model.name))
    return draw_up(NAME, [models, Wanted(folder / "settings.json", "json", settings)], place, server)


def launcher(
    server: ServerAddress, model: ModelCard, place: Place, program: Path, args: tuple[str, ...], folder: Path
) -> Launch:
    """Start it with an extension in `folder` that adds the provider; sessions and settings stay the user's own."""
    del place
    provider = {
        "name": "Slipstream",
        "baseUrl": server.v1,
        "apiKey": f"${KEY_VARIABLE}",
        "api": API,
        "models": [{**_model(model), "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}],
    }
    extension = folder / "slipstream.mjs"
    call = f"pi.registerProvider({json.dumps(PROVIDER)}, {json.dumps(provider)});"
    extension.write_text(f"export default function (pi) {{ {call} }}\n", "utf-8")
    argv = (str(program), "-e", str(extension), "--provider", PROVIDER, "--model", model.name, *args)
    return Launch(argv, {KEY_VARIABLE: server.key or NO_KEY})


def test(server: ServerAddress, model: ModelCard, limit_s: float = client.TEST_TIMEOUT_S) -> TestReport:
    def prepare(installed: Installed, folder: Path, prompt: str) -> Launch:
        home = folder / "pi"
        write.apply(plan(server, model, Place(folder, {"PI_CODING_AGENT_DIR": str(home)}, folder / "journals")))
        env = {**client.without_foreign(), **QUIET, "PI_CODING_AGENT_DIR": str(home)}
        return Launch((str(installed.path), "-p", prompt), env)

    return client.tool_round("pi", INSTALL, server, prepare, limit_s)


def _model(model: ModelCard) -> dict[str, Json]:
    return {
        "id": model.name,
        "name": model.label,
        "reasoning": model.thinking,
        "input": ["text", "image"] if model.images else ["text"],
        "contextWindow": model.context,
        "maxTokens": model.max_output,
    }


def _is_named(item: Json, name: str) -> bool:
    return isinstance(item, dict) and item.get("id") == name


def _literal(key: str) -> str:
    """A key as pi reads it: `$NAME` would be a variable and a leading `!` a command to run."""
    return re.sub(r"^!", "$!", key.replace("$", "$$"))
