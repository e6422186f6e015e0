"""Licences of what is bundled: a table for THIRD_PARTY_NOTICES.md, and the full texts for the app.

python packaging/notices.py SITE            writes the table to THIRD_PARTY_NOTICES.md
python packaging/notices.py SITE --full OUT  writes table and texts
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

import bundle

_FILES = ("licen", "copying", "notice")
# Not a Python package, or without a word about it in its metadata.
ALSO = (
    ("SmolLM2-135M-Instruct", "", "Apache-2.0", "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct"),
    ("Lucide icons", "", "ISC", "https://lucide.dev"),
    ("Python", bundle.PYTHON, "PSF-2.0", "https://www.python.org"),
)
QT = (
    "PySide6, Shiboken and Qt are used under the LGPL 3. They are separate, replaceable libraries in the app "
    "(Contents/Resources/lib), and their source is at https://download.qt.io/official_releases/QtForPython/."
)


@dataclass(frozen=True, slots=True)
class Notice:
    name: str
    version: str
    licence: str
    home: str
    texts: tuple[str, ...]


def notices(site: Path) -> list[Notice]:
    """One for each package of a site folder, by name."""
    found = [_notice(package) for package in distributions(path=[str(site)])]
    return sorted(found, key=lambda notice: notice.name.lower())


def _notice(package: Distribution) -> Notice:
    about = package.metadata
    name = about["Name"]
    return Notice(name, package.version, _licence(package), _home(package), tuple(_texts(package)))


def _licence(package: Distribution) -> str:
    about = package.metadata
    if said := _field(package, "License-Expression"):
        return said
    short = _field(package, "License").strip()
    if short and "\n" not in short and len(short) < 80:
        return short
    classes = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License ::")]
    named = [line for line in classes if line != "OSI Approved"]
    return " / ".join(named) or "unknown"


def _home(package: Distribution) -> str:
    urls = dict(line.split(", ", 1) for line in package.metadata.get_all("Project-URL") or [] if ", " in line)
    by_name = {label.lower(): url for label, url in urls.items()}
    wanted = ("homepage", "home", "source", "source code", "repository", "github", "code")
    return next((by_name[label] for label in wanted if label in by_name), _field(package, "Home-page"))


def _field(package: Distribution, name: str) -> str:
    return next(iter(package.metadata.get_all(name) or ()), "")


def _texts(package: Distribution) -> Iterator[str]:
    for file in package.files or []:
        is_notice = any(word in file.name.lower() for word in _FILES) and file.suffix in ("", ".txt", ".md", ".rst")
        if ".dist-info" in str(file) and is_notice:
            place = Path(str(package.locate_file(file)))
            if place.is_file():
                yield place.read_text(encoding="utf-8", errors="replace").strip()


def table(site: Path) -> str:
    rows = [(n.name, n.version, n.licence, n.home) for n in notices(site)] + list(ALSO)
    lines = [f"| {name} {version}".rstrip() + f" | {licence} | {home} |" for name, version, licence, home in rows]
    head = "# Third-party notices\n\nThe macOS app contains:\n\n| what | licence | where |\n| --- | --- | --- |\n"
    return head + "\n".join(lines) + f"\n\n{QT}\n"


def text(site: Path) -> str:
    parts = [table(site)]
    rule = "=" * 80
    for notice in notices(site):
        parts += [f"{rule}\n{notice.name} {notice.version}\n{rule}\n\n{said}\n" for said in notice.texts]
    for file in sorted((bundle.ROOT / "packaging" / "licences").glob("*.txt")):  # Qt's wheels hold none
        parts.append(f"{rule}\n{file.stem}\n{rule}\n\n{file.read_text(encoding='utf-8')}")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("site", type=Path, help="a site-packages folder, such as build/plan/site")
    parser.add_argument("--full", type=Path, metavar="OUT", help="write table and texts to this file instead")
    args = parser.parse_args()
    if args.full:
        args.full.write_text(text(args.site), encoding="utf-8")
    else:
        (bundle.ROOT / "THIRD_PARTY_NOTICES.md").write_text(table(args.site), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
