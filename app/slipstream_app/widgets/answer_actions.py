"""The row under an answer: its figures, what can be done with it, and what Verify found."""

from __future__ import annotations

import json
import time

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolTip, QVBoxLayout, QWidget

from slipstream.types import Mode
from slipstream_app.messages import Json, Message
from slipstream_app.numbers import close_text, count_text
from slipstream_app.setting import Detail
from slipstream_app.theme import XS, Theme
from slipstream_app.widgets.block import Part
from slipstream_app.widgets.panel import Words, tool_button
from slipstream_app.widgets.shown import Again, Ask, Shown
from slipstream_app.widgets.stats import StatsStrip
from slipstream_app.widgets.walker import Walker


class AnswerActions(Part):
    asked = Signal(str, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.stats = StatsStrip(theme)
        self.verdict = Words(theme, scale=0.92)
        self.regenerate = tool_button(theme, "refresh-cw", self.tr("Regenerate"), self.tr("Regenerate this answer"))
        self.regenerate.clicked.connect(lambda: self.asked.emit(Ask.REGENERATE, Again()))
        self.other = tool_button(theme, "chevron-down", "", self.tr("Other ways to regenerate"))
        self.other.clicked.connect(self._on_other)
        self.copy = tool_button(theme, "copy", "", self.tr("Copy this answer as Markdown"))
        self.branch = tool_button(theme, "git-branch", "", self.tr("Branch: a new chat from here"))
        self.branch.clicked.connect(lambda: self.asked.emit(Ask.BRANCH, None))
        self.why = tool_button(theme, "gauge", self.tr("Why this speed"), self.tr("Why this speed"))
        self.why.clicked.connect(lambda: self.asked.emit(Ask.WHY, None))
        self.verify = tool_button(
            theme, "shield-check", self.tr("Verify"), self.tr("Run it again without drafts and compare every token")
        )
        self.verify.clicked.connect(self._on_verify)
        self.raw = tool_button(theme, "file-text", "", self.tr("Copy this answer's facts as JSON"))
        self.raw.clicked.connect(self._on_raw)
        self.walk = Walker(theme)
        self.walk.stepped.connect(lambda step: self.asked.emit(Ask.WALK, step))
        self._is_verifying = False
        self._facts: Json = {}
        top = QHBoxLayout()
        top.setContentsMargins(0, 0, 0, 0)
        top.addWidget(self.stats, 1)  # as wide as there is room, in as many lines as that takes
        bottom = QHBoxLayout()
        bottom.setContentsMargins(0, 0, 0, 0)
        bottom.setSpacing(0)
        for tool in (self.regenerate, self.other, self.copy, self.branch, self.why, self.verify, self.raw):
            bottom.addWidget(tool)
        bottom.addWidget(self.verdict)
        bottom.addStretch(1)
        bottom.addWidget(self.walk)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, XS, 0, 0)
        column.setSpacing(XS)
        column.addLayout(top)
        column.addLayout(bottom)
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    @Slot()
    def _on_other(self) -> None:
        menu = QMenu(self)
        for words, again in (
            (self.tr("With another seed"), Again()),
            (self.tr("With the same seed"), Again(same_seed=True)),
            (self.tr("Without a drafter, same seed"), Again(Mode.BASELINE, same_seed=True)),
        ):
            menu.addAction(words).triggered.connect(lambda _=False, again=again: self.asked.emit(Ask.REGENERATE, again))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.other.mapToGlobal(QPoint(0, self.other.height())))

    @Slot()
    def _on_raw(self) -> None:
        QGuiApplication.clipboard().setText(json.dumps(self._facts, indent=2, ensure_ascii=False))
        QToolTip.showText(self.raw.mapToGlobal(QPoint(0, self.raw.height())), self.tr("Copied"), self.raw)

    @Slot()
    def _on_verify(self) -> None:
        self.asked.emit(Ask.CANCEL_VERIFY if self._is_verifying else Ask.VERIFY, None)

    def show_answer(self, shown: Shown) -> None:
        message = shown.message
        self._facts = message.facts
        self.stats.set_facts(message.facts, shown.detail)
        self.stats.setVisible(bool(message.facts.get("timings", {}).get("output_tokens")))
        is_simple = shown.detail is Detail.SIMPLE
        self.branch.setHidden(is_simple)
        self.why.setVisible(shown.can_verify and not is_simple)
        self.verify.setVisible(shown.can_verify and not is_simple)
        self.raw.setVisible(shown.detail is Detail.EXPERT)
        self.walk.set_place(*shown.place)
        self.set_verifying(None)
        self._say_verdict(message)
        self.show()

    def set_verifying(self, progress: tuple[int, int] | None) -> None:
        self._is_verifying = progress is not None
        if progress is None:
            self.verify.setText(self.tr("Verify"))
        else:
            self.verify.setText(self.tr("Cancel"))
            self.verdict.say(
                self.tr("Verifying, {0} of %Ln token(s)", "", progress[1]).format(count_text(progress[0])), "muted"
            )

    def _say_verdict(self, message: Message) -> None:
        verdict = message.facts.get("verdict")
        if not verdict:
            self.verdict.say("", "muted")
            return
        day = time.strftime("%x %H:%M", time.localtime(verdict["at_s"]))
        gaps = ""
        if verdict["margins"]:
            gaps = self.tr("{0} and {1}").format(*(close_text(margin["gap"]) for margin in verdict["margins"]))
        match verdict["verdict"]:
            case "identical":
                self.verdict.say(self.tr("✓ Identical, %Ln token(s)", None, verdict["tokens"]), "ok")
                self.verdict.setToolTip(
                    self.tr("The model alone says the same with this prompt, options and seed. Checked {0}").format(day)
                )
            case "tie":
                text = self.tr("≈ Numeric tie at token {0}, margins {1}").format(verdict["position"] + 1, gaps)
                self.verdict.say(text, "warn")
                self.verdict.setToolTip(
                    self.tr("Two choices were closer than the rounding of the number format. Checked {0}").format(day)
                )
            case _:
                text = self.tr("✗ Different at token {0}").format(verdict["position"] + 1)
                self.verdict.say(text + (self.tr(", margins {0}").format(gaps) if gaps else ""), "bad")
                self.verdict.setToolTip(self.tr("This is a bug. Please report it. Checked {0}").format(day))

    @Slot()
    def refresh_theme(self) -> None:
        size = self.theme.px(15)
        self.other.setIconSize(QSize(size * 2 // 3, size * 2 // 3))
        for tool in (self.regenerate, self.copy, self.branch, self.why, self.verify, self.raw):
            tool.setFont(self.theme.font(0.92))
            tool.setIconSize(QSize(size, size))
