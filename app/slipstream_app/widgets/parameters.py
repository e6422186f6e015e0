"""The drawer with what a chat asks of the model. Values that differ from the defaults have a dot and Reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import InvalidRequest
from slipstream.types import MAX_SEED, Mode, ModelInfo
from slipstream_app.icons import icon
from slipstream_app.models.chat_parameters import PRESETS, Parameters, parse_schema, parse_tools
from slipstream_app.numbers import close_text, number_text
from slipstream_app.theme import XS, L, M, S, Theme
from slipstream_app.widgets.panel import Words, button, wrapped
from slipstream_app.widgets.scrolling import Scrolling

SHORT_WIDTH = 120
EDIT_MS = 400  # after the last key, a text is taken over
_MODES = (Mode.AUTO, Mode.DSPARK, Mode.DFLASH, Mode.MTP, Mode.LOOKUP, Mode.BASELINE)


class _Row(QWidget):
    """A name, a dot while the value is not the default, Reset, and the control under it."""

    reset = Signal()

    def __init__(self, theme: Theme, name: str, control: QWidget, help_: str) -> None:
        super().__init__()
        self.control = control
        self.dot = Words(theme, "●", "accent", scale=0.7)
        self.dot.setAccessibleName(self.tr("changed"))
        label = Words(theme, name)
        label.setToolTip(help_)
        control.setToolTip(help_)
        control.setAccessibleName(name)
        self.undo = QToolButton()
        self.undo.setProperty("role", "flat")
        self.undo.setIcon(icon(theme, "rotate-ccw", "muted"))
        self.undo.setAccessibleName(self.tr("Reset {0}").format(name))
        self.undo.setToolTip(self.tr("Reset"))
        self.undo.clicked.connect(self.reset)
        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 0)
        head.setSpacing(XS)
        head.addWidget(label)
        head.addWidget(self.dot)
        head.addWidget(self.undo)
        head.addStretch(1)
        is_short = not isinstance(control, QPlainTextEdit)
        if is_short:
            head.addWidget(control)
            self._theme = theme
            theme.resized.connect(self._fit)
            self._fit()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(XS)
        column.addLayout(head)
        if not is_short:
            column.addWidget(control)
        self.set_changed(False)

    @Slot()
    def _fit(self) -> None:
        """Short ones are as wide as each other, but for one with long words."""
        self.control.setMinimumWidth(self._theme.px(SHORT_WIDTH))
        if isinstance(self.control, QLineEdit):  # it would take all that there is
            self.control.setMaximumWidth(self._theme.px(SHORT_WIDTH))

    def set_changed(self, is_changed: bool) -> None:
        self.dot.setVisible(is_changed)
        self.undo.setVisible(is_changed)


class ParametersDrawer(QFrame):
    changed = Signal(object)  # Parameters
    save_asked = Signal()
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._defaults = Parameters()
        self._value = Parameters()
        self._is_showing = False
        self._rows: dict[str, _Row] = {}
        self._boxes: dict[QPlainTextEdit, int] = {}  # texts, and how many lines of them are seen
        self._setters: dict[str, Callable[[object], None]] = {}
        self.setProperty("role", "drawer")
        body = QWidget()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(L, M, L, L)
        self._column.setSpacing(M)
        self._add_head()
        self._add_controls()
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(Scrolling(body, self.tr("Parameters")))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(EDIT_MS)
        self._timer.timeout.connect(self._take_texts)
        theme.resized.connect(self.refresh_theme)
        self.refresh_theme()
        self.show_parameters(Parameters(), Parameters())

    def _add_head(self) -> None:
        title = Words(self._theme, self.tr("Parameters"), bold=True)
        close = QToolButton()
        close.setProperty("role", "flat")
        close.setIcon(icon(self._theme, "x", "muted"))
        close.setAccessibleName(self.tr("Close parameters"))
        close.clicked.connect(self.closed)
        row = QHBoxLayout()
        row.addWidget(title)
        row.addStretch(1)
        row.addWidget(close)
        self._column.addLayout(row)
        presets = QGridLayout()
        presets.setSpacing(XS)
        names = {"exact": self.tr("Exact"), "balanced": self.tr("Balanced"), "lively": self.tr("Lively")}
        for at, (key, values) in enumerate(PRESETS.items()):
            one = button(names[key], name=self.tr("Preset {0}").format(names[key]))
            one.setToolTip(", ".join(f"{name} {close_text(value)}" for name, value in values.items()))
            one.clicked.connect(lambda _=False, values=values: self._set(replace(self._value, **values)))
            presets.addWidget(one, 0, at)
        self._column.addLayout(presets)

    def _add_controls(self) -> None:
        self.system = self._text("system", self.tr("System prompt"), 4, self.tr("Said to the model before everything"))
        self._number("temperature", self.tr("Temperature"), 0, 2, 0.05, self.tr("0: always the likeliest token"))
        self._number("top_p", self.tr("Top-p"), 0, 1, 0.01, self.tr("Only the likeliest tokens up to this share"))
        self._whole("top_k", self.tr("Top-k"), 1000, self.tr("Only so many tokens; 0: all"), self.tr("all"))
        self._number("min_p", self.tr("Min-p"), 0, 1, 0.01, self.tr("Only tokens at least so likely, against the best"))
        self.seed = QLineEdit()
        self.seed.setPlaceholderText(self.tr("new each time"))
        self.seed.textEdited.connect(self._edited)
        self._add("seed", self.tr("Seed"), self.seed, self.tr("The same seed gives the same answer"))
        self._setters["seed"] = lambda value: self.seed.setText("" if value is None else str(value))
        self._whole("max_tokens", self.tr("Max tokens"), 131072, self.tr("Length of an answer"), self.tr("what fits"))
        self.thinking = self._choice(
            "thinking",
            self.tr("Thinking"),
            [(self.tr("As the model has it"), None), (self.tr("On"), True), (self.tr("Off"), False)],
            self.tr("Whether to think before answering, where the model can"),
        )
        self.mode = self._choice(
            "mode",
            self.tr("Drafter"),
            [
                (self.tr("Auto"), Mode.AUTO),
                ("DSpark", Mode.DSPARK),
                ("DFlash", Mode.DFLASH),
                ("MTP", Mode.MTP),
                (self.tr("Lookup"), Mode.LOOKUP),
                (self.tr("Off: plain"), Mode.BASELINE),
            ],
            self.tr("Changes the speed, never the answer"),
        )
        self.slower = wrapped(self._theme, role="muted")
        self.slower.hide()
        self._column.addWidget(self.slower)
        depths: list[tuple[str, object]] = [(self.tr("Auto"), None)]
        depths += [(str(depth), depth) for depth in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)]
        self.draft_depth = self._choice(
            "max_draft", self.tr("Draft depth"), depths, self.tr("Tokens drafted per round")
        )
        self.schema = self._text("schema", self.tr("JSON schema"), 6, self.tr("Answers keep to it, token by token"))
        self.schema_mark = wrapped(self._theme, role="muted")
        self._column.addWidget(self.schema_mark)
        self.tools = self._text(
            "tools", self.tr("Tools (JSON)"), 4, self.tr("The model may call them; nothing runs them")
        )
        self.tools_mark = wrapped(self._theme, role="muted")
        self._column.addWidget(self.tools_mark)
        self.save = button(self.tr("Save as default for this model"))
        self.save.clicked.connect(self.save_asked)
        self._column.addWidget(self.save)
        self._column.addStretch(1)

    def _add(self, name: str, words: str, control: QWidget, help_: str) -> None:
        row = _Row(self._theme, words, control, help_)
        row.reset.connect(lambda: self._set(replace(self._value, **{name: getattr(self._defaults, name)})))
        self._rows[name] = row
        self._column.addWidget(row)

    def _number(self, name: str, words: str, low: float, high: float, step: float, help_: str) -> None:
        box = QDoubleSpinBox()
        box.setRange(low, high)
        box.setSingleStep(step)
        box.setDecimals(2)
        box.valueChanged.connect(lambda value: self._set(replace(self._value, **{name: round(value, 2)})))
        self._setters[name] = lambda value: box.setValue(float(str(value)))
        self._add(name, words, box, help_)

    def _whole(self, name: str, words: str, high: int, help_: str, zero: str) -> None:
        box = QSpinBox()
        box.setRange(0, high)
        box.setSpecialValueText(zero)
        box.valueChanged.connect(lambda value: self._set(replace(self._value, **{name: value})))
        self._setters[name] = lambda value: box.setValue(int(str(value)))
        self._add(name, words, box, help_)

    def _choice(self, name: str, words: str, choices: list[tuple[str, object]], help_: str) -> QComboBox:
        box = QComboBox()
        values = [value for _, value in choices]
        box.addItems([text for text, _ in choices])
        box.activated.connect(lambda at: self._set(replace(self._value, **{name: values[at]})))
        self._setters[name] = lambda value: box.setCurrentIndex(values.index(value) if value in values else 0)
        self._add(name, words, box, help_)
        return box

    def _text(self, name: str, words: str, lines: int, help_: str) -> QPlainTextEdit:
        box = QPlainTextEdit()
        box.setTabChangesFocus(True)
        box.setProperty("role", "field")
        self._boxes[box] = lines
        box.textChanged.connect(self._edited)
        self._setters[name] = lambda value: None if box.toPlainText() == value else box.setPlainText(str(value))
        self._add(name, words, box, help_)
        return box

    # Values.

    @property
    def value(self) -> Parameters:
        return self._value

    def show_parameters(self, value: Parameters, defaults: Parameters) -> None:
        self._value, self._defaults = value, defaults
        self._is_showing = True
        for name, set_ in self._setters.items():
            set_(getattr(value, name))
        self._is_showing = False
        self._mark()

    def show_slower(self, ratio: float | None) -> None:
        """`ratio`: the best speed of this pair's drafters, of plain decoding's, where that is faster."""
        self.slower.setVisible(ratio is not None)
        if ratio is not None:
            self.slower.say(
                self.tr("Plain decoding is faster here ({0}×), so nobody drafts by default.").format(
                    number_text(ratio, 2)
                )
            )

    def show_model(self, info: ModelInfo | None) -> None:
        """Only the drafters that are loaded can be chosen."""
        have = {Mode.AUTO, Mode.LOOKUP, Mode.BASELINE, *(info.drafters if info else ())}
        items = self.mode.model()
        assert isinstance(items, QStandardItemModel)
        for at, mode in enumerate(_MODES):
            items.item(at).setEnabled(mode in have)
        self.save.setEnabled(info is not None)

    def _set(self, value: Parameters) -> None:
        if self._is_showing or value == self._value:
            return
        self.show_parameters(value, self._defaults)
        self.changed.emit(value)

    @Slot()
    def _edited(self) -> None:
        if not self._is_showing:
            self._timer.start()

    @Slot()
    def _take_texts(self) -> None:
        self._timer.stop()
        seed = self.seed.text().strip()
        is_seed = not seed or (seed.isdecimal() and int(seed) <= MAX_SEED)
        self.seed.setProperty("wrong", not is_seed)
        value = replace(
            self._value,
            system=self.system.toPlainText(),
            seed=(int(seed) if seed else None) if is_seed else self._value.seed,
        )
        schema, tools = self.schema.toPlainText(), self.tools.toPlainText()
        if self._is_valid(self.schema_mark, schema, parse_schema, self.tr("Valid: answers keep to it")):
            value = replace(value, schema=schema)
        if self._is_valid(self.tools_mark, tools, parse_tools, self.tr("Valid: the model may call them")):
            value = replace(value, tools=tools)
        if value != self._value:
            self._value = value
            self._mark()
            self.changed.emit(value)

    def flush(self) -> None:
        """Take over what is being typed, now."""
        if self._timer.isActive():
            self._take_texts()

    def _is_valid(self, mark: Words, text: str, parse: Callable[[str], object], good: str) -> bool:
        try:
            parse(text)
        except InvalidRequest as error:
            mark.say(self.tr("✗ Not in use: {0}").format(error.message), "bad")
            return False
        mark.say(f"✓ {good}" if text.strip() else "", "ok")
        return True

    def _mark(self) -> None:
        for name, row in self._rows.items():
            row.set_changed(getattr(self._value, name) != getattr(self._defaults, name))
        self._is_valid(self.schema_mark, self.schema.toPlainText(), parse_schema, self.tr("Valid: answers keep to it"))
        self._is_valid(
            self.tools_mark, self.tools.toPlainText(), parse_tools, self.tr("Valid: the model may call them")
        )
        for mark in (self.schema_mark, self.tools_mark):
            mark.setVisible(bool(mark.text()))

    @Slot()
    def refresh_theme(self) -> None:
        theme = self._theme
        for box in (self.schema, self.tools):
            box.setFont(theme.code_font())
        for box, lines in self._boxes.items():
            box.setFixedHeight(theme.px(20 * lines + 12))
        self.setFixedWidth(theme.px(300))
        self._column.setSpacing(theme.px(S))
