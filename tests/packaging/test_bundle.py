"""The app's facts: Info.plist, what py2app is told, what is trimmed, icon, entitlements, the disk image's layout."""

from __future__ import annotations

import plistlib
import struct
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

import bundle
import dmg_settings
import icon
import slipstream
from slipstream_app import mac
from slipstream_app.windows import opening

PACKAGING = Path(__file__).parents[2] / "packaging"


def test_the_plist_has_what_macos_needs() -> None:
    told = plistlib.loads(plistlib.dumps(bundle.plist()))
    assert told["CFBundleIdentifier"] == mac.AGENT  # the login item names the same app
    assert told["CFBundleVersion"] == told["CFBundleShortVersionString"] == slipstream.__version__
    assert told["LSMinimumSystemVersion"] == "14.0"
    assert told["LSArchitecturePriority"] == ["arm64"]
    assert told["CFBundleURLTypes"][0]["CFBundleURLSchemes"] == [opening.SCHEME]
    for key in ("CFBundleName", "CFBundleIconFile", "NSHumanReadableCopyright", "NSHighResolutionCapable"):
        assert told[key]
    assert all(value.endswith(".") for key, value in told.items() if key.endswith("UsageDescription"))


def test_each_document_type_is_declared() -> None:
    told = bundle.plist()
    declared = {kind["UTTypeIdentifier"] for kind in told["UTImportedTypeDeclarations"]}
    used = {name for kind in told["CFBundleDocumentTypes"] for name in kind["LSItemContentTypes"]}
    assert used == declared
    (kind,) = told["UTImportedTypeDeclarations"]
    assert kind["UTTypeTagSpecification"]["public.filename-extension"] == [opening.SUFFIX.removeprefix(".")]


def test_py2app_is_told_what_it_does_not_find_by_itself() -> None:
    options = bundle.options()
    assert {"mlx", "mlx_lm", "PySide6", "shiboken6", "slipstream", "slipstream_app"} <= set(options["packages"])
    assert "mlx._reprlib_fix" in options["includes"]  # imported from C++
    assert options["arch"] == "arm64"
    assert options["argv_emulation"] is False
    assert "qt_plugins" not in options  # Qt would be copied twice (py2app#380)
    assert bundle.options(("mlx",))["packages"] == ["mlx"]


def test_every_package_named_is_one_we_install() -> None:
    from importlib.util import find_spec

    assert [name for name in bundle.PACKAGES if find_spec(name) is None] == []


def make(site: Path, *names: str) -> None:
    for name in names:
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")


def test_trimming_keeps_what_is_used(tmp_path: Path) -> None:
    kept = (
        "PySide6/QtWidgets.abi3.so",
        "PySide6/libpyside6.abi3.6.9.dylib",
        "PySide6/Qt/lib/QtCore.framework/Versions/A/QtCore",
        "PySide6/Qt/plugins/platforms/libqcocoa.dylib",
        "PySide6/Qt/translations/qtbase_de.qm",
        "transformers/models/auto/modeling_auto.py",
        "transformers/models/qwen3/configuration_qwen3.py",
        "mlx/lib/mlx.metallib",
        "numpy/testing/__init__.py",
    )
    gone = (
        "PySide6/QtQml.abi3.so",
        "PySide6/Designer.app/Contents/MacOS/Designer",
        "PySide6/lrelease",
        "PySide6/Qt/qml/QtQuick/qmldir",
        "PySide6/Qt/lib/QtQml.framework/Versions/A/QtQml",
        "PySide6/Qt/plugins/sqldrivers/libqsqlmimer.dylib",
        "PySide6/Qt/translations/qtbase_fr.qm",
        "PySide6/QtCore.pyi",
        "transformers/models/qwen3/modeling_qwen3.py",
        "mlx/include/mlx/mlx.h",
        "numpy/_core/tests/test_x.py",
    )
    make(tmp_path, *kept, *gone)
    assert bundle.trim(tmp_path) == 5 * len(gone)
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in gone if (tmp_path / name).exists()] == []
    assert bundle.trim(tmp_path) == 0


def test_frameworks_get_the_links_that_a_wheel_cannot_hold(tmp_path: Path) -> None:
    framework = tmp_path / "PySide6" / "Qt" / "lib" / "QtCore.framework"
    make(framework, "Versions/A/QtCore", "Versions/A/Resources/Info.plist", "Resources/Info.plist")
    assert bundle.mend_frameworks(tmp_path) == 3
    assert (framework / "Versions" / "Current").readlink() == Path("A")
    assert (framework / "QtCore").read_bytes() == b"12345"
    assert (framework / "Resources").is_symlink()
    assert (framework / "Resources" / "Info.plist").is_file()
    assert bundle.mend_frameworks(tmp_path) == 0


def test_the_icon_file_holds_each_size(tmp_path: Path) -> None:
    icon.main(tmp_path)
    data = (tmp_path / bundle.ICON).read_bytes()
    assert data[:4] == b"icns"
    assert struct.unpack(">I", data[4:8])[0] == len(data)
    at, found = 8, {}
    while at < len(data):
        kind, length = data[at : at + 4], struct.unpack(">I", data[at + 4 : at + 8])[0]
        picture = QImage.fromData(data[at + 8 : at + length])
        found[kind] = picture.width()
        assert picture.height() == picture.width()
        assert picture.pixelColor(0, 0).alpha() == 0  # nothing outside the rounded square
        assert picture.pixelColor(picture.width() // 2, picture.height() // 2).alpha() == 255
        at += length
    assert found == icon.TYPES


def test_entitlements_are_no_more_than_needed() -> None:
    with (PACKAGING / "entitlements.plist").open("rb") as file:
        assert plistlib.load(file) == {"com.apple.security.cs.disable-library-validation": True}


def test_the_disk_image_shows_the_app_and_where_to_put_it() -> None:
    layout = dmg_settings.layout()
    assert set(layout["items"]) == {"Slipstream.app", "Applications"}
    assert layout["links"] == {"Applications": "/Applications"}
    left, right = layout["items"]["Slipstream.app"], layout["items"]["Applications"]
    assert left[0] < right[0]
    assert left[1] == right[1]


def test_an_item_outside_the_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dmg_settings.icon_locations, "Applications", (630, 200))
    with pytest.raises(ValueError, match="cut off"):
        dmg_settings.layout()
