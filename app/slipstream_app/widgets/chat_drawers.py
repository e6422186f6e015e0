"""The drawers right of a chat: what it asks of the model, and how fast its answers come. One is open at a time."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from slipstream.types import ModelInfo
from slipstream_app.bridge.bus import Bus
from slipstream_app.models.chat_parameters import Parameters
from slipstream_app.models.telemetry import Telemetry
from slipstream_app.theme import Theme
from slipstream_app.widgets.parameters import ParametersDrawer
from slipstream_app.widgets.telemetry_drawer import TelemetryDrawer


class ChatDrawers(QWidget):
    """Each is made when it is first opened: their many controls would delay the chat."""

    changed = Signal(object)  # Parameters
    save_asked = Signal()
    telemetry_asked = Signal()  # the whole screen
    toggled = Signal()  # another one is open, or none

    def __init__(self, theme: Theme, bus: Bus, telemetry: Telemetry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._bus = bus
        self._telemetry = telemetry
        self._info: ModelInfo | None = None
        self._values = (Parameters(), Parameters())  # of the chat, and the defaults
        self._slower: float | None = None
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self.hide()

    @cached_property
    def parameters(self) -> ParametersDrawer:
        made = ParametersDrawer(self._theme)
        made.hide()
        made.show_parameters(*self._values)
        made.show_slower(self._slower)
        made.show_model(self._info)
        made.changed.connect(self.changed)
        made.save_asked.connect(self.save_asked)
        made.closed.connect(self.toggle_parameters)
        self._row.addWidget(made)
        return made

    @cached_property
    def telemetry(self) -> TelemetryDrawer:
        made = TelemetryDrawer(self._theme, self._bus, self._telemetry)
        made.hide()
        made.all_asked.connect(self.telemetry_asked)
        made.closed.connect(self.toggle_telemetry)
        self._row.addWidget(made)
        return made

    @property
    def _made(self) -> ParametersDrawer | None:
        return self.__dict__.get("parameters")

    @property
    def has_parameters(self) -> bool:
        """They are open."""
        return self._made is not None and not self._made.isHidden()

    @property
    def has_telemetry(self) -> bool:
        made: TelemetryDrawer | None = self.__dict__.get("telemetry")
        return made is not None and not made.isHidden()

    def show_model(self, info: ModelInfo | None) -> None:
        self._info = info
        if (made := self._made) is not None:
            made.show_model(info)

    def show_parameters(self, value: Parameters, defaults: Parameters, slower: float | None) -> None:
        """`slower`: as in ParametersDrawer.show_slower."""
        self._values, self._slower = (value, defaults), slower
        if (made := self._made) is not None:
            made.show_parameters(value, defaults)
            made.show_slower(slower)

    def flush(self) -> None:
        """Take over what is being typed, now."""
        if (made := self._made) is not None:
            made.flush()

    @Slot()
    def toggle_parameters(self) -> None:
        self.flush()
        self._open(None if self.has_parameters else self.parameters)

    @Slot()
    def toggle_telemetry(self) -> None:
        self.flush()
        self._open(None if self.has_telemetry else self.telemetry)

    def _open(self, drawer: ParametersDrawer | TelemetryDrawer | None) -> None:
        for at in range(self._row.count()):
            widget = self._row.itemAt(at).widget()
            widget.setVisible(widget is drawer)
        self.setVisible(drawer is not None)
        self.toggled.emit()
