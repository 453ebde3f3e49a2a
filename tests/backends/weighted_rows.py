"""A filter and a session for tests of what is launched, and where its rows lie."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.backends.cuda import executor, slabs
from app.engine.control import CancelToken
from app.engine.image import Image
from app.engine.scan import Scan
from app.engine.timing import Stage, Stopwatch
from app.engine.volume import Volume
from app.filters.launch import CudaPlan, CudaTask, Launch, Scratch
from app.filters.spec import Border
from tests.backends.fake_card import Driver, FakeCard, FakeCubins
from tests.oracle import PAD_MODES

ROOMY = 2.0
"""Memory of a card, as a part of what a filter needs for the whole image."""


class WeightedRows:
    """A filter whose result depends on every row that it reads, and on their order.

    Row y of the result is the sum of n + 1 times the n-th row of its window: the rows from
    y - radius to y + radius, or all rows from y on if `whole`. The kernel ``number`` writes into
    scratch which row is which, and ``add`` believes it. ``add`` sums up in `steps`, in scratch.

    Parameters
    ----------
    pace : float
        Seconds that a launch takes for a step of one row.
    mapped : bool
        Whether ``add`` reads and writes host memory.

    Attributes
    ----------
    steps_of : dict of int to list of int
        The steps that ``add`` did on each row, in order.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        border: Border = Border.REFLECT,
        radius: int = 3,
        *,
        name: str = "rows",
        whole: bool = False,
        steps: int = 0,
        at_once: int | None = None,
        pace: float = 1e-4,
        mapped: bool = False,
    ) -> None:
        self.height, self.border, self.radius, self.whole = shape[0], border, radius, whole
        self.steps, self.pace = steps, pace
        self._length = self.height if whole else 2 * radius + 1
        self._window_rows = self._padded(np.arange(self.height))
        self.steps_of: dict[int, list[int]] = {}
        out_height = self._window_rows.size - self._length + 1
        task = CudaTask(
            shape, (out_height, *shape[1:]), np.dtype(np.float32), {}, border, "pretend"
        )
        tile = (8, 4) if len(shape) == 3 else (8, 4, 2)
        number = Launch("number", {}, tile, 1, 1e6, scratch=("number",))
        add = Launch(
            *("add", {}, tile, 1, 1e8),
            scratch=("number", "sum"),
            steps=steps,
            steps_at_once=at_once,
            mapped=mapped,
        )
        scratch = {
            "number": Scratch(8 * task.out_row_pixels),
            "sum": Scratch(8 * task.out_row_samples),
        }
        plan = CudaPlan((number, add), scratch)
        cubin = FakeCubins().get(name)
        spec: Any = SimpleNamespace(id=name, name=name)
        self.step = executor.Step(spec, task, radius, whole, plan, (cubin, cubin))
        source_bytes, result_bytes = (4 * int(np.prod(s)) for s in (shape, task.output_shape))
        buffers = sum(buffer.size(out_height, out_height) for buffer in scratch.values())
        self.needs = source_bytes + result_bytes + buffers

    def _padded(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return `rows` with those beyond the border, so that all windows lie inside."""
        if self.whole:
            return np.concatenate([rows, rows[:-1]])
        if self.border is Border.VALID:
            return rows
        pad = ((self.radius, self.radius), *((0, 0),) * (rows.ndim - 1))
        return np.pad(rows, pad, mode=PAD_MODES[self.border])  # type: ignore[call-overload,no-any-return]

    def expected(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Return the result for `planes`, without a card."""
        padded = self._padded(planes)
        out_height = self.step.task.output_shape[0]
        return np.sum(
            [(n + 1) * padded[n : n + out_height] for n in range(self._length)],
            axis=0,
            dtype=np.float32,
        )

    def load(self, card: FakeCard) -> None:
        """Put the kernels onto the card."""
        card.cuda.modules[self.step.cubins[0].code] = {
            "number": functools.partial(self._number, card.cuda),
            "add": functools.partial(self._add, card.cuda),
        }

    def _number(
        self, memory: Driver, source: int, target: int, number: int, *geometry: int
    ) -> float:
        start, stop, _, first = geometry[4:8]
        numbers = memory.rows_at(number, np.int64, self.step.task.out_row_pixels)
        numbers[start - first : stop - first] = np.arange(start, stop)[:, None]
        return self.pace * (stop - start)

    def _add(
        self, memory: Driver, source: int, target: int, number: int, total: int, *rest: int
    ) -> float:
        start, stop, source_first, first = rest[4:8]
        first_step, last_step = rest[-2:] if self.steps else (0, 1)
        steps = max(self.steps, 1)
        task = self.step.task
        sources = memory.rows_at(source, np.float32, task.row_samples)
        targets = memory.rows_at(target, np.float32, task.out_row_samples)
        numbers = memory.rows_at(number, np.int64, task.out_row_pixels)
        totals = memory.rows_at(total, np.float64, task.out_row_samples)
        for y in range(start, stop):
            self.steps_of.setdefault(y, []).extend(range(first_step, last_step))
            at = y - first
            if first_step == 0:
                totals[at] = 0
            top = int(numbers[at, 0])
            for n, row in enumerate(self._window_rows[top : top + self._length]):
                if first_step <= n % steps < last_step:
                    totals[at] += (n + 1) * sources[(row - source_first) % self.height]
            if last_step == steps:
                targets[at] = totals[at]
        return self.pace * (stop - start) * (last_step - first_step)


class Session:
    """Cards with room for a part of what `filters` need, and what came of filtering on them."""

    def __init__(
        self,
        *filters: WeightedRows,
        room: float = ROOMY,
        refused: Sequence[int] = (),
        cards: int = 1,
        copy_seconds: float = 0.0,
    ) -> None:
        self.filters = filters
        memory = int(room * sum(rows.needs for rows in filters))
        self.cards = [
            FakeCard(memory, refused, ordinal=number, copy_seconds=copy_seconds)
            for number in range(cards)
        ]
        self.card = self.cards[0]
        for rows, card in itertools.product(filters, self.cards):
            rows.load(card)
        self.told: list[float] = []
        self.token = CancelToken()
        self.notices: list[str] = []
        self.stages: tuple[Stage, ...] = ()
        self.runs: list[executor.Run] = []

    def filter(
        self,
        source: Image | Scan,
        *,
        repeat: int = 1,
        cold: bool = False,
        limit: int | None = None,
    ) -> NDArray[Any]:
        cache: Any = FakeCubins()
        steps = [rows.step for rows in self.filters]
        runs = [executor.Run(card, cache, steps, repeat, cold) for card in self.cards]
        stopwatch = Stopwatch()
        try:
            output, self.runs = slabs.apply(runs, source, limit, stopwatch, self.token, self._tell)
            return output
        finally:
            self.notices, self.stages = stopwatch.notices, stopwatch.stages

    def _tell(self, stage: str, fraction: float) -> None:
        self.told.append(fraction)

    def assert_nothing_leaked(self) -> None:
        """What is on the cards belongs to images that may stay there, and goes with them."""
        for card in self.cards:
            resident = card.resident
            assert sum(a.data.size for a in card.cuda.live.values()) == resident.size
            resident.clear()
            assert not card.cuda.live


def picture(shape: tuple[int, ...], seed: int = 0) -> Image | Scan:
    """Return an image or volumes of whole numbers, of which sums are exact."""
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(np.float32)
    if len(shape) == 3:
        return Image.from_array(values)
    return Scan(tuple(Volume.from_array(values[..., n].copy()) for n in range(shape[3])))


def expected(rows: WeightedRows, source: Image | Scan) -> NDArray[Any]:
    return rows.expected(source.planes)
