"""Arrays of shape (depth, height, width) in NumPy's own format (.npy)."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernelscope.files.formats import Unreadable
from kernelscope.files.reading import open_file
from kernelscope.files.volumes.raw_volume import RawVolume, choose, fill
from kernelscope.images.volume import Volume, check_shape

MAGIC = rb"\x93NUMPY"

_MAX_HEADER = 2**16
_TYPE = r"""['"]descr['"]\s*:\s*['"]([^'"]{1,9})['"]"""
_SHAPE = r"""['"]shape['"]\s*:\s*\(([\dL, ]{0,99})\)"""
_ORDER = r"""['"]fortran_order['"]\s*:\s*(True|False)"""
_ONE_NUMBER = "Save one real number a voxel."


def decode(path: Path, number: int | None) -> RawVolume:
    choose(number, ["the array"], "volume")
    with open_file(path) as handle:
        dtype, shape, by_columns = _header(handle)
        if len(shape) == 2:
            shape = (1, *shape)
        check_shape(shape, path.name)
        left = os.fstat(handle.fileno()).st_size - handle.tell()
        if left < math.prod(shape) * dtype.itemsize:
            raise Unreadable(f"the file is cut off: {left} bytes of voxels are left.")
        stored = np.empty(shape[::-1] if by_columns else shape, dtype)
        fill(handle, stored)
    return RawVolume(np.ascontiguousarray(stored.T) if by_columns else stored)


def _header(handle: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Return the type, the shape, and whether the first index runs fastest (Fortran order).

    NumPy itself evaluates the header as Python, which may emit warnings.
    """
    start = handle.read(8)
    version = start[6:7]
    if len(start) < 8:
        raise Unreadable("the file is cut off.")
    width = 2 if version == b"\1" else 4
    length = int.from_bytes(handle.read(width), "little")
    if version not in (b"\1", b"\2", b"\3") or length > _MAX_HEADER:
        raise Unreadable("its header is damaged.")
    text = handle.read(length).decode("latin-1")
    if len(text) < length:
        raise Unreadable("the file is cut off.")
    found = [re.search(pattern, text) for pattern in (_TYPE, _SHAPE, _ORDER)]
    if not all(found):
        raise Unreadable("its header is none of an array of numbers.", _ONE_NUMBER)
    code, sides, order = (match[1] for match in found if match)
    if not re.fullmatch(r"[<>=|]?[biuf]\d{1,2}|[|]?\?", code):
        raise Unreadable(f"its values are of type {code}.", _ONE_NUMBER)
    # Python 2 wrote 3L for 3.
    shape = tuple(int(side) for side in re.findall(r"\d+", sides))
    return np.dtype(code), shape, order == "True"


def encode(volumes: Sequence[Volume]) -> bytes:
    (volume,) = volumes
    voxels = volume.voxels.astype(bool) if volume.is_boolean else volume.unscaled
    buffer = io.BytesIO()
    np.save(buffer, volume.restored(voxels), allow_pickle=False)
    return buffer.getvalue()
