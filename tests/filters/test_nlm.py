"""Non-local means against NumPy, against scikit-image, and against the noise it is there for."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from skimage import data
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import denoise_nl_means, estimate_sigma

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.engine.steps import estimate
from kernelscope.filters.gaussian_noise import SPEC as NOISE
from kernelscope.filters.nlm import SPEC
from kernelscope.filters.shared import non_local
from kernelscope.images.image import DTYPES, Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import PARALLEL, SERIAL, Level
from kernelscope.schema.parameters import FloatParameter
from tests.filters import apply
from tests.noise import add_noise, white_of
from tests.oracle import windows
from tests.pairs import in_turn

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {
        "patch": 3,
        "search_radius": 1,
        "filter_sigma": 1.0,
        "patch_sigma": 0.8,
        "weights": "gaussian",
    },
    {
        "patch": 7,
        "search_radius": 3,
        "filter_sigma": 10.0,
        "weights": "uniform",
        "colour": "separate",
    },
    {"patch": 5, "search_radius": 2, "sigma": 20.0, "filter_sigma": 0.1, "noise": "white"},
    # Of so few pixels, the noise is taken for white.
    {"patch": 3, "search_radius": 3, "sigma": 1e3, "filter_sigma": 4e6, "colour": "separate"}
    | {"noise": "correlated"},
    {"patch": 3, "search_radius": 1, "sigma": 10.0, "filter_sigma": 0.1, "noise": "camera"},
    {
        "patch": 5,
        "search_radius": 2,
        "filter_sigma": 3e6,
        "weights": "gaussian",
    },  # a distance among float samples
    {"patch": 3, "search": "image", "filter_sigma": 0.5, "weights": "gaussian"},
    {"patch": 3, "search": "image", "filter_sigma": 0.5, "sigma": 10.0, "strength": 150.0},
]

WATCHED = ((13, 37), (30, 130))
"""Shapes for the sanitizers; see ``tests.gpu.every_kernel``."""

levels = pytest.mark.parametrize("level", SPEC.levels("cpu"), ids=lambda level: level.id)


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    return 1e-4 if dtype.kind == "f" else 1


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    channels = source.shape[2]
    if parameters["colour"] == "separate" and channels > 1:
        single = [oracle(source[:, :, c : c + 1], parameters, border) for c in range(channels)]
        return np.concatenate(single, axis=2)
    side, reach = parameters["patch"], parameters["search_radius"]
    k = np.arange(side) - side // 2
    weights = np.exp(-np.add.outer(k**2, k**2) / (2 * parameters["patch_sigma"] ** 2))
    if parameters["weights"] != "gaussian":
        weights[:] = 1
    strength = (parameters["strength"] / 100) ** 2
    h, floor = parameters["filter_sigma"] * strength, 0.0
    if parameters["weights"] == "corrected":
        floor = 2 * (parameters["sigma"] / 100) ** 2 * strength * side**2 / h
    weights /= white_of(source) * np.sqrt(channels * h)
    patch_border = Border.REFLECT if border is Border.REDUCE else border
    if parameters["search"] == "image":
        patches = windows(source, side // 2, patch_border)[0]
        return average_all(patches, weights, floor=floor).reshape(patches.shape[:3])
    radius = reach + side // 2
    cells = windows(source, radius, patch_border)[0].astype(np.float64)
    counted = windows(source, radius, border)[1]
    own = cells[..., reach : reach + side, reach : reach + side]
    total: Any = 0
    weight: Any = 0
    for y, x in np.ndindex(2 * reach + 1, 2 * reach + 1):
        apart = (weights * (cells[..., y : y + side, x : x + side] - own)) ** 2
        centre = (..., y + side // 2, x + side // 2)
        distances = np.maximum(apart.sum((-3, -2, -1)) - floor, 0)
        alike = counted[centre] * np.exp(-distances)[..., None]
        total, weight = total + alike * cells[centre], weight + alike
    return total / weight


def average_all(
    patches: NDArray[Any],
    weights: NDArray[np.float64],
    pixels: Any = slice(None),
    floor: float = 0.0,
) -> NDArray[np.float64]:
    """Return the averages for some `pixels` over all of them, shape (pixels, channels)."""
    *_, channels, side, _ = patches.shape
    points = (patches * weights).reshape(-1, channels * side * side)
    samples = patches[..., side // 2, side // 2].reshape(-1, channels)
    alike = np.exp(-np.maximum(cdist(points[pixels], points, "sqeuclidean") - floor, 0))
    return alike @ samples / alike.sum(1, keepdims=True)


def picture(side: int) -> NDArray[np.uint8]:
    """Return the middle of the cameraman, which ships with scikit-image; shape (side, side, 1)."""
    start = 256 - side // 2
    return np.ascontiguousarray(data.camera()[start : start + side, start : start + side, None])


def noise_of(colours: int) -> NDArray[np.float32]:
    return np.random.default_rng(colours).random((31, 38, colours), np.float32)


@functools.cache
def wanted_of(colours: int, patch: int, distance: int, h: float) -> NDArray[np.float32]:
    """Return the result of scikit-image, which takes a second over the whole image."""
    found: NDArray[np.float32] = denoise_nl_means(
        noise_of(colours), patch, distance, h, fast_mode=False, channel_axis=-1
    )
    return found


@levels
@pytest.mark.parametrize("colours", [1, 3])
@pytest.mark.parametrize(("patch", "h"), [(3, 0.6), (7, 0.3)])
class TestScikitImage:
    """Its classic mode; the fast one counts the pixel itself twice and drops a row of the patch.

    Its weights go by G² = exp(-k² / 2a²) with a = (patch - 1) / 4 and by h² times their sum, which
    are our patch_sigma = a √2 and filter_sigma. Its exponential is within 4 % of the true one,
    and 0 below exp(-5): `h` is so large here that this does not occur.
    """

    reach = 5

    def compare(
        self, patch: int, h: float, colours: int, level: Level, border: Border, **values: Any
    ) -> float:
        """Return the largest difference where no window or patch leaves the image, or anywhere."""
        source = noise_of(colours)
        k, a = np.arange(patch) - patch // 2, (patch - 1) / 4
        parameters = {
            "patch": patch,
            "patch_sigma": a * 2**0.5,
            "filter_sigma": h**2 * np.exp(-(k**2) / (2 * a**2)).sum() ** 2,
            "weights": "gaussian",
        }
        distance = values.get("search_radius", 60)
        wanted = wanted_of(colours, patch, distance, h)
        actual = apply(SPEC, source, parameters | values, border, level.id)
        margin = patch // 2 + distance
        if border is not Border.MIRROR:
            wanted = wanted[margin:-margin, margin:-margin]
        if border is Border.REDUCE:
            actual = actual[margin:-margin, margin:-margin]
        return float(np.abs(actual - wanted.reshape(actual.shape)).max())

    def test_over_the_whole_image(self, patch: int, h: float, colours: int, level: Level) -> None:
        """Its patches go on as by ``mirror``, its candidates are in the image."""
        options: dict[str, Any] = {"border": Border.MIRROR, "search": "image"}
        assert self.compare(patch, h, colours, level, **options) < 0.0035
        if colours == 3:
            assert self.compare(patch, h, colours, level, colour="separate", **options) > 0.01

    @pytest.mark.parametrize("border", [Border.REDUCE, Border.VALID])
    def test_in_a_window(
        self, patch: int, h: float, colours: int, level: Level, border: Border
    ) -> None:
        """As by ``reduce``, but for the cells of patches outside; ``valid`` has none."""
        assert self.compare(patch, h, colours, level, border, search_radius=self.reach) < 0.0045


@pytest.mark.parametrize("patch", [3, 5, 7])
def test_removes_the_noise_of_source_n(patch: int) -> None:
    """Variance 0.001, the whole image, filter_sigma 0.02: as N's tables, on a smaller picture."""
    clean = picture(96)
    noisy = add_noise(NOISE, clean, variance=0.001)
    denoised = apply(SPEC, noisy, {"patch": patch, "search": "image", "weights": "gaussian"})
    before, after = (peak_signal_noise_ratio(clean, image) for image in (noisy, denoised))
    assert after > before + 0.5


