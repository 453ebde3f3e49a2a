"""Level *parallel*: the networks of `networks.py` as loops over vectors, row after row.

`run_network` writes the loops as LLVM code, because a network has no loop that Python could be
compiled from: each of its operations is a separate statement. `median_parallel` keeps the padded
rows that a group of output rows needs in a ring, and calls `run_network` for one chunk of columns
at a time, so that all intermediate rows stay in the level-1 cache:

    ring    row 0 |#####|.....|.....|        chunk 0 of all rows first, then chunk 1, ...
            row 1 |#####|.....|.....|
            row 2 |#####|.....|.....|        the next group of output rows reuses the ring:
            row 3 |#####|.....|.....|        only the rows that it has not seen are fetched
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Line, Plane, Record, intrinsic, kernel
from kernelscope.filters.median.networks import Program, ShiftedValue, median_program
from kernelscope.filters.shared.border_kernels import fetch_row

VECTOR = 32
"""Bytes of a vector register (AVX2)."""


@intrinsic
def run_network(
    context: Any,
    builder: Any,
    types: Any,
    mask: Any,
    base: Any,
    buffer: Any,
    samples: Any,
    channels: Any,
) -> None:
    """Compute `samples` neighbouring samples of a few rows of medians.

    Emits the network for ``len(mask)`` as a loop over vectors for each of its stages. Its
    places begin at ``buffer[base[place]]``.
    """
    emit_program(
        context, builder, median_program(len(types[0])), types, (base, buffer, samples, channels)
    )


def emit_program(
    context: Any, builder: Any, program: Program, types: Any, operands: tuple[Any, Any, Any, Any]
) -> None:
    """Emit a loop over vectors for each stage of a program.

    - `types`: Numba's; the second and the third are those of `base` and `buffer`.
    - `operands`: base, buffer, samples and channels of `run_network`.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    base, buffer, samples, channels = operands
    base = context.make_array(types[1])(context, builder, base).data
    buffer = context.make_array(types[2])(context, builder, buffer).data
    sample = buffer.type.pointee
    align = context.get_abi_sizeof(sample)
    length = VECTOR // align
    vector = ir.VectorType(sample, length).as_pointer()
    compare = builder.icmp_unsigned if isinstance(sample, ir.IntType) else builder.fcmp_ordered
    intp = samples.type

    def address(lane: ShiftedValue) -> Any:
        place = builder.load(builder.gep(base, [intp(program.places[lane.node])]))
        return builder.gep(buffer, [builder.add(place, builder.mul(channels, intp(lane.shift)))])

    for stage in program.stages:
        # Addresses are taken before the loop: for all LLVM knows, its stores change `base`.
        read = {lane: address(lane) for lane in stage.reads}
        written = {node: address(ShiftedValue(node)) for node in stage.writes}
        count = builder.add(samples, builder.mul(channels, intp(stage.reach)))
        before = builder.block
        loop = builder.append_basic_block()
        after = builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(intp)
        i.add_incoming(intp(0), before)
        known = {
            lane: builder.load(builder.bitcast(builder.gep(start, [i]), vector), align=align)
            for lane, start in read.items()
        }
        for node, (larger, a, b) in stage.operations.items():
            u, v = known[a], known[b]
            known[ShiftedValue(node)] = builder.select(compare(">" if larger else "<", u, v), u, v)
        for node, start in written.items():
            target = builder.bitcast(builder.gep(start, [i]), vector)
            builder.store(known[ShiftedValue(node)], target, align=align)
        following = builder.add(i, intp(length))
        i.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)


@kernel
def median_parallel(
    source: Plane,
    output: Plane,
    border: Index,
    mask: Record,
    results: Line,
    places: Index,
    chunk: Index,
    start: Index,
    stop: Index,
) -> None:
    """Run a network over groups of rows, `chunk` samples at a time.

    The padded rows that a group needs are kept in a ring; channels are samples side by side.
    `mask` is a tuple as long as the mask is wide: that makes its size known to the compiler.
    """
    channels = source.shape[2]
    radius = len(mask) // 2
    group = results.size
    inputs = group + 2 * radius
    last_input = output.shape[0] - 1 + 2 * radius
    samples = output.shape[1] * channels
    padded = samples + 2 * radius * channels
    # Loops go beyond their end by less than a vector.
    pitch = padded + VECTOR
    stride = chunk + 2 * radius * channels + VECTOR
    buffer = np.empty(inputs * pitch + (places - inputs) * stride, source.dtype)
    base = np.empty(places, np.int64)
    for place in range(inputs, places):
        base[place] = inputs * pitch + (place - inputs) * stride
    flat = output.reshape(output.shape[0], samples)
    fetched = start
    for y in range(start, stop, group):
        while fetched < y + inputs:
            begin = fetched % inputs * pitch
            line = buffer[begin : begin + padded]
            # The last group may reach beyond the image; its surplus results are not kept.
            fetch_row(source, min(fetched, last_input), radius, border, line)
            fetched += 1
        for x in range(0, samples, chunk):
            count = min(chunk, samples - x)
            for row in range(inputs):
                base[row] = (y + row) % inputs * pitch + x
            run_network(mask, base, buffer, count, channels)
            for row in range(min(group, stop - y)):
                begin = base[results[row]]
                result = buffer[begin : begin + count]
                target = flat[y + row, x : x + count]
                # A loop, because Numba copies slices sample by sample.
                for i in range(count):
                    target[i] = result[i]
