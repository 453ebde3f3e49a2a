"""Kernels that take turns on one card: the program's levels, textbook kernels, and their times."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cuda.arguments import Texture
from kernelscope.backends.cuda.compiler import CompileError, CubinCache, Nvrtc
from kernelscope.backends.cuda.sources import read_source
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import HARDWARE_BORDERS, Cuda, CudaPlan, CudaTask, Launch

Job = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""Name, source, architecture and macros of something to compile."""

BATCH_SECONDS = 1e-3
"""Launches are timed in batches of about so long: single short ones cannot be."""

HOLD_SECONDS, QUEUE_SECONDS = 40e-6, 15e-6
"""How long the card is kept busy before a batch, and for each launch of it: the host takes longer
to queue a short launch than the card to run it, and would be timed instead."""

TRIES = 4
"""Of a batch until the host has queued it in time, each with twice the time."""

MOST_LAUNCHES = 32
MOST_COPIES = 64


def compile_all(jobs: Iterable[Job]) -> None:
    """Put cubins into the cache, on all cores."""
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        errors = [error for error in pool.map(_compile, sorted(set(jobs)), chunksize=2) if error]
    if errors:
        raise RuntimeError(errors[0])


def _compile(job: Job) -> str | None:
    """Put a cubin into the cache, or return the compiler's message: its error cannot be pickled."""
    name, source, architecture, macros = job
    try:
        CubinCache(Nvrtc()).get(name, source, architecture, dict(macros))
    except CompileError as error:
        return error.log
    return None


class Card:
    """The first GPU, and the kernels that were loaded to it; a context manager."""

    def __init__(self) -> None:
        import pycuda.driver as cuda

        cuda.init()
        self.cuda = cuda
        device = cuda.Device(0)
        self._context = device.retain_primary_context()
        self._context.push()
        self.name = device.name()
        major, minor = device.compute_capability()
        self.architecture = f"sm_{major}{minor}"
        self.cache_bytes = device.get_attribute(cuda.device_attribute.L2_CACHE_SIZE)
        self._cubins = CubinCache(Nvrtc())
        self._modules: dict[Job, Any] = {}
        self._hold = self.module("hold", read_source("hold"), {}).get_function("hold")
        self._hold.prepare("q")
        self._clock = 1e3 * device.get_attribute(cuda.device_attribute.CLOCK_RATE)

    def __enter__(self) -> Card:
        return self

    def __exit__(self, *_: object) -> None:
        del self._hold
        self._modules.clear()
        self._context.pop()
        self._context.detach()

    def module(self, name: str, source: str, macros: Mapping[str, str]) -> Any:
        job = (name, source, self.architecture, tuple(sorted(macros.items())))
        if job not in self._modules:
            cubin = self._cubins.get(name, source, self.architecture, macros)
            self._modules[job] = self.cuda.module_from_buffer(cubin.code)
        return self._modules[job]

    def seconds(self, start: Callable[[], None], launches: int, stream: Any = None) -> float:
        """Return how long the card takes for the `launches` that `start` queues on `stream`."""
        for attempt in range(TRIES):
            begin, end = self.cuda.Event(), self.cuda.Event()
            hold = (HOLD_SECONDS + launches * QUEUE_SECONDS) * 2**attempt
            self._hold.prepared_async_call((1, 1), (1, 1, 1), stream, int(hold * self._clock))
            begin.record(stream)
            start()
            end.record(stream)
            in_time = not begin.query()
            end.synchronize()
            if in_time:
                break
        return float(begin.time_till(end)) * 1e-3

    def upload(self, array: NDArray[Any]) -> Any:
        return self.cuda.to_device(np.ascontiguousarray(array))

    def set_constant(self, module: Any, name: str, values: NDArray[Any]) -> None:
        address, _ = module.get_global(name)
        self.cuda.memcpy_htod(int(address), np.ascontiguousarray(values))


class Pictures:
    """Copies of a source and of a result on the card.

    Launches go from copy to copy, so that no copy is in the cache when its turn comes.
    """

    def __init__(
        self,
        card: Card,
        source: NDArray[Any],
        result_shape: tuple[int, ...],
        most: int = MOST_COPIES,
    ) -> None:
        self.card, self.source, self.result_shape = card, source, result_shape
        both = source.nbytes * (1 + np.prod(result_shape) / source.size)
        self.count = min(max(int(2 * card.cache_bytes / both) + 2, 2), most)
        self.sources = [card.upload(source) for _ in range(self.count)]
        blank = np.zeros(result_shape, source.dtype)
        self.results = [card.upload(blank) for _ in range(self.count)]
        self._textures: dict[Border | None, list[Texture]] = {}

    def textures(self, border: Border | None) -> list[Texture]:
        if border not in self._textures:
            height, width, channels = self.source.shape
            made = self._textures[border] = []
            for source in self.sources:
                made.append(Texture(width * channels, height, self.source.dtype, border))
                made[-1].fill(int(source), self.card.cuda.Stream())
            self.card.cuda.Context.synchronize()
        return self._textures[border]

    @cached_property
    def fill_seconds(self) -> float:
        """How long it takes to copy a source into the array of a texture."""
        stream, made = self.card.cuda.Stream(), self.textures(None)

        def start() -> None:
            for source, texture in zip(self.sources, made, strict=True):
                texture.fill(int(source), stream)

        start()
        batches = [self.card.seconds(start, self.count, stream) for _ in range(5)]
        return statistics.median(batches) / self.count

    def result(self) -> NDArray[Any]:
        """Return the result of copy 0, and blank it."""
        array = np.zeros(self.result_shape, self.source.dtype)
        self.card.cuda.memcpy_dtoh(array, self.results[0])
        self.card.cuda.memcpy_htod(self.results[0], np.zeros_like(array))
        return array

    def free(self) -> None:
        for made in self._textures.values():
            for texture in made:
                texture.free()
        for buffer in [*self.sources, *self.results]:
            buffer.free()


