"""Common properties of all noise filters: numbers that only the seed decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS
from tests.noise import add_noise, even

NOISES = [spec for spec in filters.discover().values() if spec.category == "Noise"]

each_noise = pytest.mark.parametrize("spec", NOISES, ids=lambda spec: spec.id)


def correlation(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return Pearson's correlation in units of its standard error."""
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1] * one.size**0.5)


def test_all_five_are_there() -> None:
    assert {spec.id for spec in NOISES} == {
        f"{kind}_noise" for kind in ("gaussian", "poisson", "rician", "salt_and_pepper", "speckle")
    }


@each_noise
def test_seeds_give_independent_noise(spec: FilterSpec) -> None:
    """Also not the noise of another seed a few rows further up or down."""
    source = even(0.5, side=256)
    first, *others = (add_noise(spec, source, seed=seed) for seed in (0, 1, 2, 2**31 - 1))
    np.testing.assert_array_equal(add_noise(spec, source, seed=0), first)
    for other in others:
        for shift in range(-3, 4):
            assert abs(correlation(first, np.roll(other, shift, 0))) < 5


@each_noise
def test_pixels_rows_and_channels_are_independent(spec: FilterSpec) -> None:
    noisy = add_noise(spec, even(0.5, side=256, channels=3))
    for c in range(3):
        assert abs(correlation(noisy[..., c], noisy[..., (c + 1) % 3])) < 5
        assert abs(correlation(noisy[:-1, :, c], noisy[1:, :, c])) < 5
        assert abs(correlation(noisy[:, :-1, c], noisy[:, 1:, c])) < 5
        assert noisy[..., c].std() == pytest.approx(noisy.std(), rel=0.05)


@each_noise
def test_the_same_at_both_levels_and_with_any_number_of_threads(spec: FilterSpec) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (500, 80, 3), np.uint8)
    image = Image.from_array(pixels)
    results = []
    for threads, level in ((1, "serial"), (1, "parallel"), (2, "parallel"), (7, "parallel")):
        backend = CpuBackend(threads)
        request = Request.create(image, spec.id, device=Device.CPU, level=level)
        results.append(execute(request, {"cpu": backend}).image.pixels)
        backend.close()
    assert (results[0] != pixels).any()
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@each_noise
def test_runs_on_the_cpu_only_and_says_why(spec: FilterSpec) -> None:
    assert not spec.levels("gpu")
    assert set(spec.gaps("gpu")) == {level.id for level in GPU_LEVELS}
    assert all("CPU" in reason for reason in spec.gaps("gpu").values())
