"""Selection networks that compute a whole row of medians with nothing but minima and maxima.

A network is written down as if for one pixel, in terms of *lanes*: a lane is one value per
pixel of the row, and ``lane.moved(1)`` is the same value at the pixel to the right. Work that
overlapping windows have in common is found by giving equal operations the same node, and
operations that no result depends on are never emitted.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MINIMUM = 0
MAXIMUM = 1
BOTH = 2


class Lane(NamedTuple):
    """The value of `node`, `shift` pixels to the right."""

    node: int
    shift: int

    def moved(self, shift: int) -> Lane:
        return Lane(self.node, self.shift + shift)


class Operation(NamedTuple):
    """A minimum or a maximum of two lanes."""

    code: int
    a: Lane
    b: Lane


@dataclass(frozen=True)
class Program:
    """A network, ready to be run on rows.

    Attributes
    ----------
    code : ndarray of int64, shape (instructions, 8)
        Operation, place of the minimum, place of the maximum, place and shift of the first
        operand, place and shift of the second, and by how many pixels the result has to
        reach beyond the last output pixel. An instruction never writes to its operands.
        Places 0 to ``inputs - 1`` are the input rows.
    outputs : ndarray of int64, shape (rows,)
        Places of the results.
    inputs, places : int
        Number of input rows, and of all places.
    """

    code: NDArray[np.int64]
    outputs: NDArray[np.int64]
    inputs: int
    places: int


class Network:
    """Collects operations on lanes; the first `inputs` nodes are the input rows."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._operations: list[Operation] = []
        self._known: dict[Operation, int] = {}

    def compare(self, a: Lane, b: Lane) -> tuple[Lane, Lane]:
        """Return the smaller and the larger of two lanes."""
        a, b = sorted((a, b))
        shift = min(a.shift, b.shift)
        a, b = a.moved(-shift), b.moved(-shift)
        low = self._node(Operation(MINIMUM, a, b))
        high = self._node(Operation(MAXIMUM, a, b))
        return Lane(low, shift), Lane(high, shift)

    def _node(self, operation: Operation) -> int:
        if operation not in self._known:
            self._known[operation] = self.inputs + len(self._operations)
            self._operations.append(operation)
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
        """Return the instructions for `results`, with places shared over time."""
        reach = self._reach(results)
        last_use = {lane.node: len(self._operations) for lane in results}
        for number in reversed(range(len(self._operations))):
            if self.inputs + number in reach:
                for lane in self._operations[number][1:]:
                    last_use.setdefault(lane.node, number)
        place = {node: node for node in range(self.inputs)}
        free: list[int] = []
        places = self.inputs
        code = []
        done: set[int] = set()
        for number, operation in enumerate(self._operations):
            node = self.inputs + number
            if node not in reach or node in done:
                continue
            # `compare` makes the maximum right after its minimum.
            nodes = [node]
            twin = operation._replace(code=MAXIMUM)
            if operation.code == MINIMUM and self._known[twin] in reach:
                nodes.append(self._known[twin])
            done.update(nodes)
            for new in nodes:
                if not free:
                    free.append(places)
                    places += 1
                place[new] = free.pop()
            a, b = operation.a, operation.b
            code.append(
                (
                    BOTH if len(nodes) == 2 else operation.code,
                    place[nodes[0]],
                    place[nodes[-1]],
                    place[a.node],
                    a.shift,
                    place[b.node],
                    b.shift,
                    max(reach[new] for new in nodes),
                )
            )
            for old in {a.node, b.node}:
                if old >= self.inputs and last_use[old] in (number, number + len(nodes) - 1):
                    free.append(place[old])
        outputs = [place[lane.node] for lane in results]
        return Program(np.array(code, np.int64), np.array(outputs, np.int64), self.inputs, places)

    def _reach(self, results: Sequence[Lane]) -> dict[int, int]:
        """Return the nodes that matter, each with the largest shift at which it is read."""
        reach = {lane.node: lane.shift for lane in results}
        for number in reversed(range(len(self._operations))):
            own = reach.get(self.inputs + number)
            if own is not None:
                for lane in self._operations[number][1:]:
                    reach[lane.node] = max(reach.get(lane.node, 0), own + lane.shift)
        return reach


@functools.cache
def median_program(size: int) -> Program:
    """Return the program for the medians of size x size windows in a few rows at once.

    The windows of neighbouring output rows have all but a few rows in common. Those are
    merged first, column by column; then the group of rows is halved again and again, and
    each half merges in the rows that its own windows share. Whatever can no longer be the
    median is dropped on the way.
    """
    group = 2 if size < 11 else 4
    inputs = size + group - 1
    network = Network(inputs)
    rows = [Lane(node, 0) for node in range(inputs)]

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
    core, rank = network.select(*common, size * size // 2, (group - 1) * size)
    return network.program(refine(core, rank, 0, group))
