"""DICOM series: the slices of a folder, put in order by where they lie in the patient."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.volume import check_shape, narrowed
from app.files.formats import Unreadable, damage_explained
from app.files.volumes.scan import UNKNOWN_SPACING, Scan, choose, spacing_of

_EVEN = 0.02
"""By how much gaps between slices may differ from their median, relative to it."""

_PLUGINS = "pip install pylibjpeg pylibjpeg-libjpeg pylibjpeg-openjpeg"


@dataclass(frozen=True)
class _Slice:
    path: Path
    header: Any

    @property
    def corner(self) -> NDArray[np.float64]:
        """Where its first pixel lies, in millimetres to the left, posterior and superior."""
        return np.array(self.header.ImagePositionPatient, np.float64)

    @property
    def directions(self) -> NDArray[np.float64]:
        """Directions of rising x, rising y, and of the normal; shape (3, 3)."""
        x, y = np.array(self.header.ImageOrientationPatient, np.float64).reshape(2, 3)
        return np.stack([x, y, np.cross(x, y)])

    @property
    def place(self) -> float:
        """Where it lies along its normal, in millimetres."""
        return float(self.directions[2] @ self.corner)

    @property
    def scaling(self) -> tuple[float, float]:
        slope = getattr(self.header, "RescaleSlope", 1.0)
        intercept = getattr(self.header, "RescaleIntercept", 0.0)
        return float(slope), float(intercept)


def matches(start: bytes) -> bool:
    """Whether a file that starts like this is DICOM."""
    return start[128:132] == b"DICM"


def decode(path: Path, number: int | None) -> Scan:
    """Read the series that a file belongs to, from its folder."""
    if not _slices([path]):
        raise Unreadable("the file holds no picture.")
    uid = _read(path).SeriesInstanceUID
    files = [file for file in sorted(path.parent.iterdir()) if is_dicom(file)]
    choose(number, ["the series of this file"], "series")
    scan = _assembled([part for part in _slices(files) if part.header.SeriesInstanceUID == uid])
    scan.notices.insert(0, "Read with all slices of its series in the folder.")
    return scan


def decode_folder(files: Sequence[Path], number: int | None) -> Scan:
    """Read one series of several DICOM files."""
    series: dict[str, list[_Slice]] = {}
    for part in _slices(files):
        series.setdefault(str(part.header.SeriesInstanceUID), []).append(part)
    if not series:
        raise Unreadable("its DICOM files hold no pictures.")
    found = sorted(series.values(), key=lambda parts: _series_key(parts[0].header))
    names = [_series_name(parts) for parts in found]
    chosen = choose(number, names, "series")
    scan = _assembled(found[chosen])
    if len(found) > 1:
        scan.notices.insert(0, f"Series {chosen + 1} of {len(found)}: {names[chosen]}.")
    return scan


def is_dicom(path: Path) -> bool:
    """Whether a path is a DICOM file, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as handle:
        return matches(handle.read(132))


def _read(path: Path, *, pixels: bool = False) -> Any:
    """Read a file; without `pixels` it is only known whether there are any."""
    import pydicom

    # A filter and not catch_warnings, which would undo what other threads do meanwhile.
    warnings.filterwarnings("ignore", module=r"pydicom\.")
    with damage_explained(f"DICOM file {path.name}'s"):
        return pydicom.dcmread(path, defer_size=None if pixels else 1024)


def _slices(files: Sequence[Path]) -> list[_Slice]:
    """Read the headers; reports, indices and other files without a picture are left out."""
    slices = [_Slice(path, _read(path)) for path in files]
    return [part for part in slices if _is_picture(part)]


def _is_picture(part: _Slice) -> bool:
    """Whether a file is a slice; one that should be and is not must not just be missing."""
    header = part.header
    if all(keyword in header for keyword in ("Rows", "SeriesInstanceUID", "PixelData")):
        return True
    kind = header.file_meta.get("MediaStorageSOPClassUID")
    unknown = not kind or (kind.name == kind and not kind.is_private)
    if unknown or not len(header) or re.search("(?<!Non-)Image Storage", kind.name):
        raise Unreadable(
            f"{part.path.name} is cut off or damaged.",
            "Get the file again from where it came from.",
        )
    return False


def _series_key(header: Any) -> tuple[int, str]:
    return int(getattr(header, "SeriesNumber", None) or 0), str(header.SeriesInstanceUID)


def _series_name(parts: Sequence[_Slice]) -> str:
    header = parts[0].header
    text = str(getattr(header, "SeriesDescription", "")).strip() or "without a name"
    count = f"{len(parts)} slices" if len(parts) > 1 else "1 slice"
    return f"{text} ({count}, {header.Columns}×{header.Rows})"


def _assembled(parts: list[_Slice]) -> Scan:
    """Check, sort and read the slices of one series."""
    for part in parts:
        _check(part, parts[0])
    notices: list[str] = []
    if len(parts) > 1 or "ImagePositionPatient" in parts[0].header:
        parts = sorted(parts, key=lambda part: part.place)
        affine = _affine(parts)
        spacing = spacing_of(affine)
    else:
        affine, spacing = None, (1.0, 1.0, 1.0)
        notices.append(UNKNOWN_SPACING)
    header = parts[0].header
    check_shape((len(parts), header.Rows, header.Columns), parts[0].path.parent.name)
    if header.PhotometricInterpretation == "MONOCHROME1":
        notices.append("White is low in the files (MONOCHROME1): inverted.")
    return Scan(_voxels(parts), spacing, affine, notices)


