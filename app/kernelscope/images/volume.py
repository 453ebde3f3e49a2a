"""The volume type: an image whose rows are slices."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import Incomparable, InvalidImage, InvalidParameter
from kernelscope.base.parallel import in_parts
from kernelscope.base.remembered import remembered
from kernelscope.base.text import printable
from kernelscope.images.image import as_single, can_hold, fill_missing, fill_nan, is_finite
from kernelscope.images.lengths import in_words
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel
from kernelscope.schema.samples import ENDS, Levels, levels_from

DTYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "int16", "float32"))
"""The types of voxels; integers come before floats, small ones before large ones."""

MAX_VOXELS = 2**31
"""A volume has fewer voxels than this: indices inside kernels stay within 32 bits."""

AXES = ("z", "y", "x")  # the axes of `Volume.voxels`, by their index
_WHOLE = 2**24  # up to here float32 holds every integer

_MISPLACED = 0.1
"""By how many voxels volumes may be shifted against each other and still be stacked."""

Spacing = tuple[float, float, float]

_looking = threading.Lock()

_CACHED = 2**18  # bytes that a core's cache holds, so that two looks read them from memory once


@dataclass(frozen=True)
class Among:
    """A place along an axis that counts the volumes of a file."""

    letter: str  # C for channels, T for times, and others as in TIFF files
    index: int
    count: int


@dataclass(frozen=True)
class Stored:
    """How a file stores voxels, where that is another type or another unit."""

    dtype: np.dtype[Any]  # the type of the stored numbers
    # ``voxel = slope * number + intercept``.
    slope: float = 1.0
    intercept: float = 0.0

    @property
    def scaled(self) -> bool:
        return (self.slope, self.intercept) != (1.0, 0.0)

    def values(self, numbers: NDArray[Any]) -> NDArray[np.float32]:
        values = np.empty(numbers.shape, np.float32)
        with np.errstate(over="ignore"):  # `Volume` refuses infinite values.
            for target, source in zip(values, numbers, strict=True):
                target[...] = source.astype(np.float64) * self.slope + self.intercept
        return values

    def numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers to store for `values`: rounded and saturated to the type."""
        if not self.scaled and values.dtype.kind in "iu":
            return within(values, self.dtype)
        numbers = np.empty(values.shape, self.dtype)
        for target, source in zip(numbers, values, strict=True):
            exact = (source.astype(np.float64) - self.intercept) / self.slope
            target[...] = _saturated(exact, self.dtype) if self.dtype.kind in "iu" else exact
        return numbers


