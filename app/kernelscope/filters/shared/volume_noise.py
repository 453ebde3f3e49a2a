"""Parameters, noise and ends of filters of volumes that remove noise of sigma 1.

Such a filter divides a volume by its sigma, which may vary from voxel to voxel, and makes Rician
noise Gaussian (`kernelscope.filters.shared.rician`): that is `extend_stabilised`, which mirrors the
volume beyond its border as well. `restore` brings the result back.

`nodes` are a map of sigma as `kernelscope.filters.shared.mri_sigma_map` makes it: a single one has
the sigma of all voxels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Record, Voxels, kernel
from kernelscope.filters.shared import mri_noise as mri
from kernelscope.filters.shared.border_kernels import REFLECT, border_index
from kernelscope.filters.shared.mri_sigma_map import SigmaMap, place_between
from kernelscope.filters.shared.rician import RicianStabiliser, restored, stabilised, stabiliser
from kernelscope.filters.shared.sigma_parameters import STRENGTH
from kernelscope.schema.explanation import Example
from kernelscope.schema.launch import CudaTask, Launch, Scratch
from kernelscope.schema.samples import Components, Pixels

_IN_3D = {"dimensions": "3d"}


def resolve(source: Pixels | Components, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in ``noise`` and ``sigma``, as for MRI NLM; an adaptive one has a ``sigma_map``."""
    resolved = dict(mri.resolve(source, {**parameters, **_IN_3D}))
    del resolved["dimensions"]
    return resolved


