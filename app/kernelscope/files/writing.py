"""Saves images in the format of the suffix; loses data only if explicitly allowed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.errors import ImageWriteError, LossyFormat, OutOfMemory
from kernelscope.files.depth import compose_on_white, convert_depth, to_grey
from kernelscope.files.formats import Format
from kernelscope.files.pictures import jpeg, netpbm, pillow, png, tiff
from kernelscope.files.pictures.exif import stamped
from kernelscope.files.write_errors import check_target, replace_file
from kernelscope.images.image import DTYPES, Image, Metadata
from kernelscope.text import enumerated

_logger = logging.getLogger(__name__)

_UINT8, _UINT16, _FLOAT32 = DTYPES
_EVERYTHING = frozenset({"profile", "resolution", "exif"})
_MAX_EXIF = 65000
"""Largest side of a JPEG; the same everywhere, so that formats agree."""


@dataclass(frozen=True)
class _Writer:
    """The properties that a format can keep, and its encoder.

    `beside` names the fields of `Metadata` that it keeps.
    """

    format: Format
    encode: Callable[[NDArray[Any], Metadata], bytes]
    dtypes: tuple[np.dtype[Any], ...] = (_UINT8,)
    beside: frozenset[str] = frozenset()
    grey: bool = True
    colour: bool = True
    alpha: bool = False
    max_side: int = 2**31 - 1
    resolutions: tuple[float, float] = (1.0, 2.0**24)

    def losses(self, channels: int, dtype: np.dtype[Any]) -> list[str]:
        """Return the properties that the format cannot keep with this many channels, in words."""
        losses = []
        if dtype not in self.dtypes:
            losses.append("16-bit depth" if dtype == _UINT16 else "float samples")
        if channels in (2, 4) and not self.alpha:
            losses.append("transparency")
        if channels > 2 and not self.colour:
            losses.append("colour")
        return losses

    def fit(self, image: Image) -> NDArray[Any]:
        """Return the pixels as the format stores them, with the losses above."""
        pixels = image.planes
        if image.has_alpha and not self.alpha:
            pixels = compose_on_white(pixels)
        if not image.is_grey and not self.colour:
            pixels = np.concatenate([to_grey(pixels[:, :, :3]), pixels[:, :, 3:]], axis=2)
        if pixels.dtype not in self.dtypes:
            pixels = convert_depth(pixels, self.dtypes[-1])
        if image.is_grey and not self.grey:
            pixels = np.concatenate([pixels[:, :, :1]] * 3 + [pixels[:, :, 1:]], axis=2)
        if image.missing is not None and pixels.dtype.kind == "f":
            pixels = np.where(image.missing[:, :, np.newaxis], np.float32(np.nan), pixels)
        return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels

    def metadata(self, image: Image) -> Metadata:
        """Return the part of an image's metadata that the format keeps."""
        found = image.metadata
        colour = not self.grey or (self.colour and not image.is_grey)
        least, most = self.resolutions
        return Metadata(
            found.profile
            if "profile" in self.beside and found.profile[16:20] == (b"RGB " if colour else b"GRAY")
            else b"",
            found.resolution
            if "resolution" in self.beside
            and found.resolution
            and all(least <= value <= most for value in found.resolution)
            else None,
            stamped(found.exif, image.width, image.height)
            if "exif" in self.beside and 0 < len(found.exif) <= _MAX_EXIF
            else b"",
        )


_WRITERS = (
    _Writer(
        Format("PNG", (".png",)),
        png.encode,
        (_UINT8, _UINT16),
        _EVERYTHING,
        alpha=True,
        max_side=png.MAX_SIDE,
    ),
    _Writer(
        Format("TIFF", (".tif", ".tiff")),
        tiff.encode,
        DTYPES,
        frozenset({"profile", "resolution"}),
        alpha=True,
    ),
    _Writer(Format("BMP", (".bmp",)), pillow.encode_bmp, beside=frozenset({"resolution"})),
    _Writer(
        Format("JPEG", (".jpg", ".jpeg")),
        pillow.encode_jpeg,
        beside=_EVERYTHING,
        max_side=jpeg.MAX_SIDE,
        resolutions=(1.0, 65535.0),
    ),
    _Writer(
        Format("WebP", (".webp",)),
        pillow.encode_webp,
        beside=frozenset({"profile", "exif"}),
        grey=False,
        alpha=True,
        max_side=16383,
    ),
    _Writer(Format("PGM", (".pgm",)), netpbm.encode, (_UINT8, _UINT16), colour=False),
    _Writer(Format("PPM", (".ppm",)), netpbm.encode, (_UINT8, _UINT16), grey=False),
)

