"""The blocks in which a lazy source is computed within a given memory, in the order of the file.

Blocks are as flat as they can be: whole rows of a picture, whole slices of a volume, since those
lie together in files. Where a few rows would need a large halo, rows are split as well::

    picture             volume            wide picture, small memory
    +-----------+       +-----------+     +---+---+---+
    |     1     |       | slices    |     | 1 | 2 | 3 |
    +-----------+       |   0 to 7  |     +---+---+---+
    |     2     |       +-----------+     | 4 | 5 | 6 |
    +-----------+                         +---+---+---+
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from kernelscope.base.errors import OutOfMemory
from kernelscope.files.lazy import LazySource, Sides
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

AT_ONCE = 2
"""Blocks that are read and computed at the same time: while one waits for the disk, the other has
the processor."""

_FEWEST = 16
"""Blocks of a large source, so that reading and writing overlap, even if more memory is there."""

_ENOUGH = 32 << 20
"""Bytes of a block that is not cut further for that: below, opening and closing it counts."""

_ALIKE = 0.8
"""A block of this part of the best ratio of results to memory is preferred if it is flatter."""


def plan(source: LazySource, budget: float, grain: Sides = (1, 1, 1)) -> list[Box]:
    """Return boxes that cover a source, in the order of their samples.

    `budget`: bytes that `AT_ONCE` blocks may take together, with their results. `grain`: sides of
    the parts in which results are stored; blocks have multiples of them where the budget allows.
    """
    return list(cut(source.shape, _sides(source, budget, grain)))


def cut(shape: Sides, sides: Sides) -> Iterator[Box]:
    """Yield boxes of up to `sides` that cover `shape`, the last axis fastest."""
    starts = (range(0, side, step) for side, step in zip(shape, sides, strict=True))
    for z, y, x in itertools.product(*starts):
        ends = zip(shape, (z, y, x), sides, strict=True)
        depth, height, width = (min(step, side - start) for side, start, step in ends)
        yield Box((z, y, x), (depth, height, width))


def needed(source: LazySource, box: Box) -> int:
    """Return the bytes that `AT_ONCE` blocks like this take, one more of which is written."""
    result = box.pixels * source.dtype.itemsize
    return AT_ONCE * source.working_bytes(box) + 2 * result


def _sides(source: LazySource, budget: float, grain: Sides) -> Sides:
    found: list[tuple[bool, float, Sides]] = []
    step = min(max(grain[0], source.grain[0]), source.shape[0])
    least = math.inf
    for rest in _splits(source, grain):
        least = min(least, needed(source, _middle(source.shape, (1, *rest))))

        def fits(count: int, rest: tuple[int, int] = rest) -> bool:
            return needed(source, _middle(source.shape, (count, *rest))) <= budget

        count = _largest(fits, max(step, _most(source, rest)), step)
        if count:
            box = _middle(source.shape, (count, *rest))
            ratio = box.pixels / source.working_bytes(box)
            found.append((count >= step, ratio, box.sides))
    if not found:
        left = max(budget, 0) / 2**20
        raise OutOfMemory(
            f"There is not enough memory to filter {source.title} in blocks: the smallest takes "
            f"{math.ceil(least / 2**20)} MiB, and {left:.0f} MiB are left for them.",
            "Allow more memory, or choose a smaller mask.",
        )
    aligned = [each for each in found if each[0]] or found
    best = max(ratio for _, ratio, _ in aligned)
    return next(sides for _, ratio, sides in aligned if ratio >= _ALIKE * best)


def _splits(source: LazySource, grain: Sides) -> Iterator[tuple[int, int]]:
    _, second, third = source.shape
    thirds = [third] if source.kind is Kind.PICTURE else list(_halved(third, grain[2]))
    pairs = [(a, b) for a in _halved(second, grain[1]) for b in thirds]
    return iter(sorted(pairs, key=lambda pair: (-pair[0] * pair[1], -pair[1])))


def _halved(side: int, grain: int) -> Iterator[int]:
    """Yield a side, and ever smaller parts of it, in multiples of `grain` while that is smaller."""
    while True:
        yield side
        if side == 1:
            return
        half = -(-side // 2)
        side = -(-half // grain) * grain if half > grain else half


def _most(source: LazySource, rest: tuple[int, int]) -> int:
    """Return the largest first side of blocks, of which there should be a few."""
    first = source.shape[0]
    row = rest[0] * rest[1] * source.dtype.itemsize
    blocks = _FEWEST / max(1, math.prod(source.shape[1:]) // math.prod(rest))
    return max(1, min(first, max(math.ceil(first / max(1, blocks)), _ENOUGH // row)))


def _middle(shape: Sides, sides: Sides) -> Box:
    """Return a box in the middle of a source, where halos have their full size."""
    z, y, x = ((whole - part) // 2 for whole, part in zip(shape, sides, strict=True))
    return Box((z, y, x), sides)


def _largest(fits: Callable[[int], bool], most: int, grain: int) -> int:
    """Return the largest count up to `most` that fits: that, or a multiple of `grain`, if any."""
    low, high = 0, most
    while low < high:
        middle = -(-(low + high) // 2)
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low // grain * grain if grain < low < most else low
