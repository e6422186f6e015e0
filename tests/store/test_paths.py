from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import slipstream
from slipstream.store import paths
from slipstream.store.paths import atomic_folder, cache_dir, data_dir, exclusive, resources_dir


def test_folders_follow_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert cache_dir() == tmp_path / ".cache/slipstream"
    assert data_dir() == tmp_path / ".local/share/slipstream"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "d"))
    assert cache_dir() == tmp_path / "c/slipstream"
    assert data_dir() == tmp_path / "d/slipstream"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir() == tmp_path / "Library/Caches/Slipstream"
    assert data_dir() == tmp_path / "Library/Application Support/Slipstream"


def test_resources_are_found_in_a_checkout_a_wheel_and_a_bundle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (resources_dir() / "demo/README.md").is_file()
    wheel = tmp_path / "site-packages/slipstream"
    (wheel / "_resources").mkdir(parents=True)
    monkeypatch.setattr(slipstream, "__file__", str(wheel / "__init__.py"))
    assert resources_dir() == wheel / "_resources"
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setenv("RESOURCEPATH", "/Applications/Slipstream.app/Contents/Resources")
    assert resources_dir() == Path("/Applications/Slipstream.app/Contents/Resources/resources")


def fill(folder: Path, text: str) -> None:
    (folder / "deep").mkdir()
    (folder / "deep/a").write_text(text)


def test_a_folder_appears_only_when_finished(tmp_path: Path) -> None:
    final = tmp_path / "new/model"
    with atomic_folder(final) as folder:
        fill(folder, "one")
        assert folder.parent == final.parent
        assert not final.exists()
    assert (final / "deep/a").read_text() == "one"
    assert list(final.parent.iterdir()) == [final]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    final = tmp_path / "model"
    with pytest.raises(error), atomic_folder(final) as folder:
        fill(folder, "half")
        raise error
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(final) as folder:
        fill(folder, "old")
    with pytest.raises(error), atomic_folder(final) as folder:
        fill(folder, "half")
        raise error
    assert (final / "deep/a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


@pytest.mark.parametrize("is_file", [False, True])
def test_what_was_there_is_replaced(tmp_path: Path, is_file: bool) -> None:
    final = tmp_path / "model"
    if is_file:
        final.write_text("in the way")
    else:
        final.mkdir()
        (final / "old").write_text("old")
    with atomic_folder(final) as folder:
        fill(folder, "new")
    assert [path.name for path in final.iterdir()] == ["deep"]
    assert list(tmp_path.iterdir()) == [final]


def test_leftovers_of_dead_runs_are_swept_and_living_ones_are_not(tmp_path: Path) -> None:
    final = tmp_path / "model"
    program = (
        "import os, sys, pathlib; from slipstream.store.paths import atomic_folder\n"
        "with atomic_folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "    (folder / 'half').write_text('half')\n"
        "    os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(final)], check=True)
    (leftover,) = tmp_path.iterdir()
    other = tmp_path / ".other.0.tmp"
    other.mkdir()
    with atomic_folder(final) as living:
        assert not leftover.exists()
        fill(living, "first")
        with atomic_folder(final) as second:
            fill(second, "second")
        assert living.exists()
    assert (final / "deep/a").read_text() == "first"
    assert sorted(tmp_path.iterdir()) == [other, final]


def test_many_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    final = tmp_path / "model"
    errors: list[Exception] = []

    def run(number: int) -> None:
        try:
            for _ in range(10):
                with atomic_folder(final) as folder:
                    for name in "abc":
                        (folder / name).write_text(str(number))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len({(final / name).read_text() for name in "abc"}) == 1
    assert list(tmp_path.iterdir()) == [final]


def test_an_error_of_the_disk_comes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(paths, "_sync", full)
    with pytest.raises(OSError, match="No space left"), atomic_folder(tmp_path / "model"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_one_at_a_time_holds_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "new/.lock"
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with exclusive(lock):
            order.append("second")

    thread = threading.Thread(target=second)
    with exclusive(lock):
        thread.start()
        waiting.wait()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
