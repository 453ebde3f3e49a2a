"""The filters with a mask of voxels, by NumPy alone: windows of a padded volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from kernelscope.schema.borders import Border

CASES: dict[str, list[dict[str, Any]]] = {
    "mean_3d": [{"size": 3}, {"size": (5, 3, 1)}, {"size": (1, 1, 7)}, {"size": 9}],
    "weighted_mean_3d": [{"size": 3}, {"size": (3, 1, 5)}, {"size": 7}],
    "gaussian_3d": [
        {"sigma": 0.8, "truncate": 2.0},
        {"sigma": 1.5, "truncate": 3.0},
        {"sigma": 0.0},
        {"sigma": (0.5, 0.0, 1.2), "truncate": 2.0},
        {"sigma": (0.0, 1.0, 0.4), "truncate": 2.5},
    ],
    "median_3d": [{"size": 3}, {"size": (5, 1, 3)}, {"size": (1, 3, 1)}, {"size": 7}],
    "sobel_3d": [{"form": "sum"}, {"form": "magnitude"}],
    "laplace_3d": [
        {"form": form, "negative": negative}
        for form in ("4", "8")
        for negative in ("absolute", "clip", "offset")
    ],
}

_MODES = {
    Border.REFLECT: "symmetric",
    Border.MIRROR: "reflect",
    Border.NEAREST: "edge",
    Border.WRAP: "wrap",
    Border.KEEP: "edge",
}

Windows = NDArray[Any]
"""Shape (depth, height, width) and that of the mask."""


def windows(
    volume: NDArray[Any], sides: tuple[int, ...], border: Border
) -> tuple[Windows, Windows]:
    """Return the cells around each voxel, and whether each counts."""
    pads = [(side // 2, side // 2) for side in sides]
    mode: Any = _MODES.get(border, "constant")
    counted = np.pad(np.ones(volume.shape, bool), pads, constant_values=border is not Border.REDUCE)
    view = np.lib.stride_tricks.sliding_window_view
    return view(np.pad(volume, pads, mode), sides), view(counted, sides)


def _sigmas(parameters: Mapping[str, Any]) -> list[float]:
    """Return sigma along x, y and z."""
    return [float(each) for each in np.broadcast_to(parameters["sigma"], 3)]


def sides_of(filter_id: str, parameters: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the sides of the mask along z, y and x."""
    if filter_id == "gaussian_3d":
        reach = parameters.get("truncate", 4.0)
        x, y, z = (2 * int(reach * each + 0.5) + 1 for each in _sigmas(parameters))
        return z, y, x
    x, y, z = np.broadcast_to(parameters.get("size", 3), 3).tolist()
    return z, y, x


def oracle(
    filter_id: str, volume: NDArray[Any], parameters: Mapping[str, Any], border: Border
) -> NDArray[np.float64]:
    """Return the result before it is rounded; `volume` is in a type that holds all sums."""
    sides = sides_of(filter_id, parameters)
    cells, counted = windows(volume, sides, border)
    axes = (3, 4, 5)
    made: NDArray[Any]
    if filter_id == "mean_3d":
        made = np.sum(cells, axes, where=counted) / counted.sum(axes)
    elif filter_id == "weighted_mean_3d":
        rows = [comb(side - 1, np.arange(side)).round() for side in sides]
        weights = np.einsum("i,j,k->ijk", *rows).astype(volume.dtype)
        made = np.sum(cells * weights, axes, where=counted)
        made = made / np.sum(np.broadcast_to(weights, cells.shape), axes, where=counted)
    elif filter_id == "gaussian_3d":
        rows = []
        for side, sigma in zip(sides, reversed(_sigmas(parameters)), strict=True):
            row = np.exp(-0.5 * ((np.arange(side) - side // 2) / (sigma or 1.0)) ** 2)
            rows.append(row / row.sum())
        weights = np.einsum("i,j,k->ijk", *rows)
        made = np.einsum("zyxijk,ijk->zyx", np.where(counted, cells, 0), weights)
        made = made / np.einsum("zyxijk,ijk->zyx", counted, weights)
    elif filter_id == "median_3d":
        listed = np.where(counted, cells, np.nan).reshape(*volume.shape, -1)
        ranks = (counted.sum(axes) - 1) // 2
        made = np.take_along_axis(np.sort(listed, axis=-1), ranks[..., None], -1)[..., 0]
    elif filter_id == "sobel_3d":
        smooth, difference = np.array([1, 2, 1]), np.array([-1, 0, 1])
        gradient = []
        for axis in range(3):
            rows = [difference if each == axis else smooth for each in range(3)]
            weights = np.einsum("i,j,k->ijk", *rows)
            gradient.append(np.sum(np.where(counted, cells, 0) * weights, axes))
        if parameters["form"] == "sum":
            made = sum(map(np.abs, gradient))  # type: ignore[assignment]
        else:
            made = np.sqrt(sum(each * each for each in gradient))
    else:
        weights = np.ones((3, 3, 3), np.int64)
        if parameters["form"] == "4":
            weights[np.abs(np.indices((3, 3, 3)) - 1).sum(0) > 1] = 0
        weights[1, 1, 1] -= weights.sum()
        made = np.sum(np.where(counted, cells, 0) * weights, axes)
    if border is Border.KEEP:
        inside = tuple(
            slice(n // 2, max(n // 2, size - n // 2))
            for n, size in zip(sides, volume.shape, strict=True)
        )
        kept = volume.astype(np.float64)
        kept[inside] = made[inside]
        return kept
    return made.astype(np.float64)


def expected(
    filter_id: str, voxels: NDArray[Any], parameters: Mapping[str, Any], border: Border
) -> NDArray[Any]:
    """Return the result in the type of the voxels: rounded, ties to even, and saturated."""
    whole = voxels.dtype.kind != "f"
    made = oracle(filter_id, voxels.astype(np.int64 if whole else np.float64), parameters, border)
    if whole:
        made = np.rint(made)
    negative = parameters.get("negative")
    kept = np.zeros(voxels.shape, bool)
    if border is Border.KEEP:
        sides = sides_of(filter_id, parameters)
        kept[:] = True
        kept[
            tuple(
                slice(n // 2, max(n // 2, size - n // 2))
                for n, size in zip(sides, voxels.shape, strict=True)
            )
        ] = False
    if negative == "absolute":
        made = np.where(kept, made, np.abs(made))
    elif negative == "offset":
        span = max(float(voxels.max()), 0) - min(float(voxels.min()), 0) or 1.0
        made = np.where(kept, made, made + (128 if voxels.dtype == np.uint8 else span / 2))
    elif negative == "clip" and voxels.min() >= 0:
        made = np.maximum(made, 0)
    if whole:
        limits = np.iinfo(voxels.dtype)
        return np.rint(made).clip(limits.min, limits.max).astype(voxels.dtype)
    return made.astype(np.float32)
