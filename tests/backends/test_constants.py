"""Constants that plans and kernels share: passed as macros, whose defaults are the same numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from kernelscope.backends.cuda.sources import read_source
from kernelscope.filters.shared.correlation_cuda import LARGEST_UNROLLED
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import BLOCK
from tests.backends.specialisations import gpu_filters, launches

SHARED = {
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


@pytest.mark.slow
@pytest.mark.parametrize("spec", gpu_filters(), ids=lambda spec: spec.id)
def test_defaults_are_what_plans_pass(spec: FilterSpec) -> None:
    own = defaults(read_source(spec.id))
    shared = SHARED.get(spec.id, set())
    passed = set()
    for _, launch in launches(spec):
        for name in shared & launch.defines.keys():
            passed.add(name)
            assert value_of(own[name], launch.defines) == int(launch.defines[name]), name
    assert passed == shared


@pytest.mark.slow
@pytest.mark.parametrize("spec", gpu_filters(), ids=lambda spec: spec.id)
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


@pytest.mark.slow
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
