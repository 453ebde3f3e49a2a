"""Runs the CUDA launches of a filter on one device."""

from __future__ import annotations

import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelscope.backends.cuda import info, rim
from kernelscope.backends.cuda.card import Card
from kernelscope.backends.cuda.compiler import Cubin, CubinCache, resources
from kernelscope.backends.cuda.memory import Workspace
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.cuda.strips import Strip
from kernelscope.backends.cuda.texture import Texture
from kernelscope.engine.control import CancelToken
from kernelscope.engine.launch_report import LaunchReport
from kernelscope.engine.timing import KernelTime, Metric, Stopwatch
from kernelscope.errors import DeviceUnavailable
from kernelscope.spec.blocks import block_name
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.launch import HARDWARE_BORDERS, CudaPlan, CudaTask, Launch

LAUNCH_SECONDS = 0.05
"""No launch should take longer: the display's watchdog and Cancel wait for it."""

HOLD_SECONDS = 40e-6
"""How long the card is kept busy before a launch: longer than the host takes to queue it."""

PILOT_OPERATIONS = 2e9
"""Work of a launch that takes well under `LAUNCH_SECONDS` on any supported card."""

SHORT_SECONDS = 50e-6
"""Launches that take less are measured in batches: what is around them counts too much."""

BATCH_SECONDS = 200e-6
"""How long a batch takes at least, unless that takes too many launches or too much memory."""

LONG_SECONDS = 5e-3
"""Kernels that take longer warm up once."""

WARM_UPS = 3
"""Launches before a measurement, of kernels that are quick."""

TRIES = 4
"""Most launches of what is measured until the host is quick enough, each given twice the time."""

MOST_LAUNCHES = 128
"""Of a batch; the driver queues many times as many."""

QUEUE_SECONDS = 10e-6
"""How much longer the card is kept busy for each further launch of a batch."""

MOST_BLOCKS = 65_535
"""Of a grid along y or z, on every card."""

ALIGNMENT = 512
"""Bytes: what the driver's own allocations are aligned to."""


@dataclass(frozen=True)
class PreparedFilter:
    """A filter to apply to the image on the card, ready to be launched.

    Attributes
    ----------
    radius : int
        Rows that it needs above and below; all of them if `whole`.
    cubins : tuple of Cubin
        One for each launch of the plan.
    is_new : bool
        The device had not loaded all of them before.
    """

    spec: FilterSpec
    task: CudaTask
    radius: int
    whole: bool
    plan: CudaPlan
    cubins: tuple[Cubin, ...]
    is_new: bool = False

    def done(self, number: int, fraction: float) -> float:
        """Return how much of the work is done when a part of launch `number` is."""
        work = [launch.operations_per_sample for launch in self.plan.launches]
        return (sum(work[:number]) + work[number] * fraction) / sum(work)


@dataclass
class DeviceRun:
    """What one device works with in a run, and brings back.

    Attributes
    ----------
    tell : callable
        Called with how much of the kernels' work on the rows under way is done.
    workspace : Workspace
        What the launches allocate.
    spare : Workspace
        What only measuring needs, whose allocation is in no stage. The caller of `filter_rows`
        frees both: `free`.
    busy_seconds : float
        How long the card ran timed kernels, every repeat and every launch of a batch.
    batch : int
        Launches between two events of the kernel that did the most.
    """

    device: Card
    cache: CubinCache
    steps: Sequence[PreparedFilter]
    repeat: int = 1
    cold: bool = False
    token: CancelToken = field(default_factory=CancelToken)
    tell: Callable[[float], None] = lambda fraction: None
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    report: LaunchReport | None = None
    longest: tuple[str, float] = ("", 0.0)
    busy_seconds: float = 0.0
    batch: int = 1
    kernel_seconds: float = 0.0
    kernel_bytes: float = 0.0
    kernel_operations: float = 0.0

    def __post_init__(self) -> None:
        self.workspace = Workspace(self.device, lambda name: self.stopwatch.stage(name))
        self.spare = Workspace(self.device, lambda name: nullcontext())
        self.pacers: dict[Hashable, _Pacer] = {}
        self.warm: set[str] = set()

    def free(self) -> None:
        """Free what launches allocated."""
        self.workspace.free()
        self.spare.free()

    def restart(self, origin: float) -> None:
        """Forget what an attempt that failed brought back; the run started at `origin`."""
        self.stopwatch = Stopwatch(origin)
        self.kernel_seconds = self.kernel_bytes = self.kernel_operations = 0.0
        self.longest = ("", 0.0)
        self.workspace.keep = self.spare.keep = None


