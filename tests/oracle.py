"""Ground for the filters' oracles: neighbourhoods built by NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border

PAD_MODES = {
    Border.REFLECT: "symmetric",
    Border.MIRROR: "reflect",
    Border.NEAREST: "edge",
    Border.CONSTANT: "constant",
    Border.REDUCE: "constant",
    Border.WRAP: "wrap",
}


WHITES = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
"""The value that stands for white, by type."""


def windows(
    source: NDArray[Any], radius: int, border: Border
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return every neighbourhood of `source`, and which of its cells count.

    Parameters
    ----------
    source : ndarray, shape (height, width, channels)

    Returns
    -------
    cells : ndarray, shape (height', width', channels, side, side)
        int64 for integer sources, float64 for floats; zero where the border says so.
    counted : ndarray of bool, same shape
        False only for ``reduce``, outside the image.
    """
    wide = np.float64 if source.dtype.kind == "f" else np.int64
    image = source.astype(wide)
    inside = np.ones(image.shape, bool)
    if border is not Border.VALID:
        pad = ((radius, radius), (radius, radius), (0, 0))
        image = np.pad(image, pad, mode=PAD_MODES[border])  # type: ignore[call-overload]
        inside = np.pad(inside, pad, constant_values=border is not Border.REDUCE)
    side = 2 * radius + 1
    view = np.lib.stride_tricks.sliding_window_view
    return view(image, (side, side), axis=(0, 1)), view(inside, (side, side), axis=(0, 1))


def to_dtype(exact: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round to nearest (ties to even) and saturate, as the specification says."""
    if dtype.kind == "f":
        return exact.astype(dtype)
    return np.clip(np.rint(exact), 0, np.iinfo(dtype).max).astype(dtype)
