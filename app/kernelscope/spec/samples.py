"""Samples of pictures and volumes: their types, white, colours and alpha."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[Any]
"""An image's samples: uint8, uint16 or float32."""


def white_level(dtype: np.dtype[Any]) -> float:
    """Return the value of white in samples of `dtype`."""
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


def colour_count(channels: int) -> int:
    """Return how many of `channels` are colours; 2 and 4 have alpha, which is the last."""
    return channels - (channels in (2, 4))


class Kind(StrEnum):
    """What a filter works on."""

    PICTURE = "picture"
    VOLUME = "volume"
