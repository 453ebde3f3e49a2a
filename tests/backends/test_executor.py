"""The launches of the executor and the places of their rows, on a simulated GPU."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda import device_run
from kernelscope.backends.cuda import kernel as kernels
from kernelscope.backends.cuda.device_run import DeviceRun
from kernelscope.base.errors import Cancelled, OutOfMemory
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Launch
from tests.backends.fake_card import FakeStaging
from tests.backends.weighted_rows import ROOMY, HandedRows, Session, WeightedRows, expected, picture
from tests.pairs import together

TIGHT, TIGHTER = 0.55, 0.35
"""Less memory than the whole image needs: see `ROOMY`."""

WARM_UPS = kernels.WARM_UPS + 1
"""Launches of ``add`` before a measurement: one for each pass, two for the careful first one."""

BANDS = (48, 5, 3)
"""Shape of an image that is cut into strips where memory is tight."""

GEOMETRIES = [
    pytest.param(BANDS, border, radius, False, id=f"{border.value}-{radius}")
    for border in (Border.REFLECT, Border.NEAREST, Border.WRAP, Border.VALID)
    for radius in (0, 3)
] + [
    pytest.param((48, 4, 1), Border.REFLECT, 3, True, id="whole"),
    pytest.param((30, 3, 2, 2), Border.REFLECT, 2, False, id="volume"),
    pytest.param((30, 3, 2, 1), Border.REFLECT, 2, True, id="whole volume"),
]


@together("room", [ROOMY, TIGHT, TIGHTER])
@together(("shape", "border", "radius", "whole"), [each.values for each in GEOMETRIES])
def test_strips_have_their_own_source_rows_and_scratch(
    shape: tuple[int, ...], border: Border, radius: int, whole: bool, room: float
) -> None:
    rows = WeightedRows(shape, border, radius, whole=whole, steps=5)
    session, source = Session(rows, room=room), picture(shape)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert bool(session.notices) == (room < ROOMY), "in strips only where memory is tight"


@pytest.mark.parametrize("room", [ROOMY, TIGHT])
def test_a_kernel_may_read_and_write_host_memory(room: float) -> None:
    rows = WeightedRows(BANDS, mapped=True)
    session, source = Session(rows, room=room), picture(BANDS)
    np.testing.assert_array_equal(session.filter(source, repeat=2), expected(rows, source))
    mapped = session.card.cuda.mapped
    assert mapped
    assert not mapped.keys() & session.card.cuda.live.keys()


@together("room", [ROOMY, TIGHT])
@together(("steps", "at_once"), [(0, None), (5, None), (7, 2), (40, 1)])
@together("pace", [1e-7, 3e-4, 0.1])
def test_every_row_gets_every_step_once_in_order_and_progress_never_falls(
    pace: float, steps: int, at_once: int | None, room: float
) -> None:
    rows = WeightedRows(BANDS, steps=steps, at_once=at_once, pace=pace)
    session, repeat = Session(rows, room=room), 2
    session.filter(picture(BANDS), repeat=repeat)
    once = list(range(max(steps, 1)))
    passes = {row: len(done) // len(once) for row, done in rows.steps_of.items()}
    assert rows.steps_of == {row: once * passes[row] for row in range(BANDS[0])}
    seconds = BANDS[0] * len(once) * pace
    if room == ROOMY:
        warm_ups = 1 if seconds > kernels.LONG_SECONDS else kernels.WARM_UPS
        short = seconds < kernels.SHORT_SECONDS and at_once is None
        batch = math.ceil(kernels.BATCH_SECONDS / seconds) if short else 1
        assert set(passes.values()) == {warm_ups + repeat * batch}
    else:  # of strips, the first one warms up
        assert passes[0] > repeat
        assert passes[BANDS[0] - 1] == repeat
    assert all(before <= after for before, after in itertools.pairwise(session.reported))
    assert session.reported[0] > 0
    assert session.reported[-1] == pytest.approx(1)


@pytest.mark.parametrize("room", [ROOMY, TIGHT, TIGHTER])
def test_a_step_in_front_of_the_filter(room: float) -> None:
    """As greyscale is: its rows are those of the strip, which may begin anywhere."""
    front = WeightedRows(BANDS, radius=0, name="front", steps=2)
    rows = WeightedRows(BANDS, Border.WRAP, radius=3)
    session, source = Session(front, rows, room=room), picture(BANDS)
    result = session.filter(source)
    np.testing.assert_array_equal(result, rows.expected(expected(front, source)))
    session.assert_nothing_leaked()


@together("room", [ROOMY, TIGHT, TIGHTER, 0.01])
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


@together("room", [ROOMY, TIGHT])
@together("refused", range(5))
def test_an_allocation_that_fails_once_costs_nothing_but_time(refused: int, room: float) -> None:
    """Other programs took the memory for source, result, scratch or the cache's buffer."""
    rows = WeightedRows(BANDS)
    session, source = Session(rows, room=room, refused=[refused]), picture(BANDS)
    result = session.filter(source, cold=True)
    np.testing.assert_array_equal(result, expected(rows, source))
    assert session.card.cuda.allocations > refused
    session.assert_nothing_leaked()