def metrics(runs: Sequence[DeviceRun]) -> list[Metric]:
    """Return what the launches on devices that worked side by side amount to."""
    seconds = max(1e-9, *(run.kernel_seconds for run in runs))
    found = [
        Metric("effective rate", sum(run.kernel_bytes for run in runs) / seconds, "B/s"),
        Metric("arithmetic rate", sum(run.kernel_operations for run in runs) / seconds, "op/s"),
    ]
    batch = max(runs, key=lambda run: run.kernel_seconds).batch
    if batch > 1:
        found.append(Metric("batch", batch, "launches"))
    devices = [run.device for run in runs]
    for name, rates, unit in (
        ("copy rate", [device.call(device.copy_rate) for device in devices], "B/s"),
        ("peak rate", [info.peak_rate(device.cuda, device.ordinal) for device in devices], "op/s"),
    ):
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(rates):
            found.append(Metric(name, sum(known), unit))
    return found


def prepare(spec: FilterSpec, task: CudaTask, device: Card, cache: CubinCache) -> PreparedFilter:
    """Plan the launches of a filter and compile them, or load them from the cache.

    Raises
    ------
    DeviceUnavailable
        If a block of threads does not fit on the device.
    """
    assert spec.plan_cuda is not None
    plan = CudaPlan.of(spec.plan_cuda(task))
    _check_shared(spec, task, device, max(launch.shared_bytes for launch in plan.launches))
    radius, whole = spec.radius(task.parameters), spec.whole(task.parameters)
    files = [spec.id] * len(plan.launches)
    if task.border is Border.KEEP and radius:
        plan = replace(plan, launches=(*plan.launches, rim.keep_rim(task, radius)))
        files.append(rim.SOURCE)
    cubins = tuple(
        cache.get(file, read_source(file), device.architecture, launch.defines)
        for file, launch in zip(files, plan.launches, strict=True)
    )
    is_new = not all(map(device.has_loaded, cubins))
    for launch, cubin in zip(plan.launches, cubins, strict=True):
        _check_block(spec, task, device, launch, device.function(cubin, launch.kernel)[1])
    _hold_cubin(cache, device)  # now, as compiling is in no stage that is counted
    return PreparedFilter(spec, task, radius, whole, plan, cubins, is_new)


def _check_shared(spec: FilterSpec, task: CudaTask, device: Card, shared: int) -> None:
    """Raise `DeviceUnavailable` if a block would have more shared memory than there is."""
    limit = device.handle.get_attribute(
        device.cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    )
    if shared > limit:
        smaller = "a smaller block, " if task.block else ""
        raise DeviceUnavailable(
            f"{spec.name} at level {task.level} needs {math.ceil(shared / 1024)} KiB of shared "
            f"memory a block; this GPU has {limit // 1024} KiB.",
            f"Choose {smaller}a smaller mask or another level.",
        )


def _check_block(
    spec: FilterSpec, task: CudaTask, device: Card, launch: Launch, function: Any
) -> None:
    """Raise `DeviceUnavailable` if the kernel cannot run in blocks of the size that is asked for.

    A launch would fail with an error that names neither threads nor registers.
    """
    if launch.shared_bytes:
        _check_shared(spec, task, device, launch.shared_bytes + function.shared_size_bytes)
    if task.block is None:
        return
    most = function.get_attribute(device.cuda.function_attribute.MAX_THREADS_PER_BLOCK)
    threads = math.prod(launch.block)
    if threads > most:
        raise DeviceUnavailable(
            f"{spec.name} at level {task.level} cannot run in blocks of "
            f"{block_name(launch.block)}: {threads} threads, each with {function.num_regs} "
            f"registers, where this kernel can have {most} threads.",
            "Choose a smaller block.",
        )


