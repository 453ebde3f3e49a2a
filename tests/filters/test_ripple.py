"""The oracle of the ripple, and the same bytes from the kernel."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cuda.sources import read_source
from kernelscope.filters.ripple import SPEC, wave
from kernelscope.images.image import DTYPES
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
from tests.oracle import WHITES

GEOMETRY = (
    "width",
    "height",
    "channels",
    "out_width",
    "first",
    "last",
    "source_row",
    "output_row",
    "hardware_border",
)
"""The fields of ``Geometry`` in ``common.cuh``."""

CASES: list[dict[str, Any]] = [{}, {"tick": 23}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    height, width, channels = source.shape
    y, x = np.mgrid[:height, :width]
    distance = np.hypot(y - (height - 1) / 2, x - (width - 1) / 2) / 10
    rings = np.cos(distance - parameters["tick"] / 7) / (distance + 1)
    return np.repeat(WHITES[source.dtype.name] * (1 + rings)[:, :, None] / 2, channels, axis=2)


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """A cosine of floats may round to the other side of a tie."""
    return 1 if dtype.kind == "u" else 1e-5


def write(dtype: np.dtype[Any], height: int, width: int, tick: int) -> NDArray[Any]:
    output = np.empty((height, width, 1), dtype)
    values = SPEC.validate({"tick": tick})
    task = CpuTask(output, output, values, Border.REFLECT, "parallel")
    for sweep in SPEC.implementation(Cpu).plan(task):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return output[..., 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_polynomial_is_as_good_as_a_cosine(dtype: np.dtype[Any]) -> None:
    for height, width, tick in ((501, 700, 0), (1, 100_000, 1000), (9, 20_000, 23)):
        source = np.broadcast_to(np.zeros((), dtype), (height, width, 1))
        exact = oracle(source, {"tick": tick}, Border.REFLECT)[..., 0]
        off = np.abs(write(dtype, height, width, tick) - exact).max()
        # A tie may go either way; rounding apart, the result is within 2**-21 of white.
        white = WHITES[dtype.name]
        assert off <= (0.5 if dtype.kind == "u" else 0) + white * 2**-21, (height, width, tick)


HOST = """
#include <cmath>
#include <cstddef>
#define __device__
#define __global__
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n)
template <typename T> T min(T a, T b) { return a < b ? a : b; }
template <typename T> T max(T a, T b) { return a < b ? b : a; }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fsqrt_rn(float a) { return std::sqrt(a); }
struct Index { int x, y; };
static const Index threadIdx = {0, 0}, blockIdx = {0, 0}, blockDim = {1, 1}, gridDim = {1, 1};
"""
"""Macros that make the kernel C++ for the host, with one thread that does everything."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_kernel_on_the_host_gives_the_same_bytes(dtype: np.dtype[Any], tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("there is no C++ compiler")
    code, made = tmp_path / "ripple.cpp", tmp_path / "ripple.so"
    code.write_text(HOST + read_source("ripple"), encoding="utf-8")
    flags = ("-O1", "-std=c++17", "-w", "-ffp-contract=off", "-fPIC", "-shared")
    bits = f"-DSAMPLE_BITS={8 * dtype.itemsize}"
    subprocess.run([compiler, *flags, bits, str(code), "-o", str(made)], check=True)
    draw = ctypes.CDLL(str(made)).ripple_global

    class Geometry(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in GEOMETRY]

    for height, width, tick in ((501, 700, 0), (64, 4099, 1000), (2, 70_000, 23)):
        output = np.empty((height, width), dtype)
        numbers = wave(tick)
        geometry = Geometry(width, height, 1, width, 0, height, 0, 0, 0)
        draw(None, *(ctypes.c_void_p(each.ctypes.data) for each in (output, numbers)), geometry)
        np.testing.assert_array_equal(output, write(dtype, height, width, tick))