@pytest.mark.parametrize(("colours", "variance"), in_turn([3, 1], [0.0004, 0.004], every=2))
def test_is_sensible_with_its_estimate(variance: float, colours: int) -> None:
    clean = np.ascontiguousarray(data.astronaut()[:160, 100:260, :colours])
    noisy = add_noise(NOISE, clean, variance=variance)
    request = Request.create(Image.from_array(noisy), "nlm")
    denoised = apply(SPEC, noisy, estimate(request, ["sigma", "patch", "filter_sigma"]))
    before, after = (peak_signal_noise_ratio(clean, image) for image in (noisy, denoised))
    assert after > before + 2


class TestEstimate:
    @pytest.mark.parametrize("shape", [(64, 64, 1), (37, 50, 3), (5, 12, 1), (4, 7, 3)])
    def test_equals_that_of_scikit_image(self, shape: tuple[int, ...]) -> None:
        noise = np.random.default_rng(0).normal(0.5, 0.1, shape)
        wanted = estimate_sigma(noise, average_sigmas=True, channel_axis=-1)
        assert non_local.estimate_sigma(noise) == pytest.approx(wanted, rel=1e-9)

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_is_a_share_of_white(self, dtype: np.dtype[Any]) -> None:
        noise = np.random.default_rng(0).normal(0.5, 0.05, (200, 300, 3))
        white = 1 if dtype.kind == "f" else np.iinfo(dtype).max
        pixels = (noise * white).astype(dtype)
        wanted = estimate_sigma(noise, average_sigmas=True, channel_axis=-1)
        assert non_local.estimate_sigma(pixels) == pytest.approx(wanted, rel=0.01)

    def test_flat_places_do_not_count(self) -> None:
        """As in scikit-image, but there only details that are exactly 0 are left out."""
        pixels = np.full((200, 200, 1), 77, np.uint8)
        pixels[:60] = np.random.default_rng(0).normal(77, 10, (60, 200, 1)).astype(np.uint8)
        assert non_local.estimate_sigma(pixels) == pytest.approx(10 / 255, rel=0.05)

    @pytest.mark.parametrize("value", [0, 255])
    def test_is_nothing_without_noise(self, value: int) -> None:
        """The engine then takes the smallest value that the parameter may have."""
        parameter = SPEC.parameter("filter_sigma")
        assert isinstance(parameter, FloatParameter)
        assert parameter.estimate is not None
        for shape in ((1, 1, 1), (64, 48, 3)):
            pixels = np.full(shape, value, np.uint8)
            request = Request.create(Image.from_array(pixels), "nlm")
            numbers = estimate(request, ["filter_sigma", "patch", "sigma"])
            assert numbers == {"sigma": 0, "patch": 3, "filter_sigma": parameter.minimum}
            np.testing.assert_array_equal(apply(SPEC, pixels, numbers), pixels)


