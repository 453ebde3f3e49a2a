"""Bilateral filter: an average of near pixels with similar values, which keeps edges.

A cell counts the less, the farther it is from the pixel and the more it differs from it:

    w = exp(-distance² / (2 sigma_space²)) exp(-difference² / (2 sigma_range²))

A row beside an edge, with the cells of the pixel in brackets, sigma_space 1 and sigma_range 10:

    10 12 11 [10] 90 91    weights .01 .13 .60 1 0 0
                           (.01 10 + .13 12 + .60 11 + 1 10) / 1.74 = 10.5

Integers have integer weights, of 16 bits for masks up to 15 x 15 and of 14 for larger ones: their
sums are exact, and results the same on every device. Differences of 16-bit samples and of floats
are looked up in a table of 1025 entries, and interpolated. Colours are filtered one by one.

Source: Tomasi and Manduchi, ICCV 1998.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import (
    Index,
    Like,
    Line,
    Number,
    Plane,
    Record,
    inlined,
    intrinsic,
    kernel,
)
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, fetch_row
from kernelscope.filters.shared.cubes import side_radius
from kernelscope.filters.shared.footprints import in_strips
from kernelscope.filters.shared.plain import interior
from kernelscope.filters.shared.vectors import Loops, make_ring
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec, Unit
from kernelscope.schema.launch import Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import FloatParameter, OddParameter

_MOST = 65534
"""The largest factor of a weight of integers: 32 bits hold a product of two, and half a unit of 14
bits."""

_BYTES, _FINE = 256, 1025  # entries of the table of differences: for bytes one for each, and else
_NOTHING = 5.0  # differences of this many sigmas have no weight: 16 bits round it to 0


class Tables(NamedTuple):
    """The factors of weights; of integers all are whole."""

    space: NDArray[np.float64]  # for each cell of the mask, row by row
    range: NDArray[np.float64]
    """For differences of 0, 1, 2 ... steps."""
    scale: float  # steps for a difference of 1; of integers a power of two
    fraction: float  # from products of factors to weights of this many bits; 0 for floats


def tables_of(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> Tables:
    size, is_float = parameters["size"], dtype.kind == "f"
    away = np.arange(size) - size // 2
    squares = np.add.outer(away**2, away**2) / parameters["sigma_space"] ** 2
    space = np.exp(-squares / 2).ravel()
    white = 1.0 if is_float else float(np.iinfo(dtype).max)
    sigma = parameters["sigma_range"] / 100 * white
    step = _NOTHING * sigma / (_FINE - 1) if is_float else 1.0
    while dtype.itemsize == 2 and (_FINE - 1) * step < min(_NOTHING * sigma, white + 1):
        step *= 2
    entries = _BYTES + 1 if dtype.itemsize == 1 else _FINE
    factors = np.exp(-((np.arange(entries) * step / sigma) ** 2) / 2)
    if is_float:
        return Tables(space, factors, 1 / step, 0.0)
    bits = 16 if size**2 <= 256 else 14
    return Tables(np.rint(_MOST * space), np.rint(_MOST * factors), 1 / step, 2.0 ** (bits - 32))


@inlined
def weight_of(space: Number, difference: Number, tables: Record) -> Any:
    """Return the weight of a cell. Floats of 64 bits hold all integers and steps on the way."""
    place = abs(difference) * tables.scale
    if not place < tables.range.size - 1:
        return 0.0
    entry = np.int64(place)
    below, above = tables.range[np.uintp(entry)], tables.range[np.uintp(entry + 1)]
    factor = below + (place - np.float64(entry)) * (above - below)
    if tables.fraction == 0:
        return space * factor
    return math.floor(space * math.floor(factor + 0.5) * tables.fraction + 0.5)


@inlined
def mean_of(total: Number, weights: Number, like: Like) -> Any:
    """Return the sample for a sum: of integers to nearest, ties to even."""
    value = total / weights
    return value if like.dtype.type(0.5) != 0 else np.rint(value)


@kernel.plain
def bilateral_serial(
    source: Plane,
    output: Plane,
    tables: Record,
    radius: Index,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell of the mask."""
    height, width, channels = source.shape
    inset = 0 if border == VALID else radius
    side = 2 * radius + 1
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        for x in range(output.shape[1]):
            is_inside = first <= x < last
            for c in range(channels):
                centre = np.float64(source[y + radius - inset, x + radius - inset, c])
                total = weights = 0.0
                for s in range(side):
                    row = y + s - inset
                    if not is_inside:
                        row = border_index(row, height, border)
                    for t in range(side):
                        column = x + t - inset
                        if not is_inside:
                            column = border_index(column, width, border)
                        value = 0.0
                        if row >= 0 and column >= 0:
                            value = np.float64(source[row, column, c])
                        elif border == REDUCE:
                            continue
                        weight = weight_of(
                            tables.space[np.uintp(s * side + t)], value - centre, tables
                        )
                        total += weight * value
                        weights += weight
                output[y, x, c] = mean_of(total, weights, output)


