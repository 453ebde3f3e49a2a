"""Every filter: a region has the bytes of that part of the whole result, or is refused."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.region import Region, window
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box, Crop
from kernelscope.schema.levels import Level
from kernelscope.schema.samples import Kind
from tests.contract.test_pictures import each_case, is_slow, levels, make, parameters_of, variants
from tests.contract.test_volumes import SHAPES as VOLUME_SHAPES
from tests.contract.test_volumes import SLOWEST, test_module
from tests.contract.test_volumes import cases as volume_cases
from tests.contract.test_volumes import make as make_volume
from tests.pairs import all_pairs

SHAPES = ((37, 53), (19, 71))
"""Odd, no multiple of any vector; the second is hardly higher than some masks."""

OF_SLOW_LEVELS = (19, 23)


def regions(shape: tuple[int, ...], random: np.random.Generator) -> list[Region]:
    """Return two opposite corners, a single pixel, and a region anywhere."""
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
    top, left = int(random.integers(height)), int(random.integers(width))
    rows = int(random.integers(1, height - top + 1))
    columns = int(random.integers(1, width - left + 1))
    return [*found, Region(top, left, rows, columns)]


def assert_parts(step: Step, image: Image, level: Level, backends: Any, label: str) -> None:
    """Compare regions with the whole result."""
    options = RunOptions(level=level.id)
    whole = execute(Request(image, step, options), backends).output.planes
    random = np.random.default_rng(zlib.crc32(label.encode()))
    for region in regions(whole.shape, random):
        request = Request(image, step, options, region=region)
        result = execute(request, backends)
        assert result.request is request
        assert result.output.planes.shape == request.output_shape
        np.testing.assert_array_equal(
            result.output.planes, region.of(whole), f"{label}, {level.id}, {region.describe()}"
        )


def assert_parts_of(
    filter_id: str,
    case: int,
    dtype: np.dtype[Any],
    level: Level,
    border: Border,
    shape: tuple[int, int],
    backends: Any,
) -> None:
    """Compare regions of a case with the whole result, where there is one."""
    spec, parameters = filters.get(filter_id), parameters_of(filter_id, case)
    if spec.uncroppable(parameters):
        return
    if border is Border.VALID and 2 * spec.radius(parameters) + 1 > min(shape):
        return
    if is_slow(spec, parameters, level):
        shape = OF_SLOW_LEVELS
    pixels: NDArray[Any] = make(dtype, "random", shape)
    channels = 1 if shape == SHAPES[0] else 4
    image = Image.from_array(pixels[:, :, :channels].copy())
    step = Step.of_numbers(filter_id, parameters, border=border)
    label = f"case {case}, {border}, {shape}, {dtype}, {channels} channels"
    assert_parts(step, image, level, backends, label)


@pytest.mark.slow
@pytest.mark.parametrize("filter_id", filters.discover())
def test_a_region_is_that_part_of_the_whole(
    filter_id: str, backends: dict[str, CpuBackend]
) -> None:
    """In all pairs of border, shape, and case or level with type."""
    spec = filters.get(filter_id)
    axes = range(len(test_module(filter_id).CASES)), variants(spec), spec.borders, SHAPES
    rows = all_pairs(*axes, need_not=lambda one, _, two: (one, two) == (0, 1))
    for case, (dtype, level), border, shape in rows:
        assert_parts_of(filter_id, case, dtype, level, border, shape, backends)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("filter_id", "case"), each_case())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_region_is_that_part_of_the_whole(
    filter_id: str, case: int, dtype: np.dtype[Any], backends: dict[str, CpuBackend]
) -> None:
    spec = filters.get(filter_id)
    for level, border, shape in itertools.product(levels(spec, dtype), spec.borders, SHAPES):
        assert_parts_of(filter_id, case, dtype, level, border, shape, backends)


@pytest.mark.parametrize("border", Border)
def test_greyscale_first_is_cropped_too(border: Border, backends: dict[str, CpuBackend]) -> None:
    image = Image.from_array(make(np.dtype(np.uint8), "random", (33, 41))[:, :, :3].copy())
    step = Step.of_numbers("median", {"size": 5}, border=border, grey=True)
    for level in levels(step.filter, np.dtype(np.uint8)):
        assert_parts(step, image, level, backends, border)


def test_masks_larger_than_the_picture(backends: dict[str, CpuBackend]) -> None:
    image = Image.from_array(make(np.dtype(np.uint16), "random", (11, 9))[:, :, 0].copy())
    for border in Border:
        if border is not Border.VALID:
            step = Step.of_numbers("mean", {"size": 31}, border=border)
            for level in levels(step.filter, np.dtype(np.uint16)):
                assert_parts(step, image, level, backends, border)


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


# --- boxes of volumes ---


def boxes(shape: tuple[int, ...], random: np.random.Generator) -> list[Box]:
    """Return the first, a middle and the last slice across each axis, and two boxes anywhere."""
    found = [
        Box.slice_of(shape, axis, index)
        for axis in range(3)
        for index in sorted({0, shape[axis] // 2, shape[axis] - 1})
    ]
    for _ in range(2):
        first = [int(random.integers(side)) for side in shape[:3]]
        ends = zip(first, shape, strict=False)
        sides = [int(random.integers(1, side - start + 1)) for start, side in ends]
        found.append(Box((first[0], first[1], first[2]), (sides[0], sides[1], sides[2])))
    return found


def assert_boxes(
    step: Step, scan: Scan, backends: Any, label: str, turn: int | None = None
) -> None:
    """Compare boxes with the whole result, at every level of the processor.

    All of them, or a third in `turn`, another one at each level.
    """
    read = scan.volumes[0].voxels.dtype if scan.volumes[0].voxels.dtype == np.uint8 else scan.dtype
    for number, level in enumerate(each.id for each in levels(step.filter, read)):
        options = RunOptions(level=level)
        whole = execute(Request(scan, step, options), backends).scan
        random = np.random.default_rng(zlib.crc32(label.encode()))
        chosen = slice(None) if turn is None else slice((turn + number) % 3, None, 3)
        for box in boxes(scan.shape, random)[chosen]:
            request = Request(scan, step, options, region=box)
            result = execute(request, backends)
            assert result.request is request
            assert result.output.shape == request.output_shape
            for part, volume in zip(result.scan.volumes, whole.volumes, strict=True):
                assert part.voxels.dtype == volume.voxels.dtype
                np.testing.assert_array_equal(
                    part.voxels, box.of(volume.voxels), f"{label}, {level}, {box.describe()}"
                )


def scan_of(shape: tuple[int, int, int], components: int, dtype: str = "float32") -> Scan:
    planes = make_volume(shape, components)
    volumes = [planes[..., c].astype(dtype) for c in range(components)]
    return Scan(tuple(Volume.from_array(each, f"{c}") for c, each in enumerate(volumes)))


BOX_SHAPES = (*VOLUME_SHAPES, (13, 21, 17))
SMALLER_BOX_SHAPES = (*VOLUME_SHAPES, (7, 13, 9))


def assert_boxes_of(
    filter_id: str,
    case: int,
    components: int,
    shape: tuple[int, int, int],
    backends: Any,
    turn: int | None = None,
) -> None:
    """Compare boxes of a case with the whole result; a case may have a sigma for each component."""
    parameters = test_module(filter_id).CASES[case]
    sigma = parameters.get("sigma", ())
    if len(sigma) > 1:
        components = len(sigma)
    step = Step.of_numbers(filter_id, parameters)
    label = f"case {case}, {shape}, {components}"
    assert_boxes(step, scan_of(shape, components), backends, label, turn)


@pytest.mark.slow
@pytest.mark.parametrize("filter_id", filters.discover(Kind.VOLUME))
def test_a_box_is_that_part_of_the_whole(filter_id: str, backends: dict[str, CpuBackend]) -> None:
    """In all pairs of case or shape and number of components; boxes take turns."""
    shapes = SMALLER_BOX_SHAPES if filter_id == SLOWEST else BOX_SHAPES
    axes = range(len(test_module(filter_id).CASES)), shapes, (1, 3)
    rows = all_pairs(*axes, need_not=lambda one, _, two: (one, two) == (0, 1))
    for turn, (case, shape, components) in enumerate(rows):
        assert_boxes_of(filter_id, case, components, shape, backends, turn)


@pytest.mark.exhaustive
@volume_cases
@pytest.mark.parametrize("components", [1, 3])
def test_any_box_is_that_part_of_the_whole(
    filter_id: str, case: int, components: int, backends: dict[str, CpuBackend]
) -> None:
    for shape in BOX_SHAPES:
        assert_boxes_of(filter_id, case, components, shape, backends)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize(
    ("filter_id", "parameters"),
    [("median", {"size": 3}), ("gaussian_noise", {"sigma": 0.05}), ("rotating_mask", {})],
)
def test_a_box_of_a_filter_for_pictures(
    filter_id: str, parameters: dict[str, Any], dtype: str, backends: dict[str, CpuBackend]
) -> None:
    for axis in range(3):
        step = Step.of_numbers(filter_id, parameters, axis=axis)
        assert_boxes(step, scan_of((6, 11, 8), 2, dtype), backends, f"{dtype}, axis {axis}")


def test_the_parameters_of_boxes_come_from_the_whole_once(
    backends: dict[str, CpuBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, calls = filters.get("mri_nlm"), []

    def resolve(source: Any, parameters: Any) -> Any:
        calls.append(source.shape)
        return spec.resolve(source, parameters)

    watched = replace(spec, resolve=resolve)
    scan = scan_of((6, 5, 8), 1)
    steps = [Step.of_numbers("mri_nlm", {"search_radius": radius}) for radius in (1, 2)]
    steps = [replace(step, filter=watched) for step in steps]
    for step in (steps[0], steps[0], steps[1]):
        for axis in range(3):
            execute(Request(scan, step, region=Box.slice_of(scan.shape, axis, 1)), backends)
    assert calls == [(6, 5, 8, 1)] * 2


def test_boxes_outside_of_a_volume_or_of_pictures_are_refused() -> None:
    step = Step.of_numbers("mri_nlm")
    for bad in (((4, 0, 0), (1, 1, 1)), ((0, 0, 0), (1, 6, 1)), ((0, 0, 0), (1, 0, 1))):
        with pytest.raises(InvalidParameter, match="6×5×4 voxels"):
            Request(VOLUME, step, region=Box(*bad))
    with pytest.raises(InvalidParameter, match="as a whole"):
        Request(IMAGE, Step.of_numbers("median"), region=Box((0, 0, 0), (1, 1, 1)))
    follow = RunSettings(Step.of_numbers("median"))
    with pytest.raises(InvalidParameter, match="other steps follow"):
        Request(VOLUME, step, region=Box((0, 0, 0), (1, 1, 1)), then=(follow,))


def test_a_gpu_says_that_it_filters_volumes_as_a_whole(backends: dict[str, CpuBackend]) -> None:
    class Card(CpuBackend):
        id, name = "gpu", "GPU"

    card = Card()
    for device, level in ((Device.GPU, "serial"), (Device.AUTO, "tuned")):
        request = Request(
            VOLUME,
            Step.of_numbers("mri_nlm"),
            RunOptions(device=device, level=level),
            region=Box((0, 0, 0), (1, 5, 6)),
        )
        with pytest.raises(InvalidParameter, match="GPU filters volumes as a whole"):
            execute(request, {"gpu": card, **backends})
    card.close()


@pytest.mark.parametrize(("first", "count"), [(0, 8), (5, 7), (8, 1), (15, 2), (21, 4)])
def test_a_filter_of_whole_tiles_gets_whole_tiles(first: int, count: int) -> None:
    """From the tile of its first row to that of its last one, or to the end of the picture."""
    needed = window(Region(first, 0, count, 3), (25, 30, 1), 0, Border.REFLECT, Crop(grid=8))
    assert needed.rows == range(first // 8 * 8, min(25, -(-(first + count) // 8) * 8))
    assert needed.columns == range(8)
    assert (needed.inside.top, needed.inside.height) == (first % 8, count)


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
