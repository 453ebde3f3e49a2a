"""One launch of a plan on one device: its arguments, warming up, batches and times.

How a kernel is timed. Every launch stands between two events on the card's stream; those of a
measurement behind a kernel that keeps the card busy while the host queues them::

    host    queue: hold, event, launch ..., event   │ wait
    card    ├──── hold ────┤ event ├── launch ──┤ event

Other runs do without that: it takes longer than a small picture. The card may then wait between the
events for the host to queue the launch; `DeviceRun.excess` has the most that this can have been.

A launch shorter than `SHORT_SECONDS` is timed in a batch, whose time is divided by its length.

A run that is no measurement waits for short launches and its copies together: `ShortStep`.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kernelscope.backends.cuda.arguments import (
    GEOMETRY_NUMBERS,
    HandedOver,
    Mapped,
    Texture,
    geometry,
    set_constants,
    upload_tables,
)
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin, CubinCache
from kernelscope.backends.cuda.device_run import (
    LAUNCH_SECONDS,
    DeviceRun,
    Pacer,
    Piece,
    PreparedFilter,
    RowPlace,
    launch_report,
)
from kernelscope.backends.cuda.sources import read_source
from kernelscope.engine.timing import LaunchReport
from kernelscope.schema.launch import Launch

HOLD_SECONDS = 40e-6
"""How long the card is kept busy before a launch: longer than the host takes to queue it."""

SHORT_SECONDS = 50e-6
"""Launches that take less are measured in batches: their overhead counts too much."""

BATCH_SECONDS = 200e-6
"""How long a batch takes at least, unless that takes too many launches or too much memory."""

LONG_SECONDS = 5e-3  # kernels that take longer warm up once
WARM_UPS = 3  # launches before a measurement, of kernels that are quick
TRIES = 4  # most attempts until the host queues a measured launch in time, each with twice the hold
MOST_LAUNCHES = 128  # of a batch; the driver queues many times as many
QUEUE_SECONDS = 10e-6  # how much longer the card is kept busy for each further launch of a batch
ALIGNMENT = 512  # bytes to which the driver's own allocations are aligned


@dataclass(frozen=True)
class LaunchNeeds:
    """The needs of a launch of a plan, whatever rows it is for."""

    step: PreparedFilter  # its plan has the launch
    # Of PyCUDA; the function knows the types of its arguments.
    module: Any
    function: Any
    block: tuple[int, int, int]
    reports: dict[tuple[int, ...], LaunchReport]  # the report of the launch, by its grid
    number: int  # index of the launch in the plan

    @classmethod
    def of(cls, step: PreparedFilter, number: int, device: GpuContext) -> LaunchNeeds:
        """Return it for a launch by number; the device keeps those of plans that it keeps.

        Others may hold a map of sigma, as large as a volume.
        """
        key = ("ready", id(step), number) if step.is_kept else None
        kept = device.kept(key)
        if isinstance(kept, cls):
            return kept
        launch, cuda = step.plan.launches[number], device.cuda
        module, function = device.function(step.cubins[number], launch.kernel)
        pointers = 2 + len(launch.tables) + len(launch.scratch)
        integers = GEOMETRY_NUMBERS[len(step.task.shape)] + (2 if launch.steps else 0)
        function.prepare("P" * pointers + "i" * integers)
        # Plans with other macros may have the same code, and so the same function: none may lower
        # the most that another one needs.
        most = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        if launch.shared_bytes > max(48 * 1024, function.get_attribute(most)):
            function.set_attribute(most, launch.shared_bytes)
        made = cls(step, module, function, block_of(launch, function, device), {}, number)
        device.keep(key, made)
        return made

    def report(self, grid: tuple[int, ...], run: DeviceRun) -> LaunchReport:
        """Return how the kernel is launched in this many blocks, and the compiler's report."""
        if grid not in self.reports:
            launch, cubin = self.step.plan.launches[self.number], self.step.cubins[self.number]
            self.reports[grid] = launch_report(self.step, launch, cubin, grid, self.block, run)
        return self.reports[grid]