WRITABLE = tuple(writer.format for writer in _WRITERS)
"""The formats that `write_image` writes."""


def write_image(image: Image, path: str | Path, *, lossy: bool = False) -> Path:
    """Write an image in the format that the suffix names.

    The file at `path` is replaced in one step when everything is written, or stays as it was.

    Parameters
    ----------
    lossy : bool
        Allow losing properties that the format cannot keep: depth is rounded (floats are clipped to
        0 to 1), transparency is composed on white, colour becomes grey (ITU-R BT.601) in a PGM. The
        small losses of JPEG itself need no permission.

    Returns
    -------
    Path
        Where it was written to.

    Raises
    ------
    LossyFormat
        If the format cannot keep the depth, transparency or colour, and `lossy` is False.
    ImageWriteError
        If the suffix names no format, or the place cannot be written to.
    OutOfMemory
        If there is not enough memory to encode the image.
    """
    path = Path(path)
    start = time.perf_counter()
    check_write(path, image.planes.shape, image.pixels.dtype, lossy=lossy)
    writer = _writer(path)
    try:
        data = writer.encode(writer.fit(image), writer.metadata(image))
    except MemoryError as error:
        raise OutOfMemory(
            f"{path.name}: there is not enough memory to save it.", "Close other programs."
        ) from error
    replace_file(path, data)
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Saved %s as %s: %.1f ms", image.describe(), path, elapsed)
    losses = writer.losses(image.channels, image.pixels.dtype)
    if losses:
        _logger.info("%s: saved without the %s", path.name, enumerated(losses))
    return path


def unkept(image: Image, path: str | Path) -> list[str]:
    """Return a notice if `write_image` leaves out some metadata of an image.

    Metadata are data in addition to the pixels, such as the colour profile.
    """
    path = Path(path)
    writer = _writer(path)
    before, after = image.metadata, writer.metadata(image)
    nan = image.missing is not None and _FLOAT32 not in writer.dtypes
    lost = [
        name
        for name, there, kept in (
            ("colour profile", before.profile, after.profile),
            ("resolution", before.resolution, after.resolution),
            ("EXIF data", before.exif, after.exif),
        )
        if there and not kept
    ]
    lost += [*before.others, *["NaN"] * nan]
    return [f"{path.name} is saved without {enumerated(lost)} of the input."] if lost else []


def check_write(
    path: str | Path, shape: tuple[int, ...], dtype: np.dtype[Any], *, lossy: bool = False
) -> None:
    """Refuse, before a long run, an image that `write_image` would refuse after it.

    Parameters
    ----------
    shape : tuple of int
        Height, width and channels of the image to write.
    dtype : dtype
        Type of its samples.
    lossy : bool
        As for `write_image`.

    Raises
    ------
    LossyFormat, ImageWriteError
        As `write_image`; but the disk may still fill up later.
    """
    path = Path(path)
    height, width, channels = shape
    writer = _writer(path)
    if max(width, height) > writer.max_side:
        raise ImageWriteError(
            f"{path.name}: {writer.format.name} holds at most {writer.max_side} pixels a side, "
            f"and the picture has {width}×{height}.",
            "Save it as TIFF.",
        )
    losses = writer.losses(channels, dtype)
    if losses and not lossy:
        keepers = [other.format.name for other in _WRITERS if not other.losses(channels, dtype)]
        raise LossyFormat(
            f"{path.name}: {writer.format.name} cannot keep {enumerated(losses)}.",
            f"Save it as {enumerated(keepers, 'or')} to keep everything.",
        )
    check_target(path)


def _writer(path: Path) -> _Writer:
    suffix = path.suffix.lower()
    for writer in _WRITERS:
        if suffix in writer.format.suffixes:
            return writer
    suffixes = ", ".join(format.suffixes[0] for format in WRITABLE)
    raise ImageWriteError(
        f"{path.name}: {suffix} files cannot be written."
        if suffix
        else f"{path.name}: the name has no suffix that says which format to write.",
        f"Use one of {suffixes}.",
    )
