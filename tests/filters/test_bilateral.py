"""The bilateral filter against its definition, scikit-image and OpenCV."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.restoration import denoise_bilateral

from kernelscope.backends import create_backends
from kernelscope.base.jit import BASELINE
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.filters.bilateral import SPEC
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import SERIAL
from tests.filters import apply
from tests.oracle import WHITES, windows
from tests.scripts import run_python
from tests.test_jit import can_run_baseline

CASES: list[dict[str, Any]] = [
    {"size": 5},
    {"size": 3, "sigma_range": 0.5, "sigma_space": 0.7},
    {"size": 17, "sigma_range": 40.0, "sigma_space": 4.0},
]


def gaussian(distances: NDArray[Any], sigma: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.exp(-0.5 * (distances / sigma) ** 2)
    return found


@functools.cache
def table_of(step: int, sigma: float) -> NDArray[np.int64]:
    """Return the weights of differences, `step` levels apart."""
    found = [round(65534 * float(gaussian(np.array(i * step), sigma))) for i in range(1025)]
    return np.array([*found, *[0] * (65536 // step)])


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    """Return exact weighted means: of integers with the integer weights that the module names."""
    size = parameters["size"]
    radius, white = size // 2, WHITES[str(source.dtype)]
    sigma = parameters["sigma_range"] / 100 * white
    cells, counted = windows(source, radius, border)
    differences = np.abs(cells - cells[..., radius : radius + 1, radius : radius + 1])
    y, x = np.mgrid[:size, :size] - radius
    space = gaussian(np.hypot(y, x), parameters["sigma_space"])
    if source.dtype.kind == "f":
        weights = gaussian(differences, sigma) * space * counted
        return (weights * cells).sum(axis=(-2, -1)) / weights.sum(axis=(-2, -1))
    step = 1
    if source.dtype == np.uint16:
        while 1024 * step < min(5 * sigma, 65536):
            step *= 2
    table = table_of(step, sigma)
    entry, rest = np.divmod(differences, step)
    below, above = table[entry], np.append(table[1:], 0)[entry]
    # Halves up, as for the weights.
    factors = (2 * (below * (step - rest) + above * rest) + step) // (2 * step)
    shift = 16 if size <= 16 else 18
    weights = (factors * np.rint(65534 * space).astype(np.int64) + 2 ** (shift - 1)) >> shift
    weights = weights * counted
    return (weights * cells).sum(axis=(-2, -1)) / weights.sum(axis=(-2, -1))


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """Floats look their weights up in a table, which changes the sixth digit."""
    return 2e-5 if dtype.kind == "f" else 0


def noisy_edges(shape: tuple[int, int]) -> NDArray[np.float64]:
    y, x = np.mgrid[: shape[0], : shape[1]]
    clean = 60 + 120 * (x > shape[1] // 2) + 20 * np.sin(y / 5)
    return np.clip(clean + np.random.default_rng(1).normal(0, 12, shape), 0, 255)


@pytest.mark.parametrize("size", [5, 9, 31])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_integer_weights_are_those_of_the_definition(size: int, dtype: type[Any]) -> None:
    """Within a level of 8 bits, and of 16 bits within 1/256 of white's 256th part."""
    scale = 1 if dtype is np.uint8 else 257
    source = (np.rint(noisy_edges((40, 50))) * scale).astype(dtype)[..., None]
    values = {"size": size, "sigma_space": size / 5, "sigma_range": 8.0}
    found = apply(SPEC, source, values).astype(float) / scale
    exact = apply(SPEC, (source / np.float32(255 * scale)), values) * 255
    assert np.abs(found - exact).max() < (0.51 if scale == 1 else 0.01)