@dataclass(frozen=True, eq=False)
class Volume:
    """Voxels that never change, where they lie, and where they came from."""

    voxels: NDArray[Any]
    """Shape (depth, height, width). C-ordered, native byte order, read-only; uint8, uint16, int16
    or finite float32. Real values: a file's slope and intercept are applied."""
    spacing: Spacing = (1.0, 1.0, 1.0)
    """Distance between voxels along z, y and x: in millimetres along axes that are `stated`, else
    1, or as along the others."""
    affine: NDArray[np.float64] | None = None
    """Shape (4, 4). Takes (x, y, z, 1), indices of a voxel, to millimetres towards the patient's
    right, anterior and superior, as NIfTI has it; None if the file does not say."""
    # As in `Image`.
    title: str = "untitled"
    path: Path | None = None
    notices: tuple[str, ...] = ()
    header: object = None
    """The header of the file's format, which only kernelscope.files interprets."""
    stored: Stored | None = None
    """How the file stored the voxels and how they are saved; None: as they are here."""
    missing: NDArray[np.bool_] | None = None
    """bool. Voxels that the file marks as unknown (NaN, or `nodata`) and that got a number to be
    filtered; they are saved as unknown again."""
    others: tuple[str, ...] = ()
    """Names of further content that is lost when the volume is saved: "DICOM tags"."""
    stated: str = ""  # the axes along which the file states the distance: "zyx", "yx" or none
    channel: Channel = UNKNOWN_CHANNEL  # the channel of a microscope; results are of the same
    microscope: bool = False  # whether its file is of a microscope, as far as it shows
    given_levels: Levels | None = None  # the `levels` that the user gives
    among: tuple[Among, ...] = ()  # its place among the volumes of its file: channels, times
    nodata: float | None = None  # the number that the file has in place of unknown voxels
    interval: float | None = None  # seconds from one time of its file to the next, if stated

    @classmethod
    def from_array(
        cls,
        array: NDArray[Any],
        title: str = "untitled",
        *,
        spacing: Spacing | None = None,
        stated: str = "zyx",
        affine: NDArray[Any] | None = None,
        path: Path | None = None,
        notices: Sequence[str] = (),
        header: object = None,
        slope: float = 1.0,
        intercept: float = 0.0,
        others: tuple[str, ...] = (),
        channel: Channel = UNKNOWN_CHANNEL,
        microscope: bool = False,
        among: tuple[Among, ...] = (),
        nan: float | None = None,
        missing: NDArray[np.bool_] | None = None,
        nodata: float | None = None,
        interval: float | None = None,
    ) -> Volume:
        """Return a volume of `array`, converted to the form that filters expect.

        Integers of other types become the smallest type that holds every value, or float32
        where none does; other floats become float32. Values with a `slope` or an
        `intercept` become float32. `Volume.stored` remembers the type and the scaling, so
        that saving brings them back, unless that would not give the same numbers again.
        The caller must not write to `array` afterwards.

        - `spacing`: None if it is unknown; `stated` are the axes of which it is not a guess.
        - `nan`: replacement for NaN and for the `missing` voxels, which hold `nodata`;
          `Volume.missing` records where they were.

        Raises `NotANumber` if a voxel is NaN, and there is no `nan`; `InvalidImage` if the values
        are no real numbers or not finite, or are integers that no type of filters holds exactly, if
        the shape is not (depth, height, width), or if there are no or too many voxels.
        """
        check_shape(array.shape, title)
        _check_type(array.dtype, title)
        stored = Stored(array.dtype.newbyteorder("="), slope, intercept)
        filled = []
        if missing is not None:
            array, notice = fill_missing(array, missing, title, "voxels", nan)
            filled.append(notice)
        voxels, remark, exact = _converted(array, stored, title)
        remark += filled
        if voxels.dtype == np.float32 and not is_finite(voxels):
            voxels, holes, notice = fill_nan(voxels, title, "voxels", nan)
            remark.append(notice)
            missing = holes if missing is None else holes | missing
        if missing is not None:
            missing.flags.writeable = False
        voxels.flags.writeable = False
        as_stored = not stored.scaled and stored.dtype == voxels.dtype
        return cls(
            voxels,
            spacing or (1.0, 1.0, 1.0),
            affine,
            printable(title),
            path,
            tuple(map(printable, (*notices, *remark))),
            header,
            None if as_stored or not exact else stored,
            missing,
            others,
            stated if spacing else "",
            channel,
            microscope,
            among=among,
            nodata=nodata,
            interval=interval,
        )

    def arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.voxels,)

    @property
    def steps(self) -> dict[str, float]:
        """The stated distances of voxels in millimetres, by their axes."""
        spacing = dict(zip(AXES, self.spacing, strict=True))
        return {axis: spacing[axis] for axis in AXES if axis in self.stated}

    @property
    def place(self) -> str:
        """The place among the volumes of its file, ``time 2, DAPI``; empty without others."""
        names = {"C": "channel", "T": "time", "V": "volume"}
        return ", ".join(
            (axis.letter == "C" and self.channel.name)
            or f"{names.get(axis.letter, axis.letter)} {axis.index + 1}"
            for axis in self.among
        )

    @property
    def channel_number(self) -> int:
        """The place among the channels of its file, 0 if it has none."""
        return next((axis.index for axis in self.among if axis.letter == "C"), 0)

    @property
    def depth(self) -> int:
        return int(self.voxels.shape[0])

    @property
    def height(self) -> int:
        return int(self.voxels.shape[1])

    @property
    def width(self) -> int:
        return int(self.voxels.shape[2])

    @property
    def flat_axis(self) -> int | None:
        """The axis along which there is a single slice, which makes it a picture; or None."""
        single = [axis for axis, side in enumerate(self.voxels.shape) if side == 1]
        return single[0] if len(single) == 1 else None

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which it has several voxels, x first; all three unless it is flat."""
        return tuple(axis for axis in (2, 1, 0) if axis != self.flat_axis)

    @property
    def size(self) -> str:
        """``157×189×130``, x first; ``260×200`` if it is flat."""
        return "×".join(str(self.voxels.shape[axis]) for axis in self.axes)

    @property
    def unscaled(self) -> NDArray[Any]:
        """The voxels in the type of their file, for formats that know no scaling or booleans."""
        if self.stored is None or self.stored.scaled or self.is_boolean:
            return self.voxels
        return self.stored.numbers(self.voxels)

    @property
    def is_boolean(self) -> bool:
        """Whether the voxels were booleans in their file, and are 1 and 0."""
        return self.stored is not None and self.stored.dtype.kind == "b"

    @property
    def is_whole(self) -> bool:
        """Whether the voxels are integers, here or in their file, and results have to be."""
        stored = self.stored
        if self.voxels.dtype.kind in "iu":
            return True
        return stored is not None and stored.dtype.kind in "biu" and not stored.scaled

    def restored(self, numbers: NDArray[Any], mark: float | None = None) -> NDArray[Any]:
        """Return the numbers to save for the voxels, with a mark where the file had one.

        `mark`: None for NaN, which integers do not have.
        """
        number = float("nan") if mark is None else mark
        if self.missing is None or not can_hold(numbers.dtype, number):
            return numbers
        return np.where(self.missing, numbers.dtype.type(number), numbers)

    @cached_property
    def value_range(self) -> tuple[float, float]:
        with _looking:  # `cached_property` lets several threads look
            (ends,) = remembered(self.voxels, ENDS, lambda: [_ends(self.voxels)])
            return ends

    @property
    def levels(self) -> Levels:
        """The voxels that stand for black and white: if nothing is given, the range with 0."""
        return self.given_levels or levels_from(*self.value_range)

    @cached_property
    def orientation(self) -> str:
        """Where x, y and z point to, one letter each, like ``RAS``; empty if unknown.

        Right, Left, Anterior, Posterior, Superior and Inferior of the patient.
        """
        return "".join(("RAS" if cosine > 0 else "LPI")[row] for row, cosine in self._nearest)

    @cached_property
    def _nearest(self) -> list[tuple[int, float]]:
        """The axis of the patient that is nearest to each of x, y and z, another one each, and the
        cosine of the angle between them; empty if unknown."""
        if self.affine is None:
            return []
        directions = self.affine[:3, :3] / np.linalg.norm(self.affine[:3, :3], axis=0)
        rows = max(permutations(range(3)), key=lambda p: sum(abs(directions[p, range(3)])))
        return [(row, float(directions[row, axis])) for axis, row in enumerate(rows)]

    @cached_property
    def oblique(self) -> str:
        """How far the planes lie from those of the patient, ``12° oblique``; empty below 1°."""
        least = min((abs(cosine) for _, cosine in self._nearest), default=1.0)
        angle = math.degrees(math.acos(min(least, 1.0)))
        return f"{angle:.0f}° oblique" if angle >= 1 else ""

    def describe(self, channels: str | None = None) -> str:
        """Return ``title, DAPI, 157×189×130, 16 bit signed, 1×1×1.2 mm, RAS, 12° oblique``.

        All is x first, and unknown facts are left out. `channels`: those that are drawn,
        by default its own.
        """
        channels = self.channel.name if channels is None else channels
        kind = {
            "uint8": "8 bit",
            "uint16": "16 bit",
            "int16": "16 bit signed",
            "float32": "32-bit float",
        }[self.voxels.dtype.name]
        steps = [self.steps[AXES[axis]] for axis in self.axes if AXES[axis] in self.steps]
        facts = (
            *(self.title, channels, self.size, kind, in_words(steps)),
            *(self.orientation, self.oblique),
        )
        return ", ".join(fact for fact in facts if fact)

    def with_voxels(
        self,
        voxels: NDArray[Any],
        *,
        as_float: bool = False,
        copy: bool = True,
        finite: bool = False,
    ) -> Volume:
        """Return the same volume with new voxels of the same shape.

        They are rounded (ties to even) and saturated to the type of this volume, and to the
        steps in which its file stores them: the values shown are those that are saved.

        - `as_float`: keep the values as float32, in memory and in files.
        - `copy`: False if `voxels` are not written to any more: they are kept if nothing changes.
        - `finite`: floats are known to be finite, and not looked at again.

        Raises `InvalidImage` if the shape is another one, or a value is not finite.
        """
        if voxels.shape != self.voxels.shape:
            raise InvalidImage(
                f"{self.title}: the result has shape {voxels.shape}, "
                f"the volume {self.voxels.shape}.",
                "Choose a border that keeps the size.",
            )
        dtype, stored = self.voxels.dtype, self.stored
        if as_float:
            dtype, stored = np.dtype(np.float32), None
        if voxels.dtype.kind == "f" and not finite:
            _check_finite(voxels, self.title)
        if dtype.kind == "f":
            new = voxels.astype(dtype, copy=copy)
            if stored and stored.dtype.kind in "iu":
                new = stored.values(stored.numbers(new))
        elif voxels.dtype == dtype:
            new = voxels.copy() if copy else voxels
        else:
            new = np.stack([_saturated(plane, dtype) for plane in voxels])
        if stored and self.is_boolean:
            new = np.minimum(new, 1)
        new = np.ascontiguousarray(new).view()
        new.flags.writeable = False
        channel = replace(self.channel, window=None)  # other values, maybe of another range
        return replace(self, voxels=new, stored=stored, channel=channel)

    def minus(self, other: Volume) -> Volume:
        change = self.voxels.astype(np.float32) - other.voxels
        return self.with_voxels(change, as_float=True)


def _ends(voxels: NDArray[Any]) -> tuple[float, float]:
    step = max(1, _CACHED * len(voxels) // voxels.nbytes)

    def ends(part: slice) -> list[tuple[Any, Any]]:
        some = [
            voxels[first : min(first + step, part.stop)]
            for first in range(part.start, part.stop, step)
        ]
        return [(each.min(), each.max()) for each in some]

    found = [pair for each in in_parts(ends, voxels) for pair in each]
    return min(low for low, _ in found).item(), max(high for _, high in found).item()


def stack(volumes: Sequence[Volume]) -> NDArray[np.float32]:
    """Put volumes of the same head side by side, for filters of several components.

    Returns float32, shape (depth, height, width, components). Raises as `check_aligned`.
    """
    check_aligned(volumes)
    first = volumes[0]
    if len(volumes) == 1 and first.voxels.dtype == np.float32:
        return first.voxels[..., np.newaxis]  # no second copy: it may be large
    stacked = np.empty((*first.voxels.shape, len(volumes)), np.float32)

    def fill(part: slice) -> None:
        for component, volume in enumerate(volumes):
            stacked[part, ..., component] = volume.voxels[part]

    in_parts(fill, stacked)
    return stacked


def check_aligned(volumes: Sequence[Volume]) -> None:
    """Refuse volumes that cannot be filtered together.

    Raises `InvalidParameter` if there is no volume; `InvalidImage` if they differ in shape, or,
    where known, in orientation, spacing or position by more than a tenth of a voxel.
    """
    if not volumes:
        raise InvalidParameter("There is no volume to filter.", "Choose at least one.")
    for other in volumes[1:]:
        _check_aligned(volumes[0], other)


def unstack(planes: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the components of an array from `stack`, each C-contiguous, copied only if needed."""
    if planes[..., 0].flags.c_contiguous:
        return [np.ascontiguousarray(planes[..., c]) for c in range(planes.shape[-1])]
    volumes = [np.empty(planes.shape[:-1], planes.dtype) for _ in range(planes.shape[-1])]

    def fill(part: slice) -> None:
        for component, volume in enumerate(volumes):
            volume[part] = planes[part, ..., component]

    in_parts(fill, planes)
    return volumes


