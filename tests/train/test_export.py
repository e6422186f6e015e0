"""A drafter's folder is the old one or the new one, and nothing that is the user's is replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from slipstream.errors import InvalidRequest
from slipstream.train.design import Design, TargetShape
from slipstream.train.export import export
from slipstream.train.made import drafters_dir, made_drafters


def test_an_older_drafter_stands_until_the_new_one_is_whole(
    shape: TargetShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    d = Design(layers=1, taps=(0,), rank=4).descriptor(shape)
    folder = tmp_path / "drafter"
    export(folder, d, {"a": mx.zeros(3)}, {"target": "old"})
    (folder / ".DS_Store").write_text("the Finder's")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mx, "save_safetensors", full)
        with pytest.raises(OSError, match="No space"):
            export(folder, d, {"a": mx.zeros(3)}, {"target": "new"})
    removed: list[bool] = []
    remove = shutil.rmtree

    def watched(path: Path, **more: Any) -> None:
        removed.append((folder / "model.safetensors").is_file())
        remove(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", watched)
        export(folder, d, {"a": mx.ones(3)}, {"target": "new"})
    assert removed
    assert all(removed)  # whatever was deleted, a whole drafter stood there
    assert json.loads((folder / "config.json").read_text())["slipstream"]["target"] == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["drafter"]

    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InvalidRequest, match=r"other files \(notes\.txt\)"):
        export(folder, d, {"a": mx.ones(3)}, {"target": "newer"})


def test_what_an_export_left_half_made_is_not_offered(
    shape: TargetShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    d = Design(layers=1, taps=(0,), rank=4).descriptor(shape)
    for name in ("whole", ".half-made"):
        export(drafters_dir() / name, d, {"a": mx.zeros(3)}, {"target": "tiny"})
    assert [made.folder.name for made in made_drafters()] == ["whole"]
