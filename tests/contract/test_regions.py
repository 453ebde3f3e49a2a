"""Every filter: a region has the bytes of that part of the whole result, or is refused."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.options import RunOptions
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.errors import InvalidParameter
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.spec.borders import Border
from tests.contract.test_pictures import each_case, levels, make, parameters_of

SHAPES = ((37, 53), (19, 71))
"""Odd, no multiple of any vector; the second is hardly higher than some masks."""


@pytest.fixture
def backends() -> Iterator[dict[str, CpuBackend]]:
    backend = CpuBackend(threads=2)
    yield {"cpu": backend}
    backend.close()


def regions(shape: tuple[int, ...], random: np.random.Generator) -> list[Region]:
    """Return two opposite corners, a single pixel, and two regions anywhere."""
    height, width = shape[:2]
    h, w = min(5, height), min(6, width)
    corners = (
        (Region(0, 0, h, w), Region(height - h, width - w, h, w)),
        (Region(0, width - w, h, w), Region(height - h, 0, h, w)),
    )
    found = [
        *corners[int(random.integers(2))],
        Region(height // 2, width // 2, 1, 1),
    ]
    for _ in range(2):
        top, left = int(random.integers(height)), int(random.integers(width))
        rows = int(random.integers(1, height - top + 1))
        columns = int(random.integers(1, width - left + 1))
        found.append(Region(top, left, rows, columns))
    return found


def assert_parts(step: Step, image: Image, backends: Any, label: str) -> None:
    """Compare regions with the whole result, at every level of the processor."""
    for level in [each.id for each in levels(step.filter, image.pixels.dtype)]:
        options = RunOptions(level=level)
        whole = execute(Request(image, step, options), backends).output.planes
        random = np.random.default_rng(zlib.crc32(label.encode()))
        for region in regions(whole.shape, random):
            request = Request(image, step, options, region=region)
            result = execute(request, backends)
            assert result.request is request
            assert result.output.planes.shape == request.output_shape
            np.testing.assert_array_equal(
                result.output.planes, region.of(whole), f"{label}, {level}, {region.describe()}"
            )


@pytest.mark.slow
@pytest.mark.parametrize(("filter_id", "case"), each_case())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_region_is_that_part_of_the_whole(
    filter_id: str, case: int, dtype: np.dtype[Any], backends: dict[str, CpuBackend]
) -> None:
    spec = filters.get(filter_id)
    parameters = parameters_of(filter_id, case)
    if spec.uncroppable(parameters):
        pytest.skip("needs the whole picture")
    for border in spec.borders:
        for shape in SHAPES:
            side = 2 * spec.radius(parameters) + 1
            if border is Border.VALID and side > min(shape):
                continue
            pixels: NDArray[Any] = make(dtype, "random", shape)
            channels = 1 if shape is SHAPES[0] else 4
            image = Image.from_array(pixels[:, :, :channels].copy())
            step = Step.of_numbers(filter_id, parameters, border=border)
            assert_parts(step, image, backends, f"{border}, {shape}, {channels} channels")


@pytest.mark.parametrize("border", Border)
def test_greyscale_first_is_cropped_too(border: Border, backends: dict[str, CpuBackend]) -> None:
    image = Image.from_array(make(np.dtype(np.uint8), "random", (33, 41))[:, :, :3].copy())
    step = Step.of_numbers("median", {"size": 5}, border=border, grey=True)
    assert_parts(step, image, backends, border)


def test_masks_larger_than_the_picture(backends: dict[str, CpuBackend]) -> None:
    image = Image.from_array(make(np.dtype(np.uint16), "random", (11, 9))[:, :, 0].copy())
    for border in Border:
        if border is not Border.VALID:
            step = Step.of_numbers("mean", {"size": 31}, border=border)
            assert_parts(step, image, backends, border)


IMAGE = Image.from_array(np.zeros((40, 30), np.uint8))
VOLUME = Scan((Volume.from_array(np.ones((4, 5, 6), np.float32), "volume"),))
PART = Region(1, 1, 2, 2)


@pytest.mark.parametrize(
    ("source", "filter_id", "parameters", "reason"),
    [
        (IMAGE, "ripple", {}, "depends on the size of the picture"),
        (IMAGE, "nlm", {"search": "image"}, "depends on all pixels"),
        (VOLUME, "mri_nlm", {}, "volumes as a whole"),
        (VOLUME, "median", {}, "slice by slice"),
    ],
)
def test_filters_say_that_they_need_the_whole(
    source: Any, filter_id: str, parameters: dict[str, Any], reason: str
) -> None:
    step = Step.of_numbers(filter_id, parameters)
    with pytest.raises(InvalidParameter, match=reason):
        Request(source, step, region=PART)


def test_a_region_outside_of_the_result_is_refused() -> None:
    step = Step.of_numbers("mean", {"size": 5}, border=Border.VALID)
    Request(IMAGE, step, region=Region(0, 0, 36, 26))
    with pytest.raises(InvalidParameter, match="26×36"):
        Request(IMAGE, step, region=Region(0, 1, 36, 26))
    for bad in ((-1, 0, 2, 2), (0, 0, 0, 2)):
        with pytest.raises(InvalidParameter, match="no part"):
            Region(*bad)


def test_the_crop_of_a_window_is_made_once(backends: dict[str, CpuBackend]) -> None:
    """A GPU knows its pictures by the array: a slider that moves must not upload anything."""
    seen = []

    class Watched(CpuBackend):
        def run(self, request: Any, level: Any, context: Any) -> Any:
            seen.append(request.source)
            return super().run(request, level, context)

    image = Image.from_array(make(np.dtype(np.uint8), "random", (64, 64))[:, :, 0].copy())
    backend = Watched(threads=1)
    for border in (Border.REFLECT, Border.NEAREST):
        step = Step.of_numbers("mean", {"size": 3}, border=border)
        execute(Request(image, step, region=Region(8, 8, 16, 16)), {"cpu": backend})
    assert seen[0] is seen[1]
    assert seen[0].pixels.shape == (18, 18)
    execute(Request(image, step, region=Region(8, 9, 16, 16)), {"cpu": backend})
    assert seen[2] is not seen[0]
    backend.close()


def test_a_reduced_result_is_the_mean_of_squares(backends: dict[str, CpuBackend]) -> None:
    image = Image.from_array(make(np.dtype(np.uint8), "random", (33, 41))[:, :, 0].copy())
    step = Step.of_numbers("median", {"size": 3})
    whole = execute(Request(image, step), backends).output.planes
    request = Request(image, step, reduction=3)
    result = execute(request, backends).output
    assert result.planes.shape == request.output_shape == (11, 14, 1)
    assert result.planes[2, 4, 0] == round(float(whole[6:9, 12:15].mean()))
    with pytest.raises(InvalidParameter, match="whole pictures"):
        Request(image, step, region=PART, reduction=2)
