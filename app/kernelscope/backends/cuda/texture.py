"""Texture objects, which PyCUDA lacks, on PyCUDA's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.schema.borders import Border

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
