"""Level *parallel* with a window search: tiles of the result, each with all offsets of its window.

A unit of work is a tile. As every weight counts both ways, half the offsets do: those downwards,
and those to the right within the row. The pairs of a tile are the ones with the pixel or its
partner in it, so sums are kept for the surroundings of the tile too:

    +-----------------+
    | surroundings,   |      p   pixel outside the tile, whose partner
    |   p---+-----+   |          q, dy rows below and dx columns to the right, lies in it:
    |   | `-q     |   |          the pair counts for q; its part in the sums of p is dropped,
    |   |  tile   |   |          because p has its own tile
    |   +---------+   |
    +-----------------+
"""

from __future__ import annotations

import numpy as np

from kernelscope.filters.nlm.pairs import (
    VECTOR,
    WIDEST,
    Tile,
    add_pairs,
    add_tile,
    make_scratch,
)
from kernelscope.filters.nlm.search import Rectangle, spanned, tile_at, with_partners_in
from kernelscope.jit import Array, Index, Record, kernel

ROWS = 32
"""Rows of a tile, or the search radius if that is more.

The level-2 cache has room for a few more; a lower tile would share fewer weights.
"""

OFFSETS = 512
"""Most offsets in a unit of work, which has to end well within a second."""


@kernel
def nlm_window(
    extended: Array,
    sums: Record,
    metric: Record,
    search: Record,
    tall: Index,
    dys: Record,
    start: Index,
    stop: Index,
) -> None:
    """Search windows from one vertical offset of `dys` up to the other, both at least 0.

    A unit is a tile of `tall` rows and a group of channels.
    """
    colours, height, width = sums.samples.shape
    margin, reach, edge = search
    groups = colours // metric.group
    inside = Rectangle(edge, edge, height + 2 * (margin - edge), width + 2 * (margin - edge))
    scratch = make_scratch(len(metric.profile))
    room = (tall + 2 * reach, min(width, WIDEST) + 2 * reach + VECTOR)
    local = np.empty((metric.group + 1, *room), np.float32)
    for unit in range(start, stop):
        first = unit % groups * metric.group
        planes = extended[first : first + metric.group]
        pixels = tile_at(unit // groups, (tall, WIDEST), margin, (height, width))
        tile = Tile(local, pixels.y - reach, pixels.x - reach)
        local[:] = 0
        for dy in range(dys[0], dys[1]):
            for dx in range(-reach if dy else 1, reach + 1):
                # Pixel or partner is in the tile, and both may be candidates.
                near = with_partners_in(spanned(pixels, dy, dx), inside, 0, 0)
                near = with_partners_in(near, inside, dy, dx)
                if near.rows > 0 and near.columns > 0:
                    add_pairs(planes, near, (dy, dx), tile, tile, metric, scratch)
        add_tile(tile, pixels, sums, first, margin)
