"""The pages of the Settings window that are more than rows of the table: updates, privacy, about, kept prompts."""

from __future__ import annotations

from PySide6.QtCore import QDateTime, QLocale, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

import slipstream
from slipstream.errors import SlipstreamError
from slipstream.store import releases
from slipstream.store.paths import data_dir
from slipstream_app.bridge.session import Session
from slipstream_app.models.updates import UpdateCheck
from slipstream_app.models.work import Work
from slipstream_app.numbers import size_text
from slipstream_app.resources import document
from slipstream_app.setting import CONTEXT
from slipstream_app.strings import mark, shown
from slipstream_app.theme import XL, M, S, Theme
from slipstream_app.widgets.document import Document
from slipstream_app.widgets.panel import Words, button, wrapped

# Everybody this program talks to, and why.
HOSTS = {
    "huggingface.co": mark("Settings", "models and drafters, when you download them"),
    releases.HOST: mark(
        "Settings", "the list of releases, when you ask for it under Updates, or once a day if you switch that on"
    ),
}


class _Page(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(XL, XL, XL, XL)
        self.column.setSpacing(M)


class UpdatesPage(_Page):
    def __init__(self, theme: Theme, updates: UpdateCheck, form: QWidget) -> None:
        super().__init__(theme)
        self._updates = updates
        self.words = wrapped(theme)
        self.look = button(self.tr("Check now"))
        self.look.clicked.connect(updates.look)
        self.open = button(self.tr("Open its page"), "primary")
        self.open.clicked.connect(self._on_open)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.look)
        row.addWidget(self.open)
        row.addStretch(1)
        self.heading = Words(theme, "", bold=True)
        self.notes = Document(self.tr("What changed"))
        layout = form.layout()
        assert layout is not None
        layout.setContentsMargins(0, 0, 0, 0)
        self.column.addWidget(form)
        self.column.addWidget(self.words)
        self.column.addLayout(row)
        self.column.addWidget(self.heading)
        self.column.addWidget(self.notes, 1)
        updates.changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        updates = self._updates
        newer = updates.newer
        own = self.tr("This is Slipstream {0}.").format(slipstream.__version__)
        if updates.is_asking:
            words = self.tr("Looking…")
        elif updates.error:
            words = f"{own} {updates.error[:1].upper()}{updates.error[1:]}."
        elif newer is not None:
            words = self.tr("Slipstream {0} is out. {1}").format(newer.version, own)
            if newer.is_early:
                words += " " + self.tr("It is a pre-release.")
        elif updates.checked_s:
            day = QLocale().toString(_moment(updates.checked_s), QLocale.FormatType.ShortFormat)
            words = self.tr("{0} There was nothing newer on {1}.").format(own, day)
        else:
            words = own
        self.words.say(words)
        self.look.setEnabled(not updates.is_asking)
        self.open.setVisible(newer is not None)
        self.heading.say(self.tr("What is new in {0}").format(newer.version) if newer else self.tr("What changed"))
        self.notes.show_text(newer.notes if newer else _without_title(document("CHANGELOG.md")))

    @Slot()
    def _on_open(self) -> None:
        if self._updates.newer is not None:
            QDesktopServices.openUrl(QUrl(self._updates.newer.page))


class KeptPrompts(QWidget):
    """How much is kept of earlier prompts now, and a button that lets it go."""

    def __init__(self, theme: Theme, session: Session) -> None:
        super().__init__()
        self._session = session
        self._work = Work(self)
        self.words = wrapped(theme, "", "muted")
        self.clear = button(self.tr("Clear"), name=self.tr("Clear kept prompts"))
        self.clear.clicked.connect(self._on_clear)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(M)
        row.addWidget(self.clear)
        row.addWidget(self.words, 1)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()

    def _show(self, *_: object) -> None:
        desk = self._session.prompts
        status = None if desk is None else desk.status
        if status is None:
            self.words.say(self.tr("Nothing is kept while no model is loaded."))
        else:
            kept = self.tr("Kept now: {0} in memory, {1} on disk.")
            self.words.say(kept.format(size_text(status.ram_bytes), size_text(status.disk_bytes)))
        self.clear.setEnabled(status is not None and bool(status.ram_bytes or status.disk_bytes))

    @Slot()
    def _on_clear(self) -> None:
        desk = self._session.prompts
        if desk is not None:
            self.clear.setEnabled(False)
            self._work.do(desk.clear, self._show, self._on_trouble, "slipstream-clear")

    def _on_trouble(self, error: SlipstreamError) -> None:
        self.words.say(error.message, "bad")


class PrivacyPage(_Page):
    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        first = self.tr("Chats, settings and measurements stay on this machine. Nothing about you is sent.")
        self.column.addWidget(wrapped(theme, first))
        self.column.addWidget(Words(theme, self.tr("Slipstream talks to:"), bold=True))
        for host, why in HOSTS.items():
            self.column.addWidget(wrapped(theme, f"{host}: {shown(CONTEXT, why)}"))
        self.column.addWidget(wrapped(theme, self.tr("Your data: {0}").format(data_dir())))
        reveal = button(self.tr("Show the folder"))
        reveal.clicked.connect(self._on_reveal)
        self.column.addWidget(reveal, 0, Qt.AlignmentFlag.AlignLeft)
        self.column.addStretch(1)

    @Slot()
    def _on_reveal(self) -> None:
        data_dir().mkdir(parents=True, exist_ok=True)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(data_dir())))


class AboutPage(_Page):
    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.column.addWidget(Words(theme, f"Slipstream {slipstream.__version__}", scale=1.4, bold=True))
        self.column.addWidget(wrapped(theme, self.tr("Free software under the MIT licence. It contains:")))
        self.licences = Document(self.tr("Licences"))
        self.licences.show_text(_without_title(document("THIRD_PARTY_NOTICES.md")))
        self.column.addWidget(self.licences, 1)


def _without_title(markdown: str) -> str:
    """The heading stands above the text already."""
    return markdown.partition("\n")[2] if markdown.startswith("# ") else markdown


def _moment(seconds: float) -> QDateTime:
    return QDateTime.fromSecsSinceEpoch(int(seconds))