@dataclass(frozen=True)
class Contender:
    """Something to time: ``launch(i)`` starts it on copy `i` of the pictures."""

    name: str
    launch: Callable[[int], None]


def task_of(
    filter_id: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    parameters: Mapping[str, Any],
    border: Border,
    level: str,
    block: tuple[int, int] | None = None,
) -> CudaTask:
    spec = filters.get(filter_id)
    values = spec.validate(parameters)
    result = spec.output_shape(shape, values, border)
    return CudaTask(shape, result, dtype, values, border, level, block)


def plan_of(task: CudaTask, filter_id: str) -> Launch:
    """Return the only launch of a filter."""
    (launch,) = CudaPlan.of(filters.get(filter_id).implementation(Cuda).plan(task)).launches
    return launch


def job_of(filter_id: str, launch: Launch, architecture: str) -> Job:
    macros = tuple(sorted(launch.defines.items()))
    return filter_id, read_source(filter_id), architecture, macros


def level_of_program(
    pictures: Pictures,
    filter_id: str,
    parameters: Mapping[str, Any],
    border: Border,
    level: str,
    block: tuple[int, int] | None = None,
) -> Contender:
    """Return the program's own kernel, launched as the program launches it."""
    source = pictures.source
    task = task_of(filter_id, source.shape, source.dtype, parameters, border, level, block)
    return contender_of(pictures, level, filter_id, task, plan_of(task, filter_id))


def contender_of(
    pictures: Pictures, name: str, filter_id: str, task: CudaTask, launch: Launch
) -> Contender:
    """Return a launch of a filter."""
    card, source, border = pictures.card, pictures.source, task.border
    height, width, channels = source.shape
    result = task.output_shape
    module = card.module(filter_id, read_source(filter_id), launch.defines)
    function = module.get_function(launch.kernel)
    for constant, values in launch.constants.items():
        card.set_constant(module, constant, values)
    hardware = launch.texture and channels == 1 and border in HARDWARE_BORDERS
    if launch.texture:
        made = pictures.textures(border if hardware else None)
        firsts = [texture.handle for texture in made]
    else:
        firsts = [int(buffer) for buffer in pictures.sources]
    tables = [card.upload(table) for table in launch.tables]
    geometry = (width, height, channels, result[1], 0, result[0], 0, 0, int(hardware))
    function.prepare("P" * (2 + len(tables)) + "i" * len(geometry))
    if launch.shared_bytes > 48 * 1024:
        function.set_attribute(
            card.cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.shared_bytes
        )
    grid = launch.grid(result)

    def start(copy: int) -> None:
        function.prepared_call(
            grid,
            (*launch.block, 1),
            firsts[copy],
            int(pictures.results[copy]),
            *map(int, tables),
            *geometry,
            shared_size=launch.shared_bytes,
        )

    return Contender(name, start)


def glance(card: Card, contender: Contender) -> float:
    """Return the seconds of the second of two launches."""
    contender.launch(0)
    return card.seconds(lambda: contender.launch(1), 1)


def measure(
    card: Card, contenders: Sequence[Contender], copies: int, repeats: int
) -> dict[str, list[float]]:
    """Return the seconds of a launch of each contender, `repeats` times, all taking turns.

    Each time is that of a batch of launches on one copy after the other, divided by their number.
    """
    turn = 0

    def batch(contender: Contender, launches: int) -> float:
        def start() -> None:
            nonlocal turn
            for _ in range(launches):
                contender.launch(turn % copies)
                turn += 1

        return card.seconds(start, launches) / launches

    launches = {}
    for contender in contenders:
        batch(contender, 2)
        seconds = min(batch(contender, 2) for _ in range(2))
        wanted = int(BATCH_SECONDS / seconds) + 1
        launches[contender.name] = min(wanted, MOST_LAUNCHES)
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(repeats):
        for contender in contenders:
            times[contender.name].append(batch(contender, launches[contender.name]))
    return times
