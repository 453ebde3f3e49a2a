"""Levels: ways of computing the same result, from a plain loop to all of the hardware."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """One way of computing a filter: how much of the hardware it may use.

    Attributes
    ----------
    exact : bool
        False for a level that demonstrates a fault: its result is wrong and may differ between
        runs.
    single : bool
        Whether a level of the CPU runs on one thread.
    """

    id: str
    name: str
    help: str
    exact: bool = True
    single: bool = False


SERIAL = Level(
    "serial", "Serial", "One thread, plain loops: the baseline to compare with.", single=True
)
PARALLEL = Level("parallel", "Parallel", "All cores, vectorised: as fast as the CPU goes.")
CPU_LEVELS = (SERIAL, PARALLEL)

SINGLE_BLOCK = Level(
    "single-block", "Single block", "One block of threads strides over the whole image."
)
GLOBAL = Level("global", "Global memory", "Many blocks; image and mask come from global memory.")
CONSTANT = Level("constant", "Constant memory", "The mask sits in constant memory.")
SHARED = Level(
    "shared", "Shared memory", "Constant mask; each block keeps its image tile in shared memory."
)
TEXTURE = Level("texture", "Texture", "The image is read through a texture object.")
TUNED = Level("tuned", "Tuned", "Whatever makes this filter fastest on the card.")
GPU_LEVELS = (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)
"""The levels that are compared for every filter; a filter may also have its own levels."""

USUAL_LEVELS = {"cpu": CPU_LEVELS, "gpu": GPU_LEVELS}
"""The levels to compare on each kind of device, by the id of its backend."""
