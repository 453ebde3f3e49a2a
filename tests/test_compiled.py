"""Compiled code on the disk is used only if nobody else can have written it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernelscope
from kernelscope.base import compiled
from tests.foreign import FOREIGN, make_foreign, posix

CODE = b"machine code \n\0"


def test_code_is_kept_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.so"
    assert compiled.load(path) is None
    compiled.keep(path, CODE)
    assert compiled.load(path) == CODE
    assert compiled.load_packaged(path) == CODE


@posix
@pytest.mark.parametrize("how", FOREIGN)
@pytest.mark.parametrize("open_parent", [False, True])
def test_code_of_somebody_else_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, open_parent: bool
) -> None:
    """Also where the folders above may be written by all: there somebody else can put any file."""
    path = tmp_path / "kept" / "a.so"
    compiled.keep(path, CODE)
    make_foreign(path, how, monkeypatch)
    if open_parent:
        for folder in (tmp_path, path.parent):
            folder.chmod(0o777)
    assert compiled.load(path) is None


@posix
def test_a_file_of_ones_own_under_another_name_is_not_loaded(tmp_path: Path) -> None:
    """A hard link to it needs no right to write: the digest covers the name."""
    compiled.keep(tmp_path / "a.so", CODE)
    (tmp_path / "b.so").hardlink_to(tmp_path / "a.so")
    assert compiled.load(tmp_path / "b.so") is None


@pytest.mark.parametrize("content", [b"", b"short", compiled.digest(Path("a.so"), CODE)])
def test_damaged_code_is_not_loaded(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(content)
    path.chmod(0o600)
    assert compiled.load(path) is None


def test_nothing_else_loads_code() -> None:
    """Libraries of the system, of Qt and of NVIDIA are found by the system's loader."""
    package = Path(kernelscope.__file__).parent
    found = {
        path.relative_to(package).as_posix(): len(hits)
        for path in package.rglob("*.py")
        if (hits := re.findall(r"CDLL\(|pickle\.loads?\(|LoadLibrary\(", path.read_text("utf-8")))
    }
    assert found == {
        "backends/cuda/probe.py": 1,
        "base/compile_process.py": 1,
        "base/compiled.py": 1,
        "base/memory.py": 2,
        "base/jit.py": 2,
        "base/sandbox.py": 2,
        "base/screen.py": 1,
        "bench/peers/npp.py": 1,
    }
