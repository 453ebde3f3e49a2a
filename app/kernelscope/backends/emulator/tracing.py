"""Traces the use of memory by kernels: all accesses of one block, or the totals of a launch.

::

    EmulatedLaunches   launches before:  run as always (`_plain_library`), for their results
                       the one traced:   `Span`s of blocks, with a library made with `trace.h`

    trace         one block, each access a record        -> Trace
    trace_pixel   `trace` of the block that writes it, or has its place where the launch with most
                  of the work writes no pixel; of a large block one warp alone
    count         all blocks, shared by the cores, or one of each kind times their number -> Counts

A library has its state in static variables: cores that count at once have a copy each, and a
library's stacks of blocks belong to the thread that ran it (`close`).
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator.backend import EmulatorBackend
from kernelscope.backends.emulator.compiler import (
    HostCompiler,
    leave_libraries,
    library_cache,
    take_library,
    unload_library,
)
from kernelscope.backends.emulator.launch import Memory, run_launch, sizes_of
from kernelscope.backends.emulator.spans import (
    EVERY_THREAD,
    Code,
    EmulatedLaunches,
    Span,
    Total,
    scene_of,
)
from kernelscope.backends.emulator.symbols import Symbols
from kernelscope.backends.emulator.translation import (
    TRACE,
    UNROLLING,
    laps_counted,
    translate,
    unrolled,
)
from kernelscope.base.compiled import load_library
from kernelscope.base.errors import AppError, DeviceUnavailable
from kernelscope.base.parallel import core_count
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.schema.devices import Device
from kernelscope.schema.launch import Launch, planned
from kernelscope.schema.levels import Level
from kernelscope.traffic.trace import RECORD, SECTOR, WARP, Counts, Trace, writer_of

MOST_RECORDS = 4 << 20  # of a trace: 96 MiB. Beyond them it is truncated

WHOLE_RECORDS = 1 << 18
"""Up to here all threads of a pixel's block are recorded; of larger blocks one warp is."""

_CERTAIN = 8
"""Operations of a block, for each of those records, with which there are certainly more."""

MOST_ACCESSES = 400_000_000  # up to here a launch is counted whole

_EXPENSIVE = 1e9
"""Operations of a launch of which a trace runs one block only, if the others are not needed."""

_TOO_MANY = 4  # times as many accesses as that are refused
_RIM_BLOCKS = 3  # blocks from the ends of the grid that may differ from those inside
_LEAST_BLOCKS = 8  # for each core: copies of a library take their time


class TooManyAccesses(AppError):
    """A launch would take too long to count."""


