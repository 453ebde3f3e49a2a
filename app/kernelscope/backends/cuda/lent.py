"""Filters pictures in memory of the card that others own: arrays that lie there already.

An address is lent for the time of a call. Its owner may have work of its own under way on it, on
any stream of the device, and its pool may give out memory that such work still uses: everything
that was begun on the device is waited for first. When a call returns, its result is there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda import reduction
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.cubins import CubinCache
from kernelscope.backends.cuda.device_run import DeviceRun
from kernelscope.backends.cuda.executor import filter_rows
from kernelscope.base.errors import OutOfMemory
from kernelscope.engine.context import RunContext


def apply(run: DeviceRun, source: int, target: int, context: RunContext) -> None:
    """Filter the picture at an address into memory at another one; on the device's thread.

    Raises `OutOfMemory` if there is too little memory for the other needs of the kernels.
    """
    device = run.device
    run.token = context.token
    run.report_progress = lambda fraction: context.progress("kernel", fraction)
    device.cuda.Context.synchronize()
    try:
        filter_rows(run, None, source, target)
    except device.cuda.MemoryError as error:
        raise OutOfMemory(
            "The GPU has too little free memory to filter an array that lies on it.",
            "Free other arrays, or copy it to the host first: it is filtered in strips then.",
        ) from error
    finally:
        run.free()


def fetch(device: GpuContext, address: int, output: NDArray[np.generic]) -> None:
    """Copy memory at an address into a C-contiguous array; on the device's thread."""
    device.cuda.Context.synchronize()
    device.staging.download(address, output)


def store(device: GpuContext, source: NDArray[np.generic], address: int) -> None:
    """Copy a C-contiguous array to memory at an address; on the device's thread."""
    device.cuda.Context.synchronize()
    device.staging.upload(source, address)


def peak(device: GpuContext, cache: CubinCache, address: int, samples: int) -> float:
    """Return the largest magnitude of 32-bit floats at an address; NaN without room to look."""
    device.cuda.Context.synchronize()
    return reduction.peak_at(device, cache, address, samples)