class Timed(NamedTuple):
    """Launches on the stream between two events, and how long the host took to put them there."""

    events: tuple[Any, Any]
    queueing: float


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The data that the launches of a step share."""

    step: PreparedFilter
    place: RowPlace
    run: DeviceRun
    scratch: Mapping[str, int]
    """Addresses of the buffers by which kernels hand on intermediate results."""
    evict: Callable[[], None]  # empties the card's cache, of a run that is cold
    # Textures for whoever made this to free: those of the launches, and those of measuring only.
    textures: list[Texture] = field(default_factory=list)
    spares: list[Texture] = field(default_factory=list)


class Kernel:
    """One launch of a plan, ready to go: its arguments lie on the card.

    - `batch`: launches between two events; `settle` decides.
    - `thrown_away`: when launches began that were measured in vain, by `time.perf_counter`, and the
      seconds that went by until they were done again.
    """

    def __init__(self, around: Surroundings, number: int) -> None:
        step, place, run, scratch = around.step, around.place, around.run, around.scratch
        launch = step.plan.launches[number]
        self._step, self._launch, self._cubin = step, launch, step.cubins[number]
        self._place, self._run = place, run
        self._evict, self._spares = around.evict, around.spares
        self.batch = 1
        self.thrown_away: list[tuple[float, float]] = []
        self._measured = False
        self._queued: Timed | None = None
        self._ready = LaunchNeeds.of(step, number, run.device)
        self._function, self._block = self._ready.function, self._ready.block
        set_constants(launch, self._ready.module, run.device)
        self._hardware_border = (
            launch.texture and place.hardware_border and launch.texture_of is None
        )
        first = place.source
        if launch.texture:
            self._texels = self._make_texture(around.textures)
            first = self._texels.handle
        self._mapped = Mapped(step.task, place, run) if launch.mapped else None
        target = place.target
        if self._mapped is not None:
            first, target = self._mapped.source, self._mapped.target
        self._ends = [(first, target)]
        self._scratch = scratch
        tables = upload_tables(launch, step.spec.id, run)
        self._arguments = [*tables, *(scratch[name] for name in launch.scratch)]
        self._handed = None
        if launch.hand_over:
            self._handed = HandedOver(step.plan, launch, place, scratch, run)
        self._hold = _holder(run) if run.is_measured else None
        self._pacer = self._shared_pacer()

    def _make_texture(self, textures: list[Texture]) -> Texture:
        """Return the texture that the kernel reads, filled unless earlier kernels do that."""
        run = self._run
        with run.log.stage("allocate"):
            texture = run.device.make_room(self._texture, run.workspace.keep)
        textures.append(texture)
        if self._launch.texture_of is None:
            texture.fill(self._place.source, run.device.stream)
        return texture

    def _texture(self) -> Texture:
        """Return a texture for the source, or for a scratch buffer of floats."""
        task, place, of = self._step.task, self._place, self._launch.texture_of
        if of is not None:
            name, columns = of
            size = self._step.plan.scratch[name].size(place.last - place.first, place.all_rows)
            return Texture(columns, size // (4 * columns), np.dtype(np.float32), None)
        border = task.border if self._hardware_border else None
        return Texture(task.row_samples, place.source_rows, task.dtype, border)

    @property
    def leaves_work(self) -> bool:
        """Whether copies of host memory may follow the last launch on the stream."""
        return self._mapped is not None

    @property
    def _can_batch(self) -> bool:
        """Whether launches may follow each other: nothing of the host's comes between them.

        Nor do steps that have to wait for all blocks of the one before.
        """
        steps = max(self._launch.steps, 1)
        in_one = steps <= (self._launch.steps_at_once or steps)
        return self._place.is_whole and self._mapped is None and self._handed is None and in_one

    @functools.cached_property
    def _alike(self) -> Hashable:
        """Key of measurements that are timed alike."""
        task, launch = self._step.task, self._launch
        # A search radius is in no macro: the work distinguishes such launches.
        work = launch.operations_per_sample, launch.steps
        return self._cubin.code, launch.kernel, self._block, task.shape, task.output_shape, work

    @property
    def batch_is_known(self) -> bool:
        """Whether an earlier measurement decided about batches."""
        return not self._can_batch or self._alike in self._run.device.batches

    def warm_up(self) -> Iterator[float]:
        """Launch without being timed, three times if that is quick; yield how much is done.

        The first launch of a process loads code, and takes longer, and any may be disturbed: the
        quickest decides about batches, unless they are known.
        """
        quickest = math.inf
        for turn in range(WARM_UPS):
            self._evict()
            times = []
            for seconds, fraction in self.run():
                times.append(seconds)
                if not turn:
                    yield fraction
            if len(times) == 1:
                quickest = min(quickest, times[0])
            if sum(times) > LONG_SECONDS:
                break
        if self._handed:
            self._handed.forget()
        if self._can_batch:
            short = quickest < SHORT_SECONDS
            launches = math.ceil(BATCH_SECONDS / max(quickest, 1e-9)) if short else 1
            self._run.device.batches.setdefault(self._alike, min(launches, MOST_LAUNCHES))

    def settle(self, measured: bool) -> None:
        """Decide how many launches are timed together, and make room for them.

        If the cache is emptied before a batch, each of its launches reads its own picture and
        writes its own result, so that it reads from memory, as a single launch would.
        """
        device, run, place, task = self._run.device, self._run, self._place, self._step.task
        self._measured = measured
        if measured and self._can_batch:
            self.batch = device.batches[self._alike]
        if self.batch == 1 or not run.cold:
            return
        source_bytes = place.source_rows * task.row_samples * task.dtype.itemsize
        target_bytes = (place.last - place.first) * task.out_row_samples * task.dtype.itemsize
        pitches = [-(-size // ALIGNMENT) * ALIGNMENT for size in (source_bytes, target_bytes)]
        copies = min(self.batch - 1, device.free_memory() // 4 // sum(pitches))
        self.batch = 1 + copies
        if not copies:
            return
        name = self._step.spec.id, self._launch.kernel
        source, target = (
            run.spare.get((*name, role), copies * pitch)
            for role, pitch in zip(("sources", "targets"), pitches, strict=True)
        )
        for _ in range(copies):
            device.cuda.memcpy_dtod_async(source, place.source, source_bytes, device.stream)
            first = source
            if self._launch.texture_of is not None:  # filled again before every launch
                first = self._texels.handle
            elif self._launch.texture:
                self._spares.append(device.make_room(self._texture, run.workspace.keep))
                self._spares[-1].fill(source, device.stream)
                first = self._spares[-1].handle
            self._ends.append((first, target))
            source, target = source + pitches[0], target + pitches[1]

    def _shared_pacer(self) -> Pacer:
        """Return the pacer of this kernel in all slabs of a run."""
        launch, task, run = self._launch, self._step.task, self._run
        operations = task.busiest_row_samples * launch.operations_per_sample
        first = Pacer(launch, operations, run.device.paces.get(self._alike))
        return run.pacers.setdefault((self._step.spec.id, launch.kernel), first)

    @property
    def can_queue(self) -> bool:
        """Whether it is one launch, by its pace, of a run that is no measurement: see `queue`.

        It takes arguments only, and should take no longer than half of `LAUNCH_SECONDS`.
        """
        rows = self._place.last - self._place.first
        is_simple = self._launch.is_plain and not self._run.is_measured
        return is_simple and self._pacer.is_one_piece(rows, LAUNCH_SECONDS / 2)

    def queue(self) -> None:
        """Put the only launch on the stream; `read` follows."""
        place, launch = self._place, self._launch
        piece = Piece(place.first, place.last, 0, max(launch.steps, 1))
        queued = self._put(piece, 0.0)
        if not queued.events[0].query():  # the card was busy with others, and waited for nobody
            queued = queued._replace(queueing=0.0)
        self._queued = queued

    @property
    def is_over(self) -> bool:
        """Whether the launch that was queued is over."""
        return self._queued is not None and bool(self._queued.events[1].query())

    def read(self) -> float:
        """Wait for the launch that was queued and return its seconds."""
        assert self._queued is not None
        queued, self._queued = self._queued, None
        self._run.device.wait(queued.events[1])
        seconds = self._seconds_of(queued)
        self._run.excess += min(queued.queueing, seconds)
        rows = self._place.last - self._place.first
        self._pacer.learn(rows * max(self._launch.steps, 1), seconds)
        self._run.device.paces[self._alike] = self._pacer.units
        return seconds

    def run(self) -> Iterator[tuple[float, float]]:
        """Launch over all rows and steps; yield the seconds of each piece and the part done.

        Of a batch, these are the mean of its launches.
        """
        launch, place, pacer = self._launch, self._place, self._pacer
        done, units = 0, (place.last - place.first) * max(launch.steps, 1)
        if launch.texture_of is not None:  # kernels before this one have just written it
            self._texels.fill(self._scratch[launch.texture_of[0]], self._run.device.stream)
        if self._handed:
            self._handed.begin()
        pieces = pacer.pieces(place.first, place.last)
        if self.batch > 1:  # known to be short
            pieces = iter([Piece(place.first, place.last, 0, max(launch.steps, 1))])
        for piece in pieces:
            self._run.token.check()
            if self._handed and piece.start == place.first:
                self._handed.over(piece.first_step)
            seconds = self._go(piece)
            pacer.learn(piece.units, seconds)
            done += piece.units
            yield seconds, done / units
        self._run.device.paces[self._alike] = pacer.units
        if self._mapped is not None:
            self._mapped.bring_back()

    def _go(self, piece: Piece) -> float:
        """Launch over a piece, wait, and return the seconds between the events.

        A measured launch has to be queued before the card begins, or the host would be timed. If
        that was too slow, it is done again, unless it goes on where another launch ended.
        """
        device, launch = self._run.device, self._launch
        hold = HOLD_SECONDS + (self.batch - 1) * QUEUE_SECONDS
        again = self.batch > 1 or (self._measured and not launch.steps)
        for attempt in range(TRIES if again else 1):
            start = time.perf_counter()
            if attempt:
                self._evict()
            queued = self._put(piece, hold * 2**attempt)
            begin, end = queued.events
            in_time = self._hold is not None and not begin.query()
            device.wait(end)
            if in_time or attempt == TRIES - 1 or not again:
                break
            device.give_events(queued.events)
            self.thrown_away.append((start, time.perf_counter() - start))
        seconds = self._seconds_of(queued)
        if not in_time:
            self._run.excess += min(queued.queueing, seconds)
        return seconds

    def _put(self, piece: Piece, hold: float) -> Timed:
        """Put a batch of launches over a piece on the stream, held for this many seconds."""
        device, launch = self._run.device, self._launch
        stream, call = device.stream, self._function.prepared_async_call
        grid = launch.grid(self._step.task.output_shape, piece.stop - piece.start)
        place = self._place
        numbers = geometry(
            self._step.task,
            piece.start,
            piece.stop,
            place.source_row,
            place.first,
            hardware_border=self._hardware_border,
        )
        if launch.steps:
            numbers += (piece.first_step, piece.last_step)
        begin, end = events = device.take_events()
        if self._hold is not None:
            self._hold(hold)
        queueing = time.perf_counter()
        begin.record(stream)
        for ends in itertools.islice(itertools.cycle(self._ends), self.batch):
            call(
                *(grid, self._block, stream, *ends, *self._arguments, *numbers),
                shared_size=launch.shared_bytes,
            )
        end.record(stream)
        return Timed(events, time.perf_counter() - queueing)

    def _seconds_of(self, queued: Timed) -> float:
        """Return the seconds between two events that have come, and give these back."""
        begin, end = queued.events
        seconds = float(end.time_since(begin)) * 1e-3 / self.batch
        self._run.device.give_events(queued.events)
        return seconds

    def note_hand_over(self) -> None:
        """Add a stage for the time that the host took to hand over parts."""
        if self._handed:
            self._handed.note()

    def report(self) -> LaunchReport:
        """Return how the kernel was launched, and the compiler's report."""
        rows = self._place.last - self._place.first
        grid = self._launch.grid(self._step.task.output_shape, rows)
        return self._ready.report(grid, self._run)


