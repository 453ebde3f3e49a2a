"""Morphology: opening, closing, gradient and top-hats with a mask of any shape.

Erosion takes the smallest of the cells that a mask has around a pixel, dilation the largest of
those that the mask turned by half a turn has. From these:

    opening         the dilation of the erosion     bright parts narrower than the mask are gone
    closing         the erosion of the dilation     dark parts narrower than the mask are gone
    gradient        dilation less erosion           edges
    white top-hat   the source less its opening     the bright parts that opening removes
    black top-hat   the closing less the source     the dark parts that closing removes

For example a row, opened with a mask of three cells in a row:

    row       4 4 9 4 4 9 9 9 4
    erosion   4 4 4 4 4 4 9 4 4    the speck is gone, the wide part is narrower
    opening   4 4 4 4 4 9 9 9 4    the wide part has its width again

Cells outside the image have the values that the border says, before each of the two. Where a
difference of unsigned samples would be below 0, it is 0.

Source: Gonzalez and Woods, Digital Image Processing, chapter 9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kernelscope.base.jit import Flag, Index, Like, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import border_index
from kernelscope.filters.shared.extremes import (
    Extremes,
    areas_of,
    extreme_rows,
    extremes_at,
    extremes_launch,
    rows_of_block,
    serial_pass,
    sides_of,
)
from kernelscope.filters.shared.footprints import (
    FOOTPRINT,
    Table,
    flipped,
    footprint_launch,
    is_full,
    radius_of,
    size_parameter,
    table_of,
)
from kernelscope.filters.shared.plain import cell
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuKernel, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import Choice, ChoiceParameter
from kernelscope.schema.samples import Pixels

OPENING, CLOSING, GRADIENT = "opening", "closing", "gradient"
WHITE, BLACK = "white-top-hat", "black-top-hat"

_OPERATIONS = (OPENING, CLOSING, GRADIENT, WHITE, BLACK)
_OPENING, _CLOSING, _GRADIENT, _WHITE_TOP_HAT, _BLACK_TOP_HAT = range(5)

_TOP_HATS = {WHITE: 1, BLACK: 2}
"""The macro ``TOP_HAT``."""


def erodes_first(operation: str) -> bool:
    return operation in (OPENING, WHITE)


def radius(parameters: Mapping[str, Any]) -> int:
    """Each of two passes needs the mask's."""
    return radius_of(parameters) * (1 if parameters["operation"] == GRADIENT else 2)


@inlined
def difference(a: Number, b: Number, like: Like) -> Any:
    """Return ``a - b``; of unsigned integers 0 where that is less."""
    zero = like.dtype.type(0)
    return a - b if like.dtype.type(0.5) != zero or a > b else zero


