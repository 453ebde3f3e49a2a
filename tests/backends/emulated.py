"""Kernels and functions of the CUDA sources on the emulated GPU, with arguments of the tests' own.

For tests of arithmetic: rounding, packing and saturating do not depend on the machine that runs it.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.cuda.strips import Strip
from kernelscope.backends.emulator import launch as emulated_launch
from kernelscope.backends.emulator.compiler import HostCompiler, library_cache
from kernelscope.backends.emulator.translation import translate
from kernelscope.base.compiled import load_library
from kernelscope.engine.control import CancelToken
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from tests.backends.quick_compiler import quick_compiler
from tests.backends.specialisations import tuned_at_any_size

needs_compiler = pytest.mark.skipif(HostCompiler.find() is None, reason="there is no C++ compiler")

Defines = tuple[tuple[str, str], ...]


@functools.cache
def build(file: str, kernel: str, defines: Defines = (), before: str = "", behind: str = "") -> Any:
    """Return a library of one kernel of a file, and of C++ `before` and `behind` the file.

    Functions of the latter are called by their names if they are ``extern "C"``.
    """
    compiler = quick_compiler()
    assert compiler is not None
    text = translate(f"{before}\n{read_source(file)}", dict(defines), kernel)
    text += f"#pragma GCC visibility push(default)\n{behind}\n"
    return load_library(library_cache(compiler).get(kernel, text, "host", {}).code)


def launch(library: Any, grid: Sequence[int], threads: Sequence[int], *arguments: Any) -> None:
    """Run a kernel in a grid of blocks of that many threads, in x and y.

    Arguments are arrays, of which a kernel gets the addresses, or numbers of `ctypes`.
    """
    pointers = [
        ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else each
        for each in arguments
    ]
    values = (ctypes.c_void_p * len(pointers))(*map(ctypes.addressof, pointers))
    sizes = (ctypes.c_uint * 6)(
        *grid, *(1,) * (3 - len(grid)), *threads, *(1,) * (3 - len(threads))
    )
    assert library.emulator_run(sizes, ctypes.c_size_t(0), 0, math.prod(grid), values) == 0


def run(
    filter_id: str,
    pixels: NDArray[Any],
    parameters: Mapping[str, Any],
    level: str,
    border: Border = Border.REFLECT,
    before: str = "",
    part: Strip | None = None,
) -> NDArray[Any]:
    """Return `pixels`, shape (height, width, channels), filtered by the kernels of a level.

    Of a `part` these are its rows, computed in one tile from those of the source that it names.
    """
    spec = filters.get(filter_id)
    values = spec.validate(parameters)
    shape = spec.output_shape(pixels.shape, values, border)
    task = CudaTask(pixels.shape, shape, pixels.dtype, values, border, level)
    with tuned_at_any_size():
        plan = CudaPlan.of(spec.implementation(Cuda).plan(task))
    height, width, channels = pixels.shape
    whole = Strip(0, shape[0], 0, height)
    part = part or whole
    rows = part.last - part.first
    pieces = [pixels[row : row + count] for _, row, count in part.source_pieces(height)]
    output = np.full((shape[0] + 8, *shape[1:]), 90, pixels.dtype)
    bounds = part.first, part.last, part.source_first, part.first, 0
    geometry = np.array([width, height, channels, shape[1], *bounds], np.int32)
    with mock.patch.object(emulated_launch, "geometry", return_value=geometry):
        scratch = {
            name: np.empty(buffer.size(rows, shape[0]), np.uint8)
            for name, buffer in plan.scratch.items()
        }
        memory = emulated_launch.Memory(np.concatenate(pieces), output, scratch)
        for planned in plan.launches:
            library = build(
                filter_id, planned.kernel, tuple(sorted(planned.defines.items())), before
            )
            if part != whole and "DIGITS" in planned.defines:  # a warp goes down all rows
                assert planned.tile is not None
                planned = replace(planned, tile=(planned.tile[0], shape[0]))
            emulated_launch.run_launch(
                library, planned, task, memory, [], CancelToken(), lambda part: None
            )
    assert (output[rows:] == 90).all(), "nothing is written behind the part"
    return output[:rows]