def filter_rows(run: DeviceRun, strip: Strip | None, source: int, target: int) -> None:
    """Launch one step after the other; intermediate images live on the card only.

    Parameters
    ----------
    strip : Strip, optional
        The rows that are there; all of them by default.
    source, target : int
        Device addresses of the source rows and of the output rows.
    """
    for step in run.steps[:-1]:
        rows = strip.source_rows if strip else step.task.output_shape[0]
        size = rows * step.task.out_row_samples * step.task.dtype.itemsize
        between = run.workspace.get((step.spec.id, "result"), size)
        # A step before the last has no halo: it converts just the rows that are there.
        whole = replace(strip, first=0, last=rows, source_first=0) if strip else None
        _launch(step, whole, source, between, run)
        source = between
    _launch(run.steps[-1], strip, source, target, run)


def _launch(
    step: PreparedFilter, strip: Strip | None, source: int, target: int, run: DeviceRun
) -> None:
    """Launch one step over its output rows, in pieces that end in time."""
    device, task = run.device, step.task
    height, out_height = task.shape[0], task.output_shape[0]
    channels = task.shape[-1]
    place = _Place(
        source,
        target,
        first=strip.first if strip else 0,
        last=strip.last if strip else out_height,
        source_row=strip.source_first if strip else 0,
        source_rows=strip.source_rows if strip else height,
        all_rows=out_height,
        is_whole=strip is None,
        # A strip's edges are not the image's, and neighbours of one channel lie further apart.
        hardware_border=strip is None and channels == 1 and task.border in HARDWARE_BORDERS,
    )
    rows = place.last - place.first
    row_samples = task.out_row_pixels * max(channels, task.output_shape[-1])
    scratch = {
        name: run.workspace.get((step.spec.id, name), buffer.size(rows, out_height))
        for name, buffer in step.plan.scratch.items()
    }
    evict = _evictor(run) if run.cold else lambda: None
    textures, spares = list[Texture](), list[Texture]()
    try:
        kernels = [
            _Kernel(step, launch, cubin, place, scratch, run, evict, textures, spares)
            for launch, cubin in zip(step.plan.launches, step.cubins, strict=True)
        ]
        warmed = _warm_up(step, kernels, run)
        passes = warmed + run.repeat
        taken = [[0.0] * run.repeat for _ in kernels]
        begun = None
        for repeat in range(run.repeat):
            evict()
            for number, kernel in enumerate(kernels):
                for seconds, fraction in kernel.run():
                    if begun is None:
                        begun = time.perf_counter() - seconds * kernel.batch
                    taken[number][repeat] += seconds
                    run.busy_seconds += seconds * kernel.batch
                    run.tell((warmed + repeat + step.done(number, fraction)) / passes)
        totals = tuple(map(sum, zip(*taken, strict=True)))
        seconds = statistics.median(totals)
        several = run.repeat > 1
        run.stopwatch.add(
            "kernel",
            seconds,
            repeats=totals if several else (),
            begun=begun,
            kernels=tuple(
                KernelTime(launch.kernel, statistics.median(times), tuple(times) * several)
                for launch, times in zip(step.plan.launches, taken, strict=True)
                if len(kernels) > 1
            ),
        )
        for kernel in kernels:
            kernel.note_what_was_handed_over()
        if in_vain := [attempt for kernel in kernels for attempt in kernel.thrown_away]:
            lost = sum(took for _, took in in_vain)
            run.stopwatch.add("repeat", lost, counted=False, begun=min(in_vain)[0])
        run.kernel_seconds += seconds
        for launch in step.plan.launches:
            run.kernel_bytes += launch.bytes_per_sample * rows * row_samples
            run.kernel_operations += launch.operations_per_sample * rows * row_samples
        longest = max(range(len(kernels)), key=lambda number: sum(taken[number]))
        # A strip of rim rows alone says little of the step that other strips belong to as well.
        key = (step.spec.id, sum(taken[longest]))
        if run.longest[0] != key[0] or run.longest[1] <= key[1]:
            run.longest = key
            run.report = kernels[longest].report()
            run.batch = kernels[longest].batch
    finally:
        if not device.lost:
            device.wait(device.stream)
        if textures:
            with run.stopwatch.stage("free"):
                device.free(*textures)
        device.free(*spares)