def _check(part: _Slice, first: _Slice) -> None:
    """Refuse a slice that is no plain grey picture, or none of the same kind as the first."""
    header, name = part.header, part.path.name
    if int(getattr(header, "NumberOfFrames", None) or 1) > 1:
        raise Unreadable(
            f"{name} holds several frames in one file.",
            "Convert it to NIfTI, with dcm2niix for instance.",
        )
    if header.get("PhotometricInterpretation") not in ("MONOCHROME1", "MONOCHROME2"):
        raise Unreadable(f"{name} is in colour.", "Choose a series in grey.")
    if "ModalityLUTSequence" in header:
        raise Unreadable(f"{name} has a table of values (Modality LUT), which is not supported.")
    if part is first:
        return
    for keyword, what in (
        ("Rows", "height"),
        ("Columns", "width"),
        ("PhotometricInterpretation", "kind of grey"),
    ):
        values = header.get(keyword), first.header.get(keyword)
        if values[0] != values[1]:
            raise Unreadable(
                f"{name} and {first.path.name} differ in {what}: {values[0]} and {values[1]}.",
                "Leave only the slices of one scan in the folder.",
            )
    for keyword in ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing"):
        if keyword not in header or keyword not in first.header:
            lacking = first if keyword not in first.header else part
            raise Unreadable(
                f"{lacking.path.name} does not tell where it lies ({keyword} is missing).",
                "Without it the slices cannot be put in order.",
            )
    for keyword, what in (("ImageOrientationPatient", "orientation"), ("PixelSpacing", "spacing")):
        if not np.allclose(header[keyword].value, first.header[keyword].value, atol=1e-3):
            raise Unreadable(
                f"{name} and {first.path.name} differ in {what}.",
                "Leave only the slices of one scan in the folder.",
            )


def _affine(parts: Sequence[_Slice]) -> NDArray[np.float64]:
    """Return voxels to millimetres as NIfTI has it, of slices in order.

    Slices of a tilted gantry do not lie straight above each other: the matrix tells so.
    """
    first, last = parts[0], parts[-1]
    x, y, normal = first.directions
    step = _step(parts) if len(parts) > 1 else normal * _thickness(first.header)
    down, right = (float(value) for value in first.header.PixelSpacing)
    affine = np.eye(4)
    affine[:3] = np.stack([x * right, y * down, step, first.corner], axis=1)
    affine[:2] *= -1  # DICOM counts to the left and posterior, NIfTI to the right and anterior.
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine)) < 1e-12:
        raise Unreadable(f"the position of {first.path.name} and {last.path.name} makes no sense.")
    return affine


def _step(parts: Sequence[_Slice]) -> NDArray[np.float64]:
    """Return the way from one slice to the next, the same for all."""
    gaps = np.diff([part.place for part in parts])
    usual = float(np.median(gaps))
    for gap, (before, after) in zip(gaps, pairwise(parts), strict=True):
        names = f"{before.path.name} and {after.path.name}"
        if gap <= max(_EVEN * usual, 1e-3):
            raise Unreadable(
                f"{names} lie at the same place.",
                "Leave only one echo, time or copy of each slice in the folder.",
            )
        if abs(gap - usual) > _EVEN * usual:
            missing = round(gap / usual) - 1
            raise Unreadable(
                f"slices are missing between {names}: {missing}."
                if missing > 0
                else f"{names} lie {gap:.4g} mm apart, and most others {usual:.4g} mm.",
                "Get the whole series again from where it came from.",
            )
    corners = np.array([part.corner for part in parts])
    step = (corners[-1] - corners[0]) / (len(parts) - 1)
    beside = np.linalg.norm(corners - corners[0] - np.outer(range(len(parts)), step), axis=1)
    worst = int(beside.argmax())
    if beside[worst] > 0.1 * usual:
        raise Unreadable(f"{parts[worst].path.name} lies {beside[worst]:.3g} mm beside the others.")
    return np.asarray(step)


def _thickness(header: Any) -> float:
    """Return the distance that a single slice would have to the next."""
    for keyword in ("SpacingBetweenSlices", "SliceThickness"):
        if header.get(keyword):
            return float(abs(header[keyword].value))
    return 1.0


def _voxels(parts: Sequence[_Slice]) -> NDArray[Any]:
    """Return rescaled values; whole ones in the smallest type that holds them."""
    header = parts[0].header
    voxels = np.empty((len(parts), header.Rows, header.Columns), np.float32)
    for plane, part in zip(voxels, parts, strict=True):
        slope, intercept = part.scaling
        plane[...] = _pixels(part.path) * slope + intercept
    whole = all(value.is_integer() for part in parts for value in part.scaling)
    small = np.abs(voxels).max() <= 2**24
    return narrowed(voxels) if whole and small else voxels


def _pixels(path: Path) -> NDArray[np.float64]:
    """Return the stored values of one slice, with bright ones high."""
    from pydicom.pixels import get_decoder

    dataset = _read(path, pixels=True)
    syntax = dataset.file_meta.TransferSyntaxUID
    if syntax.is_compressed and syntax.is_encapsulated:
        try:
            available = get_decoder(syntax).is_available
        except NotImplementedError:
            available = False
        if not available:
            raise Unreadable(
                f"{path.name} is compressed as {syntax.name}, which needs more libraries.",
                f"Install them: {_PLUGINS}",
            )
    with damage_explained(f"DICOM file {path.name}'s"):
        stored = dataset.pixel_array.astype(np.float64)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        # The values of the darkest and the brightest pixel that could be stored.
        ends = -1 if dataset.PixelRepresentation else 2 ** int(dataset.BitsStored) - 1
        stored = ends - stored
    return np.asarray(stored)
