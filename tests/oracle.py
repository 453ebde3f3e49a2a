"""Ground for the filters' oracles: neighbourhoods built by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
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


OWN_FOOTPRINT = ((0, 1, 1, 0, 1), (1, 0, 0, 0, 0), (0, 1, 0, 0, 1), (0, 0, 1, 1, 0))
"""A mask of even and odd sides, without its centre and like none of its mirror images."""


def footprint_of(parameters: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return the cells of a mask that count, shape (side, side); the centre is in the middle."""
    footprint, size = parameters["footprint"], parameters["size"]
    if not isinstance(footprint, str):
        given = np.array(footprint, bool)
        # The centre is cell n // 2 of n: as many cells go on each side of it.
        reach = max(given.shape[0] // 2, given.shape[1] // 2)
        table = np.zeros((2 * reach + 1, 2 * reach + 1), bool)
        for row, column in np.argwhere(given):
            y, x = row - given.shape[0] // 2, column - given.shape[1] // 2
            table[reach + y, reach + x] = True
        return table
    y, x = np.mgrid[:size, :size] - size // 2
    found: NDArray[np.bool_] = {
        "square": np.full((size, size), True),
        "disk": np.hypot(y, x) <= size // 2,
        "cross": (y == 0) | (x == 0),
    }[footprint]
    return found


def masked_windows(
    source: NDArray[Any], table: NDArray[np.bool_], border: Border
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return `windows` of a mask; where none of its cells counts, the pixel itself does."""
    radius = len(table) // 2
    cells, counted = windows(source, radius, border)
    counted = counted & table
    counted[..., radius, radius] |= ~counted.any(axis=(-2, -1))
    return cells, counted


def extremes(
    source: NDArray[Any], table: NDArray[np.bool_], border: Border, *, lowest: bool
) -> NDArray[Any]:
    """Return the smallest or the largest of the cells of a mask around each pixel."""
    cells, counted = masked_windows(source, table, border)
    if lowest:
        return np.where(counted, cells, cells.max()).min(axis=(-2, -1))
    return np.where(counted, cells, cells.min()).max(axis=(-2, -1))


def to_dtype(exact: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round to nearest (ties to even) and saturate, as the specification says."""
    if dtype.kind == "f":
        return exact.astype(dtype)
    return np.clip(np.rint(exact), 0, np.iinfo(dtype).max).astype(dtype)
