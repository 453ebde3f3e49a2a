"""Every filter at every level computes the same as its oracle; strips change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend, slabs
from kernelscope.backends.cuda.device_run import PreparedFilter
from kernelscope.engine.context import RunContext
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.filters import hot_pixels, sobel
from kernelscope.images.image import DTYPES, Image
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import TUNED, Level
from tests.backends.specialisations import tuned_at_any_size
from tests.contract.test_pictures import (
    PICTURES,
    SHAPES,
    assert_close,
    borders,
    default_tolerance,
    dtypes,
    each_case,
    expected,
    make,
    parameters_of,
    picture,
    test_module,
    without_alpha,
)
from tests.filters import apply as apply_on_cpu
from tests.filters.test_hot_pixels import KINDS, by_numpy, with_all
from tests.filters.test_sobel import pictures_at_the_bounds
from tests.noise import white_of

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("compiled")]

LARGEST = max(SHAPES, key=lambda shape: shape[0] * shape[1])

on_the_gpu = pytest.mark.parametrize(
    ("filter_id", "case"),
    [parameter for parameter in each_case() if filters.get(str(parameter.values[0])).levels("gpu")],
)
levels = pytest.mark.parametrize(
    ("filter_id", "level"),
    [
        pytest.param(spec.id, level, id=f"{spec.id}-{level.id}")
        for spec in filters.discover().values()
        for level in spec.levels("gpu")
        if level.exact
    ],
)


def exact_levels(spec: FilterSpec) -> list[Level]:
    """Return the levels that promise the right result."""
    return [level for level in spec.levels("gpu") if level.exact]


def ways(spec: FilterSpec) -> list[tuple[str, Level, AbstractContextManager[Any]]]:
    """Return name, level and context of everything that a small picture can be filtered by."""
    found = [(level.id, level, nullcontext()) for level in exact_levels(spec)]
    own = [("tuned kernel", TUNED, tuned_at_any_size())] if TUNED in spec.levels("gpu") else []
    return [*found, *own]


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
    tolerance = tolerance_of(filter_id, parameters, dtype)
    radius = spec.radius(parameters)
    crop = slice(radius, -radius) if border is Border.VALID and radius else slice(None)
    for number in range(PICTURES):
        content, shape = picture(number, dtype, 2 * radius + 1, border)
        rgba = make(dtype, content, shape)
        alpha = rgba[:, :, 3:]
        for colours in (1, 3):
            colour = without_alpha(rgba, colours)
            wanted = expected(filter_id, colour, parameters, border)
            sources = [colour, np.concatenate([colour, alpha], axis=2)]
            # 1 to 4 channels in the largest image, 1 and 4 in the others.
            for source in sources if shape == LARGEST else [sources[colours // 2]]:
                image = Image.from_array(source)
                for name, level, size in ways(spec):
                    label = f"{name}, {content} {shape}, {source.shape[2]} channels"
                    with size:
                        # The backend itself: the engine weighs alpha and divides floats by white.
                        request = Request.create(image, filter_id, parameters, border=border)
                        actual = gpu.run(request, level, RunContext()).planes
                    assert_close(actual[:, :, : wanted.shape[2]], wanted, colour, tolerance, label)
                    np.testing.assert_array_equal(
                        actual[:, :, wanted.shape[2] :],
                        alpha[crop, crop, : source.shape[2] - colours],
                        f"alpha, {label}",
                    )


@pytest.fixture
def rows_of_a_strip(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have every image cut as if the card had room for strips of so many rows, or one tile."""
    of_rows = slabs.slab_rows

    def cut(rows: int) -> None:
        def fit(steps: Sequence[PreparedFilter], fitting: int, devices: int) -> int:
            return of_rows(steps, max(rows, slabs.unit_rows(steps[-1])), devices)

        monkeypatch.setattr(slabs, "fits", lambda *_: False)
        monkeypatch.setattr(slabs, "slab_rows", fit)

    return cut


