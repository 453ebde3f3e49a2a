"""Hot pixels against the rule in loops, and stars and texture against their own values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data

from kernelscope.filters.hot_pixels import SPEC, hot_share
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
from kernelscope.schema.levels import Level
from kernelscope.schema.samples import colour_count
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.filters import apply
from tests.noise import white_of
from tests.oracle import windows
from tests.pairs import together

CASES: list[dict[str, Any]] = [{}, {"contrast": 0.5}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    hot, dark = (
        sign * of_hot(sign * source.astype(float), white_of(source), parameters, border)
        for sign in (1, -1)
    )
    return np.where(hot != source, hot, dark)


def of_hot(
    source: NDArray[Any], white: float, parameters: Mapping[str, Any], border: Border
) -> NDArray[Any]:
    cells = windows(source, 2, border)[0].astype(float)
    height, width, channels = source.shape
    colours = colour_count(channels)
    far_off = np.abs(np.mgrid[-2:3, -2:3]).max(0)
    contrast, least = parameters["contrast"], 0.01 * white
    output = source.astype(float)
    found: dict[tuple[int, int, int, int, int, int], float] = {}
    reaches = np.zeros((height, width, colours), int)
    for y, x, c in product(range(height), range(width), range(colours)):
        around = cells[y, x, c]
        ring = around[far_off == 2]
        others, beside = around[far_off > 0], around[far_off == 1].max()
        middle, up = around[2, 2], around[2, 2] - ring.max()
        if up <= least or up <= contrast * np.ptp(ring) or beside > middle:
            continue
        if beside - ring.max() < 0.3 * up and middle - others.max() > contrast * np.ptp(others):
            reaches[y, x, c] = 1
        elif colours == 3:
            rises = [cells[y, x, k, 2, 2] - cells[y, x, k][far_off == 2].max() for k in range(3)]
            coloured = all(rise <= 0.12 * up for k, rise in enumerate(rises) if k != c)
            reaches[y, x, c] = 2 * coloured
    for y, x, c in product(range(height), range(width), range(colours)):
        around, reach = cells[y, x, c], reaches[y, x, c]
        up = around[2, 2] - around[far_off == 2].max()
        if reach == 0 and 1 in reaches[y, x] and around[2, 2] > around[far_off > 0].max():
            reach, up = 1, 0
        for s, t in product(range(1 - reach, reach), repeat=2):
            first, last = 2 - reach, 2 + reach
            pairs = [(around[first, 2 + t], around[last, 2 + t], s)]
            pairs += [(around[2 + s, first], around[2 + s, last], t)]
            if s == t == 0:
                pairs += [(around[first, first], around[last, last], 0)]
                pairs += [(around[first, last], around[last, first], 0)]
            a, b, place = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
            value = a + (b - a) * (place + reach) / (2 * reach)
            if around[2 + s, 2 + t] - value > 0.08 * up:
                found[reach, s, t, y, x, c] = value
    for (_, s, t, y, x, c), value in sorted(found.items()):
        if 0 <= y + s < height and 0 <= x + t < width:
            output[y + s, x + t, c] = value
    return output


def photo(dtype: Any = np.uint8, name: str = "coffee") -> NDArray[Any]:
    picture = getattr(data, name)()[100:228, 200:328]
    white = 1 if dtype == np.float32 else np.iinfo(dtype).max
    return (picture.astype(float) / 255 * white).astype(dtype)


def with_hot(planes: NDArray[Any], share: float, spread: bool) -> NDArray[Any]:
    """Return a picture with hot and dark samples, as they are or spread by bilinear demosaicing."""
    random = np.random.default_rng(4)
    hot = np.zeros(planes.shape)
    chosen = random.random(planes.shape[:2]) < share
    channel = random.integers(0, planes.shape[2], planes.shape[:2])
    rises = random.uniform(0.2, 1, planes.shape[:2]) * random.choice([1, -1], planes.shape[:2])
    for c in range(planes.shape[2]):
        hot[..., c] = chosen * (channel == c) * rises
        if spread:
            hot[..., c] = ndimage.convolve(hot[..., c], np.outer([1, 2, 1], [1, 2, 1]) / 4)
    white = white_of(planes)
    return np.clip(planes + hot * white, 0, white).astype(planes.dtype)


def with_grey(planes: NDArray[Any], share: float) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a picture with dots that have one value in all colours, and where these are."""
    random, white, dotted = np.random.default_rng(6), white_of(planes), planes.copy()
    dots = random.random(planes.shape[:2]) < share
    values = random.uniform(0.7, 1, (np.count_nonzero(dots), 1))
    dotted[dots] = np.asarray(values * white, planes.dtype)
    return dotted, dots


