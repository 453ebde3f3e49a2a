"""Greyscale conversion after ITU-R BT.601.

    grey = 0.299 red + 0.587 green + 0.114 blue

For example, (200, 100, 50) becomes 59.8 + 58.7 + 5.7 = 124.2, rounded to 124. For integers the
weights are thousandths, 299, 587 and 114, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Number, Plane, intrinsic, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import BenchDefaults, Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import Choice, ChoiceParameter

_PIXELS = 32  # pixels of a step of `grey_bytes`: a vector of results (AVX2)

_THREAD_BYTES = 16
"""Of each channel, of a thread of the tuned kernel: the most that is read and written at once."""


@kernel.plain
def serial_integer(source: Plane, output: Plane, less: Number, start: Index, stop: Index) -> None:
    """Exact: the weights are whole thousandths. See `integer_row`."""
    for y in range(start, stop):
        pixels = source[y]
        grey = output[y]
        for x in range(pixels.shape[0]):
            red = np.int64(pixels[x, 0])
            green = np.int64(pixels[x, 1])
            blue = np.int64(pixels[x, 2])
            total = 299 * red + 587 * green + 114 * blue
            grey[x, 0] = np.rint((total - less) / 1000)


@kernel.plain
def serial_float(source: Array, output: Array, less: Number, start: Index, stop: Index) -> None:
    """As `serial_integer`, in float64 and not rounded."""
    for y in range(start, stop):
        pixels = source[y]
        grey = output[y]
        for x in range(pixels.shape[0]):
            red = np.float64(pixels[x, 0])
            green = np.float64(pixels[x, 1])
            blue = np.float64(pixels[x, 2])
            grey[x, 0] = np.float32(0.299 * red + 0.587 * green + 0.114 * blue)


def _thousandths(builder: Any, pixels: Any) -> Any:
    """Return the weighted sums of eight pixels, the first four of each half of `pixels`.

    Products of red and green are added up in pairs, which is one instruction (pmaddwd).
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    short, whole = ir.IntType(16), ir.IntType(32)

    def shuffled(vector: Any, places: Sequence[int]) -> Any:
        mask = ir.Constant(ir.VectorType(whole, len(places)), list(places))
        return builder.shuffle_vector(
            vector, ir.Constant(vector.type, [0] * vector.type.count), mask
        )

    none = pixels.type.count
    places = [16 * half + 3 * pixel for half in range(2) for pixel in range(4)]
    red_green = shuffled(pixels, [x for place in places for x in (place, none, place + 1, none)])
    pairs = builder.bitcast(red_green, ir.VectorType(short, 16))
    pairs = builder.zext(pairs, ir.VectorType(whole, 16))
    pairs = builder.mul(pairs, ir.Constant(pairs.type, [299, 587] * 8))
    blue = shuffled(pixels, [x for place in places for x in (place + 2, none, none, none)])
    blue = builder.bitcast(blue, ir.VectorType(whole, 8))
    total = builder.mul(blue, ir.Constant(blue.type, [114] * 8))
    for channel in range(2):
        total = builder.add(total, shuffled(pairs, range(channel, 16, 2)))
    return total