@on_the_gpu
@dtypes
@borders
def test_strips_equal_one_piece(
    filter_id: str,
    case: int,
    dtype: np.dtype[Any],
    border: Border,
    gpu: CudaBackend,
    rows_of_a_strip: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = filters.get(filter_id)
    if border not in spec.borders:
        pytest.skip("the filter does not offer this border")
    parameters = parameters_of(filter_id, case)
    radius = spec.radius(parameters)
    pixels = without_alpha(make(dtype, "random", (max(67, 2 * radius + 31), 2 * radius + 37)), 3)
    image = Image.from_array(pixels)
    options: dict[str, Any] = {"parameters": parameters, "border": border}
    for name, level, size in ways(spec):
        with size:
            whole = apply(gpu, image, filter_id, level, **options)
            rows_of_a_strip(11)
            strips = apply(gpu, image, filter_id, level, **options)
        monkeypatch.undo()
        assert not any("strips" in notice for notice in whole.notices)
        assert any("strips" in notice for notice in strips.notices), name
        np.testing.assert_array_equal(strips.image.pixels, whole.image.pixels, name)


WIDE: list[tuple[str, list[dict[str, Any]], Sequence[Any], tuple[int, ...], tuple[int, ...]]] = [
    *((each, [{"size": 3}], DTYPES[:1], (1,), (2064, 2056, 2060)) for each in ("mean", "median")),
    ("mean", [{"size": size} for size in (5, 31, 99)], DTYPES, (1, 3), (1404, 1405)),
    ("threshold_mean", [{"size": size} for size in (5, 31)], DTYPES, (1, 3), (1404, 1405)),
    ("median", [{"size": size} for size in (3, 5, 7, 9)], DTYPES, (1,), (412, 413)),
    ("median", [{"size": size} for size in (11, 31)], DTYPES, (1,), (97,)),
    *(
        (each, [{"sigma": sigma} for sigma in (0.1, 1.0, 5.3, 14.0)], DTYPES, (1, 3), (604, 605))
        for each in ("gaussian", "unsharp")
    ),
    # Level tuned: in one launch, and in two, as always where the axes differ.
    ("gaussian", [{"sigma": (0.8, 2.9)}, {"sigma": (6.0, 0.0)}], DTYPES, (1, 3), (604, 605)),
]
"""Filters, parameters, types, colours and widths: blocks away from the border, rows of words and
others, several tiles."""


@pytest.mark.parametrize(
    ("filter_id", "parameters", "dtype", "colours", "width"),
    [(name, *each) for name, *axes in WIDE for each in product(*axes)],
)
def test_wide_pictures_equal_the_cpu(
    filter_id: str,
    parameters: dict[str, Any],
    dtype: np.dtype[Any],
    colours: int,
    width: int,
    gpu: CudaBackend,
    rows_of_a_strip: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one piece, and in strips; results of `valid` are no whole words of a row."""
    spec = filters.get(filter_id)
    pixels = without_alpha(make(dtype, "random", (205, width)), colours)
    levels = spec.levels("gpu") if "sigma" in parameters else [TUNED]
    tolerance = 1e-5 if "mean" in filter_id and dtype.kind == "f" else 0
    for border in (Border.MIRROR, Border.WRAP, Border.VALID, Border.REDUCE):
        wanted = apply_on_cpu(spec, pixels, parameters, border)
        for level, rows in product(levels, (None, 40)):
            with tuned_at_any_size():
                if rows is not None:
                    rows_of_a_strip(rows)
                options = {"parameters": parameters, "border": border}
                made = apply(gpu, Image.from_array(pixels), filter_id, level, **options)
            monkeypatch.undo()
            assert any("strips" in notice for notice in made.notices) == (rows is not None)
            label = f"{level.id}, {border}, strips of {rows}"
            assert_close(made.image.planes, wanted, pixels, tolerance, label)


@pytest.mark.parametrize("level", sobel.SPEC.levels("gpu"), ids=lambda level: level.id)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_angles_next_to_the_bounds_between_two_steps(
    dtype: type, level: Level, gpu: CudaBackend
) -> None:
    """An arctangent matters most there."""
    source, wanted = pictures_at_the_bounds(np.dtype(dtype))
    options = {"parameters": {"form": "angle"}, "border": Border.VALID}
    output = apply(gpu, Image.from_array(source), "sobel", level, **options).image.planes
    np.testing.assert_array_equal(output[::3, ::3, 0], wanted)


@pytest.mark.parametrize("level", hot_pixels.SPEC.levels("gpu"), ids=lambda level: level.id)
def test_many_hot_pixels_have_the_bytes_of_numpy(level: Level, gpu: CudaBackend) -> None:
    for dtype, channels in KINDS:
        source = with_all(dtype, channels)
        source = np.nan_to_num(source).clip(0, white_of(source)).astype(dtype)  # white of floats: 1
        source.flags.writeable = False
        image, options = Image.from_array(source), {"border": Border.MIRROR}
        output = apply(gpu, image, "hot_pixels", level, **options).image
        assert output.planes.tobytes() == by_numpy(source).tobytes(), (dtype, channels)


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
    with tuned_at_any_size():
        actual = apply(gpu, image, filter_id, level)
    tolerance = tolerance_of(filter_id, filters.get(filter_id).defaults(), pixels.dtype)
    assert_close(actual.image.pixels, wanted.image.pixels, pixels, tolerance, level.id)


@levels
def test_grey_first_equals_grey_before(
    filter_id: str, level: Level, gpu: CudaBackend, rows_of_a_strip: Callable[[int], None]
) -> None:
    """Two steps on the card, in one piece and in strips."""
    if filter_id == "greyscale":
        pytest.skip("the result is grey already")
    pixels = np.ascontiguousarray(make(np.dtype(np.uint8), "random", (61, 45))[:, :, :3])
    image = Image.from_array(pixels)
    grey = filters.get("greyscale")
    before = apply(gpu, image, "greyscale", grey.levels("gpu")[-1]).image
    wanted = apply(gpu, before, filter_id, level).image.pixels
    for cut in (False, True):
        if cut:
            rows_of_a_strip(20)
        actual = apply(gpu, image, filter_id, level, grey=True)
        assert any("strips" in notice for notice in actual.notices) == cut
        np.testing.assert_array_equal(actual.image.pixels, wanted)


@levels
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_what_nobody_sees_has_no_effect(
    filter_id: str, level: Level, dtype: str, gpu: CudaBackend
) -> None:
    """As on the CPU, where `tests.library.test_units` compares with formulas."""
    random = np.random.default_rng(5)
    white = 1.0 if dtype == "float32" else np.iinfo(dtype).max
    planes = (random.uniform(0, 1, (70, 90, 4)) * white).astype(dtype)
    planes[..., -1] = white
    planes[10:30, 20:60, -1] = planes[50:, 70:, -1] = 0
    image = Image.from_array(planes)
    cpu = CpuBackend()
    try:
        wanted = execute(Request.create(image, filter_id, device=Device.CPU), {"cpu": cpu})
    finally:
        cpu.close()
    actual = apply(gpu, image, filter_id, level)
    tolerance = tolerance_of(filter_id, filters.get(filter_id).defaults(), planes.dtype)
    assert_close(actual.image.planes, wanted.image.planes, planes, tolerance, level.id)
