"""Folders of pictures, one per slice, as `kernelscope.files.volumes.folder` reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.errors import ImageWriteError
from kernelscope.files.pictures import pillow, png, tiff
from kernelscope.images.image import DTYPES
from kernelscope.images.volume import Volume

Encoder = Callable[[NDArray[Any]], bytes]

ENCODERS: dict[str, tuple[Encoder, tuple[np.dtype[Any], ...]]] = {
    ".png": (png.encode, DTYPES[:2]),
    ".tif": (tiff.encode, DTYPES),
    ".bmp": (pillow.encode_bmp, DTYPES[:1]),
}
"""Encoders of slices by the suffix of the pictures, and the types that they keep."""

_NAME = re.compile(r"slice-\d{3,}\.(png|tif|bmp)")


def is_slice(name: str) -> bool:
    """Return whether a file is named as `files` names slices."""
    return _NAME.fullmatch(name) is not None


def losses(volume: Volume, suffix: str) -> list[str]:
    """Return the properties of the voxels that pictures of this suffix cannot keep, in words."""
    dtype = volume.unscaled.dtype
    if dtype in ENCODERS[suffix][1]:
        return []
    return ["fractions" if dtype.kind == "f" else f"voxels of type {dtype}"]


def files(volume: Volume, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each slice; the numbers begin with 1.

    Voxels of a type that the pictures do not keep are rounded.

    Raises
    ------
    ImageWriteError
        If rounded voxels do not fit into the pictures' largest integers.
    """
    encode, kept = ENCODERS[suffix]
    voxels = volume.unscaled
    if voxels.dtype not in kept:
        voxels = _rounded(volume, voxels, suffix)
    voxels = volume.restored(voxels)
    digits = max(3, len(str(len(voxels))))
    for number, plane in enumerate(voxels, 1):
        yield f"slice-{number:0{digits}}{suffix}", encode(np.ascontiguousarray(plane))


def _rounded(volume: Volume, voxels: NDArray[Any], suffix: str) -> NDArray[Any]:
    """Return voxels as the smallest type of the pictures that holds them all."""
    kept = [dtype for dtype in ENCODERS[suffix][1] if dtype.kind == "u"]
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
