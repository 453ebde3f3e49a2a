"""Gaussian filter against NumPy's windows and SciPy, and SciPy's own tests as far as they apply."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from kernelscope.backends.cuda.strips import strip
from kernelscope.base.errors import InvalidParameter
from kernelscope.filters.gaussian import SPEC
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.filters import apply
from tests.oracle import PAD_MODES
from tests.pairs import together

CASES: list[dict[str, Any]] = [
    {"sigma": 1.0},
    {"sigma": 0.3, "truncate": 2.0},
    {"sigma": 2.5, "truncate": 3.5},
    {"sigma": (0.4, 2.0), "truncate": 3.0},
    {"sigma": 12.3},
]

SCIPY_BORDERS = (Border.REFLECT, Border.MIRROR, Border.NEAREST, Border.CONSTANT, Border.WRAP)

DTYPES = [np.dtype(name) for name in ("uint8", "uint16", "float32")]


def smooth(
    source: NDArray[Any], sigma: Any, truncate: float, border: Border
) -> NDArray[np.float64]:
    """Return the Gaussian of `source` in float64, one axis after the other.

    The mask of two sigmas, along x and y, is as wide as it is high.
    """
    sigmas = np.broadcast_to(sigma, 2).tolist()[::-1]
    radius = int(truncate * max(sigmas) + 0.5)
    distances = np.arange(-radius, radius + 1)
    result = source.astype(np.float64)
    for axis, each in enumerate(sigmas):
        weights = np.exp(-(distances**2) / (2 * (each or 1) ** 2))
        weights[np.abs(distances) > int(truncate * each + 0.5)] = 0
        weights /= weights.sum()
        inside = np.ones(result.shape)
        if border is not Border.VALID:
            pad = [(0, 0)] * 3
            pad[axis] = (radius, radius)
            result = np.pad(result, pad, mode=PAD_MODES[border])  # type: ignore[call-overload]
            inside = np.pad(inside, pad, constant_values=border is not Border.REDUCE)
        view = np.lib.stride_tricks.sliding_window_view
        result = view(result, 2 * radius + 1, axis) @ weights
        result /= view(inside, 2 * radius + 1, axis) @ weights
    return result


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    return smooth(source, parameters["sigma"], parameters["truncate"], border)


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """Sums are float32: a result next to a tie may be the other neighbour."""
    return 2e-6 if dtype.kind == "f" else 1


def pixels(dtype: np.dtype[Any], shape: tuple[int, ...] = (61, 83, 1)) -> NDArray[Any]:
    random = np.random.default_rng(len(shape) + shape[0])
    if dtype.kind == "f":
        return random.random(shape).astype(dtype)
    made = random.integers(0, np.iinfo(dtype).max + 1, shape)
    made[: shape[0] // 3] = np.iinfo(dtype).max  # and steps between black and white
    made[shape[0] // 2 :, : shape[1] // 2] = 0
    return made.astype(dtype)


# Against SciPy ------------------------------------------------------------------------


@pytest.mark.parametrize("border", SCIPY_BORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_scipy_rounded_to_the_nearest(dtype: np.dtype[Any], border: Border) -> None:
    """But where SciPy's float is so close to a tie as the docstring says."""
    source = pixels(dtype)
    for sigma, truncate in ((0.3, 4.0), (0.75, 4.0), (2.0, 3.0), (6.6, 4.0), (20.0, 4.0)):
        wanted = ndimage.gaussian_filter(
            source.astype(np.float64), (sigma, sigma, 0), mode=border.value, truncate=truncate
        )
        actual = apply(SPEC, source, {"sigma": sigma, "truncate": truncate}, border)
        if dtype.kind == "f":
            np.testing.assert_allclose(actual, wanted, rtol=0, atol=2e-6)
            continue
        room = 0.001 if dtype.itemsize == 1 else 0.1
        assert np.abs(actual - wanted).max() <= 0.5 + room
        sure = np.abs(wanted % 1 - 0.5) > room
        np.testing.assert_array_equal(actual[sure], np.rint(wanted)[sure], f"sigma {sigma}")
        assert sure.mean() > 0.75


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_white_stays_white_at_every_sigma(dtype: np.dtype[Any]) -> None:
    white = 1.0 if dtype.kind == "f" else np.iinfo(dtype).max
    source = np.full((9, 40, 1), white, dtype)
    for sigma in np.geomspace(0.1, 50, 40):
        for border in (Border.REFLECT, Border.REDUCE):
            actual = apply(SPEC, source, {"sigma": float(sigma)}, border)
            if dtype.kind == "f":
                np.testing.assert_allclose(actual, source, rtol=1e-6)
            else:
                np.testing.assert_array_equal(actual, source, f"sigma {sigma}")


