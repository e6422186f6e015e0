"""The one table of actions and keys. Menus, palette, shortcut sheet and the conflict test are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from slipstream_app.strings import mark

CONTEXT = "Actions"  # of the translations


class Menu(StrEnum):
    APP = "app"
    FILE = "file"
    EDIT = "edit"
    VIEW = "view"
    MODEL = "model"
    SERVER = "server"
    WINDOW = "window"
    HELP = "help"


MENUS = {
    Menu.APP: "Slipstream",
    Menu.FILE: mark("Actions", "File"),
    Menu.EDIT: mark("Actions", "Edit"),
    Menu.VIEW: mark("Actions", "View"),
    Menu.MODEL: mark("Actions", "Model"),
    Menu.SERVER: mark("Actions", "Server"),
    Menu.WINDOW: mark("Actions", "Window"),
    Menu.HELP: mark("Actions", "Help"),
}


@dataclass(frozen=True, slots=True)
class Action:
    """`where` names the screen that does it; the window itself does those without.

    Keys are in Qt's words, in which Ctrl is the Mac's Command and Meta its Control.
    """

    id: str
    menu: Menu
    text: str
    keys: tuple[str, ...] = ()
    where: str = ""
    is_text_key: bool = False  # handled by the widget with the focus; shown in the sheet alone
    visits: bool = False  # brings its screen to the front first; else it is greyed on other screens
    opens_group: bool = False  # a line above it in its menu


TABLE: tuple[Action, ...] = (
    Action("app.settings", Menu.APP, mark("Actions", "Settings…"), ("Ctrl+,",)),
    Action("app.quit", Menu.APP, mark("Actions", "Quit Slipstream"), ("Ctrl+Q",), opens_group=True),
    Action("chat.new", Menu.FILE, mark("Actions", "New Chat"), ("Ctrl+N",), "chat", visits=True),
    Action("chat.import", Menu.FILE, mark("Actions", "Import Chat…"), (), "chat", opens_group=True, visits=True),
    Action("chat.export", Menu.FILE, mark("Actions", "Export Chat…"), ("Ctrl+Shift+E",), "chat"),
    Action("chat.delete", Menu.FILE, mark("Actions", "Delete Chat"), ("Ctrl+Backspace",), "chat", opens_group=True),
    Action("edit.undo", Menu.EDIT, mark("Actions", "Undo"), ("Ctrl+Z",)),
    Action("edit.redo", Menu.EDIT, mark("Actions", "Redo"), ("Ctrl+Shift+Z",)),
    Action("edit.cut", Menu.EDIT, mark("Actions", "Cut"), ("Ctrl+X",), opens_group=True),
    Action("edit.copy", Menu.EDIT, mark("Actions", "Copy"), ("Ctrl+C",)),
    Action("edit.paste", Menu.EDIT, mark("Actions", "Paste"), ("Ctrl+V",)),
    Action("edit.select_all", Menu.EDIT, mark("Actions", "Select All"), ("Ctrl+A",)),
    Action("chat.find", Menu.EDIT, mark("Actions", "Find…"), ("Ctrl+F",), "chat", opens_group=True),
    Action("chat.find_next", Menu.EDIT, mark("Actions", "Find Next"), ("Ctrl+G",), "chat"),
    Action("chat.search_all", Menu.EDIT, mark("Actions", "Search All Chats"), ("Ctrl+Shift+F",), "chat", visits=True),
    Action(
        "chat.copy_last", Menu.EDIT, mark("Actions", "Copy Last Reply"), ("Ctrl+Shift+C",), "chat", opens_group=True
    ),
    Action("chat.edit_last", Menu.EDIT, mark("Actions", "Edit Last Message"), ("Up",), "chat", is_text_key=True),
    Action("chat.send", Menu.EDIT, mark("Actions", "Send"), ("Return",), "chat", is_text_key=True),
    Action("chat.new_line", Menu.EDIT, mark("Actions", "New Line"), ("Shift+Return",), "chat", is_text_key=True),
    Action("chat.stop", Menu.MODEL, mark("Actions", "Stop"), ("Ctrl+.", "Esc"), "chat"),
    Action("chat.regenerate", Menu.MODEL, mark("Actions", "Regenerate"), ("Ctrl+R",), "chat"),
    Action("chat.previous_branch", Menu.MODEL, mark("Actions", "Previous Branch"), ("Ctrl+[",), "chat"),
    Action("chat.next_branch", Menu.MODEL, mark("Actions", "Next Branch"), ("Ctrl+]",), "chat"),
    Action("model.pick", Menu.MODEL, mark("Actions", "Choose a Pair…"), ("Ctrl+L",), opens_group=True),
    Action("model.load", Menu.MODEL, mark("Actions", "Load Last Pair")),
    Action("model.unload", Menu.MODEL, mark("Actions", "Unload"), ("Ctrl+Shift+L",)),
    Action("model.calibrate", Menu.MODEL, mark("Actions", "Calibrate"), (), "telemetry", visits=True),
    Action(
        "race.toggle", Menu.MODEL, mark("Actions", "Start or Stop Race"), ("Ctrl+Return",), "race", opens_group=True
    ),
    Action("server.toggle", Menu.SERVER, mark("Actions", "Start or Stop Server"), ("Ctrl+Shift+S",)),
    Action("server.copy_url", Menu.SERVER, mark("Actions", "Copy Base URL"), ("Ctrl+Shift+U",)),
    Action("view.chat", Menu.VIEW, mark("Actions", "Chat"), ("Ctrl+1",)),
    Action("view.models", Menu.VIEW, mark("Actions", "Models"), ("Ctrl+2",)),
    Action("view.telemetry", Menu.VIEW, mark("Actions", "Telemetry"), ("Ctrl+3",)),
    Action("view.race", Menu.VIEW, mark("Actions", "Race"), ("Ctrl+4",)),
    Action("view.server", Menu.VIEW, mark("Actions", "Server & Agents"), ("Ctrl+5",)),
    Action("chat.parameters", Menu.VIEW, mark("Actions", "Parameters"), ("Ctrl+I",), "chat", opens_group=True),
    Action("chat.telemetry", Menu.VIEW, mark("Actions", "Telemetry in Chat"), ("Ctrl+Alt+T",), "chat"),
    Action("view.sidebar", Menu.VIEW, mark("Actions", "Sidebar"), ("Ctrl+Meta+S",)),
    Action("view.zoom_in", Menu.VIEW, mark("Actions", "Zoom In"), ("Ctrl++", "Ctrl+="), opens_group=True),
    Action("view.zoom_out", Menu.VIEW, mark("Actions", "Zoom Out"), ("Ctrl+-",)),
    Action("view.zoom_reset", Menu.VIEW, mark("Actions", "Actual Size"), ("Ctrl+0",)),
    Action("window.minimise", Menu.WINDOW, mark("Actions", "Minimise"), ("Ctrl+M",)),
    Action("window.close", Menu.WINDOW, mark("Actions", "Close Window"), ("Ctrl+W",)),
    Action("help.palette", Menu.HELP, mark("Actions", "Command Palette"), ("Ctrl+K",)),
    Action("help.shortcuts", Menu.HELP, mark("Actions", "Keyboard Shortcuts"), ("Ctrl+/",)),
    Action("help.report", Menu.HELP, mark("Actions", "Diagnostics Report…"), opens_group=True),
    Action("help.logs", Menu.HELP, mark("Actions", "Show Logs")),
)

BY_ID = {action.id: action for action in TABLE}