@kernel
def add_cells(
    cells: Line, centres: Line, space: Number, tables: Record, totals: Line, weights: Line
) -> None:
    """Add one cell of the mask of each sample of a row."""
    for x in range(totals.size):
        weight = weight_of(space, cells[x] - centres[x], tables)
        totals[x] += weight * cells[x]
        weights[x] += weight


@kernel
def bilateral_parallel(
    source: Plane,
    output: Plane,
    tables: Record,
    radius: Index,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Add a cell of the mask to all samples of a row at once, from a ring of padded rows."""
    channels = source.shape[2]
    side, length = 2 * radius + 1, output.shape[1] * channels
    ring = np.empty((side, length + 2 * radius * channels))
    totals, weights = np.empty(length), np.empty(length)
    for row in range(start, stop + side - 1):
        fetch_row(source, row, radius, border, ring[row % side])
        y = row - side + 1
        if y < start:
            continue
        totals[:] = 0
        weights[:] = 0
        centres = ring[(y + radius) % side][radius * channels :][:length]
        for s in range(side):
            if border == REDUCE and not 0 <= y + s - radius < source.shape[0]:
                continue
            cells = ring[(y + s) % side]
            for t in range(side):
                first, last = 0, length
                if border == REDUCE:  # cells inside the picture alone
                    first = min(max(0, (radius - t) * channels), length)
                    last = max(first, min(length, length - (t - radius) * channels))
                shifted = cells[t * channels :][first:last]
                space = tables.space[s * side + t]
                add_cells(
                    shifted,
                    centres[first:last],
                    space,
                    tables,
                    totals[first:last],
                    weights[first:last],
                )
        results = output[y].reshape(length)
        for x in range(length):
            results[x] = mean_of(totals[x], weights[x], output)


_LANES = 64
"""Most samples of a step over a row of bytes: 64 bytes of a table are a register of AVX-512."""


@intrinsic
def weigh_bytes(
    context: Any,
    builder: Any,
    types: Any,
    ring: Any,
    inside: Any,
    centre: Any,
    places: Any,
    space: Any,
    factors: Any,
    shift: Any,
    means: Any,
) -> None:
    """Write the weighted means of a row, of sums that stay in registers.

    - `ring`: of padded rows; the one of the pixels begins at `centre`.
    - `inside`: 255 for each cell of a padded row that counts, and 0 for the others.
    - `places`: two for each cell of the mask: in `ring`, and in `inside`.
    - `space`: of `tables_of`, of 32 bits, for the same cells.
    - `factors`: of `tables_of`, for differences; of 16 bits.
    - `shift`: bits of products that weights do without.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    in_registers = _can_permute(context)
    # With sums of 64 samples AVX2 would have no register left.
    loops = Loops(context, builder, _LANES if in_registers else _LANES // 2)
    intp, count = centre.type, builder.extract_value(means, 2)
    cells = builder.extract_value(space, 2)
    ring, inside, places, space, factors, means = (
        loops.start(kind, value)
        for kind, value in zip(
            (types[0], types[1], types[3], types[4], types[5], types[7]),
            (ring, inside, places, space, factors, means),
            strict=True,
        )
    )
    factor_of = _factors_in_registers if in_registers else _factors_in_memory
    look_up = factor_of(loops, builder, factors)
    drop = loops.spread(shift, 32)
    half = builder.lshr(builder.shl(loops.all(1, 32), drop), loops.all(1, 32))
    with loops.steps(count) as x:
        centres = loops.load(ring, builder.add(x, centre), 8)

        def term(number: Any) -> list[Any]:
            first = builder.mul(number, intp(2))
            place, beside = (loops.item(places, builder.add(first, intp(k))) for k in range(2))
            cell = loops.load(ring, builder.add(x, place), 8)
            higher = builder.icmp_unsigned(">", cell, centres)
            difference = builder.select(
                higher, builder.sub(cell, centres), builder.sub(centres, cell)
            )
            counted = builder.sext(loops.load(inside, builder.add(x, beside), 8), loops.all(0).type)
            factor = builder.zext(builder.and_(look_up(difference), counted), half.type)
            product = builder.mul(factor, loops.spread(loops.item(space, number), 32))
            weight = builder.lshr(builder.add(product, half), drop)
            return [builder.mul(weight, builder.zext(cell, half.type)), weight]

        total, weights = loops.sums(cells, [loops.all(0, 32)] * 2, term)
        wide = ir.VectorType(ir.DoubleType(), loops.lanes)
        mean = builder.fdiv(builder.uitofp(total, wide), builder.uitofp(weights, wide))
        # From 2**52 on floats are whole: this rounds, and leaves the mean in the lowest byte.
        mean = builder.fadd(mean, ir.Constant(wide, [2.0**52] * loops.lanes))
        loops.store(builder.bitcast(mean, loops.all(0, 64).type), means, x)


def _can_permute(context: Any) -> bool:
    """Return whether the processor that code is for looks up bytes in registers."""
    _, _, features = context.codegen().magic_tuple()
    return "+avx512vbmi," in f"{features},"


def _factors_in_registers(loops: Loops, builder: Any, factors: Any) -> Callable[[Any], Any]:
    """Return a function that looks up 16 bits for each byte: the lower and the higher ones."""
    from llvmlite import ir

    kind = loops.all(0, 8).type
    parts = [
        builder.bitcast(
            loops.load(factors, ir.IntType(64)(first)), ir.VectorType(kind.element, 2 * _LANES)
        )
        for first in range(0, _BYTES, _LANES)
    ]
    tables = [
        [loops.chosen(part, part, range(byte, 2 * _LANES, 2)) for part in parts]
        for byte in range(2)
    ]
    name, function = "llvm.x86.avx512.vpermi2var.qi.512", ir.FunctionType(kind, [kind] * 3)
    permute = builder.module.globals.get(name) or ir.Function(builder.module, function, name)

    def look_up(places: Any) -> Any:
        is_high = builder.icmp_signed("<", places, loops.all(0, 8))
        low, high = (
            builder.zext(
                builder.select(
                    is_high,
                    builder.call(permute, [table[2], places, table[3]]),
                    builder.call(permute, [table[0], places, table[1]]),
                ),
                loops.all(0).type,
            )
            for table in tables
        )
        return builder.or_(low, builder.shl(high, loops.all(8)))

    return look_up


def _factors_in_memory(loops: Loops, builder: Any, factors: Any) -> Callable[[Any], Any]:
    """Return a function that takes places from vectors by eight: shifts are free meanwhile."""
    from llvmlite import ir

    word, number = ir.IntType(64), ir.IntType(32)

    def look_up(places: Any) -> Any:
        eights = builder.bitcast(places, ir.VectorType(word, loops.lanes // 8))
        found = ir.Constant(loops.all(0).type, ir.Undefined)
        for lane in range(loops.lanes):
            eight = builder.extract_element(eights, number(lane // 8))
            place = builder.and_(builder.lshr(eight, word(lane % 8 * 8)), word(255))
            found = builder.insert_element(found, loops.item(factors, place), number(lane))
        return found

    return look_up


@kernel
def bilateral_bytes(
    source: Plane,
    output: Plane,
    space: Line,
    factors: Line,
    shift: Index,
    radius: Index,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """As `bilateral_parallel`, for rows of `_LANES` bytes at least, and integers of 32 bits."""
    channels = source.shape[2]
    side, length = 2 * radius + 1, output.shape[1] * channels
    margin = radius * channels
    padded = length + 2 * margin
    ring, pitch = make_ring(side, padded)
    inside = np.full(padded, 255, np.uint8)
    if border == REDUCE:
        inside[:margin] = 0
        inside[length + margin :] = 0
    places, counted = np.empty(2 * side * side, np.int64), np.empty(side * side, np.uint32)
    for row in range(start, stop + side - 1):
        slot = row % side * pitch
        fetch_row(source, row, radius, border, ring[slot : slot + padded])
        y = row - side + 1
        if y < start:
            continue
        cells = 0
        for s in range(side):
            if border == REDUCE and not 0 <= y + s - radius < source.shape[0]:
                continue
            for t in range(side):
                places[2 * cells] = (y + s) % side * pitch + t * channels
                places[2 * cells + 1] = t * channels
                counted[cells] = space[s * side + t]
                cells += 1
        centre = (y + radius) % side * pitch + margin
        weigh_bytes(
            ring,
            inside,
            centre,
            places,
            counted[:cells],
            factors,
            shift,
            output[y].reshape(length),
        )


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, is_serial = task.source, task.output, task.level == SERIAL.id
    tables = tables_of(task.parameters, source.dtype)
    reach, border = side_radius(task.parameters), task.border.code
    if source.dtype == np.uint8 and not is_serial and output[0].size >= _LANES:
        numbers = tables.space.astype(np.uint32), tables.range[:_BYTES].astype(np.uint16)
        for each in numbers:
            each.flags.writeable = False
        shift = -int(math.log2(tables.fraction))
        arguments = (source, output, *numbers, shift, reach, border)
        return [CpuPass(bilateral_bytes, arguments, len(output))]
    sweep = bilateral_serial if is_serial else bilateral_parallel
    return [CpuPass(sweep, (source, output, tables, reach, border), len(output))]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the rows of a band, by NumPy."""
    tables, reach = tables_of(task.parameters, task.source.dtype), side_radius(task.parameters)
    found = uncompiled.cells(task, reach, start, stop, np.float64)
    centres = found.samples[reach:, reach:][: stop - start, : task.output.shape[1]]
    total: Any = 0.0
    weights: Any = 0.0
    inside = [None] * len(tables.space) if found.inside is None else found.windows(found.inside)
    for space, cell, counts in zip(tables.space, found.windows(), inside, strict=True):
        place = np.minimum(np.abs(cell - centres) * tables.scale, len(tables.range) - 1)
        entry = np.minimum(place.astype(np.intp), len(tables.range) - 2)
        below, above = tables.range[entry], tables.range[entry + 1]
        factor = below + (place - entry) * (above - below)
        factor = np.where(place < len(tables.range) - 1, factor, 0.0)
        weight = space * factor
        if tables.fraction:
            weight = np.floor(space * np.floor(factor + 0.5) * tables.fraction + 0.5)
        if counts is not None and task.border is Border.REDUCE:
            weight = weight * counts
        total, weights = total + weight * cell, weights + weight
    return uncompiled.finished(task, total / weights)


_OPERATIONS = 8  # for each cell, about


def plan_cuda(task: CudaTask) -> Launch:
    size, tables = int(task.parameters["size"]), tables_of(task.parameters, task.dtype)
    kind = np.float32 if task.dtype.kind == "f" else np.uint32
    space, factors = tables.space.astype(kind), tables.range.astype(kind)
    if task.dtype.itemsize == 1:
        factors = factors[:_BYTES]
    scale = np.array([tables.scale], np.float32)
    if task.dtype.kind != "f":
        scale = np.array([-math.log2(tables.scale)]).astype(np.int32)
    in_global = task.level in (SINGLE_BLOCK.id, GLOBAL.id)
    own = {} if in_global else {"constant_space": space, "constant_range": factors}
    launch = level_launch(
        "bilateral",
        task,
        size // 2,
        _OPERATIONS * size * size,
        tables=(space, factors) if in_global else (),
        arguments={"scale": scale, **own},
        SIZE=size,
    )
    if task.level == TUNED.id:
        launch = in_strips(launch, task, size)
    if task.level not in (SHARED.id, TUNED.id):
        return launch
    tile = -(-launch.shared_bytes // 16) * 16
    return replace(launch, shared_bytes=tile + factors.nbytes)


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    tables = tables_of(parameters, np.dtype(np.float64))
    centre = float(window[len(window) // 2, len(window) // 2])
    sigma = parameters["sigma_range"] / 100 * 255
    weights = np.exp(-(((window - centre) / sigma) ** 2) / 2).ravel() * tables.space
    total, result = float(weights.sum()), float((weights * window.ravel()).sum())
    return f"sum of w u = {number(result)}; {number(result)} / {number(total)} = " + number(
        result / total
    )


def _weights(parameters: Mapping[str, Any]) -> Mapping[str, Cells]:
    space = tables_of(parameters, np.dtype(np.float64)).space
    return {"space": space.reshape(parameters["size"], -1).round(3)}


def _caution(values: Mapping[str, Any]) -> str:
    """Return that the mask cuts the weights of space off, where half of them would lie outside."""
    size, sigma = values["size"], values["sigma_space"]
    if sigma <= size // 2:
        return ""
    edge = 100 * math.exp(-((size // 2 / sigma) ** 2) / 2)
    return (
        f"the mask ends at {size // 2} px, where the weight of space is still {edge:.0f} %. Sigma "
        f"of space acts up to {size // 2} px; use a larger mask size for more."
    )


SPEC = FilterSpec(
    id="bilateral",
    name="Bilateral",
    category="Smoothing",
    summary="Averages near pixels with similar values: smooths and keeps edges.",
    synonyms=("edge-preserving", "denoise", "smooth", "tomasi"),
    source="Tomasi and Manduchi, Bilateral filtering for gray and color images, ICCV 1998",
    parameters=(
        OddParameter(
            name="size",
            label="Mask size",
            help="Side of the square that is averaged.",
            default=5,
            minimum=3,
            maximum=31,
            slider=(3, 15),
        ),
        FloatParameter(
            name="sigma_space",
            label="Sigma of space",
            symbol="σ space",
            help="Distance at which a weight falls to 61 %. Cells beyond the mask have none: "
            "sigmas above half its size have little effect.",
            default=1.5,
            minimum=0.1,
            maximum=100.0,
            slider=(0.5, 10.0),
            geometric=True,
            unit="px",
        ),
        FloatParameter(
            name="sigma_range",
            label="Sigma of range",
            symbol="σ range",
            help="Difference at which a weight falls to 61 %, in percent of white: 10 % are 25.5 "
            "of 255 levels.",
            default=10.0,
            minimum=0.01,
            maximum=1000.0,
            slider=(0.5, 100.0),
            geometric=True,
            unit="%",
            is_strength=True,
        ),
    ),
    radius=side_radius,
    caution=_caution,
    unit=Unit.WHITE,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    explanation=Explanation(
        formula=r"g(p) = \frac{\sum_q w(p, q)\, u(q)}{\sum_q w(p, q)}"
        "\n"
        r"w(p, q) = \exp\left(-\frac{|p - q|^2}{2 \sigma_s^2}"
        r" - \frac{(u(p) - u(q))^2}{2 \sigma_r^2}\right)",
        use="To smooth noise that is weaker than the edges, at once and without blurring them.",
        avoid="Specks stay, as nothing near is similar: use the median. Strong noise becomes "
        "patches; non-local means and collaborative filtering remove it better.",
        example=Example(masks=_weights, working=_working),
    ),
)
