"""What a screen is given and what it tells the window. The window knows screens by this alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from slipstream_app.bridge.bus import Bus
from slipstream_app.bridge.server import ServerHost
from slipstream_app.bridge.session import Session
from slipstream_app.models.acceptance import Acceptances
from slipstream_app.models.activity import Activity
from slipstream_app.models.calibrating import Calibrating
from slipstream_app.models.drafting import Drafting
from slipstream_app.models.keep_alive import KeepAlive
from slipstream_app.models.requests import RequestTable
from slipstream_app.models.speedups import Speedups
from slipstream_app.models.telemetry import Telemetry
from slipstream_app.models.telemetry_history import TelemetryHistory
from slipstream_app.models.trainings import Trainings
from slipstream_app.settings import Settings
from slipstream_app.theme import Theme
from slipstream_app.widgets.banner import Banners
from slipstream_app.widgets.entry import Entry

__all__ = ["AppContext", "Entry", "Navigator", "Screen"]

if TYPE_CHECKING:  # opened when the first screen that needs it is made
    from slipstream_app.history import History


class Navigator(QObject):
    """How a screen asks for another: `go("models")`, `go("chat", {"chat": 12})`, `go("settings", "server")`."""

    asked = Signal(str, object)

    def go(self, place: str, argument: object = None) -> None:
        """`place`: chat, models, telemetry, race, server, settings or onboarding."""
        self.asked.emit(place, argument)


@dataclass(frozen=True, slots=True)
class AppContext:
    """Everything that lives as long as the app, handed to every screen."""

    session: Session
    bus: Bus
    settings: Settings
    theme: Theme
    banners: Banners
    navigator: Navigator
    server: ServerHost
    history: History
    telemetry: Telemetry
    speeds: TelemetryHistory
    speedups: Speedups
    acceptances: Acceptances
    requests: RequestTable
    activity: Activity
    calibrating: Calibrating
    keep_alive: KeepAlive
    drafting: Drafting
    trainings: Trainings


class Screen(QWidget):
    """One place of the sidebar. Made at its first visit, kept until the app ends."""

    NAME: ClassVar[str]  # in `Navigator.go`
    commands_changed = Signal()  # what `commands` answers is different now
    news = Signal()  # something came to its end here that is worth a look

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.app = app

    @property
    def title(self) -> str:
        """For the window's title bar."""
        return ""

    def commands(self) -> Mapping[str, Callable[[], object]]:
        """What can be done now, by the ids of `shortcuts.TABLE`; what is missing is greyed in the menus."""
        return {}

    def visited(self, argument: object) -> None:
        """It came to the front, with what `Navigator.go` was given."""

    def left(self) -> None:
        """Another screen came to the front, or the window was hidden: no timer may run on."""

    def entries(self, words: str) -> Sequence[Entry]:
        """What the palette offers for these words."""
        return ()

    def closing(self) -> None:
        """The app ends: save what is not saved."""
