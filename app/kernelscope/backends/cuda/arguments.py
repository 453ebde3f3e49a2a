"""The arguments of a launch besides source and output: constants, tables and the geometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.device_run import DeviceRun
from kernelscope.schema.launch import CudaTask, Launch

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