def test_no_sigma_is_no_change() -> None:
    source = pixels(np.dtype(np.float32))
    np.testing.assert_array_equal(apply(SPEC, source, {"sigma": 0.0}), source)


@pytest.mark.parametrize(("sigma", "truncate", "cells"), [(5.0, 2.0, 21), (5.0, 3.5, 37)])
def test_a_point_is_spread_as_far_as_truncate_says(
    sigma: float, truncate: float, cells: int
) -> None:
    """As SciPy's test of `truncate`: so many cells of a line through the point are not zero."""
    source = np.zeros((100, 100, 1), np.float32)
    source[50, 50] = 1
    output = apply(SPEC, source, {"sigma": sigma, "truncate": truncate})
    assert np.count_nonzero(output[:, 50, 0]) == np.count_nonzero(output[50, :, 0]) == cells


# Bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_mirrored_picture_has_the_mirrored_result(dtype: np.dtype[Any]) -> None:
    """Pairs at the same distance are added first."""
    source = pixels(dtype)
    wanted = apply(SPEC, source, {"sigma": 1.9})
    for turn in (np.flipud, np.fliplr):
        turned = np.ascontiguousarray(turn(source))
        np.testing.assert_array_equal(apply(SPEC, turned, {"sigma": 1.9}), turn(wanted))


@pytest.mark.parametrize("border", SPEC.borders)
@pytest.mark.parametrize("dtype", DTYPES)
def test_serial_and_parallel_have_the_same_bits(dtype: np.dtype[Any], border: Border) -> None:
    source = pixels(dtype, (45, 67, 3))
    for case in CASES[:4]:
        serial = apply(SPEC, source, case, border, "serial")
        assert serial.tobytes() == apply(SPEC, source, case, border).tobytes()


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("border", [Border.MIRROR, Border.VALID, Border.REDUCE])
@pytest.mark.parametrize("level", SPEC.levels("gpu"))
def test_every_level_of_a_card_has_the_bits_of_the_processor(level: Any, border: Border) -> None:
    """At a mask that level *tuned* takes in one launch and, last, in two."""
    for dtype, (sigma, shape) in (
        (DTYPES[2], (2.2, (45, 90, 1))),
        (DTYPES[1], (1.0, (35, 43, 3))),  # the mask of the last whole run ends with the picture
        (DTYPES[0], (4.3, (37, 67, 4))),
        (DTYPES[2], ((0.5, 2.2), (45, 90, 1))),
        (DTYPES[0], ((4.3, 0.0), (37, 67, 3))),
    ):
        source = pixels(dtype, shape)
        actual = emulated.run("gaussian", source, {"sigma": sigma}, level.id, border)
        assert actual.tobytes() == apply(SPEC, source, {"sigma": sigma}, border).tobytes()


@needs_compiler
@pytest.mark.slow
def test_a_wide_halo_takes_no_more_shared_memory_than_any_card_has() -> None:
    """Level *tuned*, four channels: from sigma 19 on tiles have fewer rows."""
    shape = (512, 512, 4)
    for sigma in (1.0, 12.0, 18.7, 19.0, 48.7):
        values = SPEC.validate({"sigma": sigma})
        task = CudaTask(shape, shape, DTYPES[0], values, Border.REFLECT, "tuned")
        for launch in CudaPlan.of(SPEC.implementation(Cuda).plan(task)).launches:
            assert launch.shared_bytes <= 64 * 1024, sigma
    source = pixels(DTYPES[0], (21, 67, 4))
    actual = emulated.run("gaussian", source, {"sigma": 20.0}, "tuned")
    np.testing.assert_array_equal(actual, apply(SPEC, source, {"sigma": 20.0}))


