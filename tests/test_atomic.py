"""Files are replaced whole, and remains of killed processes are removed; nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelscope.base import atomic
from kernelscope.files.write_errors import replace_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs locks")

PART, OLD = ".kernelscope-0123456789abcdef.part", ".kernelscope-0123456789abcdef.old"
WRITER = """
import os, sys, time
from pathlib import Path
from kernelscope.base import atomic

def stop(_):
    print("written", flush=True)
    time.sleep(600)

os.fsync = stop
folder = Path(sys.argv[1])
if sys.argv[2] == "file":
    atomic.replace(folder / "a.png", b"new")
else:
    from kernelscope.files.write_errors import replace_folder
    replace_folder(folder / "a.pngs", [("1.png", b"new")], lambda name: True)
"""


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def start(folder: Path, what: str) -> subprocess.Popen[str]:
    """Start a process that stops while it writes."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), what], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    def fail(name: str) -> None:
        with atomic.new_file(tmp_path / name) as handle:
            handle.write(b"half")
            raise ZeroDivisionError

    (tmp_path / "a").write_bytes(b"before")
    for name in ("a", "new"):
        with pytest.raises(ZeroDivisionError):
            fail(name)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"before"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_a_killed_process_left_goes_with_the_next_save(tmp_path: Path, what: str) -> None:
    process = start(tmp_path, what)
    try:
        (part,) = names(tmp_path)
        atomic.replace(tmp_path / "b.png", b"b")
        assert names(tmp_path) == [part, "b.png"]  # its process lives
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    atomic.replace(tmp_path / "c.png", b"c")
    assert names(tmp_path) == ["b.png", "c.png"]


def test_only_what_is_surely_ours_goes(tmp_path: Path) -> None:
    others = [
        *("a.part", ".kernelscope-1.part", ".kernelscope-0123456789abcdeg.part", "x" + PART),
        *(PART + "x", PART.upper(), ".kernelscope-0123456789abcdef.tmp"),
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".kernelscope-ffffffffffffffff.part").symlink_to(tmp_path / "a.part")
    os.mkfifo(tmp_path / ".kernelscope-eeeeeeeeeeeeeeee.part")
    (tmp_path / PART).write_bytes(b"")
    (tmp_path / ".kernelscope-aaaaaaaaaaaaaaaa.part").mkdir()
    before = names(tmp_path)
    atomic.remove_abandoned(tmp_path)
    gone = set(before) - set(names(tmp_path))
    assert gone == {PART, ".kernelscope-aaaaaaaaaaaaaaaa.part"}


def test_a_folder_that_was_moved_aside_stays_until_the_new_one_has_its_place(
    tmp_path: Path,
) -> None:
    (tmp_path / PART).mkdir()
    (tmp_path / OLD).mkdir()
    (tmp_path / OLD / "1.png").write_bytes(b"all that there is")
    atomic.remove_abandoned(tmp_path)
    assert names(tmp_path) == [OLD, PART]
    (tmp_path / PART).rename(tmp_path / "a.pngs")
    atomic.remove_abandoned(tmp_path)
    assert names(tmp_path) == ["a.pngs"]


def test_a_file_that_another_takes_for_left_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making and locking it, that is."""
    lock = atomic.lock
    taken = []

    def late(descriptor: int) -> atomic.Lock:
        if not taken:
            taken.append(names(tmp_path)[0])
            monkeypatch.setattr(atomic, "lock", lock)
            atomic.remove_abandoned(tmp_path)
        return lock(descriptor)

    monkeypatch.setattr(atomic, "lock", late)
    atomic.replace(tmp_path / "a.png", b"new")
    assert taken
    assert names(tmp_path) == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"new"


@pytest.mark.parametrize("before", ["open", "lock"])
def test_a_folder_that_another_takes_for_left_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Between making and locking it."""
    where = os if before == "open" else atomic
    usual = getattr(where, before)
    taken = []

    def late(*arguments: object) -> object:
        found = [name for name in names(tmp_path) if name.startswith(".kernelscope-")]
        if found and not taken:
            taken.extend(found)
            monkeypatch.setattr(where, before, usual)
            atomic.remove_abandoned(tmp_path)
        return usual(*arguments)

    monkeypatch.setattr(where, before, late)
    replace_folder(tmp_path / "a.pngs", [("1.png", b"new")], lambda name: True)
    assert len(taken) == 1
    assert names(tmp_path) == ["a.pngs"]
    assert (tmp_path / "a.pngs" / "1.png").read_bytes() == b"new"


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    old = os.umask(0o022)
    try:
        atomic.replace(path, b"1")
        assert path.stat().st_mode & 0o777 == 0o644
        path.chmod(0o640)
        atomic.replace(path, b"2")
        assert path.stat().st_mode & 0o777 == 0o640
        atomic.replace(path, b"3", private=True)
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


@pytest.mark.parametrize("mode", [0o770, 0o740, 0o720, 0o710, 0o707, 0o704, 0o702, 0o701])
def test_a_folder_of_ours_is_closed_to_all_others(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    folder.chmod(mode)
    atomic.own_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("mode", "trusted"), [(0o644, True), (0o600, True), (0o620, False), (0o602, False)]
)
def test_what_others_can_write_is_not_read_back(tmp_path: Path, mode: int, trusted: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    path.chmod(mode)
    if trusted:
        assert atomic.read_own(path, 3) == b"abc"
        with pytest.raises(OSError, match="larger"):
            atomic.read_own(path, 2)
    else:
        with pytest.raises(PermissionError, match="others can write"):
            atomic.read_own(path, 3)


def test_without_locks_only_what_is_a_day_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, which keeps open files from being removed."""
    monkeypatch.setattr(atomic, "fcntl", None)
    (tmp_path / PART).write_bytes(b"")
    atomic.replace(tmp_path / "a.png", b"new")
    assert names(tmp_path) == [PART, "a.png"]
    yesterday = time.time() - 90_000
    os.utime(tmp_path / PART, (yesterday, yesterday))
    atomic.replace(tmp_path / "a.png", b"newer")
    assert names(tmp_path) == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"newer"
