"""What the executor launches and where its rows lie, on a card that the test makes up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.backends.cuda import executor
from app.engine.control import CancelToken
from app.engine.image import Image
from app.engine.scan import Scan
from app.engine.timing import Stopwatch
from app.engine.volume import Volume
from app.errors import Cancelled, OutOfMemory
from app.filters.launch import CudaPlan, CudaTask, Launch
from app.filters.spec import Border
from tests.backends.fake_card import FakeCard, FakeCubins
from tests.oracle import PAD_MODES

ROOMY, TIGHT, TIGHTER = 2.0, 0.55, 0.35
"""Memory of a card, as a part of what a filter needs for the whole image."""

BANDS = (48, 5, 3)
"""Shape of an image that is cut into strips where memory is tight."""


class WeightedRows:
    """A filter whose result depends on every row that it reads, and on their order.

    Row y of the result is the sum of n + 1 times the n-th row of its window: the rows from
    y - radius to y + radius, or all rows from y on if `whole`. The kernel ``number`` writes into
    scratch which row is which, and ``add`` believes it. ``add`` sums up in `steps`, in scratch.

    Parameters
    ----------
    pace : float
        Seconds that a launch takes for a step of one row.

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
        )
        scratch = {"number": 8, "sum": 8 * shape[-1]}
        plan = CudaPlan((number, add), scratch)
        cubin = FakeCubins().get(name)
        spec: Any = SimpleNamespace(id=name, name=name)
        self.step = executor.Step(spec, task, radius, whole, plan, (cubin, cubin))
        source_bytes, result_bytes = (4 * int(np.prod(s)) for s in (shape, task.output_shape))
        pixels = out_height * task.out_row_pixels
        self.needs = source_bytes + result_bytes + pixels * sum(scratch.values())

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
        self._card = card
        card.cuda.modules[self.step.cubins[0].code] = {"number": self._number, "add": self._add}

    def _number(self, source: int, target: int, number: int, *geometry: int) -> float:
        start, stop, _, first = geometry[4:8]
        numbers = self._card.cuda.rows_at(number, np.int64, self.step.task.out_row_pixels)
        numbers[start - first : stop - first] = np.arange(start, stop)[:, None]
        return self.pace * (stop - start)

    def _add(self, source: int, target: int, number: int, total: int, *rest: int) -> float:
        start, stop, source_first, first = rest[4:8]
        first_step, last_step = rest[-2:] if self.steps else (0, 1)
        steps = max(self.steps, 1)
        memory, task = self._card.cuda, self.step.task
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
    """A card with room for a part of what `filters` need, and what came of filtering on it."""

    def __init__(
        self, *filters: WeightedRows, room: float = ROOMY, refused: Sequence[int] = ()
    ) -> None:
        self.filters = filters
        self.card = FakeCard(int(room * sum(rows.needs for rows in filters)), refused)
        for rows in filters:
            rows.load(self.card)
        self.told: list[float] = []
        self.token = CancelToken()
        self.notices: list[str] = []

    def filter(
        self,
        source: Image | Scan,
        *,
        repeat: int = 1,
        cold: bool = False,
        limit: int | None = None,
    ) -> NDArray[Any]:
        cache: Any = FakeCubins()
        run = executor.Run(
            *(self.card, cache, Stopwatch(), self.token, self._tell), repeat=repeat, cold=cold
        )
        try:
            return executor.apply([rows.step for rows in self.filters], source, run, limit)
        finally:
            self.notices = run.stopwatch.notices

    def _tell(self, stage: str, fraction: float) -> None:
        self.told.append(fraction)

    def assert_nothing_leaked(self) -> None:
        """What is on the card belongs to an image that may stay there, and goes with it."""
        resident = self.card.resident
        assert sum(a.data.size for a in self.card.cuda.live.values()) == resident.size
        resident.clear()
        assert not self.card.cuda.live


def picture(shape: tuple[int, ...], seed: int = 0) -> Image | Scan:
    """Return an image or volumes of whole numbers, of which sums are exact."""
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(np.float32)
    if len(shape) == 3:
        return Image.from_array(values)
    return Scan(tuple(Volume.from_array(values[..., n].copy()) for n in range(shape[3])))


def expected(rows: WeightedRows, source: Image | Scan) -> NDArray[Any]:
    return rows.expected(source.planes)


GEOMETRIES = [
    pytest.param(BANDS, border, radius, False, id=f"{border.value}-{radius}")
    for border in (Border.REFLECT, Border.NEAREST, Border.WRAP, Border.VALID)
    for radius in (0, 3)
] + [
    pytest.param((48, 4, 1), Border.REFLECT, 3, True, id="whole"),
    pytest.param((30, 3, 2, 2), Border.REFLECT, 2, False, id="volume"),
    pytest.param((30, 3, 2, 1), Border.REFLECT, 2, True, id="whole volume"),
]


@pytest.mark.parametrize("room", [ROOMY, TIGHT, TIGHTER])
@pytest.mark.parametrize(("shape", "border", "radius", "whole"), GEOMETRIES)
def test_strips_have_their_own_source_rows_and_scratch(
    shape: tuple[int, ...], border: Border, radius: int, whole: bool, room: float
) -> None:
    rows = WeightedRows(shape, border, radius, whole=whole, steps=5)
    session, source = Session(rows, room=room), picture(shape)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert bool(session.notices) == (room < ROOMY), "in strips only where memory is tight"


