"""Reduces a picture on the card to the size at which it is shown, so that only that is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.cuda.cubins import CubinCache
from kernelscope.backends.cuda.sources import read_source

BLOCK = (32, 8)
"""Threads in x and y."""


@dataclass(frozen=True)
class ReducedView:
    """The reduction of a picture of this shape and type by a factor."""

    shape: tuple[int, ...]
    """(height, width, channels) of the picture, without alpha."""
    dtype: np.dtype[Any]
    factor: int
    cubin: Cubin

    @classmethod
    def prepare(
        cls,
        device: GpuContext,
        cache: CubinCache,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        factor: int,
    ) -> ReducedView:
        """Compile the kernel, or load it from the cache; on the thread of the device."""
        defines = {"SAMPLE_BITS": str(8 * dtype.itemsize)}
        cubin = cache.get("view", read_source("view"), device.architecture, defines)
        device.function(cubin, "view")
        return cls(shape, dtype, factor, cubin)

    def download(self, device: GpuContext, source: int) -> NDArray[Any]:
        """Return the reduced picture of the one at device address `source`."""
        height, width, channels = self.shape
        rows, columns = -(-height // self.factor), -(-width // self.factor)
        output = np.empty((rows, columns, channels), self.dtype)
        _, function = device.function(self.cubin, "view")
        target = device.allocate(output.nbytes)
        try:
            function.prepare("PPiiii")
            function.prepared_async_call(
                (-(-columns * channels // BLOCK[0]), -(-rows // BLOCK[1])),
                (*BLOCK, 1),
                device.stream,
                source,
                int(target),
                height,
                width,
                channels,
                self.factor,
            )
            device.staging.download(int(target), output)
        finally:
            device.free(target)
        return output
