"""Blocks of threads as the user asks for them: ``16x16``."""

from __future__ import annotations

import re

import numpy as np

from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import planned
from kernelscope.schema.levels import TUNED
from kernelscope.schema.samples import Kind

Block = tuple[int, int]
"""Threads in x and y."""

LEAST_THREADS = 32
"""A warp: fewer threads leave lanes of it idle."""

MOST_THREADS = 1024
"""Of a block on every card, CUDA C++ Programming Guide, "Compute Capabilities"."""

USUAL_BLOCKS: tuple[Block, ...] = (
    *((8, 8), (16, 8), (16, 16), (32, 4), (32, 8), (32, 16), (32, 32)),
    *((64, 4), (128, 1), (256, 1), (512, 1)),
)
"""Blocks to offer: the squares of the sources, rows of whole warps, and single rows."""


def read_block(text: str) -> Block:
    """Read threads in x and y: ``16x16``, ``256x1``.

    Raises `InvalidParameter` if the text is something else, or no card has such blocks.
    """
    match = re.fullmatch(r"\s*(\d{1,4})\s*[x×*]\s*(\d{1,4})\s*", text, re.IGNORECASE)
    if match is None:
        raise InvalidParameter(f"“{text}” is no block of threads.", "Write one like 16x16.")
    return check_block((int(match[1]), int(match[2])))


def check_block(block: Block) -> Block:
    """Return `block` if a card can have it, or raise `InvalidParameter`."""
    threads = block[0] * block[1]
    if not LEAST_THREADS <= threads <= MOST_THREADS:
        raise InvalidParameter(
            f"A block of {block_name(block)} has {threads} threads.",
            f"Choose sides with a product of {LEAST_THREADS} to {MOST_THREADS}.",
        )
    return block


def block_name(block: tuple[int, ...]) -> str:
    """Return ``16×16``."""
    return "×".join(map(str, block))


def takes_block(spec: FilterSpec, level: str) -> bool:
    """Return whether the user may choose the blocks of a filter at a level of the GPU.

    The plan is asked: levels that depend on blocks of their own, as *tuned* does, keep them.
    """
    if level == TUNED.id or level not in [each.id for each in spec.levels(Device.GPU)]:
        return False
    asked = (16, 4)  # no plan chooses this by itself
    shape = (8, 8, 8, 1) if spec.kind is Kind.VOLUME else (8, 8, 1)
    dtype = np.dtype(np.float32 if spec.kind is Kind.VOLUME else np.uint8)
    _, plan = planned(spec, shape, dtype, spec.defaults(), spec.borders[0], level, asked)
    return any(launch.block[:2] == asked for launch in plan.launches)
