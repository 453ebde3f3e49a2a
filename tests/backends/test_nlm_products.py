"""Non-local means of bytes as matrix products: how accurate halves are, at their bounds."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.emulator import EmulatorBackend, backend
from kernelscope.backends.emulator.launch import run_launch
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.nlm import SPEC, cuda
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import TUNED
from tests.backends.specialisations import tuned_at_any_size
from tests.filters.test_nlm import oracle
from tests.pairs import all_pairs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_size")]

OPTIMISED = True
"""A few kernels weigh all candidates of many pictures; see the fixture `emulator`."""

SHAPE = (17, 22)

LARGEST_ERROR = 0.6
"""In levels: 0.5 is rounding to whole numbers."""


@pytest.fixture
def any_size() -> Iterator[None]:
    with tuned_at_any_size():
        yield


def pictures() -> dict[str, NDArray[np.uint8]]:
    """Return pictures whose distances are 0, as large as they can be, or close to each other."""
    random, (y, x) = np.random.default_rng(0), np.mgrid[: SHAPE[0], : SHAPE[1]]
    drawn = {
        "black": np.zeros(SHAPE),
        "white": np.full(SHAPE, 255),
        "checks": (y + x) % 2 * 255,
        "bright squares": np.where((y // 5 + x // 5) % 2, 255, 247),
        "one white pixel": np.where((y == 9) & (x == 13), 255, 0),
        "noise": random.integers(0, 256, SHAPE),
        "bright noise": 245 + 4 * random.standard_normal(SHAPE),
        "dark noise": 10 + 4 * random.standard_normal(SHAPE),
        "waves": 128 + 100 * np.sin(x / 4 + y / 9) + 6 * random.standard_normal(SHAPE),
    }
    return {
        name: np.clip(np.rint(picture), 0, 255).astype(np.uint8)[:, :, None]
        for name, picture in drawn.items()
    }


def smallest_sigma(**parameters: Any) -> float:
    """Return the smallest filter_sigma with which level *tuned* multiplies matrices."""
    return next(
        sigma
        for sigma in np.geomspace(1e-4, 1, 400).tolist()
        if "PRODUCTS" in plan((*SHAPE, 1), filter_sigma=sigma, **parameters).launches[0].defines
    )


def plan(shape: tuple[int, int, int], **parameters: Any) -> CudaPlan:
    values = SPEC.validate(parameters)
    task = CudaTask(shape, shape, np.dtype(np.uint8), values, Border.REFLECT, TUNED.id)
    return CudaPlan.of(SPEC.implementation(Cuda).plan(task))


def assert_accurate(
    emulator: EmulatorBackend, sigma: float, search: str, weights: str, name: str
) -> None:
    chosen = {"search": search, "weights": weights, "search_radius": 6}
    parameters = SPEC.validate(
        {**chosen, "filter_sigma": sigma or 1.0001 * smallest_sigma(**chosen)}
    )
    picture = pictures()[name]
    request = Request.create(Image.from_array(picture), SPEC.id, parameters)
    actual = emulator.run(request, TUNED, RunContext()).planes
    error = np.abs(actual - oracle(picture, parameters, Border.REFLECT)).max()
    assert error < LARGEST_ERROR, f"{name}, sigma {sigma}, {search}, {weights}: {error}"


SIGMAS = (0, 0.02, 0.5, 1e9)
"""From the smallest one that comes this way, 0 here, to where all weights are 1."""

SEARCHES, WEIGHTS = ("window", "image"), ("gaussian", "uniform", "corrected")


@pytest.mark.parametrize("name", pictures())
def test_every_weight_is_accurate(emulator: EmulatorBackend, name: str) -> None:
    for drawn, sigma, search, weights in all_pairs([*pictures()], SIGMAS, SEARCHES, WEIGHTS):
        if drawn == name:
            assert_accurate(emulator, sigma, search, weights, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", pictures())
def test_every_weight_of_every_picture_is_accurate(emulator: EmulatorBackend, name: str) -> None:
    for sigma, search, weights in itertools.product(SIGMAS, SEARCHES, WEIGHTS):
        assert_accurate(emulator, sigma, search, weights, name)


def test_results_of_16_bits_are_rounded(emulator: EmulatorBackend) -> None:
    """By sums, not by products; the contract allows a level, which would hide a truncation."""
    noise = np.random.default_rng(4).integers(0, 65536, (17, 22, 1)).astype(np.uint16)
    parameters = SPEC.validate({"patch": 3, "search_radius": 2, "filter_sigma": 0.5})
    request = Request.create(Image.from_array(noise), SPEC.id, parameters)
    actual = emulator.run(request, TUNED, RunContext()).planes
    assert np.abs(actual - oracle(noise, parameters, Border.REFLECT)).max() < LARGEST_ERROR


def test_the_default_radius_is_unrolled() -> None:
    """Its code is compiled for the package."""
    default = SPEC.validate({})["search_radius"]
    weigh = plan((40, 50, 1), patch=7, search_radius=default).launches[-1]
    assert int(weigh.defines["RADIUS"]) == default


def windowed(shape: tuple[int, ...], border: Border, **chosen: Any) -> Request:
    """Return a request for noise on waves, whose candidates are in a window."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    waves = (128 + 90 * np.sin(x / 4 + y / 9))[:, :, None]
    noise = 8 * np.random.default_rng(1).standard_normal(shape)
    picture = np.clip(np.rint(waves + noise), 0, 255).astype(np.uint8)
    parameters = SPEC.validate({"patch": 7, "filter_sigma": 0.05, **chosen})
    return Request.create(Image.from_array(picture), SPEC.id, parameters, border=border)


