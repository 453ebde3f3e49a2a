"""Slabs on one or several cards: same bytes, copies beside kernels, one end for all."""

from __future__ import annotations

import functools
import itertools
import re
import threading
import time
from collections.abc import Callable
from concurrent import futures
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda import executor, slabs
from kernelscope.backends.cuda.device_run import DeviceRun
from kernelscope.backends.cuda.executor import StepLaunch, make_ready
from kernelscope.backends.cuda.kernel import Kernel
from kernelscope.base.errors import Cancelled, OutOfMemory
from kernelscope.engine.control import CancelToken
from kernelscope.schema.borders import Border
from tests.backends.fake_card import UNTOUCHED, Driver, Error, FakeStaging
from tests.backends.weighted_rows import Session, WeightedRows, expected, picture
from tests.pairs import together
from tests.patience import PATIENCE

VOLUME = (30, 3, 2, 2)
PICTURE = (48, 5, 3)
COPY_SECONDS = 1e-3


@pytest.fixture(autouse=True)
def small_volumes_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slabs, "WORTH_SHARING", 0)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "did not happen meanwhile"
        time.sleep(1e-4)


def before_kernel(session: Session, meanwhile: Callable[[int, int], None]) -> None:
    """Call `meanwhile` with the number of the card and of its slab while that is computed."""
    for card, rows in itertools.product(session.cards, session.filters):
        kernels = card.cuda.modules[rows.step.cubins[0].code]
        slab = itertools.count()

        def number(real: Callable[..., float], ordinal: int, slab: Any, *arguments: int) -> float:
            meanwhile(ordinal, next(slab))
            return real(*arguments)

        kernels["number"] = functools.partial(number, kernels["number"], card.ordinal, slab)


