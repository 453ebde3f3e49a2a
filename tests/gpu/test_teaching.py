"""The teaching filters show their effects on a real GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import DTYPES, Image

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def noise() -> Image:
    return Image.from_array(np.random.default_rng(5).integers(0, 256, (4096, 4096), np.uint8))


def run(gpu: CudaBackend, image: Image, filter_id: str, level: str) -> Result:
    request = Request.create(image, filter_id, device=Device.GPU, level=level, repeat=3)
    return execute(request, {"gpu": gpu})


def test_without_the_barrier_the_result_is_wrong(gpu: CudaBackend, noise: Image) -> None:
    right = run(gpu, noise, "turned_tiles", "shared").image.pixels
    wrong = run(gpu, noise, "turned_tiles", "no-barrier")
    np.testing.assert_array_equal(run(gpu, noise, "turned_tiles", "global").image.pixels, right)
    assert "shows a fault" in wrong.notices[0]
    assert (wrong.image.pixels != right).any()


def test_mapped_memory_gives_the_same_bytes_over_several_launches(
    gpu: CudaBackend, noise: Image
) -> None:
    expected = 255 - noise.pixels
    for level in ("mapped", "local", "uncoalesced", "global"):
        result = run(gpu, noise, "negative", level)
        np.testing.assert_array_equal(result.image.pixels, expected, level)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_ripple_is_the_same_on_card_and_processor(gpu: CudaBackend, dtype: np.dtype[Any]) -> None:
    for shape, tick in (((2160, 3841), 0), ((3, 70_000), 23), ((1025, 640), 1000)):
        image = Image.from_array(np.zeros(shape, dtype))
        request = Request.create(image, "ripple", parameters={"tick": tick}, device=Device.CPU)
        expected = execute(request, {"cpu": CpuBackend()}).image.pixels
        for level in ("single-block", "global"):
            request = Request.create(
                image, "ripple", parameters={"tick": tick}, device=Device.GPU, level=level
            )
            actual = execute(request, {"gpu": gpu}).image.pixels
            np.testing.assert_array_equal(actual, expected, f"{shape} {tick} {level}")