@pytest.mark.parametrize("room", [ROOMY, TIGHT])
@pytest.mark.parametrize(("steps", "at_once"), [(0, None), (5, None), (7, 2), (40, 1)])
@pytest.mark.parametrize("pace", [1e-7, 3e-4, 0.1])
def test_every_row_gets_every_step_once_in_order_and_progress_never_falls(
    pace: float, steps: int, at_once: int | None, room: float
) -> None:
    rows = WeightedRows(BANDS, steps=steps, at_once=at_once, pace=pace)
    session, repeat = Session(rows, room=room), 2
    session.filter(picture(BANDS), repeat=repeat)
    once = list(range(max(steps, 1)))
    assert rows.steps_of == dict.fromkeys(range(BANDS[0]), once * repeat)
    assert all(before <= after for before, after in itertools.pairwise(session.told))
    assert session.told[0] > 0
    assert session.told[-1] == pytest.approx(1)


@pytest.mark.parametrize("room", [ROOMY, TIGHT, TIGHTER])
def test_a_step_in_front_of_the_filter(room: float) -> None:
    """As greyscale is: its rows are those of the strip, which may begin anywhere."""
    front = WeightedRows(BANDS, radius=0, name="front", steps=2)
    rows = WeightedRows(BANDS, Border.WRAP, radius=3)
    session, source = Session(front, rows, room=room), picture(BANDS)
    result = session.filter(source)
    np.testing.assert_array_equal(result, rows.expected(expected(front, source)))
    session.assert_nothing_leaked()


@pytest.mark.parametrize("room", [ROOMY, TIGHT, TIGHTER, 0.01])
def test_nothing_leaks_and_nothing_is_freed_twice(room: float) -> None:
    rows = WeightedRows(BANDS, steps=5)
    session, source = Session(rows, room=room), picture(BANDS)
    others = [np.zeros(60, np.uint8) for _ in range(2)]
    for other in others:
        session.card.resident.put(other, session.card.allocate(other.nbytes))
    if room < TIGHTER:
        with pytest.raises(OutOfMemory):
            session.filter(source)
    else:
        result = session.filter(source, cold=True)
        np.testing.assert_array_equal(result, expected(rows, source))
    session.assert_nothing_leaked()


@pytest.mark.parametrize("room", [ROOMY, TIGHT])
@pytest.mark.parametrize("refused", range(5))
def test_an_allocation_that_fails_once_costs_nothing_but_time(refused: int, room: float) -> None:
    """Source, result, a buffer of scratch or what empties the cache: others made off with it."""
    rows = WeightedRows(BANDS)
    session, source = Session(rows, room=room, refused=[refused]), picture(BANDS)
    result = session.filter(source, cold=True)
    np.testing.assert_array_equal(result, expected(rows, source))
    assert session.card.cuda.allocations > refused
    session.assert_nothing_leaked()


@pytest.mark.parametrize("room", [ROOMY, TIGHT])
@pytest.mark.parametrize("refused", range(5))
def test_out_of_memory_leaves_nothing_behind(refused: int, room: float) -> None:
    rows = WeightedRows(BANDS)
    session = Session(rows, room=room, refused=range(refused, 1000))
    with pytest.raises(OutOfMemory, match="even for a few rows"):
        session.filter(picture(BANDS), cold=True)
    session.assert_nothing_leaked()


@pytest.mark.parametrize("room", [ROOMY, TIGHT])
def test_cancelling_leaves_nothing_behind(room: float) -> None:
    rows = WeightedRows(BANDS, steps=5, pace=0.1)
    session = Session(rows, room=room)
    session.token.cancel()
    with pytest.raises(Cancelled):
        session.filter(picture(BANDS))
    assert not rows.steps_of
    session.assert_nothing_leaked()


@pytest.mark.parametrize("room", [ROOMY, TIGHT])
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_a_copy_that_fails_leaves_nothing_behind(
    direction: str, room: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("the link is down")

    session = Session(WeightedRows(BANDS), room=room)
    monkeypatch.setattr(session.card.staging, direction, fail)
    with pytest.raises(RuntimeError, match="link"):
        session.filter(picture(BANDS))
    session.assert_nothing_leaked()


@pytest.mark.parametrize("part", [1.5, 0.55])
def test_what_stays_on_the_card_counts_against_a_memory_limit(part: float) -> None:
    """Ten images and their results stay open; the card has room for all of them."""
    rows = WeightedRows(BANDS)
    session = Session(rows, room=20)
    limit = int(part * rows.needs)
    sources = [picture(BANDS, seed) for seed in range(10)]
    results = []
    for source in sources:
        results.append(session.filter(source, limit=limit))
        np.testing.assert_array_equal(results[-1], expected(rows, source))
        assert bool(session.notices) == (part < 1)
        assert session.card.cuda.peak <= limit
    session.assert_nothing_leaked()


def test_a_memory_limit_keeps_the_image_that_is_filtered_again() -> None:
    rows = WeightedRows(BANDS)
    session, source = Session(rows), picture(BANDS)
    for _ in range(3):
        result = session.filter(source, limit=int(1.5 * rows.needs))
        np.testing.assert_array_equal(result, expected(rows, source))
    assert session.card.cuda.calls.count("upload") == 1


@pytest.mark.parametrize("cold", [False, True])
def test_cold_rewrites_memory_before_each_repeat(cold: bool) -> None:
    rows = WeightedRows(BANDS, pace=1e-7)
    session, source = Session(rows), picture(BANDS)
    result = session.filter(source, repeat=3, cold=cold)
    np.testing.assert_array_equal(result, expected(rows, source))
    calls = [call for call in session.card.cuda.calls if call != "hold"]
    repeats = [call for call, _ in itertools.groupby(calls)]
    assert repeats == ["upload", *(["memset"] * cold + ["number", "add"]) * 3, "download"]
    assert calls.count("memset") == 3 * cold