@intrinsic
def grey_bytes(
    context: Any, builder: Any, types: Any, row: Any, grey: Any, count: Any, shift: Any
) -> None:
    """Convert `count` pixels of three bytes, a multiple of `_PIXELS` above 0.

    Reads up to four bytes beyond them. A sum of thousandths, times 0.001 in float32, is less than
    4e-5 wrong, whether it is rounded before the next sum or not. Added to 1024, where floats are
    2**-13 apart, it is rounded to a tie if it is one, and to none otherwise, since any other is
    1e-3 from a tie. Added to 2**23, it is rounded to whole numbers, ties to even, of which the
    lowest byte is the level. `shift` is 1024 for that, or 1024 - 0.4995 to round down. Written as
    LLVM code because LLVM's own vectors of every third byte take twice the time.
    """
    from llvmlite import ir

    byte, whole, real, intp = ir.IntType(8), ir.IntType(32), ir.FloatType(), count.type
    piece = ir.VectorType(byte, 16)

    def repeated(kind: Any, number: float) -> Any:
        return ir.Constant(ir.VectorType(kind, 8), [number] * 8)

    def shuffled(a: Any, b: Any, places: Sequence[int]) -> Any:
        mask = ir.Constant(ir.VectorType(whole, len(places)), list(places))
        return builder.shuffle_vector(a, b, mask)

    def eight(start: Any) -> Any:
        """Return the levels of eight pixels in the lowest bytes of as many numbers."""
        halves = [
            builder.load(
                builder.bitcast(builder.gep(start, [intp(first)]), piece.as_pointer()), align=1
            )
            for first in (0, 12)
        ]
        pixels = shuffled(halves[0], halves[1], range(32))
        total = _thousandths(builder, pixels)
        quotient = builder.sitofp(total, ir.VectorType(real, 8))
        thousandth = repeated(real, np.float32(0.001).item())
        quotient = builder.fmul(quotient, thousandth, flags=["contract"])
        quotient = builder.fadd(quotient, shifts, flags=["contract"])
        return builder.bitcast(builder.fadd(quotient, repeated(real, 2.0**23)), total.type)

    row = context.make_array(types[0])(context, builder, row).data
    grey = context.make_array(types[1])(context, builder, grey).data
    undefined = ir.Constant(ir.VectorType(real, 8), ir.Undefined)
    shifts = builder.insert_element(undefined, shift, whole(0))
    shifts = shuffled(shifts, undefined, [0] * 8)
    before = builder.block
    loop = builder.append_basic_block()
    after = builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    x = builder.phi(intp)
    x.add_incoming(intp(0), before)
    start = builder.gep(row, [builder.mul(x, intp(3))])
    parts = [eight(builder.gep(start, [intp(24 * part)])) for part in range(_PIXELS // 8)]
    while len(parts) > 1:
        length = range(2 * parts[0].type.count)
        parts = [shuffled(a, b, length) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    levels = builder.trunc(parts[0], ir.VectorType(byte, _PIXELS))
    target = builder.bitcast(builder.gep(grey, [x]), levels.type.as_pointer())
    builder.store(levels, target, align=1)
    following = builder.add(x, intp(_PIXELS))
    x.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
    builder.position_at_end(after)


@kernel
def parallel_bytes(source: Array, output: Plane, less: Number, start: Index, stop: Index) -> None:
    """Convert rows of flat `source`, three bytes a pixel."""
    width = output.shape[1]
    # The last pixels apart: `grey_bytes` would read beyond the end of the last row.
    count = max(0, width - 2) // _PIXELS * _PIXELS
    shift = np.float32(1024 - less / 1000)
    for y in range(start, stop):
        if count:
            grey_bytes(source[y], output[y], count, shift)
        integer_row(source[y, 3 * count :], 3, less, output[y, count:])


@kernel
def integer_row(row: Line, step: Index, less: Number, output: Array) -> None:
    """Convert a flat row with `step` samples per pixel, several pixels at a time.

    The sum of thousandths fits int32. Its float64 quotient ends in exactly .5 for a tie and
    is a thousandth away from that otherwise, so that ``rint`` rounds it right. `less` is 0, or
    499.5 to round down: of 0 to 999 thousandths that leaves -499.5 to 499.5.
    """
    for x in range(output.shape[0]):
        red = np.int32(row[step * x])
        green = np.int32(row[step * x + 1])
        blue = np.int32(row[step * x + 2])
        total = np.int32(299) * red + np.int32(587) * green + np.int32(114) * blue
        output[x, 0] = np.int32(np.rint((total - less) / 1000))


@kernel
def float_row(row: Line, step: Index, output: Array) -> None:
    """As `integer_row`, with the sum of `serial_float`."""
    for x in range(output.shape[0]):
        red = np.float64(row[step * x])
        green = np.float64(row[step * x + 1])
        blue = np.float64(row[step * x + 2])
        output[x, 0] = np.float32(0.299 * red + 0.587 * green + 0.114 * blue)


@kernel
def parallel_integer(
    source: Array, step: Index, output: Plane, less: Number, start: Index, stop: Index
) -> None:
    """Convert rows of flat `source`; a literal step lets the compiler vectorise its loads."""
    for y in range(start, stop):
        if step == 3:
            integer_row(source[y], 3, less, output[y])
        else:
            integer_row(source[y], 4, less, output[y])


@kernel
def parallel_float(
    source: Array, step: Index, output: Array, less: Number, start: Index, stop: Index
) -> None:
    for y in range(start, stop):
        if step == 3:
            float_row(source[y], 3, output[y])
        else:
            float_row(source[y], 4, output[y])


@kernel
def copy(source: Plane, output: Plane, start: Index, stop: Index) -> None:
    """A grey image stays as it is."""
    output[start:stop] = source[start:stop]


def output_channels(channels: int, parameters: Mapping[str, Any]) -> int:
    return channels if channels <= 2 else channels - 2


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output = task.source, task.output
    height, _, channels = source.shape
    less = 499.5 if task.parameters["rounding"] == "floor" else 0.0
    is_float = source.dtype == np.float32
    if channels <= 2:
        return [CpuPass(copy, (source, output), height)]
    if task.level == SERIAL.id:
        serial = serial_float if is_float else serial_integer
        return [CpuPass(serial, (source, output, less), height)]
    if source.dtype == np.uint8 and channels == 3:
        return [CpuPass(parallel_bytes, (source.reshape(height, -1), output, less), height)]
    parallel = parallel_float if is_float else parallel_integer
    return [CpuPass(parallel, (source.reshape(height, -1), channels, output, less), height)]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the grey of a band by NumPy."""
    source = task.source[start:stop]
    if source.shape[2] <= 2:
        return source
    wide = np.float64 if source.dtype.kind == "f" else np.int64
    total = source[..., :3].astype(wide) @ np.array((299, 587, 114), wide)
    down = wide is np.int64 and task.parameters["rounding"] == "floor"
    return uncompiled.finished(task, total // 1000 if down else total / 1000)[..., None]


def plan_cuda(task: CudaTask) -> Launch:
    down = int(task.parameters["rounding"] == "floor")
    if task.level != TUNED.id:
        return level_launch("greyscale", task, 0, operations=5, ROUND_DOWN=down)
    pixels = _THREAD_BYTES // task.dtype.itemsize
    launch = level_launch("greyscale", task, 0, operations=5, ROUND_DOWN=down, PIXELS=pixels)
    return replace(launch, tile=(pixels * launch.block[0], launch.block[1]))


_COLOURS = (
    ((255, 0, 0), (0, 255, 0), (0, 0, 255)),
    ((255, 255, 0), (200, 100, 50), (0, 255, 255)),
    ((255, 0, 255), (128, 128, 128), (255, 255, 255)),
)


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    red, green, blue = window.ravel().tolist()
    total = (299 * red + 587 * green + 114 * blue) / 1000
    return f"0.299·{red} + 0.587·{green} + 0.114·{blue} = {number(total)}"


SPEC = FilterSpec(
    id="greyscale",
    name="Greyscale",
    category="Colour",
    summary="Converts colour to grey with the weights of the eye (ITU-R BT.601).",
    synonyms=("grayscale", "black and white", "luminance", "monochrome"),
    source="ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B; rounded down: Korčuška 2013, section 5.1",
    parameters=(
        ChoiceParameter(
            name="rounding",
            label="Rounding",
            symbol="rounded",
            help="How whole numbers are rounded; “greyscale first” always takes the nearest.",
            default="nearest",
            choices=(
                Choice("nearest", "To nearest", "Ties go to the even value."),
                Choice("floor", "Down", "As Korčuška 2013 does: up to one level darker."),
            ),
            of_colours=True,
        ),
    ),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda,
            (GLOBAL, TUNED),
            {
                level.id: "Each pixel is read once: there is nothing to share or to cache."
                for level in (SINGLE_BLOCK, CONSTANT, SHARED, TEXTURE)
            },
        ),
    },
    output_channels=output_channels,
    bench=BenchDefaults(channels=3),
    explanation=Explanation(
        formula=r"Y = 0.299\, R + 0.587\, G + 0.114\, B",
        use="Before filters that need one channel only, and for pictures whose colours carry "
        "nothing: a grey picture takes a third of the memory and of the time.",
        avoid="Colours of equal brightness become the same grey, and an edge between them is lost.",
        example=Example(patch=_COLOURS, working=_working),
        sample="coffee.png",
    ),
)
