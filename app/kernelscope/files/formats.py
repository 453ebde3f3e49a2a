"""Shared parts of the readers of all formats."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.base.errors import AppError, ImageReadError, ImageWriteError, OutOfMemory, TooLarge
from kernelscope.base.installed import missing_package, pip_command
from kernelscope.images.image import MAX_SAMPLES, NOTHING, Metadata

_logger = logging.getLogger(__name__)

MAX_PIXELS = 2**28
"""Largest number of pixels of a file: 16384 × 16384, about a gigabyte as 8-bit RGBA.
A file of a few bytes can claim any size, so its header is checked against this first."""

ONLY_FIRST = "Only the first"
"""How notices begin about files of several pictures, of which one is read."""

AGAIN = "Get the file again from where it came from."  # the way out where a file is damaged

IS_CUT_OFF = "The file is cut off:"
"""How a notice begins of a file that opens with the part that is there."""

CUT_OFF = IS_CUT_OFF + " only rows 1 to {rows} of {height} are there; the others are {rest}."
ANIMATION = f"{ONLY_FIRST} picture of an animation is shown."
PALETTE = "Palette colours converted to {}."
ONE_BIT = "Black and white (1 bit) converted to 8-bit grey."
CMYK = "CMYK converted to RGB without a colour profile."


_AS_NIFTI = "Convert it to NIfTI, with 3D Slicer, ITK-SNAP or SimpleITK for instance."
_AS_OME_TIFF = "Convert it to OME-TIFF, with Bio-Formats or ImageJ for instance."
_AS_TIFF = "Export it as TIFF or PNG from another program."

_FOREIGN = (
    ("NRRD", rb"NRRD\d", _AS_NIFTI),
    ("MetaImage", rb"\s*(ObjectType|NDims|Comment|ObjectSubType)\s*=", _AS_NIFTI),
    ("Analyze", rb"\\\x01\0\0.{36}|\0\0\x01\\.{36}", _AS_NIFTI),
    ("FreeSurfer MGH", rb"\0\0\0\x01\0.{3}\0.{3}\0.{3}\0\0", _AS_NIFTI),
    ("netCDF (MINC)", rb"CDF[\x01\x02\x05]", _AS_NIFTI),
    ("HDF5", rb"\x89HDF\r\n", "Save one array of it as .npy or TIFF."),
    ("Zeiss CZI", rb"ZISRAWFILE", _AS_OME_TIFF),
    ("Nikon ND2", rb"\xda\xce\xbe\x0a", _AS_OME_TIFF),
    ("Leica LIF", rb"\x70\0\0\0.{4}\x2a", _AS_OME_TIFF),
    ("PFM", rb"P[Ff]\s", _AS_TIFF),
    ("PAM", rb"P7\s", _AS_TIFF),
    ("FITS", rb"SIMPLE  =", _AS_TIFF),
    ("OpenEXR", rb"\x76\x2f\x31\x01", _AS_TIFF),
    ("Radiance HDR", rb"#\?(RADIANCE|RGBE)", _AS_TIFF),
    ("JPEG 2000", rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", _AS_TIFF),
    ("JPEG XL", rb"\0\0\0\x0cJXL |\xff\x0a", _AS_TIFF),
    ("HEIF or AVIF", rb".{4}ftyp(hei|hev|mif1|msf1|avi[fs])", _AS_TIFF),
    ("Photoshop", rb"8BPS", _AS_TIFF),
    ("SVG", rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?<svg", _AS_TIFF),
    ("PDF", rb"%PDF-", _AS_TIFF),
    ("gzip", rb"\x1f\x8b", "Unpack it; a volume of FreeSurfer (.mgz) is converted to NIfTI."),
    ("ZIP", rb"PK\x03\x04", "Unpack it; arrays of a .npz are saved alone as .npy."),
)
"""Formats that are not read: name, the first bytes, and the way out."""


def unknown(start: bytes, what: str, readable: Iterable[str]) -> Unreadable:
    """Return the error about a file of no readable format, which is named if it is known."""
    others = f"Readable are {', '.join(readable)}."
    for name, magic, hint in _FOREIGN:
        if re.match(magic, start, re.DOTALL):
            cause = f"this is no {what} that is read: its format is {name}."
            return Unreadable(cause, f"{hint} {others}")
    return Unreadable(f"this is no {what}, or one of an unknown format.", others)


@dataclass(frozen=True)
class Format:
    """A kind of image file, for dialogs and help texts."""

    name: str  # name for users
    suffixes: tuple[str, ...]  # lower case, with the dot; the usual one first


@dataclass(frozen=True)
class FileFormat:
    format: Format  # its suffixes are those to read
    magic: bytes  # a pattern of the first bytes of its files

    def fits(self, start: bytes) -> bool:
        """Return whether a file that starts like this is of the format."""
        return re.match(self.magic, start, re.DOTALL) is not None


class FormatWriter(Protocol):
    @property
    def format(self) -> Format:
        """Its suffixes are those to write, which may be fewer than those to read."""


AnyWriter = TypeVar("AnyWriter", bound=FormatWriter)


def writer_for(path: Path, writers: Sequence[AnyWriter], refusal: str) -> AnyWriter:
    """Return the first writer of the suffix; `refusal` is about a suffix that none has."""
    for each in writers:
        if path.name.lower().endswith(each.format.suffixes):
            return each
    cause = refusal if path.suffix else "the name has no suffix that says which format to write."
    suffixes = ", ".join(each.format.suffixes[0] for each in writers)
    raise ImageWriteError(f"{path.name}: {cause}", f"Use one of {suffixes}.")


@dataclass
class Decoded:
    """Pixels, notices and metadata returned by a decoder.

    `pixels`: shape (height, width) or (height, width, channels), any type, any layout. `missing`
    (shape (height, width, channels)): samples that the file marks as unknown.
    """

    pixels: NDArray[Any]
    notices: list[str] = field(default_factory=list)  # conversions that were made
    orientation: int = 1  # orientation of the camera as in EXIF: 1 to 8, 1 is upright
    metadata: Metadata = NOTHING  # further data in the file
    missing: NDArray[np.bool_] | None = None

    @classmethod
    def of_head(cls, pixel: NDArray[Any], width: int, height: int, *notices: str) -> Decoded:
        """Return a picture whose pixels all are this one, and take no memory."""
        return cls(np.broadcast_to(pixel.reshape(-1), (height, width, pixel.size)), [*notices])


class Unreadable(Exception):
    def __init__(self, cause: str, hint: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint

    def of(self, title: str) -> ImageReadError:
        """Return the error about a file of that name, which the cause need not repeat."""
        cause = self.cause.replace(f"DICOM file {title}'s data", "DICOM data")
        if cause.startswith(f"{title} "):
            cause = f"it{cause.removeprefix(title)}"
        return ImageReadError(f"{title}: {cause}", self.hint)


class TooManyPixels(Unreadable):
    def of(self, title: str) -> ImageReadError:
        error = super().of(title)
        return TooLarge(error.message, error.hint)


@contextmanager
def named(title: str, what: str = "image") -> Iterator[None]:
    """Name the file in the reasons why it cannot be read."""
    try:
        yield
    except Unreadable as error:
        raise error.of(title) from error
    except MemoryError as error:
        raise OutOfMemory(
            f"{title}: there is not enough memory to open it.",
            f"Close other programs or use a smaller {what}.",
        ) from error


def check_size(width: int, height: int, samples: int = 1) -> None:
    if width < 1 or height < 1:
        raise Unreadable(f"the image has no pixels ({width}×{height}).")
    if width * height > MAX_PIXELS:
        raise TooManyPixels(
            f"its header claims {width}×{height} pixels, which is too large: "
            f"{width * height / 1e6:.4g} megapixels.",
            f"At most {MAX_PIXELS / 1e6:.4g} megapixels are opened; crop or scale it first.",
        )
    if width * height * samples >= MAX_SAMPLES:
        raise TooManyPixels(
            f"its header claims {width}×{height} pixels of {samples} samples each, which is too "
            f"large: {width * height * samples / 1e6:.4g} million samples.",
            f"Fewer than {MAX_SAMPLES / 1e6:.4g} million samples are opened.",
        )


def check_together(samples: int) -> None:
    """Refuse the pictures of a file that have too many samples to be in memory together."""
    if samples > MAX_SAMPLES // 2:
        raise Unreadable(
            f"its pictures are too large together: {samples / 1e6:.4g} million samples.",
            f"At most {MAX_SAMPLES / 2e6:.4g} million samples of a file are opened; split it.",
        )


@contextmanager
def damage_explained(name: str) -> Iterator[None]:
    """Turn exceptions of a library about damaged data of format `name` into `Unreadable`."""
    try:
        yield
    except (AppError, Unreadable, MemoryError):
        raise
    except Exception as error:  # Damaged data make libraries raise exceptions of any kind.
        _logger.debug("%s", name, exc_info=True)
        if memory.is_shortage(error):
            raise MemoryError from error
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(error) from error
        if lacking := _lacking(error, name):
            raise lacking from error
        raise Unreadable(
            f"the {name} data are damaged or cut off ({_detail(error)}).", AGAIN
        ) from error


def _lacking(error: Exception, name: str) -> Unreadable | None:
    """Return the error for intact data whose decoder is not installed; None for other causes."""
    package = missing_package(error)
    if package is not None:
        return Unreadable(
            f"the {name} data need the package {package}, which is not installed.",
            f"Install it: {pip_command(package)}",
        )
    if isinstance(error, ImportError):  # imagecodecs lacks codecs that its maker could not build
        return Unreadable(
            f"the {name} data need a decoder that the installed imagecodecs lacks ({error}).",
            f"Install all of it: {pip_command('--upgrade', 'imagecodecs')}",
        )
    return None


def unreadable(error: OSError | ValueError) -> Unreadable:
    detail = error.strerror if isinstance(error, OSError) else str(error)
    return Unreadable(f"the file cannot be read ({detail}).")


def _detail(error: Exception) -> str:
    if type(error).__name__ == "UnidentifiedImageError":  # Its text names a Python object.
        return "bad header"
    lines = str(error).splitlines()
    return lines[0].rstrip(".")[:120] if lines else type(error).__name__
