"""Non-local means of volumes on the CPU: the passes of its levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.mri_nlm.model import Model, extend, reach_of
from kernelscope.filters.mri_nlm.pairs import plan_pairs
from kernelscope.filters.mri_nlm.serial import nlm_serial
from kernelscope.filters.mri_nlm.tiles import nlm_tiles
from kernelscope.filters.shared.mri_sigma import plan_local
from kernelscope.filters.shared.mri_sigma_map import plan_map
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL

_SLICES = 8
"""Slices of a tile; each offset needs those of a patch in addition."""

_PLANE = 2048
"""Samples that a tile has of each slice (approximate), so that its buffers fit into the caches."""

_ROWS = 4
"""Fewest rows of a tile, however long they are."""

_MAP_OFFSETS = 80
"""Cost of the map of local sigmas, in offsets of the search window (approximate)."""


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    reach = reach_of(parameters)
    depth, height, width, components = output.shape
    first = task.part.first if task.part is not None else (0, 0, 0)
    sides = (n + 2 * margin for n, margin in zip(output.shape, reach.margin, strict=False))
    extended: NDArray[np.float32] = np.empty((components, *sides), np.float32)
    before = tuple(margin - start for margin, start in zip(reach.margin, first, strict=True))
    passes = [CpuPass(extend, (source, extended, before), extended.shape[1], cost=0)]
    rician = parameters["noise"] != "gaussian"
    offsets, cells = (
        math.prod(2 * radius + 1 for radius in radii) for radii in (reach.search, reach.patch)
    )
    if parameters["sigma_from"] == "adaptive":
        sigmas = np.empty((components, depth, height, width), np.float32)
        passes.append(replace(plan_map(parameters["sigma_map"], sigmas, first), cost=0))
    elif parameters["sigma_from"] == "local":
        least = np.array(parameters["sigma"])
        sigmas = np.empty((components, depth, height, width), np.float32)
        sigma_pass = plan_local(extended, sigmas, least, parameters["window_radius"], rician)
        passes.append(replace(sigma_pass, cost=_MAP_OFFSETS / offsets))
    else:
        sigmas = np.array(parameters["sigma"], np.float32).reshape(components, 1, 1, 1)
    local = parameters["sigma_from"] != "given"
    strength = 1 / (2 * parameters["beta"] * components * cells)
    model = Model(sigmas, np.float32(strength), rician, local)
    if task.level == SERIAL.id:
        passes.append(CpuPass(nlm_serial, (extended, output, reach, model), output[..., 0].size))
    elif not local:
        passes.extend(plan_pairs(extended, output, reach, model, first))
    else:
        rows = min(height, max(_ROWS, _PLANE // extended.shape[3]))
        slices = min(depth, _SLICES)
        tile = slices, rows, first[0]
        units = -(-depth // slices) * -(-height // rows)
        passes.append(CpuPass(nlm_tiles, (extended, output, reach, model, tile), units))
    return passes
