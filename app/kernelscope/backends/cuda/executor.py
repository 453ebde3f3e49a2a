"""Prepares a filter for a device and launches its kernels over rows of an image.

`prepare` turns a filter's plan into compiled kernels; `filter_rows` launches them one after the
other, a `Kernel` each, and notes their times in the `DeviceRun`. Those of short steps may be read
later: see `ShortStep`. For rows that are still on their way to the card, `make_ready` does the
host's part meanwhile, and launches behind others need not be waited for: see `StepLaunch.queue`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kernelscope.backends.cuda.arguments import geometry, set_constants, upload_tables
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import CubinCache
from kernelscope.backends.cuda.device_run import DeviceRun, Pacer, PreparedFilter, RowPlace
from kernelscope.backends.cuda.kernel import (
    Kernel,
    LaunchNeeds,
    Surroundings,
    Timed,
    block_of,
    evictor,
)
from kernelscope.backends.cuda.rim import with_rim
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.cuda.strips import Strip
from kernelscope.base.errors import DeviceUnavailable
from kernelscope.engine.timing import LaunchReport
from kernelscope.schema import launch as launches
from kernelscope.schema.blocks import block_name
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import HARDWARE_BORDERS, Cuda, CudaPlan, CudaTask, Launch

SHORT_STEP_SECONDS = 100e-6
"""Launches that should take no longer are short, by the first guess of `Pacer`, which
overestimates the time on every supported card. A wait of its own takes 10 µs."""


class _Short(NamedTuple):
    launch: Launch
    ready: LaunchNeeds
    grid: tuple[int, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ShortStep:
    """The launches of a plan on a whole picture: queued, and waited for with the download.

    ::

        host    queue: copy, event, launch, event, copy │ wait │ read the events
        card             ├─ copy ─┤ event ├── launch ──┤ event ├─ copy ─┤

    Most of such a run is the host's part. So all that is the same for each picture of a shape is
    made once, and kept by the device: only addresses are new.
    """

    step: PreparedFilter
    launches: tuple[_Short, ...]
    """None of them if the step is not short: if one may take longer than `SHORT_STEP_SECONDS`, or
    if the host has a part in it."""
    scratch: tuple[tuple[str, int], ...] = ()  # names and bytes of the buffers

    @classmethod
    def of(cls, step: PreparedFilter, device: GpuContext) -> ShortStep | None:
        """Return it for a step that the device keeps; None if it is not short."""
        if not step.is_kept:
            return None
        key = "short", id(step)
        made: ShortStep | None = device.kept(key)
        if made is None:
            made = cls._made(step, device)
            device.keep(key, made)
        return made if made.launches else None

    @classmethod
    def _made(cls, step: PreparedFilter, device: GpuContext) -> ShortStep:
        task, launches = step.task, step.plan.launches
        rows = task.output_shape[0]
        for launch in launches:
            pacer = Pacer(launch, task.busiest_row_samples * launch.operations_per_sample)
            if not launch.is_plain or not pacer.is_one_piece(rows, SHORT_STEP_SECONDS):
                return cls(step, ())
        short = []
        for number, launch in enumerate(launches):
            ready = LaunchNeeds.of(step, number, device)
            steps = (0, launch.steps) if launch.steps else ()
            numbers = (*geometry(task, 0, rows), *steps)
            grid = launch.grid(task.output_shape)
            short.append(_Short(launch, ready, grid, numbers))
        scratch = ((name, each.size(rows, rows)) for name, each in step.plan.scratch.items())
        return cls(step, tuple(short), tuple(scratch))

    def queue(self, source: int, target: int, run: DeviceRun) -> None:
        """Put the launches on the stream; `read_times` follows once they are over."""
        run.token.check()
        device, stream, begun = run.device, run.device.stream, time.perf_counter()
        name = self.step.spec.id
        scratch = {each: run.workspace.get((name, each), size) for each, size in self.scratch}
        queued = []
        for launch, ready, grid, numbers in self.launches:
            set_constants(launch, ready.module, device)
            tables = upload_tables(launch, name, run) if launch.tables else ()
            events = begin, end = device.take_events()
            queueing = time.perf_counter()
            begin.record(stream)
            ready.function.prepared_async_call(
                grid,
                ready.block,
                stream,
                source,
                target,
                *tables,
                *[scratch[each] for each in launch.scratch],
                *numbers,
                shared_size=launch.shared_bytes,
            )
            end.record(stream)
            queued.append(Timed(events, time.perf_counter() - queueing))
        run.unread.append(lambda: self._read(queued, begun, run))

    def _read(self, queued: Sequence[Timed], begun: float, run: DeviceRun) -> None:
        """Note the times of the launches, the work and the report of the longest."""
        taken, excess = [], 0.0
        for events, queueing in queued:
            begin, end = events
            seconds = float(end.time_since(begin)) * 1e-3
            run.device.give_events(events)
            taken.append([seconds])
            excess += min(queueing, seconds)
        run.excess += excess
        task = self.step.task
        run.note_kernels(
            self.step, taken, task.output_shape[0] * task.busiest_row_samples, begun, excess
        )
        run.note_longest(self.step, taken, lambda number: (self._report(number, run), 1))
        run.report_progress(1.0)

    def _report(self, number: int, run: DeviceRun) -> LaunchReport:
        short = self.launches[number]
        return short.ready.report(short.grid, run)


def read_times(run: DeviceRun) -> float:
    """Note the times of launches that were queued and are over; return their sum."""
    before, unread = run.kernel_seconds, run.unread.copy()
    run.unread.clear()
    for read in unread:
        read()
    return run.kernel_seconds - before


def prepare(
    spec: FilterSpec, task: CudaTask, device: GpuContext, cache: CubinCache
) -> PreparedFilter:
    """Plan the launches of a filter and compile them, or load them from the cache.

    The device keeps the last plans: those of the same settings come again with every picture, and
    with every part of one that a user moves to.

    Raises `DeviceUnavailable` if a block of threads does not fit on the device.
    """
    key = _key(spec, task, cache)
    kept: PreparedFilter | None = device.kept(key)
    if kept is None:
        kept = _prepare(spec, task, device, cache)
        device.keep(key, replace(kept, is_new=False, is_kept=True))
    return kept


def _key(spec: FilterSpec, task: CudaTask, cache: CubinCache) -> Hashable:
    where = task.shape, task.output_shape, task.dtype, task.border, task.level, task.block
    return plan_key(spec, task.parameters, cache, where)


def plan_key(
    spec: FilterSpec, parameters: Mapping[str, Any], cache: CubinCache, where: Hashable
) -> Hashable:
    """Return the key of a plan; None where a parameter has no hash, as a map of sigma.

    - `where`: all but the filter and its parameters.
    """
    plan, values = spec.implementation(Cuda).plan, tuple(parameters.items())
    key = cache, spec.id, plan, values, where, launches.BY_SIZE
    try:
        hash(key)
    except TypeError:
        return None
    return key


_MOST_SHARED = "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"


def _prepare(
    spec: FilterSpec, task: CudaTask, device: GpuContext, cache: CubinCache
) -> PreparedFilter:
    plan = CudaPlan.of(spec.implementation(Cuda).plan(task))
    while plan.smaller and plan.shared_bytes > device.attribute(_MOST_SHARED):
        plan = plan.smaller
    _check_shared(spec, task, device, plan.shared_bytes)
    radius, whole = spec.radius(task.parameters), spec.whole(task.parameters)
    plan, files = with_rim(spec, task, plan)
    cubins = tuple(
        cache.get(file, read_source(file), device.architecture, planned.defines)
        for file, planned in zip(files, plan.launches, strict=True)
    )
    is_new = not all(map(device.has_loaded, cubins))
    for planned, cubin in zip(plan.launches, cubins, strict=True):
        function = device.function(cubin, planned.kernel)[1]
        _check_block(spec, task, device, planned, function)
        # Now, as compiling is in no stage that is counted: the report asks for it after the run.
        threads = math.prod(block_of(planned, function, device))
        device.resident_blocks(cubin, planned.kernel, threads, planned.shared_bytes)
    return PreparedFilter(spec, task, radius, whole, plan, cubins, is_new)


def _check_shared(spec: FilterSpec, task: CudaTask, device: GpuContext, shared: int) -> None:
    """Raise `DeviceUnavailable` if a block would have more shared memory than there is."""
    limit = device.attribute(_MOST_SHARED)
    if shared > limit:
        smaller = "a smaller block, " if task.block else ""
        raise DeviceUnavailable(
            f"{spec.name} at level {task.level} needs {math.ceil(shared / 1024)} KiB of shared "
            f"memory a block; this GPU has {limit // 1024} KiB.",
            f"Choose {smaller}a smaller mask or another level.",
        )


def _check_block(
    spec: FilterSpec, task: CudaTask, device: GpuContext, planned: Launch, function: Any
) -> None:
    """Raise `DeviceUnavailable` if the kernel cannot run in blocks of the size that is asked for.

    A launch would fail with an error that names neither threads nor registers.
    """
    if planned.shared_bytes:
        _check_shared(spec, task, device, planned.shared_bytes + function.shared_size_bytes)
    if task.block is None:
        return
    most = function.get_attribute(device.cuda.function_attribute.MAX_THREADS_PER_BLOCK)
    threads = math.prod(planned.block)
    if threads > most:
        raise DeviceUnavailable(
            f"{spec.name} at level {task.level} cannot run in blocks of "
            f"{block_name(planned.block)}: {threads} threads, each with {function.num_regs} "
            f"registers, where this kernel can have {most} threads.",
            "Choose a smaller block.",
        )


def filter_rows(run: DeviceRun, strip: Strip | None, source: int, target: int) -> None:
    """Launch one step after the other; intermediate images live on the card only.

    - `strip`: the rows that are there; all of them by default.
    - `source`, `target`: device addresses of the source rows and of the output rows.
    """
    for step in run.steps[:-1]:
        rows = strip.source_rows if strip else step.task.output_shape[0]
        size = rows * step.task.out_row_samples * step.task.dtype.itemsize
        between = run.workspace.get((step.spec.id, "result"), size)
        # A step before the last has no halo: it converts just the rows that are there.
        whole = replace(strip, first=0, last=rows, source_first=0) if strip else None
        launch(step, whole, source, between, run)
        source = between
    launch(run.steps[-1], strip, source, target, run)


def make_ready(run: DeviceRun, strip: Strip, source: int, target: int) -> StepLaunch | None:
    """Return the kernels of a strip, made before its rows arrive and while the card is busy.

    None if that cannot be: a texture is filled when it is made, the host takes part in a launch, or
    there are several steps, of which a strip within the image needs a larger buffer than one at its
    edge.
    """
    step, *more = run.steps
    if more or not all(planned.is_plain for planned in step.plan.launches):
        return None
    return StepLaunch(step, _place(step.task, strip, source, target), run)


def launch(
    step: PreparedFilter, strip: Strip | None, source: int, target: int, run: DeviceRun
) -> None:
    """Launch one step over its output rows, in pieces that end in time."""
    short = ShortStep.of(step, run.device) if run.may_read_later and strip is None else None
    if short is not None:
        short.queue(source, target, run)
        return
    StepLaunch(step, _place(step.task, strip, source, target), run).run()


class StepLaunch:
    """A step over some rows, with its kernels made: copies of their arguments are queued.

    One that is made and not run has to be of plain launches, which leave nothing to be freed.
    """

    def __init__(self, step: PreparedFilter, place: RowPlace, run: DeviceRun) -> None:
        self._step, self._place, self._run = step, place, run
        scratch = {
            name: run.workspace.get(
                (step.spec.id, name), buffer.size(place.last - place.first, place.all_rows)
            )
            for name, buffer in step.plan.scratch.items()
        }
        evict = evictor(run) if run.cold else lambda: None
        self._around = Surroundings(step, place, run, scratch, evict)
        self._kernels: list[Kernel] = []
        self._queued_at = 0.0
        try:
            for number in range(len(step.plan.launches)):
                self._kernels.append(Kernel(self._around, number))
        except BaseException:
            self._end(is_over=False)
            raise

    def run(self) -> None:
        """Launch the kernels, wait for them and note their times; once."""
        run = self._run
        is_over = False
        try:
            if run.unread:  # those of steps before this one
                run.device.wait(run.device.stream)
                run.busy_seconds += read_times(run)
            if self.can_queue:
                self.queue()
                self.read()
            else:
                before = run.excess
                taken, begun = _time(self._step, self._kernels, run, self._around.evict)
                self._note(taken, begun, run.excess - before)
            # Every launch has been waited for.
            is_over = not any(kernel.leaves_work for kernel in self._kernels)
        finally:
            self._end(is_over=is_over)

    @property
    def can_queue(self) -> bool:
        return all(kernel.can_queue for kernel in self._kernels)

    def queue(self) -> None:
        """Put the launches on the stream; `read` follows."""
        self._run.token.check()
        self._queued_at = time.perf_counter()
        for kernel in self._kernels:
            kernel.queue()

    @property
    def is_over(self) -> bool:
        """Whether the launches that were queued are over."""
        return self._kernels[-1].is_over

    def read(self, earlier: float = 0.0) -> float:
        """Wait for the launches that were queued and note their times.

        `earlier` is when launches that were queued before these were over, by `time.perf_counter`.
        Returns when these were, about.
        """
        run, before = self._run, self._run.excess
        # The last one first: there is no need to wait for the others then.
        taken = [[kernel.read()] for kernel in reversed(self._kernels)][::-1]
        seconds = sum(times[0] for times in taken)
        run.busy_seconds += seconds
        begun = max(earlier, self._queued_at)
        self._note(taken, begun, run.excess - before)
        run.report_progress(1.0)
        return begun + seconds

    def _note(self, taken: Sequence[Sequence[float]], begun: float | None, excess: float) -> None:
        """Note the times of the kernels, their work, parts handed over, and times in vain."""
        step, place, run, kernels = self._step, self._place, self._run, self._kernels
        samples = (place.last - place.first) * step.task.busiest_row_samples
        run.note_kernels(step, taken, samples, begun, excess)
        for kernel in kernels:
            kernel.note_hand_over()
        if in_vain := [attempt for kernel in kernels for attempt in kernel.thrown_away]:
            lost = sum(took for _, took in in_vain)
            run.log.add("repeat", lost, counted=False, begun=min(in_vain)[0])
        run.note_longest(step, taken, lambda n: (kernels[n].report(), kernels[n].batch))

    def _end(self, *, is_over: bool) -> None:
        """Free the textures; unless the launches are over, wait for the stream before."""
        device = self._run.device
        if not device.lost and not is_over:
            device.wait(device.stream)
        if self._around.textures:
            with self._run.log.stage("free"):
                device.free(*self._around.textures)
        device.free(*self._around.spares)


def _place(task: CudaTask, strip: Strip | None, source: int, target: int) -> RowPlace:
    """Return where the rows of a strip are, or those of the whole image."""
    height, out_height = task.shape[0], task.output_shape[0]
    return RowPlace(
        source,
        target,
        first=strip.first if strip else 0,
        last=strip.last if strip else out_height,
        source_row=strip.source_first if strip else 0,
        source_rows=strip.source_rows if strip else height,
        all_rows=out_height,
        is_whole=strip is None,
        # A strip's edges are not the image's, and neighbours of one channel lie further apart.
        hardware_border=strip is None and task.shape[-1] == 1 and task.border in HARDWARE_BORDERS,
    )


def _time(
    step: PreparedFilter, kernels: Sequence[Kernel], run: DeviceRun, evict: Callable[[], None]
) -> tuple[list[list[float]], float | None]:
    """Run the kernels one after the other, once for each repeat.

    Returns the seconds of each kernel in each repeat, and when the first one began, by
    `time.perf_counter`.
    """
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
                run.report_progress((warmed + repeat + step.done(number, fraction)) / passes)
    return taken, begun


def _warm_up(step: PreparedFilter, kernels: Sequence[Kernel], run: DeviceRun) -> int:
    """Launch the kernels once before they are timed, if a run is a measurement; return how often.

    This also decides how many launches are timed together, once for all measurements of the same
    kernel on rows of the same size, so that all of them are timed alike.
    """
    measured = run.repeat > 1 or run.cold
    known = all(kernel.batch_is_known for kernel in kernels)
    again = run.repeat > 1 and step.spec.id not in run.warm
    if not measured or (known and not again):
        for kernel in kernels:
            kernel.settle(measured)
        return 0
    with run.log.stage("warm-up", counted=False):
        for number, kernel in enumerate(kernels):
            for fraction in kernel.warm_up():
                run.report_progress(step.done(number, fraction) / (1 + run.repeat))
            kernel.settle(measured)
    run.warm.add(step.spec.id)
    return 1