@together("room", [ROOMY, TIGHT])
@together("refused", range(5))
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
    def fail(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the link is down")

    session = Session(WeightedRows(BANDS), room=room)
    monkeypatch.setattr(FakeStaging, direction, fail)
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
    rows = WeightedRows(BANDS, pace=2e-6)  # twice 96 microseconds: no batches
    session, source = Session(rows), picture(BANDS)
    result = session.filter(source, repeat=3, cold=cold)
    np.testing.assert_array_equal(result, expected(rows, source))
    calls = [call for call in session.card.cuda.calls if call != "hold"]
    repeats = [call for call, _ in itertools.groupby(calls)]
    empty = ["memset"] * cold
    warm_up = [*empty, "number"] * kernels.WARM_UPS + [*empty, "add"] * kernels.WARM_UPS
    warm_up = [call for call, _ in itertools.groupby(warm_up)]
    assert repeats == ["upload", *warm_up, *[*empty, "number", "add"] * 3, "download"]
    assert calls.count("memset") == (2 * kernels.WARM_UPS + 3) * cold
    (launch,) = (stage for stage in session.stages if stage.name == "launch")
    assert launch.counted is not cold  # nobody waits for that but who measures


# Measuring ----------------------------------------------------------------------------


def test_a_run_that_is_no_measurement_launches_once() -> None:
    rows = WeightedRows(BANDS, pace=1e-7)
    session = Session(rows)
    session.filter(picture(BANDS))
    assert set(map(len, rows.steps_of.values())) == {1}
    assert "warm-up" not in [stage.name for stage in session.stages]
    assert session.runs[0].batch == 1


@pytest.mark.parametrize("cold", [False, True])
def test_short_launches_are_timed_in_batches_and_told_as_one(cold: bool) -> None:
    """48 rows of 100 ns: 4.8 microseconds, of which 42 take more than 200."""
    rows = WeightedRows(BANDS, pace=1e-7)
    session, source = Session(rows, room=100), picture(BANDS)
    result = session.filter(source, repeat=3, cold=cold)
    np.testing.assert_array_equal(result, expected(rows, source))
    (kernel,) = (stage for stage in session.stages if stage.name == "kernel")
    assert kernel.repeats == pytest.approx((2 * 4.8e-6,) * 3)
    assert [each.seconds for each in kernel.kernels] == pytest.approx([4.8e-6] * 2)
    assert session.runs[0].batch == 42
    metrics = {metric.name: metric.value for metric in device_run.metrics(session.runs)}
    assert metrics["batch"] == 42
    assert session.card.cuda.calls.count("add") == WARM_UPS + 3 * 42
    (warm_up,) = (stage for stage in session.stages if stage.name == "warm-up")
    assert not warm_up.counted
    session.assert_nothing_leaked()
    # Known values are not queried again, and without repeats nothing else is done.
    session.card.cuda.calls.clear()
    session.filter(picture(BANDS, 1), cold=cold)
    assert session.card.cuda.calls.count("add") == (42 if cold else 1)  # at the known pace
    assert "warm-up" not in [stage.name for stage in session.stages]


def test_each_cold_launch_of_a_batch_has_a_picture_of_its_own() -> None:
    rows = WeightedRows(BANDS, pace=1e-6)
    session, source = Session(rows, room=100), picture(BANDS)
    kernel = session.card.cuda.modules[rows.step.cubins[0].code]["add"]
    seen: list[tuple[int, int]] = []
    inputs: list[bytes] = []

    def look(first: int, target: int, *rest: int) -> float:
        seen.append((first, target))
        inputs.append(session.card.cuda.bytes_at(first, source.pixels.nbytes).tobytes())
        return kernel(first, target, *rest)

    session.card.cuda.modules[rows.step.cubins[0].code]["add"] = look
    session.filter(source, repeat=2, cold=True)
    assert session.runs[0].batch == 5  # of 48 microseconds
    batch, again = seen[WARM_UPS : WARM_UPS + 5], seen[WARM_UPS + 5 :]
    assert batch == again
    assert len({first for first, _ in batch}) == len({target for _, target in batch}) == 5
    assert set(inputs) == {source.pixels.tobytes()}
    calls = [call for call in session.card.cuda.calls if call in ("memset", "add")]
    assert [call for call, _ in itertools.groupby(calls[-12:])] == ["memset", "add"] * 2
    session.assert_nothing_leaked()


def test_copies_for_batches_take_a_quarter_of_what_is_free() -> None:
    rows = WeightedRows(BANDS, pace=1e-7)
    session, source = Session(rows, room=8), picture(BANDS)
    result = session.filter(source, repeat=2, cold=True)
    np.testing.assert_array_equal(result, expected(rows, source))
    assert 1 < session.runs[0].batch < 42
    assert session.card.cuda.peak < session.card.cuda.memory / 2
    session.assert_nothing_leaked()


def test_a_batch_that_the_host_queued_too_slowly_is_done_again() -> None:
    rows = WeightedRows(BANDS, pace=1e-7)
    session = Session(rows, room=100)
    session.card.cuda.late = True
    holds: list[int] = []
    session.card.cuda.modules[b"hold"]["hold"] = lambda cycles: holds.append(cycles) or 0.0
    session.filter(picture(BANDS), repeat=1, cold=True)
    # One launch has no second try: its changes to scratch cannot be repeated.
    assert session.card.cuda.calls.count("add") == WARM_UPS + 4 * 42
    assert holds[-4] > 5 * holds[0]  # the more there is to queue
    assert holds[-1] / holds[-4] == pytest.approx(8, rel=1e-3)
    warm_ups, tries = 2 * kernels.WARM_UPS, 1 + 2 * 3  # of two kernels each
    assert session.card.cuda.calls.count("memset") == warm_ups + tries


def test_a_measured_launch_that_was_queued_too_slowly_is_done_again() -> None:
    """But not one that goes on where another ended, whose scratch it would add to again."""
    plain, stepped = (WeightedRows(BANDS, pace=2e-6, steps=steps) for steps in (0, 2))
    for rows, again in ((plain, 2 * (kernels.TRIES - 1)), (stepped, 0)):
        launches = []
        for late in (False, True):
            session, source = Session(rows, room=100), picture(BANDS)
            session.card.cuda.late = late
            result = session.filter(source, repeat=2)
            np.testing.assert_array_equal(result, expected(rows, source))
            assert session.runs[0].batch == 1
            launches.append(session.card.cuda.calls.count("add"))
        assert launches[1] - launches[0] == again
    session = Session(plain, room=100)
    session.card.cuda.late = True
    session.filter(picture(BANDS))
    assert session.stages
    assert all(stage.name != "repeat" for stage in session.stages)
    assert session.card.cuda.calls.count("number") == 1  # of a run that is no measurement


def test_stages_say_when_they_were() -> None:
    """In the order of their beginnings, one by one, apart from stages that enclose others."""
    rows = WeightedRows(BANDS, pace=1e-7)
    session = Session(rows, copy_seconds=2e-3)
    session.filter(picture(BANDS), repeat=2)
    stages = [stage for stage in session.stages if stage.name not in ("launch", "kernel")]
    for before, after in itertools.pairwise(stages):
        assert before.start + before.seconds <= after.start + 1e-9, (before, after)
    assert [stage.name for stage in stages] == [
        *("allocate", "upload", "allocate", "allocate", "allocate"),  # source, result, scratch
        *("warm-up", "free", "download"),
    ]
    starts = {stage.name: stage.start for stage in session.stages}
    launch = next(stage for stage in session.stages if stage.name == "launch")
    assert starts["upload"] < launch.start < starts["warm-up"] < starts["kernel"]
    assert starts["kernel"] < starts["free"] < starts["download"]


@together("room", [ROOMY, TIGHT])
@together("repeat", [1, 3])
def test_each_kernel_of_a_plan_is_timed(repeat: int, room: float) -> None:
    rows = WeightedRows(BANDS, steps=5, pace=1e-5)
    session = Session(rows, room=room)
    session.filter(picture(BANDS), repeat=repeat)
    (stage,) = (stage for stage in session.stages if stage.name == "kernel")
    number, add = stage.kernels
    assert (number.name, add.name) == ("number", "add")
    # A step of a row takes as long in either.
    assert add.seconds == pytest.approx(5 * number.seconds)
    assert number.seconds + add.seconds == pytest.approx(stage.seconds)
    times = zip(number.repeats, add.repeats, strict=True)
    assert [sum(each) for each in times] == pytest.approx(list(stage.repeats))
    assert len(stage.repeats) == (repeat if repeat > 1 else 0)


@together("room", [ROOMY, 0.7])
@together("repeat", [1, 3])
@together("steps", [1, 3])
def test_the_host_hands_parts_over_and_that_is_timed_without_the_warm_up(
    steps: int, repeat: int, room: float
) -> None:
    rows = HandedRows((40, 9, 2), steps)
    session, source = Session(rows, room=room), picture((40, 9, 2))
    np.testing.assert_array_equal(
        session.filter(source, repeat=repeat), rows.expected(source.planes)
    )
    assert bool(session.notices) == (room < ROOMY), "in strips only where memory is tight"
    handed = [stage for stage in session.stages if stage.name == "hand over"]
    prepared = [stage for stage in session.stages if stage.name == "prepare"]
    assert (len(handed), len(prepared)) == (1, 1 if room == ROOMY else 2)
    for stage in (*handed, prepared[-1]):  # the host, which in slabs has opened lanes before
        assert stage.seconds > 0
        assert stage.overlapped == (room < ROOMY)
        assert len(stage.repeats) == (repeat if repeat > 1 else 0)
    if room == ROOMY:
        assert session.runs[0].batch == 1  # however short: the host comes between the launches
        uploads = session.card.cuda.calls.count("upload") - 1
        assert uploads == steps * (repeat + kernels.WARM_UPS * (repeat > 1))
    session.assert_nothing_leaked()


def test_handing_over_takes_until_the_part_is_there() -> None:
    rows = HandedRows((40, 9, 2), 3)
    session = Session(rows, room=ROOMY, copy_seconds=0.02)
    session.filter(picture((40, 9, 2)))
    (stage,) = (stage for stage in session.stages if stage.name == "hand over")
    assert stage.seconds >= 0.02


def test_a_batch_is_not_for_the_same_kernel_with_more_to_do() -> None:
    """As a search radius does, which is in no macro: 2.4 ms where it was 4.8 microseconds."""
    short, long = (WeightedRows(BANDS, pace=1e-7, steps=steps) for steps in (0, 500))
    session, source = Session(short, room=100), picture(BANDS)
    session.filter(source, repeat=2)
    session.filters = (long,)
    long.load(session.card)
    session.card._modules.clear()  # or it would still have the short one
    kernel = session.card.cuda.modules[long.step.cubins[0].code]["add"]
    taken: list[float] = []

    def note(*arguments: int) -> float:
        taken.append(kernel(*arguments))
        return taken[-1]

    session.card.cuda.modules[long.step.cubins[0].code]["add"] = note
    np.testing.assert_array_equal(session.filter(source, repeat=2), expected(long, source))
    # No steps are done again for a batch: to warm up, and twice to measure.
    assert sum(taken) < (kernels.WARM_UPS + 2.5) * 2.4e-3


def test_what_launching_takes_is_without_the_kernels() -> None:
    """The card's clock is made up: it says that the kernels took all of the time, and more."""
    rows = WeightedRows(BANDS, pace=1.0)
    session = Session(rows)
    session.filter(picture(BANDS), repeat=2)
    (launch,) = (stage for stage in session.stages if stage.name == "launch")
    assert launch.seconds == 0


@pytest.mark.parametrize("room", [100, TIGHT])
def test_launches_that_were_done_again_are_a_stage_of_their_own(
    room: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that stands still outside of the kernel."""
    rows = WeightedRows(BANDS, pace=2e-6)
    taken, now = 2e-3, 0.0
    session, source = Session(rows, room=room), picture(BANDS)
    session.card.cuda.late = True
    loaded = session.card.cuda.modules[rows.step.cubins[0].code]
    add = loaded["add"]

    def slowly(*arguments: int) -> float:
        nonlocal now
        now += taken
        return add(*arguments) + taken

    loaded["add"] = slowly
    monkeypatch.setattr("time.perf_counter", lambda: now)
    np.testing.assert_array_equal(session.filter(source, repeat=2), expected(rows, source))
    (again,) = (stage for stage in session.stages if stage.name == "repeat")
    (kernel,) = (stage for stage in session.stages if stage.name == "kernel")
    (clock,) = (stage for stage in session.stages if stage.name in ("launch", "slabs"))
    launches = 2 * round(kernel.seconds / taken)  # of both repeats
    assert not again.counted
    assert again.overlapped == (room < ROOMY)
    assert again.seconds == pytest.approx(launches * (kernels.TRIES - 1) * taken)
    # Slabs are computed in that time; a launch takes none beside its kernel.
    assert clock.seconds == pytest.approx(kernel.seconds if again.overlapped else 0, rel=0.1)


@pytest.mark.parametrize("steps", [0, 3])
def test_no_launch_has_more_blocks_than_a_grid(steps: int) -> None:
    """Of a block a row, as some teaching kernels have: pictures may be taller than a grid."""
    tile, height = 2, 3 * device_run.MOST_BLOCKS
    launch = Launch("add", {}, (32, 1), 1.0, 1.0, tile=(32, tile), steps=steps)
    made = device_run.Pacer(launch, 1e-3)
    pieces = list(made.pieces(0, height))
    assert all(launch.grid((height, 9, 1), p.stop - p.start)[1] <= 65_535 for p in pieces)
    done = [(p.start, p.stop) for p in pieces if p.first_step == 0]
    assert done == [(0, tile * device_run.MOST_BLOCKS), (tile * device_run.MOST_BLOCKS, height)]
    assert sum(p.units for p in pieces) == height * max(steps, 1)


def test_the_report_is_of_the_longest_kernel_of_the_longest_strip() -> None:
    """Strips of rim rows and kernels that end early say little of a step."""
    nothing: Any = None
    run: Any = DeviceRun(nothing, nothing, [])

    def note(step: str, batch: int, **seconds: list[float]) -> None:
        filtered: Any = SimpleNamespace(spec=SimpleNamespace(id=step))
        reports = [(name, batch) for name in seconds]
        run.note_longest(filtered, list(seconds.values()), reports.__getitem__)

    note("mean", 1, rows=[2.0, 2.0], sums=[3.0, 2.0])
    assert (run.report, run.batch) == ("sums", 1)
    note("mean", 2, rim=[1.0, 3.0])
    assert (run.report, run.batch) == ("sums", 1), "shorter"
    note("mean", 3, last=[2.5, 2.5])
    assert (run.report, run.batch) == ("last", 3), "as long"
    note("median", 4, other=[0.5])
    assert (run.report, run.batch) == ("other", 4), "of the last step, however short"
