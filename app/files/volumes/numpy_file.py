"""Arrays of shape (depth, height, width) in NumPy's own format (.npy)."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from app.engine.volume import Volume, check_shape
from app.files.formats import Unreadable
from app.files.volumes.scan import UNKNOWN_SPACING, Scan, choose

MAGIC = b"\x93NUMPY"


def matches(start: bytes) -> bool:
    """Whether a file that starts like this is an array of NumPy."""
    return start.startswith(MAGIC)


def decode(path: Path, number: int | None) -> Scan:
    """Read an array of numbers; one of two dimensions is a single slice."""
    choose(number, ["the array"], "volume")
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    if mapped.dtype.kind not in "biuf":
        raise Unreadable(f"its values are of type {mapped.dtype}.", "Save one real number a voxel.")
    if mapped.ndim == 2:
        mapped = mapped[np.newaxis]
    check_shape(mapped.shape, path.name)
    return Scan(np.array(mapped, order="C"), notices=[UNKNOWN_SPACING])


def encode(volume: Volume) -> bytes:
    """Return the whole file."""
    voxels = volume.voxels.astype(bool) if volume.is_boolean else volume.unscaled
    buffer = io.BytesIO()
    np.save(buffer, volume.restored(voxels), allow_pickle=False)
    return buffer.getvalue()