def _warm_up(step: PreparedFilter, kernels: Sequence[_Kernel], run: DeviceRun) -> int:
    """Launch what is going to be timed, once or twice, if a run is a measurement.

    That also decides how many launches are timed together, once for all measurements of the same
    kernel on rows of the same size, so that all of them are timed alike.

    Returns
    -------
    int
        1 if anything was launched, else 0.
    """
    measured = run.repeat > 1 or run.cold
    known = all(kernel.batch_is_known for kernel in kernels)
    again = run.repeat > 1 and step.spec.id not in run.warm
    if not measured or (known and not again):
        for kernel in kernels:
            kernel.settle(measured)
        return 0
    with run.stopwatch.stage("warm-up", counted=False):
        for number, kernel in enumerate(kernels):
            for fraction in kernel.warm_up():
                run.tell(step.done(number, fraction) / (1 + run.repeat))
            kernel.settle(measured)
    run.warm.add(step.spec.id)
    return 1


@dataclass(frozen=True)
class _Place:
    """Where the rows of source and output are on the card, and which they are."""

    source: int
    target: int
    first: int
    last: int
    source_row: int
    source_rows: int
    all_rows: int  # of the output
    is_whole: bool  # not a strip
    hardware_border: bool


class _Kernel:
    """One launch of a plan, ready to go: its arguments lie on the card.

    The texture that it makes goes to `textures`, for the caller to free, and those that only
    measuring needs go to `spares`.

    Attributes
    ----------
    batch : int
        Launches between two events; `settle` decides.
    thrown_away : list of (float, float)
        When launches began that were measured in vain, by `time.perf_counter`, and the seconds
        that went by until they were done again.
    """

    def __init__(
        self,
        step: PreparedFilter,
        launch: Launch,
        cubin: Cubin,
        place: _Place,
        scratch: Mapping[str, int],
        run: DeviceRun,
        evict: Callable[[], None],
        textures: list[Texture],
        spares: list[Texture],
    ) -> None:
        self._step, self._launch, self._cubin = step, launch, cubin
        self._place, self._run, self._evict, self._spares = place, run, evict, spares
        self.batch = 1
        self.thrown_away: list[tuple[float, float]] = []
        self._measured = False
        device, cuda, stream = run.device, run.device.cuda, run.device.stream
        module, self._function = device.function(cubin, launch.kernel)
        for name, values in launch.constants.items():
            address, size = module.get_global(name)
            data = np.ascontiguousarray(values)
            if data.nbytes > size:
                raise ValueError(f"{name}: {data.nbytes} bytes for {size} bytes of constant memory")
            # On the stream, which does not wait for the synchronous copies.
            cuda.memcpy_htod_async(int(address), data, stream)
        self._hardware_border = (
            launch.texture and place.hardware_border and launch.texture_of is None
        )
        first = place.source
        if launch.texture:
            with run.stopwatch.stage("allocate"):
                texture = device.make_room(self._texture, run.workspace.keep)
            textures.append(texture)
            if launch.texture_of is None:
                texture.fill(place.source, stream)
            self._texels = texture
            first = texture.handle
        self._mapped = _Mapped(step.task, place, run) if launch.mapped else None
        target = place.target
        if self._mapped is not None:
            first, target = self._mapped.source, self._mapped.target
        self._ends = [(first, target)]
        self._arguments: list[int] = []
        for number, table in enumerate(launch.tables):
            address = run.workspace.get((step.spec.id, launch.kernel, number), table.nbytes)
            cuda.memcpy_htod_async(address, np.ascontiguousarray(table), stream)
            self._arguments.append(address)
        self._scratch = scratch
        self._arguments += [scratch[name] for name in launch.scratch]
        self._handed = _Handed(step.plan, launch, place, scratch, run) if launch.hand_over else None
        integers = len(self._geometry(0, 0)) + (2 if launch.steps else 0)
        self._function.prepare("P" * (2 + len(self._arguments)) + "i" * integers)
        if launch.shared_bytes > 48 * 1024:
            self._function.set_attribute(
                cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.shared_bytes
            )
        self._block = _block(launch, self._function, device)
        self._hold = _holder(run)

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
    def _can_batch(self) -> bool:
        """Whether launches may follow each other: nothing of the host's comes between them."""
        return self._place.is_whole and self._mapped is None and self._handed is None

    @property
    def _alike(self) -> Hashable:
        """What measurements have in common that are timed alike."""
        task, launch = self._step.task, self._launch
        # A search radius is in no macro: the work tells such launches apart.
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

        Where the cache is emptied before a batch, each of its launches reads a picture and writes
        a result of its own: what it reads comes from memory, as if it were the only one.
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
            run.spare.get((*name, what), copies * pitch)
            for what, pitch in zip(("sources", "targets"), pitches, strict=True)
        )
        for _ in range(copies):
            device.cuda.memcpy_dtod_async(source, place.source, source_bytes, device.stream)
            first = source
            if self._launch.texture_of is not None:  # filled anew before every launch
                first = self._texels.handle
            elif self._launch.texture:
                self._spares.append(device.make_room(self._texture, run.workspace.keep))
                self._spares[-1].fill(source, device.stream)
                first = self._spares[-1].handle
            self._ends.append((first, target))
            source, target = source + pitches[0], target + pitches[1]

    def run(self) -> Iterator[tuple[float, float]]:
        """Launch over all rows and steps; yield the seconds of each piece and the part done.

        Of a batch, these are the mean of its launches.
        """
        launch, place, task = self._launch, self._place, self._step.task
        row_samples = task.out_row_pixels * max(task.shape[-1], task.output_shape[-1])
        pacer = self._run.pacers.setdefault(
            (self._step.spec.id, launch.kernel),
            _Pacer(launch, row_samples * launch.operations_per_sample),
        )
        done, units = 0, (place.last - place.first) * max(launch.steps, 1)
        if launch.texture_of is not None:  # kernels before this one have just written it
            self._texels.fill(self._scratch[launch.texture_of[0]], self._run.device.stream)
        if self._handed:
            self._handed.begin()
        pieces = pacer.pieces(place.first, place.last)
        if self.batch > 1:  # known to be short
            pieces = iter([_Piece(place.first, place.last, 0, max(launch.steps, 1))])
        for piece in pieces:
            self._run.token.check()
            if self._handed and piece.start == place.first:
                self._handed.over(piece.first_step)
            seconds = self._go(piece)
            pacer.learn(piece.units, seconds)
            done += piece.units
            yield seconds, done / units
        if self._mapped is not None:
            self._mapped.bring_back()

    def _go(self, piece: _Piece) -> float:
        """Launch over a piece, wait, and return the seconds between the events.

        What is measured has to be queued before the card begins, or the host would be timed. If
        that was too slow, it is done again, unless it goes on where another launch ended.
        """
        device, launch = self._run.device, self._launch
        cuda, stream = device.cuda, device.stream
        grid = launch.grid(self._step.task.output_shape, piece.stop - piece.start)
        numbers = self._geometry(piece.start, piece.stop)
        if launch.steps:
            numbers += (piece.first_step, piece.last_step)
        hold = HOLD_SECONDS + (self.batch - 1) * QUEUE_SECONDS
        again = self.batch > 1 or (self._measured and not launch.steps)
        for attempt in range(TRIES if again else 1):
            start = time.perf_counter()
            if attempt:
                self._evict()
            begin, end = cuda.Event(), cuda.Event()
            self._hold(hold * 2**attempt)
            begin.record(stream)
            for ends in itertools.islice(itertools.cycle(self._ends), self.batch):
                self._function.prepared_async_call(
                    *(grid, self._block, stream, *ends, *self._arguments, *numbers),
                    shared_size=launch.shared_bytes,
                )
            end.record(stream)
            in_time = not begin.query()
            device.wait(end)
            if in_time or attempt == TRIES - 1 or not again:
                break
            self.thrown_away.append((start, time.perf_counter() - start))
        return float(end.time_since(begin)) * 1e-3 / self.batch

    def _geometry(self, start: int, stop: int) -> tuple[int, ...]:
        """Return the fields of ``Geometry``, or for a volume of ``Volume``."""
        task, place = self._step.task, self._place
        if len(task.shape) == 4:
            depth, height, width, components = task.shape
            return width, height, depth, components, start, stop, place.source_row, place.first
        height, width, channels = task.shape
        return (
            *(width, height, channels, task.output_shape[1]),
            *(start, stop, place.source_row, place.first),
            int(self._hardware_border),
        )

    def note_what_was_handed_over(self) -> None:
        """Add the time that the host took to hand over parts to the stages."""
        if self._handed:
            self._handed.note()

    def report(self) -> LaunchReport:
        """Return how the kernel was launched, and what the compiler made of it."""
        rows = self._place.last - self._place.first
        grid = self._launch.grid(self._step.task.output_shape, rows)
        return _report(self._step, self._launch, self._cubin, self._function, grid, self._run)


