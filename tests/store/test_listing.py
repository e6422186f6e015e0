"""Which models on this machine a server may offer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from slipstream.errors import ModelNotFound
from slipstream.store import local


def download(cache: Path, name: str, *, weights: tuple[str, ...] = ("model.safetensors",), **config: object) -> Path:
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc", "utf-8")
    (snapshot / "config.json").write_text(json.dumps(config), "utf-8")
    for weight in weights:
        (snapshot / weight).write_bytes(b"12345")
    return snapshot


def test_only_whole_targets_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    folder = download(tmp_path, "org/whole-model", max_position_embeddings=4096)
    download(tmp_path, "org/vision", text_config={"max_position_embeddings": 77})
    download(tmp_path, "org/without-weights", weights=())
    download(tmp_path, "org/drafter", architectures=["Qwen3DSparkModel"])
    half = download(tmp_path, "org/half", weights=("one.safetensors",))
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (half / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    (tmp_path / "models--org--empty").mkdir()
    found = local.models()
    assert [(model.name, model.bytes, model.context) for model in found] == [
        ("org/vision", 5, 77), ("org/whole-model", 5, 4096),
    ]  # fmt: skip
    assert found[1].path == folder
    (half / "two.safetensors").write_bytes(b"12345")  # the missing shard has come
    assert "org/half" in [model.name for model in local.models()]
    (folder / "model.safetensors").unlink()  # and one was deleted by hand
    assert "org/whole-model" not in [model.name for model in local.models()]


def test_a_name_is_found_without_converting_anything(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"not read")
    assert local.find(str(gguf)) == gguf
    assert local.find(str(tmp_path)) == tmp_path
    for wrong in ("nowhere", str(tmp_path / "gone")):
        with pytest.raises(ModelNotFound):
            local.find(wrong)