def check_reference(volume: Volume, reference: Volume) -> None:
    """Raise `Incomparable` if a reference differs in size from `volume`."""
    if volume.voxels.shape != reference.voxels.shape:
        raise Incomparable(
            f"{volume.describe()} cannot be compared with {reference.describe()}.",
            "Choose a volume of the same size.",
        )


def _check_type(dtype: np.dtype[Any], title: str) -> None:
    """Raise `InvalidImage` unless voxels of this type are real numbers."""
    if dtype.kind not in "biuf":
        raise InvalidImage(
            f"{title}: voxels of type {dtype} cannot be filtered.",
            "Convert them to one real number per voxel.",
        )


def check_shape(shape: Sequence[int], title: str) -> None:
    """Refuse a shape before memory is taken for it.

    Raises `InvalidImage` if it is not (depth, height, width), or has no voxels, or `MAX_VOXELS` or
    more.
    """
    if len(shape) != 3:
        raise InvalidImage(
            f"{title}: an array of shape {tuple(shape)} is not a volume.",
            "Use (depth, height, width).",
        )
    size = "×".join(str(side) for side in reversed(shape))
    if min(shape) < 1:
        raise InvalidImage(f"{title}: the volume has no voxels ({size}).")
    if math.prod(shape) >= MAX_VOXELS:
        raise InvalidImage(
            f"{title}: {size} voxels are too many.",
            "Crop or scale it to fewer than two billion voxels.",
        )


