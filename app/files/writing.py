"""Saves images, the format by the suffix, never losing anything without being told to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.image import DTYPES, Image
from app.errors import ImageWriteError, LossyFormat, OutOfMemory
from app.files import netpbm, pillow, png, tiff
from app.files.atomic import replace_file
from app.files.depth import compose_on_white, convert_depth, to_grey
from app.files.formats import Format

_logger = logging.getLogger(__name__)

_UINT8, _UINT16, _FLOAT32 = DTYPES


@dataclass(frozen=True)
class _Writer:
    """What a format can keep, and who encodes it."""

    format: Format
    encode: Callable[[NDArray[Any]], bytes]
    dtypes: tuple[np.dtype[Any], ...] = (_UINT8,)
    grey: bool = True
    colour: bool = True
    alpha: bool = False
    max_side: int = 2**31 - 1

    def losses(self, image: Image) -> list[str]:
        """Return what the format cannot keep, in words."""
        losses = []
        if image.pixels.dtype not in self.dtypes:
            losses.append("16-bit depth" if image.pixels.dtype == _UINT16 else "float samples")
        if image.has_alpha and not self.alpha:
            losses.append("transparency")
        if not image.is_grey and not self.colour:
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
        return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels


_WRITERS = (
    _Writer(
        Format("PNG", (".png",)), png.encode, (_UINT8, _UINT16), alpha=True, max_side=png.MAX_SIDE
    ),
    _Writer(Format("TIFF", (".tif", ".tiff")), tiff.encode, DTYPES, alpha=True),
    _Writer(Format("BMP", (".bmp",)), pillow.encode_bmp),
    _Writer(Format("JPEG", (".jpg", ".jpeg")), pillow.encode_jpeg, max_side=65500),
    _Writer(Format("WebP", (".webp",)), pillow.encode_webp, grey=False, alpha=True, max_side=16383),
    _Writer(Format("PGM", (".pgm",)), netpbm.encode, (_UINT8, _UINT16), colour=False),
    _Writer(Format("PPM", (".ppm",)), netpbm.encode, (_UINT8, _UINT16), grey=False),
)

WRITABLE = tuple(writer.format for writer in _WRITERS)
"""The formats that `write_image` writes."""


def write_image(image: Image, path: str | Path, *, lossy: bool = False) -> Path:
    """Write an image in the format that the suffix names.

    The file at `path` is replaced at once, when everything is written, or stays as it was.

    Parameters
    ----------
    lossy : bool
        Agree to lose what the format cannot keep: depth is rounded (floats are clipped to
        0 to 1), transparency is composed on white, colour becomes grey (ITU-R BT.601) in a
        PGM. The small losses of JPEG itself need no agreement.

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
    writer = _writer(path)
    _check_side(image, path, writer)
    losses = writer.losses(image)
    if losses and not lossy:
        keepers = " or ".join(other.format.name for other in _WRITERS if not other.losses(image))
        raise LossyFormat(
            f"{path.name}: {writer.format.name} cannot keep {' and '.join(losses)}.",
            f"Save it as {keepers} to keep everything.",
        )
    try:
        data = writer.encode(writer.fit(image))
    except MemoryError as error:
        raise OutOfMemory(
            f"{path.name}: there is not enough memory to save it.", "Close other programs."
        ) from error
    replace_file(path, data)
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Saved %s as %s: %.1f ms", image.describe(), path, elapsed)
    if losses:
        _logger.info("%s: saved without the %s", path.name, " and ".join(losses))
    return path


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


def _check_side(image: Image, path: Path, writer: _Writer) -> None:
    if max(image.width, image.height) > writer.max_side:
        raise ImageWriteError(
            f"{path.name}: {writer.format.name} holds at most {writer.max_side} pixels a side, "
            f"and {image.title} has {image.width}×{image.height}.",
            "Save it as TIFF.",
        )
