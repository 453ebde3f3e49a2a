"""The CPU backend: every row once, on as many threads as it may use, errors included."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend, _kind
from kernelscope.base import jit
from kernelscope.base.errors import Cancelled
from kernelscope.base.parallel import core_count
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.levels import PARALLEL, SERIAL, Level
from tests.patience import PATIENCE


class Recorder:
    """Stands in for a compiled kernel: counts how often each row is computed."""

    def __init__(self, rows: int, fail_at: int | None = None, cost: float = 1.0) -> None:
        self.counts = np.zeros(rows, int)
        self.bands: list[tuple[int, int]] = []
        self.threads: set[str] = set()
        self.fail_at = fail_at
        self.cost = cost
        self._lock = threading.Lock()

    def compile(self, *arguments: Any) -> bool:
        assert not self.counts.any()
        return True

    def entry(self, *arguments: Any) -> Recorder:
        return self

    def __call__(self, start: int, stop: int) -> None:
        with self._lock:
            self.counts[start:stop] += 1
            self.bands.append((start, stop))
            self.threads.add(threading.current_thread().name)
        if self.fail_at is not None and start <= self.fail_at < stop:
            raise ZeroDivisionError("in a band")


@pytest.fixture
def backend() -> Iterator[CpuBackend]:
    backend = CpuBackend(threads=3)
    yield backend
    backend.close()


def run(
    backend: CpuBackend,
    passes: Sequence[Recorder],
    level: Level = PARALLEL,
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    grey: bool = False,
    log: RunLog | None = None,
) -> Image:
    def plan(task: CpuTask) -> list[CpuPass]:
        assert not task.source.flags.writeable
        assert task.source.flags.c_contiguous
        task.output[:] = 7
        return [
            CpuPass(kernel, (), len(kernel.counts), kernel.cost)  # type: ignore[arg-type]
            for kernel in passes
        ]

    spec = FilterSpec(
        id="fake",
        name="Fake",
        category="",
        summary="",
        source="",
        parameters=(),
        radius=lambda parameters: 1,
        implementations={"cpu": Cpu(plan)},
    )
    channels = 4 if grey else 2
    pixels = np.arange(4 * 5 * channels, dtype=np.uint8).reshape(4, 5, channels)
    request = Request(Image.from_array(pixels), Step(spec, {}, Border.VALID, grey))
    context = RunContext(log or RunLog(), token or CancelToken(), progress)
    output = backend.run(request, level, context)
    assert isinstance(output, Image)
    return output


@pytest.mark.parametrize("level", [SERIAL, PARALLEL])
@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_every_row_of_every_pass_is_computed_once(backend, level: Level, rows: int) -> None:
    passes = [Recorder(rows), Recorder(3)]
    run(backend, passes, level)
    for kernel in passes:
        assert (kernel.counts == 1).all()


def test_grey_pixels_are_read_only_like_any_source(backend) -> None:
    """Numba compiles a kernel again for arrays that can be written to; `run` looks."""
    assert run(backend, [Recorder(2)], grey=True).channels == 2


@pytest.mark.parametrize("level", [SERIAL, Level("own", "Own", "A filter's.", single=True)])
def test_serial_is_one_thread(backend, level: Level) -> None:
    kernel = Recorder(500)
    run(backend, [kernel], level)
    assert kernel.threads == {threading.current_thread().name}


def test_parallel_uses_its_threads_at_the_same_time(backend) -> None:
    barrier = threading.Barrier(3, timeout=PATIENCE)
    kernel = Recorder(3)
    record = kernel.__call__

    class Meeting(Recorder):
        def __call__(self, start: int, stop: int) -> None:
            barrier.wait()
            record(start, stop)

    run(backend, [Meeting(3)])
    assert len(kernel.threads) == 3


def test_a_run_does_not_wait_for_threads_of_another_one() -> None:
    """Its helpers may be queued behind those of a run on another thread, which takes longer."""
    backend = CpuBackend(threads=2)
    begun, finish = threading.Barrier(3), threading.Event()

    class Held(Recorder):
        def __call__(self, start: int, stop: int) -> None:
            begun.wait(PATIENCE)
            finish.wait()

    long = Held(2)
    other = threading.Thread(target=run, args=(backend, [long]))
    other.start()
    try:
        begun.wait(PATIENCE)  # both threads of the long run are in a band
        short = Recorder(20)
        third = threading.Thread(target=run, args=(backend, [short]))
        third.start()
        third.join(PATIENCE)
        waited = third.is_alive()
    finally:
        finish.set()
        other.join()
        third.join()
        backend.close()
    assert not waited
    assert (short.counts == 1).all()


def test_the_first_band_is_one_row(backend) -> None:
    """Nobody knows yet how long a row takes, and Cancel waits for it."""
    kernel = Recorder(1000)
    run(backend, [kernel], SERIAL)
    assert kernel.bands[0] == (0, 1)
    assert len(kernel.bands) < 100


def test_alpha_is_put_back_cropped(backend) -> None:
    image = run(backend, [Recorder(2)])
    assert image.pixels.shape == (2, 3, 2)
    assert (image.pixels[:, :, 0] == 7).all()
    expected = np.arange(40).reshape(4, 5, 2)[1:-1, 1:-1, 1]
    np.testing.assert_array_equal(image.pixels[:, :, 1], expected)


@pytest.mark.parametrize("row", [0, 1, 900])
def test_an_error_in_a_band_ends_the_run(backend, row: int) -> None:
    kernel = Recorder(10_000_000, fail_at=row)  # more than the other threads can do meanwhile
    with pytest.raises(ZeroDivisionError, match="in a band"):
        run(backend, [kernel])
    assert kernel.counts.sum() < 10_000_000
    run(backend, [Recorder(10)])


def test_progress_grows_to_the_end_over_all_passes() -> None:
    seen: list[tuple[str, float]] = []
    backend = CpuBackend(threads=1)
    run(backend, [Recorder(50), Recorder(9)], progress=lambda *event: seen.append(event))
    assert seen[0] == ("compile", 0.0)
    fractions = [fraction for stage, fraction in seen if stage == "compute"]
    assert fractions == sorted(fractions)
    assert 0.5 in fractions
    assert fractions[-1] == pytest.approx(1)


def test_progress_ends_where_other_threads_did_everything(
    backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Inline:
        def submit(self, function: Callable[..., None], *arguments: Any) -> Future[None]:
            function(*arguments)
            done: Future[None] = Future()
            done.set_result(None)
            return done

    monkeypatch.setattr(backend, "_executor", Inline)
    seen: list[tuple[str, float]] = []
    run(backend, [Recorder(5)], progress=lambda stage, fraction: seen.append((stage, fraction)))
    assert seen[-1] == ("compute", 1.0)


def test_progress_follows_what_passes_cost() -> None:
    seen: list[float] = []
    passes = [Recorder(5, cost=0), Recorder(2, cost=3), Recorder(2), Recorder(5, cost=0)]
    run(
        CpuBackend(threads=1),
        passes,
        progress=lambda stage, fraction: seen.append(fraction),
    )
    assert sorted(set(seen)) == pytest.approx([0, 0.375, 0.75, 0.875, 1])
    assert seen == sorted(seen)


def test_cancelling_in_the_middle(backend) -> None:
    token = CancelToken()
    kernel = Recorder(10_000)
    with pytest.raises(Cancelled):
        run(
            backend,
            [kernel],
            SERIAL,
            token,
            lambda stage, done: token.cancel() if done > 0.1 else None,
        )
    assert 0 < kernel.counts.sum() < 10_000


def test_cancelling_does_not_wait_for_the_compiler(backend) -> None:
    token = CancelToken()
    compiling, go_on, compiled = threading.Event(), threading.Event(), threading.Event()

    class Slow(Recorder):
        def compile(self, *arguments: Any) -> bool:
            compiling.set()
            token.cancel()
            go_on.wait(PATIENCE)
            compiled.set()
            return True

    kernel = Slow(10)
    with pytest.raises(Cancelled):
        run(backend, [kernel], token=token)
    assert compiling.is_set()
    assert not compiled.is_set()
    go_on.set()
    run(backend, [Recorder(10)])  # the next run finds a compiler that works
    assert not kernel.counts.any()


@pytest.mark.parametrize("new", [(True, False), (False, True), (False, False)])
def test_a_run_is_the_first_if_any_of_its_code_is_new(backend, new: tuple[bool, ...]) -> None:
    class Known(Recorder):
        def __init__(self, rows: int, is_new: bool) -> None:
            super().__init__(rows)
            self.is_new = is_new

        def compile(self, *arguments: Any) -> bool:
            return self.is_new

    log = RunLog()
    run(backend, [Known(4, is_new) for is_new in new], log=log)
    assert log.first == any(new)


def test_code_is_compiled_once_for_each_type(
    backend: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread for that is not even asked again, which would take longer than many a kernel."""
    compiled: list[str] = []
    real = jit.JitKernel.compile

    def compile_(kernel: jit.JitKernel, *arguments: Any) -> bool:
        compiled.append(f"{arguments[0].dtype} {threading.current_thread().name}")
        return real(kernel, *arguments)

    monkeypatch.setattr(jit.JitKernel, "compile", compile_)
    for dtype in ("uint8", "uint8", "uint16", "uint8"):
        image = Image.from_array(np.ones((8, 9), dtype))
        execute(Request.create(image, "negative"), {"cpu": backend})
    assert len(compiled) == 2
    assert [text.split()[0] for text in compiled] == ["uint8", "uint16"]
    assert all("kernelscope-compile" in text for text in compiled)


