"""Filters slabs of an image on one or several GPUs while others are copied up and down.

Each GPU has a `Conveyor`: its own thread computes, two copy streams (`card.Lane`) carry the next
slab up and the last result down, between buffers in pairs. A buffer is filled again when the
kernels or the copy that read it are done::

    upload    │ 0 │ 1 │   │ 2 │   │ 3 │
    compute       │ 0     │ 1     │ 2     │ 3     │
    download              │ 0 │   │ 1 │   │ 2 │   │ 3 │

A GPU takes its next slab when it begins to compute one, so that a slower or busier GPU takes fewer
and all end within a slab of each other. The host makes the kernels of that slab ready in the same
time, and queues them when the slab has arrived: the GPU goes on without waiting for the host, which
takes a millisecond for a slab, and more where four GPUs and their copies share an interpreter.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from numpy.typing import NDArray

from kernelscope.backends.cuda.budget import BUFFERS
from kernelscope.backends.cuda.card import Lane
from kernelscope.backends.cuda.device_run import DeviceRun
from kernelscope.backends.cuda.executor import StepLaunch, filter_rows, make_ready
from kernelscope.backends.cuda.memory import ReadyMemory, Staging
from kernelscope.backends.cuda.reduction import LOOK_BYTES, FiniteLook
from kernelscope.backends.cuda.strips import Strip, strip
from kernelscope.backends.cuda.thread import wait_for
from kernelscope.base.errors import Cancelled
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.control import JointToken
from kernelscope.engine.timing import StagePart, added_up
from kernelscope.images.source import Source

_IN_SLABS = (
    "allocate",
    "upload",
    "warm-up",
    "prepare",
    "hand over",
    "kernel",
    "repeat",
    "download",
    "free",
)
"""Stages of a device that go by while it works on slabs."""

_POLL_SECONDS = 0.5e-3
"""While the next slab is on its way, so often a GPU's thread looks whether kernels are over: a
tenth of what the copy of a slab takes."""


def in_slabs(
    crew: Sequence[tuple[DeviceRun, int]],
    image: Source,
    output: NDArray[Any],
    context: RunContext,
) -> list[Conveyor]:
    """Filter slabs on each device, up to its number of rows; return the conveyors that had any."""
    with context.log.stage("prepare"):
        for run, _ in crew:
            run.restart(context.log.origin)
            run.device.call(run.device.open_lanes, len(crew))
    share = Share(output.shape[0], context)
    # Deal the first slabs up front, so that no GPU takes a second before every GPU has one.
    dealt = [
        (Conveyor(run, rows, image.planes, output, share), first)
        for run, rows in crew
        if (first := share.take(rows))
    ]
    conveyors = [conveyor for conveyor, _ in dealt]
    start = time.perf_counter()
    _wait([conveyor.run.device.submit(conveyor.work, first) for conveyor, first in dealt])
    seconds = time.perf_counter() - start
    _record(context.log, [conveyor.run for conveyor in conveyors], start, seconds)
    return conveyors


class Share:
    """The rows of a result that no GPU has taken yet, and how much of it is done.

    Its methods are called on the threads of all GPUs.
    """

    def __init__(self, rows: int, context: RunContext) -> None:
        self.token = JointToken(context.token)
        self._rows, self._progress = rows, context.progress
        self._taken = 0
        self._done: dict[int, float] = {}
        self._most = 0.0
        self._lock = threading.Lock()

    def take(self, most: int) -> tuple[int, int] | None:
        """Return the next rows, ``first <= y < last``, at most `most`; None if none are left."""
        self.token.check()
        with self._lock:
            first = self._taken
            self._taken = min(first + most, self._rows)
            return (first, self._taken) if first < self._taken else None

    def report(self, ordinal: int, rows: float) -> None:
        """Note how many rows a GPU has done so far."""
        with self._lock:
            self._done[ordinal] = rows
            self._most = max(self._most, sum(self._done.values()) / self._rows)
            self._progress("kernel", self._most)


class _Slab(NamedTuple):
    """Rows that are on their way to the card, or there."""

    part: Strip
    """Which rows."""
    # Addresses on the card.
    source: int
    target: int
    upload: Future[tuple[float, float]] | None
    """None if the source is there."""
    launch: StepLaunch | None
    """The kernels, if they could be made before."""


class Conveyor:
    """Upload, compute and download of one GPU, overlapped, in slabs of up to `rows` result rows."""

    def __init__(
        self, run: DeviceRun, rows: int, pixels: NDArray[Any], output: NDArray[Any], share: Share
    ) -> None:
        self.run, self.slabs = run, 0
        self._rows, self._pixels, self._output, self._share = rows, pixels, output, share
        self._final = run.steps[-1]
        self._finite_look = FiniteLook(run.device, run.cache)
        self._coming: _Slab | None = None
        self._in_flight: _Slab | None = None  # its kernels are queued
        self._pages: ReadyMemory | None = None  # that its result gets meanwhile
        self._kernels_end = 0.0  # of the last ones that were queued, by `time.perf_counter`
        self._rows_done = 0
        self._copies: list[Future[tuple[float, float]]] = []
        self._downloads: deque[Future[tuple[float, float]]] = deque()

    def work(self, rows: tuple[int, int] | None) -> None:
        """Filter these rows, and then others until none are left; on the device's thread."""
        run = self.run
        run.token = self._share.token
        try:
            self._fetch(rows)
            while (slab := self._coming) is not None:
                self._filter(slab)
            self._collect()
            run.is_finite = self._wants_look and bool(self._finite_look.read())
            while self._downloads:
                self._finish("download", self._downloads.popleft())
        except BaseException:
            self._share.token.cancel()
            self._abandon()
            raise
        finally:
            self._coming = None
            wait(self._copies)  # They use memory that is freed next.
            self._finite_look.free()
            run.free()

    def _fetch(self, rows: tuple[int, int] | None) -> None:
        """Have the source rows of a slab uploaded, and meanwhile make its kernels."""
        self._coming = None
        if rows is None:
            return
        final, height, run = self._final, self._pixels.shape[0], self.run
        part = strip(height, rows, final.radius, final.task.border, whole=final.whole)
        most = height if final.whole else min(height, self._rows + 2 * final.radius)
        # A source that all slabs need is uploaded once.
        number = 0 if final.whole else self.slabs % BUFFERS
        source = run.workspace.get(f"source {number}", most * _row_bytes(self._pixels))
        upload = None
        if not (final.whole and self.slabs):
            upload = self._copy(run.device.uploads, self._upload, part, source)
        number = self.slabs % BUFFERS
        target = run.workspace.get(f"target {number}", self._rows * _row_bytes(self._output))
        self._coming = _Slab(part, source, target, upload, make_ready(run, part, source, target))
        self.slabs += 1

    def _filter(self, slab: _Slab) -> None:
        """Queue the kernels of a slab, or run them in pieces; have the next slab fetched."""
        run, launch, staging = self.run, slab.launch, self.run.device.staging
        rows = self._output[slab.part.first : slab.part.last]
        self._await(slab.upload)
        while len(self._downloads) + (self._in_flight is not None) >= BUFFERS:
            self._finish("download", self._downloads.popleft())
        if launch is not None and launch.can_queue:
            launch.queue()
            self._queue_look(slab)
            self._collect()
            self._in_flight = slab
            self._fetch(self._share.take(self._rows))
            self._pages = staging.give_pages(rows)
            return
        self._collect()
        self._fetch(self._share.take(self._rows))
        run.report_progress = self._reporter(slab.part)
        with staging.giving_pages_to(rows):
            if launch is not None:
                launch.run()
            else:
                filter_rows(run, slab.part, slab.source, slab.target)
        self._queue_look(slab)
        self._send_down(slab)

    def _await(self, upload: Future[tuple[float, float]] | None) -> None:
        """Wait for an upload; should kernels be over before, send their result down meanwhile."""
        while upload is not None and not upload.done() and (slab := self._in_flight) is not None:
            wait([upload], timeout=_POLL_SECONDS)
            if slab.launch is not None and slab.launch.is_over:
                self._collect()
        self._finish("upload", upload)

    def _collect(self) -> None:
        """Wait for kernels that were queued, if there are any, and send their result down."""
        slab = self._in_flight
        if slab is None or slab.launch is None:
            return
        self.run.report_progress = self._reporter(slab.part)
        self._kernels_end = slab.launch.read(self._kernels_end)
        self._in_flight = None
        if self._pages is not None:
            self._pages.stop()
        self._send_down(slab)

    def _abandon(self) -> None:
        """Wait for kernels that are queued, as far as the card still works; after an error.

        Should that fail, its error is raised, with the first one as its context.
        """
        device = self.run.device
        if self._pages is not None:
            self._pages.abandon()
        if not device.lost:
            device.wait(device.stream)
            self._in_flight = None  # events of a lost context go once PyCUDA knows of it

    def _send_down(self, slab: _Slab) -> None:
        copy = self._copy(self.run.device.downloads, self._download, slab.part, slab.target)
        self._downloads.append(copy)
        self._rows_done += slab.part.last - slab.part.first

    def _reporter(self, part: Strip) -> Callable[[float], None]:
        """Return the progress callback of a slab.

        The run keeps it: it must not know the conveyor, which has the images.
        """
        share, ordinal = self._share, self.run.device.ordinal
        rows, done = part.last - part.first, self._rows_done
        return lambda fraction: share.report(ordinal, done + fraction * rows)

    def _queue_look(self, slab: _Slab) -> None:
        """Have the card look for floats that are not finite, after the kernels on the stream."""
        if self._wants_look:
            rows = slab.part.last - slab.part.first
            self._finite_look.queue(slab.target, rows * self._output[0].size)

    @property
    def _wants_look(self) -> bool:
        return self._output.dtype.kind == "f" and self._output.nbytes >= LOOK_BYTES

    def _copy(
        self, lane: Lane, copy: Callable[..., None], part: Strip, at: int
    ) -> Future[tuple[float, float]]:
        self._copies.append(lane.submit(copy, part, at))
        return self._copies[-1]

    def _finish(self, name: str, copy: Future[tuple[float, float]] | None) -> None:
        """Wait for a copy and note how long it took."""
        if copy is None:
            return
        device = self.run.device
        try:
            begun, seconds = copy.result()
            self.run.log.add(name, seconds, begun=begun)
        except device.cuda.Error:
            device.look_for_loss()
            raise

    def _upload(self, staging: Staging, part: Strip, source: int) -> None:
        row_bytes = _row_bytes(self._pixels)
        for row, first, count in part.source_pieces(self._pixels.shape[0]):
            staging.upload(self._pixels[first : first + count], source + row * row_bytes)

    def _download(self, staging: Staging, part: Strip, target: int) -> None:
        staging.download(target, self._output[part.first : part.last])