class _Mapped:
    """Rows of a source and of its output in host memory that kernels reach over the bus."""

    def __init__(self, task: CudaTask, place: _Place, run: DeviceRun) -> None:
        cuda = run.device.cuda
        sample = task.dtype.itemsize
        sizes = (
            place.source_rows * task.row_samples * sample,
            (place.last - place.first) * task.out_row_samples * sample,
        )
        try:
            self._memory = [
                cuda.pagelocked_empty(size, np.uint8, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
                for size in sizes
            ]
        except cuda.MemoryError:
            raise DeviceUnavailable(
                f"{sum(sizes) // 2**20} MiB of page-locked host memory could not be allocated.",
                "Use a smaller image or another level.",
            ) from None
        self.source, self.target = (
            int(memory.base.get_device_pointer()) for memory in self._memory
        )
        self._cuda, self._stream = cuda, run.device.stream
        self._place, self._size = place, sizes[1]
        cuda.memcpy_dtod_async(self.source, place.source, sizes[0], self._stream)

    def bring_back(self) -> None:
        """Copy the output to where it is expected, on the card."""
        self._cuda.memcpy_dtod_async(self._place.target, self.target, self._size, self._stream)


class _Handed:
    """Hands parts of a picture over to the card, as `HandOver` says, and times that.

    The host's copy is made when a launch begins: a filter before this one may have left the
    picture on the card only.
    """

    def __init__(
        self,
        plan: CudaPlan,
        launch: Launch,
        place: _Place,
        scratch: Mapping[str, int],
        run: DeviceRun,
    ) -> None:
        assert launch.hand_over is not None
        self._what, self._run = launch.hand_over, run
        size = plan.scratch[self._what.source].size(place.last - place.first, place.all_rows)
        lines, pitch = self._what.lines, self._what.pitch
        self._copy = np.empty((size // (4 * pitch), lines, pitch // lines), np.float32)
        self._source, self._target = scratch[self._what.source], scratch[self._what.target]
        self._begun = 0.0
        self._fetched: list[float] = []
        self._seconds: list[float] = []

    def begin(self) -> None:
        """Make the host's copy."""
        device, start = self._run.device, time.perf_counter()
        if not self._fetched:
            self._begun = start
        device.cuda.memcpy_dtoh_async(self._copy, self._source, device.stream)
        device.wait(device.stream)
        self._fetched.append(time.perf_counter() - start)
        self._seconds.append(0.0)

    def over(self, step: int) -> None:
        """Copy the part of this step to the card, and wait until it is there."""
        device, start = self._run.device, time.perf_counter()
        rows, columns = self._what.parts[step]
        part = np.ascontiguousarray(self._copy[rows, :, columns])
        device.cuda.memcpy_htod_async(self._target, part, device.stream)
        device.wait(device.stream)
        self._seconds[-1] += time.perf_counter() - start

    def forget(self) -> None:
        """Take no note of what was handed over so far."""
        self._fetched.clear()
        self._seconds.clear()

    def note(self) -> None:
        """Add a stage for what was handed over, and one for the copy."""
        for name, times in (("prepare", self._fetched), ("hand over", self._seconds)):
            repeats = tuple(times) if len(times) > 1 else ()
            self._run.stopwatch.add(
                name, statistics.median(times), repeats=repeats, begun=self._begun
            )


@dataclass(frozen=True)
class _Piece:
    """Output rows ``start <= y < stop``, and steps of the kernel's outer loop, of a launch."""

    start: int
    stop: int
    first_step: int
    last_step: int

    @property
    def units(self) -> int:
        return (self.stop - self.start) * (self.last_step - self.first_step)


class _Pacer:
    """Cuts a launch into pieces of about half of `LAUNCH_SECONDS`.

    The first piece is small enough for any card; its time decides about the others, also those
    of later repeats and slabs. Its unit is a step of one row. A piece has more than one step
    only if there is time for all rows, so that it has as many blocks as can be: those of a grid.
    """

    def __init__(self, launch: Launch, operations_per_row: float) -> None:
        self._tile = launch.tile[-1] if launch.tile else 1
        self._most = MOST_BLOCKS * self._tile if launch.tile else sys.maxsize
        self._steps = max(launch.steps, 1)
        self._at_once = launch.steps_at_once or self._steps
        units = PILOT_OPERATIONS / max(operations_per_row / self._steps, 1)
        self._units = units if launch.tile else units / 64  # one block uses a fraction of the card

    def pieces(self, first: int, last: int) -> Iterator[_Piece]:
        """Yield the launches that together cover rows `first` to `last` and all steps."""
        step = 0
        while step < self._steps:
            count = int(self._units) // (last - first)
            after = step + max(1, min(count, self._at_once, self._steps - step))
            start = first
            while start < last:
                whole_tiles = int(self._units) // self._tile * self._tile
                stop = last if count else min(start + max(whole_tiles, self._tile), last)
                stop = min(stop, start + self._most)
                yield _Piece(start, stop, step, after)
                start = stop
            step = after

    def learn(self, units: int, seconds: float) -> None:
        """Note how long a launch of `units` took, unless it was but a remainder."""
        if 2 * units >= self._units:
            self._units = units * LAUNCH_SECONDS / 2 / max(seconds, 1e-6)


def _hold_cubin(cache: CubinCache, device: Card) -> Cubin:
    return cache.get("hold", read_source("hold"), device.architecture, {})


def _holder(run: DeviceRun) -> Callable[[float], None]:
    """Return a function that keeps the card busy for a number of seconds."""
    device = run.device
    _, function = device.function(_hold_cubin(run.cache, device), "hold")
    function.prepare("q")
    kilohertz = device.handle.get_attribute(device.cuda.device_attribute.CLOCK_RATE)
    return lambda seconds: function.prepared_async_call(
        (1, 1), (1, 1, 1), device.stream, int(seconds * kilohertz * 1e3)
    )


def _evictor(run: DeviceRun) -> Callable[[], None]:
    """Return what rewrites memory of twice the size of the card's cache, which then holds that."""
    device = run.device
    size = 2 * device.handle.get_attribute(device.cuda.device_attribute.L2_CACHE_SIZE)
    spare = run.spare.get("spare", size)
    return lambda: device.cuda.memset_d8_async(spare, 0, size, device.stream)


def _block(launch: Launch, function: Any, device: Card) -> tuple[int, int, int]:
    """Return the threads of a block; fewer than planned if a striding one lacks registers."""
    columns, rows, slices = (*launch.block, 1)[:3]
    if launch.tile is None:
        most = function.get_attribute(device.cuda.function_attribute.MAX_THREADS_PER_BLOCK)
        rows = min(rows, most // columns)
    return columns, rows, slices


def _report(
    step: PreparedFilter,
    launch: Launch,
    cubin: Cubin,
    function: Any,
    grid: tuple[int, ...],
    run: DeviceRun,
) -> LaunchReport:
    device = run.device
    attribute = device.cuda.device_attribute
    block = _block(launch, function, device)
    threads = math.prod(block)
    shared = launch.shared_bytes + function.shared_size_bytes
    per_multiprocessor = device.handle.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR)
    warp = device.handle.get_attribute(attribute.WARP_SIZE)
    limits = [per_multiprocessor // threads]
    registers = device.handle.get_attribute(attribute.MAX_REGISTERS_PER_MULTIPROCESSOR)
    granted = -(-function.num_regs * warp // 256) * 256  # registers come in units of 256 a warp
    if granted:
        limits.append(registers // granted // -(-threads // warp))
    if shared:
        most = device.handle.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
        limits.append(most // (shared + 1024))  # the system keeps 1 KiB a block
    blocks = min(min(limits), device.handle.get_attribute(attribute.MAX_BLOCKS_PER_MULTIPROCESSOR))
    return LaunchReport(
        step.spec.id,
        launch.kernel,
        grid,
        block[: len(launch.block)],
        launch.shared_bytes,
        resources(cubin.log, launch.kernel),
        blocks * threads / per_multiprocessor,
        run.cache.title,
    )
