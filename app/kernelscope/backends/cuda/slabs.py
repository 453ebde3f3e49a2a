"""Decides which GPU filters which rows, and carries them there and back.

*One piece*: what fits into a GPU's memory is filtered by the first GPU in one piece and stays
there, so that the next filter finds it. Cut up, it could be copied while it is computed, but it
would have to be carried up again every time, and at the end of each slab the card stands half
empty. What can be hidden without that is done: the result's memory is made ready meanwhile.

*Slabs*: a volume for several GPUs, and whatever does not fit, is cut into slabs. Each GPU takes
the next one while it computes the one before, so that a slower or busier one takes fewer and all
end within a slab of each other. Meanwhile threads of its own (`device.Lane`) carry that slab up
and the one before down, between buffers in pairs: a buffer is filled again when the kernels or
the copy that read it are done. The result has the same bytes wherever it is cut, because a slab
has all rows that its own depend on.
"""

from __future__ import annotations

import logging
import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda import rim
from kernelscope.backends.cuda.card import Card, Lane
from kernelscope.backends.cuda.executor import DeviceRun, PreparedFilter, filter_rows
from kernelscope.backends.cuda.memory import Staging
from kernelscope.backends.cuda.strips import Strip, strip
from kernelscope.backends.cuda.thread import wait_for
from kernelscope.engine.control import CancelToken, JointToken, Progress
from kernelscope.engine.timing import Part, Stopwatch, added_up
from kernelscope.errors import Cancelled, OutOfMemory
from kernelscope.images.source import Source
from kernelscope.spec.samples import Kind

_logger = logging.getLogger(__name__)

BUFFERS = 2
"""For source rows, and for result rows: one in use by the kernels, one by a copy."""

MOST_SAMPLES = 2**31
"""Kernels of pictures count the samples of a buffer with 32 bits."""

SLAB_BYTES = 32 << 20
"""What a slab of a large result has: little to wait for at both ends, and enough for the card."""


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


