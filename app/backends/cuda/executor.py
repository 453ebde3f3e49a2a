"""Runs the CUDA launches of a filter on one device."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.backends.cuda.compiler import Cubin, CubinCache, resources
from app.backends.cuda.device import Device
from app.backends.cuda.sources import read_source
from app.backends.cuda.strips import Strip, cut
from app.backends.cuda.texture import Texture
from app.engine.control import CancelToken, Progress
from app.engine.image import Image
from app.engine.launch import LaunchReport
from app.engine.timing import Metric, Stopwatch
from app.errors import DeviceUnavailable, OutOfMemory
from app.filters.launch import HARDWARE_BORDERS, CudaTask, Launch
from app.filters.spec import FilterSpec

_logger = logging.getLogger(__name__)

LAUNCH_SECONDS = 0.05
"""No launch should take longer: the display's watchdog and Cancel wait for it."""

HOLD_SECONDS = 40e-6
"""How long the card is kept busy before a launch: longer than the host takes to queue it."""

PILOT_OPERATIONS = 2e9
"""Work of a launch that takes well under `LAUNCH_SECONDS` on any supported card."""


@dataclass(frozen=True)
class Step:
    """A filter to apply to the image on the card, ready to be launched."""

    spec: FilterSpec
    task: CudaTask
    radius: int
    launch: Launch
    cubin: Cubin


@dataclass
class Run:
    """What one run works with and brings back."""

    device: Device
    cache: CubinCache
    stopwatch: Stopwatch
    token: CancelToken
    progress: Progress
    repeat: int
    keep: NDArray[Any] | None = None  # the image that has to stay on the card
    report: LaunchReport | None = None
    kernel_seconds: float = 0.0
    kernel_bytes: float = 0.0
    kernel_operations: float = 0.0

    @property
    def metrics(self) -> list[Metric]:
        """What the launches so far amount to."""
        seconds = max(self.kernel_seconds, 1e-9)
        metrics = [
            Metric("effective rate", self.kernel_bytes / seconds, "B/s"),
            Metric("arithmetic rate", self.kernel_operations / seconds, "op/s"),
        ]
        copy_rate = self.device.copy_rate()
        if copy_rate is not None:
            metrics.append(Metric("copy rate", copy_rate, "B/s"))
        return metrics


def prepare(spec: FilterSpec, task: CudaTask, device: Device, cache: CubinCache) -> Step:
    """Plan the launch of a filter and compile it, or load it from the cache."""
    assert spec.plan_cuda is not None
    launch = spec.plan_cuda(task)
    limit = device.handle.get_attribute(
        device.cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    )
    if launch.shared_bytes > limit:
        raise DeviceUnavailable(
            f"{spec.name} at level {task.level} needs {launch.shared_bytes // 1024} KiB of shared "
            f"memory a block; this GPU has {limit // 1024} KiB.",
            "Choose a smaller mask or another level.",
        )
    cubin = cache.get(spec.id, read_source(spec.id), device.architecture, launch.defines)
    return Step(spec, task, spec.radius(task.parameters), launch, cubin)


