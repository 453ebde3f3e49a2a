"""Blocks without their noise by NumPy alone: the sliding DCT, of pictures and of volumes.

The coefficients of all blocks of a tile are one array, in a picture ``[y, k, q, x]``: frequency k
along x and q along y of the block whose first cell is (y, x). Rows of x are last, so that products
with the matrix of the transform are of a few thousand numbers each: for larger ones the library of
NumPy starts threads, which wait for each other longer than all of it takes. A sum over the blocks
that cover a cell is taken axis after axis.

The methods are those of `sliding_dct` and `volume_dct`, whose compiled code rounds elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.rician import STEPS, RicianStabiliser
from kernelscope.filters.shared.sigma_parameters import shares_of
from kernelscope.filters.shared.volume_noise import noise_model, removed_sigma
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.samples import colour_count, white_level

Floats = NDArray[np.float32]

_LAMBDA = {2: 2.7, 3: 3.0}
"""Coefficients of up to this many sigma are noise, in pictures and in volumes."""

_SIDE, _VOLUME_SIDE = 8, 4
"""Of a block."""

_BAND, _COLUMNS = 64, 256
"""Rows and columns of a tile: a coefficient of all of its blocks fits into the caches."""

_OPPONENTS = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]], np.float32)
_OPPONENTS /= np.linalg.norm(_OPPONENTS, axis=1, keepdims=True)


@functools.cache
def _cosines(side: int) -> Floats:
    """Return the orthonormal DCT-II of this many samples, a row for each frequency."""
    k, j = np.indices((side, side))
    rows = np.cos(np.pi * k * (2 * j + 1) / (2 * side)) * np.sqrt(2 / side)
    rows[0] /= np.sqrt(2)
    return rows.astype(np.float32)


def _transformed(cells: Floats, side: int) -> Floats:
    """Return the coefficients of the blocks at all places."""
    count = cells.shape[-1] - side + 1
    windows = np.stack([cells[..., j : j + count] for j in range(side)], axis=-2)
    found = _cosines(side) @ windows
    for axis in reversed(range(cells.ndim - 1)):
        views = np.lib.stride_tricks.sliding_window_view(found, side, axis)
        found = _cosines(side) @ np.moveaxis(views, -1, -2)
    return found


def _spread(parts: Sequence[Floats], axis: int) -> Floats:
    """Return the sums of parts, of which number r begins r cells later along an axis."""
    shape = list(parts[0].shape)
    count, shape[axis] = shape[axis], shape[axis] + len(parts) - 1
    sums = np.zeros(shape, np.float32)
    for r in reversed(range(len(parts))):  # the blocks from first to last
        sums[(*(slice(None),) * axis, slice(r, r + count))] += parts[r]
    return sums


def _added_up(spectra: Floats, weights: Floats) -> Floats:
    """Return the means of all blocks, at the cells that are in all places of them."""
    side, sums, spread = spectra.shape[-2], spectra, weights
    for axis in range(weights.ndim):
        cells = np.moveaxis(_cosines(side).T @ sums, -2, 0)
        sums = _spread(list(cells), axis)
        spread = _spread([spread] * side, axis)
    inner = (slice(side - 1, 1 - side),) * weights.ndim
    return np.asarray(sums[inner] / spread[inner], np.float32)


def without_noise(noisy: Floats, sigmas: Floats) -> Floats:
    """Return the cells without noise; `noisy` has twice a block less a cell more on each side.

    `sigmas` has the noise of each frequency, an axis for each of space.
    """
    side, axes = len(sigmas), noisy.ndim
    frequencies = tuple(range(-axes - 1, -1))
    where: Any = (*(slice(None),) * (axes - 1), *(None,) * axes, slice(None))
    mean: Any = (..., *(0,) * axes, slice(None))
    sigmas = sigmas.T[..., None]
    spectra = _transformed(noisy, side)

    def weighted(weights: NDArray[Any]) -> Floats:
        np.multiply(spectra, weights[where], out=spectra)
        return _added_up(spectra, weights)

    kept = np.abs(spectra) > np.float32(_LAMBDA[axes]) * sigmas
    kept[mean] = True
    spectra *= kept
    gains = _transformed(weighted(1 / kept.sum(frequencies, dtype=np.float32)), side)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        gains /= sigmas
        gains *= gains
        gains += 1
        np.divide(1, gains, out=gains)
        np.subtract(1, gains, out=gains)
    gains[mean] = 1
    spectra = _transformed(noisy[(slice(side - 1, 1 - side),) * axes], side)
    spectra *= gains
    gains *= gains
    return weighted(1 / gains.sum(frequencies))


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return a band of the sliding DCT of a picture, tile by tile."""
    parameters, margin = task.parameters, 2 * (_SIDE - 1)
    colours = colour_count(task.source.shape[2])
    output = np.empty((stop - start, *task.output.shape[1:]), task.source.dtype)
    found = uncompiled.cells(task, margin, start, stop, np.float32).samples[..., :colours]
    sigma = parameters["sigma"] * parameters["strength"] / 1e4 * white_level(task.source.dtype)
    planes = np.moveaxis(found @ _OPPONENTS.T if colours == 3 else found, -1, 0)
    spectra = np.resize(parameters.get("spectra", np.ones(1)), (colours, _SIDE, _SIDE))
    shares = np.array(shares_of(parameters, colours))
    sigmas = (sigma * np.sqrt(spectra) * shares[:, None, None]).astype(np.float32)
    for left in range(0, output.shape[1], _COLUMNS):
        tile = output[:, left : left + _COLUMNS]
        last = left + tile.shape[1] + 2 * margin
        made = np.stack(
            [
                without_noise(plane[:, left:last], own)
                if own.any()
                else plane[margin:-margin, left + margin : last - margin]
                for plane, own in zip(planes, sigmas, strict=True)
            ],
            axis=-1,
        )
        tile[..., :colours] = uncompiled.finished(task, made @ _OPPONENTS if colours == 3 else made)
    return output


