from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from slipstream.store import atomic
from slipstream.store.atomic import atomic_folder, exclusive, recover, write_text


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
        "import os, sys, pathlib; from slipstream.store.atomic import atomic_folder\n"
        "with atomic_folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "    (folder / 'half').write_text('half')\n"
        "    os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(final)], check=True)
    (leftover,) = tmp_path.iterdir()
    other = tmp_path / ".other.0123456789abcdef.tmp"
    other.mkdir()
    longer = tmp_path / ".model.json.0123456789abcdef.tmp"  # of a folder whose name begins with this one's
    longer.mkdir()
    being_written = tmp_path / ".model.01234567.tmp"  # by write_text, which nothing locks
    being_written.write_text("half")
    with atomic_folder(final) as living:
        assert not leftover.exists()
        fill(living, "first")
        with atomic_folder(final) as second:
            fill(second, "second")
        assert living.exists()
    assert (final / "deep/a").read_text() == "first"
    assert sorted(tmp_path.iterdir()) == sorted([other, longer, being_written, final])


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

    monkeypatch.setattr(atomic, "_sync", full)
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


KILLED = """
import os, sys, pathlib
from slipstream.store.atomic import atomic_folder

final, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])

def count(event, arguments):
    global steps
    if event in ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree"):
        steps -= 1
        if steps < 0:
            os._exit(9)

with atomic_folder(final) as folder:
    (folder / "a").write_text("new")
    (folder / "b").write_text("new")
    sys.addaudithook(count)
print("done")
"""


def test_killed_at_any_step_of_a_replacement_the_old_folder_or_the_new_one_is_there(tmp_path: Path) -> None:
    final = tmp_path / "model"
    seen: list[str] = []
    for steps in range(20):
        with atomic_folder(final) as folder:
            (folder / "a").write_text("old")
            (folder / "b").write_text("old")
        command = [sys.executable, "-c", KILLED, str(final), str(steps)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        seen.append("gap" if not final.exists() else (final / "a").read_text())
        recover(tmp_path, "other")
        assert ("gap" in seen[-1:]) == (not final.exists()), "another one's name moves nothing"
        recover(tmp_path)
        kept = {(final / name).read_text() for name in "ab"}
        assert kept == {"old" if seen[-1] == "gap" else seen[-1]}
        assert not list(tmp_path.glob("*.old"))
        with atomic_folder(final):
            assert len(list(tmp_path.iterdir())) == 2, "what the killed run left was swept"
        assert ended.returncode in (0, 9), ended.stderr
        if ended.returncode == 0:
            break
    else:
        pytest.fail("it never came to its end")
    assert seen[0] == "old" and "gap" in seen and seen[-2:] == ["new", "new"]


def test_what_was_put_back_is_gone_where_a_new_one_stands(tmp_path: Path) -> None:
    aside = tmp_path / ".model.0123456789abcdef.old"
    for path in (aside, tmp_path / "model", tmp_path / ".model.mine.old"):
        path.mkdir()
        (path / "a").write_text(path.name)
    recover(tmp_path)
    assert not aside.exists()
    assert (tmp_path / "model/a").read_text() == "model"
    assert (tmp_path / ".model.mine.old").exists(), "no name of ours"


def test_a_written_file_is_whole_and_its_mode_is_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "new/note"
    write_text(path, "one", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]
