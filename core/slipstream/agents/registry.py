"""The clients that Slipstream can set up. Adding one is a file and a line."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from slipstream.agents import claude_code, client, codex, opencode, pi
from slipstream.agents.client import Installed, Launch, TestReport
from slipstream.agents.config import ModelCard, Place, ServerAddress
from slipstream.agents.plan import Plan


class Agent(Protocol):
    """What each client's module offers."""

    NAME: str  # on the command line
    TITLE: str  # for people
    INSTALL: str

    def find(self) -> Installed | None: ...
    def plan(self, server: ServerAddress, model: ModelCard, place: Place) -> Plan: ...
    def test(self, server: ServerAddress, model: ModelCard, limit_s: float = client.TEST_TIMEOUT_S) -> TestReport: ...


class Launcher(Protocol):
    """A client that can be started for this server without changing a file."""

    TITLE: str
    INSTALL: str

    def launcher(
        self,
        server: ServerAddress,
        model: ModelCard,
        place: Place,
        program: Path,
        args: tuple[str, ...],
        folder: Path,
    ) -> Launch: ...


AGENTS: dict[str, Agent] = {
    claude_code.NAME: claude_code,
    pi.NAME: pi,
    codex.NAME: codex,
    opencode.NAME: opencode,
}

# By the name of the program, which is also our subcommand.
LAUNCHERS: dict[str, Launcher] = {"claude": claude_code, "pi": pi}
