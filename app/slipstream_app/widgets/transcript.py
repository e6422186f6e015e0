"""The messages of a chat under each other. Only those near the view are widgets; the others are their height."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QWidget

from slipstream_app.markdown import split
from slipstream_app.messages import State
from slipstream_app.models.chat_reply import Reply
from slipstream_app.theme import L, M, Theme
from slipstream_app.widgets.message import MessageWidget
from slipstream_app.widgets.shown import Shown
from slipstream_app.widgets.text_column import column_width
from slipstream_app.widgets.transcript_row import Row, guess

MAX_LIVE = 60  # message widgets
FOLLOW_PX = 48  # so near the end, the view follows it
FRAME_MS = 40  # between two repaints of a running answer
BEHIND_MS = 10  # between two frames while there is more to show
SLICE_S = 0.008  # of building messages, between two looks at events
THIN_MS = 1000  # of calm, after which long answers let go of what is far from the view


class Transcript(QScrollArea):
    asked = Signal(str, int, object)  # as MessageWidget's
    live_changed = Signal()  # other messages are widgets now

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: list[Row] = []
        self._by_id: dict[int, Row] = {}
        self._reply_of: Callable[[int], Reply | None] = lambda _: None
        self._follows = True
        self._is_placing = False
        self._is_changing = False  # all is about to be measured anew
        self._fitted = 0  # the width for which heights are known
        self._wanted: int | None = None  # a message to bring into view once the place of everything is known
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setWidgetResizable(False)
        self._content = QWidget()
        self.setWidget(self._content)
        self.setAccessibleName(self.tr("Messages"))
        self.jump = QPushButton(self.tr("↓ Jump to latest"), self)
        self.jump.clicked.connect(self.follow)
        self.jump.hide()
        self.verticalScrollBar().valueChanged.connect(self._on_scroll)
        self._build_timer = QTimer(self)
        self._build_timer.setSingleShot(True)
        self._build_timer.setInterval(0)
        self._build_timer.timeout.connect(self._build)
        self._thin_timer = QTimer(self, singleShot=True)
        self._thin_timer.timeout.connect(self._thin)
        self._sweep_timer = QTimer(self, interval=0)
        self._sweep_timer.timeout.connect(self._sweep)
        self._frame_timer = QTimer(self)
        self._frame_timer.setSingleShot(True)
        self._frame_timer.timeout.connect(self._repaint_running)
        self._frame_ms = FRAME_MS
        self._running: set[int] = set()  # messages with something new to show
        theme.resizing.connect(self._on_resizing)
        theme.resized.connect(self._on_theme)

    # What it shows.

    def set_messages(self, shown: Sequence[Shown], reply_of: Callable[[int], Reply | None]) -> None:
        """Messages that were there keep their widgets."""
        self._reply_of = reply_of
        before = self._by_id
        rows: list[Row] = []
        for one in shown:
            row = before.get(one.message.id)
            if row is None:
                row = Row(one, guess(self._theme, one, self.text_width))
            else:
                self._update(row, one)
            rows.append(row)
        kept = {row.shown.message.id for row in rows}
        for identity, row in before.items():
            if identity not in kept:
                row.drop()
        self._rows = rows
        self._by_id = {row.shown.message.id: row for row in rows}
        self._place()  # which asks for what is near to be made, a little at a time

    def clear(self) -> None:
        self.set_messages((), lambda _: None)
        self._follows = True

    def update_message(self, shown: Shown) -> None:
        row = self._by_id.get(shown.message.id)
        if row is not None:
            self._update(row, shown)
            row.fit(self.text_width)
            self._place()

    def _update(self, row: Row, shown: Shown) -> None:
        if shown.message.state is State.RUNNING and row.shown.message.state is not State.RUNNING:
            row.drop()  # it goes on, and is written anew from its beginning
        row.shown = shown
        if row.widget is not None:
            row.widget.set_shown(shown)

    def widget_of(self, message: int) -> MessageWidget | None:
        row = self._by_id.get(message)
        return None if row is None else row.widget

    @property
    def live(self) -> int:
        """How many messages are widgets."""
        return sum(row.widget is not None for row in self._rows)

    @property
    def is_settled(self) -> bool:
        """Nothing near the view is still to be built."""
        return not self._build_timer.isActive()

    # Running answers.

    def reply_changed(self, message: int) -> None:
        self._running.add(message)
        if not self._frame_timer.isActive():
            self._frame_timer.start(self._frame_ms)

    def reply_ended(self, shown: Shown) -> None:
        identity = shown.message.id
        self._running.discard(identity)
        row = self._by_id.get(identity)
        if row is None:
            return
        row.shown = shown
        if row.widget is not None:
            row.is_built = row.widget.finish_reply(shown, split(shown.message.text))
            row.fit(self.text_width)
        self._place()

    @Slot()
    def _repaint_running(self) -> None:
        began = time.monotonic()
        behind: set[int] = set()  # of which more has come than a frame has time for
        for identity in self._running:
            row, reply = self._by_id.get(identity), self._reply_of(identity)
            if row is not None and row.widget is not None and reply is not None:
                if not row.widget.show_reply(reply, began + SLICE_S):
                    behind.add(identity)
                row.fit(self.text_width)
        self._running = behind
        self._place()
        # A tail that is dear to lay out is laid out less often: at most a quarter of the time goes there.
        cost_ms = (time.monotonic() - began) * 1000
        self._frame_ms = max(FRAME_MS, int(cost_ms * 4))
        if behind:
            self._frame_timer.start(BEHIND_MS)

    # Heights and places.

    @property
    def text_width(self) -> int:
        return column_width(self._theme, self.width())

    def _place(self) -> None:
        """Put everything where it belongs. What is read stays where it is on the screen."""
        if self._is_placing:
            return
        self._is_placing = True
        bar = self.verticalScrollBar()
        anchor = self._first_visible()
        offset = 0 if anchor is None else bar.value() - anchor.y
        width = self.viewport().width()
        left = (self.width() - self.text_width) // 2
        y = M
        for row in self._rows:
            row.y = y
            if row.widget is not None:
                row.widget.setGeometry(left, y, self.text_width, row.height)
            y += row.height
        self._content.resize(width, max(y + L, self.viewport().height()))
        if self._wanted is not None and (wanted := self._by_id.get(self._wanted)) is not None:
            bar.setValue(wanted.y - M)
        elif self._follows:
            bar.setValue(bar.maximum())
        elif anchor is not None:
            bar.setValue(anchor.y + offset)
        self._is_placing = False
        self._show_jump()
        self._want_build()

    def _first_visible(self) -> Row | None:
        top = self.verticalScrollBar().value()
        return next((row for row in self._rows if row.y + row.height > top), None)

    @property
    def _soon(self) -> tuple[int, int]:
        """What can be seen soon begins and ends there: the view, and as much above and below it."""
        top, height = self.verticalScrollBar().value(), self.viewport().height()
        return top - height, top + 2 * height

    def _near(self) -> list[Row]:
        """Rows that should be widgets, nearest to the view first."""
        top, bottom = self._soon
        middle = (top + bottom) / 2

        def distance(row: Row) -> float:
            return max(row.y - middle, middle - row.y - row.height, 0)

        near = [row for row in self._rows if row.y < bottom and row.y + row.height > top]
        return sorted(near, key=distance)[:MAX_LIVE]

    def _want_build(self) -> None:
        if not all(row.is_whole(*self._soon) for row in self._near()):
            self._build_timer.start()
        self._thin_timer.start(THIN_MS)

    @Slot()
    def _build(self) -> None:
        """Make widgets of what is near, for a few milliseconds; go on later with what is left."""
        until = time.monotonic() + SLICE_S
        has_changed = False
        for row in self._near():
            top, bottom = self._soon
            if row.is_whole(top, bottom):
                continue
            if row.widget is None:
                row.widget = self._make(row.shown)
            row.is_built = row.widget.build(until, top - row.y, bottom - row.y)
            row.fit(self.text_width)
            has_changed = True
            if time.monotonic() > until:
                break
        if has_changed:
            self._drop_far()
            self._place()
            self.live_changed.emit()
        elif self._wanted is not None:
            self._wanted = None

    def _make(self, shown: Shown) -> MessageWidget:
        widget = MessageWidget(self._theme, shown, self._content)
        widget.asked.connect(self.asked)
        widget.resized.connect(self._on_resized)
        widget.selected.connect(self._on_selected)
        reply = self._reply_of(shown.message.id)
        if reply is not None:
            self.reply_changed(shown.message.id)  # a frame shows what there is, a little at a time
        widget.show()
        return widget

    def _drop_far(self) -> None:
        live = [row for row in self._rows if row.widget is not None]
        if len(live) <= MAX_LIVE:
            return
        middle = self.verticalScrollBar().value() + self.viewport().height() / 2
        live.sort(key=lambda row: abs(row.y + row.height / 2 - middle))
        for row in live[MAX_LIVE:]:
            if row.shown.message.state is not State.RUNNING:
                row.drop()

    # The view.

    @Slot()
    def follow(self) -> None:
        self._follows, self._wanted = True, None
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._show_jump()

    @property
    def follows(self) -> bool:
        return self._follows

    def show_message(self, message: int) -> None:
        """Bring a message to the top of the view."""
        self._follows, self._wanted = False, message
        self._place()

    @Slot(int)
    def _on_scroll(self, value: int) -> None:
        if self._is_placing:
            return
        self._wanted = None
        self._follows = value >= self.verticalScrollBar().maximum() - FOLLOW_PX
        self._show_jump()
        self._want_build()

    def _show_jump(self) -> None:
        is_far = self.verticalScrollBar().value() < self.verticalScrollBar().maximum() - FOLLOW_PX
        self.jump.setVisible(is_far and not self._follows)
        size = self.jump.sizeHint()
        self.jump.setGeometry(
            (self.viewport().width() - size.width()) // 2,
            self.height() - size.height() - M,
            size.width(),
            size.height(),
        )

    @Slot()
    def _on_selected(self) -> None:
        self._follows = False

    @Slot()
    def _on_resized(self) -> None:
        widget = self.sender()
        for row in self._rows:
            if row.widget is widget:
                row.fit(self.text_width)
        self._follows = False  # what was opened is to be read
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._is_changing:
            return
        if self.text_width == self._fitted:  # the scroll bar came or went, or the height is another
            self._place()
        else:
            self._refit()

    @Slot()
    def _thin(self) -> None:
        """Widgets far from the view cost memory, and time when the theme changes; a few milliseconds at a time."""
        if not self.is_settled:
            self._thin_timer.start(THIN_MS)
            return
        until, height = time.monotonic() + SLICE_S, self.viewport().height()
        for row in self._rows:
            top = self.verticalScrollBar().value() - row.y
            if row.widget is not None and not row.widget.let_go(top - 2 * height, top + 3 * height, until):
                self._thin_timer.start(0)
                return

    @Slot()
    def _on_resizing(self) -> None:
        """Long answers keep what is in sight alone, and are made whole again a little at a time."""
        self._is_changing = True
        top = self.verticalScrollBar().value()
        for row in self._rows:
            if row.widget is not None:
                row.widget.put_aside(top - row.y, top - row.y + self.viewport().height())
        self._sweep_timer.start()

    @Slot()
    def _sweep(self) -> None:
        """Forget the widgets that were put aside, before what was in them is made again."""
        until = time.monotonic() + SLICE_S
        top = self.verticalScrollBar().value()
        for row in self._rows:
            if row.widget is not None:
                row.widget.hide_aside(top - row.y, top - row.y + self.viewport().height())
        if all(row.widget is None or row.widget.forget(until) for row in self._rows):
            self._sweep_timer.stop()

    @Slot()
    def _on_theme(self) -> None:
        """Once the messages know it too: their parts hear of it after this."""
        self._is_changing = True
        QTimer.singleShot(0, self, self._refit_anew)

    def _refit_anew(self) -> None:
        self._is_changing = False
        for row in self._rows:
            if row.widget is not None:
                row.widget.measure_anew()
        self._refit()
        self._sweep()

    def _refit(self) -> None:
        self._fitted = self.text_width
        for row in self._rows:
            if row.widget is None:
                row.height = guess(self._theme, row.shown, self.text_width)
            row.fit(self.text_width)
        self._place()
