"""Words for people: marking them for the translators, and choosing the language. The words are in `resources/i18n`."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from slipstream_app.resources import i18n_dir

LANGUAGES = ("en", "de")


def mark(context: str, text: str) -> str:
    """Marks a text of a table; `shown` translates it where it is shown."""
    return text


def shown(context: str, text: str) -> str:
    return QCoreApplication.translate(context, text)


def install(app: QCoreApplication, language: str) -> str:
    """Before any window is made. "system" takes the first of the system's languages that there is. Returns it."""
    chosen = language if language in LANGUAGES else _system_language()
    QLocale.setDefault(QLocale(chosen) if language in LANGUAGES else QLocale.system())
    for folder, name in (
        (QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath), f"qtbase_{chosen}"),
        (str(i18n_dir()), f"slipstream_{chosen}"),
    ):
        translator = QTranslator(app)
        if translator.load(name, folder):
            app.installTranslator(translator)
    return chosen


def _system_language() -> str:
    for name in QLocale.system().uiLanguages():
        if (code := name.split("-")[0]) in LANGUAGES:
            return code
    return LANGUAGES[0]