def psnr(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    error = (found.astype(float) - wanted) / float(white_of(wanted))
    return float(-10 * np.log10(np.mean(error**2)))


@pytest.mark.slow
@together("spread", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_photos_with_hot_pixels_have_the_values_of_the_rule(dtype: Any, spread: bool) -> None:
    source = with_grey(with_hot(photo(dtype)[:64, :48], 0.02, spread), 0.01)[0]
    wanted = oracle(source, {"contrast": 1.5}, Border.MIRROR)
    found = apply(SPEC, source, {}, border=Border.MIRROR)
    assert np.count_nonzero(found != source) > 40
    if dtype == np.float32:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    else:
        np.testing.assert_array_equal(found, np.rint(wanted))


def with_all(dtype: Any, channels: int) -> NDArray[Any]:
    """Return a picture with hot samples, some side by side, and with values that are no light."""
    hot = with_grey(with_hot(photo(dtype)[:35, :43], 0.03, channels > 1), 0.01)[0]
    random = np.random.default_rng(5)
    for y, x in random.integers(0, (34, 42), (40, 2)):
        down = random.integers(0, 2)
        hot[y, x, 1] = hot[y + down, x + 1 - down, 1] = white_of(hot)
    for top, sign in ((4, 1), (14, -1)):  # apart from all around but one, which is on the far side
        patch = 0.5 + random.uniform(0, 0.02, (5, 5, 3))
        patch[2, 2], patch[1, 2] = 0.5 + 0.2 * sign, 0.5 - 0.3 * sign
        hot[top : top + 5, 12:17] = (white_of(hot) * patch).astype(dtype)
    if dtype == np.float32:
        for value in (np.nan, np.inf, -np.inf, 3e38):
            hot[tuple(random.integers(0, hot.shape, (3, 3)).T)] = value
    alpha = np.maximum(hot[..., : channels - 3], 1)  # the engine gives other colours where it is 0
    source = np.concatenate([hot[..., :1]] if channels == 1 else [hot, alpha], 2)
    source.flags.writeable = False
    return source


def by_numpy(source: NDArray[Any]) -> NDArray[Any]:
    output = np.empty_like(source)
    task = CpuTask(source, output, SPEC.defaults(), Border.MIRROR, "parallel")
    for sweep in SPEC.implementation(Cpu).uncompiled(task):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return output


KINDS = [(np.uint8, 3), (np.float32, 3), (np.uint16, 4), (np.float32, 1)]


@pytest.mark.slow
@together("level", [each.id for each in SPEC.levels("cpu")])
@together(("dtype", "channels"), KINDS)
def test_loops_have_the_bytes_of_numpy(level: str, dtype: Any, channels: int) -> None:
    source = with_all(dtype, channels)
    wanted = by_numpy(source)
    assert np.count_nonzero(wanted != source) > 10
    assert apply(SPEC, source, {}, Border.MIRROR, level).tobytes() == wanted.tobytes()


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("level", SPEC.levels("gpu"), ids=lambda level: level.id)
def test_every_level_of_a_card_has_the_bytes_of_numpy(level: Level) -> None:
    """Types and channels take turns; the contract has all of them, but few hot samples."""
    turn = SPEC.levels("gpu").index(level)
    for dtype, channels in (KINDS[turn % 4], KINDS[(turn + 1) % 4]):
        source = with_all(dtype, channels)
        found = emulated.run("hot_pixels", source, {}, level.id, Border.MIRROR)
        assert found.tobytes() == by_numpy(source).tobytes(), (dtype, channels)


@together("spread", [False, True])
@together("name", ["coffee", "astronaut", "chelsea"])
def test_hot_pixels_are_mended(name: str, spread: bool) -> None:
    clean = photo(name=name)
    noisy = with_hot(clean, 0.003, spread)
    assert psnr(apply(SPEC, noisy, {}), clean) > psnr(noisy, clean) + 5


@together("name", ["coffee", "astronaut", "chelsea"])
def test_grey_dots_are_mended_whole(name: str) -> None:
    """Judged alone, the colours left 35 to 66 % of them coloured."""
    grain = np.random.default_rng(1).normal(0, 5, (128, 128, 3))
    clean = np.rint(np.clip(photo(name=name) + grain, 0, 255)).astype(np.uint8)
    dotted, dots = with_grey(clean, 0.003)
    found = apply(SPEC, dotted, {})
    seen = np.abs(dotted.astype(float) - clean)[dots] > 25
    mended = (found != dotted)[dots]
    half = (seen & ~mended).any(1) & mended.any(1)
    assert np.count_nonzero(mended.any(1)) > 15
    assert 5 * np.count_nonzero(half) < np.count_nonzero(mended.any(1))


def test_the_example_of_the_module() -> None:
    source = np.array([[10, 11, 12]] * 5, np.uint8)
    source = np.pad(source, 1, mode="edge")[..., None]
    for value in (90, 0):
        source[3, 2] = value
        assert apply(SPEC, source, {"contrast": 1.0}, border=Border.MIRROR)[3, 2] == 11


@together("width", [1.5, 1.8, 2.5])
def test_stars_stay(width: float) -> None:
    sky = np.zeros((64, 64, 3))
    random = np.random.default_rng(3)
    y, x = np.mgrid[:64, :64]
    for row, column in random.uniform(4, 60, (20, 2)):
        light = np.exp(-((y - row) ** 2 + (x - column) ** 2) / 2 / (width / 2.355) ** 2)
        sky += random.uniform(0.1, 1) * light[..., None] * random.uniform(0.6, 1, 3)
    source = np.rint(255 * np.clip(sky + 0.02, 0, 1) ** (1 / 2.2)).astype(np.uint8)
    np.testing.assert_array_equal(apply(SPEC, source, {}, border=Border.MIRROR), source)


def test_alpha_stays() -> None:
    colours = with_hot(photo(), 0.01, True)
    alpha = with_hot(photo()[..., :1], 0.01, False)
    found = apply(SPEC, np.concatenate([colours, alpha], 2), {})
    np.testing.assert_array_equal(found[..., 3:], alpha)
    np.testing.assert_array_equal(found[..., :3], apply(SPEC, colours, {}))


@together("value", [np.inf, -np.inf, np.nan, 1e30])
def test_samples_that_are_no_light(value: float) -> None:
    source = np.full((9, 9, 3), 0.5, np.float32)
    source[4, 4, 1] = value
    found = apply(SPEC, source, {}, border=Border.MIRROR)
    np.testing.assert_array_equal(np.delete(found.reshape(81, 3), 40, 0), 0.5)


@together("name", ["camera", "grass", "coins", "astronaut", "chelsea", "coffee", "retina"])
def test_photos_without_hot_pixels_have_none(name: str) -> None:
    planes = np.atleast_3d(getattr(data, name)()[:512, :512] / np.float32(255))
    assert hot_share(planes.astype(np.float32)) == 0
    random = np.random.default_rng(2)
    for photons in (50, 300):
        noisy = np.clip(random.poisson(planes * photons) / photons, 0, 1).astype(np.float32)
        assert hot_share(noisy) == 0
    if planes.shape[2] == 3:
        grey = 0.4 + 0.2 * planes  # in black and in white, half of them cannot be seen
        for spread in (True, False):
            hot = with_hot(grey, 0.004, spread)
            assert hot_share(hot) == pytest.approx(0.004, rel=0.1)
            assert hot_share(1 - hot) == pytest.approx(hot_share(hot), rel=0.01)


@pytest.mark.parametrize("spread", [False, True])
def test_few_hot_pixels_are_found_where_they_are_clear(spread: bool) -> None:
    """Below 2.4e-4 none were: a clean picture with noise may have as many that are less clear."""
    planes = data.retina() / np.float32(255)
    random = np.random.default_rng(2)
    noisy = (random.poisson(planes * 50) / 50).astype(np.float32)
    assert hot_share(noisy) == 0
    hot = with_hot(0.4 + 0.2 * planes, 1e-4, spread)
    assert hot_share(hot) == pytest.approx(1e-4, rel=0.2)
    assert hot_share(1 - hot) == pytest.approx(1e-4, rel=0.2)
    assert hot_share(with_hot(0.4 + 0.2 * planes, 5e-6, spread)) == 0
