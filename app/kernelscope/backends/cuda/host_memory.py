"""Host memory that takes part in a launch: kernels reach it, or the host hands over parts of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

import numpy as np

from kernelscope.backends.cuda.device_run import DeviceRun, RowPlace
from kernelscope.base.errors import DeviceUnavailable
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch


class Mapped:
    """Rows of a source and of its output in host memory that kernels reach over the bus."""

    def __init__(self, task: CudaTask, place: RowPlace, run: DeviceRun) -> None:
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


class HandedOver:
    """Hands parts of a picture over to the card, as `HandOver` says, and times that.

    The host's copy is made when a launch begins: a filter before this one may have left the
    picture on the card only.
    """

    def __init__(
        self,
        plan: CudaPlan,
        launch: Launch,
        place: RowPlace,
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
        """Discard the times so far."""
        self._fetched.clear()
        self._seconds.clear()

    def note(self) -> None:
        """Add a stage for the parts handed over, and one for the copy."""
        for name, times in (("prepare", self._fetched), ("hand over", self._seconds)):
            repeats = tuple(times) if len(times) > 1 else ()
            self._run.log.add(name, statistics.median(times), repeats=repeats, begun=self._begun)
