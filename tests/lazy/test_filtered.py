"""Blocks of lazy sources have the bytes that the whole has there, borders included."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.big.lazy.blocks import cut
from kernelscope.big.lazy.filtered import filtered
from kernelscope.engine.area import Area
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_recipe
from kernelscope.files.lazy import LazySource, Sides
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind
from tests.contract.test_pictures import each_case, make, parameters_of, test_module
from tests.lazy.arrays import ArraySource
from tests.pairs import all_pairs, in_turn

Compute = Any


@pytest.fixture
def compute() -> Iterator[Compute]:
    backend = CpuBackend(threads=2)
    yield lambda request: execute(request, {"cpu": backend})
    backend.close()


def blocks_of(shape: Sides, label: str) -> list[Sides]:
    """Return sides of blocks: single rows, odd ones, and a last block of one row or column."""
    random = np.random.default_rng(zlib.crc32(label.encode()))
    height, width, last = shape
    return [
        (1, width, last),
        (max(1, height - 1), max(1, width - 1), last),
        (int(random.integers(3, 12)), int(random.integers(5, 17)), last),
    ]


def joined(source: LazySource, sides: Sides) -> NDArray[Any]:
    """Return all of a lazy source, read in blocks of these sides, the last ones first."""
    found = np.empty(source.shape, source.dtype)
    for box in reversed(list(cut(source.shape, sides))):
        part = source.read(box)
        assert part.dtype == source.dtype
        assert part.flags.c_contiguous
        box.of(found)[...] = part
    return found


def whole(recipe: Recipe, source: Any, compute: Compute) -> Any:
    backend = CpuBackend(threads=2)
    try:
        *_, last = execute_recipe(recipe, source, {"cpu": backend})
    finally:
        backend.close()
    return last.output


def assert_blocks(
    step: Step, pixels: NDArray[Any], compute: Compute, label: str, turn: int | None = None
) -> None:
    """Compare the blocks of all sides, or of those whose `turn` it is."""
    wanted = compute(Request(Image.from_array(pixels), step)).output.planes
    lazy = filtered(ArraySource(pixels, Kind.PICTURE), step, compute)
    assert lazy.shape == wanted.shape
    found = blocks_of(lazy.shape, label)
    for sides in found if turn is None else [found[turn % len(found)]]:
        np.testing.assert_array_equal(joined(lazy, sides), wanted, f"{label}, {sides}")


SAMPLES = (((37, 29), 1, "uint8"), ((19, 41), 4, "uint16"), ((21, 17), 3, "float32"))


def assert_blocks_of(
    filter_id: str,
    case: int,
    border: Border,
    sample: tuple[Any, int, str],
    compute: Compute,
    turn: int | None = None,
) -> None:
    """Compare the blocks of a case, if blocks are allowed and the border leaves anything."""
    spec, parameters = filters.get(filter_id), parameters_of(filter_id, case)
    shape, channels, dtype = sample
    if spec.noise is not None:  # blocks refuse to look for its kind
        parameters = {**parameters, spec.noise.parameter: spec.noise.white}
    if spec.uncroppable(parameters):
        return
    if border is Border.VALID and 2 * spec.radius(parameters) + 1 > min(shape):
        return
    pixels = make(np.dtype(dtype), "random", shape)[:, :, :channels].copy()
    step = Step.of_numbers(filter_id, parameters, border=border)
    label = f"case {case}, {border}, {shape}, {channels}, {dtype}"
    assert_blocks(step, pixels, compute, label, turn)


@pytest.mark.slow
@pytest.mark.parametrize("filter_id", filters.discover())
def test_blocks_of_every_filter_at_every_border(filter_id: str, compute: Compute) -> None:
    """In all pairs of border, and type with shape and channels, and radius; blocks in turn.

    Blocks know no more of a case than the radius; each occurs.
    """
    spec, cases = filters.get(filter_id), range(len(test_module(filter_id).CASES))  # type: ignore[union-attr]
    first = {spec.radius(parameters_of(filter_id, case)): case for case in reversed(cases)}
    rows = all_pairs(tuple(first.values()), spec.borders, SAMPLES)
    rows += [
        (case, spec.borders[case % len(spec.borders)], SAMPLES[case % len(SAMPLES)])
        for case in cases
        if case not in first.values()
    ]
    for turn, (case, border, sample) in enumerate(rows):
        assert_blocks_of(filter_id, case, border, sample, compute, turn)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("filter_id", "case"), each_case())
def test_blocks_of_every_combination(filter_id: str, case: int, compute: Compute) -> None:
    for border, sample in itertools.product(filters.get(filter_id).borders, SAMPLES):
        assert_blocks_of(filter_id, case, border, sample, compute)


@pytest.mark.parametrize("border", Border)
def test_blocks_at_each_border(border: Border, compute: Compute) -> None:
    pixels = make(np.dtype(np.float32), "random", (23, 31))[:, :, :3].copy()
    step = Step.of_numbers("median", {"size": 7}, border=border)
    assert_blocks(step, pixels, compute, border)


def test_masks_larger_than_the_picture_wrap_around_it(compute: Compute) -> None:
    pixels = make(np.dtype(np.uint16), "random", (11, 9))[:, :, :1].copy()
    for border in Border:
        if border is not Border.VALID:
            step = Step.of_numbers("mean", {"size": 31}, border=border)
            assert_blocks(step, pixels, compute, border)


def test_noise_is_that_of_the_rows_of_the_whole(compute: Compute) -> None:
    pixels = make(np.dtype(np.uint8), "random", (33, 21))[:, :, :3].copy()
    assert_blocks(Step.of_numbers("gaussian_noise", {"seed": 5}), pixels, compute, "noise")


def test_grey_first_and_an_area(compute: Compute) -> None:
    pixels = make(np.dtype(np.uint8), "random", (33, 41))[:, :, :3].copy()
    assert_blocks(Step.of_numbers("median", {"size": 5}, grey=True), pixels, compute, "grey")
    area = Area.parse("ellipse 3,2 30,31")
    assert_blocks(Step.of_numbers("mean", {"size": 5}, within=area), pixels, compute, "area")


def test_steps_follow_each_other(compute: Compute) -> None:
    pixels = make(np.dtype(np.uint8), "random", (39, 34))[:, :, :3].copy()
    steps = (
        Step.of_numbers("gaussian_noise", {"seed": 3, "sigma": 0.1}),
        Step.of_numbers("median", {"size": 5}, border=Border.WRAP, grey=True),
        Step.of_numbers("mean", {"size": 3}, border=Border.VALID),
    )
    wanted = whole(Recipe(steps), Image.from_array(pixels), compute).planes
    lazy: LazySource = ArraySource(pixels, Kind.PICTURE)
    for step in steps:
        lazy = filtered(lazy, step, compute)
    for sides in blocks_of(lazy.shape, "steps"):
        np.testing.assert_array_equal(joined(lazy, sides), wanted)


# --- volumes, slice by slice ---


def voxels_of(dtype: str, shape: Sides = (7, 13, 11)) -> NDArray[Any]:
    random = np.random.default_rng(len(dtype))
    low = -500 if dtype == "int16" else 0
    return (
        (random.random(shape) * 900 + low).astype(dtype)
        if dtype != "uint8"
        else (random.integers(0, 256, shape).astype(dtype))
    )


def cover(source: LazySource) -> Any:
    """Return boxes of odd sides."""
    return cut(source.shape, (2, 5, 4))


SLICED: dict[str, tuple[dict[str, Any], Border | None]] = {
    "median": ({"size": 3}, Border.MIRROR),
    "mean": ({"size": 5}, Border.WRAP),
    "gaussian_noise": ({"sigma": 0.05, "seed": 2**31 - 3}, Border.REFLECT),
    "rotating_mask": ({}, Border.REDUCE),
    "ripple": ({}, None),
    "nlm": ({"search_radius": 2, "patch": 3}, Border.NEAREST),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filter_id", "dtype"),
    in_turn(tuple(SLICED), ("uint8", "uint16", "int16", "float32"), every=3),
)
def test_blocks_of_slices(filter_id: str, dtype: str, compute: Compute) -> None:
    parameters, border = SLICED[filter_id]
    voxels = voxels_of(dtype)
    scan = Scan((Volume.from_array(voxels),))
    for axis in range(3):
        step = Step.create(filter_id, parameters, border=border, axis=axis)
        wanted = whole(Recipe((step,)), scan, compute).volumes[0].voxels
        lazy = filtered(ArraySource(voxels, Kind.VOLUME), step, compute, cover=cover)
        for sides in ((1, 13, 11), (7, 4, 11), (3, 5, 2)):
            np.testing.assert_array_equal(joined(lazy, sides), wanted, f"{axis}, {sides}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filter_id", "parameters"),
    [
        ("median_3d", {"size": (5, 3, 1)}),
        ("mean_3d", {"size": 5}),
        ("gaussian_3d", {"sigma": 1.0, "truncate": 2.0}),
        ("sobel_3d", {}),
        ("laplace_3d", {"negative": "offset"}),
    ],
)
def test_blocks_of_masks_through_slices(
    filter_id: str, parameters: dict[str, Any], compute: Compute
) -> None:
    """Each border and each type has both sides of blocks."""
    borders, dtypes = filters.get(filter_id).borders, ("uint8", "uint16", "int16", "float32")
    for border, dtype in itertools.product(borders, dtypes):
        voxels, step = voxels_of(dtype), Step.create(filter_id, parameters, border=border)
        wanted = whole(Recipe((step,)), Scan((Volume.from_array(voxels),)), compute)
        lazy = filtered(ArraySource(voxels, Kind.VOLUME), step, compute, cover=cover)
        sides = ((1, 13, 11), (3, 5, 2))[(borders.index(border) + dtypes.index(dtype)) % 2]
        found = joined(lazy, sides)
        np.testing.assert_array_equal(found, wanted.volumes[0].voxels, f"{border}, {dtype}")
        box = Box((0, 0, 0), sides)
        assert lazy.working_bytes(box) > box.of(found).nbytes


def test_a_mask_through_slices_needs_their_sign(compute: Compute) -> None:
    source = ArraySource(voxels_of("int16"), Kind.VOLUME)
    step = Step.create("laplace_3d", {"negative": "clip"})
    with pytest.raises(InvalidParameter, match="clip negative samples"):
        filtered(source, step, compute, cover=cover)
    picture = ArraySource(np.zeros((5, 6, 1), np.uint8), Kind.PICTURE)
    with pytest.raises(InvalidParameter, match="in blocks"):
        filtered(picture, step, compute)


@pytest.mark.slow
def test_a_dark_volume_and_two_steps(compute: Compute) -> None:
    """White of the second step is the brightest voxel that the first one made."""
    for voxels in (voxels_of("int16"), np.full((3, 5, 4), -7, np.int16)):
        steps = (Step.of_numbers("mean", {"size": 5}), Step.of_numbers("gaussian_noise", {}))
        wanted = whole(Recipe(steps), Scan((Volume.from_array(voxels),)), compute)
        lazy: LazySource = ArraySource(voxels, Kind.VOLUME)
        for step in steps:
            lazy = filtered(lazy, step, compute, cover=cover)
        np.testing.assert_array_equal(joined(lazy, (2, 3, 4)), wanted.volumes[0].voxels)


# --- refused ---


@pytest.mark.parametrize(
    ("filter_id", "parameters", "message"),
    [
        ("ripple", {}, "Ripple cannot be computed in blocks: its pattern"),
        ("nlm", {"search": "image", "filter_sigma": 0.1}, "depends on all pixels"),
        ("nlm", {}, "its noise is found from the whole picture"),
        ("mri_nlm", {}, "cannot be computed in blocks"),
    ],
)
def test_filters_of_whole_pictures_are_refused(
    filter_id: str, parameters: dict[str, Any], message: str, compute: Compute
) -> None:
    source = ArraySource(np.zeros((5, 6, 1), np.uint8), Kind.PICTURE)
    with pytest.raises(InvalidParameter, match=message):
        filtered(source, Step.create(filter_id, parameters), compute)


def test_a_border_that_leaves_nothing_is_refused(compute: Compute) -> None:
    source = ArraySource(np.zeros((5, 6, 1), np.uint8), Kind.PICTURE)
    step = Step.of_numbers("mean", {"size": 7}, border=Border.VALID)
    with pytest.raises(InvalidParameter, match="would leave nothing"):
        filtered(source, step, compute)


def test_nan_is_refused_where_it_is_read(compute: Compute) -> None:
    pixels = np.zeros((9, 8, 1), np.float32)
    pixels[4, 4] = np.nan
    lazy = filtered(ArraySource(pixels, Kind.PICTURE, "a.tif"), Step.of_numbers("mean"), compute)
    lazy.read(Box((0, 0, 0), (2, 8, 1)))
    with pytest.raises(InvalidImage, match=r"a\.tif: some samples are NaN"):
        lazy.read(Box((4, 0, 0), (2, 8, 1)))
    with pytest.raises(InvalidImage, match="NaN"):
        filtered(ArraySource(pixels, Kind.VOLUME), Step.of_numbers("mean"), compute)
