"""How much disk models take, on Settings › Models, and the dialog that lists what could go before anything does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from PySide6.QtCore import QDateTime, QLocale, QSize, Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from slipstream.errors import SlipstreamError
from slipstream.store import room
from slipstream.store.room import Leaving, Taken
from slipstream_app.models.recent import names_of, recent_pairs
from slipstream_app.models.work import Work
from slipstream_app.numbers import size_text
from slipstream_app.settings import Settings
from slipstream_app.theme import M, Theme
from slipstream_app.widgets.panel import button, wrapped

GB = 10**9
ROW = 24  # pixels
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Rooms(Protocol):
    """Asked on a thread of its own; `slipstream.store.room` is one."""

    def taken(self) -> Taken: ...
    def could_go(self) -> list[Leaving]: ...


class ModelSpace(QWidget):
    """What models take now. The button shows what could go; nothing goes without a yes to that list."""

    def __init__(
        self, theme: Theme, settings: Settings, in_use: Callable[[], Sequence[str]], rooms: Rooms | None = None
    ) -> None:
        """`in_use`: names of what is loaded; it is never offered. What was loaded lately stands last."""
        super().__init__()
        self._theme = theme
        self._settings = settings
        self._in_use = in_use
        self._rooms: Rooms = rooms or room
        self._work = Work(self)
        self._taken: Taken | None = None
        self.dialog: MakeRoom | None = None
        self.words = wrapped(theme, "", "muted")
        self.make_room = button(self.tr("Make room…"))
        self.make_room.clicked.connect(self._on_make_room)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(M)
        row.addWidget(self.make_room)
        row.addWidget(self.words, 1)
        settings.changed.connect(self._on_setting)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look()

    def look(self) -> None:
        """Count again."""
        self._work.do(self._rooms.taken, self._on_taken, self._on_trouble, "slipstream-room")

    @property
    def over(self) -> int:
        """Bytes beyond the limit."""
        limit = self._settings.number("models/limit_gb") * GB
        return max(0, self._taken.bytes - limit) if limit and self._taken is not None else 0

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == "models/limit_gb":
            self._show()

    def _on_taken(self, taken: Taken) -> None:
        self._taken = taken
        self._show()

    def _show(self) -> None:
        taken = self._taken
        if taken is None:
            return
        words = self.tr("Models take {0} now.").format(size_text(taken.bytes))
        if taken.converted:
            words = self.tr("Models take {0} now, {1} of it converted from GGUF files.").format(
                size_text(taken.bytes), size_text(taken.converted)
            )
        if self.over:
            words += " " + self.tr("That is {0} over the limit.").format(size_text(self.over))
        self.words.say(words, "warn" if self.over else "muted")

    @Slot()
    def _on_make_room(self) -> None:
        self.make_room.setEnabled(False)
        self._work.do(self._rooms.could_go, self._on_listed, self._on_trouble, "slipstream-room")

    def _on_listed(self, found: list[Leaving]) -> None:
        self.make_room.setEnabled(True)
        used = set(self._in_use())
        lately = [name for pair in recent_pairs(self._settings) for name in names_of(pair)]
        free = [one for one in found if one.name not in used]
        free.sort(key=lambda one: -lately.index(one.name) if one.name in lately else -len(lately) - 1)
        if not free:
            self.words.say(self.tr("There is nothing that could go: no model is in the cache, or only the loaded one."))
            return
        self.dialog = MakeRoom(self._theme, free, self.over, self)
        self.dialog.agreed.connect(self._on_agreed)
        self.dialog.open()

    @Slot(object)
    def _on_agreed(self, going: Sequence[Leaving]) -> None:
        self.make_room.setEnabled(False)
        used = set(self._in_use())  # a client's request may have had one loaded since the list was made

        def remove() -> None:
            for one in going:
                if one.name in used:
                    continue
                try:
                    one.remove()
                except OSError as error:
                    raise SlipstreamError(
                        f"{one.name} could not be removed ({error.strerror}); remove it by hand"
                    ) from error

        self._work.do(remove, self._on_removed, self._on_trouble, "slipstream-room")

    def _on_removed(self, _: None) -> None:
        self.make_room.setEnabled(True)
        self.look()

    def _on_trouble(self, error: SlipstreamError) -> None:
        self.make_room.setEnabled(True)
        self.words.say(error.message, "bad")


class MakeRoom(QDialog):
    """A row for each model that could go, with its exact files below it; the first ones that free enough are ticked."""

    agreed = Signal(object)  # the Leaving that are ticked

    def __init__(self, theme: Theme, found: Sequence[Leaving], over: int, parent: QWidget) -> None:
        """`over`: bytes that should become free."""
        super().__init__(parent)
        self._found = list(found)
        self.setWindowTitle(self.tr("Make room"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        first = self.tr(
            "The oldest stand first, those loaded here lately last. Other programs may use the shared cache too. "
            "What goes from there goes to the Bin where there is one, else it is deleted; it can be downloaded again."
        )
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(self.tr("Models that could go, with their files"))
        self.tree.setHeaderLabels([self.tr("Model"), self.tr("Size"), self.tr("Here since")])
        self.tree.headerItem().setTextAlignment(1, _RIGHT)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # a path's end says which file it is
        ticked = {id(one) for one in room.enough(found, over)}
        for one in found:
            self.tree.addTopLevelItem(_item(one, id(one) in ticked, theme.px(ROW)))
        self.tree.itemChanged.connect(self._count)
        self.words = wrapped(theme)
        self.remove = button(self.tr("Remove"), "danger")
        self.remove.clicked.connect(self._on_remove)
        self.keep = button(self.tr("Keep all"))
        self.keep.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addWidget(self.words, 1)
        buttons.addWidget(self.keep)
        buttons.addWidget(self.remove)
        column = QVBoxLayout(self)
        column.setSpacing(M)
        column.addWidget(wrapped(theme, first, "muted"))
        column.addWidget(self.tree, 1)
        column.addLayout(buttons)
        self.resize(theme.px(640), theme.px(420))
        self.tree.setColumnWidth(0, theme.px(380))
        self._count()

    @property
    def chosen(self) -> list[Leaving]:
        rows = range(self.tree.topLevelItemCount())
        return [self._found[row] for row in rows if _is_ticked(self.tree.topLevelItem(row))]

    @Slot()
    def _count(self, *_: object) -> None:
        chosen = self.chosen
        files, size = sum(len(one.files) for one in chosen), sum(one.bytes for one in chosen)
        self.words.say(self.tr("%n file(s), {0}, would go.", "", files).format(size_text(size)) if chosen else "")
        self.remove.setEnabled(bool(chosen))

    @Slot()
    def _on_remove(self) -> None:
        self.agreed.emit(self.chosen)
        self.accept()


def _item(one: Leaving, is_ticked: bool, high: int) -> QTreeWidgetItem:
    since = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(one.since_s)).date(), QLocale.FormatType.ShortFormat)
    item = QTreeWidgetItem([one.name, size_text(one.bytes), since])
    item.setCheckState(0, Qt.CheckState.Checked if is_ticked else Qt.CheckState.Unchecked)
    for path, size in one.files:
        file = QTreeWidgetItem([str(path), size_text(size)])
        file.setToolTip(0, str(path))
        item.addChild(file)
    for row in (item, *(item.child(at) for at in range(item.childCount()))):
        row.setTextAlignment(1, _RIGHT)
        row.setSizeHint(0, QSize(0, high))
    return item


def _is_ticked(item: QTreeWidgetItem | None) -> bool:
    return item is not None and item.checkState(0) is Qt.CheckState.Checked
