"""The one thing that matters in EXIF data: how the camera was held."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.files.formats import Decoded

_logger = logging.getLogger(__name__)
_ORIENTATION = 0x0112


def exif_orientation(data: bytes, notices: list[str]) -> int:
    """Return the orientation, 1 to 8, in a block of EXIF data; a damaged block is upright."""
    from PIL.Image import Exif

    exif = Exif()
    try:
        exif.load(data)
        return valid_orientation(exif.get(_ORIENTATION))
    except Exception:  # Pillow raises anything; the picture itself is still good.
        _logger.debug("Damaged EXIF data", exc_info=True)
        notices.append("The EXIF data are damaged; the picture may lie on its side.")
        return 1


def valid_orientation(value: object) -> int:
    """Return an orientation as found in a file, or 1 if it makes no sense."""
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def upright(image: Decoded) -> NDArray[Any]:
    """Return the pixels turned and flipped so that the picture stands upright; a view."""
    pixels = image.pixels
    if image.orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if image.orientation in (3, 4, 7, 8):
        pixels = np.flipud(pixels)
    if image.orientation in (2, 3, 6, 7):
        pixels = np.fliplr(pixels)
    return pixels
