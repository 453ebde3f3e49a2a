"""Recipes on the card: nothing is uploaded between the steps."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_recipe
from kernelscope.images.image import Image
from tests.gpu.test_backend import stage_names

pytestmark = pytest.mark.gpu


def test_results_stay_on_the_card(gpu: CudaBackend) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (300, 200, 3), np.uint8)
    names = ("mean", "speckle-noise", "median", "sobel")
    recipe = Recipe(tuple(Step.create(name) for name in names))
    backends: dict[str, Backend] = {"gpu": gpu, "cpu": CpuBackend()}

    def run(device: Device) -> list:
        return list(
            execute_recipe(recipe, Image.from_array(pixels), backends, options=RunOptions(device))
        )

    on_gpu, on_cpu = run(Device.GPU), run(Device.CPU)
    backends["cpu"].close()
    for one, other in zip(on_gpu, on_cpu, strict=True):
        np.testing.assert_array_equal(one.image.pixels, other.image.pixels)
    assert [result.device for result in on_gpu] == ["gpu", "cpu", "gpu", "gpu"]
    # The noise was made on the CPU.
    assert ["upload" in stage_names(result) for result in on_gpu] == [True, False, True, False]
