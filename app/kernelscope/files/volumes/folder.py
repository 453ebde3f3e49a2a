"""Folders: a DICOM series, or pictures of equal size as a stack, which are written as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import ImageWriteError
from kernelscope.files.formats import Unreadable
from kernelscope.files.picture_formats import READABLE, WRITERS, contents_of
from kernelscope.files.reading import read_image
from kernelscope.files.volumes import dicom, tiff_stack
from kernelscope.files.volumes.raw_volume import RawVolume, check_alike, choose
from kernelscope.images.image import NOTHING, Image
from kernelscope.images.levels import RANGE
from kernelscope.images.volume import Volume, check_shape

_SUFFIXES = {suffix for format in READABLE if format != dicom.FORMAT for suffix in format.suffixes}


def decode(path: Path, number: int | None) -> RawVolume:
    files = [file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")]
    files.sort(key=_natural)
    slices = [file for file in files if dicom.is_dicom(file)]
    if slices:
        for file in strangers(slices, set(files) - set(slices)):
            raise dicom.stranger(file)
        scan = dicom.decode_folder(slices, number)
    else:
        slices = [file for file in files if file.suffix.lower() in _SUFFIXES]
        if not slices:
            raise Unreadable(
                "this folder holds neither DICOM files nor pictures.",
                "Open the folder that the files lie in, or a volume file itself.",
            )
        choose(number, ["all pictures"], "volume")
        scan = _stacked(slices)
    if len(slices) < len(files):
        scan.notices.append(f"Other files in the folder are left out: {len(files) - len(slices)}.")
    return scan


def strangers(slices: Iterable[Path], others: Iterable[Path]) -> list[Path]:
    """Return the files that are named like slices, but are none: a damaged one is not skipped."""
    kinds = {kind for file in slices for kind in _kinds(file)}
    return [file for file in sorted(others) if kinds & _kinds(file)]


def _kinds(file: Path) -> set[str]:
    """Return the pattern of a file's name: the name without its numbers, and the suffix."""
    suffix = file.suffix.lower()
    return {re.sub(r"\d+", "#", file.name), *([suffix] if suffix[1:].isalpha() else [])}


def _natural(path: Path) -> tuple[list[str | int], str]:
    """Sort slice10 after slice9; text and numbers alternate, so that they are never compared."""
    parts: list[str | int] = []
    for text, digits in re.findall(r"(\D*)(\d*)", path.name.casefold()):
        parts += [text, int(digits or -1)]
    return parts, path.name


def _stacked(files: Sequence[Path]) -> RawVolume:
    page = _single_page(files[0])
    if page is not None:
        return _stacked_pages(files, page)
    first = read_image(files[0], nan=0.0)
    check_shape((len(files), first.height, first.width), files[0].parent.name)
    voxels = np.empty((len(files), first.height, first.width), first.pixels.dtype)
    missing = np.zeros(voxels.shape, bool)
    notices, others = dict[str, None](), dict[str, None]()
    for plane, holes, file in zip(voxels, missing, files, strict=True):
        image = first if file == files[0] else read_image(file, nan=0.0)
        _check_alike(image.title, image.pixels, first.title, first.pixels)
        plane[...], new = _grey(image)
        if image.missing is not None:  # handled once, for the whole volume
            holes[...] = np.atleast_3d(image.missing)[:, :, 0]
        notices.update(dict.fromkeys(new))
        others.update(dict.fromkeys(contents_of(image.metadata)))
    if voxels.dtype.kind == "f":
        voxels[missing] = np.nan
    marked = missing if voxels.dtype.kind != "f" and missing.any() else None
    nodata = first.metadata.nodata
    return RawVolume(
        voxels, notices=list(notices), others=tuple(others), missing=marked, nodata=nodata
    )


def _single_page(file: Path) -> RawVolume | None:
    """Return a TIFF of a single page of integers that volumes keep and pictures lack."""
    try:
        found = tiff_stack.decode(file, None) if tiff_stack.is_stack(file) else None
    except Unreadable:  # it may be a picture of another format
        return None
    return found if found is not None and found.numbers.shape[0] == 1 else None


