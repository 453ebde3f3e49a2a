"""Tests that the denoisers of volumes have in common."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.files.volumes import read_volume
from kernelscope.images import phantom
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import FilterSpec
from tests.filters import apply
from tests.scans import MNI_T1

SHAPE = (40, 56, 56)


def phantom_head() -> NDArray[np.float32]:
    """Return a T1w phantom of a head, white at 255."""
    truth = phantom.head(SHAPE, (phantom.Contrast.T1W,)).truth[phantom.Contrast.T1W]
    return truth * np.float32(255 / truth.max())


@functools.cache
def anatomy() -> NDArray[np.float32]:
    """Return 56 x 56 x 56 voxels of the template of MNI, whose 99.95th percentile is 255."""
    voxels = read_volume(MNI_T1).voxels.astype(np.float32)
    scaled = np.clip(voxels * np.float32(255 / np.percentile(voxels, 99.95)), 0, 255)
    return np.ascontiguousarray(
        scaled[tuple(slice(n // 2 - 28, n // 2 + 28) for n in voxels.shape)]
    )


def quality(spec: FilterSpec, clean: NDArray[np.float32], percent: int) -> tuple[float, float]:
    """Return the PSNR within a head with Rician noise in percent of white, in dB.

    With its sigma, and with an estimated one.
    """
    real, imaginary = np.random.default_rng(percent).normal(0, 2.55 * percent, (2, *clean.shape))
    noisy = np.hypot(clean + real, imaginary).astype(np.float32)
    inside = clean > 10
    found = []
    for parameters in ({"sigma_from": "given", "sigma": (2.55 * percent,)}, {}):
        result = apply(spec, noisy[..., None], parameters)[..., 0]
        error = np.mean(np.square(result[inside].astype(float) - clean[inside]))
        found.append(float(10 * np.log10(255**2 / error)))
    return found[0], found[1]


def run(voxels: NDArray[Any], filter_id: str, **parameters: Any) -> NDArray[np.float32]:
    """Return the result of the engine for one volume."""
    if "sigma" in parameters:
        parameters |= {"sigma": (parameters["sigma"],), "sigma_from": "given"}
    backend = CpuBackend(2)
    try:
        request = Request.create(Scan((Volume.from_array(voxels),)), filter_id, parameters)
        return execute(request, {"cpu": backend}).scan.volumes[0].voxels
    finally:
        backend.close()