class Tracer:
    """Traces kernels on the emulated GPU; not for several threads at once.

    Code is `kept` in the cache on the disk, but for versions of the user's: they would stay for
    ever.

    Raises `DeviceUnavailable` if there is no compiler that can make libraries for tracing.
    """

    def __init__(
        self,
        compiler: HostCompiler | None = None,
        threads: int | None = None,
        *,
        kept: bool = True,
    ) -> None:
        compiler = compiler or HostCompiler.find()
        if compiler is None or compiler.name != "g++":
            raise DeviceUnavailable(
                "Tracing a kernel needs the compiler g++, which was not found.",
                "Install g++ and binutils.",
            )
        self._threads = threads or core_count()
        tracing = compiler.tracing()
        # Either way each kernel is compiled once.
        self._plain = library_cache(compiler).get if kept else _compiling_once(compiler)
        self._traced = library_cache(tracing).get if kept else _compiling_once(tracing)
        self._plain_libraries: dict[bytes, ctypes.CDLL] = {}
        self._codes: dict[bytes, list[Code]] = {}
        # Each thread has its stacks for a block as long as it lives.
        self._pool = ThreadPoolExecutor(self._threads, "kernelscope-tracer")

    def close(self) -> None:
        """End its threads, and give back the stacks that kernels had on them."""
        libraries = [each.library for copies in self._codes.values() for each in copies]
        all_there, one_by_one = threading.Barrier(self._threads), threading.Lock()

        def release() -> None:
            all_there.wait()  # so that each thread takes one of these
            with one_by_one:
                for each in libraries:
                    each.trace_release()

        for done in [self._pool.submit(release) for _ in range(self._threads * bool(libraries))]:
            done.result()
        self._pool.shutdown()
        self._codes.clear()
        for each in libraries:
            unload_library(each)
        leave_libraries(self._plain_libraries)

    def trace(
        self,
        request: Request,
        level: Level,
        block: int,
        *,
        launch: int | None = None,
        token: CancelToken | None = None,
        most: int = MOST_RECORDS,
        threads: range | None = EVERY_THREAD,
    ) -> Trace:
        """Return every access of a block, or of some of its threads.

        - `block`: its number in the grid, row by row.
        - `launch`: which of the filter's launches; by default the one that does most of the work.
        - `most`: records after which the trace is truncated.
        - `threads`: threads that are recorded. Of others, only copies to shared memory are: writes,
          and the reads before them. None records writes to the output alone.

        Raises `AppError` if there is no such block.
        """
        job = job_of(request, level)
        return self.trace_job(job, block, launch=launch, token=token, most=most, threads=threads)

    def trace_job(
        self,
        job: EmulatedLaunches,
        block: int,
        *,
        launch: int | None = None,
        token: CancelToken | None = None,
        most: int = MOST_RECORDS,
        threads: range | None = EVERY_THREAD,
        rows: range | None = None,
    ) -> Trace:
        """Return every access of a block of a job that has not been run yet; as `trace`.

        - `rows`: rows of the output to compute; by default all.
        """
        token = token or CancelToken()
        launches = job.plan.launches
        if launch is None:
            launch = _main_launch(job)
        wanted = launches[launch]
        blocks = math.prod(sizes_of(wanted, job.task)[0])
        if not 0 <= block < blocks:
            raise AppError(f"There is no block {block}.", f"The grid has blocks 0 to {blocks - 1}.")
        needed = _rows_of(job, wanted, block)
        for number, each in enumerate(launches[:launch]):
            # A launch between them would read cells that blocks which did not run left undefined.
            alone = number == launch - 1 and _shares_blocks(job, each, wanted)
            self._run(job, each, token, block if alone else None, needed)
        code = self._copies(job, wanted, 1)[0]
        records = np.empty(most, RECORD)
        span = Span(job, wanted, code, (range(block, block + 1),), rows)
        counting = self._pool.submit(span.count, token, block, records, threads=threads)
        total = counting.result()
        scene = scene_of(job, wanted, code, span.arrays, records[: total.records])
        return Trace(
            scene,
            block,
            records[: total.records].copy(),
            total.entries,
            total.footprint,
            total.barriers,
            total.lost,
            threads == EVERY_THREAD,
            threads is None or len(threads) >= WARP,
            rows,
            total.parts,
        )

    def compile(self, job: EmulatedLaunches) -> None:
        """Compile the code for the trace of a pixel; without this it happens on the way."""
        main = _main_launch(job)
        for launch in job.plan.launches[:main]:
            self._plain_library(job, launch)
        self._copies(job, job.plan.launches[main], 1)

    def trace_pixel(
        self,
        request: Request,
        level: Level,
        x: int,
        y: int,
        *,
        token: CancelToken | None = None,
    ) -> tuple[Trace, int]:
        """Return the trace of the block that computes a pixel, and the thread that writes it.

        Where the launch that does most of the work writes no pixel (`Launch.frame`), they are those
        at the pixel's place in a tile. Of a block with very many accesses, only the warp of the
        thread is recorded, or the thread alone.

        Raises `AppError` if no block that could be found writes it.
        """
        return self.trace_pixel_of(lambda: job_of(request, level), x, y, token=token)

    def trace_pixel_of(
        self,
        make: Callable[[], EmulatedLaunches],
        x: int,
        y: int,
        *,
        token: CancelToken | None = None,
    ) -> tuple[Trace, int]:
        """Return the same as `trace_pixel`, of the job that `make` returns with each call."""
        job = make()
        height, width = job.task.output_shape[:2]
        if not (0 <= x < width and 0 <= y < height):
            raise AppError(
                f"There is no pixel {x}, {y}.", f"The output has {width} x {height} pixels."
            )
        launch = job.plan.launches[_main_launch(job)]
        (across, down, _), (columns, rows, _) = sizes_of(launch, job.task)
        tile = launch.tile or (columns, rows)
        lap = _lap(job, y)
        if launch.frame is not None:
            x, y = x + launch.frame, y + launch.frame
        samples = math.prod(job.task.output_shape) / math.prod((across, down))
        samples *= len(lap or range(height)) / height
        operations = launch.operations_per_sample * samples
        trace_job = functools.partial(self.trace_job, token=token, rows=lap)
        if launch.frame is not None:
            block = y // tile[1] % down * across + x // tile[0] % across
            own = y % tile[1] * rows // tile[1] * columns + x % tile[0] * columns // tile[0]
            trace = None
            if operations < _CERTAIN * WHOLE_RECORDS:
                trace = trace_job(make(), block, most=WHOLE_RECORDS)
            if trace is None or trace.truncated:
                a_warp = operations * WARP / (columns * rows)
                recorded = _warp_of(own) if a_warp < MOST_RECORDS else range(own, own + 1)
                trace = trace_job(make(), block, threads=recorded)
            return trace, own
        places = [  # blocks have tiles that lie together, or threads stride over the output
            (min(x // tile[0], across - 1), min(y // tile[1], down - 1)),
            (x // columns % across, y // rows % down),
        ]
        for column, row in dict.fromkeys(places):
            block = row * across + column
            trace = None
            if operations < _CERTAIN * WHOLE_RECORDS:
                trace = trace_job(make(), block, most=WHOLE_RECORDS)
            # Most probably the thread at the pixel's place, unless threads have several pixels.
            if (trace is None and tile == (columns, rows)) or (trace and trace.truncated):
                warp = _warp_of(y % rows * columns + x % columns)
                trace = trace_job(make(), block, threads=warp)
            if trace is not None and (thread := writer_of(trace, x, y)) is not None:
                return trace, thread
            if trace is not None and trace.whole:
                continue
            writes = trace_job(make(), block, threads=None)
            if (thread := writer_of(writes, x, y)) is not None:
                warp = _warp_of(thread)
                return trace_job(make(), block, threads=warp), thread
        raise AppError(
            f"No thread of {launch.kernel} writes pixel {x}, {y}.",
            "If another kernel makes the pixels of its results, choose another level or filter.",
        )

    def count(
        self,
        request: Request,
        level: Level,
        token: CancelToken | None = None,
        most: int = MOST_ACCESSES,
    ) -> list[Counts]:
        """Return the totals of each launch of a filter.

        - `most`: accesses up to which a launch is counted whole. Of a larger one only blocks at the
          rim are, and one for all of those inside.

        Raises `AppError` if that would take too long as well.
        """
        token = token or CancelToken()
        job = job_of(request, level)
        made = []
        for launch in job.plan.launches:
            made.append(self._counts(job, launch, token, most))
            if made[-1].counted < made[-1].scene.blocks and launch is not job.plan.launches[-1]:
                self._run(job, launch, token)
        return made

    def _counts(
        self, job: EmulatedLaunches, launch: Launch, token: CancelToken, most: int
    ) -> Counts:
        grid, _ = sizes_of(launch, job.task)
        blocks = math.prod(grid)
        middle = grid[0] // 2 + grid[0] * (grid[1] // 2 + grid[1] * (grid[2] // 2))
        one = (range(middle, middle + 1),)
        code = self._copies(job, launch, 1)[0]
        first = Span(job, launch, code, one)
        total = self._pool.submit(first.count, token, most=most // 4).result()
        if blocks == 1 and not total.lost:
            return Counts(
                scene_of(job, launch, code, first.arrays, total.entries),
                total.entries,
                total.footprint,
                total.barriers,
                1,
            )
        expected = total.accesses * blocks
        groups = {1: [range(blocks)]} if expected <= most else dict(_classes(grid))
        number = sum(len(part) for group in groups.values() for part in group)
        if total.lost or total.accesses * number > _TOO_MANY * most:
            raise TooManyAccesses(
                f"{launch.kernel} reads and writes too often to be counted.",
                "Choose a smaller picture or mask.",
            )
        found = None
        for weight, group in groups.items():
            added = self._group(job, launch, group, token).times(weight)
            found = added if found is None else found.plus(added)
        assert found is not None
        scene = scene_of(job, launch, code, first.arrays, found.entries)
        if number < blocks:  # no more than there are
            sides = np.array([-(-each.bytes // SECTOR) for each in scene.arrays])
            found.footprint[:] = np.minimum(found.footprint, sides[:, None])
        return Counts(scene, found.entries, found.footprint, found.barriers, number)

    def _group(
        self, job: EmulatedLaunches, launch: Launch, parts: list[range], token: CancelToken
    ) -> Total:
        """Return the totals of some blocks, which several cores share."""
        number = 1 if launch.steps else self._threads
        number = max(min(number, sum(map(len, parts)) // _LEAST_BLOCKS), 1)
        pieces = parts if len(parts) > 1 else _cut(parts[0], number)
        shares = [tuple(pieces[n::number]) for n in range(number)]
        spans = [
            Span(job, launch, code, share)
            for code, share in zip(self._copies(job, launch, number), shares, strict=True)
        ]
        totals = list(self._pool.map(lambda span: span.count(token), spans))
        found: Total = totals[0]
        for each in totals[1:]:
            found = found.plus(each)
        found.footprint[1:] = [  # behind the dynamic shared memory
            [
                np.count_nonzero(functools.reduce(np.bitwise_or, seen))
                for seen in zip(*both, strict=True)
            ]
            for both in zip(*(span.seen for span in spans), strict=True)
        ]
        return found

    def _run(
        self,
        job: EmulatedLaunches,
        launch: Launch,
        token: CancelToken,
        block: int | None = None,
        rows: range | None = None,
    ) -> None:
        """Run a launch, or one block of it, without tracing; see `run_launch`."""
        library = self._plain_library(job, launch)
        run_launch(
            library, launch, job.task, job.memory, (), token, lambda _: None,
            blocks=None if block is None else (range(block, block + 1),),
            rows=rows if block is None else None,
        )  # fmt: skip

    def _plain_library(self, job: EmulatedLaunches, launch: Launch) -> ctypes.CDLL:
        text = translate(job.source(launch), launch.defines, launch.kernel)
        code = self._plain(launch.kernel, text, "host", {}).code
        if code not in self._plain_libraries:
            self._plain_libraries[code] = take_library(code)
        return self._plain_libraries[code]

    def _copies(self, job: EmulatedLaunches, launch: Launch, number: int) -> list[Code]:
        """Return a kernel's library, as often as cores are to run it."""
        source = UNROLLING + laps_counted(unrolled(job.source(launch)))
        text = translate(source, launch.defines, launch.kernel, watch=TRACE)
        code = self._traced(launch.kernel, text, "host", {}).code
        copies = self._codes.setdefault(code, [])
        while len(copies) < number:
            library = load_library(code)
            copies.append(Code(library, Symbols(code, library)))
        return copies[:number]


def _compiling_once(compiler: HostCompiler) -> Callable[..., Cubin]:
    """Return a function that compiles a source once in its life."""

    @functools.cache
    def code(name: str, source: str) -> Cubin:
        return compiler.compile(name, source, "host", {})

    return lambda name, source, *_: code(name, source)


def _warp_of(thread: int) -> range:
    start = thread // WARP * WARP
    return range(start, start + WARP)


def job_of(request: Request, level: Level) -> EmulatedLaunches:
    """Return the launches of the last filter of a request; those before it are run."""
    *before, (spec, given, border) = request.passes()
    source = request.source
    if before:
        backend = EmulatorBackend()
        for each in before:
            step = Request.create(source, each.filter.id, each.parameters, border=each.border)
            source = backend.run(step, each.filter.levels(Device.GPU)[-1], RunContext())
        backend.close()
    planes = source.planes
    parameters = spec.resolve(planes, given)
    block = request.options.block
    task, plan = planned(spec, planes.shape, planes.dtype, parameters, border, level.id, block)
    sources = (read_source(spec.id),) * len(plan.launches)
    return EmulatedLaunches(sources, level, task, plan, Memory.of(task, plan, planes))


def _main_launch(job: EmulatedLaunches) -> int:
    """Return the launch that does most of the work; of several in a row, the last one."""
    work = [each.operations_per_sample for each in job.plan.launches]
    main = work.index(max(work))
    while main + 1 < len(work) and work[main + 1] == work[main]:
        main += 1
    return main


def _lap(job: EmulatedLaunches, y: int) -> range | None:
    """Return the rows that a single block computes together with a row; None if that is all.

    Its threads stride over the picture, and do the same in each lap.
    """
    height = job.task.output_shape[0]
    launch, *more = job.plan.launches
    grid, (_, rows, _) = sizes_of(launch, job.task)
    if more or math.prod(grid) > 1 or launch.tile is not None or launch.scratch or rows >= height:
        return None
    start = y // rows * rows
    return range(start, min(start + rows, height))


def _rows_of(job: EmulatedLaunches, launch: Launch, block: int) -> range | None:
    """Return the rows of the output that a block has a part in; None if they may be all.

    Launches before it need to compute no more than a strip of these rows would.
    """
    (across, down, _), (columns, _, _) = sizes_of(launch, job.task)
    tile = launch.tile
    # Blocks whose tiles are as wide as they are may stride over the output.
    strides = tile is None or (launch.frame is None and tile[0] == columns != tile[1])
    if tile is None or strides or any(each.whole for each in job.plan.scratch.values()):
        return None
    first = block // across % down * tile[1] - (launch.frame or 0)
    return range(max(first, 0), min(first + tile[1], job.task.output_shape[0]))


def _shares_blocks(job: EmulatedLaunches, first: Launch, second: Launch) -> bool:
    """Return whether a block of a launch needs only the same block of an expensive one before it.

    Non-local means have two such launches, for weights and for samples, which take seconds.
    """
    samples = math.prod(job.task.output_shape)
    return (
        first.operations_per_sample * samples > _EXPENSIVE
        and first.operations_per_sample == second.operations_per_sample
        and sizes_of(first, job.task) == sizes_of(second, job.task)
    )


def _classes(grid: tuple[int, int, int]) -> Iterator[tuple[int, list[range]]]:
    """Yield how many blocks are alike, and one of each kind, by the number of them."""
    groups: dict[int, list[range]] = {}
    across, down, deep = (list(_kinds(side)) for side in grid)
    for z, weight_z in deep:
        for y, weight_y in down:
            for x, weight_x in across:
                number = x + grid[0] * (y + grid[1] * z)
                weight = weight_x * weight_y * weight_z
                groups.setdefault(weight, []).append(range(number, number + 1))
    yield from groups.items()


def _kinds(side: int) -> Iterator[tuple[int, int]]:
    """Yield blocks along a side, and how many are like each: only those near the ends differ."""
    if side <= 2 * _RIM_BLOCKS + 1:
        yield from ((n, 1) for n in range(side))
        return
    yield from ((n, 1) for n in range(_RIM_BLOCKS))
    yield side // 2, side - 2 * _RIM_BLOCKS
    yield from ((n, 1) for n in range(side - _RIM_BLOCKS, side))


def _cut(whole: range, parts: int) -> list[range]:
    """Return parts of a range of about the same length; neighbours stay together."""
    ends = [len(whole) * n // parts for n in range(parts + 1)]
    return [whole[start:end] for start, end in itertools.pairwise(ends)]
