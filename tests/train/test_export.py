"""A drafter's folder is the old one or the new one, and nothing that is the user's is replaced."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from slipstream.errors import InvalidRequest
from slipstream.store import local, own_folders
from slipstream.train.design import Design, TargetShape
from slipstream.train.export import export
from slipstream.train.made import drafters_dir, made_drafters, made_for
from slipstream.train.saving import save
from tiny_runs import write_target


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").symlink_to("/dev/full")
    with pytest.raises(OSError, match="model"):
        save(tmp_path / "model.safetensors", {"a": mx.zeros(1000)})
    save(tmp_path / "other.safetensors", {"a": mx.zeros(3)}, {"format": "mlx"})
    assert mx.load(str(tmp_path / "other.safetensors"))["a"].size == 3  # type: ignore[index, union-attr]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.usefixtures("home")
def test_what_an_export_left_half_made_is_not_offered(shape: TargetShape) -> None:
    d = Design(layers=1, taps=(0,), rank=4).descriptor(shape)
    for name in ("whole", ".half-made"):
        export(drafters_dir() / name, d, {"a": mx.zeros(3)}, {"target": "tiny"})
    assert [made.folder.name for made in made_drafters()] == ["whole"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("damage", ["[" * 100_000, '{"slipstream": {"target": "tiny"}, "target_layer_ids": 5}'])
def test_one_that_cannot_be_read_hides_no_other(shape: TargetShape, damage: str) -> None:
    d = Design(layers=1, taps=(0,), rank=4).descriptor(shape)
    for name in ("damaged", "whole"):
        export(drafters_dir() / name, d, {"a": mx.zeros(3)}, {"target": "tiny"})
    (drafters_dir() / "damaged" / "config.json").write_text(damage)
    assert [made.folder.name for made in made_drafters()] == ["whole"]


@pytest.mark.usefixtures("home")
def test_a_drafter_whose_replacement_was_killed_is_offered_again(shape: TargetShape) -> None:
    d = Design(layers=1, taps=(0,), rank=4).descriptor(shape)
    export(drafters_dir() / "mine", d, {"a": mx.zeros(3)}, {"target": "tiny"})
    (drafters_dir() / "mine").rename(drafters_dir() / ".mine.0123456789abcdef.old")
    assert [made.folder.name for made in made_drafters()] == ["mine"]


@pytest.mark.usefixtures("home")
def test_models_of_one_short_name_have_their_own_drafters(shape: TargetShape) -> None:
    d = Design(layers=1, taps=(0,), rank=4).descriptor(shape)
    wide = replace(d, hidden=2 * d.hidden)
    for name, target, what in (
        ("one", "first/tiny-4bit", d),
        ("two", "second/tiny-4bit", d),
        ("early", "tiny-4bit", d),  # by a folder, whose owner nobody knows
        ("wide", "tiny-4bit", wide),
    ):
        export(drafters_dir() / name, what, {"a": mx.zeros(3)}, {"target": target})
    all_of_them = made_drafters()

    def offered(name: str, **config: object) -> list[str]:
        return [made.folder.name for made in made_for(name, config, all_of_them)]

    sizes = {"hidden_size": d.hidden, "num_hidden_layers": d.target_layers, "vocab_size": d.vocabulary}
    assert offered("first/tiny-4bit", **sizes) == ["early", "one"]
    assert offered("second/tiny-4bit", text_config=sizes) == ["early", "two"]
    assert offered("tiny-4bit", **sizes) == ["early"]
    assert offered("tiny-4bit", **sizes | {"hidden_size": wide.hidden}) == ["wide"]
    assert offered("tiny-4bit", **sizes | {"num_hidden_layers": 99}) == []
    assert offered("tiny-4bit", **sizes | {"vocab_size": 5}) == []
    assert offered("tiny-4bit") == ["early", "wide"], "a GGUF file has no config to compare with"
    assert offered("tiny") == []


@pytest.mark.usefixtures("home")
def test_training_knows_its_model_by_the_whole_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tmp_path / "models"
    folder = write_target(models / "owner/tiny")
    assert local.name_of(str(folder)) == "tiny"
    own_folders.add(models)
    assert local.name_of(str(folder)) == local.name_of("tiny") == "owner/tiny"
    monkeypatch.chdir(folder)
    assert local.name_of(".") == "owner/tiny"
