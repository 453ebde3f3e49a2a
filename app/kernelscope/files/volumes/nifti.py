"""NIfTI-1 and NIfTI-2 (.nii, .nii.gz); nibabel reads the header, this module the voxels.

The header is kept byte by byte, extensions included, and is written back with only the size, the
type and the scaling changed, and these only if necessary: reading and saving gives the same file.
"""

from __future__ import annotations

import gzip
import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from kernelscope.files.formats import Format, Unreadable
from kernelscope.files.pictures.tiff_description import window_of
from kernelscope.files.reading import open_file
from kernelscope.files.volumes.raw_volume import RawVolume, choose, fill, spacing_of
from kernelscope.files.watched import WatchedFile
from kernelscope.images.lengths import is_length
from kernelscope.images.source import Channel
from kernelscope.images.volume import Among, Spacing, Volume, check_shape

FORMAT = Format("NIfTI", (".nii.gz", ".nii"))

MAGIC = rb".{344}n[+i]1|.{4}n[+i]2"
GZIP_MAGIC = b"\x1f\x8b"
MAX_START = 540  # length of the longest header

_LENGTHS = {b"n+1": 348, b"n+2": 540}
_MAX_EXTENSIONS = 2**28
_MAX_VOLUMES = 2**16
_MAX_REST = 2**26  # bytes behind the last volume
_GZIP_MAX_RATIO = 1032  # largest compression ratio of deflate

_MILLIMETRES = {1: 1000.0, 3: 0.001}
"""Millimetres by the code of the unit; unknown units are taken for millimetres."""
_SECONDS = {8: 1.0, 16: 1e-3, 24: 1e-6}
"""Seconds by the code of the unit; without one the fourth axis is not known to be the time."""


@dataclass(frozen=True)
class NiftiHeader:
    """Data before the voxels in a file."""

    block: bytes  # the header itself, 348 or 540 bytes
    extensions: bytes  # everything between the header and the voxels
    endianness: Literal["<", ">"]

    def parsed(self, *, check: bool) -> Any:
        """Return a new nibabel header; `check` repairs small faults and refuses large ones."""
        return _classes()[len(self.block)](self.block, self.endianness, check=check)


def decode(path: Path, number: int | None) -> RawVolume:
    with open_file(path) as file:
        compressed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        size = os.fstat(file.fileno()).st_size
        if not compressed:
            return _decode(file, file, path.name, number, size)[0]
        with gzip.GzipFile(fileobj=file) as handle:
            unpacked = size * _GZIP_MAX_RATIO
            scan, rest = _decode(handle, file, path.name, number, unpacked)  # type: ignore[arg-type]
            rest += _MAX_REST
            while part := handle.read(2**22):  # the checksum is at the end
                rest -= len(part)
                if rest < 0:
                    raise Unreadable("it is damaged: far more data follow than its header states.")
            return scan


def encode(volumes: Sequence[Volume]) -> bytes:
    """Return a file of volumes of one shape and type, such as those of one file were."""
    volume = volumes[0]
    interval = volume.interval if keeps_interval(volumes) else None
    kept = (
        volume.header if isinstance(volume.header, NiftiHeader) else _new_header(volume, interval)
    )
    header = kept.parsed(check=False)
    shape = volume.voxels.shape[::-1]
    if _dimensions(header) != (*shape, len(volumes)):
        header.set_data_shape(shape if len(volumes) == 1 else (*shape, len(volumes)))
    stored = None if volume.is_boolean else volume.stored
    dtype = (stored.dtype if stored else volume.voxels.dtype).newbyteorder(kept.endianness)
    if header.get_data_dtype() != dtype:
        header.set_data_dtype(dtype)
    scaling = (stored.slope, stored.intercept) if stored else (1.0, 0.0)
    if _scaling(header) != scaling:
        header.set_slope_inter(*scaling)
    voxels = []
    for each in volumes:
        numbers = stored.numbers(each.voxels) if stored else each.voxels
        voxels.append(np.ascontiguousarray(each.restored(numbers), dtype).view(np.uint8).data)
    return b"".join([header.binaryblock, kept.extensions, *voxels])


def keeps_interval(volumes: Sequence[Volume]) -> bool:
    """Return whether the fourth axis is the time: volumes do not differ in another way."""
    first, *others = (each.among for each in volumes)
    return all(
        a == b or a.letter == "T" for each in others for a, b in zip(first, each, strict=False)
    )


def encode_compressed(volumes: Sequence[Volume]) -> bytes:
    import imagecodecs

    return bytes(imagecodecs.gzip_encode(encode(volumes), level=1))


def _classes() -> dict[int, Any]:
    import nibabel.imageglobals

    # nibabel writes its repairs to stderr; they belong into the log.
    nibabel.imageglobals.logger.handlers[:] = [logging.NullHandler()]
    return {348: nibabel.Nifti1Header, 540: nibabel.Nifti2Header}