def narrowed(integers: NDArray[Any]) -> NDArray[Any]:
    """Return integers as the smallest of `DTYPES` that holds them, float32 as a last resort."""
    low, high = int(integers.min()), int(integers.max())
    for dtype in DTYPES[:-1]:
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return integers.astype(dtype)
    return integers.astype(np.float32)


def _converted(
    array: NDArray[Any], stored: Stored, title: str
) -> tuple[NDArray[Any], list[str], bool]:
    """Return voxels, notices, and whether `stored` gives the stored numbers again."""
    dtype = stored.dtype
    kind, bits = dtype.kind, dtype.itemsize * 8
    if stored.scaled:
        values = stored.values(array)
        notice = f"Stored values are scaled by {stored.slope:g}, plus {stored.intercept:g}."
        # With floats there would be no end of rounding.
        exact = kind in "iu" and np.array_equal(stored.numbers(values), array)
        as_float = [] if exact else ["Saved as 32-bit floats without that scaling."]
        return values, [notice, *as_float], exact
    if dtype in DTYPES:
        return np.ascontiguousarray(array, dtype).view(), [], True
    if kind == "b":
        notice = "Booleans are filtered as 1 and 0; .npy files get booleans again."
        return np.ascontiguousarray(array, np.uint8), [notice], True
    if kind == "f":
        voxels, small = as_single(array, title, "voxels")
        verb = "filtered as" if bits == 64 else "converted to"  # saved as they were, or not
        return voxels, [f"{bits}-bit floats {verb} 32-bit floats.", *small], bits == 64
    voxels = narrowed(np.ascontiguousarray(array))
    name = f"{'Signed' if kind == 'i' else 'Unsigned'} {bits}-bit integers"
    if voxels.dtype.kind == "f" and not np.array_equal(stored.numbers(voxels), array):
        raise InvalidImage(
            f"{title}: some of its {name[0].lower()}{name[1:]} are too large: filters hold whole "
            f"numbers up to {_WHOLE} exactly.",
            "Give labels smaller numbers, or convert measured values to 32-bit floats.",
        )
    new = "32-bit floats" if voxels.dtype.kind == "f" else f"{voxels.dtype.name}"
    return voxels, [f"{name} filtered as {new}."], True


