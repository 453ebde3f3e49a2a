"""Filters an image on one GPU in one piece, or on all of them in slabs.

*One piece*: an image that fits into a GPU's memory is filtered by the first GPU in one piece and
stays there, where the next filter finds it. Slabs would let copies overlap computing, but would
have to be uploaded again for every filter, and the card would idle at the end of each. The one
thing that overlaps is preparing the result's host memory.

*Slabs*: a volume with much work for several GPUs, and whatever does not fit, is cut into slabs that
have all rows that their own depend on, so that the result has the same bytes wherever it is cut.
See `budget` for their size and `conveyor` for the work.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from numpy.typing import NDArray

from kernelscope.backends.cuda import budget, components
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.conveyor import Conveyor, in_slabs
from kernelscope.backends.cuda.device_run import DeviceRun
from kernelscope.backends.cuda.executor import filter_rows
from kernelscope.backends.cuda.memory import CHUNK_BYTES
from kernelscope.backends.cuda.short_steps import read_times
from kernelscope.backends.cuda.view import ReducedView
from kernelscope.base.errors import OutOfMemory
from kernelscope.base.text import enumerated
from kernelscope.engine.context import RunContext
from kernelscope.images.source import Source
from kernelscope.schema.samples import Kind

_logger = logging.getLogger(__name__)

WORTH_SHARING = 4e11
"""Operations of a volume from which on several GPUs are quicker than one. For 20 ms of kernels on
one H100: slabs cost a run about 8 ms more than one piece does, and a second GPU saves half."""


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
    rows = [budget.rows_that_fit(run.steps, most) for run, most in zip(runs, budgets, strict=True)]
    rows[0] = int(min(rows[0], most_rows))
    output = first.results.take(final.output_shape, final.dtype)
    while any(rows := [budget.slab_rows(runs[0].steps, count, len(runs)) for count in rows]):
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
    """Return the work of the last step, by its plan."""
    step = run.steps[-1]
    samples = math.prod(step.task.output_shape)
    return samples * sum(launch.operations_per_sample for launch in step.plan.launches)


def _fits(run: DeviceRun, image: Source, limit: int | None) -> bool:
    """Return whether everything should fit in one piece: an allocation may still fail."""
    device = run.device
    if not limit and budget.fits(run.steps, device.likely_free):
        return True
    return budget.fits(run.steps, device.call(_bytes_free, device, image, limit))


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
