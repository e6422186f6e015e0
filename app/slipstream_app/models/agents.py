"""The coding agents that can be set up for this server: what each one's state is, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from slipstream.agents import journal, plan, write
from slipstream.agents.client import Installed, TestReport
from slipstream.agents.config import ModelCard, Note, Place, ServerAddress, choose_model
from slipstream.agents.plan import Plan
from slipstream.agents.registry import AGENTS
from slipstream.agents.write import Applied
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.types import ModelInfo
from slipstream_app.models.work import Work

Result = TypeVar("Result")


class Doing(StrEnum):
    NOTHING = ""
    LOOKING = "looking"  # for the program
    PLANNING = "planning"
    WRITING = "writing"
    TESTING = "testing"


@dataclass(slots=True)
class AgentState:
    """What is known of one agent. Texts in `error` and `report` come from the core."""

    name: str
    title: str
    install: str  # the command that installs it
    is_looked_for: bool = False
    installed: Installed | None = None
    is_set_up: bool = False
    doing: Doing = Doing.NOTHING
    plan: Plan | None = None  # shown, not yet written
    applied: Applied | None = None  # the last write
    report: TestReport | None = None
    error: str = ""
    notes: tuple[Note, ...] = field(default_factory=tuple[Note, ...])


@dataclass(frozen=True, slots=True)
class Served:
    """Where the server is and what it serves, as the agents' files shall say it."""

    server: ServerAddress
    info: ModelInfo | None
    is_on: bool

    def model(self) -> tuple[ModelCard, tuple[Note, ...]]:
        """Waits for the server. Raises SlipstreamError."""
        if self.is_on:
            return choose_model(self.server, None, None)
        if self.info is None:
            raise InvalidRequest("start the server, or load a model, so that the change can name it")
        return ModelCard(self.info.name, self.info.context), ()


class AgentDesk(QObject):
    """Reads and writes the agents' files, always off the main thread. One thing at a time for each agent."""

    changed = Signal(str)  # the agent's name

    def __init__(
        self, served: Callable[[], Served], place: Callable[[], Place] = Place.here, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._served = served
        self._place = place
        self._work = Work(self)
        self.states = {name: AgentState(name, agent.TITLE, agent.INSTALL) for name, agent in AGENTS.items()}

    def look(self) -> None:
        """Which programs are there, and which were set up by us."""
        for name in self.states:
            self._look(name)

    def preview(self, name: str) -> None:
        """Work out the exact change; `AgentState.plan` has it then."""
        served, place = self._served(), self._place()

        def work() -> Plan:
            model, notes = served.model()
            made = AGENTS[name].plan(served.server, model, place)
            self.states[name].notes = (*notes, *made.notes)
            return made

        self._do(name, Doing.PLANNING, work, lambda made: self._show(name, made))

    def preview_undo(self, name: str) -> None:
        place = self._place()
        self._do(name, Doing.PLANNING, lambda: plan.undo(name, place), lambda made: self._show(name, made))

    def apply(self, name: str) -> None:
        """Write what is shown: journal, dated backups, atomic replacement; all of it or nothing."""
        shown = self.states[name].plan
        if shown is not None:
            self._do(name, Doing.WRITING, lambda: write.apply(shown), lambda applied: self._wrote(name, applied))

    def dismiss(self, name: str) -> None:
        self.states[name].plan = None
        self.changed.emit(name)

    def test(self, name: str) -> None:
        """Let the installed client read a file with a tool, in a folder and with a configuration of its own."""
        served = self._served()

        def work() -> TestReport:
            model, _ = served.model()
            return AGENTS[name].test(served.server, model)

        self._do(name, Doing.TESTING, work, lambda report: self._tested(name, report))

    def _look(self, name: str) -> None:
        place = self._place()

        def work() -> tuple[Installed | None, bool]:
            return AGENTS[name].find(), bool(journal.load(name, place))

        def then(found: tuple[Installed | None, bool]) -> None:
            state = self.states[name]
            state.installed, state.is_set_up = found
            state.is_looked_for = True

        self._do(name, Doing.LOOKING, work, then)

    def _show(self, name: str, made: Plan) -> None:
        state = self.states[name]
        state.plan, state.applied = made, None
        if made.is_undo:
            state.notes = made.notes

    def _wrote(self, name: str, applied: Applied) -> None:
        state = self.states[name]
        assert state.plan is not None
        state.is_set_up = not state.plan.is_undo
        state.applied, state.plan, state.report = applied, None, None

    def _tested(self, name: str, report: TestReport) -> None:
        self.states[name].report = report

    def _do(self, name: str, doing: Doing, work: Callable[[], Result], then: Callable[[Result], None]) -> None:
        state = self.states[name]
        if state.doing is not Doing.NOTHING:
            return
        state.doing, state.error = doing, ""
        self.changed.emit(name)

        def over(result: Result) -> None:
            state.doing = Doing.NOTHING
            then(result)
            self.changed.emit(name)

        def refused(error: SlipstreamError) -> None:
            state.doing, state.error = Doing.NOTHING, error.message
            state.is_looked_for = True
            self.changed.emit(name)

        self._work.do(work, over, refused, f"slipstream-agent-{name}")