def test_weights_of_range_are_those_of_scikit_image() -> None:
    """Whose weights of space are not centred, so that these are flat here."""
    source = (noisy_edges((40, 50)) / 255).astype(np.float32)
    values = {"size": 7, "sigma_space": 100.0, "sigma_range": 12.0}
    wanted = denoise_bilateral(
        source, win_size=7, sigma_color=0.12, sigma_spatial=100.0, bins=10_000, mode="symmetric"
    )
    found = apply(SPEC, source[..., None], values)[..., 0]
    assert np.abs(found - wanted).max() < 5e-4


def test_is_near_opencv() -> None:
    """Which leaves the corners of the square out; they weigh next to nothing here."""
    source = np.rint(noisy_edges((40, 50))).astype(np.uint8)
    values = {"size": 11, "sigma_space": 1.3, "sigma_range": 10.0}
    wanted = cv2.bilateralFilter(source, 11, 25.5, 1.3, borderType=cv2.BORDER_REFLECT)
    found = apply(SPEC, source[..., None], values)[..., 0]
    assert np.abs(found.astype(int) - wanted).max() <= 1


BYTES = np.random.default_rng(7).integers(0, 256, (23, 70, 1)).astype(np.uint8)
"""In rows of a step and a part of one."""


@pytest.mark.slow
@pytest.mark.skipif(not can_run_baseline(), reason="has no code of that kind")
def test_processors_without_tables_in_registers_have_the_same_bytes() -> None:
    code = (
        "from tests.filters.test_bilateral import BYTES, SPEC, apply\n"
        "print(apply(SPEC, BYTES, {'size': 5}).tobytes().hex())"
    )
    older = {"NUMBA_CPU_NAME": BASELINE, "NUMBA_CPU_FEATURES": ""}
    made = run_python(code, env={**os.environ, **older})
    assert bytes.fromhex(made) == apply(SPEC, BYTES, {"size": 5}, level=SERIAL.id).tobytes()


def test_an_edge_stays_and_noise_goes() -> None:
    source = np.rint(noisy_edges((40, 50))).astype(np.uint8)
    found = apply(SPEC, source[..., None], {"size": 9, "sigma_space": 3.0})[..., 0].astype(float)
    assert np.ptp(found[10, :20]) < np.ptp(source[10, :20]) / 2
    assert found[:, 27].min() - found[:, 23].max() > 70


@pytest.mark.parametrize(
    ("size", "sigma", "said"), [(5, 2.0, ""), (5, 2.1, "still 64 %"), (3, 100.0, "still 100 %")]
)
def test_a_sigma_of_space_that_the_mask_cuts_off_is_said(
    size: int, sigma: float, said: str
) -> None:
    values = {"size": size, "sigma_space": sigma}
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    request = Request.create(image, "bilateral", values)
    notices = execute(request, create_backends()).notices
    cut = [each for each in notices if each.startswith("Bilateral: the mask ends at")]
    assert bool(cut) is bool(said)
    assert said in "".join(cut)


def test_the_largest_mask_and_sigma_that_fit_are_not_warned_of() -> None:
    assert SPEC.caution({"size": 31, "sigma_space": 15.0}) == ""
    assert "15 px" in SPEC.caution({"size": 31, "sigma_space": 15.1})


@pytest.mark.parametrize("size", [3, 15, 17, 31])
@pytest.mark.parametrize("border", [Border.REFLECT, Border.REDUCE, Border.VALID, Border.CONSTANT])
def test_bytes_have_the_result_of_plain_loops(size: int, border: Border) -> None:
    """Their sums take 32 bits, which the whitest picture and the widest curves fill."""
    random = np.random.default_rng(size)
    for source in (
        random.integers(0, 256, (40, 37, 3), np.uint8),
        np.full((35, 66, 1), 255, np.uint8),
        random.integers(0, 256, (35, 64, 1), np.uint8),
        random.integers(0, 256, (35, 63, 1), np.uint8),
    ):
        for case in ({"sigma_range": 7.0}, {"sigma_space": 100.0, "sigma_range": 1000.0}):
            values = {"size": size, **case}
            serial = apply(SPEC, source, values, border, "serial")
            np.testing.assert_array_equal(apply(SPEC, source, values, border), serial)