# Parameters ---------------------------------------------------------------------------


@together("border", SCIPY_BORDERS)
@together("sigmas", [(1.0, 3.0), (2.5, 0.0), (0.0, 1.5), (0.3, 7.0)])
def test_each_axis_has_its_sigma(sigmas: tuple[float, float], border: Border) -> None:
    """Along x and y here, along y and x for SciPy."""
    source = pixels(DTYPES[2], (61, 43, 3))
    x, y = sigmas
    wanted = ndimage.gaussian_filter(source.astype(np.float64), (y, x, 0), mode=border.value)
    for level in ("serial", "parallel"):
        actual = apply(SPEC, source, {"sigma": sigmas}, border, level)
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=2e-6)
    assert SPEC.radius(SPEC.validate({"sigma": sigmas})) == int(4 * max(sigmas) + 0.5)


def test_the_rows_of_two_sigmas_have_constant_memory_of_their_own() -> None:
    """Both launches of a module would have the weights that were written last."""
    shape = (64, 64, 1)
    for level in SPEC.levels("gpu"):
        values = SPEC.validate({"sigma": (1.0, 2.0)})
        task = CudaTask(shape, shape, DTYPES[0], values, Border.REFLECT, level.id)
        first, second = CudaPlan.of(SPEC.implementation(Cuda).plan(task)).launches
        assert first.defines != second.defines, level.id
        down, across = (
            np.asarray({"constant_weights": each.tables[:1], **each.constants}["constant_weights"])
            for each in (first, second)
        )
        assert down.size == across.size == 9
        assert np.count_nonzero(down) == 9
        assert np.count_nonzero(across) == 5


def test_a_mask_that_is_too_large_is_refused_with_the_largest_sigma() -> None:
    with pytest.raises(InvalidParameter, match="radius of 400") as caught:
        SPEC.validate({"sigma": 100.0})
    assert "up to 50 px" in caught.value.hint
    assert SPEC.radius(SPEC.validate({"sigma": 50.0})) == 200


def test_float64_is_added_up_in_float64() -> None:
    source = np.random.default_rng(3).random((40, 50, 1)) + 1e6
    wanted = ndimage.gaussian_filter(source, (2.0, 2.0, 0))
    for level in ("serial", "parallel"):
        actual = apply(SPEC, source, {"sigma": 2.0}, level=level)
        np.testing.assert_allclose(actual, wanted, rtol=1e-14)


@needs_compiler
@pytest.mark.slow
@together("level", ["global", "shared", "tuned"])
@together("border", [Border.REFLECT, Border.WRAP, Border.VALID, Border.REDUCE])
def test_strips_of_which_only_the_needed_rows_are_there(level: str, border: Border) -> None:
    """In one launch at level *tuned*, and in two."""
    for sigma, channels in ((1.0, 1), (4.3, 4)):
        radius = round(4 * sigma)
        source = pixels(np.dtype(np.uint8), (8 * radius + 41, 47, channels))
        whole = apply(SPEC, source, {"sigma": sigma}, border)
        for rows in itertools.pairwise((0, 1, 21, len(whole) - 3, len(whole))):
            part = strip(len(source), rows, radius, border)
            actual = emulated.run("gaussian", source, {"sigma": sigma}, level, border, part=part)
            np.testing.assert_array_equal(actual, whole[slice(*rows)], str(rows))


@together("border", [Border.MIRROR, Border.CONSTANT, Border.VALID, Border.REDUCE])
@together("width", [3, 29, 700, 5000])
def test_rows_of_any_width(width: int, border: Border) -> None:
    """Narrow ones sample by sample; wide ones in parts, of which the last begins early enough."""
    source = pixels(np.dtype(np.uint16), (90, max(width, 17 if border is Border.VALID else 1), 1))
    serial = apply(SPEC, source, {"sigma": 2.0}, border, "serial")
    np.testing.assert_array_equal(apply(SPEC, source, {"sigma": 2.0}, border), serial)
