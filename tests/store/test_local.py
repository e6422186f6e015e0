from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from huggingface_hub import snapshot_download

from slipstream.errors import InvalidRequest, ModelIncomplete, ModelNotFound
from slipstream.store import demo, local, own_folders, removal
from slipstream.store.download import Download
from slipstream.store.download_state import Finished, Patience
from slipstream.store.hub_cache import Repository
from slipstream.store.local import Broken, Complete, LocalModel, Partial, Place, Role
from stub_hub import Fault, StubHub
from tiny_gguf import tiny_gguf

REPO = "maker/Tiny-4bit"
HASTE = Patience(stall_s=0.5, attempts=2, first_wait_s=0.02)


def write_model(folder: Path, shards: int = 2, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"model-{n + 1:05}-of-{shards:05}.safetensors" for n in range(shards)]
    for name in names:
        mx.save_safetensors(str(folder / name), {name: mx.zeros((50, 20))})
    settings = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 2048} | config
    (folder / "config.json").write_text(json.dumps(settings))
    index = {"metadata": {"total_size": shards * 4000}, "weight_map": {name: name for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def pulled(home: Path, stub: StubHub, tmp_path: Path) -> Path:
    """A model that was downloaded. Returns its snapshot."""
    stub.add(REPO, files_of(write_model(tmp_path / "made", quantization={"bits": 4, "group_size": 64})))
    state = Download(REPO, lambda _: None, patience=HASTE).run()
    assert isinstance(state, Finished)
    return state.folder


def mine() -> list[LocalModel]:
    return [model for model in local.scan() if model.place is not Place.BUILT_IN]


def test_a_downloaded_model_is_complete(pulled: Path) -> None:
    (model,) = mine()
    assert (model.name, model.path, model.place, model.role) == (REPO, pulled, Place.HUB_CACHE, Role.TARGET)
    assert (model.state, model.quantisation, model.context) == (Complete(), "4-bit group 64", 2048)
    assert local.resolve(REPO) == local.resolve("tiny-4BIT") == pulled
    assert REPO in [model.name for model in local.models()]


def test_the_built_in_pair_is_listed(home: Path) -> None:
    found = {model.name: model.role for model in local.models()}
    assert found == {demo.NAME: Role.TARGET} | dict.fromkeys(demo.DRAFTERS.values(), Role.DRAFTER)


def test_p19_a_shard_that_is_gone_makes_it_incomplete_and_a_pull_brings_it_back(pulled: Path, stub: StubHub) -> None:
    """P19, the second half: the link, then the bytes behind it."""
    whole = files_of(pulled)
    size = len(whole["model-00001-of-00002.safetensors"])
    for victim in (
        pulled / "model-00001-of-00002.safetensors",
        (pulled / "model-00001-of-00002.safetensors").resolve(),
    ):
        victim.unlink()
        (model,) = mine()
        assert isinstance(model.state, Partial)
        assert model.state.total == sum(map(len, whole.values()))
        assert REPO not in [model.name for model in local.models()]
        with pytest.raises(ModelIncomplete, match=f"slipstream models pull {REPO}"):
            local.resolve(REPO)
        before = sum(stub.sent.values())
        assert isinstance(Download(REPO, lambda _: None, patience=HASTE).run(), Finished)
        assert sum(stub.sent.values()) - before in (0, size)
        assert files_of(pulled) == whole
        assert mine()[0].is_complete


def test_a_download_that_has_just_begun_is_no_model(home: Path, stub: StubHub, tmp_path: Path) -> None:
    stub.add(REPO, files_of(write_model(tmp_path / "made")))
    stub.fault("model-00002-of-00002.safetensors", *(Fault(cut_at=1000) for _ in range(9)))
    Download(REPO, lambda _: None, patience=HASTE).run()
    (model,) = mine()
    assert isinstance(model.state, Partial)
    assert 0 < model.state.done < model.state.total
    assert not [model for model in local.models() if model.name == REPO]
    with pytest.raises(FileNotFoundError):
        snapshot_download(REPO, local_files_only=True)
    with pytest.raises(ModelIncomplete):
        local.resolve(REPO)


def test_an_update_that_is_not_finished_leaves_the_old_one_usable(pulled: Path, stub: StubHub, tmp_path: Path) -> None:
    stub.add(REPO, files_of(write_model(tmp_path / "newer", shards=3)))
    stub.fault("model-00003-of-00003.safetensors", *(Fault(cut_at=1000) for _ in range(9)))
    Download(REPO, lambda _: None, patience=HASTE).run()
    assert [type(model.state) for model in mine()] == [Complete, Partial]
    assert local.resolve(REPO) == pulled


def test_what_another_tool_left_half_done_is_broken(home: Path) -> None:
    folder = write_model(home / "models--maker--Other" / "snapshots" / ("a" * 40))
    (model,) = mine()
    assert model.is_complete
    (folder / "model-00002-of-00002.safetensors").unlink()
    (model,) = mine()
    assert model.state == Broken("maker/Other is incomplete; finish it with: slipstream models pull maker/Other")


def test_a_repository_without_weights_is_no_model(home: Path) -> None:
    folder = home / "models--maker--Tokeniser" / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert mine() == []


def test_lm_studio_and_own_folders_are_searched(home: Path, tmp_path: Path) -> None:
    write_model(tmp_path / ".lmstudio" / "models" / "maker" / "InStudio")
    gguf = tmp_path / ".lmstudio" / "models" / "maker" / "Packed"
    gguf.mkdir()
    tiny_gguf().write(gguf / "packed-q8.gguf")
    (gguf / "mmproj-x.gguf").write_bytes(b"GGUF")
    own = tmp_path / "own"
    write_model(own / "Mine", architectures=["Qwen3DSparkModel"], markov_rank=8)
    own_folders.add(own)
    own_folders.add(own)
    assert own_folders.listed() == [own]
    assert {model.name: (model.place, model.role) for model in mine()} == {
        "maker/InStudio": (Place.LM_STUDIO, Role.TARGET),
        "maker/Packed/packed-q8.gguf": (Place.LM_STUDIO, Role.TARGET),
        "Mine": (Place.FOLDER, Role.DRAFTER),
    }
    assert (local.resolve("packed-q8.gguf") / "config.json").is_file()
    assert local.resolve("packed-q8.gguf") == local.resolve(str(gguf / "packed-q8.gguf"))
    (tmp_path / ".lmstudio" / "settings.json").write_text(json.dumps({"downloadsFolder": str(tmp_path / "none")}))
    assert [model.name for model in mine()] == ["Mine"]
    own_folders.remove(own)
    assert mine() == []
    assert (own / "Mine" / "config.json").is_file()


def test_a_gguf_says_at_once_whether_it_can_be_used(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name, architecture in (("good", "llama"), ("other", "gemma3"), ("drafter", "dspark")):
        tiny = tiny_gguf()
        tiny.metadata["general.architecture"] = architecture
        tiny.write(own / f"{name}.gguf")
    packed = tiny_gguf()
    packed.tensors["blk.0.attn_q.weight"].kind = "Q4_K"
    packed.write(own / "packed.gguf")
    own_folders.add(own)
    found = {model.name: model for model in mine()}
    assert {name: type(model.state) for name, model in found.items()} == {
        "good.gguf": Complete,
        "other.gguf": Broken,
        "drafter.gguf": Complete,
        "packed.gguf": Broken,
    }
    for name, words in (("other.gguf", "architecture 'gemma3'"), ("packed.gguf", "is Q4_K")):
        state = found[name].state
        assert isinstance(state, Broken)
        assert words in state.reason
        assert "choose" in state.reason
    assert [name for name, model in found.items() if model.role is Role.DRAFTER] == ["drafter.gguf"]
    assert local.resolve_drafter("drafter.gguf") == own / "drafter.gguf"


def test_a_gguf_that_is_cut_short_is_broken(home: Path, tmp_path: Path) -> None:
    whole = tiny_gguf().write(tmp_path / "own" / "a.gguf") if (tmp_path / "own").mkdir() is None else None
    assert whole is not None
    own_folders.add(tmp_path / "own")
    assert mine()[0].is_complete
    whole.write_bytes(whole.read_bytes()[:-100])
    assert isinstance(mine()[0].state, Broken)


def test_names_that_are_wrong_say_what_helps(pulled: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="slipstream models pull someone/Else"):
        local.resolve("someone/Else")
    with pytest.raises(ModelNotFound, match=f"did you mean {REPO}"):
        local.resolve("maker/Tiny-4bot")
    with pytest.raises(ModelNotFound, match="slipstream models list"):
        local.resolve("nothing-like-it")
    with pytest.raises(ModelNotFound, match="check the path"):
        local.resolve("./nothing")
    own_folders.add(tmp_path)
    write_model(tmp_path / "other" / "Tiny-4bit")
    with pytest.raises(InvalidRequest, match=f"{REPO}, other/Tiny-4bit"):
        local.resolve("Tiny-4bit")


def test_removing_lists_every_byte_and_leaves_nothing(pulled: Path, home: Path) -> None:
    plan = removal.plan(local.find(REPO))
    on_disk = [path for path in Repository.of(REPO).folder.rglob("*") if path.is_symlink() or path.is_file()]
    assert {path for path, _ in plan.files} == set(on_disk)
    assert plan.bytes == sum(path.stat().st_size for path in on_disk if not path.is_symlink())
    assert plan.shared_with is not None
    assert pulled.is_dir()
    assert removal.remove(plan) == "deleted"
    assert not Repository.of(REPO).folder.exists()
    assert mine() == []


def test_the_bin_takes_it_where_there_is_one(pulled: Path, tmp_path: Path) -> None:
    trash = tmp_path / "data" / "Trash"
    trash.mkdir(parents=True)
    folder = Repository.of(REPO).folder
    assert removal.remove(removal.plan(local.find(REPO))) == "in the Bin"
    assert (trash / "files" / folder.name / "refs" / "main").is_file()
    note = (trash / "info" / f"{folder.name}.trashinfo").read_text()
    assert note.startswith(f"[Trash Info]\nPath={folder}\n")


def test_one_revision_goes_and_what_the_other_shares_stays(pulled: Path, stub: StubHub, tmp_path: Path) -> None:
    changed = files_of(pulled) | {"README.md": b"# new"}
    stub.add(REPO, changed)
    state = Download(REPO, lambda _: None, patience=HASTE).run()
    assert isinstance(state, Finished)
    old = removal.plan(local.find(REPO), revision=pulled.name)
    assert len(old.kept) == len(changed) - 1
    assert removal.remove(old) == "deleted"
    assert not pulled.exists()
    assert files_of(state.folder) == changed
    assert local.find(REPO).is_complete


def test_the_built_in_model_stays_and_a_link_goes_alone(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="part of Slipstream"):
        removal.plan(local.find(demo.NAME))
    write_model(tmp_path / "elsewhere" / "Real")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "Link").symlink_to(tmp_path / "elsewhere" / "Real")
    own_folders.add(tmp_path / "own")
    plan = removal.plan(local.find("Link"))
    assert plan.bytes == 0
    removal.remove(plan)
    assert not (tmp_path / "own" / "Link").exists()
    assert (tmp_path / "elsewhere" / "Real" / "config.json").is_file()


def test_a_name_is_looked_up_without_converting_anything(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"not read")
    assert local.look_up(str(gguf)) == gguf
    assert local.look_up(str(tmp_path)) == tmp_path
    for wrong in ("nowhere", str(tmp_path / "gone")):
        with pytest.raises(ModelNotFound):
            local.look_up(wrong)


def test_a_damaged_list_of_folders_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    listed = own_folders._settings()
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text('{"folders": ["/mine"')
    own_folders.add(tmp_path)
    assert own_folders.listed() == [tmp_path]
    assert listed.with_suffix(".damaged").read_text() == '{"folders": ["/mine"'
