"""Negative: the least arithmetic there is, so that only the way through memory counts.

    result = white - u

For example, 200 becomes 255 - 200 = 55.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from kernelscope.base.jit import Index, Number, Plane, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.teaching import GAPS, TeachingSpec
from kernelscope.schema.explanation import EDGE, Cells, Example, Explanation
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, Unit
from kernelscope.schema.launch import Cuda, CudaTask, Launch
from kernelscope.schema.levels import GLOBAL, SHARED, SINGLE_BLOCK, TUNED, Level
from kernelscope.schema.samples import white_level

MAPPED = Level(
    "mapped",
    "Mapped host memory",
    "The picture stays in the computer's memory: each read and write crosses the bus.",
    why="The bus between computer and card is far slower than the memory of the card, and here "
    "every sample crosses it twice within the time of the kernel.",
    source="Source F, section 3.4.",
)
UNCOALESCED = Level(
    "uncoalesced",
    "Uncoalesced",
    "Each thread takes neighbouring samples, so that the threads of a warp read far apart.",
    why="Each transaction with the memory brings 32 neighbouring bytes, of which a thread uses one "
    "sample at a time: a warp needs many transactions where one or a few would do.",
    source="Source F, section 3.4.",
    access="apart",
)
LOCAL = Level(
    "local",
    "Local memory",
    "Samples go through an array of each thread that registers cannot hold.",
    why="An array with an index that is known only at run time lies in local memory, which is "
    "memory of the card: each sample is written and read once more, though mostly in the caches.",
    source="Source F, section 3.4.",
    access="local",
)

BLOCK = (32, 8)  # threads of a block: a warp a row
CELLS = 16  # samples of each thread


@kernel
def negative(source: Plane, output: Plane, white: Number, start: Index, stop: Index) -> None:
    pitch = source.shape[1] * source.shape[2]
    cells = source.reshape(source.size)[start * pitch : stop * pitch]
    results = output.reshape(output.size)[start * pitch : stop * pitch]
    for x in range(results.size):
        results[x] = white - cells[x]


def _white(task: CpuTask) -> Any:
    return task.source.dtype.type(white_level(task.source.dtype))


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    arguments = task.source, task.output, _white(task)
    return [CpuPass(negative, arguments, task.output.shape[0])]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the negative of a band by NumPy."""
    made: NDArray[Any] = _white(task) - task.source[start:stop]
    return made


def plan_cuda(task: CudaTask) -> Launch:
    channels = task.shape[2]
    pixels = BLOCK[0] * CELLS // channels
    return Launch(
        kernel=f"negative_{task.level}",
        defines=task.defines(CELLS=CELLS, BLOCK_SAMPLES=pixels * channels),
        block=BLOCK,
        tile=(pixels, BLOCK[1]),
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=1.0,
        mapped=task.level == MAPPED.id,
    )


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    sample = int(window[0, 0])
    return f"255 − {sample} = {255 - sample}"


SPEC = TeachingSpec(
    id="negative",
    name="Negative",
    summary="Turns bright into dark: so little work that only the way through memory counts.",
    synonyms=("invert", "inverse"),
    source="Korčuška 2013, section 3.4: coalesced access, local and mapped memory",
    unit=Unit.LEVELS,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda,
            (MAPPED, LOCAL, UNCOALESCED, GLOBAL),
            GAPS
            | {
                SINGLE_BLOCK.id: "This filter compares kinds of access on all multiprocessors.",
                SHARED.id: "Each sample is read once: there is nothing to share.",
                TUNED.id: "This filter compares ways to the memory, and nothing else.",
            },
        ),
    },
    explanation=Explanation(
        formula=r"g = 1 - u",
        use="To compare ways through the memory: there is hardly any arithmetic beside them.",
        avoid="It is meant for teaching; it does not remove noise.",
        example=Example(patch=EDGE, working=_working),
    ),
)