def apply(
    runs: Sequence[DeviceRun],
    image: Source,
    limit: int | None,
    stopwatch: Stopwatch,
    token: CancelToken,
    progress: Progress,
) -> tuple[NDArray[Any], list[DeviceRun]]:
    """Filter `image`, in one piece or in slabs; the result is the same.

    Parameters
    ----------
    runs : sequence of DeviceRun
        One for each GPU, with the same filter.
    limit : int, optional
        Most bytes to use on each GPU.

    Returns
    -------
    ndarray, shape (height, width, channels) or (depth, height, width, components)
    list of DeviceRun
        Those that had work to do.

    Raises
    ------
    OutOfMemory
        If not even a few rows fit on any GPU.
    """
    final = runs[0].steps[-1].task
    output = np.empty(final.output_shape, final.dtype)
    budgets = [run.device.call(_budget, run.device, image, limit) for run in runs]
    out_of_memory = runs[0].device.cuda.MemoryError
    rows = [_rows_that_fit(run.steps, budget) for run, budget in zip(runs, budgets, strict=True)]
    share = len(runs) > 1 and image.kind is Kind.VOLUME and output.shape[0] > 1
    if not share and _fits(runs[0].steps, budgets[0]):
        try:
            runs[0].stopwatch = stopwatch
            runs[0].device.call(_one_piece, runs[0], image, output, token, progress)
        except out_of_memory:
            rows[0] = min(rows[0], output.shape[0] // 2)
        else:
            return output, [runs[0]]
    while any(rows := [_slab_rows(runs[0].steps, count, len(runs)) for count in rows]):
        crew = [(run, count) for run, count in zip(runs, rows, strict=True) if count]
        try:
            lines = _in_slabs(crew, image, output, stopwatch, token, progress)
        except out_of_memory:
            rows = [count // 2 for count in rows]
            _logger.warning("out of device memory: trying again in slabs of %s rows", rows)
        else:
            stopwatch.notices.append(_notice(lines, image, too_large=not share))
            return output, [line.run for line in lines]
    least = "a slice of this volume" if image.kind is Kind.VOLUME else "a few rows of this image"
    raise OutOfMemory(
        f"The GPU has too little free memory, even for {least}.",
        "Close other programs that use the GPU, or choose CPU.",
    )


# Memory -------------------------------------------------------------------------------


def _budget(device: Card, image: Source, limit: int | None) -> int:
    """Return the bytes that may be used on a device; on its thread."""
    if limit:  # What stays on the card counts too.
        while device.resident.evict(image.pixels):
            pass
    free = device.free_memory() + device.resident.size
    return min(free * 9 // 10, limit or free)


def _needs(steps: Sequence[PreparedFilter]) -> tuple[int, int, int, int]:
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


def _fits(steps: Sequence[PreparedFilter], budget: int) -> bool:
    """Tell whether everything fits into `budget` bytes in one piece that kernels can address."""
    for task in (step.task for step in steps):
        samples = max(math.prod(task.shape), math.prod(task.output_shape))
        if len(task.shape) == 3 and samples >= MOST_SAMPLES:
            return False
    height = max(steps[0].task.shape[0], steps[-1].task.output_shape[0])
    *rows, constant = _needs(steps)
    return height * sum(rows) + constant <= budget


def _rows_that_fit(steps: Sequence[PreparedFilter], budget: int) -> int:
    """Return how many rows of the result a slab may have for all buffers to fit."""
    source, result, between, constant = _needs(steps)
    budget -= constant
    final = steps[-1]
    if final.whole:
        height = final.task.shape[0]
        return max(0, (budget - height * source) // (BUFFERS * result + between))
    halo = 2 * final.radius * (BUFFERS * source + between)
    return max(0, (budget - halo) // (BUFFERS * (source + result) + between))


def _unit(step: PreparedFilter) -> int:
    """Return the rows of which a slab needs a multiple, to have the bytes of one piece."""
    launches = step.plan.launches
    return math.lcm(*(launch.tile[-1] for launch in launches if launch.tile and launch.aligned))


def _slab_rows(steps: Sequence[PreparedFilter], fitting: int, devices: int) -> int:
    """Return how many rows a slab should have, so that every GPU gets as many slabs.

    `SLAB_BYTES`, but at least twice as many as its halo, which is carried up again; whole tiles
    of the kernels where that is possible. 0 if `fitting` rows cannot be filtered by themselves.
    """
    final = steps[-1]
    unit = _unit(final)
    fitting = fitting // unit * unit
    if not fitting:
        return 0
    height = final.task.output_shape[0]
    _, result, *_ = _needs(steps)
    wanted = min(max(SLAB_BYTES // result, 4 * final.radius, 1), fitting)
    turns = math.ceil(height / (devices * wanted))
    rows = math.ceil(height / (devices * turns))
    # Threads of the rim's kernel stride over few pixels: whole tiles would save it nothing.
    own = (launch for launch in final.plan.launches if launch.kernel != rim.KERNEL)
    tile = math.lcm(*(launch.tile[-1] for launch in own if launch.tile))
    whole_tiles = math.ceil(rows / tile) * tile
    return whole_tiles if whole_tiles <= fitting else min(math.ceil(rows / unit) * unit, fitting)


# One piece ----------------------------------------------------------------------------


def _one_piece(
    run: DeviceRun,
    image: Source,
    output: NDArray[Any],
    token: CancelToken,
    progress: Progress,
) -> None:
    """Filter the whole image; it and the result stay on the card afterwards."""
    device, pixels, stopwatch = run.device, image.pixels, run.stopwatch
    run.token, run.tell = token, lambda fraction: progress("kernel", fraction)
    run.workspace.keep = run.spare.keep = pixels
    if device.resident.has_dead:
        with stopwatch.stage("free"):
            device.resident.drop_dead()
    resident = device.resident.get(pixels)
    source: Any = resident
    if resident is None:
        with stopwatch.stage("allocate"):
            source = device.allocate(pixels.nbytes)
        try:
            with stopwatch.stage("upload"):
                device.staging.upload(pixels, int(source))
        except BaseException:
            device.free(source)
            raise
        device.resident.put(pixels, source)
    with stopwatch.stage("allocate"):
        target = device.allocate(output.nbytes, keep=pixels)
    try:
        with device.staging.giving_pages_to(output), _launching(run):
            filter_rows(run, None, int(source), int(target))
        with stopwatch.stage("download"):
            device.staging.download(int(target), output)
    except BaseException:
        device.free(target)
        raise
    device.resident.put(output, target)


@contextmanager
def _launching(run: DeviceRun) -> Iterator[None]:
    """Free what launches allocated, and note what they took beside the stages meanwhile.

    Of several repeats it is the part of one. Emptying the cache for each is no part of a run.
    """
    start, before = time.perf_counter(), len(run.stopwatch.stages)  # those of other slices
    kernels = run.busy_seconds
    try:
        yield
    finally:
        run.free()
    meanwhile = run.stopwatch.stages[before:]  # memory, warming up, what was handed over, repeated
    others = (stage for stage in meanwhile if stage.name != "kernel")
    busy = run.busy_seconds - kernels + sum(sum(each.repeats) or each.seconds for each in others)
    seconds = max(0.0, time.perf_counter() - start - busy)
    run.stopwatch.add("launch", seconds / run.repeat, counted=not run.cold, begun=start)


# Slabs --------------------------------------------------------------------------------


def _in_slabs(
    crew: Sequence[tuple[DeviceRun, int]],
    image: Source,
    output: NDArray[Any],
    stopwatch: Stopwatch,
    token: CancelToken,
    progress: Progress,
) -> list[_Line]:
    """Filter slabs of at most so many rows on each device; return who had any."""
    with stopwatch.stage("prepare"):
        for run, _ in crew:
            run.restart(stopwatch.origin)
            run.device.call(run.device.open_lanes)
    share = _Share(output.shape[0], token, progress)
    # Dealt out, lest one fetches its second slab before another has its first.
    dealt = [
        (_Line(run, rows, image.planes, output, share), first)
        for run, rows in crew
        if (first := share.take(rows))
    ]
    lines = [line for line, _ in dealt]
    start = time.perf_counter()
    _wait([line.run.device.submit(line.work, first) for line, first in dealt])
    seconds = time.perf_counter() - start
    _record(stopwatch, [line.run for line in lines], start, seconds)
    return lines


class _Share:
    """The rows of a result that no GPU has taken yet, and how much of it is done.

    Its methods are called on the threads of all GPUs.
    """

    def __init__(self, rows: int, token: CancelToken, progress: Progress) -> None:
        self.token = JointToken(token)
        self._rows, self._progress = rows, progress
        self._taken = 0
        self._done: dict[int, float] = {}
        self._most = 0.0
        self._lock = threading.Lock()

    def take(self, most: int) -> tuple[int, int] | None:
        """Return the next rows, ``first <= y < last``, at most so many; None if there are none."""
        self.token.check()
        with self._lock:
            first = self._taken
            self._taken = min(first + most, self._rows)
            return (first, self._taken) if first < self._taken else None

    def tell(self, ordinal: int, rows: float) -> None:
        """Note how many rows a GPU has done so far."""
        with self._lock:
            self._done[ordinal] = rows
            self._most = max(self._most, sum(self._done.values()) / self._rows)
            self._progress("kernel", self._most)


class _Line:
    """One GPU at work on slabs: it computes one while the next goes up and the last comes down.

    Parameters
    ----------
    rows : int
        Of the result in a slab, at most.

    Attributes
    ----------
    slabs : int
        How many it took.
    """

    def __init__(
        self, run: DeviceRun, rows: int, pixels: NDArray[Any], output: NDArray[Any], share: _Share
    ) -> None:
        self.run, self.slabs = run, 0
        self._rows, self._pixels, self._output, self._share = rows, pixels, output, share
        self._final = run.steps[-1]
        self._filtered = self._rows_done = 0
        self._copies: list[Future[tuple[float, float]]] = []
        self._downloads: deque[Future[tuple[float, float]]] = deque()

    def work(self, rows: tuple[int, int] | None) -> None:
        """Filter these rows, and then others until none are left; on the device's thread."""
        self.run.token = self._share.token
        try:
            coming = self._fetch(rows)
            while coming is not None:
                slab, source, upload = coming
                self._finish("upload", upload)
                coming = self._fetch(self._share.take(self._rows))
                self._filter(slab, source)
            while self._downloads:
                self._finish("download", self._downloads.popleft())
        except BaseException:
            self._share.token.cancel()
            raise
        finally:
            wait(self._copies)  # They use what is freed next.
            self.run.free()

    def _fetch(
        self, rows: tuple[int, int] | None
    ) -> tuple[Strip, int, Future[tuple[float, float]] | None] | None:
        """Send the source rows of a slab up; return it, where to, and what tells of the end."""
        if rows is None:
            return None
        final, height = self._final, self._pixels.shape[0]
        slab = strip(height, rows, final.radius, final.task.border, whole=final.whole)
        most = height if final.whole else min(height, self._rows + 2 * final.radius)
        # What all slabs need goes up once.
        number = 0 if final.whole else self.slabs % BUFFERS
        source = self.run.workspace.get(f"source {number}", most * _row_bytes(self._pixels))
        upload = None
        if not (final.whole and self.slabs):
            upload = self._copy(self.run.device.uploads, self._upload, slab, source)
        self.slabs += 1
        return slab, source, upload

    def _filter(self, slab: Strip, source: int) -> None:
        """Filter a slab and send the result down."""
        run, share = self.run, self._share
        rows, done = slab.last - slab.first, self._rows_done
        run.tell = lambda fraction: share.tell(run.device.ordinal, done + fraction * rows)
        if len(self._downloads) == BUFFERS:
            self._finish("download", self._downloads.popleft())
        number = self._filtered % BUFFERS
        target = run.workspace.get(f"target {number}", self._rows * _row_bytes(self._output))
        with run.device.staging.giving_pages_to(self._output[slab.first : slab.last]):
            filter_rows(run, slab, source, target)
        self._downloads.append(self._copy(run.device.downloads, self._download, slab, target))
        self._filtered += 1
        self._rows_done += rows

    def _copy(
        self, lane: Lane, copy: Callable[..., None], slab: Strip, at: int
    ) -> Future[tuple[float, float]]:
        self._copies.append(lane.submit(copy, slab, at))
        return self._copies[-1]

    def _finish(self, name: str, copy: Future[tuple[float, float]] | None) -> None:
        """Wait for a copy and note how long it took."""
        if copy is None:
            return
        device = self.run.device
        try:
            begun, seconds = copy.result()
            self.run.stopwatch.add(name, seconds, begun=begun)
        except device.cuda.Error:
            device.look_for_loss()
            raise

    def _upload(self, staging: Staging, slab: Strip, source: int) -> None:
        row_bytes = _row_bytes(self._pixels)
        for row, first, count in slab.source_pieces(self._pixels.shape[0]):
            staging.upload(self._pixels[first : first + count], source + row * row_bytes)

    def _download(self, staging: Staging, slab: Strip, target: int) -> None:
        staging.download(target, self._output[slab.first : slab.last])


def _row_bytes(array: NDArray[Any]) -> int:
    return int(array.nbytes // array.shape[0])


def _wait(works: Sequence[Future[None]]) -> None:
    """Wait for all devices; raise what went wrong, not that the others stopped for it."""
    for work in works:
        wait_for(work)
    errors = [work.exception() for work in works]
    errors.sort(key=lambda error: 2 if error is None else isinstance(error, Cancelled))
    try:
        if errors[0] is not None:
            raise errors[0]
    finally:
        del work, works, errors  # Their tracebacks hold this frame: without this, a cycle.


def _record(stopwatch: Stopwatch, runs: Sequence[DeviceRun], begun: float, seconds: float) -> None:
    """Note how long slabs took by the clock, and how long the busiest device did what meanwhile.

    Warming up, launches that were done again, and repeats but for the median one are taken off
    the clock: a run that is not measured has none.
    """
    for name in _IN_SLABS:
        parts = tuple(
            Part(run.device.ordinal, stage.start, stage.seconds)
            for run in runs
            for stage in run.stopwatch.stages
            if stage.name == name
        )
        if not parts:
            continue
        longest = max(
            ([stage for stage in run.stopwatch.stages if stage.name == name] for run in runs),
            key=lambda stages: sum(stage.seconds for stage in stages),
        )
        repeats = tuple(map(sum, zip(*(stage.repeats for stage in longest), strict=True)))
        busy = statistics.median(repeats) if repeats else sum(s.seconds for s in longest)
        kernels = added_up(kernel for stage in longest for kernel in stage.kernels)
        stopwatch.add(
            name,
            busy,
            overlapped=True,
            repeats=repeats,
            begun=stopwatch.origin + min(part.start for part in parts),
            parts=parts,
            kernels=kernels,
        )
        if repeats:
            seconds -= sum(repeats) - busy
        if name in ("warm-up", "repeat"):
            seconds -= busy
    stopwatch.add("slabs", max(0.0, seconds), begun=begun)


def _notice(lines: Sequence[_Line], image: Source, *, too_large: bool) -> str:
    """Say into how many slabs an image was cut, and where they went."""
    what, part = ("volume", "slab") if image.kind is Kind.VOLUME else ("image", "strip")
    shares = [
        f"{line.slabs} {part}{'s' * (line.slabs > 1)} on GPU {line.run.device.ordinal}"
        for line in lines
    ]
    why = " is too large for the GPU's free memory: it" if too_large else ""
    where = " and ".join(filter(None, (", ".join(shares[:-1]), shares[-1])))
    return f"The {what}{why} was filtered in {where}; transfers overlapped computing."
