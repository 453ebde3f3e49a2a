"""Arrays as lazy sources."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files.lazy import Sides
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind


class ArraySource:
    """A NumPy array, or a memory map of one, as a source.

    Parameters
    ----------
    array : ndarray, shape (height, width, channels) or (depth, height, width)
        Of a type that filters take; not written to meanwhile.
    """

    def __init__(self, array: NDArray[Any], kind: Kind, title: str = "array") -> None:
        self._array = array
        self.kind, self.title = kind, title
        first, second, third = array.shape
        self.shape: Sides = first, second, third
        self.dtype: np.dtype[Any] = array.dtype.newbyteorder("=")
        self.grain: Sides = (1, 1, self.shape[2])

    def read(self, box: Box) -> NDArray[Any]:
        return np.array(box.of(self._array), self.dtype, order="C")

    def working_bytes(self, box: Box) -> int:
        return box.pixels * self.dtype.itemsize
