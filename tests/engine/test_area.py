"""Steps limited to a part of a picture: the bytes inside, the input outside, and their texts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter, InvalidRecipe
from kernelscope.engine.area import Area
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_recipe
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import judge
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind
from tests.pairs import together

AREAS = (
    "rectangle 5,7 31,22",
    "rectangle -10,-3 12,100",
    "ellipse 4,6 33,28",
    "polygon 2,1 38,9 20,28 25,12 -5,25",
)
"""In a picture of 37×29 pixels."""


def picture(channels: int = 3, dtype: type = np.uint8) -> Image:
    random = np.random.default_rng(1)
    top = 256 if dtype is np.uint8 else 65536
    return Image.from_array(random.integers(0, top, (29, 37, channels), dtype))


def inside(area: Area, height: int = 29, width: int = 37) -> np.ndarray:
    return area.mask(Region(0, 0, height, width))


def expected(image: Image, whole: Image, area: Area) -> np.ndarray:
    """Return the result pixel by pixel: of the filter where the centre lies within."""
    mask = inside(area)
    pixels = image.planes.copy()
    for y, x in np.argwhere(mask):
        pixels[y, x] = whole.planes[y, x]
    return pixels


@pytest.mark.parametrize("text", AREAS)
@pytest.mark.parametrize("filter_id", ["mean", "median", "sobel", "negative", "turned_tiles"])
def test_the_result_is_filtered_inside_and_the_input_outside(
    backends: dict[str, CpuBackend], filter_id: str, text: str
) -> None:
    image, area = picture(), Area.parse(text)
    for border in filters.get(filter_id).borders[:2]:
        whole = execute(Request.create(image, filter_id, border=border), backends).image
        if whole.planes.shape != image.planes.shape:
            continue
        limited = execute(Request.create(image, filter_id, border=border, within=area), backends)
        assert (limited.image.planes == expected(image, whole, area)).all()
        assert (limited.image.planes != image.planes).any()
        assert (limited.image.planes != whole.planes).any()


def test_every_filter_for_pictures_is_limited_or_refuses(
    backends: dict[str, CpuBackend],
) -> None:
    image, area = picture(1), Area.parse("ellipse 4,6 33,28")
    limited = set()
    for filter_id, spec in filters.discover().items():
        if spec.kind is not Kind.PICTURE:
            continue
        whole = execute(Request.create(image, filter_id), backends).image
        if whole.planes.shape != image.planes.shape:
            with pytest.raises(InvalidParameter, match="size and the colours"):
                Request.create(image, filter_id, within=area)
            continue
        result = execute(Request.create(image, filter_id, within=area), backends).image
        assert (result.planes == expected(image, whole, area)).all(), filter_id
        limited.add(filter_id)
    assert limited > {"nlm", "median", "gaussian_noise", "salt_and_pepper_noise", "ripple"}


@pytest.mark.parametrize("region", [Region(0, 0, 29, 37), Region(3, 9, 20, 11), Region(0, 0, 4, 4)])
def test_a_region_of_the_result_has_its_bytes(
    backends: dict[str, CpuBackend], region: Region
) -> None:
    request = Request.create(picture(), "median", {"size": 5}, within=Area.parse(AREAS[2]))
    whole = execute(request, backends).image
    part = execute(replace(request, region=region), backends).image
    assert (part.planes == region.of(whole.planes)).all()


def test_only_the_box_around_the_area_is_filtered_and_counted() -> None:
    sizes = []

    class Spy(CpuBackend):
        def run(self, request, *rest):
            sizes.append(request.source.shape)
            assert request.step.within is None
            return super().run(request, *rest)

    request = Request.create(picture(), "mean", {"size": 3}, within=Area.parse(AREAS[0]))
    spy = Spy(threads=1)
    result = execute(request, {"cpu": spy})
    spy.close()
    assert sizes == [(17, 28, 3)]  # 15×26 pixels and a halo of one
    assert result.speed == pytest.approx(15 * 26 / 1e6 / result.seconds)


def test_the_evaluation_is_that_of_the_whole_picture(backends: dict[str, CpuBackend]) -> None:
    image, reference = picture(), Image.from_array(np.full((29, 37, 3), 128, np.uint8))
    area = Area.parse(AREAS[2])
    result = execute(Request.create(image, "mean", within=area, reference=reference), backends)
    assert result.quality is not None
    assert result.quality.after.psnr == judge(result.image.planes, reference.planes).psnr
    assert result.quality.before is not None
    assert result.quality.after.psnr > result.quality.before.psnr


@pytest.mark.parametrize(
    ("grey", "text", "message"),
    [
        (False, "rectangle 40,0 50,9", "outside"),
        (False, "ellipse 0,-9 9,0", "outside"),
        (True, AREAS[0], "size and the colours"),
    ],
)
def test_an_area_that_cannot_be_is_refused(grey: bool, text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Request.create(picture(), "mean", grey=grey, within=Area.parse(text))


def test_border_valid_and_volumes_are_refused() -> None:
    area = Area.parse(AREAS[0])
    with pytest.raises(InvalidParameter, match="size and the colours"):
        Request.create(picture(), "mean", border=Border.VALID, within=area)
    scan = Scan((Volume.from_array(np.zeros((4, 5, 6), np.uint8)),))
    with pytest.raises(InvalidParameter, match="Only pictures"):
        Request(scan, replace(Step.create("median"), within=area))


@pytest.mark.parametrize("text", AREAS)
def test_texts_and_recipes_give_the_area_again(backends: dict[str, CpuBackend], text: str) -> None:
    area = Area.parse(text)
    assert area.format() == text
    recipe = Recipe((Step.create("median", within=area), Step.create("negative")))
    again = Recipe.from_json(recipe.to_json(), "a")
    assert again == recipe
    assert recipe.to_json().count("within") == 1
    first, last = execute_recipe(again, picture(), backends)
    assert first.request.step.within == area
    assert (last.image.planes == 255 - first.image.planes).all()
    assert f"only {area.describe()}" in first.settings


@together(
    ("text", "message"),
    [
        ("", "no shape"),
        ("circle 1,2 3,4", "“circle” is no shape"),
        ("rectangle 1,2", "has two corners, not 1"),
        ("polygon 1,2 3,4", "3 to 1000 corners, not 2"),
        ("rectangle 1,2 3", "“3” is no corner"),
        ("rectangle 1,2 3,x", "“3,x” is no corner"),
        ("rectangle 3,4 1,2", "enclose no pixels"),
        ("ellipse 1,2 1,9", "enclose no pixels"),
        ("rectangle 0,0 9999999,2", "Coordinates go up to"),
    ],
)
def test_texts_that_are_no_area_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Area.parse(text)
    recipe = Recipe((Step.create("median", within=Area.parse(AREAS[0])),)).to_json()
    with pytest.raises(InvalidRecipe, match=r"steps\[0\]\.within"):
        Recipe.from_json(recipe.replace(AREAS[0], text), "a")


def test_a_mask_of_a_part_is_that_part_of_the_mask() -> None:
    for text in AREAS:
        area, part = Area.parse(text), Region(3, 5, 11, 20)
        assert (area.mask(part) == part.of(inside(area))).all()