sliding_dct = uncompiled.by_numpy(_rows, step=_BAND)


# Volumes --------------------------------------------------------------------------------


def _sigmas_at(nodes: Floats, cell: tuple[int, ...], places: list[NDArray[np.intp]]) -> Floats:
    """Return sigma at voxels, between the nodes of a map: shape (components, z, y, x)."""
    for axis, (side, voxels) in enumerate(zip(cell, places, strict=True), 1):
        last = nodes.shape[axis] - 1
        between = np.clip((voxels + 0.5) / side - 0.5, 0, last).astype(np.float32)
        low = between.astype(np.intp)
        part = (between - low).reshape(-1, *(1 for _ in range(3 - axis)))
        before = nodes.take(low, axis)
        nodes = before + part * (nodes.take(np.minimum(low + 1, last), axis) - before)
    return nodes


def _stabilised(magnitudes: Floats, tables: RicianStabiliser) -> Floats:
    """As `rician.stabilised`, of many."""
    last = len(tables.forward) - 1
    if not last:
        return magnitudes
    far = magnitudes + tables.offset - 0.25 / np.maximum(magnitudes, 1)
    near = np.interp(magnitudes * STEPS, np.arange(last + 1), tables.forward)
    return np.where(magnitudes * STEPS < last, near, far).astype(np.float32)


def _restored(means: Floats, tables: RicianStabiliser) -> Floats:
    """As `rician.restored`, of many."""
    last = len(tables.backward) - 1
    if not last:
        return means
    places, far = (means - tables.lowest) * STEPS, means - tables.offset
    near = np.sqrt(np.interp(places, np.arange(last + 1), tables.backward))
    near[places <= 0] = 0
    return np.where(places < last, near, far - 0.25 / np.maximum(far, 1)).astype(np.float32)


def _tiles_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return slices and rows of a tile: of a thin slice more, whose columns are few."""
    return (8, 32) if shape[2] > _COLUMNS // 8 else (16, 64)


def _tiles(task: CpuTask, start: int, stop: int) -> None:
    """Compute tiles of the volume DCT."""
    components, (_, tall, wide, _) = task.source.shape[3], task.output.shape
    slices, rows = _tiles_of(task.output.shape)
    across = -(-tall // rows)
    first = task.part.first if task.part is not None else (0, 0, 0)
    margin = 2 * (_VOLUME_SIDE - 1)
    removed = removed_sigma(task.parameters) if "strength" in task.parameters else 1.0
    noise = np.full((_VOLUME_SIDE,) * 3, removed, np.float32)
    nodes, cell, tables = noise_model(task.parameters, components)
    padded = [np.pad(np.arange(n), margin, mode="symmetric") for n in task.source.shape[:3]]
    own = (slice(margin, -margin),) * 3
    for unit, left in product(range(start, stop), range(0, wide, _COLUMNS)):
        front, top = unit // across * slices, unit % across * rows
        tile = task.output[front : front + slices, top : top + rows, left : left + _COLUMNS]
        places = [
            voxels[low + more : low + more + side + 2 * margin]
            for voxels, low, more, side in zip(
                padded, first, (front, top, left), tile.shape, strict=False
            )
        ]
        if not removed:
            tile[...] = task.source[np.ix_(*(each[margin:-margin] for each in places))]
            continue
        sigmas = _sigmas_at(nodes, cell, places)
        voxels = np.moveaxis(task.source[np.ix_(*places)], -1, 0) / sigmas
        for c in range(components):
            made = without_noise(_stabilised(voxels[c], tables), noise)
            tile[..., c] = _restored(made, tables) * sigmas[c][own]


def volume_dct(task: CpuTask) -> Sequence[CpuPass]:
    """Return the passes of the volume DCT; none where sigma is not known before the filter runs."""
    if task.parameters["sigma_from"] == "local":
        return ()
    slices, rows = _tiles_of(task.output.shape)
    units = -(-task.output.shape[0] // slices) * -(-task.output.shape[1] // rows)
    return [CpuPass(uncompiled.Ready(_tiles), (task,), units)]
