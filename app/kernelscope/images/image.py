"""The image type that every part of the program passes around."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter, NotANumber
from kernelscope.base.parallel import in_parts
from kernelscope.base.text import printable
from kernelscope.images.lengths import in_words
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel, fingerprint
from kernelscope.schema.samples import UNIT, Kind, Levels, colour_count, levels_of

DTYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32))
"""The sample types that filters work on."""

MAX_SAMPLES = 2**31
"""Largest number of samples of an image: indices inside kernels stay within 32 bits."""


MM_PER_INCH = 25.4

MICROSCOPE = 0.0025
"""Millimetres, at most, of pixels that are those of a microscope in any file: film scanners
have 7200 dpi, 3.5 µm."""


class Coding(NamedTuple):
    """How a JPEG is coded: by the quality of libjpeg whose tables are nearest to its own."""

    quality: int
    chroma: str  # how it is subsampled: "4:2:0"; empty of grey


@dataclass(frozen=True)
class Metadata:
    profile: bytes = b""  # ICC profile: the meaning of the samples as colours; empty without one
    resolution: tuple[float, float] | None = None  # pixels per inch along x and y
    exif: bytes = b""  # EXIF data from their TIFF header on, of a picture that stands upright
    others: tuple[str, ...] = ()
    """Names of further content that is lost when the picture is saved: "a comment"."""
    channel: Channel = UNKNOWN_CHANNEL  # the channel of a microscope
    chunks: tuple[tuple[str, bytes], ...] = ()
    """Name and content of chunks of a PNG that state its colours, such as ``cICP``."""
    nodata: float | None = None
    """The number that stands for unknown samples in the file, as GDAL marks them."""
    xmp: bytes = b""  # XMP packet as the file has it: ratings, keywords, rights, and its size
    wide: bool = False
    """The file has 64-bit floats, and so do results; samples are those of 32 bits."""
    measured: bool = False
    """The resolution is stated as the size of a pixel in what is seen: of a specimen, not of
    paper."""
    jpeg: Coding | None = None  # of a JPEG; results that are saved as such are coded alike

    @property
    def steps(self) -> dict[str, float]:
        """The width x and the height y of a pixel in millimetres, if they are known."""
        if self.resolution is None:
            return {}
        x, y = self.resolution
        return {"y": MM_PER_INCH / y, "x": MM_PER_INCH / x}

    @property
    def pixel_size(self) -> tuple[float, float] | None:
        """The width and height of a pixel in millimetres of what is seen; None if unknown."""
        steps = self.steps
        if not steps or not (self.measured or max(steps.values()) < MICROSCOPE):
            return None
        return steps["x"], steps["y"]


NOTHING = Metadata()  # metadata of pictures that were computed, pasted, or saved without any


@dataclass(frozen=True, eq=False)
class Image:
    """Pixels that never change, and where they came from."""

    pixels: NDArray[Any]
    """C-ordered, native byte order, read-only; shape (height, width) or (height, width, channels)
    with 2 (grey, alpha), 3 (RGB) or 4 (RGB, alpha) channels; uint8, uint16 or float32. Floats are
    finite."""
    title: str = "untitled"  # short name for window titles and labels
    path: Path | None = None  # the file it was read from or saved to
    notices: tuple[str, ...] = ()
    """Changes that reading made ("CMYK converted to RGB"), for the user to know."""
    metadata: Metadata = NOTHING  # the rest of its file; results inherit it
    missing: NDArray[np.bool_] | None = None
    """bool, shape (height, width) or that of the pixels. Samples that the file marks as unknown
    (NaN) and that got a number to be filtered; they are saved as unknown again."""
    given_levels: Levels | None = None
    """The `levels` of floats, where they do not follow from their own range: those that the user
    gives, and of a part those of the whole."""

    kind = Kind.PICTURE
    unit = "pixels"

    @classmethod
    def from_array(
        cls,
        array: NDArray[Any],
        title: str = "untitled",
        path: Path | None = None,
        notices: tuple[str, ...] = (),
        metadata: Metadata = NOTHING,
        nan: float | None = None,
        *,
        finite: bool = False,
    ) -> Image:
        """Return an image of `array`, converted to the form that filters expect.

        Non-contiguous and big-endian arrays are copied. The caller must not write to
        `array` afterwards. Control characters in `title` and `notices`, which may come from a file,
        are escaped.

        - `nan`: replacement for NaN; `missing` records where it was.
        - `finite`: floats are known to be finite, and not looked at again.

        Raises `NotANumber` if a float is NaN, and there is no `nan`; `InvalidImage` if the type or
        the shape is not one of those above, if there are no pixels, or if a float is infinite.
        """
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[:, :, 0]
        dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
        if dtype not in DTYPES:
            raise InvalidImage(
                f"{title}: samples of type {array.dtype} cannot be filtered.",
                "Convert them to 8-bit, 16-bit or 32-bit float.",
            )
        if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (2, 3, 4)):
            raise InvalidImage(
                f"{title}: an array of shape {array.shape} is not an image.",
                "Use (height, width) or (height, width, channels) with up to 4 channels.",
            )
        if 0 in array.shape:
            raise InvalidImage(f"{title}: the image has no pixels.")
        if array.size >= MAX_SAMPLES:
            raise InvalidImage(
                f"{title}: {array.shape[1]}×{array.shape[0]} pixels are too many.",
                "Crop or scale it to fewer than two billion samples.",
            )
        array = np.ascontiguousarray(array, dtype)
        missing = None
        if dtype.kind == "f" and not finite and not is_finite(array):
            array, holes, notice = fill_nan(array, title, "samples", nan)
            notices = (*notices, notice)
            missing = holes
            missing.flags.writeable = False
        view = array.view()
        view.flags.writeable = False
        shown = tuple(map(printable, notices))
        return cls(view, printable(title), path, shown, metadata, missing)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays that it holds in memory."""
        return (self.pixels,)

    @property
    def titles(self) -> tuple[str, ...]:
        return (self.title,)

    @property
    def samples(self) -> tuple[NDArray[Any], ...]:
        return (self.pixels,)

    @property
    def size(self) -> str:
        return f"{self.width}×{self.height}"

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def channels(self) -> int:
        return 1 if self.pixels.ndim == 2 else int(self.pixels.shape[2])

    @property
    def has_alpha(self) -> bool:
        return self.channels in (2, 4)

    @property
    def is_grey(self) -> bool:
        return self.channels <= 2

    @property
    def key(self) -> object:
        return self.pixels

    @property
    def components(self) -> NDArray[Any]:
        return self.planes

    @cached_property
    def planes(self) -> NDArray[Any]:
        """The pixels as (height, width, channels), also for grey images; a view."""
        return self.pixels.reshape(self.shape)

    @cached_property  # asked for a dozen times a run
    def shape(self) -> tuple[int, ...]:
        """Height, width and channels, also for grey images."""
        return self.height, self.width, self.channels

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.pixels.dtype

    @cached_property
    def is_negative(self) -> bool:
        """Whether floats of another unit than 0 to 1 go below 0, so that 0 is not their black."""
        if self.dtype.kind != "f" or self.levels == UNIT:
            return False
        colours = self.planes[:, :, : colour_count(self.channels)]
        return any(in_parts(lambda part: bool((colours[part] < 0).any()), colours))

    @cached_property
    def levels(self) -> Levels:
        if self.given_levels is not None:
            return self.given_levels
        return levels_of(self.planes[:, :, : colour_count(self.channels)])

    @cached_property
    def fingerprint(self) -> Hashable:
        return fingerprint(self.pixels), self.given_levels

    @property
    def mode(self) -> str:
        model = {1: "grey", 2: "grey with alpha", 3: "RGB", 4: "RGBA"}[self.channels]
        depth = {1: "8 bit", 2: "16 bit", 4: "32-bit float"}
        return f"{model}, {depth[self.pixels.dtype.itemsize]}"

    def describe(self) -> str:
        size = in_words(self.metadata.pixel_size or ())
        return ", ".join(filter(None, (self.title, self.size, self.mode, size)))

    def like(self, planes: NDArray[Any], *, finite: bool = False) -> Image:
        """Return an image of other pixels, which were made from these.

        `finite` says that floats were looked at already.
        """
        image = Image.from_array(
            planes, self.title, notices=self.notices, metadata=self.metadata, finite=finite
        )
        levels = vars(self).get("levels", self.given_levels) if self.dtype.kind == "f" else None
        return replace(image, missing=self._missing_in(image), given_levels=levels)

    def stand_in(self, shape: tuple[int, ...]) -> Image:
        """Return a black image of this shape that takes no memory."""
        return Image(np.broadcast_to(self.pixels.dtype.type(0), shape), self.title)

    def cropped(self, shape: tuple[int, ...]) -> Image:
        part = tuple(slice(0, side) for side in shape)
        return Image.from_array(self.pixels[part].copy(), self.title)

    def _missing_in(self, other: Image) -> NDArray[np.bool_] | None:
        """Return `missing` for a picture of the same middle: border “valid” cuts off the rim."""
        if self.missing is None:
            return None
        rims = (self.height - other.height, self.width - other.width)
        if any(rim < 0 or rim % 2 for rim in rims):
            return None
        missing = self.missing
        if missing.ndim == 3 and missing.shape[2:] != other.pixels.shape[2:]:  # other colours
            missing = np.asarray(missing.any(axis=2))
        top, left = (rim // 2 for rim in rims)
        return missing[top : top + other.height, left : left + other.width]


def is_finite(values: NDArray[np.float32]) -> bool:
    """Return whether all values of a picture or a volume are finite."""

    def looks_finite(part: slice) -> bool:
        with np.errstate(all="ignore"):  # a third of the time of looking at each
            return bool(np.isfinite(np.vdot(values[part], values[part])))

    # A sum of squares may be too large where no value is.
    return all(in_parts(looks_finite, values)) or all(
        bool(np.isfinite(plane).all()) for plane in values
    )


def as_single(values: NDArray[Any], title: str, what: str) -> tuple[NDArray[np.float32], list[str]]:
    """Return floats of any type as those of 32 bits, infinite where they are too large.

    `what` names the values in messages: "samples", "voxels". There is a notice if some become 0.

    Raises `InvalidImage` if all are so small that 0 or only a part of their digits would be left.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    if values.dtype.itemsize <= 4 or not values.size:
        return single, []
    lost = int(np.count_nonzero(values)) - int(np.count_nonzero(single))
    largest = max(-float(np.fmin.reduce(single, None)), float(np.fmax.reduce(single, None)))
    if largest < float(np.finfo(np.float32).tiny) and (largest or lost):
        largest = float(np.fmax.reduce(np.abs(values), None))
        raise InvalidImage(
            f"{title}: its values reach {largest:.3g} only, which is too small for 32-bit floats.",
            f"Multiply them, by 1e{min(308, -math.floor(math.log10(largest)))} for instance.",
        )
    if not lost:
        return single, []
    verb = "is" if lost == 1 else "are"
    return single, [
        f"{lost} of {values.size} {what} {verb} nearer to 0 than 32-bit floats reach: taken as 0."
    ]


def can_hold(dtype: np.dtype[Any], number: float) -> bool:
    """Return whether samples of this type can be equal to a number."""
    if dtype.kind not in "ui":
        return dtype.kind == "f"
    info = np.iinfo(dtype)
    return number.is_integer() and bool(info.min <= number <= info.max)


def fill_missing(
    pixels: NDArray[Any], missing: NDArray[np.bool_], title: str, what: str, number: float | None
) -> tuple[NDArray[Any], str]:
    """Replace samples that a file marks as unknown; return them with a notice.

    `what` names the values in messages: "samples", "voxels".

    Raises `NotANumber` without a number for them; `InvalidParameter` if it does not fit their type.
    """
    count = int(np.count_nonzero(missing))
    verb = "is" if count == 1 else "are"
    if number is None:
        raise NotANumber(
            f"{title}: {count} of {pixels.size} {what} {verb} marked as without data.",
            "Choose a number to replace them: 0 if they are the background.",
        )
    if pixels.dtype.kind == "f":
        low, high, fits = float(np.finfo(pixels.dtype).min), float(np.finfo(pixels.dtype).max), True
    else:
        low, high = np.iinfo(pixels.dtype).min, np.iinfo(pixels.dtype).max
        fits = float(number).is_integer()
    if not (fits and low <= number <= high):
        raise InvalidParameter(
            f"{what.capitalize()} without data cannot be replaced by {number:g}.",
            f"Choose a number of their type, from {low:g} to {high:g}.",
        )
    notice = f"{count} of {pixels.size} {what} {verb} without data: filtered as {number:g}."
    return np.where(missing, pixels.dtype.type(number), pixels), notice


def fill_nan(
    values: NDArray[Any], title: str, what: str, number: float | None
) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
    """Replace NaN by a number; return the new values, a mask of those, and a notice for the user.

    `what` names the values in messages: "samples", "voxels".

    Raises `NotANumber` if some are NaN, and there is no number for them; `InvalidImage` if others
    are infinite.
    """
    holes = np.isnan(values)
    count = int(np.count_nonzero(holes))
    infinite = values.size - count - int(np.count_nonzero(np.isfinite(values)))
    if infinite:
        verb = "is" if infinite == 1 else "are"
        raise InvalidImage(
            f"{title}: {infinite} of {values.size} {what} {verb} infinite or too large for "
            "32-bit floats.",
            "Replace them in the program that wrote the file.",
        )
    if number is None:
        verb = "is" if count == 1 else "are"
        raise NotANumber(
            f"{title}: {count} of {values.size} {what} {verb} NaN, which is no number.",
            "Choose a number to replace them: 0 if they are the background.",
        )
    if not np.isfinite(number) or abs(number) > float(np.finfo(np.float32).max):
        raise InvalidParameter(
            f"NaN cannot be replaced by {number:g}.",
            "Choose a number within the range of 32-bit floats.",
        )
    notice = f"{count} of {values.size} {what} are NaN: filtered as {number:g}, saved as NaN again."
    return np.where(holes, values.dtype.type(number), values), holes, notice
