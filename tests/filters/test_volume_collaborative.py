"""Collaborative filtering of volumes; its quality on heads, and that of the volume DCT."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

from kernelscope.filters.volume_collaborative import (
    SPEC,
    Part,
    divide,
    filter_squares,
    grid_of,
    plan_cpu,
)
from kernelscope.filters.volume_dct import SPEC as VOLUME_DCT
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuTask, FilterSpec
from kernelscope.schema.levels import PARALLEL
from tests.filters.volume_noise import of_unit_noise
from tests.filters.volumes import anatomy, phantom_head, quality

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"noise": noise, "sigma_from": sigma_from}
    | ({"sigma": (15.0,)} if sigma_from == "given" else {})
    for noise, sigma_from in itertools.product(
        ("auto", "rician", "gaussian", "camera"), ("given", "volume", "adaptive")
    )
] + [
    {"sigma": (20.0,), "sigma_from": "given", "strength": 250.0},
    {"sigma": (20.0,), "sigma_from": "given", "strength": 0.0},
]

SHAPES = ((1, 1, 1), (1, 8, 9), (4, 7, 6), (5, 7, 9))
"""Elsewhere cubes that are mirrored are equally alike but for the last digits, which decide on
their order, and Haar's transform depends on it: see `test_each_stage_equals_the_oracle`."""


def places(size: int, step: int) -> list[int]:
    """Return where reference cubes begin along an axis of the domain."""
    return sorted({*range(0, size + 5, step), size + 4})


