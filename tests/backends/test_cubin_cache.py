"""The cache of compiled kernels: keyed by content, atomic, never in the way."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cuda import backend
from kernelscope.backends.cuda import compiler as compiling
from kernelscope.backends.cuda.compiler import Cubin, CubinCache, Nvrtc, resources
from kernelscope.backends.cuda.inspection import plans
from kernelscope.backends.cuda.sources import read_source
from kernelscope.base import compiled
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from tests.foreign import FOREIGN, make_foreign, posix
from tests.paths import ROOT


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
    monkeypatch.setattr("kernelscope.base.atomic.os.geteuid", lambda: 54321)
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


@pytest.mark.parametrize("header", [b"3", b"null", b"[" * 100_000, b"\xff", b"", None])
def test_an_entry_that_holds_something_else_is_made_again(
    tmp_path: Path, header: bytes | None
) -> None:
    compiler = Counting()
    wanted = CubinCache(compiler, tmp_path).get("mean", "source", "sm_90", {})
    (path,) = tmp_path.iterdir()
    content = b"" if header is None else header + b"\ncode"
    path.write_bytes(compiled.digest(path, content) + content if content else b"rubbish")
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


SOURCE = ("mean", "source", "sm_90", {"SIZE": "3"})


def packaged(folder: Path, version: str = "nvrtc 13.2") -> Cubin:
    """Put a kernel into a package, and return it."""
    compiler = Counting(version)
    cubin = Cubin(b"packaged \n\0 code", "its log\nof ptxas")
    compiling.package(compiling.packaged_path(folder, *SOURCE), cubin, compiler)
    return cubin


@pytest.mark.parametrize("version", ["nvrtc 13.0", "release 13.5, V13.5.1"])
def test_a_kernel_that_came_with_the_package_is_not_compiled(tmp_path: Path, version: str) -> None:
    wanted, compiler = packaged(tmp_path / "package"), Counting(version)
    found = CubinCache(compiler, tmp_path / "own", tmp_path / "package").get(*SOURCE)
    assert (found.code, found.log) == (wanted.code, wanted.log)
    assert found.compiler == "counting 13.2", "and not that of this computer"
    assert compiler.asked == 0
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize("version", ["nvrtc 12.9", "release 14.0, V14.0.1", "1"])
def test_drivers_need_not_take_code_of_another_major_release(tmp_path: Path, version: str) -> None:
    packaged(tmp_path / "package")
    compiler = Counting(version)
    found = CubinCache(compiler, tmp_path / "own", tmp_path / "package").get(*SOURCE)
    assert (compiler.asked, found.compiler) == (1, "")


@pytest.mark.parametrize(
    "other",
    [
        ("median", "source", "sm_90", {"SIZE": "3"}),
        ("mean", "other", "sm_90", {"SIZE": "3"}),
        ("mean", "source", "sm_80", {"SIZE": "3"}),
        ("mean", "source", "sm_90", {"SIZE": "5"}),
    ],
)
def test_a_package_without_that_kernel_costs_nothing(
    tmp_path: Path, other: tuple[str, str, str, dict[str, str]]
) -> None:
    packaged(tmp_path / "package")
    compiler = Counting("nvrtc 13.2")
    CubinCache(compiler, tmp_path / "own", tmp_path / "package").get(*other)
    CubinCache(compiler, tmp_path / "own", tmp_path / "package").get(*other)
    assert compiler.asked == 1


def test_a_damaged_kernel_of_the_package_is_compiled(tmp_path: Path) -> None:
    packaged(tmp_path / "package")
    (path,) = (tmp_path / "package").iterdir()
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        compiler = Counting("nvrtc 13.2")
        own = tmp_path / f"own {place}"
        assert CubinCache(compiler, own, tmp_path / "package").get(*SOURCE).compiler == ""
        assert compiler.asked == 1


@pytest.mark.slow
def test_the_backend_finds_what_the_script_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(ROOT / ".ci" / "prebuild_cuda.py")
    options = [
        "--only",
        "negative",
        "--usual",
        "--architectures",
        "sm_90",
        "--least",
        "0",
        "--jobs",
        "1",
    ]
    command = [sys.executable, script, "--out", str(tmp_path / "p"), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    monkeypatch.setattr(backend, "PACKAGED", tmp_path / "p")
    image = Image.from_array(np.zeros((2048, 2048), np.uint8))
    request = Request.create(image, "negative", device=Device.GPU)
    (planned,) = plans(request, filters.get("negative").levels(Device.GPU)[-1])
    compiler = Counting(Nvrtc().version())
    cache = backend.CudaBackend(compiler=compiler)._cache
    found = cache.get("negative", read_source("negative"), "sm_90", planned.launch.defines)
    assert resources(found.log, planned.launch.kernel) is not None
    assert compiler.asked == 0
