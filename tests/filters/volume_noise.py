"""The noise of volumes for oracles: sigma between nodes, and Rician noise made Gaussian."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from kernelscope.filters.shared.rician import STEPS, stabiliser


def sigma_of(parameters: Mapping[str, Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return sigma at each voxel of each component, for resolved parameters."""
    if "sigma_map" not in parameters:
        return np.broadcast_to(np.array(parameters["sigma"], float), shape)
    nodes, cell = parameters["sigma_map"].nodes, parameters["sigma_map"].cell
    steps = [(np.arange(n) + 0.5) / side - 0.5 for n, side in zip(shape[:3], cell, strict=True)]
    places = np.meshgrid(*steps, indexing="ij")
    each = [ndimage.map_coordinates(part, places, float, 1, "nearest") for part in nodes]
    return np.stack(each, axis=-1)


def forward(magnitudes: NDArray[Any]) -> NDArray[np.float64]:
    tables = stabiliser(True)
    z = np.arange(tables.forward.size) / STEPS
    far = magnitudes + float(tables.offset) - 0.25 / np.maximum(magnitudes, 1)
    return np.where(magnitudes < z[-1], np.interp(magnitudes, z, tables.forward), far)


def backward(means: NDArray[Any]) -> NDArray[np.float64]:
    tables = stabiliser(True)
    places = float(tables.lowest) + np.arange(tables.backward.size) / STEPS
    distance = np.maximum(means - float(tables.offset), 1)
    near = np.sqrt(np.interp(means, places, tables.backward, left=0))
    return np.where(means < places[-1], near, distance - 0.25 / distance)


def of_unit_noise(
    source: NDArray[Any],
    parameters: Mapping[str, Any],
    filter_: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return a filter of noise of sigma 1 applied to each component."""
    sigma = sigma_of(parameters, source.shape)
    rician = parameters["noise"] != "gaussian"
    stable = source.astype(float) / sigma
    parts = (forward(stable) if rician else stable)[..., :]
    done = np.stack([filter_(parts[..., c]) for c in range(source.shape[3])], axis=-1)
    return (backward(done) if rician else done) * sigma