@kernel.plain
def subtract_serial(
    first: Plane,
    second: Plane,
    output: Plane,
    inset: Index,
    reverse: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write the first picture, from `inset` pixels inside on, less the second; or the reverse.

    `second` may be `output`.
    """
    for y in range(start, stop):
        for x in range(output.shape[1]):
            for c in range(output.shape[2]):
                a, b = first[y + inset, x + inset, c], second[y, x, c]
                output[y, x, c] = difference(b, a, output) if reverse else difference(a, b, output)


@kernel
def subtract(
    work: Line, a: Index, b: Index, results: Line, place: Index, count: Index, like: Like
) -> None:
    for x in range(count):
        results[np.uintp(place + x)] = difference(cell(work, a + x), cell(work, b + x), like)


@kernel
def morphology_parallel(
    source: Plane,
    output: Plane,
    eroding: Record,
    dilating: Record,
    operation: Index,
    start: Index,
    stop: Index,
) -> None:
    """A block of rows at a time, which stays in the cache from the first extremes to the last.

    - `operation`: its place in `_OPERATIONS`.
    """
    height, _, channels = source.shape
    size, pitch, length = eroding.size, source[0].size, output[0].size
    sides = sides_of(source, eroding)
    inset, padded = sides.size // 2, pitch + sides.size
    most = rows_of_block(stop - start, padded, size, source.itemsize)
    area = (most + 2 * size - 2) * padded
    middle, kept, spare = area, 2 * area, 3 * area
    work = np.empty(
        (3 + max(areas_of(eroding), areas_of(dilating))) * area + 2 * padded, source.dtype
    )
    samples, results = source.reshape(source.size), output.reshape(output.size)
    first, second = eroding, dilating
    if operation in (_CLOSING, _BLACK_TOP_HAT):
        first, second = dilating, eroding
    # The picture between the two.
    across = padded - (size - 1) * channels
    down, wide = height - (0 if inset else size - 1), across + sides.size
    single = np.intp(1)  # a plain 1 would be a type of its own: all of it would be compiled again
    for y in range(start, stop, most):
        rows, target = min(most, stop - y), y * length
        if operation == _GRADIENT:
            extremes_at(source, y, rows, dilating, sides, work, spare, work, middle, length)
            extremes_at(source, y, rows, eroding, sides, work, spare, work, kept, length)
            subtract(work, middle, kept, results, target, rows * length, output)
            continue
        top = y - inset // channels
        above, below = max(top, 0), min(top + rows + size - 1, down)
        begin = middle + inset - top * wide  # of row 0
        extremes_at(
            source,
            above,
            below - above,
            first,
            sides,
            work,
            spare,
            work,
            begin + above * wide,
            wide,
        )
        for i in range(top, top + rows + size - 1):
            row, place = border_index(i, down, second.border), begin + i * wide
            if above <= i < below:
                continue
            if row >= 0 and not above <= row < below:
                extremes_at(source, row, single, first, sides, work, spare, work, place, wide)
                continue
            for x in range(across):
                work[place + x] = work[begin + row * wide + x] if row >= 0 else second.outside
        is_last = operation in (_OPENING, _CLOSING)
        extreme_rows(
            work,
            middle,
            spare,
            sides,
            wide,
            channels,
            second,
            y,
            rows,
            down,
            results if is_last else work,
            target if is_last else kept,
            length,
        )
        if is_last:
            continue
        inside = (height - output.shape[0]) // 2  # from the source's edges
        for i in range(rows):
            own, other = (y + i + inside) * pitch + inside * channels, kept + i * length
            for x in range(length):
                work[x] = cell(samples, own + x)
            a, b = (0, other) if operation == _WHITE_TOP_HAT else (other, 0)
            subtract(work, a, b, results, target + i * length, length, output)


class _Ways(NamedTuple):
    """How extremes are taken, and how pictures are subtracted."""

    extremes: Callable[[CpuTask, Pixels, Pixels, Table, bool], CpuPass]
    """Maps a task, a source, an output, a mask and whether the lowest are wanted to a pass."""
    subtract: CpuKernel
    """Gets the arguments of `subtract_serial`."""


def _passes(task: CpuTask, ways: _Ways) -> list[CpuPass]:
    operation, table = task.parameters["operation"], table_of(task.parameters)
    source, output, rows = task.source, task.output, task.output.shape[0]
    inset = len(table) // 2 if task.border is Border.VALID else 0
    if operation == GRADIENT:
        eroded = np.empty_like(output)
        return [
            ways.extremes(task, source, output, flipped(table), False),
            ways.extremes(task, source, eroded, table, True),
            CpuPass(ways.subtract, (output, eroded, output, 0, False), rows),
        ]
    height, width, channels = source.shape
    middle = np.empty((height - 2 * inset, width - 2 * inset, channels), source.dtype)
    erode = erodes_first(operation)
    masks = {True: table, False: flipped(table)}
    passes = [
        ways.extremes(task, source, middle, masks[erode], erode),
        ways.extremes(task, middle, output, masks[not erode], not erode),
    ]
    if operation in _TOP_HATS:
        arguments = (source, output, output, 2 * inset, operation == BLACK)
        passes.append(CpuPass(ways.subtract, arguments, rows))
    return passes


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    if task.level == SERIAL.id:
        return _passes(task, _Ways(serial_pass, subtract_serial))
    table, dtype = table_of(task.parameters), task.source.dtype
    arguments = (
        task.source,
        task.output,
        Extremes.of(table, True, task.border, dtype),
        Extremes.of(flipped(table), False, task.border, dtype),
        _OPERATIONS.index(task.parameters["operation"]),
    )
    return [CpuPass(morphology_parallel, arguments, task.output.shape[0])]


def _extremes_by_numpy(
    task: CpuTask, source: Pixels, output: Pixels, table: Table, lowest: bool
) -> CpuPass:
    part = replace(task, source=source, output=output)
    (only,) = uncompiled.by_numpy(uncompiled.extreme_rows(lowest, table))(part)
    return only


def _subtract(
    first: Pixels,
    second: Pixels,
    output: Pixels,
    inset: int,
    reverse: bool,
    start: int,
    stop: int,
) -> None:
    """As `subtract_serial`, by NumPy."""
    width = output.shape[1]
    pair = first[start + inset : stop + inset, inset : inset + width], second[start:stop]
    a, b = pair[::-1] if reverse else pair
    output[start:stop] = a - b if output.dtype.kind == "f" else np.where(a > b, a - b, 0)


def plan_uncompiled(task: CpuTask) -> Sequence[CpuPass]:
    return _passes(task, _Ways(_extremes_by_numpy, uncompiled.Ready(_subtract)))


def _step(task: CudaTask, table: Table, name: str, **defines: Any) -> Launch:
    """Return the launch of a kernel that takes extremes, without its buffers."""
    if task.level == TUNED.id and is_full(table) and name != GRADIENT:
        launch = extremes_launch("morphology", task, table, MASKED=0, **defines)
    else:
        cells = float(table.sum())
        launch = footprint_launch("morphology", task, table, cells, **defines)
    return replace(launch, kernel=f"{launch.kernel}_{name}")


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    operation, table = task.parameters["operation"], table_of(task.parameters)
    is_texture = task.level == TEXTURE.id
    common = {"FLOATS": 1} if is_texture else {}
    if operation == GRADIENT:
        return _step(task, table, GRADIENT, **common)
    erode = erodes_first(operation)
    masks = {True: table, False: flipped(table)}
    side, top_hat = len(table), _TOP_HATS.get(operation, 0)
    width, channels = task.output_shape[1], task.shape[2]
    if task.border is Border.VALID:
        width += side - 1  # of the picture between the launches
    common |= {"TOP_HAT": top_hat}
    first = _step(task, masks[erode], "first", LOWEST=int(erode), **common)
    common |= {"SECOND": 1} if is_texture else {}
    second = _step(task, masks[not erode], "second", LOWEST=int(not erode), **common)
    kept = "kept" if top_hat else "middle"  # it has none, and is not touched
    item = 4 if is_texture else task.dtype.itemsize
    pitch = width * channels * item
    scratch = {"middle": Scratch(pitch, (side - 1) * pitch, at_pixels=item)}
    launches = [
        replace(first, scratch=("middle",)),
        replace(
            second,
            scratch=(kept,) if is_texture else ("middle", kept),
            texture_of=("middle", width * channels) if is_texture else None,
            frame=0 if top_hat else None,
        ),
    ]
    if top_hat:
        scratch["kept"] = Scratch(task.out_row_samples * task.dtype.itemsize)
        finish = replace(
            second,
            kernel="morphology_finish",
            bytes_per_sample=3.0 * task.dtype.itemsize,
            operations_per_sample=1.0,
            constants={},
            tables=(),
            shared_bytes=0,
            texture=False,
            scratch=("kept",),
            frame=None,
        )
        launches.append(finish)
    return CudaPlan(tuple(launches), scratch)


def _extremes(cells: Cells, table: Table, lowest: bool) -> Cells:
    """Return the extremes of a patch, as far as the mask fits into it."""
    windows = np.lib.stride_tricks.sliding_window_view(cells, table.shape)[:, :, table]
    found: Cells = windows.min(axis=-1) if lowest else windows.max(axis=-1)
    return found


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    operation, table = parameters["operation"], table_of(parameters)
    turned = flipped(table)
    if operation == GRADIENT:
        low, high = _extremes(window, table, True), _extremes(window, turned, False)
        found = (number(each.item()) for each in (high, low, high - low))
        return "the largest {} less the smallest {} = {}".format(*found)
    erode = erodes_first(operation)
    middle = _extremes(window, table if erode else turned, erode)
    result = _extremes(middle, turned if erode else table, not erode).item()
    words = ("largest", "smallest") if erode else ("smallest", "largest")
    cells = " ".join(map(number, middle[turned if erode else table].tolist()))
    text = f"the {words[0]} of the {words[1]} values {cells} = {number(result)}"
    if operation not in _TOP_HATS:
        return text
    own = window[len(window) // 2, len(window) // 2]
    pair = (own, result) if operation == WHITE else (result, own)
    return f"{text}; {number(pair[0])} − {number(pair[1])} = {number(float(pair[0]) - pair[1])}"


SPEC = FilterSpec(
    id="morphology",
    name="Morphology",
    category="Morphology",
    summary="Opens, closes or shows edges and small parts by the extremes of a mask.",
    synonyms=("opening", "closing", "gradient", "top-hat", "tophat", "bottom-hat", "background"),
    source="Gonzalez and Woods, Digital Image Processing, chapter 9",
    parameters=(
        ChoiceParameter(
            name="operation",
            label="Operation",
            help="How erosion and dilation are combined.",
            default=OPENING,
            choices=(
                Choice(
                    OPENING,
                    "Opening",
                    "Removes bright parts that are narrower than the mask.",
                    phrase="opening",
                ),
                Choice(
                    CLOSING,
                    "Closing",
                    "Removes dark parts that are narrower than the mask.",
                    phrase="closing",
                ),
                Choice(GRADIENT, "Gradient", "Shows edges.", phrase="gradient"),
                Choice(
                    WHITE,
                    "White top-hat",
                    "Shows the bright parts that opening removes.",
                    phrase="white top-hat",
                ),
                Choice(
                    BLACK,
                    "Black top-hat",
                    "Shows the dark parts that closing removes.",
                    phrase="black top-hat",
                ),
            ),
        ),
        size_parameter("Side of the mask.", (3, 15)),
        FOOTPRINT,
    ),
    radius=radius,
    restores=False,
    passes=lambda parameters: 1 if parameters["operation"] == GRADIENT else 2,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=plan_uncompiled),
        "gpu": Cuda(plan_cuda, (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)),
    },
    bench=BenchDefaults(variants=({"operation": OPENING}, {"operation": GRADIENT})),
    explanation=Explanation(
        formula=r"\varepsilon(y, x) = \min_{(s,\,t) \in M} u(y + s,\, x + t)"
        "\n"
        r"\delta(y, x) = \max_{(s,\,t) \in M} u(y - s,\, x - t)"
        "\n"
        r"\mathrm{opening} = \delta(\varepsilon(u)) \qquad "
        r"\mathrm{closing} = \varepsilon(\delta(u))",
        use="To remove specks of one kind and keep the size of all else, to even out a background "
        "(white top-hat with a mask larger than the objects), or to find edges.",
        avoid="Noise of both kinds: use the median. Slanted edges become stairs of the mask's "
        "shape; a disk shows that least.",
        example=Example(parameters={"footprint": "disk"}, working=_working),
    ),
)