@pytest.mark.parametrize(
    ("radius", "shape", "border", "patch"),
    [
        (1, (17, 35, 3), Border.REDUCE, 7),
        (2, (19, 18, 1), Border.REFLECT, 7),
        (5, (33, 21, 1), Border.CONSTANT, 7),
        (12, (53, 49, 1), Border.VALID, 7),
        (11, (18, 33, 1), Border.REDUCE, 5),
        (13, (33, 18, 3), Border.CONSTANT, 7),
        (13, (49, 47, 1), Border.VALID, 5),
    ],
)
def test_windows_at_the_bounds_of_what_can_be_unrolled(
    emulator: EmulatorBackend,
    monkeypatch: pytest.MonkeyPatch,
    radius: int,
    shape: tuple[int, ...],
    border: Border,
    patch: int,
) -> None:
    """Radii of 1 and 12 are the bounds; from 13 on, a loop reads candidates in bands."""
    monkeypatch.setattr(cuda, "_UNROLLED", range(1, 13))
    request = windowed(shape, border, search_radius=radius, patch=patch, colour="separate")
    actual = emulator.run(request, TUNED, RunContext()).planes
    (only,) = request.passes()
    wanted = oracle(request.source.planes, only.parameters, border)
    assert np.abs(actual - wanted).max() < LARGEST_ERROR


@pytest.mark.parametrize("radius", [pytest.param(5, marks=pytest.mark.exhaustive), 10, 13])
def test_a_part_of_a_picture_has_the_same_bytes(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, radius: int
) -> None:
    request = windowed((35, 21, 1), Border.REFLECT, search_radius=radius)
    whole = emulator.run(request, TUNED, RunContext()).planes
    rows = range(16, 28)

    some: Any = partial(run_launch, rows=rows)

    def launch_part(library: ctypes.CDLL, launch: Launch, *rest: Any) -> None:
        assert launch.kernel in ("nlm_tuned_norms", "nlm_tuned")
        some(library, launch, *rest)

    monkeypatch.setattr(backend, "run_launch", launch_part)
    part = emulator.run(request, TUNED, RunContext()).planes
    assert np.array_equal(part[rows.start : rows.stop], whole[rows.start : rows.stop])


@pytest.mark.parametrize("patch", [3, 5, 7, 9, 11])
def test_the_whole_image_has_all_candidates(patch: int) -> None:
    """The plan counts the chunks of the kernel, and its scratch has room for every group."""
    prepare, weigh = (
        made := plan((50, 70, 1), search="image", patch=patch, weights="gaussian")
    ).launches
    steps = len(weigh.constants["products_weights"]) // 8
    assert steps == -(-((patch**2 + 1) // 2 + 2) // 8)
    groups = 50 * 5
    assert made.scratch["candidates"].size(7, 50) == groups * (512 * steps + 32)
    assert weigh.steps == -(-groups // cuda._chunk(steps))
    assert prepare.constants is weigh.constants


@pytest.mark.parametrize("patch", [5, 7])
def test_candidates_come_in_bands_where_shared_memory_is_short(patch: int) -> None:
    """The window of the usual radius is read at once, no larger one takes more memory than that."""
    for radius in range(1, 51):
        norms, weigh = (made := plan((40, 50, 1), patch=patch, search_radius=radius)).launches
        if "PRODUCTS" not in norms.defines:
            assert radius > 44
            continue
        _, band, pitch = weigh.constants["window"].tolist()
        assert weigh.tile
        squares = -(-(2 * radius + 4) // 4)
        assert 1 <= band <= squares
        assert band == squares or radius > 10
        rows, columns = (side - 4 + 4 * squares for side in reversed(weigh.tile))
        assert pitch % 2 == 1
        assert pitch > columns
        in_memory = rows if band == squares else weigh.tile[1] - 4 + 4 * band
        positions = pitch * (2 * in_memory + patch - 1)
        assert weigh.shared_bytes == 16 * (positions + 7) <= 64 * 1024
        assert int(weigh.defines["RADIUS"]) == (10 if radius == 10 else 0)
        assert (band == squares) == (radius <= 12)
        pixels = weigh.tile[0] * weigh.tile[1]
        assert int(weigh.defines["WINDOW_TILES"]) * 16 * weigh.block[1] == pixels
        norm_pitch = -(-(50 + 2 * radius) // 4) * 4
        assert made.scratch["norms"].size(5, 40) == 4 * norm_pitch * (5 + 2 * radius)
