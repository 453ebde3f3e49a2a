"""The mean squared error of images on the card, and which images stay there."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.backends.cuda.reduction import is_finite
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.judging import metrics
from kernelscope.images.judging.metrics import Quality
from tests.gpu.test_backend import free_memory, stage_names

pytestmark = pytest.mark.gpu

each_type = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def picture(dtype: Any, *shape: int, seed: int = 0) -> Image:
    rng = np.random.default_rng(seed)
    white = 1 if dtype == np.float32 else np.iinfo(dtype).max
    return Image.from_array((white * rng.random(shape)).astype(dtype))


def run(gpu: CudaBackend, image: Image, filter_id: str = "mean", **options: Any) -> Result:
    request = Request.create(image, filter_id, device=Device.GPU, **options)
    return execute(request, {"gpu": gpu, "cpu": CpuBackend()})


def exact(first: Image, second: Image) -> float:
    wide = np.float64 if first.pixels.dtype.kind == "f" else np.int64
    error = first.pixels.astype(wide) - second.pixels.astype(wide)
    return float((error * error).sum() / error.size)


@each_type
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 255), (16, 16), (257, 1), (37, 141, 3), (1000, 999), (2048, 2048, 3)]
)
def test_equals_numpy(gpu: CudaBackend, dtype: Any, shape: tuple[int, ...]) -> None:
    image = picture(dtype, *shape)
    output = run(gpu, image).image
    found = gpu.mean_squared_error(image, output)
    if dtype == np.float32:
        assert found == pytest.approx(exact(image, output), rel=1e-13)
    else:
        assert found == exact(image, output)
    assert gpu.mean_squared_error(image, output) == found
    assert gpu.mean_squared_error(output, image) == found
    assert gpu.mean_squared_error(image, image) == 0


def test_the_largest_sums_are_exact(gpu: CudaBackend) -> None:
    """Each beyond 53 bits."""
    white = Image.from_array(np.full((3000, 3001), 65535, np.uint16))
    black = Image.from_array(np.zeros((3000, 3001), np.uint16))
    for image in (white, black):
        run(gpu, image)
    assert gpu.mean_squared_error(white, black) == 65535**2


def test_judging_takes_it(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference was an input before: it, the input and the result are on the card."""
    clean = picture(np.uint8, 300, 200, 3)
    noisy = run(gpu, clean).image
    known: list[float | None] = []
    judge = metrics.judge

    def note(first: Any, second: Any, check: Any, mse: float | None, *rest: Any) -> Quality:
        known.append(mse)
        return judge(first, second, check, mse, *rest)

    monkeypatch.setattr("kernelscope.engine.run.judge", note)
    result = run(gpu, noisy, "median", reference=clean)
    assert "upload" not in stage_names(result)
    assert known == [exact(result.image, clean), exact(noisy, clean)]
    assert result.quality is not None
    assert result.quality.before is not None
    assert (result.quality.after.mse, result.quality.before.mse) == tuple(known)


def test_images_that_are_not_there_or_not_alike(gpu: CudaBackend) -> None:
    image = picture(np.uint8, 40, 30)
    output = run(gpu, image).image
    assert gpu.mean_squared_error(image, picture(np.uint8, 40, 30)) is None
    assert gpu.mean_squared_error(picture(np.uint8, 40, 30), image) is None
    for other in (picture(np.uint8, 30, 40), picture(np.uint16, 40, 30)):
        run(gpu, other)
        assert gpu.mean_squared_error(output, other) is None
    transparent = picture(np.uint8, 40, 30, 4)
    assert gpu.mean_squared_error(transparent, run(gpu, transparent).image) is None
    with_limit = picture(np.uint8, 400, 30)
    in_strips = run(gpu, with_limit, memory_limit=8000)
    assert "strips" in in_strips.notices[-1]
    assert gpu.mean_squared_error(with_limit, in_strips.image) is None


def test_before_the_first_run_nothing_is_there(fresh_gpu: CudaBackend) -> None:
    image = picture(np.uint8, 4, 4)
    assert fresh_gpu.mean_squared_error(image, image) is None


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_result_as_input_computes_the_same(gpu: CudaBackend, channels: int) -> None:
    output = run(gpu, picture(np.uint8, 70, 50, channels)).image
    again = run(gpu, output, "median")
    assert ("upload" in stage_names(again)) == (channels == 4)
    copy = Image.from_array(output.pixels.copy())
    np.testing.assert_array_equal(again.image.pixels, run(gpu, copy, "median").image.pixels)


@pytest.mark.usefixtures("alone")
def test_the_result_goes_with_its_owner(gpu: CudaBackend) -> None:
    image = picture(np.uint8, 8192, 8192)
    run(gpu, image)
    gc.collect()
    run(gpu, picture(np.uint8, 8, 8))
    before = free_memory(gpu)
    result = run(gpu, image)
    assert free_memory(gpu) <= before - image.pixels.nbytes + (4 << 20)
    assert gpu.mean_squared_error(image, result.image) is not None
    assert free_memory(gpu) >= before - image.pixels.nbytes - (4 << 20)
    del result
    gc.collect()
    run(gpu, picture(np.uint8, 8, 8))
    assert free_memory(gpu) >= before


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_the_card_finds_a_value_that_is_not_finite(gpu: CudaBackend, value: float) -> None:
    image = picture(np.float32, 701, 999)
    output = run(gpu, image).image.pixels
    device, cache = gpu._devices[0], gpu._cache
    assert device.call(is_finite, device, cache, output)
    changed = output.copy()
    changed[700, 998] = value
    there = device.call(device.allocate, changed.nbytes)
    device.call(device.staging.upload, changed, int(there))
    device.call(device.resident.put, changed, there)
    assert device.call(is_finite, device, cache, changed) is False
