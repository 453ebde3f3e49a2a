"""Levels: ways of computing the same result, from a plain loop to all of the hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelscope.schema.devices import Device


@dataclass(frozen=True)
class Level:
    """One way of computing a filter: how much of the hardware it may use."""

    id: str
    name: str
    help: str
    exact: bool = True
    """False for a level that demonstrates a fault: its result is wrong and may differ between
    runs."""
    single: bool = False
    """Whether a level of the CPU runs on one thread."""
    why: str = ""
    """The reason for its time, for the page of the level."""
    source: str = ""
    """Where it is described."""
    access: str = "row"
    """How the threads of a warp read: ``"row"``, neighbouring samples; ``"apart"``, samples that
    lie apart; ``"local"``, through memory of each thread."""

    def on(self, device: str) -> str:
        """Return the name behind that of a device: ``GPU shared memory``."""
        return f"{device} {self.name[0].lower()}{self.name[1:]}"


SERIAL = Level(
    "serial",
    "Serial",
    "One thread, plain loops: the baseline to compare with.",
    single=True,
    why="The loops are those of a textbook, and the compiler may not use vector instructions: one "
    "core computes one sample at a time. The caches of the core still serve the cells that "
    "neighbouring pixels share.",
    source="Sources F, M, N and V compare their GPUs with such a program.",
)
PARALLEL = Level(
    "parallel",
    "Parallel",
    "All cores, vectorised: as fast as the CPU goes.",
    why="The rows are divided into bands, and all cores take bands until none is left. Within a "
    "band, vector instructions compute several samples at once, and averages keep their sums "
    "from one row to the next instead of adding up each mask again.",
    source="None of the four sources has it: their figures of a processor are those of one thread.",
)
CPU_LEVELS = (SERIAL, PARALLEL)

SINGLE_BLOCK = Level(
    "single-block",
    "Single block",
    "One block of threads strides over the whole image.",
    why="A block runs on one multiprocessor, and the others of the card are idle. It is the "
    "smallest change from serial code: the loop over the pixels starts at the number of the "
    "thread and steps by the number of threads.",
    source="Source M measures it for the mean; source V teaches with it (chapter 3).",
)
GLOBAL = Level(
    "global",
    "Global memory",
    "Many blocks; image and mask come from global memory.",
    why="The image is divided into tiles, a block each, so that all multiprocessors work. The "
    "threads of a warp read neighbouring samples, which the hardware combines into a few wide "
    "transactions. Caches serve most of the cells that neighbouring pixels share.",
    source="Sources F, M and N.",
)
CONSTANT = Level(
    "constant",
    "Constant memory",
    "The mask sits in constant memory.",
    why="All threads of a warp need the same weight at the same time. Constant memory has a cache "
    "of its own, which hands one value to the whole warp in one step. Large masks gain most, "
    "because half of all their reads are weights.",
    source="Source F, for custom masks.",
)
SHARED = Level(
    "shared",
    "Shared memory",
    "Constant mask; each block keeps its image tile in shared memory.",
    why="The block copies its tile and the halo around it to memory on the chip and waits at a "
    "barrier; every later read is served from there. That pays where a sample is used often, "
    "with large masks. For a small mask the caches do as much without the copy and the barrier.",
    source="Sources F, M, N and V.",
)
TEXTURE = Level(
    "texture",
    "Texture",
    "The image is read through a texture object.",
    why="The texture unit has a cache for neighbourhoods in two dimensions, and treats coordinates "
    "outside the image by itself, so that the kernel needs no branches for borders that the "
    "unit knows. It delivers fewer samples a second than the other memories.",
    source="Source M, for the mean.",
)
TUNED = Level(
    "tuned",
    "Tuned",
    "Whatever makes this filter fastest on the card.",
    why="No rule about memory applies: a thread computes several pixels, sums are shared between "
    "neighbours, values stay in registers. Small pictures use the kernel of another level, "
    "because they have too few pixels to keep a card busy that way.",
    source="None of the four sources: the files of the kernels explain it where they begin.",
)
GPU_LEVELS = (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)
"""The levels that are compared for every filter; a filter may also have its own levels."""

USUAL_LEVELS: Mapping[str, tuple[Level, ...]] = {Device.CPU: CPU_LEVELS, Device.GPU: GPU_LEVELS}
"""The levels to compare on each kind of device, by the id of its backend."""
