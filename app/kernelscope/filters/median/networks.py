"""Selection networks that compute whole rows of medians with nothing but minima and maxima.

A network is written down as if for one pixel, in terms of *lanes*: a lane is one value per
pixel of a row, and ``lane.moved(1)`` is the same value at the pixel to the right. Work that
overlapping windows have in common is found by giving equal operations the same node, and
operations that no result depends on are never emitted.

Sources: K. E. Batcher, Sorting networks and their applications, 1968 (odd-even merge);
A. Adams, Fast median filters using separable sorting networks, 2021 (shared columns and rows).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Lane(NamedTuple):
    """The value of `node`, `shift` pixels to the right."""

    node: int
    shift: int = 0

    def moved(self, shift: int) -> Lane:
        return Lane(self.node, self.shift + shift)


class Operation(NamedTuple):
    """The smaller or the larger of two lanes."""

    larger: bool
    a: Lane
    b: Lane


class Stage(NamedTuple):
    """One loop over a row.

    Attributes
    ----------
    operations : dict
        What to compute, by node and in order.
    reads : tuple of Lane
        What comes from memory.
    writes : tuple of int
        The nodes that go to memory.
    reach : int
        How many pixels beyond the last output pixel the loop has to go.
    """

    operations: dict[int, Operation]
    reads: tuple[Lane, ...]
    writes: tuple[int, ...]
    reach: int


@dataclass(frozen=True)
class Program:
    """A network as a few loops, each of which keeps in registers what it can.

    Attributes
    ----------
    stages : tuple of Stage
        The loops, in order. No loop reads what it writes itself.
    places : dict
        Place in memory, from 0, of each node that needs one; the input rows come first.
    results : tuple of int
        Places of the results.
    """

    stages: tuple[Stage, ...]
    places: dict[int, int]
    results: tuple[int, ...]


class Network:
    """Collects operations on lanes; nodes 0 to ``inputs - 1`` are the input rows."""

    def __init__(self, inputs: int) -> None:
        self.inputs = [Lane(node) for node in range(inputs)]
        self._operations: dict[int, Operation] = {}
        self._known: dict[Operation, int] = {}

    def compare(self, a: Lane, b: Lane) -> tuple[Lane, Lane]:
        """Return the smaller and the larger of two lanes."""
        a, b = sorted((a, b))
        shift = min(a.shift, b.shift)
        a, b = a.moved(-shift), b.moved(-shift)
        return Lane(self._node(False, a, b), shift), Lane(self._node(True, a, b), shift)

    def _node(self, larger: bool, a: Lane, b: Lane) -> int:
        operation = Operation(larger, a, b)
        if operation not in self._known:
            node = len(self.inputs) + len(self._operations)
            self._known[operation] = node
            self._operations[node] = operation
        return self._known[operation]

    def merge(self, a: Sequence[Lane], b: Sequence[Lane]) -> list[Lane]:
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

    def sort(self, lanes: Sequence[Lane]) -> list[Lane]:
        """Return lanes in ascending order (Batcher's merge sort)."""
        if len(lanes) <= 1:
            return [*lanes]
        half = len(lanes) // 2
        return self.merge(self.sort(lanes[:half]), self.sort(lanes[half:]))

    def select(
        self, a: Sequence[Lane], b: Sequence[Lane], rank: int, spare: int
    ) -> tuple[list[Lane], int]:
        """Merge two sorted sequences, of which only the lane of one rank is wanted in the end.

        Parameters
        ----------
        rank : int
            Rank of the wanted lane, from 0, once `spare` more lanes have been merged.

        Returns
        -------
        lanes : list of Lane
            The merged lanes that can still become the wanted one.
        rank : int
            Its rank when `spare` more lanes have been merged with those.
        """
        lowest = max(0, rank - spare)
        drop_a = max(0, lowest - len(b))
        drop_b = max(0, lowest - len(a))
        merged = self.merge(a[drop_a : rank + 1], b[drop_b : rank + 1])
        dropped = drop_a + drop_b
        return merged[lowest - dropped : rank + 1 - dropped], rank - lowest

    def slide(self, column: Sequence[Lane], width: int) -> list[Lane]:
        """Return `width` neighbouring sorted columns as one sorted sequence."""
        return self.merge(*self.halves(column, width)) if width > 1 else [*column]

    def halves(self, column: Sequence[Lane], width: int) -> tuple[list[Lane], list[Lane]]:
        """Return `width` neighbouring sorted columns as two sorted sequences.

        Equal halves are the same lanes at another shift, so the second one costs nothing.
        """
        left = width // 2 if width % 2 == 0 else width - 1
        right = self.slide(column, width - left)
        return self.slide(column, left), [lane.moved(left) for lane in right]

    def program(self, results: Sequence[Lane]) -> Program:
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
                Stage(
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

    def _reach(self, results: Sequence[Lane]) -> dict[int, int]:
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

    def refine(core: list[Lane], rank: int, first: int, group: int) -> list[Lane]:
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
