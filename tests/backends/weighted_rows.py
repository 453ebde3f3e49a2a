"""A filter and a session for tests of launches and of the places of their rows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda import slabs
from kernelscope.backends.cuda.device_run import DeviceRun, PreparedFilter
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.timing import Stage
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, HandOver, Launch, Scratch
from tests.backends.fake_card import Driver, FakeCard, FakeCubins
from tests.oracle import PAD_MODES

ROOMY = 2.0
"""Memory of a card, as a part of a filter's needs for the whole image."""


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
        self.step = PreparedFilter(spec, task, radius, whole, plan, (cubin, cubin))
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
        parts = [(n + 1) * padded[n : n + out_height] for n in range(self._length)]
        return np.asarray(np.sum(parts, axis=0, dtype=np.float32))

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


class HandedRows:
    """A filter of two kernels: one keeps the rows that the host hands over, step by step.

    ``keep`` copies the source rows to scratch; before step n of ``take`` the host hands over the
    rows from n on, the outer columns left out, and ``take`` adds n + 1 times those to the result.
    """

    def __init__(self, shape: tuple[int, int, int], steps: int) -> None:
        self.steps = steps
        self.height, self.width, self.lines = shape
        out_shape = (self.height - self.steps + 1, self.width - 2, self.lines)
        task = CudaTask(shape, out_shape, np.dtype(np.float32), {}, Border.VALID, "pretend")
        pitch = 4 * self.width * self.lines
        inside = slice(1, -1)
        ends = (None if n == self.steps - 1 else n - self.steps + 1 for n in range(self.steps))
        parts = tuple((slice(n, end), inside) for n, end in enumerate(ends))
        keep = Launch("keep", {}, (8, 4), 1, 1e6, scratch=("kept",))
        take = Launch(
            *("take", {}, (8, 4), 1, 1e6),
            scratch=("handed",),
            steps=self.steps,
            steps_at_once=1,
            hand_over=HandOver("kept", "handed", pitch // 4, self.lines, parts),
        )
        kept = Scratch(pitch, (self.steps - 1) * pitch)
        scratch = {"kept": kept, "handed": Scratch(pitch)}
        cubin = FakeCubins().get("handed rows")
        spec: Any = SimpleNamespace(id="handed", name="handed")
        plan = CudaPlan((keep, take), scratch)
        self.step = PreparedFilter(spec, task, self.steps // 2, False, plan, (cubin, cubin))
        self.needs = 4 * int(np.prod(shape) + np.prod(out_shape)) + sum(
            buffer.size(out_shape[0], out_shape[0]) for buffer in scratch.values()
        )

    def load(self, card: FakeCard) -> None:
        card.cuda.modules[self.step.cubins[0].code] = {
            "keep": functools.partial(self._keep, card.cuda),
            "take": functools.partial(self._take, card.cuda),
        }

    def expected(self, planes: NDArray[Any]) -> NDArray[Any]:
        rows = self.step.task.output_shape[0]
        return np.asarray(sum((n + 1) * planes[n : n + rows, 1:-1] for n in range(self.steps)))

    def _keep(self, memory: Driver, source: int, target: int, kept: int, *geometry: int) -> float:
        start, stop, source_first, first = geometry[4:8]
        samples = self.width * self.lines
        sources = memory.rows_at(source, np.float32, samples)
        rows = memory.rows_at(kept, np.float32, samples)
        for y in range(start, stop + self.steps - 1):
            line = sources[y - source_first].reshape(self.width, self.lines)
            rows[y - first] = line.T.ravel()
        return 1e-4

    def _take(self, memory: Driver, source: int, target: int, handed: int, *rest: int) -> float:
        start, stop, _, first = rest[4:8]
        step = rest[-2]
        columns = self.step.task.output_shape[1]
        targets = memory.rows_at(target, np.float32, columns * self.lines)
        parts = memory.rows_at(handed, np.float32, columns * self.lines)
        for y in range(start - first, stop - first):
            line = parts[y].reshape(self.lines, columns).T.ravel()
            targets[y] = (step + 1) * line + (targets[y] if step else 0)
        return 1e-4


class Session:
    """Cards with room for a part of the memory that `filters` need, and the results on them."""

    def __init__(
        self,
        *filters: WeightedRows | HandedRows,
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
        self.reported: list[float] = []
        self.token = CancelToken()
        self.notices: list[str] = []
        self.stages: tuple[Stage, ...] = ()
        self.runs: list[DeviceRun] = []

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
        runs = [DeviceRun(card, cache, steps, repeat, cold) for card in self.cards]
        context = RunContext(token=self.token, progress=self._tell)
        try:
            output, self.runs = slabs.apply(runs, source, limit, context)
            return output
        finally:
            self.notices, self.stages = context.log.notices, context.log.stages

    def _tell(self, stage: str, fraction: float) -> None:
        self.reported.append(fraction)

    def assert_nothing_leaked(self) -> None:
        """Memory of the cards belongs to images that may stay there, and is freed with them."""
        for card in self.cards:
            resident = card.resident
            card.pool.release()
            assert sum(a.data.size for a in card.cuda.live.values()) == resident.size
            resident.clear()
            card.pool.release()
            assert not card.cuda.live


def picture(shape: tuple[int, ...], seed: int = 0) -> Image | Scan:
    """Return an image or volumes of whole numbers, of which sums are exact."""
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(np.float32)
    if len(shape) == 3:
        return Image.from_array(values)
    return Scan(tuple(Volume.from_array(values[..., n].copy()) for n in range(shape[3])))


def expected(rows: WeightedRows, source: Image | Scan) -> NDArray[Any]:
    return rows.expected(source.planes)
