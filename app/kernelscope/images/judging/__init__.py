"""*How good* a result is: figures and pictures of the difference to another picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import Incomparable
from kernelscope.schema.samples import Levels, colour_count, levels_of


def colours(planes: NDArray[Any]) -> NDArray[Any]:
    """Return the channels of a picture that are compared: all but alpha.

    - `planes`: shape (height, width, channels). Alpha is the last of two or four channels, as in
      `Image.planes`.
    """
    return planes[:, :, : colour_count(planes.shape[2])]


def comparable(
    picture: NDArray[Any], other: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], Levels]:
    """Return both pictures in the layout that kernels expect, and the levels of `other`.

    - `picture`, `other`: shape (height, width, channels). Colours only; uint8, uint16 or float32.

    Raises `Incomparable` if their types or shapes differ.
    """
    check_comparable(picture, other)
    return read_only(picture), read_only(other), levels_of(other)


def check_comparable(picture: NDArray[Any], other: NDArray[Any]) -> None:
    """Raise `Incomparable` if `comparable` would; no pixel is looked at."""
    if picture.dtype != other.dtype:
        raise Incomparable(
            f"Pictures of type {picture.dtype} and {other.dtype} cannot be compared.",
            "Convert one of them to the depth of the other.",
        )
    if picture.shape[:2] != other.shape[:2]:
        sizes = " and ".join(f"{array.shape[1]}×{array.shape[0]}" for array in (picture, other))
        raise Incomparable(
            f"Pictures of {sizes} pixels cannot be compared.",
            "Compare pictures of the same size; every border but “valid” keeps it.",
        )
    if picture.shape[2] != other.shape[2]:
        raise Incomparable(
            "A grey picture and one in colour cannot be compared.",
            "Convert the one in colour to greyscale.",
        )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-contiguous read-only view or copy: Numba compiles for each kind of array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
