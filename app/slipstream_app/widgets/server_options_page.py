"""The server's options: who may ask, when it starts, and how long models stay. Each applies at once."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QFormLayout, QHBoxLayout, QLineEdit, QScrollArea, QSpinBox, QWidget

from slipstream_app.models.server_options import local_address, new_key
from slipstream_app.setting import CONTEXT, Value
from slipstream_app.settings import Settings
from slipstream_app.settings_table import BY_KEY
from slipstream_app.strings import shown
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.panel import Panel, button, wrapped
from slipstream_app.widgets.setting_editors import Editor, make_editor

# Settings of other pages too that decide how requests are served.
FROM_TABLE = (
    "server/at_start",
    "server/load_on_request",
    "server/prompt_limit",
    "performance/unload_minutes",
    "performance/max_batch",
    "server/keep_text",
)


class ServerOptionsPage(QScrollArea):
    def __init__(self, theme: Theme, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.port = QSpinBox()
        self.port.setRange(1024, 65535)
        self.port.setGroupSeparatorShown(False)
        self.port.setValue(settings.number("server/port"))
        self.port.setAccessibleName(self.tr("Port"))
        self.port.editingFinished.connect(self._on_port)
        self.network = QCheckBox(self.tr("Let other devices on the network in"))
        self.network.setChecked(settings.flag("server/network"))
        self.network.toggled.connect(self._on_network)
        self.key = QLineEdit(settings.text("server/key"))
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText(self.tr("None is asked for"))
        self.key.setAccessibleName(self.tr("Key"))
        self.key.editingFinished.connect(self._on_key)
        self.show_key = button(self.tr("Show"), name=self.tr("Show the key"))
        self.show_key.setCheckable(True)
        self.show_key.toggled.connect(self._on_show_key)
        self.copy_key = button(self.tr("Copy"), name=self.tr("Copy the key"))
        self.copy_key.clicked.connect(self._on_copy_key)
        self.make_key = button(self.tr("New key"))
        self.make_key.clicked.connect(self._on_new_key)
        self.origins = QLineEdit(settings.text("server/origins"))
        self.origins.setPlaceholderText("https://chat.example")
        self.origins.setAccessibleName(self.tr("Web pages that may call it"))
        self.origins.editingFinished.connect(self._on_origins)
        self.editors: dict[str, Editor] = {}
        for key in FROM_TABLE:
            editor = self.editors[key] = make_editor(BY_KEY[key], settings.get(key), theme)
            editor.edited.connect(self._on_edited)
        self.note = wrapped(theme, "", "muted")
        settings.changed.connect(self._on_setting)
        self._lay_out(Panel(theme))
        self.refresh_note()

    def _lay_out(self, panel: Panel) -> None:
        key_row = QHBoxLayout()
        key_row.setSpacing(S)
        for widget in (self.key, self.show_key, self.copy_key, self.make_key):
            key_row.addWidget(widget)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        form.setVerticalSpacing(M)
        form.addRow(self.tr("Port"), self.port)
        form.addRow("", self.network)
        form.addRow(self.tr("Key"), key_row)
        form.addRow(self.tr("Web pages"), self.origins)
        for key, editor in self.editors.items():
            row = BY_KEY[key]
            form.addRow("" if isinstance(row.default, bool) else shown(CONTEXT, row.label), editor)
        panel.body.addLayout(form)
        panel.body.addWidget(self.note)
        panel.body.addStretch(1)
        self.setWidget(panel)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Options"))

    def refresh_note(self) -> None:
        words = self.tr("Changes apply at once; where it has to, a running server starts again.")
        if self._settings.text("server/prompt_limit") == "refuse":
            words += " " + self.tr("A prompt that does not fit the context is refused with its length, never cut.")
        else:
            words += " " + self.tr(
                "A prompt that does not fit the context loses its oldest turns; "
                "its client and the list of requests say so."
            )
        if self._settings.flag("server/network"):
            words = self.tr("Other devices reach it at {0}, with the key.").format(local_address()) + " " + words
        self.note.say(words)

    @Slot(str, object)
    def _on_edited(self, key: str, value: Value) -> None:
        self._settings.set(key, value)

    @Slot()
    def _on_port(self) -> None:
        self._settings.set("server/port", self.port.value())

    @Slot(bool)
    def _on_network(self, is_on: bool) -> None:
        if is_on and not self._settings.text("server/key"):
            self._on_new_key()  # first, so that no server ever listens wide without one
        self._settings.set("server/network", is_on)
        self.refresh_note()

    @Slot()
    def _on_key(self) -> None:
        """A wide server keeps its key; what an HTTP header cannot carry is refused."""
        text = self.key.text().strip()
        is_wrong = any(not "!" <= c <= "~" for c in text) or (not text and self._settings.flag("server/network"))
        if is_wrong:
            self.key.setText(self._settings.text("server/key"))
            self.note.say(self.tr("The key must be printable ASCII without blanks, and stays while others are let in."))
            return
        self._settings.set("server/key", text)

    @Slot()
    def _on_new_key(self) -> None:
        self._settings.set("server/key", new_key())
        self.key.setText(self._settings.text("server/key"))

    @Slot(bool)
    def _on_show_key(self, is_shown: bool) -> None:
        self.key.setEchoMode(QLineEdit.EchoMode.Normal if is_shown else QLineEdit.EchoMode.Password)
        self.show_key.setText(self.tr("Hide") if is_shown else self.tr("Show"))

    @Slot()
    def _on_copy_key(self) -> None:
        QGuiApplication.clipboard().setText(self._settings.text("server/key"))

    @Slot()
    def _on_origins(self) -> None:
        from slipstream.server.auth import check_origins

        try:
            checked = check_origins(self.origins.text().split())
        except ValueError as error:
            self.note.say(str(error))
            return
        self.origins.setText(" ".join(checked))
        self._settings.set("server/origins", " ".join(checked))
        self.refresh_note()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        """Another window may have changed it."""
        settings = self._settings
        match key:
            case "server/port":
                self.port.setValue(settings.number(key))
            case "server/network":
                self.network.setChecked(settings.flag(key))
            case "server/key":
                self.key.setText(settings.text(key))
            case "server/origins":
                self.origins.setText(settings.text(key))
            case _ if key in self.editors:
                self.editors[key].show_value(settings.get(key))
                self.refresh_note()
            case _:
                pass
