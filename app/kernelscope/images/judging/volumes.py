"""Figures of how far a volume is from its reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import Incomparable
from kernelscope.base.json_fields import Number
from kernelscope.images.judging.metrics import Quality, judge
from kernelscope.schema.samples import UNIT, Levels, levels_from


@dataclass(frozen=True)
class VolumeQuality(Quality):
    """How far a volume is from its reference.

    White is the brightest voxel of the reference, and black is 0 or its darkest one if that is
    negative; errors are in the units of the voxels. SSIM is the mean over slices across z.
    """

    bias: Number = 0.0  # mean difference, positive where the volume is brighter than the reference

    def figures(self) -> tuple[tuple[str, str], ...]:
        return (*super().figures(), ("bias", f"{self.bias:+.4g}"))


def judge_volume(
    voxels: NDArray[Any],
    reference: NDArray[Any],
    check: Callable[[], None] = lambda: None,
    levels: Levels | None = None,
) -> VolumeQuality:
    """Compare `voxels` with `reference`, on all cores.

    - `voxels`, `reference`: shape (depth, height, width). Of any real type.
    - `check`: as for `judge`.
    - `levels`: by default those of the reference.

    Raises `Incomparable` if the shapes differ.
    """
    if voxels.shape != reference.shape:
        sizes = ("×".join(map(str, array.shape[::-1])) for array in (voxels, reference))
        raise Incomparable(
            f"Volumes of {' and '.join(sizes)} voxels cannot be compared.",
            "Compare volumes of the same size.",
        )
    if levels is None:
        levels = levels_from(float(reference.min()), float(reference.max()))
    white = levels.span
    slices, biases = [], []
    for plane, other in zip(voxels, reference, strict=True):
        slices.append(judge(_picture(plane, white), _picture(other, white), check, levels=UNIT))
        biases.append(float(plane.mean(dtype=np.float64) - other.mean(dtype=np.float64)))
    mse = fmean(each.mse for each in slices)
    similarities = [each.ssim for each in slices if each.ssim is not None]
    return VolumeQuality(
        mse * white * white,
        fmean(each.mae for each in slices) * white,
        -10 * math.log10(mse) if mse > 0 else math.inf,
        fmean(similarities) if similarities else None,
        white,
        levels.black,
        fmean(biases),
    )


def _picture(plane: NDArray[Any], white: float) -> NDArray[np.float32]:
    return np.asarray(plane[:, :, None] / white, np.float32)