class Pair(NamedTuple):
    first: Any
    second: Any


class Other(NamedTuple):
    first: Any
    second: Any


def test_values_of_one_kind_have_one_numba_type() -> None:
    """Others would be compiled late, on the thread of the run; owners and sizes do not matter."""
    numba = jit.load_numba()
    cells = np.zeros((4, 6, 1), np.uint8)
    fixed, words = cells.copy(), cells.astype(np.uint16)
    fixed.flags.writeable = False
    aligned, loose = (np.frombuffer(bytes(9), np.uint16, 2, offset) for offset in (0, 1))
    arrays: tuple[Any, ...] = (cells, fixed, words, words.astype("f4"), aligned, loose)
    arrays += (words[0, :2, 0], cells[:, ::2], cells[0], cells[:, :, 0].T, cells[:, ::2, 0])
    numbers = (0, True, 0.5, None, np.float32(1), np.uint8(3))
    tuples = ((1, 2), (1, 2, 3), (1.0, 2), Pair(1, cells), Pair(1, words), Other(1, cells))
    values = (*arrays, *numbers, *tuples)
    for one, other in itertools.combinations(values, 2):
        if numba.typeof(one) != numba.typeof(other):
            assert _kind(one) != _kind(other), (one, other)
    assert len({_kind(value) for value in values}) == len(values)
    assert _kind(cells) == _kind(cells[1:3])
    assert _kind(fixed) == _kind(fixed[:1])
    assert _kind((cells, 1)) == _kind((cells[:2], 2))


def test_says_what_it_runs_on() -> None:
    state = CpuBackend(threads=1).availability()
    assert state.available
    assert state.summary.endswith(", 1 core")
    assert (
        CpuBackend()
        .availability()
        .summary.endswith(f", {core_count()} core{'s' * (core_count() > 1)}")
    )


def test_closing_twice_is_fine(backend) -> None:
    run(backend, [Recorder(5)])
    backend.close()
