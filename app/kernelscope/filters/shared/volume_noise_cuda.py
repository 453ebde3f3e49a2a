"""The ends of filters of volumes on the GPU: ``volume_noise.cuh``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.volume_noise import noise_model
from kernelscope.schema.launch import CudaTask, Launch, Scratch

BLOCK = (32, 8, 1)
"""Threads of the kernels that have one for each voxel."""


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
        """Return a buffer with so many voxels around the volume, `slices` in front and behind.

        It has `more` rows and columns, and so many floats for each voxel.
        """
        _, height, width, components = self._task.shape
        slice_ = (height + 2 * voxels + more) * (width + 2 * voxels + more)
        bytes_ = 4 * values * components * slice_
        return Scratch(bytes_, 2 * (voxels if slices is None else slices) * bytes_)
