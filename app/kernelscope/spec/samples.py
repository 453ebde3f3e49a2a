"""Samples of pictures and volumes: types, the white level, colour and alpha channels."""

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
    """Return the number of colour channels: 2 and 4 channels include alpha, the last one."""
    return channels - (channels in (2, 4))


class Kind(StrEnum):
    """The kind of source that a filter works on."""

    PICTURE = "picture"
    VOLUME = "volume"
