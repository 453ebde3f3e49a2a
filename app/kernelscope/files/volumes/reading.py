"""Opens volumes; the format is detected by content."""

from __future__ import annotations

import gzip
import logging
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from kernelscope.base.errors import ImageReadError, SeveralVolumes
from kernelscope.files.formats import AGAIN, Unreadable, damage_explained, named, unknown
from kernelscope.files.reading import open_file
from kernelscope.files.volumes import dicom, nifti
from kernelscope.files.volumes.raw_volume import RawVolume, spacing_notices
from kernelscope.files.volumes.volume_formats import (
    FOLDER,
    FORMATS,
    READABLE_VOLUMES,
    ZARR,
    VolumeFormat,
)
from kernelscope.files.volumes.zarr_source import is_zarr
from kernelscope.images.volume import Volume

_logger = logging.getLogger(__name__)

_HEADER_BYTES, _VOXEL_BYTES = 1 << 29, 16
"""More than the header of a NIfTI file takes, and than a voxel does."""

_PART = 1 << 22  # bytes that are unpacked at a time


def read_volume(
    path: str | Path,
    volume_number: int | None = None,
    *,
    nan: float | None = None,
    slices: Sequence[Path] = (),
) -> Volume:
    """Read a file of one of the formats in `READABLE_VOLUMES`, an OME-Zarr, or a folder.

    A folder holds a DICOM series, or pictures of equal size, one per slice, in the order of the
    numbers in their names. A single DICOM file stands for its series. The format is detected by
    content, not by suffix. Values are scaled as the file states; see `Volume.from_array` for their
    type. `Volume.notices` reports decisions and conversions.

    - `volume_number`: from 1, of the volume in a file, or of the DICOM series in a folder.
    - `nan`: replaces NaN; saved results have NaN there again.
    - `slices`: all files of the DICOM series of `path`, if they are known: no folder is searched.

    Raises `ImageReadError` if the file or folder is missing, damaged, of no known format, or not
    one grey volume; `SeveralVolumes` if there are several, and no `volume_number`; `NotANumber` if
    some voxels are NaN, and there is no `nan`; `InvalidImage` if there are too many voxels, or some
    are infinite; `OutOfMemory` if there is not enough memory for it.
    """
    path = Path(path)
    title = path.name or str(path)
    start = time.perf_counter()
    with named(title, "volume"):
        volume, name = _decode(path, title, volume_number, nan, slices)
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Read %s from %s: %.1f ms", volume.describe(), name, elapsed)
    for notice in volume.notices:
        _logger.info("%s: %s", title, notice)
    return volume


def read_volumes(
    path: str | Path, *, nan: float | None = None, slices: Sequence[Path] = ()
) -> list[Volume]:
    """Read all volumes of a file: its channels and times, if they are of one shape.

    Parameters and errors are those of `read_volume`.
    """
    path = Path(path)
    try:
        return [read_volume(path, nan=nan, slices=slices)]
    except SeveralVolumes as error:
        if not error.alike:
            raise
        count = len(error.names)
    first = read_volume(path, 1, nan=nan, slices=slices)
    with _unpacked(path, first, count) as plain:  # once, and not for each of them
        numbers = range(2, count + 1)
        others = [read_volume(plain, number, nan=nan, slices=slices) for number in numbers]
    return [first, *(replace(each, path=path, title=first.title) for each in others)]


@contextmanager
def _unpacked(path: Path, first: Volume, count: int) -> Iterator[Path]:
    """Provide a file of `count` volumes like the `first` that is not packed by gzip."""
    if not path.name.lower().endswith(".gz"):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        plain = Path(folder, path.name[: -len(".gz")])
        most = _HEADER_BYTES + count * first.voxels.size * _VOXEL_BYTES
        with gzip.open(path) as packed, plain.open("wb") as unpacked:
            while most > 0 and (part := cast(BinaryIO, packed).read(min(_PART, most))):
                most -= unpacked.write(part)
        yield plain


def _decode(
    path: Path, title: str, volume_number: int | None, nan: float | None, slices: Sequence[Path]
) -> tuple[Volume, str]:
    format = dicom.FORMAT if slices else (found := _recognise(path)).format
    with damage_explained(format.name):
        scan = (
            dicom.decode_series(slices, volume_number, path)
            if slices
            else found.decode(path, volume_number)
        )
    return volume_from(scan, title, path, nan), format.name


def volume_from(scan: RawVolume, title: str, path: Path, nan: float | None) -> Volume:
    distances = spacing_notices(scan.spacing, scan.stated, len(scan.numbers))
    given = vars(scan) | {"notices": tuple(dict.fromkeys([*distances, *scan.notices]))}
    numbers = given.pop("numbers")
    return Volume.from_array(numbers, title, path=path, nan=nan, **given)


def is_volume(path: str | Path) -> bool:
    """Return whether to open a path with `read_volume` rather than `read_image`.

    True for folders, for NIfTI, NumPy and grey DICOM files, and for TIFF and OME-Zarr of several
    grey pictures of one size; False for a path that cannot be read at all.
    """
    path = Path(path)
    try:
        found = _recognise(path)
        with damage_explained(found.format.name):
            return found.holds_volume(path)
    except (Unreadable, ImageReadError):
        return path.name.lower().endswith(nifti.FORMAT.suffixes)


def series_of(path: Path) -> str:
    with named(path.name):
        return dicom.series_of(path) if dicom.is_dicom(path) else ""


def _recognise(path: Path) -> VolumeFormat:
    try:
        if path.is_dir():
            return ZARR if is_zarr(path) else FOLDER
    except (OSError, ValueError):  # `open_file` reports the cause
        pass
    with open_file(path) as handle:
        start = handle.read(nifti.MAX_START)
        if start.startswith(nifti.GZIP_MAGIC):
            handle.seek(0)
            try:
                with gzip.GzipFile(fileobj=handle) as unpacked:
                    start = unpacked.read(nifti.MAX_START)
            except (EOFError, OSError, zlib.error) as error:
                raise Unreadable(
                    f"the compressed data are damaged or cut off ({error}).", AGAIN
                ) from error
    for each in FORMATS:
        if each.fits(start):
            return each
    *names, last = (format.name for format in READABLE_VOLUMES)
    raise unknown(start, "volume", [*names, f"{last} and folders"])