@pytest.mark.parametrize("patch", [3, 5, 7, 9, 11])
def test_several_tiles_and_all_sizes(patch: int) -> None:
    """Wider and higher than a tile, with a rest."""
    border = Border.REDUCE if patch in (5, 9) else Border.REFLECT
    source = np.random.default_rng(patch).random((70, 521, 1), np.float32)
    parameters = SPEC.validate({"patch": patch, "search_radius": 2, "filter_sigma": patch**2 / 9})
    wanted = oracle(source, parameters, border)
    actual = apply(SPEC, source, parameters, border)
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=2e-6)


def test_the_widest_window_of_the_widest_tile() -> None:
    source = np.random.default_rng(0).random((1, 530, 1), np.float32)
    parameters = {"patch": 11, "search_radius": 50, "filter_sigma": 2.0}
    parallel, serial = (
        apply(SPEC, source, parameters, Border.WRAP, level.id) for level in (PARALLEL, SERIAL)
    )
    np.testing.assert_allclose(parallel, serial, rtol=0, atol=3e-5)


@pytest.mark.parametrize("colour", ["joint", "separate"])
def test_whole_images_of_several_tiles(colour: str) -> None:
    """More columns than a tile has, and twice three tiles, one of them lower."""
    source = np.random.default_rng(0).random((40, 530, 3), np.float32)
    parameters = {"patch": 3, "search": "image", "filter_sigma": 0.5, "weights": "uniform"}
    actual = apply(SPEC, source, parameters | {"colour": colour}).reshape(-1, 3)
    pixels = np.random.default_rng(1).integers(0, len(actual), 100)
    patches = windows(source, 1, Border.REFLECT)[0]
    group = 3 if colour == "joint" else 1
    for c in range(0, 3, group):
        channels = slice(c, c + group)
        weights = np.full((3, 3), (0.5 * group) ** -0.5)
        wanted = average_all(patches[:, :, channels], weights, pixels)
        np.testing.assert_allclose(actual[pixels, channels], wanted, rtol=0, atol=2e-6)


@levels
@pytest.mark.parametrize("parameters", [{"search": "image"}, {"search_radius": 50}])
def test_stops_within_a_second(parameters: dict[str, Any], level: Level) -> None:
    """A second of two threads' processor time, which other processes cannot stretch."""
    pixels = np.random.default_rng(0).integers(0, 256, (1024, 1024, 3), np.uint8)
    request = Request.create(Image.from_array(pixels), "nlm", parameters)
    token = CancelToken()
    cancelled: list[float] = []

    def cancel() -> None:
        cancelled.append(time.process_time())
        token.cancel()

    timer = threading.Timer(0.5, cancel)

    def start_timer(stage: str, share: float) -> None:
        if stage == "compute" and not timer.ident:
            timer.start()

    with contextlib.closing(CpuBackend(threads=2)) as backend, pytest.raises(Cancelled):
        backend.run(request, level, RunContext(token=token, progress=start_timer))
    stopped = time.process_time()
    timer.join()
    assert stopped - cancelled[0] < 2
