"""Every filter at every level computes what its oracle does; strips change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app import filters
from app.backends.cpu import CpuBackend
from app.backends.cuda import CudaBackend
from app.engine.image import Image
from app.engine.request import Device, Request, Result
from app.engine.run import execute
from app.filters.launch import CudaPlan, CudaTask
from app.filters.spec import Border, Level
from tests.oracle import to_dtype
from tests.test_contract import (
    SHAPES,
    assert_close,
    borders,
    default_tolerance,
    dtypes,
    each_case,
    images,
    make,
    parameters_of,
    test_module,
    without_alpha,
)

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("compiled")]

LARGEST = max(SHAPES, key=lambda shape: shape[0] * shape[1])

on_the_gpu = pytest.mark.parametrize(
    ("filter_id", "case"),
    [parameter for parameter in each_case() if filters.get(str(parameter.values[0])).gpu_levels],
)
levels = pytest.mark.parametrize(
    ("filter_id", "level"),
    [
        pytest.param(spec.id, level, id=f"{spec.id}-{level.id}")
        for spec in filters.discover().values()
        for level in spec.gpu_levels
    ],
)


def apply(gpu: CudaBackend, image: Image, filter_id: str, level: Level, **options: Any) -> Result:
    request = Request.create(image, filter_id, device=Device.GPU, level=level.id, **options)
    return execute(request, {"gpu": gpu, "cpu": CpuBackend()})


def tolerance_of(filter_id: str, parameters: dict[str, Any], dtype: np.dtype[Any]) -> float:
    tolerance = getattr(test_module(filter_id), "tolerance", default_tolerance)
    return float(tolerance(parameters, dtype))


@on_the_gpu
@dtypes
@borders
def test_equals_its_oracle(
    filter_id: str, case: int, dtype: np.dtype[Any], border: Border, gpu: CudaBackend
) -> None:
    spec = filters.get(filter_id)
    if border not in spec.borders:
        pytest.skip("the filter does not offer this border")
    parameters = parameters_of(filter_id, case)
    module = test_module(filter_id)
    assert module is not None
    tolerance = tolerance_of(filter_id, parameters, dtype)
    radius = spec.radius(parameters)
    crop = slice(radius, -radius) if border is Border.VALID and radius else slice(None)
    for content, shape in images(dtype, 2 * radius + 1, border):
        rgba = make(dtype, content, shape)
        alpha = rgba[:, :, 3:]
        for colours in (1, 3):
            colour = without_alpha(rgba, colours)
            wanted = to_dtype(module.oracle(colour, parameters, border), dtype)
            sources = [colour, np.concatenate([colour, alpha], axis=2)]
            # 1 to 4 channels in the largest image, 1 and 4 in the others.
            for source in sources if shape == LARGEST else [sources[colours // 2]]:
                image = Image.from_array(source)
                for level in spec.gpu_levels:
                    label = f"{level.id}, {content} {shape}, {source.shape[2]} channels"
                    result = apply(
                        gpu, image, filter_id, level, parameters=parameters, border=border
                    )
                    actual = result.image.planes
                    assert_close(actual[:, :, : wanted.shape[2]], wanted, colour, tolerance, label)
                    np.testing.assert_array_equal(
                        actual[:, :, wanted.shape[2] :],
                        alpha[crop, crop, : source.shape[2] - colours],
                        f"alpha, {label}",
                    )


def strip_limit(
    pixels: NDArray[Any],
    filter_id: str,
    level: Level,
    rows: int,
    earlier: int = 0,
    **options: Any,
) -> int:
    """Return a memory limit that leaves strips of so many rows of `pixels`.

    `earlier` are the bytes that steps before the filter need for a row; `options` its
    parameters and border, if they are not the default ones.
    """
    spec = filters.get(filter_id)
    request = Request.create(Image.from_array(pixels), filter_id, **options)
    shape, parameters, border = pixels.shape, request.parameters, request.border
    output_shape = spec.output_shape(shape, parameters, border)
    height, width, channels = shape
    task = CudaTask(
        (height, width, channels), output_shape, pixels.dtype, parameters, border, level.id
    )
    assert spec.plan_cuda is not None
    plan = CudaPlan.of(spec.plan_cuda(task))
    copies = 2 if any(launch.texture for launch in plan.launches) else 1
    source = copies * width * channels * pixels.itemsize + earlier
    result = output_shape[1] * (output_shape[2] * pixels.itemsize + sum(plan.scratch.values()))
    if spec.whole(parameters):
        return int(height * source + rows * result)
    return int((source + result) * (rows + 2 * spec.radius(parameters)))


@on_the_gpu
@dtypes
@borders
def test_strips_equal_one_piece(
    filter_id: str, case: int, dtype: np.dtype[Any], border: Border, gpu: CudaBackend
) -> None:
    spec = filters.get(filter_id)
    if border not in spec.borders:
        pytest.skip("the filter does not offer this border")
    parameters = parameters_of(filter_id, case)
    radius = spec.radius(parameters)
    pixels = without_alpha(make(dtype, "random", (67, 2 * radius + 37)), 3)
    image = Image.from_array(pixels)
    options: dict[str, Any] = {"parameters": parameters, "border": border}
    for level in spec.gpu_levels:
        gpu.memory_limit = None
        whole = apply(gpu, image, filter_id, level, **options)
        assert not whole.notices
        gpu.memory_limit = strip_limit(pixels, filter_id, level, 11, **options)
        strips = apply(gpu, image, filter_id, level, **options)
        assert "strips" in strips.notices[0], level.id
        np.testing.assert_array_equal(strips.image.pixels, whole.image.pixels, level.id)


@levels
@pytest.mark.parametrize("colours", [1, 3])
def test_equals_the_cpu_on_a_large_image(
    filter_id: str, level: Level, colours: int, gpu: CudaBackend
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (1031, 1537, colours), np.uint8)
    image = Image.from_array(pixels)
    cpu = CpuBackend()
    try:
        wanted = execute(Request.create(image, filter_id, device=Device.CPU), {"cpu": cpu})
    finally:
        cpu.close()
    actual = apply(gpu, image, filter_id, level)
    tolerance = tolerance_of(filter_id, filters.get(filter_id).defaults(), pixels.dtype)
    assert_close(actual.image.pixels, wanted.image.pixels, pixels, tolerance, level.id)


@levels
def test_grey_first_equals_grey_before(filter_id: str, level: Level, gpu: CudaBackend) -> None:
    """Two steps on the card, in one piece and in strips."""
    if filter_id == "greyscale":
        pytest.skip("the result is grey already")
    pixels = np.ascontiguousarray(make(np.dtype(np.uint8), "random", (61, 45))[:, :, :3])
    image = Image.from_array(pixels)
    grey = filters.get("greyscale")
    before = apply(gpu, image, "greyscale", grey.gpu_levels[-1]).image
    wanted = apply(gpu, before, filter_id, level).image.pixels
    earlier = pixels[0].nbytes + before.pixels[0].nbytes
    for limit in (None, strip_limit(before.planes, filter_id, level, 20, earlier)):
        gpu.memory_limit = limit
        actual = apply(gpu, image, filter_id, level, grey=True)
        assert bool(actual.notices) == bool(limit)
        np.testing.assert_array_equal(actual.image.pixels, wanted)
