"""The arguments of a launch: constants, tables, the geometry, textures, and memory of the host.

PyCUDA lacks texture objects; here they stand on its arrays. Memory of the host takes part where
kernels reach it (`Mapped`), or where the host hands over parts of it (`HandedOver`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.device_run import DeviceRun, RowPlace
from kernelscope.base.errors import DeviceUnavailable
from kernelscope.schema.borders import Border
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


_FORMATS = {"uint8": "UNSIGNED_INT8", "uint16": "UNSIGNED_INT16", "float32": "FLOAT"}

_ADDRESS_MODES = {
    Border.REFLECT: ("CU_TR_ADDRESS_MODE_MIRROR", True),
    Border.WRAP: ("CU_TR_ADDRESS_MODE_WRAP", True),
    Border.NEAREST: ("CU_TR_ADDRESS_MODE_CLAMP", False),
    Border.KEEP: ("CU_TR_ADDRESS_MODE_CLAMP", False),
    Border.CONSTANT: ("CU_TR_ADDRESS_MODE_BORDER", False),
}
"""Address mode, and whether it needs coordinates from 0 to 1."""


class Texture:
    """A CUDA array with a texture object on it; point sampling, one texel a sample.

    Columns and rows are in samples. The texture unit treats `border`, or else the kernel's code.
    """

    def __init__(
        self, columns: int, rows: int, dtype: np.dtype[Any], border: Border | None
    ) -> None:
        import pycuda.driver as cuda
        from cuda.bindings import driver

        descriptor = cuda.ArrayDescriptor()
        descriptor.width, descriptor.height = columns, rows
        descriptor.format = getattr(cuda.array_format, _FORMATS[dtype.name])
        descriptor.num_channels = 1
        self._array = cuda.Array(descriptor)
        self._pitch = columns * dtype.itemsize
        self._rows = rows

        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = driver.CUarray(self._array.handle)
        texture = driver.CUDA_TEXTURE_DESC()
        mode, normalised = ("CU_TR_ADDRESS_MODE_CLAMP", False)
        if border is not None:
            mode, normalised = _ADDRESS_MODES[border]
        texture.addressMode = [getattr(driver.CUaddress_mode, mode)] * 3
        texture.filterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT
        texture.flags = 0 if dtype.kind == "f" else driver.CU_TRSF_READ_AS_INTEGER
        if normalised:
            texture.flags |= driver.CU_TRSF_NORMALIZED_COORDINATES
        status, self._object = driver.cuTexObjectCreate(resource, texture, None)
        if int(status) != 0:
            self._array.free()
            raise cuda.RuntimeError(f"cuTexObjectCreate failed: {status.name}")

    @property
    def handle(self) -> int:
        """The ``cudaTextureObject_t`` that a kernel takes."""
        return int(self._object)

    def fill(self, source: int, stream: Any) -> None:
        """Copy packed rows from device address `source`, in order with `stream`."""
        import pycuda.driver as cuda

        copy = cuda.Memcpy2D()
        copy.set_src_device(source)
        copy.set_dst_array(self._array)
        copy.src_pitch = copy.width_in_bytes = self._pitch
        copy.height = self._rows
        copy(stream)

    def free(self) -> None:
        from cuda.bindings import driver

        driver.cuTexObjectDestroy(self._object)
        self._array.free()


GEOMETRY_NUMBERS = {3: 9, 4: 8}
"""Fields of ``Geometry`` and of ``Volume``, by the axes of the source."""


def set_constants(launch: Launch, module: Any, device: GpuContext) -> None:
    """Copy the constants of a launch to the constant memory of its module."""
    for name, values in launch.constants.items():
        address, size = module.get_global(name)
        data = np.ascontiguousarray(values)
        if data.nbytes > size:
            raise ValueError(f"{name}: {data.nbytes} bytes for {size} bytes of constant memory")
        # On the stream, which does not wait for the synchronous copies.
        device.cuda.memcpy_htod_async(int(address), data, device.stream)


def upload_tables(launch: Launch, filter_id: str, run: DeviceRun) -> list[int]:
    """Copy the tables of a launch to the card; return their addresses."""
    device, addresses = run.device, []
    for number, table in enumerate(launch.tables):
        address = run.workspace.get((filter_id, launch.kernel, number), table.nbytes)
        device.cuda.memcpy_htod_async(address, np.ascontiguousarray(table), device.stream)
        addresses.append(address)
    return addresses


def geometry(
    task: CudaTask,
    start: int,
    stop: int,
    source_row: int = 0,
    first: int = 0,
    *,
    hardware_border: bool = False,
) -> tuple[int, ...]:
    """Return the fields of ``Geometry``, or for a volume of ``Volume``."""
    if len(task.shape) == 4:
        depth, height, width, components = task.shape
        return width, height, depth, components, start, stop, source_row, first
    height, width, channels = task.shape
    return (
        *(width, height, channels, task.output_shape[1]),
        *(start, stop, source_row, first),
        int(hardware_border),
    )
