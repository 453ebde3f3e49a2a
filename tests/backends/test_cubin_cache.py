"""The cache of compiled kernels: keyed by content, atomic, never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.backends.cuda.compiler import Cubin, CubinCache


class Counting:
    """A compiler that counts how often it is asked."""

    name = "counting"

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
