"""Rows of bytes in groups of eight, computed in one sweep from registers alone.

The padded rows of a group are kept in a ring, and a step of the sweep takes a few columns of all of
them. A sum along a row serves all results below and above it, and is never stored::

    ring    row 0  |####|    sums of three along row 0
            row 1  |####|                    and row 1
            row 2  |####|                    and row 2: their sum is that of a mask of 3x3
            ...                              and row 3: the next one, and so on

An operation is a class with `taps`, one for each column of its mask: so the size of the mask is
part of its type, and the compiler writes everything out. Its `emit` writes a step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Plane, Record, intrinsic, kernel
from kernelscope.filters.shared.border_kernels import VALID, border_index, fill_sides, find_sides
from kernelscope.filters.shared.vectors import Loops, make_ring
from kernelscope.schema.borders import Border

GROUP = 8  # rows of results in a sweep
LANES = 32  # samples of a step: a register of AVX2, or two for sums of 16 bits


class SweepStep(NamedTuple):
    """Writes a step of a sweep: some columns of all rows of a group."""

    loops: Loops
    builder: Any
    size: int  # side of the mask
    field: Callable[[int], Any]  # returns a field of the operation, which is known when it runs
    load: Callable[[int, int, int], Any]
    """Returns the cells of a row for a tap, widened to this many bits."""
    store: Callable[[Any, int], None]  # writes one of the `GROUP` rows of results


def taps(size: int) -> tuple[int, ...]:
    return (0,) * size


def applies(output: NDArray[Any], border: Border | None = None) -> bool:
    """Return whether these are rows of bytes, long enough, and with all cells of their masks."""
    is_whole = border is not Border.REDUCE
    return is_whole and output.dtype == np.uint8 and output[0].size >= LANES


@intrinsic
def sweep(
    context: Any,
    builder: Any,
    types: Any,
    operation: Any,
    rows: Any,
    results: Any,
    step: Any,
    count: Any,
) -> None:
    """Compute `count` results in each of `GROUP` rows, from cells `step` samples apart.

    `rows` and `results` have the addresses of the first cell of each row, and of its results.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    kind, size = types[0].instance_class, len(types[0].types[0])
    loops = Loops(context, builder, LANES)
    byte = ir.IntType(8).as_pointer()

    def pointers(place: int, addresses: Any, number: int) -> list[Any]:
        first = loops.start(types[place], addresses)
        items = (loops.item(first, count.type(each)) for each in range(number))
        return [builder.inttoptr(item, byte) for item in items]

    sources = pointers(1, rows, GROUP + size - 1)
    targets = pointers(2, results, GROUP)
    with loops.steps(count) as x:
        places = [builder.add(x, builder.mul(step, count.type(tap))) for tap in range(size)]
        step_of = SweepStep(
            loops,
            builder,
            size,
            functools.partial(builder.extract_value, operation),
            lambda row, tap, bits: loops.load(sources[row], places[tap], bits),
            lambda values, row: loops.store(values, targets[row], x),
        )
        kind.emit(step_of)


@intrinsic
def copy_bytes(
    context: Any,
    builder: Any,
    types: Any,
    source: Any,
    first: Any,
    target: Any,
    place: Any,
    count: Any,
) -> None:
    """Copy `count` samples of `source`, from `first` on, to those of `target` from `place` on."""
    from numba.core import cgutils

    loops = Loops(context, builder)
    source, target = loops.start(types[0], source), loops.start(types[2], target)
    begin, end = builder.gep(source, [first]), builder.gep(target, [place])
    cgutils.raw_memcpy(builder, end, begin, count, 1)


@kernel
def sweep_rows(
    source: Plane, output: Plane, operation: Record, border: Index, start: Index, stop: Index
) -> None:
    """Compute rows in groups; for ``reduce``, those that need no reduced mask."""
    height, width, channels = source.shape
    size = len(operation.taps)
    radius = size // 2
    margin = 0 if border == VALID else radius
    inset = margin * channels
    samples, results = source.reshape(source.size), output.reshape(output.size)
    length, made = width * channels, output.shape[1] * channels
    inputs = GROUP + size - 1
    ring, pitch = make_ring(inputs + 1, length + 2 * inset)
    begin = ring.ctypes.data
    spare = begin + inputs * pitch
    sides = np.empty(2 * inset, np.int64)
    find_sides(width, margin, channels, border, sides)
    rows = np.empty(inputs, np.int64)
    targets = np.empty(GROUP, np.int64)
    fetched = start
    for y in range(start, stop, GROUP):
        while fetched < y + inputs:
            # The last group may reach beyond the image; its surplus results are not kept.
            row = border_index(min(fetched, output.shape[0] + size - 2) - margin, height, border)
            slot = fetched % inputs * pitch
            fetched += 1
            if row < 0:
                ring[slot : slot + length + 2 * inset] = 0
                continue
            copy_bytes(samples, row * length, ring, slot + inset, length)
            fill_sides(ring, slot + inset, slot + inset + length, sides, 0)
        for k in range(inputs):
            rows[k] = begin + (y + k) % inputs * pitch
        for k in range(GROUP):
            targets[k] = results.ctypes.data + (y + k) * made if y + k < stop else spare
        sweep(operation, rows, targets, channels, made)
