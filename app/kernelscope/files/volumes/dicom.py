"""DICOM series: the slices of a folder, sorted by their position in the patient.

A slice is a file, or a frame of an Enhanced MR, CT or PET file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files.formats import AGAIN, ONLY_FIRST, Unreadable, damage_explained
from kernelscope.files.pictures.dicom import (
    FORMAT,
    SAMPLES,
    START,
    TAGS,
    frame_count,
    has_colours,
    is_colour,
    keep_first,
    matches,
    read_header,
    read_whole,
    stored_pixels,
)
from kernelscope.files.pictures.tiff_description import window_of
from kernelscope.files.volumes.raw_volume import (
    ONE_SCAN,
    RawVolume,
    check_alike,
    choose,
    spacing_from,
    spacing_of,
)
from kernelscope.images.lengths import is_length
from kernelscope.images.source import Channel
from kernelscope.images.volume import Spacing, check_shape, narrowed

__all__ = ["FORMAT", "decode", "decode_folder", "holds_slices", "is_dicom", "matches", "series_of"]

_EVEN = 0.02  # largest difference of gaps between slices from their median, relative to it
_MOST_NAMED = 3  # files that a notice names; the others are counted

_WITH_ALL = "Read with all slices of its series in the folder."

_WHERE = ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing")

_VOLUME_KEYS = (
    ("FrameContentSequence", "StackID", "stack {}"),
    ("FrameContentSequence", "TemporalPositionIndex", "time {}"),
    ("MREchoSequence", "EffectiveEchoTime", "echo time {} ms"),
    ("MRDiffusionSequence", "DiffusionBValue", "b = {} s/mm²"),
    ("MRImageFrameTypeSequence", "ComplexImageComponent", "{}"),
    ("CardiacSynchronizationSequence", "NominalCardiacTriggerDelayTime", "trigger {} ms"),
)
"""Attributes that distinguish the volumes of an Enhanced file: group, element, and label."""


@dataclass(frozen=True)
class DicomSeries:
    """The series of a DICOM file: its identifier, its number and name, whether it is in colour."""

    id: str
    number: int
    description: str
    colour: bool


@dataclass(frozen=True)
class _Slice:
    """A slice, with the values of its header in their proper types."""

    path: Path
    frame: int | None  # index of the frame in its file, from 0; None if the file is a single slice
    series: str
    number: int
    description: str
    volume: tuple[str, ...]
    """Values that distinguish it from slices of other volumes in the same file."""
    rows: int
    columns: int
    model: str
    corner: NDArray[np.float64] | None
    """Of its first pixel: millimetres to the left, posterior, superior."""
    directions: NDArray[np.float64] | None  # of rising x, rising y and the normal: shape (3, 3)
    spacing: tuple[float, float] | None  # distance of rows and of columns
    thickness: float | None
    slope: float
    intercept: float
    window: tuple[float, float] | None  # rescaled values that are drawn black and white
    padding: tuple[int, int] | None
    """The least and the largest stored value that stand for cells outside of the picture."""
    unstated: list[int] = field(default_factory=list)
    """Gets the number of frames in a file that states none, of which the first is read."""

    @property
    def name(self) -> str:
        return self.path.name if self.frame is None else f"{self.path.name}, frame {self.frame + 1}"

    @property
    def missing(self) -> str:
        """Name of the first missing attribute that its position needs; empty if none is."""
        where = dict(zip(_WHERE, (self.directions, self.corner, self.spacing), strict=True))
        return next((keyword for keyword, value in where.items() if value is None), "")

    @property
    def place(self) -> float:
        assert self.directions is not None
        return float(self.directions[2] @ self.corner)


def decode(path: Path, number: int | None) -> RawVolume:
    """Read the series that a file belongs to, from its folder.

    Damaged files and slices of other kinds in the folder are left out and named, since the
    requested file itself is good.
    """
    own = _slices(path)
    if not own:
        raise Unreadable("the file holds no picture.")
    parts = list(own)
    strangers: dict[str, None] = {}
    for file in sorted(path.parent.iterdir()):
        try:
            if file == path or not is_dicom(file):
                continue
            more = [part for part in _slices(file) if part.series == own[0].series]
            for part in more:
                _check(part, own[0])
        except Unreadable as error:
            strangers[error.cause.rstrip(".")] = None
        else:
            parts += more
    scan = _chosen(parts, number, "volume")
    if strangers:
        rest = len(strangers) - _MOST_NAMED
        more_text = f"; and {rest} more" if rest > 0 else ""
        named = "; ".join(list(strangers)[:_MOST_NAMED])
        scan.notices.insert(0, f"Left out of the folder: {named}{more_text}.")
    if len(parts) > len(own):
        scan.notices.insert(0, _WITH_ALL)
    return scan


def decode_series(files: Sequence[Path], number: int | None, named: Path) -> RawVolume:
    """Read the files of one series, all of which must be good.

    `named`: the folder that the user named, or one of the files.
    """
    for file in files:
        if not is_dicom(file):
            raise stranger(file)
    scan = _chosen([part for file in files for part in _slices(file)], number, "volume")
    if len(files) > 1 and named in files:
        scan.notices.insert(0, _WITH_ALL)
    return scan


def stranger(file: Path) -> Unreadable:
    """Return the error for a file among slices that is none: a damaged one is not skipped."""
    return Unreadable(
        f"{file.name} is named like the slices, but is no DICOM file.",
        "Get it again from where it came from, or move it away if it is no slice.",
    )


def decode_folder(files: Sequence[Path], number: int | None) -> RawVolume:
    parts = [part for file in files for part in _slices(file)]
    if not parts:
        raise Unreadable("its DICOM files hold no pictures.")
    return _chosen(parts, number, "series")


def is_dicom(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as handle:
            return matches(handle.read(START))
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read ({error.strerror}).") from error


def _chosen(parts: Iterable[_Slice], number: int | None, what: str) -> RawVolume:
    """Put the slices of one series and volume together."""
    volumes: dict[tuple[str, ...], list[_Slice]] = {}
    for part in parts:
        volumes.setdefault((part.series, *part.volume), []).append(part)
    found = sorted(volumes.values(), key=lambda group: (group[0].number, group[0].series))
    names = [_name(group, of_several=what == "volume") for group in found]
    chosen = choose(number, names, what)
    scan = _assembled(found[chosen])
    for each in found[chosen]:
        scan.notices += [
            f"{ONLY_FIRST} of {count} frames of {each.path.name} is read: it does not state how "
            "many there are, nor where they lie."
            for count in each.unstated
        ]
    if len(found) > 1:
        scan.notices.insert(
            0, f"{what.capitalize()} {chosen + 1} of {len(found)}: {names[chosen]}."
        )
    return scan


def _name(parts: Sequence[_Slice], *, of_several: bool) -> str:
    first = parts[0]
    described = [] if of_several and first.volume else [first.description or "without a name"]
    text = ", ".join((*described, *first.volume))
    count = f"{len(parts)} slices" if len(parts) > 1 else "1 slice"
    return f"{text} ({count}, {first.columns}×{first.rows})"


def holds_slices(path: Path) -> bool:
    """Return whether a DICOM file is opened as a volume; the reader of volumes names damage."""
    try:
        return not is_colour(path)
    except Unreadable:
        return True


def series_of(path: Path) -> str:
    """Return the identifier of the series of a DICOM file; empty if it has no picture."""
    own = _slices(path)
    return own[0].series if own else ""


def identify(path: Path) -> DicomSeries | None:
    """Return the series of a DICOM file; None if the file has no picture."""
    header = read_header(path)
    with damage_explained(f"DICOM file {path.name}'s"):
        try:
            if not _is_picture(header, path.name):
                return None
        except Unreadable:
            if "SeriesInstanceUID" not in header:
                raise
        return DicomSeries(
            str(header.SeriesInstanceUID),
            int(header.get("SeriesNumber") or 0),
            str(header.get("SeriesDescription") or "").strip(),
            has_colours(header),
        )


def _slices(path: Path) -> list[_Slice]:
    header = read_header(path)
    with damage_explained(f"DICOM file {path.name}'s"):
        if not _is_picture(header, path.name):
            return []
        if "PerFrameFunctionalGroupsSequence" in header:
            return _frames(path, header)
        if frame_count(header) > 1:
            raise Unreadable(
                f"{path.name} holds several frames in one file, which do not say where they lie.",
                "Convert it to NIfTI, with dcm2niix for instance.",
            )
        return [_slice(path, header, None, (), header, header, header, header, header)]


def _frames(path: Path, header: Any) -> list[_Slice]:
    """Read the functional groups of an Enhanced file: those of a frame, or those of all."""
    frames = header.PerFrameFunctionalGroupsSequence
    count = frame_count(header)
    if len(frames) != count:
        raise Unreadable(f"{path.name} describes {len(frames)} frames and holds {count}.")
    shared = (header.get("SharedFunctionalGroupsSequence") or [{}])[0]

    def group(frame: Any, keyword: str) -> Any:
        sequence = frame.get(keyword) or shared.get(keyword)
        return sequence[0] if sequence else {}

    keys = []
    for frame in frames:
        values = ((group(frame, name).get(key), text) for name, key, text in _VOLUME_KEYS)
        keys.append([text.format(value) if value is not None else "" for value, text in values])
    # Only values that differ distinguish volumes.
    several = [len(set(column)) > 1 for column in zip(*keys, strict=True)]
    return [
        _slice(
            path,
            header,
            number,
            tuple(text for text, differs in zip(key, several, strict=True) if differs),
            group(frame, "PlanePositionSequence"),
            group(frame, "PlaneOrientationSequence"),
            group(frame, "PixelMeasuresSequence"),
            group(frame, "PixelValueTransformationSequence"),
            group(frame, "FrameVOILUTSequence"),
        )
        for number, (frame, key) in enumerate(zip(frames, keys, strict=True))
    ]


def _slice(
    path: Path,
    header: Any,
    frame: int | None,
    volume: tuple[str, ...],
    position: Any,
    orientation: Any,
    measures: Any,
    values: Any,
    display: Any,
) -> _Slice:
    corner = position.get("ImagePositionPatient")
    directions = orientation.get("ImageOrientationPatient")
    spacing = measures.get("PixelSpacing")
    if "ModalityLUTSequence" in header:
        raise Unreadable(
            f"{path.name} has a table of values (Modality LUT), which is not supported."
        )
    placed = None
    if directions:
        x, y = np.array(directions, np.float64).reshape(2, 3)
        placed = np.stack([x, y, np.cross(x, y)])
    return _Slice(
        path,
        frame,
        str(header.SeriesInstanceUID),
        int(header.get("SeriesNumber") or 0),
        str(header.get("SeriesDescription") or "").strip(),
        volume,
        int(header.Rows),
        int(header.Columns),
        str(header.get("PhotometricInterpretation")),
        np.array(corner, np.float64).reshape(3) if corner else None,
        placed,
        (float(spacing[0]), float(spacing[1])) if spacing else None,
        _thickness(measures),
        _number(values, "RescaleSlope", 1.0),
        _number(values, "RescaleIntercept", 0.0),
        _window(display),
        _padding(header),
    )


def _window(display: Any) -> tuple[float, float] | None:
    """Return the first window of a slice: level and width are the numbers that it states."""
    found = (display.get(keyword) for keyword in ("WindowCenter", "WindowWidth"))
    try:
        level, width = (float(np.ravel(each)[0]) for each in found)  # there may be several
    except (TypeError, ValueError, IndexError):  # there is none, or an empty one
        return None
    return window_of(level - width / 2, level + width / 2)


def _padding(header: Any) -> tuple[int, int] | None:
    value = header.get("PixelPaddingValue")
    if value is None:
        return None
    other = header.get("PixelPaddingRangeLimit")
    ends = int(value), int(value if other is None else other)
    return min(ends), max(ends)


def _number(values: Any, keyword: str, default: float) -> float:
    value = values.get(keyword)
    return default if value is None else float(value)


def _is_picture(header: Any, name: str) -> bool:
    """Return whether a file is a slice; refuse a damaged slice, which must not just be skipped."""
    if "Rows" in header and any(keyword in header for keyword in SAMPLES):
        if "SeriesInstanceUID" in header:
            return True
        raise Unreadable(f"{name} does not state its series (SeriesInstanceUID is missing).", AGAIN)
    kind = header.file_meta.get("MediaStorageSOPClassUID")
    unknown = not kind or (kind.name == kind and not kind.is_private)
    if unknown or not len(header) or re.search("(?<!Non-)Image Storage", kind.name):
        raise Unreadable(f"{name} is cut off or damaged.", AGAIN)
    return False


def _assembled(parts: list[_Slice]) -> RawVolume:
    for part in parts:
        _check(part, parts[0])
    notices: list[str] = []
    spacing: Spacing | None
    if len(parts) > 1 or parts[0].corner is not None:
        _check_placed(parts[0])
        parts = sorted(parts, key=lambda part: part.place)
        affine = _affine(parts)
        spacing = spacing_of(affine)
        stated = "zyx" if len(parts) > 1 or parts[0].thickness else "yx"
    else:
        affine = None
        down, right = parts[0].spacing or (0.0, 0.0)
        steps = {"z": parts[0].thickness, "y": down, "x": right}
        known = {axis: step for axis, step in steps.items() if step and is_length(step)}
        spacing, stated = spacing_from(known)
    first = parts[0]
    check_shape((len(parts), first.rows, first.columns), first.path.parent.name)
    if first.model == "MONOCHROME1":
        notices.append("White is low in the files (MONOCHROME1): inverted.")
    voxels = _voxels(parts, notices)
    # Slices may have windows of their own: that of the middle one, which is shown first. Those of
    # inverted values are of the values before.
    inverted = first.model == "MONOCHROME1"
    channel = Channel(window=None if inverted else parts[len(parts) // 2].window)
    return RawVolume(
        *(voxels, spacing, affine, notices), others=(TAGS,), stated=stated, channel=channel
    )


def _check(part: _Slice, first: _Slice) -> None:
    """Refuse a slice that is not a plain grey picture, or differs in kind from the first."""
    if part.model not in ("MONOCHROME1", "MONOCHROME2"):
        raise Unreadable(
            f"{part.name} is in colour.", "Choose a series in grey, or open it alone as a picture."
        )
    if part is first:
        return
    check_alike(
        part.name,
        first.name,
        ("height", part.rows, first.rows),
        ("width", part.columns, first.columns),
        ("kind of grey", part.model, first.model),
    )
    _check_placed(first)
    _check_placed(part)
    for what, here, there in (
        ("orientation", part.directions, first.directions),
        ("spacing", part.spacing, first.spacing),
    ):
        if not np.allclose(np.array(here), np.array(there), atol=1e-3):
            raise Unreadable(f"{part.name} and {first.name} differ in {what}.", ONE_SCAN)


def _check_placed(part: _Slice) -> None:
    if part.missing:
        raise Unreadable(
            f"{part.name} does not state its position ({part.missing} is missing).",
            "Without it the slices cannot be put in order.",
        )


def _affine(parts: Sequence[_Slice]) -> NDArray[np.float64]:
    """Return the matrix from voxels to millimetres, as in NIfTI, of sorted slices.

    Slices of a tilted gantry are shifted against each other, which the matrix describes.
    """
    first, last = parts[0], parts[-1]
    assert first.corner is not None
    assert first.directions is not None
    assert first.spacing is not None
    x, y, normal = first.directions
    step = _step(parts) if len(parts) > 1 else normal * (first.thickness or first.spacing[0])
    down, right = first.spacing
    affine = np.eye(4)
    affine[:3] = np.stack([x * right, y * down, step, first.corner], axis=1)
    affine[:2] *= -1  # DICOM counts to the left and posterior, NIfTI to the right and anterior.
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine)) < 1e-12:
        raise Unreadable(f"the position of {first.name} and {last.name} makes no sense.")
    return affine


def _step(parts: Sequence[_Slice]) -> NDArray[np.float64]:
    """Return the vector from one slice to the next, the same for all."""
    gaps = np.diff([part.place for part in parts])
    usual = float(np.median(gaps))
    for gap, (before, after) in zip(gaps, pairwise(parts), strict=True):
        names = f"{before.name} and {after.name}"
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
        raise Unreadable(f"{parts[worst].name} lies {beside[worst]:.3g} mm beside the others.")
    return np.asarray(step)


def _thickness(measures: Any) -> float | None:
    """Return the distance to the next slice, if a single slice states it."""
    for keyword in ("SpacingBetweenSlices", "SliceThickness"):
        if measures.get(keyword):
            return abs(float(measures.get(keyword)))
    return None


def _voxels(parts: Sequence[_Slice], notices: list[str]) -> NDArray[Any]:
    """Return rescaled values; whole ones in the smallest type that holds them.

    A notice is added where voxels have the value of no data: -2000 beside the round field of a CT.
    """
    first, outside, marks = parts[0], 0, set[float]()
    whole = all(part.slope.is_integer() and part.intercept.is_integer() for part in parts)
    voxels = np.empty((len(parts), first.rows, first.columns), np.float32)
    planes: dict[Path, list[tuple[NDArray[np.float32], _Slice]]] = {}
    for plane, part in zip(voxels, parts, strict=True):
        planes.setdefault(part.path, []).append((plane, part))
    for path, group in planes.items():
        stored, dark, frames = _pixels(path)
        whole &= stored.dtype.kind != "f"
        if frames > 1:
            group[0][1].unstated.append(frames)
        for plane, part in group:
            numbers = stored[part.frame or 0].astype(np.float64)
            padded = None
            if part.padding is not None:
                padded = (numbers >= part.padding[0]) & (numbers <= part.padding[1])
            if dark is not None:
                numbers = dark - numbers
            plane[...] = numbers * part.slope + part.intercept
            if padded is not None and (found := set(plane[padded].tolist()) - {0.0}):
                outside += int(np.count_nonzero(padded & (plane != 0)))
                marks |= found
    if marks:
        values = " to ".join(f"{each:g}" for each in sorted({min(marks), max(marks)}))
        notices.append(
            f"{outside} voxels lie outside of the picture (PixelPaddingValue): they are filtered "
            f"as their number, {values}."
        )
    if not whole:
        return voxels
    if np.abs(voxels).max() > 2**24:
        raise Unreadable(
            f"its whole numbers are beyond {2**24}, up to which filters hold them exactly.",
            "Convert them to 32-bit floats.",
        )
    return narrowed(voxels)


def _pixels(path: Path) -> tuple[NDArray[Any], int | None, int]:
    """Return the stored values, shape (frames, rows, columns), and the constant for inversion.

    Last comes the number of frames of which the first was kept. The constant is the sum of the
    darkest and the brightest value that can be stored, if low values are bright.
    """
    dataset = read_whole(path)
    frames = keep_first(dataset, path.name)
    stored = stored_pixels(dataset, path.name)
    if stored.ndim == 2:
        stored = stored[np.newaxis]
    if dataset.PhotometricInterpretation != "MONOCHROME1":
        return stored, None, frames
    dark = -1 if dataset.PixelRepresentation else 2 ** int(dataset.BitsStored) - 1
    return stored, dark, frames
