"""The command ``kernel``, and ``info --json``: output for programs and for people without a GPU."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kernelscope.backends.cuda import inspection
from kernelscope.backends.cuda.compiler import Nvrtc
from kernelscope.backends.cuda.sources import read_source
from kernelscope.base import machine
from kernelscope.base.errors import AppError
from kernelscope.base.paths import KERNELS
from kernelscope.cli.common import every_filter, open_backends
from kernelscope.schema.filter import FilterSpec
from kernelscope.teach.manual import filter_name
from tests.cli.running import refused, run
from tests.scripts import run_python

WITH_KERNELS = [spec for spec in every_filter().values() if spec.levels("gpu")]


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the compiler."""
    monkeypatch.setattr(inspection, "compile_report", lambda *_, **__: {})


def as_json(line: str) -> Any:
    return json.loads(run(f"kernel {line} --json").out)


def test_source_and_report() -> None:
    text = run("kernel mean --level shared --size 5").out
    assert text.startswith(read_source("mean"))
    report = text.removeprefix(read_source("mean"))
    assert "mean_shared: 32×128 blocks of 32×8 threads, compiled by NVRTC" in report
    assert "-DSIZE=5" in report
    for architecture in inspection.REPORTED:
        (line,) = (each for each in report.splitlines() if f" {architecture}: " in each)
        registers, spills = line.split(": ")[1].split(", ")[:2]
        assert int(registers.removesuffix(" registers")) > 8
        assert spills == "0 bytes of spills"
    assert re.search(r"occupancy, computed: \d+ % of H100 and H200, as [\w ,]+ allow", report)


def test_json_has_the_compilers_report() -> None:
    found = as_json("mean --level shared --size 5 --arch sm_86")
    assert (found["filter"], found["level"]) == ("mean", "shared")
    assert found["source"] == read_source("mean")
    assert found["compiler"] == inspection.reporter()
    (kernel,) = found["kernels"]
    assert kernel["name"] == "mean_shared"
    assert kernel["dynamic_shared_bytes"] == 36 * 12  # the tile of 32×8 with a halo of 2
    assert list(kernel["reports"]) == ["sm_86"]
    assert set(kernel["reports"]["sm_86"]) == {
        *("registers", "spill_bytes", "stack_bytes", "shared_bytes", "constant_bytes"),
    }


@pytest.mark.usefixtures("uncompiled")
def test_report_without_the_source() -> None:
    said = run("kernel sobel --level global --report-only")
    assert said.out.startswith("\nsobel_global: ")


@pytest.mark.usefixtures("uncompiled")
def test_options_reach_the_plan() -> None:
    options = "--type 16 --rgb --border wrap --side 300 --block 8x8"
    (kernel,) = as_json(f"mean --level global {options}")["kernels"]
    assert kernel["block"] == [8, 8]
    assert kernel["grid"] == [38, 38]
    assert kernel["defines"]["SAMPLE_BITS"] == "16"
    assert kernel["defines"]["CHANNELS"] == "3"
    assert kernel["defines"]["BORDER"] == "4"
    (grey,) = as_json("mean --level global --rgb --grey")["kernels"]
    assert grey["defines"]["CHANNELS"] == "1"


@pytest.mark.slow
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("spec", WITH_KERNELS, ids=lambda spec: spec.id)
def test_every_level_of_every_filter(spec: FilterSpec) -> None:
    for level in spec.levels("gpu"):
        found = as_json(f"{filter_name(spec)} --level {level.id}")
        assert found["kernels"], level.id
        for kernel in found["kernels"]:
            assert kernel["name"] in found["source"]


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("", 2, "required: FILTER"),
        ("gaussian-noise", 2, "invalid choice: 'gaussian-noise'"),
        ("mean --level fast", 2, "argument --level"),
        ("mean --arch sm_x", 2, "sm_x is not an architecture like sm_90"),
        ("mean --block 99999x1", 2, "argument --block"),
        ("mean --json --report-only", 2, "not allowed with argument"),
        ("mri-nlm --rgb", 2, "--rgb"),
        ("mean --size 4", 1, "4 is even"),
        ("mean --side 3 --size 9 --border valid", 1, "does not fit"),
    ],
)
def test_mistakes(line: str, status: int, message: str) -> None:
    assert message in refused(f"kernel {line}", status=status)


def test_without_nvrtc_there_is_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(self: object) -> str:
        raise RuntimeError("libnvrtc.so.13 not found")

    monkeypatch.setattr(Nvrtc, "version", version)
    printed = run("kernel mean --level shared --size 5")
    assert printed.out.startswith(read_source("mean"))
    plan = printed.out.removeprefix(read_source("mean"))
    assert "mean_shared: 32×128 blocks of 32×8 threads\n" in plan
    assert "-DSIZE=5" in plan
    assert printed.err.startswith("note: The compiler's report is left out. ")
    assert "pip install" in printed.err
    found = as_json("mean")
    assert found["kernels"][0]["reports"] == {}
    assert "pip install" in found["notice"]
    error = refused("kernel mean --report-only")
    assert error.startswith("error: The report needs NVRTC")


def test_a_kernel_that_does_not_compile_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise AppError("NVRTC could not compile mean.cu.")

    monkeypatch.setattr(inspection, "compile_report", fail)
    assert "could not compile" in refused("kernel mean")


@pytest.mark.usefixtures("uncompiled")
def test_the_entry_point_is_that_of_the_macros() -> None:
    found = {}
    for search in ("window", "image"):
        kernels = as_json(f"nlm --search {search} --type 16")["kernels"]
        (kernel,) = (each for each in kernels if each["name"] == "nlm_tuned")
        assert kernel["defines"]["WHOLE"] == str(int(search == "image"))
        found[search] = kernel["lines"]
        text = (KERNELS / kernel["file"]).read_text(encoding="utf-8").split("\n")
        first, last = kernel["lines"]
        assert any("nlm_tuned(" in line for line in text[first - 1 : last])
    assert found["image"][1] < found["window"][0], "each has a kernel of its own"
    said = run("kernel nlm --type 16 --report-only")
    first, last = found["window"]
    assert f"entry point: nlm_tuned.cuh, lines {first} to {last}" in said.out


@pytest.mark.slow
def test_neither_window_nor_pycuda_is_loaded() -> None:
    code = (
        "import sys; from kernelscope.cli.main import main;"
        "main(['kernel', 'mean', '--arch', 'sm_90', '--report-only']);"
        "print(sorted({'PySide6', 'pycuda'} & set(sys.modules)))"
    )
    assert run_python(code).splitlines()[-1] == "[]"


def test_info_for_programs() -> None:
    found = json.loads(run("info --json").out)
    assert found["machine"].keys() == machine.facts().keys()
    with open_backends() as backends:
        states = {name: backend.availability() for name, backend in backends.items()}
    assert {device["id"]: device["summary"] for device in found["devices"]} == {
        name: state.summary for name, state in states.items()
    }
    for device in found["devices"]:
        assert device["steps"] == list(states[device["id"]].steps)
    (cpu,) = (device for device in found["devices"] if device["id"] == "cpu")
    assert cpu["available"]
    assert cpu["facts"][0]["facts"][0].keys() == {"name", "value", "unit"}