def _row_bytes(array: NDArray[Any]) -> int:
    return int(array.nbytes // array.shape[0])


def _wait(works: Sequence[Future[None]]) -> None:
    """Wait for all devices; raise the original error, not the cancellations that followed."""
    for work in works:
        wait_for(work)
    errors = [work.exception() for work in works]
    errors.sort(key=lambda error: 2 if error is None else isinstance(error, Cancelled))
    try:
        if errors[0] is not None:
            raise errors[0]
    finally:
        del work, works, errors  # Their tracebacks hold this frame: without this, a cycle.


def _record(log: RunLog, runs: Sequence[DeviceRun], begun: float, seconds: float) -> None:
    """Record the elapsed time of all slabs, and the stages of the busiest device meanwhile.

    Warming up, launches that were done again, and repeats but for the median one are taken off
    the clock: a run that is not measured has none.
    """
    for name in _IN_SLABS:
        parts = tuple(
            StagePart(run.device.ordinal, stage.start, stage.seconds)
            for run in runs
            for stage in run.log.stages
            if stage.name == name
        )
        if not parts:
            continue
        longest = max(
            ([stage for stage in run.log.stages if stage.name == name] for run in runs),
            key=lambda stages: sum(stage.seconds for stage in stages),
        )
        repeats = tuple(map(sum, zip(*(stage.repeats for stage in longest), strict=True)))
        busy = statistics.median(repeats) if repeats else sum(s.seconds for s in longest)
        kernels = added_up(kernel for stage in longest for kernel in stage.kernels)
        log.add(
            name,
            busy,
            overlapped=True,
            repeats=repeats,
            begun=log.origin + min(part.start for part in parts),
            parts=parts,
            kernels=kernels,
            excess=sum(stage.excess for stage in longest),
        )
        if repeats:
            seconds -= sum(repeats) - busy
        if name in ("warm-up", "repeat"):
            seconds -= busy
    log.add("slabs", max(0.0, seconds), begun=begun)