def _stacked_pages(files: Sequence[Path], first: RawVolume) -> RawVolume:
    """Read one TIFF per slice, whose integers are kept as they are."""
    _, height, width = first.numbers.shape
    check_shape((len(files), height, width), files[0].parent.name)
    pages = [first, *(tiff_stack.decode(file, None) for file in files[1:])]
    for file, page in zip(files, pages, strict=True):
        _check_alike(file.name, page.numbers[0], files[0].name, first.numbers[0])
    numbers = np.concatenate([page.numbers for page in pages])
    others = tuple(dict.fromkeys(name for page in pages for name in page.others))
    first = replace(first, numbers=numbers, others=others)
    if all(page.missing is None for page in pages):
        return first
    holes = [
        np.zeros(page.numbers.shape, bool) if page.missing is None else page.missing
        for page in pages
    ]
    return replace(first, missing=np.concatenate(holes))


def _check_alike(name: str, plane: NDArray[Any], other: str, first: NDArray[Any]) -> None:
    sizes, types = ("size", _size(plane), _size(first)), ("type", plane.dtype, first.dtype)
    check_alike(name, other, sizes, types)


def _size(plane: NDArray[Any]) -> str:
    return f"{plane.shape[1]}×{plane.shape[0]}"


def _grey(image: Image) -> tuple[NDArray[Any], list[str]]:
    """Return (height, width) values of a picture that is grey in any colour model."""
    planes = image.planes
    notices = [each for each in image.notices if not each.startswith(RANGE)]
    if image.missing is not None:  # those of NaN and of samples without data
        notices = [each for each in notices if ": filtered as 0" not in each]
    if image.has_alpha:
        white = 1 if planes.dtype.kind == "f" else np.iinfo(planes.dtype).max
        if not (planes[:, :, -1] == white).all():
            raise Unreadable(f"{image.title} is transparent.", "Save it without transparency.")
        planes = planes[:, :, :-1]
    if not (planes == planes[:, :, :1]).all():
        raise Unreadable(f"{image.title} is in colour.", "Convert the pictures to grey first.")
    return planes[:, :, 0], notices


@dataclass
class DicomFiles:
    series: dict[dicom.DicomSeries, list[Path]] = field(default_factory=dict)
    """The files of each series in grey."""
    damaged: list[Path] = field(default_factory=list)
    """Those whose series is not known, and files that are named like slices."""
    pictures: list[Path] = field(default_factory=list)  # those in colour
    others: list[Path] = field(default_factory=list)
    """Those without a picture, such as indices and reports."""

    def slices(self, series: dicom.DicomSeries) -> tuple[Path, ...]:
        """Return the files of a series, with all damaged ones: each may be a slice of it."""
        return tuple(sorted([*self.series[series], *self.damaged]))


def dicom_files(files: Sequence[Path]) -> DicomFiles:
    found, known, closed = DicomFiles(), dict[str, dicom.DicomSeries](), list[Path]()
    for file in files:
        try:
            if not dicom.is_dicom(file):
                continue
        except Unreadable:
            closed.append(file)
            continue
        try:
            series = dicom.identify(file)
        except Unreadable:
            found.damaged.append(file)
            continue
        if series is None:
            found.others.append(file)
        elif series.colour:
            found.pictures.append(file)
        else:
            found.series.setdefault(known.setdefault(series.id, series), []).append(file)
    # A file that must not be read may be a slice, or anything.
    found.damaged += (
        closed
        if found.series
        else [file for file in closed if file.suffix.lower() in dicom.FORMAT.suffixes]
    )
    slices = [file for group in found.series.values() for file in group]
    rest = set(files).difference(slices, found.pictures, found.others, found.damaged)
    found.damaged += strangers(slices, rest)
    return found


SLICE_WRITERS = {
    writer.format.suffixes[0]: writer
    for writer in WRITERS
    if writer.format.name in ("PNG", "TIFF", "BMP")
}
"""Writers of slices by the suffix of the pictures. The other formats are not common for slices."""

_NAME = re.compile(rf"slice-\d{{3,}}({'|'.join(map(re.escape, SLICE_WRITERS))})")


def is_slice(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def slice_losses(volume: Volume, suffix: str) -> list[str]:
    """Return the properties of the voxels that pictures of this suffix cannot keep, in words."""
    dtype, kept = volume.unscaled.dtype, SLICE_WRITERS[suffix].dtypes
    if dtype in kept:
        return []
    rounds = dtype.kind == "f" and volume.voxels.dtype not in kept
    return ["fractions" if rounds else f"voxels of type {dtype}"]


def slice_files(volume: Volume, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each slice; the numbers begin with 1.

    Voxels of a type that the pictures do not keep are rounded.
    """
    writer = SLICE_WRITERS[suffix]
    voxels = volume.unscaled
    if voxels.dtype.kind == "f":  # of 64 bits too, which pictures have as 32
        voxels = volume.voxels
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