def apply(steps: Sequence[Step], image: Image, run: Run, limit: int | None) -> NDArray[Any]:
    """Apply `steps` to `image` and return the result, shape (height, width, channels).

    The image is processed in one piece if it fits into device memory (at most `limit`
    bytes of it), else in strips; the result is the same.

    Raises
    ------
    OutOfMemory
        If not even a strip of a few rows fits.
    """
    final = steps[-1].task
    output = np.empty(final.output_shape, final.dtype)
    free = run.device.free_memory() + run.device.resident.size
    rows = _rows_that_fit(steps, min(free * 9 // 10, limit or free))
    while rows > 0:
        try:
            if rows >= output.shape[0]:
                _one_piece(steps, image, output, run)
            else:
                _in_strips(steps, image.planes, output, run, rows)
            return output
        except run.device.cuda.MemoryError:
            run.device.resident.clear()
            rows = min(rows, output.shape[0]) // 2
            _logger.warning("out of device memory: trying again in strips of %d rows", rows)
    raise OutOfMemory(
        "The GPU has too little free memory, even for a few rows of this image.",
        "Close other programs that use the GPU, or choose CPU.",
    )


def _rows_that_fit(steps: Sequence[Step], budget: int) -> int:
    """Return how many output rows can be processed at a time within `budget` bytes."""
    row_bytes = 0
    for step in steps:
        _, width, channels = step.task.shape
        _, out_width, out_channels = step.task.output_shape
        source = width * channels * (2 if step.launch.texture else 1)
        row_bytes += (source + out_width * out_channels) * step.task.dtype.itemsize
    halo = 2 * sum(step.radius for step in steps)
    out_height = steps[-1].task.output_shape[0]
    if (out_height + halo) * row_bytes <= budget:
        return out_height
    return max(0, budget // row_bytes - halo)


def _one_piece(steps: Sequence[Step], image: Image, output: NDArray[Any], run: Run) -> None:
    """Filter the whole image; it and the result stay on the card afterwards."""
    device, pixels = run.device, image.pixels
    run.keep = pixels
    source = device.resident.get(pixels)
    if source is None:
        with run.stopwatch.stage("prepare"):
            source = device.allocate(pixels.nbytes)
        try:
            with run.stopwatch.stage("upload"):
                device.staging.upload(pixels, int(source))
        except BaseException:
            device.free(source)
            raise
        device.resident.put(pixels, source)
    with run.stopwatch.stage("prepare"):
        target = device.allocate(output.nbytes, keep=pixels)
    try:
        _steps(steps, None, int(source), int(target), run)
        with run.stopwatch.stage("download"):
            device.staging.download(int(target), output)
    except BaseException:
        device.free(target)
        raise
    device.resident.put(output, target)


def _in_strips(
    steps: Sequence[Step], pixels: NDArray[Any], output: NDArray[Any], run: Run, rows: int
) -> None:
    """Filter strip by strip; only the last step has a halo (greyscale comes first)."""
    device = run.device
    final = steps[-1]
    height = pixels.shape[0]
    strips = cut(height, output.shape[0], final.radius, final.task.border, rows)
    run.stopwatch.notices = [
        f"The image is too large for the GPU's free memory: filtered in {len(strips)} strips."
    ]
    row_bytes = pixels.nbytes // height
    run.keep = None
    device.resident.clear()
    source = device.allocate(max(strip.source_rows for strip in strips) * row_bytes)
    target = device.allocate(rows * (output.nbytes // output.shape[0]))
    try:
        for number, strip in enumerate(strips):
            run.token.check()
            run.progress("compute", number / len(strips))
            with run.stopwatch.stage("upload"):
                for row, first, count in strip.source_pieces(height):
                    device.staging.upload(
                        pixels[first : first + count], int(source) + row * row_bytes
                    )
            _steps(steps, strip, int(source), int(target), run)
            with run.stopwatch.stage("download"):
                device.staging.download(int(target), output[strip.first : strip.last])
    finally:
        device.free(source, target)


def _steps(
    steps: Sequence[Step],
    strip: Strip | None,
    source: int,
    target: int,
    run: Run,
) -> None:
    """Launch one step after the other; intermediate images live on the card only."""
    scratch: list[Any] = []
    try:
        for step in steps[:-1]:
            height, width, channels = step.task.output_shape
            rows = strip.source_rows if strip else height
            size = rows * width * channels * step.task.dtype.itemsize
            between = run.device.allocate(size, run.keep)
            scratch.append(between)
            # A step before the last has no halo: it converts just the rows that are there.
            whole = replace(strip, first=0, last=rows, source_first=0) if strip else None
            _launch(step, whole, source, int(between), run)
            source = int(between)
        _launch(steps[-1], strip, source, target, run)
    finally:
        run.device.free(*scratch)


def _launch(step: Step, strip: Strip | None, source: int, target: int, run: Run) -> None:
    """Launch one step over its output rows, in pieces that end in time."""
    device, launch, task = run.device, step.launch, step.task
    cuda, stream = device.cuda, device.stream
    height, width, channels = task.shape
    out_height, out_width, out_channels = task.output_shape
    first, last = (strip.first, strip.last) if strip else (0, out_height)
    source_row = strip.source_first if strip else 0
    source_rows = strip.source_rows if strip else height

    module, function = device.function(step.cubin, launch.kernel)
    for name, values in launch.constants.items():
        address, size = module.get_global(name)
        data = np.ascontiguousarray(values)
        if data.nbytes > size:
            raise ValueError(f"{name}: {data.nbytes} bytes for {size} bytes of constant memory")
        # On the stream, which does not wait for the synchronous copies.
        cuda.memcpy_htod_async(int(address), data, stream)
    # A strip's edges are not the image's, and neighbours of one channel lie further apart.
    in_hardware = (
        launch.texture and strip is None and channels == 1 and task.border in HARDWARE_BORDERS
    )
    owned: list[Any] = []
    try:
        arguments: list[int] = []
        if launch.texture:
            border = task.border if in_hardware else None
            texture = device.make_room(
                lambda: Texture(width * channels, source_rows, task.dtype, border), run.keep
            )
            owned.append(texture)
            texture.fill(source, stream)
            arguments.append(texture.handle)
        else:
            arguments.append(source)
        arguments.append(target)
        for table in launch.tables:
            allocation = device.allocate(table.nbytes, run.keep)
            owned.append(allocation)
            cuda.memcpy_htod_async(int(allocation), np.ascontiguousarray(table), stream)
            arguments.append(int(allocation))
        function.prepare("P" * len(arguments) + "9i")
        if launch.shared_bytes > 48 * 1024:
            function.set_attribute(
                cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.shared_bytes
            )

        def go(start: int, stop: int) -> float:
            """Launch over rows, wait, and return the seconds between the events."""
            grid = _grid(launch, out_width, stop - start)
            begin, end = cuda.Event(), cuda.Event()
            hold()
            begin.record(stream)
            function.prepared_async_call(
                grid,
                (*block, 1),
                stream,
                *arguments,
                width,
                height,
                channels,
                out_width,
                start,
                stop,
                source_row,
                first,
                int(in_hardware),
                shared_size=launch.shared_bytes,
            )
            end.record(stream)
            device.wait(end)
            return float(end.time_since(begin)) * 1e-3

        block = _block(launch, function, device)
        hold = _holder(run)
        row_samples = out_width * max(channels, out_channels)
        pacer = _Pacer(launch, row_samples * launch.operations_per_sample)
        times = []
        for _ in range(run.repeat):
            seconds = 0.0
            for start, stop in pacer.pieces(first, last):
                run.token.check()
                taken = go(start, stop)
                pacer.learn(stop - start, taken)
                seconds += taken
                run.progress("kernel", (stop - first) / (last - first))
            times.append(seconds)
        seconds = statistics.median(times)
        run.stopwatch.add("kernel", seconds, repeats=tuple(times) if run.repeat > 1 else ())
        samples = (last - first) * row_samples
        run.kernel_seconds += seconds
        run.kernel_bytes += launch.bytes_per_sample * samples
        run.kernel_operations += launch.operations_per_sample * samples
        run.report = _report(step, function, _grid(launch, out_width, last - first), device)
    finally:
        if not device.lost:
            device.wait(stream)
        device.free(*owned)


class _Pacer:
    """Cuts a launch into pieces of about half of `LAUNCH_SECONDS`.

    The first piece is small enough for any card; its time decides about the others.
    """

    def __init__(self, launch: Launch, operations_per_row: float) -> None:
        self._tile = launch.tile[1] if launch.tile else 1
        rows = PILOT_OPERATIONS / max(operations_per_row, 1)
        self._rows = rows if launch.tile else rows / 64  # one block uses a fraction of the card

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of the output rows of each launch."""
        while first < last:
            whole_tiles = int(self._rows) // self._tile * self._tile
            stop = min(first + max(whole_tiles, self._tile), last)
            yield first, stop
            first = stop

    def learn(self, rows: int, seconds: float) -> None:
        """Note how long a launch over so many rows took."""
        self._rows = rows * LAUNCH_SECONDS / 2 / max(seconds, 1e-6)


def _holder(run: Run) -> Callable[[], None]:
    """Return what keeps the card busy for `HOLD_SECONDS`."""
    device = run.device
    cubin = run.cache.get("hold", read_source("hold"), device.architecture, {})
    _, function = device.function(cubin, "hold")
    function.prepare("q")
    kilohertz = device.handle.get_attribute(device.cuda.device_attribute.CLOCK_RATE)
    cycles = int(HOLD_SECONDS * kilohertz * 1e3)
    return lambda: function.prepared_async_call((1, 1), (1, 1, 1), device.stream, cycles)


def _block(launch: Launch, function: Any, device: Device) -> tuple[int, int]:
    """Return the threads of a block; fewer than planned if a striding one lacks registers."""
    if launch.tile is not None:
        return launch.block
    columns, rows = launch.block
    most = function.get_attribute(device.cuda.function_attribute.MAX_THREADS_PER_BLOCK)
    return columns, min(rows, most // columns)


def _grid(launch: Launch, width: int, rows: int) -> tuple[int, int]:
    if launch.tile is None:
        return 1, 1
    return -(-width // launch.tile[0]), -(-rows // launch.tile[1])


def _report(step: Step, function: Any, grid: tuple[int, int], device: Device) -> LaunchReport:
    launch, attribute = step.launch, device.cuda.device_attribute
    block = _block(launch, function, device)
    threads = block[0] * block[1]
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
        block,
        launch.shared_bytes,
        resources(step.cubin.log, launch.kernel),
        blocks * threads / per_multiprocessor,
    )