def haar(count: int) -> NDArray[Any]:
    """Return the orthonormal Haar transform of `count` numbers, in any order of its rows."""
    if count == 1:
        return np.eye(1)
    half = np.eye(count // 2)
    sums, differences = np.kron(half, [1, 1]), np.kron(half, [1, -1])
    return np.concatenate([haar(count // 2) @ sums, differences]) / np.sqrt(2)


def distances(area: NDArray[Any], cube: NDArray[Any]) -> NDArray[Any]:
    """Return sums of squared differences, as the filter adds them up.

    Columns of cubes first, then these: mirrored cubes are equally alike but for the last digits.
    """
    squares = np.square(area - cube)
    assert squares.dtype == np.float32
    columns = np.zeros((*squares.shape[:3], 4), np.float32)
    for z, y in itertools.product(range(4), range(4)):
        columns += squares[..., z, y, :]
    return columns[..., 0] + columns[..., 1] + columns[..., 2] + columns[..., 3]


def groups(cubes: NDArray[Any], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Yield the places of each group, as rows of indices: those that are most alike."""
    ends = np.array(sizes) + 5
    for reference in itertools.product(*map(places, sizes, steps)):
        low = np.maximum(np.array(reference) - 4, 0)
        high = np.minimum(np.array(reference) + 5, ends)
        area = cubes[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
        squares = distances(area, cubes[reference])
        order = np.argsort(squares, axis=None, kind="stable")
        found = np.transpose(np.unravel_index(order, squares.shape)) + low
        others = found[(found != reference).any(axis=1)]
        yield np.concatenate([[reference], others])[:32]


def stage(noisy: NDArray[Any], guide: NDArray[Any], sigma: float, wiener: bool) -> NDArray[Any]:
    sizes = tuple(n - 8 for n in noisy.shape)
    line = np.kaiser(4, 2.6)
    window = np.einsum("i,j,k->ijk", line, line, line)
    cubes, guides = (
        np.lib.stride_tricks.sliding_window_view(each, (4, 4, 4)) for each in (noisy, guide)
    )
    top, bottom = np.zeros(noisy.shape), np.zeros(noisy.shape)
    compared = np.lib.stride_tricks.sliding_window_view(guide.astype(np.float32), (4, 4, 4))
    places = np.array(list(groups(compared, sizes, (3, 3, 3) if wiener else (4, 4, 3))))
    at = tuple(np.moveaxis(places, 2, 0))
    along = haar(32)

    def spectra(cubes: NDArray[Any]) -> NDArray[Any]:
        """Return those of all groups, shape (groups, 32, 4, 4, 4)."""
        return np.einsum("ij,gjzyx->gizyx", along, dctn(cubes[at], axes=(2, 3, 4), norm="ortho"))

    found = spectra(cubes)
    if wiener:
        squares = spectra(guides) ** 2
        gains = squares / (squares + (0.9 * sigma) ** 2)
    else:
        gains = (np.abs(found) > 3.2 * sigma).astype(float)
    weights = 1 / np.maximum((gains**2).sum((1, 2, 3, 4)), 1)[:, None, None, None, None]
    back = np.einsum("ji,gjzyx->gizyx", along, found * gains)
    made = idctn(back, axes=(2, 3, 4), norm="ortho")
    cells = np.ix_(*map(np.arange, (4, 4, 4)))
    into = tuple(each[..., None, None, None] + cell for each, cell in zip(at, cells, strict=True))
    np.add.at(top, into, weights * window * made)
    np.add.at(bottom, into, np.broadcast_to(weights * window, made.shape))
    return top / bottom


def oracle(source: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any]:
    sigma = parameters["strength"] / 100
    if sigma == 0:
        return source

    def both(volume: NDArray[Any]) -> NDArray[Any]:
        noisy = np.pad(volume, 4, mode="symmetric")
        basic = stage(noisy, noisy, sigma, wiener=False)
        return stage(noisy, basic, sigma, wiener=True)[4:-4, 4:-4, 4:-4]

    return of_unit_noise(source, parameters, both)


@pytest.mark.parametrize("shape", [(1, 9, 7), (4, 1, 5), (7, 9, 10), (3, 2, 21)])
@pytest.mark.parametrize("case", [0, 1, 8, 9])
def test_each_stage_equals_the_oracle(shape: tuple[int, int, int], case: int) -> None:
    """The second one for the same result of the first: even where cubes are equally alike."""
    voxels = np.random.default_rng([*shape, case]).normal(80, 20, (*shape, 1))
    source = np.abs(voxels).astype(np.float32)
    source.flags.writeable = False
    values = SPEC.resolve(source, SPEC.validate(CASES[case]))
    output = np.empty(source.shape, np.float32)
    passes = plan_cpu(CpuTask(source, output, values, Border.REFLECT, PARALLEL.id))
    for sweep in passes:
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    noisy = next(each.arguments[0] for each in passes if each.kernel is filter_squares)
    basic, filtered = (each.arguments[4][0] for each in passes if each.kernel is divide)
    domain = tuple(slice(4, 4 + n + 8) for n in shape)  # within the padding of the buffers
    sigma = values["strength"] / 100
    first = stage(noisy[0][domain], noisy[0][domain], sigma, wiener=False)
    np.testing.assert_allclose(basic[domain], first, atol=5e-5 * sigma)
    second = stage(noisy[0][domain], basic[domain], sigma, wiener=True)[4:-4, 4:-4, 4:-4]
    np.testing.assert_allclose(filtered, second, atol=5e-5 * sigma)


@pytest.mark.parametrize(
    ("spec", "volume", "percent", "least"),
    [
        # MRI NLM has 34.5 and 26.9 dB.
        *((SPEC, phantom_head, *each) for each in ((3, 35.55), (9, 28.2))),
        *((VOLUME_DCT, phantom_head, *each) for each in ((3, 34.85), (9, 27.5))),
        # The authors' program has 45.0, 39.3, 36.8 and 33.7 dB, MRI NLM 43.0, 37.4, 34.7 and 31.2.
        *((SPEC, anatomy, *each) for each in ((1, 45.5), (3, 39.3), (5, 36.75), (9, 33.65))),
        *((VOLUME_DCT, anatomy, *each) for each in ((3, 38.5), (5, 35.7), (9, 32.5))),
    ],
)
def test_removes_noise(
    spec: FilterSpec, volume: Callable[[], NDArray[np.float32]], percent: int, least: float
) -> None:
    given, blind = quality(spec, volume(), percent)
    assert given > least
    assert blind > given - 0.1


@pytest.mark.parametrize("step", [3, 4])
@pytest.mark.parametrize("size", [1, 2, 5, 6, 7, 8, 50])
def test_references_of_a_part_are_all_that_reach_it(size: int, step: int) -> None:
    every = [place - 4 for place in places(size, step)]
    for first in range(-4, size + 4):
        for side in (1, 2, size + 4 - first):
            begin, counts = grid_of(Part((first,) * 3, (side,) * 3, (size,) * 3), (step,) * 3)
            reaching = [n for n, r in enumerate(every) if first - 7 <= r < first + side + 4]
            assert set(reaching) <= set(range(begin[0], begin[0] + counts[0]))
            assert len(reaching) >= counts[0] - 1
