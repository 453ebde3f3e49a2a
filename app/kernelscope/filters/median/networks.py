"""Selection networks: whole rows of medians from nothing but minima and maxima.

A network is written down as if for one pixel, in terms of *lanes*: a lane is one value per pixel
of a row, and ``lane.moved(1)`` is the same value at the pixel to the right. Two things make it
small. Equal operations get the same node, so that overlapping windows share their work; and
operations that no result depends on are never emitted.

For 3x3, the windows of two output rows share the input rows 1 and 2. Loop 1 sorts these two in
each column, and three neighbours in each of the rows 0 and 3. Loop 2 merges three columns of the
shared rows (v15 to v30; values that can no longer be a median are dropped) and lets row 0 decide
which of them is the upper median, v36, and row 3 which is the lower one, v42. ``sort`` is a
minimum and a maximum:

    loop 1: 0 <= x < width + 2
        v1, v2 = sort(row1[x], row2[x])
        v3, v4 = sort(row0[x], row0[x+1])
        v5, v6 = sort(row0[x+2], v3[x])
        v7, v8 = sort(v4[x], v6[x])
        v9, v10 = sort(row3[x], row3[x+1])
        v11, v12 = sort(row3[x+2], v9[x])
        v13, v14 = sort(v10[x], v12[x])
        keep v1, v2, v5, v7, v8, v11, v13, v14
    loop 2: 0 <= x < width
        v15, v16 = sort(v1[x], v1[x+1])
        v17, v18 = sort(v2[x], v2[x+1])
        v19, v20 = sort(v16[x], v17[x])
        v21 = max(v1[x+2], v15[x])
        v22, v23 = sort(v20[x], v21[x])
        v24, v25 = sort(v2[x+2], v19[x])
        v26 = min(v18[x], v25[x])
        v27, v28 = sort(v22[x], v24[x])
        v29, v30 = sort(v23[x], v26[x])
        v31 = max(v27[x], v5[x])
        v32 = min(v29[x], v8[x])
        v33 = max(v31[x], v32[x])
        v34 = max(v28[x], v7[x])
        v35 = min(v30[x], v34[x])
        v36 = min(v33[x], v35[x])
        v37 = max(v27[x], v11[x])
        v38 = min(v29[x], v14[x])
        v39 = max(v37[x], v38[x])
        v40 = max(v28[x], v13[x])
        v41 = min(v30[x], v40[x])
        v42 = min(v39[x], v41[x])
        keep v36, v42
    medians: v36, v42

That is 21 operations for each median. A network for a single window of 3x3, which shares nothing,
exchanges 19 pairs, at two operations each.

Sources: K. E. Batcher, Sorting networks and their applications, 1968 (odd-even merge);
A. Adams, Fast median filters using separable sorting networks, 2021 (shared columns and rows).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class ShiftedValue(NamedTuple):
    """The value of `node`, `shift` pixels to the right."""

    node: int
    shift: int = 0

    def moved(self, shift: int) -> ShiftedValue:
        return ShiftedValue(self.node, self.shift + shift)


class Operation(NamedTuple):
    """The smaller or the larger of two lanes."""

    larger: bool
    a: ShiftedValue
    b: ShiftedValue


class RowLoop(NamedTuple):
    """One loop over a row."""

    operations: dict[int, Operation]  # the operations, by node and in order
    reads: tuple[ShiftedValue, ...]  # lanes that are loaded from memory
    writes: tuple[int, ...]  # the nodes that go to memory
    reach: int  # how many pixels beyond the last output pixel the loop has to go


@dataclass(frozen=True)
class Program:
    """A network as a few loops, each of which keeps as many values in registers as it can."""

    stages: tuple[RowLoop, ...]
    """The loops, in order. No loop reads its own results."""
    places: dict[int, int]
    """Place in memory, from 0, of each node that needs one; the input rows come first."""
    results: tuple[int, ...]  # places of the results


class Network:
    """Collects operations on lanes; nodes 0 to ``inputs - 1`` are the input rows."""

    def __init__(self, inputs: int) -> None:
        self.inputs = [ShiftedValue(node) for node in range(inputs)]
        self._operations: dict[int, Operation] = {}
        self._known: dict[Operation, int] = {}

    def compare(self, a: ShiftedValue, b: ShiftedValue) -> tuple[ShiftedValue, ShiftedValue]:
        """Return the smaller and the larger of two lanes."""
        a, b = sorted((a, b))
        shift = min(a.shift, b.shift)
        a, b = a.moved(-shift), b.moved(-shift)
        return ShiftedValue(self._node(False, a, b), shift), ShiftedValue(
            self._node(True, a, b), shift
        )

    def _node(self, larger: bool, a: ShiftedValue, b: ShiftedValue) -> int:
        operation = Operation(larger, a, b)
        if operation not in self._known:
            node = len(self.inputs) + len(self._operations)
            self._known[operation] = node
            self._operations[node] = operation
        return self._known[operation]

    def merge(self, a: Sequence[ShiftedValue], b: Sequence[ShiftedValue]) -> list[ShiftedValue]:
        """Return two sorted sequences as one (Batcher's odd-even merge)."""
        if not a or not b:
            return [*a, *b]
        if len(a) == len(b) == 1:
            return [*self.compare(a[0], b[0])]
        even = self.merge(a[0::2], b[0::2])
        odd = self.merge(a[1::2], b[1::2])
        merged = even[:1]
        for left, right in zip(odd, even[1:], strict=False):
            merged += self.compare(left, right)
        paired = len(merged) // 2
        return merged + odd[paired:] + even[paired + 1 :]

    def sort(self, lanes: Sequence[ShiftedValue]) -> list[ShiftedValue]:
        """Return lanes in ascending order (Batcher's merge sort)."""
        if len(lanes) <= 1:
            return [*lanes]
        half = len(lanes) // 2
        return self.merge(self.sort(lanes[:half]), self.sort(lanes[half:]))

    def select(
        self, a: Sequence[ShiftedValue], b: Sequence[ShiftedValue], rank: int, spare: int
    ) -> tuple[list[ShiftedValue], int]:
        """Merge two sorted sequences, of which only the lane of one rank is wanted in the end.

        `rank` is that of the wanted lane, from 0, once `spare` more lanes have been merged. Returns
        the merged lanes that can still become the wanted one, and its rank when `spare` more have
        been merged with those.
        """
        lowest = max(0, rank - spare)
        drop_a = max(0, lowest - len(b))
        drop_b = max(0, lowest - len(a))
        merged = self.merge(a[drop_a : rank + 1], b[drop_b : rank + 1])
        dropped = drop_a + drop_b
        return merged[lowest - dropped : rank + 1 - dropped], rank - lowest

    def slide(self, column: Sequence[ShiftedValue], width: int) -> list[ShiftedValue]:
        """Return `width` neighbouring sorted columns as one sorted sequence."""
        return self.merge(*self.halves(column, width)) if width > 1 else [*column]

    def halves(
        self, column: Sequence[ShiftedValue], width: int
    ) -> tuple[list[ShiftedValue], list[ShiftedValue]]:
        """Return `width` neighbouring sorted columns as two sorted sequences.

        Equal halves are the same lanes at another shift, so the second one costs nothing.
        """
        left = width // 2 if width % 2 == 0 else width - 1
        right = self.slide(column, width - left)
        return self.slide(column, left), [lane.moved(left) for lane in right]

    def program(self, results: Sequence[ShiftedValue]) -> Program:
        """Return the loops that compute `results`."""
        reach = self._reach(results)
        stage_of = dict.fromkeys(range(len(self.inputs)), 0)
        stored = {*stage_of, *(lane.node for lane in results)}
        stages: list[dict[int, Operation]] = []
        for node, operation in self._operations.items():
            if node not in reach:
                continue
            _, *lanes = operation
            # Whatever is read at a shift has to be complete: made by an earlier loop.
            stage = max(
                stage_of[lane.node] + (lane.shift > 0 and lane.node in self._operations)
                for lane in lanes
            )
            stored.update(lane.node for lane in lanes if stage_of[lane.node] < stage)
            stage_of[node] = stage
            if stage == len(stages):
                stages.append({})
            stages[stage][node] = operation
        places = {node: place for place, node in enumerate(sorted(stored))}
        return Program(
            tuple(
                RowLoop(
                    operations,
                    tuple(
                        dict.fromkeys(
                            lane
                            for _, *lanes in operations.values()
                            for lane in lanes
                            if lane.node not in operations
                        )
                    ),
                    tuple(node for node in operations if node in stored),
                    max(reach[node] for node in operations),
                )
                for operations in stages
            ),
            places,
            tuple(places[lane.node] for lane in results),
        )

    def _reach(self, results: Sequence[ShiftedValue]) -> dict[int, int]:
        """Return the nodes that matter, each with the largest shift at which it is read."""
        reach = {lane.node: lane.shift for lane in results}
        for node, (_, *lanes) in reversed(self._operations.items()):
            if node in reach:
                for lane in lanes:
                    shift = reach[node] + lane.shift
                    reach[lane.node] = max(reach.get(lane.node, 0), shift)
        return reach


@functools.cache
def median_program(size: int) -> Program:
    """Return the medians of size x size windows in a few neighbouring output rows.

    The inputs are all rows that those windows touch. Rows that all windows have in common
    are merged first, column by column; then the group of output rows is halved again and
    again, and each half merges in the rows that its own windows share. Whatever can no
    longer be the median is dropped on the way.
    """
    # Counted for all sizes: a larger group shares more, but merges longer sequences.
    group = 2 if size <= 9 else 4
    network = Network(size + group - 1)
    rows = network.inputs

    def refine(core: list[ShiftedValue], rank: int, first: int, group: int) -> list[ShiftedValue]:
        """Return the medians of output rows `first` to ``first + group - 1``."""
        if group == 1:
            return [core[rank]]
        half = group // 2
        above = rows[first + half - 1 : first + group - 1]
        below = rows[first + size : first + size + half]
        medians = []
        for start, added in ((first, above), (first + half, below)):
            block = network.slide(network.sort(added), size)
            medians += refine(*network.select(core, block, rank, (half - 1) * size), start, half)
        return medians

    common = network.halves(network.sort(rows[group - 1 : size]), size)
    return network.program(
        refine(*network.select(*common, size * size // 2, (group - 1) * size), 0, group)
    )


@functools.cache
def cube_program(sides: tuple[int, int, int]) -> Program:
    """Return the medians of boxes of voxels with these sides in two neighbouring rows, or in one.

    As `median_program`, where each row of the window is as many lanes as there are slices: the
    inputs are the lines of the first row, slice by slice, then those of the second one.
    """
    deep, tall, wide = sides
    group = min(2, tall)
    network = Network(deep * (tall + group - 1))
    rows = [network.inputs[first : first + deep] for first in range(0, len(network.inputs), deep)]

    def slid(
        lines: Sequence[Sequence[ShiftedValue]],
    ) -> tuple[list[ShiftedValue], list[ShiftedValue]]:
        column = network.sort([lane for line in lines for lane in line])
        return network.halves(column, wide) if wide > 1 else (column, [])

    rank, spare = deep * tall * wide // 2, (group - 1) * deep * wide
    core, rank = network.select(*slid(rows[group - 1 : tall]), rank, spare)
    if group == 1:
        return network.program([core[rank]])
    medians = []
    for added in (rows[:1], rows[tall:]):
        merged, place = network.select(core, network.merge(*slid(added)), rank, 0)
        medians.append(merged[place])
    return network.program(medians)
