"""Level *parallel* with a search of the whole image: tiles meet in turns, as in a tournament.

Every pair of tiles has to meet once, and since every weight counts both ways, no two threads may
add to the same tile at a time. In turn t, the tiles meet whose numbers add up to t, modulo the
number of tiles; with four tiles:

    turn 0    0-0  1-3  2-2
    turn 1    0-1  2-3
    turn 2    0-2  1-1  3-3
    turn 3    0-3  1-2

Each tile meets one tile in a turn, which may be itself, and all of them in as many turns.
"""

from __future__ import annotations

import numpy as np

from kernelscope.base.jit import Array, Index, Record, kernel
from kernelscope.filters.nlm.pairs import (
    VECTOR,
    WIDEST,
    PairTile,
    add_pairs,
    add_tile,
    make_scratch,
)
from kernelscope.filters.nlm.search import tile_at, with_partners_in

ROWS = 16
"""Rows of a tile."""

SHARES = 4
"""Units of work for each meeting of two tiles, so that a run can be cancelled soon."""


@kernel
def nlm_image(
    extended: Array,
    sums: Record,
    metric: Record,
    margin: Index,
    turn: Index,
    share: Index,
    start: Index,
    stop: Index,
) -> None:
    """Let tiles meet whose numbers add up to `turn`, modulo the number of tiles.

    Of the vertical offsets of two tiles it is every `SHARES`-th, from number `share` on.
    """
    colours, height, width = sums.samples.shape
    groups = colours // metric.group
    size, shape = (ROWS, WIDEST), (height, width)
    tiles = -(-height // ROWS) * -(-width // WIDEST)
    scratch = make_scratch(metric.side)
    own = np.empty((metric.group + 1, ROWS, min(width, WIDEST) + VECTOR), np.float32)
    others = np.empty_like(own)
    for unit in range(start, stop):
        first = unit % groups * metric.group
        planes = extended[first : first + metric.group]
        number = unit // groups
        partner = (turn - number) % tiles
        if partner < number:
            continue
        pixels = tile_at(number, size, margin, shape)
        partners = tile_at(partner, size, margin, shape)
        tile, other = PairTile(own, pixels.y, pixels.x), PairTile(others, partners.y, partners.x)
        own[:] = 0
        others[:] = 0
        down, right = partners.y - pixels.y, partners.x - pixels.x
        for dy in range(down - pixels.rows + 1 + share, down + partners.rows, SHARES):
            for dx in range(right - pixels.columns + 1, right + partners.columns):
                if number == partner and (dy < 0 or (dy == 0 and dx <= 0)):
                    continue  # the other half of the offsets counts both ways
                near = with_partners_in(pixels, partners, dy, dx)
                add_pairs(planes, near, (dy, dx), tile, other, metric, scratch)
        add_tile(tile, pixels, sums, first, margin)
        add_tile(other, partners, sums, first, margin)
