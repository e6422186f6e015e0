"""Collects the app's words into resources/i18n/*.ts and compiles them: run after changing a text.

    uv run python packaging/translate.py

Translate what is marked unfinished in slipstream_de.ts (any editor, or Qt Linguist), and run it again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import PySide6

ROOT = Path(__file__).resolve().parents[1]
I18N = ROOT / "resources" / "i18n"
LANGUAGES = ("en", "de")
TOOLS = Path(PySide6.__file__).parent


def main() -> int:
    for language in LANGUAGES:
        file = I18N / f"slipstream_{language}.ts"
        collect(file, language)
        unfinished = file.read_text(encoding="utf-8").count('type="unfinished"')
        release(file, file.with_suffix(".qm"))
        print(f"{file.name}: {unfinished} to translate" if unfinished else f"{file.name}: complete")
    return 0


def collect(file: Path, language: str) -> None:
    """Bring a .ts up to date with the code. English needs its plurals alone."""
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "app" / "slipstream_app").rglob("*.py"))
    words = [str(TOOLS / "lupdate"), "-tr-function-alias", "QT_TRANSLATE_NOOP+=mark,translate+=shown"]
    words += ["-locations", "none", "-no-obsolete", "-silent", "-target-language", language]
    words += ["-pluralonly"] if language == "en" else []
    # Relative names and a fixed place: the result must not depend on where the checkout is.
    subprocess.run([*words, *sources, "-ts", str(file)], cwd=ROOT, check=True)


def release(file: Path, compiled: Path) -> None:
    command = [str(TOOLS / "lrelease"), "-silent", "-nounfinished", str(file), "-qm", str(compiled)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
