"""Launches of the tuned non-local means: ``kernels/nlm_tuned.cuh``."""

from __future__ import annotations

import math

import numpy as np

from app.filters.launch import CudaPlan, CudaTask, Launch
from app.filters.non_local import colour_count, patch_profile, white_level
from app.filters.spec import Border

_COLUMNS = 128
_BAND = 160
_GROUP = 4
"""Columns of a warp, columns that it reads for a row of candidates, offsets taken at once."""

_SHARED = 48 * 1024
"""Bytes of shared memory that a block has on every card."""


def plan_tuned(task: CudaTask) -> CudaPlan:
    """Return the launch of level *tuned*."""
    parameters = task.parameters
    patch, whole = int(parameters["patch"]), parameters["search"] == "image"
    uniform = parameters["weights"] == "uniform"
    colours = colour_count(task.shape[2])
    together = colours if parameters["colour"] == "joint" else 1
    radius = 0 if whole else int(parameters["search_radius"])
    offsets = 2 * radius + 1
    inside = task.border is Border.REDUCE
    defines = task.defines(
        PATCH=patch,
        UNIFORM=int(uniform),
        TOGETHER=together,
        WHOLE=int(whole),
        INSIDE=int(inside and not whole),
        REST=1 if whole else offsets % _GROUP,
    )
    if inside:  # what is left out are candidates; patches are reflected
        defines["BORDER"] = str(Border.REFLECT.code)
    strip = 8 if together == 1 else 4
    warps, shared = _block(strip, patch, together)
    white = white_level(task.dtype)
    scale = math.sqrt(math.log2(math.e) / (together * parameters["filter_sigma"])) / white
    height, width, _ = task.output_shape
    candidates = height * width if whole else offsets**2
    cells = 4 * patch if not uniform else 10
    launch = Launch(
        kernel="nlm_tuned",
        defines=defines,
        block=(32, warps),
        tile=(_COLUMNS - patch + 1, strip * warps),
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=candidates * (cells / together + 5.0),
        constants={
            "tuned_profile": patch_profile(parameters)[patch // 2 :].astype(np.float32),
            "tuned_scale": np.array([scale, 1 / scale], np.float32),
            "tuned_radius": np.array(radius, np.int32),
        },
        shared_bytes=shared,
        scratch=("sums",) if whole else (),
        steps=height + strip * warps - 1 if whole else 0,
    )
    groups = colours // together
    return CudaPlan((launch,), {"sums": 4 * groups * (1 + together)} if whole else {})


def _block(strip: int, patch: int, together: int) -> tuple[int, int]:
    """Return how many warps a block has, and its shared memory in bytes."""
    for warps in (4, 2, 1):
        rows = strip * warps + patch - 1
        shared = 4 * (together * rows * (_COLUMNS + _BAND) + _BAND)
        if shared <= _SHARED:
            break
    return warps, shared