# The result ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("cards", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [1, 4, 7, 15, 100])
@pytest.mark.parametrize(
    ("shape", "border", "radius", "whole"),
    [
        (VOLUME, Border.REFLECT, 3, False),
        (VOLUME, Border.REFLECT, 2, True),
        (PICTURE, Border.WRAP, 3, False),
        (PICTURE, Border.VALID, 3, False),
        (PICTURE, Border.NEAREST, 0, False),
    ],
)
def test_same_bytes_on_any_cards_in_any_slabs(
    cards: int,
    rows: int,
    shape: tuple[int, ...],
    border: Border,
    radius: int,
    whole: bool,
    rows_of_a_slab: Callable[[int], None],
) -> None:
    rows_of_a_slab(rows)
    filter_ = WeightedRows(shape, border, radius, whole=whole, steps=2)
    session = Session(filter_, room=20, cards=cards, copy_seconds=COPY_SECONDS / 10)
    source = picture(shape)
    np.testing.assert_array_equal(session.filter(source), expected(filter_, source))
    out_rows = filter_.step.task.output_shape[0]
    assert filter_.steps_of == {row: [0, 1] for row in range(out_rows)}
    assert session.reported == sorted(session.reported)
    assert session.reported[-1] == pytest.approx(1)
    counts = re.findall(r"(\d+) (?:slab|strip)s? on GPU (\d)", session.notices[0])
    assert sum(int(count) for count, _ in counts) == -(-out_rows // rows)
    assert len({ordinal for _, ordinal in counts}) == min(cards, -(-out_rows // rows))
    session.assert_nothing_leaked()


def test_one_slice_stays_on_the_first_card() -> None:
    rows = WeightedRows((1, 3, 2, 2), radius=0)
    session, source = Session(rows, room=4, cards=2), picture((1, 3, 2, 2))
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert not session.notices


def test_a_picture_that_fits_nowhere_is_shared() -> None:
    rows = WeightedRows(PICTURE)
    session, source = Session(rows, room=0.6, cards=2), picture(PICTURE)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert re.fullmatch(
        r"The image is too large for the GPU's free memory: it was filtered in \d+ strips? "
        r"on GPU 0 and \d+ strips? on GPU 1; transfers overlapped computing\.",
        session.notices[0],
    )


def test_a_picture_that_fits_stays_on_the_first_card() -> None:
    rows = WeightedRows(PICTURE)
    session, source = Session(rows, cards=2), picture(PICTURE)
    for _ in range(2):
        np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert not session.notices
    assert session.card.cuda.calls.count("upload") == 1
    assert not session.cards[1].cuda.calls


def test_the_made_up_card_does_nothing_before_somebody_waits() -> None:
    driver = Driver(1000)
    stream, other = driver.new_stream(), driver.new_stream()
    allocation = driver.mem_alloc(4)
    down = np.zeros(4, np.uint8)
    driver.memcpy_htod_async(int(allocation), np.arange(4, dtype=np.uint8), stream)
    other.synchronize()
    assert driver.bytes_at(int(allocation)).tolist() == [UNTOUCHED] * 4
    with pytest.raises(AssertionError, match="in use"):
        allocation.free()
    event = driver.Event()
    event.record(stream)
    driver.memcpy_dtoh_async(down, int(allocation), stream)
    event.synchronize()
    assert driver.bytes_at(int(allocation)).tolist() == [0, 1, 2, 3]
    assert down.tolist() == [UNTOUCHED] * 4
    stream.synchronize()
    assert down.tolist() == [0, 1, 2, 3]
    allocation.free()


# Copies beside kernels ----------------------------------------------------------------


def test_the_made_up_card_sees_two_at_once() -> None:
    driver = Driver(1000)
    allocation = driver.mem_alloc(10)
    with driver.using(int(allocation), writing=False):
        with driver.using(int(allocation) + 5, writing=False):
            pass
        stream = driver.new_stream()
        driver.memcpy_htod_async(int(allocation), np.zeros(3, np.uint8), stream)
        with pytest.raises(AssertionError, match="at once"):
            stream.synchronize()
        with pytest.raises(AssertionError, match="in use"):
            allocation.free()
    allocation.free()


@pytest.mark.parametrize("cards", [1, 2])
def test_the_next_slab_goes_up_while_one_is_computed(
    cards: int, rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel ends only when the slab after has arrived: without overlap it never would."""
    rows_of_a_slab(3)
    rows = WeightedRows(VOLUME)
    session, source = Session(rows, room=20, cards=cards), picture(VOLUME)
    arrived = [0] * cards
    cuts = len(range(0, 30, 3))
    upload = FakeStaging.upload

    def counted(self: FakeStaging, *arguments: Any) -> None:
        upload(self, *arguments)
        (ordinal,) = (card.ordinal for card in session.cards if card.cuda is self._cuda)
        arrived[ordinal] += 1

    def meanwhile(ordinal: int, slab: int) -> None:
        wait_until(lambda: arrived[ordinal] >= slab + 2 or sum(arrived) == cuts)

    monkeypatch.setattr(FakeStaging, "upload", counted)
    before_kernel(session, meanwhile)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    session.assert_nothing_leaked()


def test_a_slab_comes_down_while_the_next_is_computed(
    rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download ends only when the next kernel has begun, but for the last."""
    rows_of_a_slab(3)
    rows = WeightedRows(VOLUME)
    session, source = Session(rows, room=20), picture(VOLUME)
    begun, ended = [0], [0]
    download = FakeStaging.download

    def counted(self: FakeStaging, *arguments: Any) -> None:
        ended[0] += 1

        def next_has_begun() -> bool:
            session.card.stream.synchronize()  # a real card goes on by itself
            return begun[0] > ended[0] or begun[0] == 10

        wait_until(next_has_begun)
        download(self, *arguments)

    def meanwhile(ordinal: int, slab: int) -> None:
        begun[0] += 1

    monkeypatch.setattr(FakeStaging, "download", counted)
    before_kernel(session, meanwhile)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert ended == [10]


@pytest.mark.parametrize("slow", ["upload", "download"])
def test_no_buffer_is_filled_again_too_early(
    slow: str, rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies far slower than the kernels: the card itself looks whether two meet."""
    rows_of_a_slab(2)
    rows = WeightedRows(VOLUME, radius=2)
    session, source = Session(rows, room=20), picture(VOLUME)
    copy = getattr(FakeStaging, slow)

    def slowly(self: FakeStaging, *arguments: Any) -> None:
        self._cuda.copy_seconds = 5 * COPY_SECONDS
        copy(self, *arguments)
        self._cuda.copy_seconds = 0

    monkeypatch.setattr(FakeStaging, slow, slowly)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    session.assert_nothing_leaked()


def test_kernels_are_made_while_their_slab_is_on_its_way(
    rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload ends only when all kernels of its slab are made."""
    rows_of_a_slab(3)
    session, source = Session(rows := WeightedRows(VOLUME), room=20), picture(VOLUME)
    made, uploads, upload = [0], itertools.count(1), FakeStaging.upload

    def counted(*arguments: Any) -> Kernel:
        made[0] += 1
        return Kernel(*arguments)

    def late(self: FakeStaging, *arguments: Any) -> None:
        slab = next(uploads)
        wait_until(lambda: made[0] >= 2 * slab)
        upload(self, *arguments)

    monkeypatch.setattr(executor, "Kernel", counted)
    monkeypatch.setattr(FakeStaging, "upload", late)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert made == [20]
    session.assert_nothing_leaked()


def test_what_every_slab_needs_goes_up_once(rows_of_a_slab: Callable[[int], None]) -> None:
    rows_of_a_slab(4)
    rows = WeightedRows(PICTURE, whole=True)
    session, source = Session(rows, room=20, cards=2), picture(PICTURE)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert [card.cuda.calls.count("upload") for card in session.cards] == [1, 1]


# Time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("repeat", [1, 3])
def test_the_clock_counts_and_busy_times_are_of_the_busiest_card(
    repeat: int, rows_of_a_slab: Callable[[int], None]
) -> None:
    rows_of_a_slab(15)
    rows = WeightedRows(VOLUME, pace=1e-3)
    session = Session(rows, room=20, cards=2, copy_seconds=10 * COPY_SECONDS)
    session.filter(picture(VOLUME), repeat=repeat)
    stages = {stage.name: stage for stage in session.stages}
    warm_up = ["warm-up"] * (repeat > 1)
    assert list(stages) == [
        *("prepare", "allocate", "upload", *warm_up, "kernel", "download", "free", "slabs")
    ]
    counted = [stage.name for stage in session.stages if stage.counted]
    assert counted == ["prepare", "slabs"]
    assert [stage.name for stage in session.stages if stage.overlapped] == [
        *("allocate", "upload", *warm_up, "kernel", "download", "free")
    ]
    # Each card has 15 rows, each of which takes both kernels a millisecond of the card's time.
    assert stages["kernel"].seconds == pytest.approx(30e-3)
    assert stages["kernel"].repeats == pytest.approx((30e-3,) * 3 if repeat == 3 else ())
    assert stages["upload"].seconds >= 10 * COPY_SECONDS
    slabs = stages["slabs"]
    for name in ("upload", "kernel", "download"):
        parts = stages[name].parts
        assert {part.device for part in parts} == {0, 1}
        assert stages[name].start == min(part.start for part in parts)
        # The card's clock is made up: a kernel began before the host saw its end.
        assert name == "kernel" or all(slabs.start <= part.start for part in parts)
    assert [part.seconds for part in stages["kernel"].parts] == pytest.approx([30e-3] * 2)
    assert min(part.start for part in stages["download"].parts) >= (
        min(part.start + part.seconds for part in stages["upload"].parts)
    )
    taken_off = (repeat - 1) * 30e-3
    assert stages["slabs"].seconds + taken_off >= 20 * COPY_SECONDS


# Trouble ------------------------------------------------------------------------------


@pytest.mark.parametrize("cards", [1, 2, 3])
def test_cancelling_stops_all_cards(cards: int, rows_of_a_slab: Callable[[int], None]) -> None:
    rows_of_a_slab(2)
    rows = WeightedRows(VOLUME, radius=2)
    session = Session(rows, room=20, cards=cards, copy_seconds=COPY_SECONDS)
    before_kernel(session, lambda ordinal, slab: session.token.cancel() if slab == 1 else None)
    with pytest.raises(Cancelled):
        session.filter(picture(VOLUME))
    assert len(rows.steps_of) < VOLUME[0]
    session.assert_nothing_leaked()


@pytest.mark.parametrize("cards", [1, 2, 3])
def test_an_error_on_one_card_stops_all(
    cards: int, rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_a_slab(1)
    rows = WeightedRows(VOLUME, radius=2)
    session = Session(rows, room=20, cards=cards, copy_seconds=COPY_SECONDS)
    stopping = threading.Event()
    begun: list[int] = []
    cancel = CancelToken.cancel

    def cancel_all(token: CancelToken) -> None:
        cancel(token)
        stopping.set()

    def break_the_last(ordinal: int, slab: int) -> None:
        begun.append(slab)
        if slab == 2 and ordinal == cards - 1:
            raise Error("this card is on fire")
        if slab == 2:
            assert stopping.wait(PATIENCE)

    monkeypatch.setattr(CancelToken, "cancel", cancel_all)
    before_kernel(session, break_the_last)
    with pytest.raises(Error, match="on fire"):
        session.filter(picture(VOLUME))
    assert max(begun) <= 2 + (cards > 1), "whole cards may have queued one more"
    session.assert_nothing_leaked()


@pytest.mark.parametrize("direction", ["upload", "download"])
def test_a_copy_that_fails_on_one_card_stops_all(
    direction: str, rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_a_slab(1)
    rows = WeightedRows(VOLUME, radius=2)
    session = Session(rows, room=20, cards=2)
    copy, lock, copies = getattr(FakeStaging, direction), threading.Lock(), itertools.count()

    def fail_once(self: FakeStaging, *arguments: Any) -> None:
        with lock:
            number = next(copies)
        if number == 7:
            raise Error("the link is down")
        copy(self, *arguments)

    monkeypatch.setattr(FakeStaging, direction, fail_once)
    with pytest.raises(Error, match="link"):
        session.filter(picture(VOLUME))
    session.assert_nothing_leaked()


@pytest.mark.parametrize("direction", ["upload", "download"])
def test_nothing_is_freed_under_a_copy_when_the_next_slab_fails(
    direction: str, rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy continues until a caller waits for it, or frees its memory without waiting."""
    rows_of_a_slab(5)
    session = Session(WeightedRows(VOLUME), room=20)
    copying, ended, goes_on = threading.Event(), threading.Event(), threading.Event()
    freed: list[bool] = []
    copy, copies = getattr(FakeStaging, direction), itertools.count()
    free, wait, tried = DeviceRun.free, futures.wait, itertools.count()

    def slowly(self: FakeStaging, *arguments: Any) -> None:
        copying_this = next(copies) == 1
        if copying_this:
            copying.set()
            assert goes_on.wait(PATIENCE)
        copy(self, *arguments)
        if copying_this:
            ended.set()

    def fail_meanwhile(*arguments: Any) -> StepLaunch | None:
        if next(tried) == (1 if direction == "upload" else 3):  # the second one is on its way
            assert copying.wait(PATIENCE)
            raise Error("this card is on fire")
        return make_ready(*arguments)

    def waited(copies: Any, timeout: float | None = None) -> Any:
        if timeout is None:
            goes_on.set()
        return wait(copies, timeout)

    def noted(self: DeviceRun) -> None:
        freed.append(ended.is_set())
        goes_on.set()
        free(self)

    monkeypatch.setattr(FakeStaging, direction, slowly)
    monkeypatch.setattr(slabs, "wait", waited)
    monkeypatch.setattr(slabs, "make_ready", fail_meanwhile)
    monkeypatch.setattr(DeviceRun, "free", noted)
    with pytest.raises(Error, match="on fire"):
        session.filter(picture(VOLUME))
    assert freed == [True]
    session.assert_nothing_leaked()


def test_what_a_copy_finds_lost_is_not_freed(
    rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_a_slab(5)
    session = Session(WeightedRows(VOLUME), room=20, cards=2)
    broken, whole = session.cards
    download = FakeStaging.download

    def fail(*arguments: Any) -> None:
        raise Error("the card is gone")

    def fail_on_one(self: FakeStaging, *arguments: Any) -> None:
        (fail if self._cuda is broken.cuda else download)(self, *arguments)

    monkeypatch.setattr(FakeStaging, "download", fail_on_one)
    monkeypatch.setattr(broken.cuda, "Context", SimpleNamespace(synchronize=fail), raising=False)
    with pytest.raises(Error, match="gone"):
        session.filter(picture(VOLUME))
    assert (broken.lost, whole.lost) == (True, False)
    assert broken.cuda.live
    whole.call(whole.pool.release)
    assert not whole.cuda.live


@together("refused", range(8))
def test_an_allocation_that_fails_once_on_all_cards(refused: int) -> None:
    rows = WeightedRows(VOLUME, radius=2)
    session, source = Session(rows, cards=2, room=4, refused=[refused]), picture(VOLUME)
    np.testing.assert_array_equal(session.filter(source, cold=True), expected(rows, source))
    session.assert_nothing_leaked()


def test_a_card_without_room_is_left_out() -> None:
    rows = WeightedRows(VOLUME, radius=2)
    session, source = Session(rows, cards=2, room=4), picture(VOLUME)
    session.cards[0].cuda.memory = 100
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert [run.device.ordinal for run in session.runs] == [1]
    session.cards[1].cuda.memory = 100
    with pytest.raises(OutOfMemory, match="a slice of this volume"):
        session.filter(source)
    session.assert_nothing_leaked()


@pytest.mark.parametrize("part", [0.9, 0.6])
def test_a_memory_limit_holds_on_every_card(part: float) -> None:
    rows = WeightedRows(VOLUME, radius=1)
    session, source = Session(rows, cards=3, room=20), picture(VOLUME)
    limit = int(part * rows.needs)
    for card in session.cards:
        card.resident.put(source.pixels, card.allocate(source.pixels.nbytes))
    np.testing.assert_array_equal(session.filter(source, limit=limit), expected(rows, source))
    for card in session.cards:
        assert card.cuda.peak <= limit
    session.assert_nothing_leaked()


def test_a_limit_above_the_free_memory_does_not_raise_it(caplog: pytest.LogCaptureFixture) -> None:
    """Slabs that do not fit are cut again after the card refused them, which the log says."""
    rows, source = WeightedRows(VOLUME, radius=1), picture(VOLUME)
    session = Session(rows, cards=2, room=0.5)
    np.testing.assert_array_equal(session.filter(source, limit=1 << 40), expected(rows, source))
    assert session.notices
    assert "out of device memory" not in caplog.text
