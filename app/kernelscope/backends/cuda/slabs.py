"""Filters an image on one GPU in one piece, or on all of them in slabs.

*One piece*: an image that fits into a GPU's memory is filtered by the first GPU in one piece and
stays there, where the next filter finds it. Slabs would let copies overlap computing, but would
have to be uploaded again for every filter, and the card would idle at the end of each. The one
thing that overlaps is preparing the result's host memory.

*Slabs*: a volume with much work for several GPUs, and whatever does not fit, is cut into slabs that
have all rows that their own depend on, so that the result has the same bytes wherever it is cut.

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

The rows of a slab that fit into the memory (`rows_that_fit`) follow from

    2 (rows + 2 radius) source + 2 rows result + (rows + 2 radius) between + constant  <=  budget

where source, result and between are the bytes of a row (`needs`). For a 3x3 filter (radius 1) of
rows of 1000 bytes with no intermediate buffers, a budget of 100 kB has room for 24 rows of the
result: 2 * 26 * 1000 + 2 * 24 * 1000 = 100 000.
"""

from __future__ import annotations

import logging
import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from numpy.typing import NDArray

from kernelscope.backends.cuda import components, rim
from kernelscope.backends.cuda.card import GpuContext, Lane
from kernelscope.backends.cuda.device_run import DeviceRun, PreparedFilter
from kernelscope.backends.cuda.executor import StepLaunch, filter_rows, make_ready, read_times
from kernelscope.backends.cuda.memory import CHUNK_BYTES, ReadyMemory, Staging
from kernelscope.backends.cuda.reduction import LOOK_BYTES, FiniteLook, ReducedView
from kernelscope.backends.cuda.strips import Strip, strip
from kernelscope.backends.cuda.thread import wait_for
from kernelscope.base.errors import Cancelled, OutOfMemory
from kernelscope.base.text import enumerated
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.control import JointToken
from kernelscope.engine.timing import StagePart, added_up
from kernelscope.images.source import Source
from kernelscope.schema.samples import Kind

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
tenth of the copy of a slab."""


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

    part: Strip  # which rows
    # Addresses on the card.
    source: int
    target: int
    upload: Future[tuple[float, float]] | None  # None if the source is there
    launch: StepLaunch | None  # the kernels, if they could be made before


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


BUFFERS = 2  # for source rows, and for result rows: one in use by the kernels, one by a copy
MOST_SAMPLES = 2**31  # kernels of pictures count the samples of a buffer with 32 bits

SLAB_BYTES = 44 << 20
"""Size of a slab of a large result: short waits at both ends, and enough to keep the card busy. In
turns, 512³ voxels took two H100s 75.5 ms in the median with 32 MiB, and 71.7 with 44."""


def needs(steps: Sequence[PreparedFilter]) -> tuple[int, int, int, int]:
    """Return the bytes of a row of the source, of the result, and of the buffers between them.

    The last number is a constant: bytes that any number of rows needs.
    """
    first, final = steps[0].task, steps[-1].task
    between = constant = 0
    for step in steps:
        task, size = step.task, step.task.dtype.itemsize
        buffers = list(step.plan.scratch.values())
        textures = [launch for launch in step.plan.launches if launch.texture]
        buffers += [step.plan.scratch[each.texture_of[0]] for each in textures if each.texture_of]
        if any(not launch.texture_of for launch in textures):
            between += task.row_samples * size
        if step is not steps[-1]:
            between += task.out_row_samples * size
        for buffer in buffers:
            one, none = (buffer.size(rows, task.output_shape[0]) for rows in (1, 0))
            between += one - none
            constant += none
    return (
        first.row_samples * first.dtype.itemsize,
        final.out_row_samples * final.dtype.itemsize,
        between,
        constant,
    )


def fits(steps: Sequence[PreparedFilter], budget: int) -> bool:
    """Return whether everything fits into `budget` bytes in one piece that kernels can address."""
    for task in (step.task for step in steps):
        samples = max(math.prod(task.shape), math.prod(task.output_shape))
        if len(task.shape) == 3 and samples >= MOST_SAMPLES:
            return False
    height = max(steps[0].task.shape[0], steps[-1].task.output_shape[0])
    *rows, constant = needs(steps)
    return height * sum(rows) + constant <= budget


def rows_that_fit(steps: Sequence[PreparedFilter], budget: int) -> int:
    """Return how many rows of the result a slab may have for all buffers to fit."""
    source, result, between, constant = needs(steps)
    budget -= constant
    final = steps[-1]
    if final.whole:
        height = final.task.shape[0]
        return max(0, (budget - height * source) // (BUFFERS * result + between))
    halo = 2 * final.radius * (BUFFERS * source + between)
    return max(0, (budget - halo) // (BUFFERS * (source + result) + between))


def unit_rows(step: PreparedFilter) -> int:
    """Return the rows of which a slab needs a multiple, to have the bytes of one piece."""
    launches = step.plan.launches
    return math.lcm(*(launch.tile[-1] for launch in launches if launch.tile and launch.aligned))


def slab_rows(steps: Sequence[PreparedFilter], fitting: int, devices: int) -> int:
    """Return how many rows a slab should have, so that every GPU gets the same number.

    `SLAB_BYTES`, but at least four times as many as its halo, which is uploaded and computed again;
    whole tiles of the kernels where that is possible. 0 if `fitting` rows cannot be filtered by
    themselves.
    """
    final = steps[-1]
    unit = unit_rows(final)
    fitting = fitting // unit * unit
    if not fitting:
        return 0
    height = final.task.output_shape[0]
    _, result, *_ = needs(steps)
    wanted = min(max(SLAB_BYTES // result, 8 * final.radius, 1), fitting)
    turns = math.ceil(height / (devices * wanted))
    rows = math.ceil(height / (devices * turns))
    # Threads of the rim's kernel stride over few pixels: whole tiles would save it nothing.
    own = (launch for launch in final.plan.launches if launch.kernel != rim.KERNEL)
    tile = math.lcm(*(launch.tile[-1] for launch in own if launch.tile))
    whole_tiles = math.ceil(rows / tile) * tile
    return whole_tiles if whole_tiles <= fitting else min(math.ceil(rows / unit) * unit, fitting)


_logger = logging.getLogger(__name__)

WORTH_SHARING = 2.6e11
"""Operations of a volume from which on several GPUs are quicker than one, copies included."""

_COPYING = 1.5e4
"""Operations that take as long as a voxel's copies. Several GPUs share these too, but take about
3 ms to begin. With both figures, two H200 took a volume of 256³ floats in 0.5 to 1.0 of the time of
one (3-D mean, median, MRI NLM, both volume denoisers) and 400³ in 0.5 to 0.65 (Gaussian and Sobel
as long), and one of 181x217x181, which stays on one, would take 0.7 to 1.3."""


def apply(
    runs: Sequence[DeviceRun],
    image: Source,
    limit: int | None,
    context: RunContext,
    view: ReducedView | None = None,
) -> tuple[NDArray[Any], list[DeviceRun]]:
    """Filter `image`, in one piece or in slabs, and return the result and the runs that had work.

    - `runs`: one for each GPU, with the same filter.
    - `limit`: most bytes to use on each GPU.
    - `view`: reduces the result where it is filtered in one piece; otherwise it comes as it is.

    Raises `OutOfMemory` if not even a few rows fit on any GPU.
    """
    final, first = runs[0].steps[-1].task, runs[0].device
    out_of_memory, most_rows = first.cuda.MemoryError, math.inf
    share = len(runs) > 1 and image.kind is Kind.VOLUME and final.output_shape[0] > 1
    share = share and _operations(runs[0]) >= WORTH_SHARING
    if not share and _fits(runs[0], image, limit):
        output = components.result(first, final.output_shape, final.dtype)
        try:
            runs[0].log = context.log
            shown = runs[0].device.call(_one_piece, runs[0], image, output, context, view)
        except out_of_memory:
            most_rows = output.shape[0] // 2
        else:
            return shown, [runs[0]]
    budgets = [run.device.call(_bytes_free, run.device, image, limit) for run in runs]
    rows = [rows_that_fit(run.steps, most) for run, most in zip(runs, budgets, strict=True)]
    rows[0] = int(min(rows[0], most_rows))
    output = first.results.take(final.output_shape, final.dtype)
    while any(rows := [slab_rows(runs[0].steps, count, len(runs)) for count in rows]):
        crew = [(run, count) for run, count in zip(runs, rows, strict=True) if count]
        try:
            conveyors = in_slabs(crew, image, output, context)
        except out_of_memory:
            rows = [count // 2 for count in rows]
            _logger.warning("out of device memory: trying again in slabs of %s rows", rows)
        else:
            context.log.notices.append(_notice(conveyors, image, too_large=not share))
            return output, [conveyor.run for conveyor in conveyors]
    least = "a slice of this volume" if image.kind is Kind.VOLUME else "a few rows of this image"
    raise OutOfMemory(
        f"The GPU has too little free memory, even for {least}.",
        "Close other programs that use the GPU, or choose CPU.",
    )


def _operations(run: DeviceRun) -> float:
    """Return the work of the last step, by its plan, and of the copies."""
    step = run.steps[-1]
    samples = math.prod(step.task.output_shape)
    return samples * (_COPYING + sum(launch.operations_per_sample for launch in step.plan.launches))


def _fits(run: DeviceRun, image: Source, limit: int | None) -> bool:
    """Return whether everything should fit in one piece: an allocation may still fail."""
    device = run.device
    if not limit and fits(run.steps, device.likely_free):
        return True
    return fits(run.steps, device.call(_bytes_free, device, image, limit))


def _bytes_free(device: GpuContext, image: Source, limit: int | None) -> int:
    """Return the bytes that may be used on a device; on its thread."""
    if limit:  # Resident images count too.
        while device.resident.evict(image.key):
            pass
    free = device.free_memory() + device.resident.size
    return min(free * 9 // 10, limit or free)


def _one_piece(
    run: DeviceRun,
    image: Source,
    output: NDArray[Any],
    context: RunContext,
    view: ReducedView | None,
) -> NDArray[Any]:
    """Filter the whole image; it and the result stay on the card afterwards.

    With a view, only that is copied and returned, and `output` is left alone.
    """
    device, key, log = run.device, image.key, run.log
    run.token, run.report_progress = (
        context.token,
        lambda fraction: context.progress("kernel", fraction),
    )
    run.workspace.keep = run.spare.keep = key
    source = components.on_card(device, run.cache, image, log)
    target: Any = None
    try:
        with log.stage("allocate"):
            target = device.allocate(output.nbytes, keep=key)
        is_small = output.nbytes <= CHUNK_BYTES
        pages = (
            nullcontext()
            if view is not None or is_small
            else device.staging.giving_pages_to(components.memory_of(output))
        )
        run.may_read_later = is_small and not run.is_measured
        launching = _Launching(run)
        with pages, launching:
            filter_rows(run, None, int(source), int(target))
        begun = time.perf_counter()
        if view is not None:
            shown = view.download(device, int(target))
        else:
            components.download(device, run.cache, int(target), output)
        launching.add_download(begun)
    except BaseException:
        if not device.lost:
            device.wait(device.stream)  # the upload may still be under way
        if target is not None:
            device.free(target)
        raise
    finally:
        run.may_read_later = False
        run.free()
    if view is not None:
        device.free(target)
        return shown
    device.resident.put(output, target, output.nbytes)
    return output


class _Launching(AbstractContextManager[None]):
    """Frees the memory of launches that are over, and records their time outside of stages.

    Of several repeats it is the part of one. Emptying the cache for each is no part of a run.
    Launches that were not waited for are over after the download: `add_download` takes their time
    off it.
    """

    def __init__(self, run: DeviceRun) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._before = len(self._run.log.stages)  # those of other slices
        self._kernels, self._begun = self._run.busy_seconds, time.perf_counter()

    def __exit__(self, *error: object) -> None:
        run = self._run
        if not run.unread:
            run.free()
        # Memory, warm-up, parts handed over, launches done again.
        meanwhile = run.log.stages[self._before :]
        others = (stage for stage in meanwhile if stage.name != "kernel")
        busy = run.busy_seconds - self._kernels
        busy += sum(sum(stage.repeats) or stage.seconds for stage in others)
        self._seconds = max(0.0, time.perf_counter() - self._begun - busy) / run.repeat
        if not run.unread:
            self._add()

    def _add(self) -> None:
        run = self._run
        run.log.add("launch", self._seconds, counted=not run.cold, begun=self._begun)

    def add_download(self, begun: float) -> None:
        """Record the download that began then and is over, and launches that it has waited for."""
        run, end, kernels = self._run, time.perf_counter(), 0.0
        if run.unread:
            kernels = read_times(run)
            self._seconds += time.perf_counter() - end
            self._add()
        run.log.add("download", max(0.0, end - begun - kernels), begun=begun + kernels)


def _notice(conveyors: Sequence[Conveyor], image: Source, *, too_large: bool) -> str:
    """Say into how many slabs an image was cut, and where they went."""
    what, part = ("volume", "slab") if image.kind is Kind.VOLUME else ("image", "strip")
    shares = [
        f"{conveyor.slabs} {part}{'s' * (conveyor.slabs > 1)} on GPU {conveyor.run.device.ordinal}"
        for conveyor in conveyors
    ]
    why = " is too large for the GPU's free memory: it" if too_large else ""
    return f"The {what}{why} was filtered in {enumerated(shares)}; transfers overlapped computing."
