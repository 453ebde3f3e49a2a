"""Opens files of any size to be read in blocks, by their kind."""

from __future__ import annotations

import re
from pathlib import Path

from kernelscope.base.errors import ImageReadError
from kernelscope.big.lazy.tiff_source import TiffSource, open_tiff
from kernelscope.files.pictures.tiff import MAGIC
from kernelscope.files.volumes import is_volume
from kernelscope.files.volumes.zarr_source import ZarrSource, is_zarr, open_zarr
from kernelscope.schema.samples import Kind


def open_source(path: Path, number: int | None = None) -> TiffSource | ZarrSource:
    """Open a file to be read in blocks; close it after use.

    `number`: from 1, of several volumes, and planes of an OME-Zarr are volumes of one slice then.
    """
    if is_zarr(path):
        return open_zarr(path, number, apart=number is not None)
    kind = Kind.VOLUME if is_volume(path) else Kind.PICTURE
    if path.is_file() and not is_tiff(path):
        raise ImageReadError(
            f"{path.name}: only TIFF files and OME-Zarr folders are read in blocks.",
            "Convert it, or filter it as a whole.",
        )
    return open_tiff(path, kind, number)


def is_tiff(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            return re.match(MAGIC, handle.read(4)) is not None
    except OSError:
        return True  # its reader has the reason
