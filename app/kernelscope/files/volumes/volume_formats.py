"""The formats of volumes: how each one is recognised, decoded and encoded.

A new format is a module in `kernelscope.files.volumes` and a row of `FORMATS`. Reading, writing,
the dialogs and the help texts follow from that table. Folders are no files, and have a row of
their own, `FOLDER`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.files.formats import FileFormat, Format
from kernelscope.files.pictures import tiff
from kernelscope.files.pictures.dicom import MAGIC
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES
from kernelscope.files.volumes import (
    dicom,
    folder,
    nifti,
    numpy_file,
    tiff_stack,
    zarr_sink,
    zarr_source,
)
from kernelscope.files.volumes.raw_volume import RawVolume
from kernelscope.images.volume import Volume


@dataclass(frozen=True)
class VolumeWriter:
    format: Format  # its suffixes are those to write
    encode: Callable[[Sequence[Volume]], bytes] | None = None
    """Maps volumes of one shape to the bytes of a file; None for folders."""
    store: Callable[[Path, Sequence[Volume]], None] | None = None
    """Writes them to a folder, if it is none of pictures."""
    several: bool = False  # whether a file holds more than one volume
    spacing: bool = True  # whether the distance of voxels is kept
    place: bool = False  # whether orientation and position are kept
    channel: bool = False  # whether name and colour of a channel are kept
    marks: bool = False  # whether a number for unknown voxels is kept, as GDAL has it
    keeps_interval: Callable[[Sequence[Volume]], bool] = lambda volumes: False
    """Returns whether the time step of volumes in one file is kept."""
    facts: bool = False  # whether OME's properties of a channel are kept
    dtypes: Callable[[Volume], np.dtype[Any]] = lambda volume: volume.unscaled.dtype
    """Returns the type in which a volume is stored."""
    slices: str = ""  # the suffix of the pictures of a folder; empty for files

    def losses(self, volume: Volume) -> list[str]:
        losses = folder.slice_losses(volume, self.slices) if self.slices else []
        if volume.stated and not self.spacing:
            losses.append("the distance of voxels")
        if volume.affine is not None and not self.place:
            losses += ["orientation", "position"]
        return losses


@dataclass(frozen=True)
class VolumeFormat(FileFormat):
    decode: Callable[[Path, int | None], RawVolume]
    """Reads a file; the second argument is the number of a volume in it, from 1, or None."""
    writers: tuple[VolumeWriter, ...] = ()  # several where each suffix has an encoding of its own
    holds_volume: Callable[[Path], bool] = lambda path: True
    """Returns whether a file is opened as a volume rather than as a picture."""


_OME = Format("OME-TIFF", OME_SUFFIXES)
_STACK = Format("TIFF stack", (".tif", ".tiff"))
_ARRAY = Format("NumPy array", (".npy",))

FORMATS = (
    # First, because a DICOM file may begin with the signature of any other format.
    VolumeFormat(dicom.FORMAT, MAGIC, dicom.decode, holds_volume=dicom.holds_slices),
    VolumeFormat(
        nifti.FORMAT,
        nifti.MAGIC,
        nifti.decode,
        tuple(
            VolumeWriter(
                Format(name, (suffix,)),
                encode,
                several=True,
                place=True,
                keeps_interval=nifti.keeps_interval,
            )
            for name, suffix, encode in (
                ("NIfTI, compressed", ".nii.gz", nifti.encode_compressed),
                ("NIfTI", ".nii", nifti.encode),
            )
        ),
    ),
    VolumeFormat(
        _STACK,
        tiff.MAGIC,
        tiff_stack.decode,
        # OME-TIFF first, because its names end like those of the other as well.
        tuple(
            VolumeWriter(
                kind,
                encode,
                several=True,
                channel=True,
                marks=True,
                keeps_interval=lambda volumes: True,
                facts=kind is _OME,
                dtypes=tiff_stack.stored_in if kind is _OME else VolumeWriter.dtypes,
            )
            for kind, encode in (
                (_OME, tiff_stack.encode_ome),
                (_STACK, tiff_stack.encode),
            )
        ),
        tiff_stack.is_stack,
    ),
    VolumeFormat(
        _ARRAY,
        numpy_file.MAGIC,
        numpy_file.decode,
        (VolumeWriter(_ARRAY, numpy_file.encode, spacing=False),),
    ),
)
"""All formats of files, in the order in which signatures are tried and names are listed."""

FOLDER = VolumeFormat(
    Format("folder", ()),
    rb"(?!)",  # it is none of a file
    folder.decode,
    tuple(
        VolumeWriter(
            Format(f"Folder of {suffix[1:].upper()} pictures", (f"{suffix}s",)),
            spacing=False,
            marks="nodata" in writer.beside,
            slices=suffix,
        )
        for suffix, writer in folder.SLICE_WRITERS.items()
    ),
)
"""A DICOM series, or pictures of equal size; written as a picture for each slice."""

ZARR = VolumeFormat(
    Format("OME-Zarr", (".zarr",)),
    rb"(?!)",
    zarr_source.decode,
    (
        VolumeWriter(
            Format("OME-Zarr", (".ome.zarr", ".zarr")),
            store=zarr_sink.write,
            several=True,
            channel=True,
            keeps_interval=zarr_sink.has_times,
            dtypes=zarr_sink.stored_in,
        ),
    ),
    holds_volume=zarr_source.holds_volume,
)
"""A picture or volumes in chunks; pictures are written in blocks only."""

READABLE_VOLUMES = tuple(each.format for each in FORMATS)
"""The formats that `read_volume` opens; it also opens folders."""

WRITERS = tuple(writer for each in (*FORMATS, ZARR, FOLDER) for writer in each.writers)
"""The writers of all formats; the first one is the proposal of the dialogs."""

WRITABLE_VOLUMES = tuple(writer.format for writer in WRITERS)
"""The formats that `write_volume` writes."""

SEVERAL_VOLUMES = tuple(writer.format for writer in WRITERS if writer.several)
"""The formats that `write_volumes` writes."""
