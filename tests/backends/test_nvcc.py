"""PyCUDA's compiler takes the kernels as NVRTC does: it is preferred where nvcc is there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from kernelscope.backends.cuda.compiler import (
    CompileError,
    CubinCache,
    Nvcc,
    Nvrtc,
    choose_compiler,
    resources,
    title,
)
from kernelscope.backends.cuda.sources import read_source
from kernelscope.schema.filter import FilterSpec
from tests.backends import pycuda_compiler
from tests.backends.conftest import kept_by
from tests.backends.specialisations import gpu_filters
from tests.pairs import in_turn

pytestmark = pytest.mark.slow


@pytest.fixture
def nvcc(monkeypatch: pytest.MonkeyPatch) -> Nvcc:
    """nvcc, called as PyCUDA calls it."""
    pycuda_compiler.install(monkeypatch)
    found = Nvcc.find()
    if found is None:
        pytest.skip("there is no nvcc with a host compiler")
    return found


@pytest.mark.filterwarnings("ignore:an aside")
@pytest.mark.parametrize("spec", in_turn(gpu_filters(), every=4), ids=lambda spec: spec.id)
def test_compiles(spec: FilterSpec, nvcc: Nvcc) -> None:
    cubin = kept_by(nvcc).get(spec.id, read_source(spec.id), "sm_75", {})
    assert cubin.code.startswith(b"\x7fELF")
    assert "warning" not in cubin.log


def test_the_report_is_kept_and_other_warnings_go_on(nvcc: Nvcc, tmp_path: Path) -> None:
    source = 'extern "C" __global__ void k(float *a) { a[threadIdx.x] *= FACTOR; } // 2 × µ'
    with pytest.warns(DeprecationWarning, match="an aside") as caught:
        cubin = CubinCache(nvcc, tmp_path).get("k", source, "sm_90", {"FACTOR": "3"})
    assert len(caught) == 1, "output of nvcc is no warning"
    found = resources(cubin.log, "k")
    assert found is not None
    assert 0 < found.registers < 40
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    # From the cache, with the report, and without a compiler.
    again = CubinCache(nvcc, tmp_path).get("k", source, "sm_90", {"FACTOR": "3"})
    assert again == cubin


def test_errors_name_the_line(nvcc: Nvcc) -> None:
    source = read_source("mean").replace("Sum s", "Summe s")
    with pytest.raises(CompileError, match=r"nvcc could not compile mean\.cu: mean\.cu\(\d+\)"):
        nvcc.compile("mean", source, "sm_90", {})


def programs(folder: Path, *names: str, status: int = 0) -> str:
    """Return a search path with nothing but these programs, which only end with `status`."""
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="programs have suffixes there")
@pytest.mark.parametrize(
    ("there", "pycuda", "found"),
    [
        (("nvcc", "g++"), True, "nvcc"),
        (("nvcc", "g++"), False, "NVRTC"),
        (("nvcc",), True, "NVRTC"),
        (("g++",), True, "NVRTC"),
    ],
)
def test_the_choice(
    there: tuple[str, ...],
    pycuda: bool,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, *there))
    monkeypatch.setattr(Nvrtc, "version", lambda self: "nvrtc 13.1 build")
    if pycuda:
        pycuda_compiler.install(monkeypatch)
    else:
        monkeypatch.setitem(sys.modules, "pycuda.compiler", None)
    chosen = choose_compiler()
    assert chosen.name == found
    if found == "NVRTC":
        assert title(chosen) == "NVRTC 13.1"


@pytest.mark.skipif(sys.platform == "win32", reason="programs have suffixes there")
def test_an_nvcc_that_does_not_start_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, "nvcc", "g++", status=1))
    monkeypatch.setattr(Nvrtc, "version", lambda self: "nvrtc 13.1 build")
    pycuda_compiler.install(monkeypatch)
    assert choose_compiler().name == "NVRTC"


def test_its_title(nvcc: Nvcc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shutil.which("nvcc", path=os.environ["PATH"])
    monkeypatch.setattr(Nvcc, "version", lambda self: "Cuda compilation tools, release 13.0, V13.0")
    assert title(nvcc) == "nvcc 13.0 through PyCUDA"