def _decode(
    handle: BinaryIO, file: WatchedFile, title: str, number: int | None, size: int
) -> tuple[RawVolume, int]:
    """Read one volume of a file that holds at most `size` bytes when uncompressed.

    Also returns the number of bytes of the volumes after it.
    """
    kept = _read_header(handle)
    header = kept.parsed(check=True)
    dtype = header.get_data_dtype()
    _check_type(dtype)
    dimensions = _dimensions(header)
    shape, count = dimensions[2::-1], dimensions[3]
    check_shape(shape, title)
    if not 1 <= count <= _MAX_VOLUMES:
        raise Unreadable(f"it holds {count} volumes.")
    volume = math.prod(shape) * dtype.itemsize
    if len(kept.block) + len(kept.extensions) + count * volume > size:
        raise Unreadable("the file is cut off: it is too short for the voxels of its header.")
    index = choose(number, [f"volume {i + 1}" for i in range(count)], "volume", alike=True)
    notices = [f"Volume {index + 1} of {count}."] if count > 1 else []
    file.allow(count * volume)
    handle.seek(index * volume, os.SEEK_CUR)
    numbers = np.empty(shape, dtype)
    fill(handle, numbers)
    affine = _affine(header, notices)
    spacing = _spacing(header) if affine is None else spacing_of(affine)
    slope, intercept = _scaling(header)
    interval = _interval(header) if count == header["dim"][4] > 1 else None
    among = (Among("T" if interval else "V", index, count),) if count > 1 else ()
    channel = Channel(window=window_of(float(header["cal_min"]), float(header["cal_max"])))
    scan = RawVolume(
        *(numbers, spacing, affine, notices, kept, slope, intercept),
        channel=channel,
        among=among,
        interval=interval,
    )
    return scan, (count - index - 1) * volume


def _read_header(handle: BinaryIO) -> NiftiHeader:
    start = handle.read(348)
    magic = start[4:7] if start[4:7] in (b"n+2", b"ni2") else start[344:347]
    if magic not in _LENGTHS:
        raise Unreadable(
            "it is half of a pair of files (.hdr and .img).",
            "Convert the pair to one .nii file, with nibabel or FSL for instance.",
        )
    length = _LENGTHS[magic]
    block = start + handle.read(length - len(start))
    header = _classes()[length](block, check=False)
    offset = float(header["vox_offset"])
    if not length <= offset <= length + _MAX_EXTENSIONS:
        raise Unreadable(f"its header is damaged: the voxels start at byte {offset:g}.")
    extensions = handle.read(int(offset) - length)
    return NiftiHeader(block, extensions, header.endianness)


def _dimensions(header: Any) -> tuple[int, int, int, int]:
    x, y, z, *more = (*header.get_data_shape(), 1, 1, 1)[: max(3, len(header.get_data_shape()))]
    return int(x), int(y), int(z), math.prod(int(side) for side in more)


def _check_type(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise Unreadable(
            "its voxels are complex numbers.", "Save their magnitude as a separate volume."
        )
    if dtype.kind not in "iuf":
        raise Unreadable("its voxels are colours.", "Save one component as a separate volume.")


def _scaling(header: Any) -> tuple[float, float]:
    slope, intercept = header.get_slope_inter()
    return (1.0, 0.0) if slope is None else (slope, intercept)


def _affine(header: Any, notices: list[str]) -> NDArray[np.float64] | None:
    """Return voxels to millimetres, if the header places them."""
    if header["sform_code"] > 0:
        affine = header.get_sform()
    elif header["qform_code"] > 0:
        try:
            affine = header.get_qform()
        except ValueError:  # its quaternion is longer than 1
            affine = np.zeros((4, 4))
    else:
        return None
    affine = np.asarray(affine, np.float64)
    with np.errstate(all="ignore"):  # a damaged header holds any numbers.
        affine[:3] *= _unit(header)
        size = abs(np.linalg.det(affine))
        steps = spacing_of(affine)
    if not (np.isfinite(affine).all() and 1e-12 <= size < math.inf and max(steps) < math.inf):
        notices.append("The orientation in its header makes no sense and is left aside.")
        return None
    return affine


def _spacing(header: Any) -> Spacing | None:
    """Return the spacing, if it makes sense; one without a unit is 1 where nobody set it."""
    x, y, z = (float(step) * _unit(header) for step in header["pixdim"][1:4])
    known = int(header["xyzt_units"]) & 7 or (x, y, z) != (1.0, 1.0, 1.0)
    return (z, y, x) if known and all(map(is_length, (x, y, z))) else None


def _interval(header: Any) -> float | None:
    """Return the seconds from one volume to the next, if the header states them."""
    # The header has 32 bits: the shortest decimal of theirs is what was written.
    interval = float(str(header["pixdim"][4])) * _SECONDS.get(int(header["xyzt_units"]) & 56, 0)
    return interval if 0 < interval < math.inf else None


def _unit(header: Any) -> float:
    return _MILLIMETRES.get(int(header["xyzt_units"]) & 7, 1.0)


def _new_header(volume: Volume, interval: float | None) -> NiftiHeader:
    length = 348 if max(volume.voxels.shape) < 2**15 else 540
    header = _classes()[length]()
    header.set_data_shape(volume.voxels.shape[::-1])
    header.set_zooms(volume.spacing[::-1])
    header.set_xyzt_units("mm" if volume.stated else "unknown", "sec" if interval else None)
    header["pixdim"][4] = interval or header["pixdim"][4]
    if volume.affine is not None:
        header.set_sform(volume.affine, code="scanner")
        header.set_qform(volume.affine, code="scanner")
        if not np.allclose(header.get_qform(), volume.affine, atol=1e-3):
            header.set_qform(None, code="unknown")  # a quaternion cannot describe shears
    header["vox_offset"] = length + 4
    header["magic"] = header.single_magic
    return NiftiHeader(header.binaryblock, bytes(4), header.endianness)
