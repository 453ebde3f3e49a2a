"""The cache of compiled kernels: keyed by content, atomic, never in the way."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kernelscope.backends.cuda import compiler as compiler_module
from kernelscope.backends.cuda.compiler import Cubin, CubinCache
from tests.foreign import FOREIGN, make_foreign, posix


class Counting:
    """A compiler that counts how often it is asked."""

    name = "counting"
    through = ""

    def __init__(self, version: str = "1") -> None:
        self.asked = 0
        self._version = version

    def version(self) -> str:
        return self._version

    def compile(self, name: str, source: str, architecture: str, defines: object) -> Cubin:
        self.asked += 1
        return Cubin(f"{name} {source} {architecture} {defines}\n\0".encode(), "the log\nof ptxas")


def test_compiles_once(tmp_path: Path) -> None:
    compiler = Counting()
    first = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {"SIZE": "3"})
    again = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {"SIZE": "3"})
    assert compiler.asked == 1
    assert first == again
    assert [path.suffix for path in tmp_path.iterdir()] == [".cubin"]


@pytest.mark.parametrize(
    ("source", "architecture", "defines", "version"),
    [
        ("other", "sm_90", {"SIZE": "3"}, "1"),
        ("source", "sm_75", {"SIZE": "3"}, "1"),
        ("source", "sm_90", {"SIZE": "5"}, "1"),
        ("source", "sm_90", {"SIZE": "3"}, "2"),
    ],
)
def test_anything_that_matters_is_part_of_the_key(
    tmp_path: Path, source: str, architecture: str, defines: dict[str, str], version: str
) -> None:
    CubinCache(Counting(), tmp_path).get("mean", "source", "sm_90", {"SIZE": "3"})
    compiler = Counting(version)
    CubinCache(compiler, tmp_path).get("mean", source, architecture, defines)
    assert compiler.asked == 1


@posix
@pytest.mark.parametrize("how", FOREIGN)
def test_an_entry_that_others_may_have_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    compiler = Counting()
    wanted = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {})
    (path,) = tmp_path.iterdir()
    make_foreign(path, how, monkeypatch)
    assert CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {}) == wanted
    assert compiler.asked == 2


@posix
def test_what_is_kept_is_private(tmp_path: Path) -> None:
    for folder in (tmp_path / "new", tmp_path / "open"):
        if folder.name == "open":
            folder.mkdir()
            folder.chmod(0o777)
        CubinCache(Counting(), folder).get("mean", "source", "sm_90", {})
        (path,) = folder.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
def test_nothing_is_kept_in_a_folder_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.atomic.os.geteuid", lambda: 54321)
    assert CubinCache(Counting(), tmp_path).get("mean", "source", "sm_90", {}).code
    assert list(tmp_path.iterdir()) == []


def test_an_entry_of_another_kernel_is_not_used(tmp_path: Path) -> None:
    compiler = Counting()
    CubinCache(compiler, tmp_path).get("mean", "other", "sm_90", {})
    (other,) = tmp_path.iterdir()
    wanted = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {})
    (path,) = (each for each in tmp_path.iterdir() if each != other)
    path.write_bytes(other.read_bytes())
    assert CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {}) == wanted
    assert compiler.asked == 3


def test_no_flipped_or_missing_byte_gets_through(tmp_path: Path) -> None:
    compiler = Counting()
    wanted = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {})
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    damaged = [whole[:place] for place in range(0, len(whole), 7)]
    damaged += [
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        for place in range(0, len(whole), 5)
    ]
    for number, content in enumerate(damaged, 2):
        path.write_bytes(content)
        assert CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {}) == wanted
        assert compiler.asked == number


@pytest.mark.parametrize("header", [b"3", b"null", b"[" * 100_000, b"\xff", b""])
def test_an_entry_that_is_whole_but_holds_something_else(tmp_path: Path, header: bytes) -> None:
    compiler = Counting()
    wanted = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {})
    (path,) = tmp_path.iterdir()
    content = header + b"\ncode"
    path.write_bytes(compiler_module._digest(path, content) + b"\n" + content)
    assert CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {}) == wanted
    assert compiler.asked == 2


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    compiler = Counting()
    wanted = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {})
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-3] if damage is None else damage)
    for _ in range(2):
        assert CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {}) == wanted
        assert compiler.asked == 2


def test_reads_the_disk_once(tmp_path: Path) -> None:
    cache = CubinCache(Counting(), tmp_path)
    first = cache.get("mean", "source", "sm_90", {})
    for path in tmp_path.iterdir():
        path.unlink()
    assert cache.get("mean", "source", "sm_90", {}) is first


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    obstacle = tmp_path / "file"
    obstacle.write_text("in the way")
    cache = CubinCache(Counting(), obstacle / "cubins")
    assert cache.get("mean", "source", "sm_90", {}).code
