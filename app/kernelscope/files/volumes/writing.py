"""Saves volumes in the format of the suffix; loses data only if explicitly allowed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernelscope.base.errors import ImageWriteError, LossyFormat
from kernelscope.base.text import enumerated
from kernelscope.files.formats import writer_for
from kernelscope.files.pictures.tiff_description import TIME_STEP
from kernelscope.files.volumes import nifti, tiff_stack, zarr_sink
from kernelscope.files.volumes.folder import SLICE_WRITERS, is_slice, slice_files
from kernelscope.files.volumes.volume_formats import WRITERS, VolumeWriter
from kernelscope.files.write_errors import (
    check_folder,
    check_target,
    replace_file,
    replace_folder,
    saving,
)
from kernelscope.files.writing import record_of_image
from kernelscope.images.image import Image, can_hold
from kernelscope.images.record import Record, joined
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import DTYPES, Volume

_logger = logging.getLogger(__name__)


def write_volume(volume: Volume, path: str | Path, *, lossy: bool = False) -> Path:
    """Write a volume in the format that the suffix names.

    The file at `path` is replaced in one step when everything is written, or stays as it was.
    Voxels are written in the type of the file that they came from. NIfTI also gets that file's
    scaling and, if it was NIfTI too, its whole header. Other formats have no scaling: scaled values
    are written as 32-bit floats. The suffixes ``.pngs``, ``.tifs`` and ``.bmps`` name folders with
    a picture for each slice.

    - `lossy`: allow losing properties that the format cannot keep: spacing, orientation and
      position; in pictures also fractions, which are rounded.

    Returns where it was written to.

    Raises `LossyFormat` if the format cannot keep the spacing or the orientation, and `lossy` is
    False; `ImageWriteError` if the suffix names no format, or the place cannot be written to;
    `OutOfMemory` if there is not enough memory to encode the volume.
    """
    path = Path(path)
    start = time.perf_counter()
    check_write_volume(volume, path, lossy=lossy)
    writer = _writer(path)
    _write((volume,), path, writer)
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Saved %s as %s: %.1f ms", volume.describe(), path, elapsed)
    losses = writer.losses(volume)
    if losses:
        _logger.info("%s: saved without %s", path.name, enumerated(losses))
    return path


def write_volumes(volumes: Sequence[Volume], path: str | Path) -> Path:
    """Write several volumes of one shape, such as those of one file, to a file.

    Raises `ImageWriteError` if the format holds one volume only, or the place cannot be written to;
    `OutOfMemory` if there is not enough memory to encode them.
    """
    path = Path(path)
    check_write_volumes(volumes, path)
    _write(volumes, path, _writer(path))
    _logger.info("Saved %d volumes as %s", len(volumes), path)
    return path


def _write(volumes: Sequence[Volume], path: Path, writer: VolumeWriter) -> None:
    with saving(path):
        if writer.store is not None:
            writer.store(path, volumes)
        elif writer.encode is not None:
            replace_file(path, writer.encode(volumes))
        else:
            replace_folder(path, slice_files(volumes[0], writer.slices), is_slice)


def _check_place(path: Path, writer: VolumeWriter) -> None:
    if writer.store is not None:
        zarr_sink.check_place(path)
    elif writer.slices:
        check_folder(path, is_slice)
    else:
        check_target(path)


def check_write_volumes(volumes: Sequence[Volume], path: str | Path) -> None:
    """Refuse, before a long run, volumes that `write_volumes` would refuse after it."""
    path = Path(path)
    writer = _writer(path)
    if not writer.several:
        raise ImageWriteError(
            f"{path.name}: several volumes are written to NIfTI, TIFF and OME-Zarr only.",
            "Save it as NIfTI.",
        )
    if writer.channel:
        try:
            tiff_stack.axes_of(volumes)
        except ImageWriteError as error:
            raise error.prefixed(f"{path.name}: ") from None
    _check_place(path, writer)


def check_write_volume(volume: Volume, path: str | Path, *, lossy: bool = False) -> None:
    """Refuse, before a long run, a volume that `write_volume` would refuse after it.

    `volume`: the volume to filter: its result has the same header.
    """
    path = Path(path)
    losses = _writer(path).losses(volume)
    if losses and not lossy:
        raise LossyFormat(
            f"{path.name}: {_writer(path).format.name} cannot keep {enumerated(losses)}.",
            "Save it as NIfTI to keep everything.",
        )
    _check_place(path, _writer(path))


def _record_of_volume(volume: Volume, path: Path, beside: Sequence[Volume] = ()) -> Record:
    """Return the properties of a volume and its metadata that are kept and lost.

    `beside`: all volumes of the file, if there are several.
    """
    writer = _writer(path)
    together = beside or [volume]
    first = together[0]  # a file has one description of all its volumes
    named = writer.channel and volume.channel in tiff_stack.channels_of(together)
    timed = first.interval == volume.interval and writer.keeps_interval(together)
    dtype = volume.unscaled.dtype
    kinds = SLICE_WRITERS[writer.slices].dtypes if writer.slices else DTYPES
    same = dtype == writer.dtypes(volume)
    floats = dtype.kind == "f" and np.dtype(np.float32) in kinds
    held = volume.missing is None or (volume.nodata is not None and can_hold(dtype, volume.nodata))
    fits = not writer.slices or dtype in kinds
    marks = floats or (writer.marks and held and fits and first.nodata == volume.nodata)
    facts = (
        *((loss, True, False) for loss in writer.losses(volume)),
        (f"voxels of type {dtype}", dtype.itemsize == 8 or not same, same),
        ("the distance of voxels", volume.stated, writer.spacing and first.steps == volume.steps),
        ("channel name", volume.channel.name, named),
        ("channel colour", volume.channel.colour, named),
        ("further OME metadata", volume.channel.facts, named and writer.facts),
        (TIME_STEP, volume.interval, timed),
        ("orientation", volume.affine is not None, writer.place),
        ("position", volume.affine is not None, writer.place),
        ("the NIfTI header", isinstance(volume.header, nifti.NiftiHeader), writer.place),
        (
            "NaN" if volume.nodata is None else "marks of voxels without data",
            volume.missing is not None or volume.nodata is not None,
            marks,
        ),
        *((other, True, False) for other in volume.others),
    )
    return Record.of(path.name, facts, volume.notices)


def beside(output: Path, title: str) -> Path:
    """Return where to write a volume of this title, filtered together with another one.

    ``OUT-T2.nii.gz`` for ``OUT.nii.gz`` and ``T2.nii.gz``: one file each, since each has its own
    header.
    """
    suffix = _suffix(output)
    stem = title.removesuffix(_suffix(Path(title)))
    return output.with_name(f"{output.name.removesuffix(suffix)}-{stem}{suffix}")


def _suffix(path: Path) -> str:
    """Return the suffix of a volume file, as it is written: ``.nii.gz``; empty for any other."""
    lower = path.name.lower()
    suffixes = (suffix for writer in WRITERS for suffix in writer.format.suffixes)
    found = next((suffix for suffix in suffixes if lower.endswith(suffix)), "")
    return path.name[len(path.name) - len(found) :]


def check_volume_suffix(path: Path) -> None:
    """Refuse a suffix of which no volume is written."""
    _writer(path)


def _writer(path: Path) -> VolumeWriter:
    return writer_for(path, WRITERS, f"volumes are not written as {path.suffix} files.")


def record_of(path: str | Path, *results: Source | Volume) -> Record:
    """Return which properties of inputs are kept, changed and lost when results are saved there.

    A result has the properties of its source, and the notices of reading it.
    """
    path, volumes = Path(path), [volume for each in results for volume in _volumes(each)]
    # Components of one scan are written to a file each.
    beside = volumes if len(results) > 1 else []
    pictures = [each for each in results if isinstance(each, Image)]
    return joined(
        [
            *(record_of_image(each, path) for each in pictures),
            *(_record_of_volume(each, path, beside) for each in volumes),
        ]
    )


def _volumes(result: Source | Volume) -> tuple[Volume, ...]:
    if isinstance(result, Volume):
        return (result,)
    return result.volumes if isinstance(result, Scan) else ()
