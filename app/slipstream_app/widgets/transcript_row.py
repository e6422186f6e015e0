"""The place of one message in the transcript, whether or not there is a widget for it now."""

from __future__ import annotations

from dataclasses import dataclass

from slipstream_app.theme import Theme
from slipstream_app.widgets.message import MessageWidget
from slipstream_app.widgets.shown import Shown


@dataclass(slots=True)
class Row:
    shown: Shown
    height: int  # as the widget had it last, else a guess
    y: int = 0
    widget: MessageWidget | None = None
    is_built: bool = False

    def fit(self, width: int) -> None:
        """As high as the widget wants to be."""
        if self.widget is not None:
            self.height = self.widget.fit(width)

    def is_whole(self, top: int, bottom: int) -> bool:
        """All that is wanted between these places of the transcript is there."""
        return self.is_built and (self.widget is None or not self.widget.wants(top - self.y, bottom - self.y))

    def drop(self) -> None:
        if self.widget is not None:
            self.widget.hide()
            self.widget.deleteLater()
            self.widget, self.is_built = None, False


def guess(theme: Theme, shown: Shown, width: int) -> int:
    """How high a message will be."""
    per_line = max(20, width // theme.px(8))
    lines = sum(1 + len(line) // per_line for line in shown.message.text.split("\n"))
    return theme.px(80) + lines * theme.px(20)