def hold_cubin(cache: CubinCache, device: GpuContext) -> Cubin:
    return cache.get("hold", read_source("hold"), device.architecture, {})


def _holder(run: DeviceRun) -> Callable[[float], None]:
    """Return a function that keeps the card busy for a number of seconds."""
    device = run.device
    _, function = device.function(hold_cubin(run.cache, device), "hold")
    function.prepare("q")
    kilohertz = device.attribute("CLOCK_RATE")
    return lambda seconds: function.prepared_async_call(
        (1, 1), (1, 1, 1), device.stream, int(seconds * kilohertz * 1e3)
    )


def evictor(run: DeviceRun) -> Callable[[], None]:
    """Return a function that empties the card's cache, by rewriting memory of twice its size."""
    device = run.device
    size = 2 * device.attribute("L2_CACHE_SIZE")
    spare = run.spare.get("spare", size)
    return lambda: device.cuda.memset_d8_async(spare, 0, size, device.stream)


def block_of(launch: Launch, function: Any, device: GpuContext) -> tuple[int, int, int]:
    """Return the threads of a block; fewer than planned if a striding one lacks registers."""
    columns, rows, slices = (*launch.block, 1)[:3]
    if launch.tile is None:
        most = function.get_attribute(device.cuda.function_attribute.MAX_THREADS_PER_BLOCK)
        rows = min(rows, most // columns)
    return columns, rows, slices
