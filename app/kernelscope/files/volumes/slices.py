"""Folders of pictures, one per slice, as `kernelscope.files.volumes.folder` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import ImageWriteError
from kernelscope.files.picture_formats import WRITERS
from kernelscope.images.image import NOTHING
from kernelscope.images.volume import Volume

SLICE_WRITERS = {
    writer.format.suffixes[0]: writer
    for writer in WRITERS
    if writer.format.name in ("PNG", "TIFF", "BMP")
}
"""Writers of slices by the suffix of the pictures. The other formats are not common for slices."""

_NAME = re.compile(rf"slice-\d{{3,}}({'|'.join(map(re.escape, SLICE_WRITERS))})")


def is_slice(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def losses(volume: Volume, suffix: str) -> list[str]:
    """Return the properties of the voxels that pictures of this suffix cannot keep, in words."""
    dtype = volume.unscaled.dtype
    if dtype in SLICE_WRITERS[suffix].dtypes:
        return []
    return ["fractions" if dtype.kind == "f" else f"voxels of type {dtype}"]


def files(volume: Volume, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each slice; the numbers begin with 1.

    Voxels of a type that the pictures do not keep are rounded.
    """
    writer = SLICE_WRITERS[suffix]
    voxels = volume.unscaled
    if voxels.dtype not in writer.dtypes:
        voxels = _rounded(volume, voxels, suffix)
    mark = volume.nodata if "nodata" in writer.beside else None
    voxels, metadata = volume.restored(voxels, mark), replace(NOTHING, nodata=mark)
    digits = max(3, len(str(len(voxels))))
    for number, plane in enumerate(voxels, 1):
        yield (
            f"slice-{number:0{digits}}{suffix}",
            writer.encode(np.ascontiguousarray(plane), metadata),
        )


def _rounded(volume: Volume, voxels: NDArray[Any], suffix: str) -> NDArray[Any]:
    """Return voxels as the smallest type of the pictures that holds them all."""
    kept = [dtype for dtype in SLICE_WRITERS[suffix].dtypes if dtype.kind == "u"]
    whole = np.rint(voxels)
    low, high = whole.min().item(), whole.max().item()
    for dtype in kept:
        if low >= 0 and high <= np.iinfo(dtype).max:
            return np.asarray(whole.astype(dtype))
    most = np.iinfo(kept[-1]).max
    raise ImageWriteError(
        f"{volume.title}: voxels of {low:g} to {high:g} do not fit into {suffix[1:].upper()} "
        f"pictures, which hold 0 to {most}.",
        "Save it as NIfTI, or as TIFF pictures of 32-bit floats.",
    )