def _check_finite(values: NDArray[Any], title: str) -> None:
    if is_finite(values):
        return
    finite = sum(int(np.count_nonzero(np.isfinite(plane))) for plane in values)
    if finite != values.size:
        raise InvalidImage(
            f"{title}: {values.size - finite} of {values.size} voxels are NaN, infinite or "
            "too large for 32-bit floats.",
            "Replace them in the program that wrote the file.",
        )


def within(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return integers in another type: a result may lie beyond the values that came in."""
    if dtype.kind not in "iu":
        return values.astype(dtype)
    own, limits = np.iinfo(values.dtype), np.iinfo(dtype)
    return values.clip(max(own.min, limits.min), min(own.max, limits.max)).astype(dtype)


def _saturated(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round to nearest, ties to even, and saturate to an integer type."""
    info = np.iinfo(dtype)
    high = np.float64(info.max)
    if int(high) > info.max:  # 64-bit integers: the next float is already too large.
        high = np.nextafter(high, 0)
    rounded: NDArray[Any] = np.clip(np.rint(values), info.min, high).astype(dtype)
    return rounded


def _check_aligned(first: Volume, other: Volume) -> None:
    """Refuse two volumes whose voxels do not show the same places."""

    def differ(what: str, values: tuple[str, str], hint: str) -> InvalidImage:
        return InvalidImage(
            f"{first.title} and {other.title} differ in {what}: {values[0]} and {values[1]}.",
            hint,
        )

    if first.voxels.shape != other.voxels.shape:
        sizes = ["×".join(map(str, volume.voxels.shape[::-1])) for volume in (first, other)]
        raise differ("size", (sizes[0], sizes[1]), "Resample them to the same grid.")
    if first.affine is None or other.affine is None:
        return
    if first.orientation != other.orientation:
        raise differ(
            "orientation",
            (first.orientation, other.orientation),
            "Turn one of them first, with nibabel or FSL for instance.",
        )
    shift = _shift(first, other)
    if shift > _MISPLACED * min(first.spacing):
        raise InvalidImage(
            f"{first.title} and {other.title} lie up to {shift:.3g} mm apart.",
            "Register them and resample them to the same grid.",
        )


def _shift(first: Volume, other: Volume) -> float:
    """Return how far apart two volumes place the same corner, at most, in mm."""
    assert first.affine is not None
    assert other.affine is not None
    ends = [(0, side - 1) for side in first.voxels.shape[::-1]]
    corners = np.array([(x, y, z, 1) for x in ends[0] for y in ends[1] for z in ends[2]])
    apart = corners @ (first.affine - other.affine)[:3].T
    return float(np.linalg.norm(apart, axis=1).max())