def measure(source: Pixels, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return mri.measure(source, {**parameters, **_IN_3D})


def map_settings(parameters: Mapping[str, Any], microscope: bool) -> tuple[Any, ...]:
    whole = {"sigma_from": "volume", **_IN_3D}
    return mri.map_settings({**parameters, **whole}, microscope)


StabilisedSpec = partial(
    mri.VolumeSpec,
    parameters=(mri.NOISE, mri.sigma_from(), mri.SIGMA, STRENGTH),
    resolve=resolve,
    measure=measure,
    diagnostic=replace(mri.NOISE_MAP, settings=map_settings),
)
"""A `FilterSpec` with the fields that these filters share."""

_EDGE = (
    (5, 5, 5, 102, 98, 100),
    (5, 4, 6, 99, 103, 101),
    (6, 5, 5, 97, 100, 98),
    (4, 5, 6, 101, 102, 99),
    (5, 6, 4, 100, 96, 103),
    (5, 5, 5, 101, 99, 100),
)
"""The rim of a head in small."""

RIM = Example(
    patch=(_EDGE,) * 4,
    parameters={"noise": "gaussian", "sigma_from": "given", "sigma": (3.0,)},
    radius=2,
)


def removed_sigma(parameters: Mapping[str, Any]) -> float:
    """Return the sigma of the noise to remove, where that of all noise is 1."""
    share: float = parameters["strength"] / 100
    return share


def noise_model(
    parameters: Mapping[str, Any], components: int
) -> tuple[NDArray[np.float32], tuple[int, int, int], RicianStabiliser]:
    """Return the nodes of sigma, the voxels from one to the next, and the transform."""
    tables = stabiliser(parameters["noise"] == "rician")
    found = parameters.get("sigma_map")
    if isinstance(found, SigmaMap):
        return found.nodes, found.cell, tables
    sigmas = np.resize(parameters["sigma"], components).astype(np.float32)
    return sigmas.reshape(components, 1, 1, 1), (1, 1, 1), tables


@kernel
def sigma_between(nodes: Array, cell: Record, c: Index, place: Record) -> Any:
    """Return sigma at a voxel (z, y, x)."""
    _, deep, tall, wide = nodes.shape
    z_low, z_high, z_part = place_between(place[0], cell[0], deep)
    y_low, y_high, y_part = place_between(place[1], cell[1], tall)
    x_low, x_high, x_part = place_between(place[2], cell[2], wide)
    low = nodes[c, z_low, y_low, x_low]
    low += y_part * (nodes[c, z_low, y_high, x_low] - low)
    back = nodes[c, z_high, y_low, x_low]
    back += y_part * (nodes[c, z_high, y_high, x_low] - back)
    low += z_part * (back - low)
    high = nodes[c, z_low, y_low, x_high]
    high += y_part * (nodes[c, z_low, y_high, x_high] - high)
    back = nodes[c, z_high, y_low, x_high]
    back += y_part * (nodes[c, z_high, y_high, x_high] - back)
    high += z_part * (back - high)
    return low + x_part * (high - low)


@kernel
def extend_stabilised(
    source: Voxels,
    extended: Array,
    before: Record,
    model: Record,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write slices `start` to `stop` of `extended` (components, slices, rows, columns).

    Its voxel 0 is that of `source` at ``-before``; `model` is the result of `noise_model`.
    """
    depth, height, width, components = source.shape
    nodes, cell, tables = model
    for slice_ in range(start, stop):
        z = border_index(slice_ - before[0], depth, REFLECT)
        for row in range(extended.shape[2]):
            y = border_index(row - before[1], height, REFLECT)
            for column in range(extended.shape[3]):
                x = border_index(column - before[2], width, REFLECT)
                for c in range(components):
                    sigma = sigma_between(nodes, cell, c, (z, y, x))
                    magnitude = np.true_divide(source[z, y, x, c], sigma)
                    extended[c, slice_, row, column] = stabilised(magnitude, tables)


@kernel
def restore(
    filtered: Array,
    output: Voxels,
    first: Record,
    model: Record,
    plain: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Write slices `start` to `stop` of the result; `output` begins at voxel `first`.

    `filtered` is (components, slices, rows, columns), without noise and stabilised.
    """
    nodes, cell, tables = model
    for z in range(start, stop):
        for y in range(output.shape[1]):
            for x in range(output.shape[2]):
                for c in range(output.shape[3]):
                    place = (first[0] + z, first[1] + y, first[2] + x)
                    sigma = sigma_between(nodes, cell, c, place)
                    output[z, y, x, c] = restored(filtered[c, z, y, x], tables) * sigma


@kernel
def copy_slices(
    source: Voxels, output: Voxels, first: Record, plain: Flag, start: Index, stop: Index
) -> None:
    """Write slices `start` to `stop` of the source itself: no noise is removed."""
    for z in range(start, stop):
        for y in range(output.shape[1]):
            for x in range(output.shape[2]):
                for c in range(output.shape[3]):
                    output[z, y, x, c] = source[first[0] + z, first[1] + y, first[2] + x, c]


BLOCK = (32, 8, 1)  # threads of the kernels that have one for each voxel


class Ends:
    """The launches before and after a filter that works on voxels of sigma 1.

    Their scratch buffers are ``extended``, and ``filtered`` without voxels around. `constants` are
    those of the filter itself, which all launches have.
    """

    def __init__(
        self, task: CudaTask, filter_id: str, constants: Mapping[str, NDArray[Any]]
    ) -> None:
        self._task, self._filter_id = task, filter_id
        nodes, cell, tables = noise_model(task.parameters, task.shape[3])
        lasts = [np.int32(tables.forward.size - 1), np.int32(tables.backward.size - 1)]
        bits = [tables.lowest.view(np.int32), tables.offset.view(np.int32)]
        self._constants = {
            **constants,
            "grid": np.array([*nodes.shape[1:], *cell], np.int32),
            "transform": np.array([*lasts, *bits], np.int32),
        }
        self._tables = nodes, tables.forward, tables.backward

    def launch(
        self,
        kernel: str,
        *scratch: str,
        block: tuple[int, int, int] = BLOCK,
        operations: float = 1.0,
        tables: bool = False,
    ) -> Launch:
        return Launch(
            kernel=f"{self._filter_id}_{kernel}",
            defines=self._task.defines(),
            block=block,
            constants=self._constants,
            tables=self._tables if tables else (),
            scratch=scratch,
            bytes_per_sample=8.0,
            operations_per_sample=operations,
        )

    @property
    def before(self) -> Launch:
        return self.launch("extend", "extended", operations=60.0, tables=True)

    @property
    def after(self) -> Launch:
        return self.launch("restore", "filtered", operations=60.0, tables=True)

    @property
    def copy(self) -> Launch:
        """The only launch where no noise is removed."""
        return self.launch("copy")

    def around(
        self, voxels: int, slices: int | None = None, *, more: int = 0, values: int = 1
    ) -> Scratch:
        """Return a buffer with this many voxels around the volume, `slices` in front and behind.

        It has `more` rows and columns, and this many floats for each voxel.
        """
        _, height, width, components = self._task.shape
        slice_ = (height + 2 * voxels + more) * (width + 2 * voxels + more)
        bytes_ = 4 * values * components * slice_
        return Scratch(bytes_, 2 * (voxels if slices is None else slices) * bytes_)
