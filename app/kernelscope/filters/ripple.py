"""Ripple: a pattern that comes from arithmetic alone; nothing of the picture but its size.

    result = 1/2 + 5 cos(r / 10 - tick / 7) / (r + 10), where white is 1

at the distance r from the middle. With tick 0 the middle is 1/2 + 5 / 10 = 1, white, and the first
dark ring, at r = 10 pi, is 1/2 - 5 / 41.4 = 0.38.

Mathematics libraries differ in the last bits of a cosine, and 16 bits show it. So the cosine is
a polynomial, in float32 like all of the arithmetic here, and of operations that are rounded to
nearest everywhere: processors and cards give the same bytes if they take the same steps in the
same order, without multiply-adds that round once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Line, Number, Plane, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.teaching import GAPS, TeachingSpec
from kernelscope.schema.crop import Crop
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, Unit
from kernelscope.schema.launch import Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import IntParameter
from kernelscope.schema.samples import white_level

SINE = (6.28318516, -41.34165503, 81.60100407, -76.54978232, 39.53670623)
"""Factors of v, v³, ... v⁹ that make sin(2 pi v): off by 3.4e-9 at most for |v| <= 1/4, the
least that five can do."""


def wave(tick: int) -> NDArray[np.float32]:
    """Return turns a pixel, the part of a turn that `tick` has moved the rings, and `SINE`."""
    turn = 2 * math.pi
    return np.array([1 / (10 * turn), tick / (7 * turn) % 1, *SINE], np.float32)


@kernel
def brightness(x: Index, y: Index, width: Index, height: Index, wave: Line) -> Any:
    """Return the ripple at (y, x) as a fraction of white; `wave` is as that function has it."""
    half = np.float32(0.5)
    across = np.float32(x) - half * np.float32(width - 1)
    down = np.float32(y) - half * np.float32(height - 1)
    distance = np.sqrt(across * across + down * down)
    turns = distance * wave[0] - wave[1]
    v = np.float32(0.25) - abs(turns - np.rint(turns))  # the cosine is the sine of this
    square = v * v
    sine = wave[6]
    for i in range(5, 1, -1):
        sine = sine * square + wave[i]
    return half + np.float32(5) * (sine * v) / (distance + np.float32(10))


@kernel
def ripple(output: Plane, white: Number, wave: Line, start: Index, stop: Index) -> None:
    height, width, channels = output.shape
    for y in range(start, stop):
        for x in range(width):
            value = white * brightness(x, y, width, height, wave)
            if output.dtype.type(0.5) == 0:  # integers: the compiler knows
                value = np.rint(value)
            for c in range(channels):
                output[y, x, c] = value


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    output, white = task.output, np.float32(white_level(task.output.dtype))
    arguments = output, white, wave(task.parameters["tick"])
    return [CpuPass(ripple, arguments, output.shape[0])]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return rows by NumPy."""
    height, width, channels = task.output.shape
    y, x = np.arange(start, stop, dtype=np.float32)[:, None], np.arange(width, dtype=np.float32)
    values = brightness.function(x, y, width, height, wave(task.parameters["tick"]))
    if task.output.dtype.kind != "f":
        values = np.rint(np.float32(white_level(task.output.dtype)) * values)
    return np.broadcast_to(values[..., None], (*values.shape, channels))


def plan_cuda(task: CudaTask) -> Launch:
    return level_launch("ripple", task, 0, operations=30, tables=(wave(task.parameters["tick"]),))


SPEC = TeachingSpec(
    id="ripple",
    name="Ripple",
    summary="Draws a ripple of the picture's size: arithmetic alone, nothing to read.",
    synonyms=("wave", "pattern"),
    source="Salari 2019, chapter 3: a ripple, a thread for each pixel",
    crop=Crop(whole="its pattern depends on the size of the picture"),
    parameters=(
        IntParameter(
            name="tick",
            label="Tick",
            help="Each step moves the ripple outwards by a seventh of a radian.",
            default=0,
            minimum=0,
            maximum=1000,
            slider=(0, 100),
        ),
    ),
    unit=Unit.WHITE,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda,
            (SINGLE_BLOCK, GLOBAL),
            GAPS
            | {
                SHARED.id: "Nothing is read, so there is nothing to share.",
                TEXTURE.id: "Nothing is read, so there is nothing to cache.",
                TUNED.id: "Arithmetic sets the pace: level global keeps all units busy.",
            },
        ),
    },
    explanation=Explanation(
        formula=r"g = \frac{1}{2} + \frac{5 \cos(r / 10 - \tau / 7)}{r + 10}",
        use="To see how fast a card computes where nothing is read.",
        avoid="It is for teaching; nothing of the picture but its size has an effect.",
        example=Example(patch=EDGE),
    ),
)
