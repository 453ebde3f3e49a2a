"""Cuts long launches into pieces, so that the display and Cancel never wait long.

A launch is a number of rows, each of which takes a number of steps of the kernel's outer loop. Its
first piece is small enough for any card; the time of each piece decides the size of the next::

    rows   0 ┌───────┬───────┬──────────────
             │ pilot │ piece │ piece …         first all rows of a step, in pieces of whole tiles,
           n └───────┴───────┴──────────────   then several steps of all rows at once
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from kernelscope.schema.launch import Launch

LAUNCH_SECONDS = 0.05
"""No launch should take longer: the display's watchdog and Cancel wait for it."""

PILOT_OPERATIONS = 2e9
"""Work of a launch that takes well under `LAUNCH_SECONDS` on any supported card."""

MOST_BLOCKS = 65_535
"""Of a grid along y or z, on every card."""


@dataclass(frozen=True)
class Piece:
    """Output rows ``start <= y < stop``, and steps of the kernel's outer loop, of a launch."""

    start: int
    stop: int
    first_step: int
    last_step: int

    @property
    def units(self) -> int:
        return (self.stop - self.start) * (self.last_step - self.first_step)


class Pacer:
    """Cuts a launch into pieces of about half of `LAUNCH_SECONDS`.

    The first piece has the `units` that an earlier run of the same launch found out, or is small
    enough for any card; its time decides about the others, also those of later repeats and slabs.
    Its unit is a step of one row. A piece has more than one step only if there is time for all
    rows, so that it has as many blocks as can be: those of a grid.
    """

    def __init__(
        self, launch: Launch, operations_per_row: float, units: float | None = None
    ) -> None:
        self._tile = launch.tile[-1] if launch.tile else 1
        self._most = MOST_BLOCKS * self._tile if launch.tile else sys.maxsize
        self._steps = max(launch.steps, 1)
        self._at_once = launch.steps_at_once or self._steps
        if units is None:
            units = PILOT_OPERATIONS / max(operations_per_row / self._steps, 1)
            units = units if launch.tile else units / 64  # one block uses a fraction of the card
        self.units = units

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """Yield the launches that together cover rows `first` to `last` and all steps."""
        step = 0
        while step < self._steps:
            count = int(self.units) // (last - first)
            after = step + max(1, min(count, self._at_once, self._steps - step))
            start = first
            while start < last:
                whole_tiles = int(self.units) // self._tile * self._tile
                stop = last if count else min(start + max(whole_tiles, self._tile), last)
                stop = min(stop, start + self._most)
                yield Piece(start, stop, step, after)
                start = stop
            step = after

    def is_one_piece(self, rows: int, seconds: float) -> bool:
        """Return whether some rows and all steps are one piece that should take no longer."""
        is_short = rows * self._steps * LAUNCH_SECONDS / 2 <= seconds * self.units
        return is_short and rows <= self._most and self._steps <= self._at_once

    def learn(self, units: int, seconds: float) -> None:
        """Note how long a launch of `units` took, unless it was but a remainder."""
        if 2 * units >= self.units:
            self.units = units * LAUNCH_SECONDS / 2 / max(seconds, 1e-6)
