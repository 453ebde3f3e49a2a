"""The CUDA sources compile with every choice of macros, without a GPU or a driver."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping
from typing import Any

import pytest

from kernelscope import filters
from kernelscope.backends.cuda.compiler import CompileError, CubinCache, Nvrtc, resources
from kernelscope.backends.cuda.reduction import THREADS
from kernelscope.backends.cuda.sources import read_source
from kernelscope.base.paths import KERNELS
from kernelscope.filters.shared.correlation_cuda import LARGEST_UNROLLED
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import BLOCK, Cuda, Launch
from kernelscope.schema.levels import GPU_LEVELS, Level
from kernelscope.schema.samples import Kind
from tests.backends.specialisations import (
    assert_modules_have_one_value,
    covering,
    defines,
    gpu_filters,
    kernels,
    launches,
    plans,
)

pytestmark = pytest.mark.slow

# All tests of a filter, and then those of the next one: they share its plans.
each_filter = pytest.mark.parametrize(
    "spec", gpu_filters(), ids=lambda spec: spec.id, scope="module"
)
ARCHITECTURES = ("sm_75", "sm_90")


def assert_compiles(
    spec: FilterSpec, architecture: str, macros: dict[str, str], nvrtc: CubinCache
) -> None:
    cubin = nvrtc.get(spec.id, read_source(spec.id), architecture, macros)
    assert cubin.code.startswith(b"\x7fELF"), macros
    assert "warning" not in cubin.log, f"{macros}\n{cubin.log}"
    for kernel in kernels(spec)[frozenset(macros.items())]:
        assert resources(cubin.log, kernel), f"{kernel} is missing with {macros}"


@each_filter
def test_compiles_at_every_choice_of_each_macro(spec: FilterSpec, quick_nvrtc: CubinCache) -> None:
    """The architectures take turns, and so do filters with borders and channels, whose code is one.

    Of some sizes and directions two are compiled. On the emulated GPU each filter is compiled with
    each border and number of channels.
    """
    turn = gpu_filters().index(spec)
    others = [("BORDER", str(each.code)) for each in Border if (each.code + turn) % 3]
    others += [("CHANNELS", str(each)) for each in (1, 2, 3, 4) if (each + turn) % 2]
    for name in ("DIRECTION", "TILE_COLUMNS"):
        values = {macros[name] for macros in defines(spec) if name in macros}
        others += [(name, each) for each in sorted(values, key=int)[1:-1]]
    for number, macros in enumerate(covering(defines(spec), 1, without=others)):
        assert_compiles(spec, ARCHITECTURES[number % 2], macros, quick_nvrtc)


@each_filter
def test_launches_that_share_a_module_agree_on_its_constants(spec: FilterSpec) -> None:
    for _, plan in plans(spec):
        assert_modules_have_one_value(plan)


BITS = [{"SAMPLE_BITS": str(bits)} for bits in (8, 16, 32)]


@pytest.mark.parametrize(
    ("source", "kernels_of_it", "macros", "shared_bytes"),
    [
        ("haar", ("haar", "haar_digit"), {}, None),
        ("largest", ("largest",), {}, None),
        *(("view", ("view",), each, None) for each in BITS),
        *(
            ("squared_error", ("squared_error",), macros, 8 * THREADS)
            for macros in ({}, *({"THREADS": str(THREADS), **each} for each in BITS))
        ),
    ],
)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_no_filter_compile_and_spill_nothing(
    source: str,
    kernels_of_it: tuple[str, ...],
    macros: dict[str, str],
    shared_bytes: int | None,
    architecture: str,
    compiler: CubinCache,
) -> None:
    cubin = compiler.get(source, read_source(source), architecture, macros)
    assert "warning" not in cubin.log, cubin.log
    for kernel in kernels_of_it:
        report = resources(cubin.log, kernel)
        assert report is not None
        assert report.spill_bytes == 0
        assert shared_bytes in (None, report.shared_bytes)


@pytest.mark.exhaustive
@each_filter
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_compiles_at_all_pairs_of_choices(
    spec: FilterSpec, architecture: str, compiler: CubinCache
) -> None:
    for macros in covering(defines(spec), together=2):
        assert_compiles(spec, architecture, macros, compiler)


@each_filter
def test_compiles_on_its_own(spec: FilterSpec, quick_nvrtc: CubinCache) -> None:
    """The defaults of all macros make a whole program of it."""
    assert quick_nvrtc.get(spec.id, read_source(spec.id), "sm_75", {}).code


@each_filter
def test_every_level_has_its_own_kernel(spec: FilterSpec) -> None:
    """No two levels share a kernel, and each reads from where its name says."""
    text = re.sub(r"\s+", " ", re.sub(r"//.*", "", read_source(spec.id)))
    used: dict[str, set[str]] = {}
    of_a_kind = dict[tuple[Any, ...], tuple[Level, Launch]]()
    for level, launch in launches(spec):
        used.setdefault(level.id, set()).add(launch.kernel)
        kind = launch.texture, launch.shared_bytes > 0, launch.tile is None, bool(launch.tables)
        weights = "constant_weights" in launch.constants
        of_a_kind[level.id, launch.kernel, *kind, weights] = level, launch
    # The same for all levels, around their own kernels.
    common = set.intersection(*used.values())
    assert common <= {f"{spec.id}_{step}" for step in ("copy", "pad", "guide", "finish")}
    assert all(kernels > common for kernels in used.values()), "each level has some of its own"
    for level, launch in of_a_kind.values():
        if launch.kernel in common | {f"{spec.id}_pad"}:
            continue
        if level.id == "tuned" and launch.kernel == "collaborative_shared_match":
            continue  # the tuned one is for bytes
        own = f"{spec.id}_{level.id.replace('-', '_')}"
        assert launch.kernel == own or launch.kernel.startswith(f"{own}_")
        match = re.search(
            rf"__global__ void (?:__launch_bounds__\(.*?\) )?{launch.kernel}"
            r"\((.*?)\) \{(.*?)\}(?: extern| #| ?$)",
            text,
        )
        assert match, f"{launch.kernel} is not in {spec.id}.cu"
        signature, body = match.groups()
        assert ("cudaTextureObject_t" in signature) == (level.id == "texture") == launch.texture
        if level.id != "tuned":
            in_shared = "__shared__" in body
            assert in_shared == (launch.shared_bytes > 0)
            assert in_shared or level.id not in ("shared", "host-partitions")
            assert (launch.tile is None) == (level.id == "single-block")
            if launch.tables:
                assert level.id in ("single-block", "global")
            if "constant_weights" in launch.constants:
                assert in_shared or level.id in ("constant", "texture")


MOST_LINES = 30
"""Length that fits on a slide."""

MOST_CHANGES = 8
"""Lines that may differ between two levels: the signature, the memory and reads from it."""

STENCILS = (
    "mask",
    "mean",
    "weighted_mean",
    "threshold_mean",
    "median",
    "sobel",
    "laplace",
    "rotating_mask",
)
stencils = pytest.mark.parametrize("filter_id", STENCILS)


def function_text(filter_id: str, kernel: str) -> list[str]:
    """Return the lines of a kernel in its ``.cu``, signature and braces included."""
    text = (KERNELS / f"{filter_id}.cu").read_text(encoding="utf-8")
    match = re.search(rf'^extern "C" __global__ [^{{;]*\b{kernel}\(.*?^}}$', text, re.DOTALL | re.M)
    assert match, kernel
    start = match[0].rindex("extern")
    return match[0][start:].splitlines()


@stencils
def test_a_level_can_be_read_on_a_slide(filter_id: str) -> None:
    """Each kernel does, and so do the functions it calls: the loop over pixels and the filter."""
    for level in filters.get(filter_id).levels("gpu"):
        if level.id != "tuned":
            kernel = f"{filter_id}_{level.id.replace('-', '_')}"
            assert len(function_text(filter_id, kernel)) <= MOST_LINES


@stencils
def test_two_levels_differ_in_a_few_lines(filter_id: str) -> None:
    texts = {}
    for level in filters.get(filter_id).levels("gpu"):
        if level.id not in ("tuned", "single-block"):
            name = level.id.replace("-", "_")
            lines = function_text(filter_id, f"{filter_id}_{name}")
            texts[name] = [line.replace(f"{filter_id}_{name}(", "kernel(") for line in lines]
    for one, other in itertools.combinations(texts.values(), 2):
        changes = [
            line
            for line in difflib.unified_diff(one, other, lineterm="", n=0)
            if line[0] in "+-" and line[:3] not in ("+++", "---")
        ]
        assert 0 < len(changes) <= MOST_CHANGES, changes


@pytest.mark.parametrize("header", ["levels.cuh", "cells.cuh", "correlation.cuh", "texture.cuh"])
def test_what_levels_share_can_be_read_on_slides(header: str) -> None:
    text = (KERNELS / header).read_text(encoding="utf-8")
    bodies = re.findall(r"^\{\n.*?^\}$|^ {4}\{\n.*?^ {4}\}$", text, re.DOTALL | re.M)
    assert bodies
    assert max(body.count("\n") + 1 for body in bodies) <= MOST_LINES


@pytest.mark.parametrize("spec", filters.discover().values(), ids=lambda spec: spec.id)
def test_a_filter_has_levels_a_plan_and_a_source_or_none_of_them(spec: FilterSpec) -> None:
    has_source = (KERNELS / f"{spec.id}.cu").exists()
    assert bool(spec.levels("gpu")) == isinstance(spec.implementations["gpu"], Cuda) == has_source


@pytest.mark.parametrize(
    "spec",
    [spec for kind in Kind for spec in filters.discover(kind).values()],
    ids=lambda spec: spec.id,
)
def test_a_level_that_is_missing_is_explained(spec: FilterSpec) -> None:
    offered = {level.id for level in spec.levels("gpu")}
    for level in GPU_LEVELS:
        assert (level.id in offered) != bool(spec.gaps("gpu").get(level.id)), level.id


def test_an_error_names_the_line_of_the_source() -> None:
    source = read_source("mean").replace("Sum part = 0;", "Somme part = 0;")
    line = (KERNELS / "mean.cu").read_text(encoding="utf-8").splitlines()
    number = next(n for n, text in enumerate(line, 1) if "Sum part = 0;" in text)
    with pytest.raises(CompileError, match=rf"mean\.cu\({number}\).*Somme"):
        Nvrtc().compile("mean", source, "sm_90", {})


def test_the_resource_report_is_read() -> None:
    log = Nvrtc().compile("mean", read_source("mean"), "sm_90", {}).log
    report = resources(log, "mean_shared")
    assert report is not None
    assert 10 < report.registers < 128
    assert report.spill_bytes == 0
    assert resources(log, "mean_nothing") is None


# Constants that plans and kernels share: passed as macros, whose defaults are the same ----------

PASSED = {
    "gaussian": {"RUN", "TILE_SAMPLES", "TILE_ROWS"},
    "greyscale": {"PIXELS"},
    "laplace": {"QUAD", "TUNED_THREADS"},
    "mask": {"QUAD", "TUNED_THREADS"},
    "mean": {"BOX_HALF_BLOCK", "BOX_COLUMNS", "BOX_RUN", "BOX_STEP"},
    "median": {"QUAD", "TUNED_THREADS"},  # STEPS depends on the size of the picture
    "nlm": {
        *("PART", "WARP_COLUMNS", "CHUNK_OFFSETS", "STRIP", "TILES", "WARPS"),
        *("WINDOW_TILES", "WINDOW_WARPS", "WINDOW_ACROSS", "WINDOW_BLOCKS"),
    },
    "rotating_mask": {"QUAD", "TUNED_THREADS"},
    "sobel": {"QUAD", "TUNED_THREADS"},
    "threshold_mean": {"BOX_HALF_BLOCK", "BOX_COLUMNS", "BOX_RUN", "BOX_STEP"},
    "unsharp": {"RUN", "TILE_SAMPLES", "TILE_ROWS"},
    "weighted_mean": {"QUAD", "TUNED_THREADS"},
}
"""Macros, of each filter, that plans compute with as well."""


def defaults(source: str) -> dict[str, str]:
    """Return the macros that a source defines itself where nobody passes them."""
    found = re.findall(r"#ifndef (\w+)[^\n]*\n#define \1\b *([^\n/]*)", source)
    return {name: value.strip() for name, value in found}


def value_of(expression: str, macros: Mapping[str, str]) -> int:
    """Return the value of a number or a chain of conditional expressions."""
    for name, value in macros.items():
        expression = re.sub(rf"\b{name}\b", value, expression)
    condition, mark, rest = expression.strip("() ").partition("?")
    if not mark:
        return int(condition)
    match = re.fullmatch(r" *(\d+) *(==|<=) *(\d+) *", condition)
    assert match, expression
    left, right = int(match[1]), int(match[3])
    first, _, second = rest.partition(":")
    holds = left == right if match[2] == "==" else left <= right
    return value_of(first if holds else second, {})


@each_filter
def test_defaults_are_what_plans_pass(spec: FilterSpec) -> None:
    own = defaults(read_source(spec.id))
    shared = PASSED.get(spec.id, set())
    passed = set()
    for _, launch in launches(spec):
        for name in shared & launch.defines.keys():
            passed.add(name)
            assert value_of(own[name], launch.defines) == int(launch.defines[name]), name
    assert passed == shared


@each_filter
def test_plans_pass_what_tuned_kernels_use(spec: FilterSpec) -> None:
    """The block of a launch, and the macros by which its kernel knows the block."""
    for level, launch in launches(spec):
        macros = launch.defines
        if "BOX_HALF_BLOCK" in macros:
            assert launch.block == (int(macros["BOX_HALF_BLOCK"]), 2)
        if "TUNED_THREADS" in macros:
            assert launch.block == (int(macros["TUNED_THREADS"]), 1)
        elif (
            spec.id == "median"
            and "MASKED" not in macros  # those have the block of every filter
            and level.id not in ("single-block", "selection")
        ):
            assert launch.block == (int(macros["BLOCK_COLUMNS"]), int(macros["BLOCK_ROWS"]))


def test_the_default_block_is_that_of_the_levels() -> None:
    own = defaults(read_source("mean"))
    assert (int(own["BLOCK_COLUMNS"]), int(own["BLOCK_ROWS"])) == BLOCK


def test_borders_have_the_same_codes() -> None:
    codes = re.findall(r"#define BORDER_(\w+) (\d+)", read_source("mean"))
    kept = (border for border in Border if border is not Border.KEEP)
    assert {name.lower(): int(code) for name, code in codes} == {
        border.value: border.code for border in kept
    }


def test_the_bound_of_unrolled_masks_is_that_of_the_kernels() -> None:
    match = re.search(r"#define UNROLLED_SIZE (\d+)", read_source("mask"))
    assert match
    assert int(match[1]) == LARGEST_UNROLLED


# Weights ------------------------------------------------------------------------------


def ptx(source: str, macros: Mapping[str, int | str]) -> str:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    options = [b"--gpu-architecture=compute_90", b"--std=c++17"]
    options += [f"-D{name}={value}".encode() for name, value in macros.items()]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert int(status) == 0
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return text.decode()


@pytest.mark.parametrize(("size", "by_thread"), [(LARGEST_UNROLLED, False), (15, True)])
def test_weights_in_a_loop_are_indexed_by_thread(size: int, by_thread: bool) -> None:
    """Else the compiler may read them by ULDC, five to ten times slower; see `own_zero`."""
    macros = {"SIZE": size, "SAMPLE_BITS": 32, "WEIGHT_TYPE": 2, "BORDER": Border.VALID.code}
    text = ptx(read_source("weighted_mean"), macros)
    kernels = dict(re.findall(r"\.entry (\w+)\((.*?)^}", text, re.DOTALL | re.MULTILINE))
    for level in ("constant", "shared", "texture"):
        kernel = kernels[f"weighted_mean_{level}"]
        assert "ld.const" in kernel
        assert ("%tid.z" in kernel) == by_thread, level
