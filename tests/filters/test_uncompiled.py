"""Filters by NumPy alone against their compiled code: integers have the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import MIDDLE, WHOLE, Cpu, CpuTask, FilterSpec
from kernelscope.schema.levels import PARALLEL
from kernelscope.schema.samples import Kind
from tests.filters import apply
from tests.filters.cubes import CASES as CUBES
from tests.filters.test_nlm import tolerance as nlm_tolerance
from tests.oracle import OWN_FOOTPRINT
from tests.pairs import all_pairs, in_turn, together

MASKS: list[dict[str, Any]] = [{"size": 7, "footprint": "disk"}, {"footprint": OWN_FOOTPRINT}]

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "bilateral": [{}, {"size": 3, "sigma_range": 0.5}, {"size": 17, "sigma_range": 40.0}],
    "gaussian": [{}, {"sigma": 2.3, "truncate": 3.0}],
    "dot_product": [{}],
    "gaussian_noise": [{}, {"sigma": 0.2, "seed": 5}],
    "greyscale": [{}, {"rounding": "floor"}],
    "laplace": [{}, {"form": "5x5", "negative": "clip"}, {"form": "8", "negative": "offset"}],
    "mask": [
        {},
        {"mask": ((0, -1, 0), (-1, 5, -1), (0, -1, 0)), "divisor": "one"},
        {"mask": ((-1, 0, 1),) * 3, "divisor": "count", "negative": "absolute"},
        {"mask": ((0, 0.5, 0), (0, 0, 2), (0, 0, 0)), "divisor": "sum"},
    ],
    "maximum": [{}, {"size": 7}, *MASKS],
    "mean": [{}, {"size": 17}],
    "median": [{}, {"size": 5}, {"size": 13}, *MASKS],
    "nlm": [
        {"search_radius": 3, "filter_sigma": 0.3},
        {"search_radius": 2, "patch": 3, "colour": "separate", "filter_sigma": 0.2},
        {"search_radius": 2, "patch": 5, "weights": "gaussian", "filter_sigma": 0.4},
    ],
    "minimum": [{}, {"size": 7}, *MASKS],
    "morphology": [
        {"operation": "opening", "size": 5, "footprint": "disk"},
        {"operation": "closing", "footprint": OWN_FOOTPRINT},
        {"operation": "gradient", "footprint": OWN_FOOTPRINT},
        {"operation": "white-top-hat", "footprint": OWN_FOOTPRINT},
        {"operation": "black-top-hat", "size": 3},
    ],
    "negative": [{}],
    "poisson_noise": [{}, {"photons": 5}],
    "rician_noise": [{}],
    "ripple": [{}, {"tick": 31}],
    "rotating_mask": [{}],
    "salt_and_pepper_noise": [{}],
    "sobel": [
        *({"form": form} for form in ("sum", "magnitude", "directions")),
        *({"form": "single", "direction": name} for name in ("N", "SE", "W", "NE")),
    ],
    "speckle_noise": [{}],
    "threshold_mean": [{}, {"size": 5, "threshold": 60.0}],
    "unsharp": [{}, {"sigma": 2.0, "threshold": 9.0}],
    "turned_tiles": [{}],
    "vector_sum": [{}],
    "weighted_mean": [{}, {"size": 9}],
}
CASES = [(name, values) for name, several in SETTINGS.items() for values in several]


def by_numpy(
    spec: FilterSpec, source: np.ndarray, parameters: dict[str, Any], border: Border
) -> np.ndarray:
    values = spec.validate(parameters)
    output = np.empty(spec.output_shape(source.shape, values, border), source.dtype)
    task = CpuTask(source, output, values, border, PARALLEL.id)
    passes = spec.implementation(Cpu).uncompiled(task)
    assert passes
    for sweep in passes:
        for unit in range(sweep.rows):  # as threads have them
            sweep.kernel(*sweep.arguments, unit, unit + 1)
    return output


def picture(dtype: str, shape: tuple[int, int, int]) -> np.ndarray:
    random = np.random.default_rng(shape[0])
    if dtype == "float32":
        return random.random(shape, np.float32) * np.float32(2) - np.float32(0.5)
    pixels = random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    pixels[:6] = np.iinfo(dtype).max  # sums at their bounds
    return pixels


@pytest.mark.parametrize(
    ("case", "dtype", "border"),
    in_turn(CASES, ["uint8", "uint16", "float32"], list(Border), every=9),
)
def test_numpy_gives_the_bytes_of_the_compiled_code(
    case: tuple[str, dict[str, Any]], dtype: str, border: Border
) -> None:
    name, values = case
    spec = filters.get(name)
    if border not in spec.borders:
        return
    for channels in (1, 3):
        source = picture(dtype, (31, 23, channels))
        actual = by_numpy(spec, source, values, border)
        wanted = apply(spec, source, values, border)
        if name == "nlm":  # as between its levels
            most = nlm_tolerance(values, source.dtype)
            np.testing.assert_allclose(actual.astype(float), wanted, rtol=0, atol=most)
        elif dtype == "float32":
            np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=2e-6)
        else:
            np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("border", [Border.MIRROR, Border.VALID, Border.REDUCE])
@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
@pytest.mark.parametrize("name", ["gaussian", "unsharp"])
def test_sums_of_one_order_have_the_same_bits(name: str, dtype: str, border: Border) -> None:
    source = picture("float32" if dtype == "float64" else dtype, (45, 52, 3)).astype(dtype)
    for values in SETTINGS[name]:
        actual = by_numpy(filters.get(name), source, values, border)
        assert actual.tobytes() == apply(filters.get(name), source, values, border).tobytes()


@pytest.mark.parametrize(("name", "values"), [each for each in CASES if each[0] != "nlm"][::2])
def test_pictures_smaller_than_the_mask(name: str, values: dict[str, Any]) -> None:
    spec = filters.get(name)
    for border in Border:
        if border is Border.VALID or border not in spec.borders:
            continue
        source = picture("uint8", (4, 3, 1))
        actual = by_numpy(spec, source, values, border)
        np.testing.assert_array_equal(actual, apply(spec, source, values, border))


def test_all_filters_have_such_a_form() -> None:
    for each in (*map(filters.discover, Kind), filters.in_3d()):
        for spec in each.values():
            assert spec.implementation(Cpu).uncompiled is not Cpu.uncompiled, spec.id


@together(
    ("border", "values", "dtype", "channels"),
    all_pairs(
        [each for each in Border if each is not Border.REDUCE],
        [
            {"sigma": 5.0},
            {"sigma": 4.0, "strength": 150.0},
            {"sigma": 5.0, "chroma": 300.0},
            {"sigma": 5.0, "chroma": 0.0},
            {"sigma": 0.0},
        ],
        ["uint8", "uint16", "float32"],
        [1, 3],
    ),
)
def test_the_sliding_dct_differs_by_rounding(
    border: Border, values: dict[str, Any], dtype: str, channels: int
) -> None:
    spec = filters.get("sliding_dct")
    ramp = np.linspace(0.2, 0.8, 90)[:, None, None] + np.zeros((1, 300, 3))  # more than a tile
    noisy = ramp + np.random.default_rng(2).normal(0, 0.05, ramp.shape)
    white = 1 if dtype == "float32" else np.iinfo(dtype).max
    source = (noisy[:, :, :channels].clip(0, 1) * white).astype(dtype)
    actual = by_numpy(spec, source, values, border).astype(float)
    wanted = apply(spec, source, values, border).astype(float)
    apart = np.abs(actual - wanted)  # most where a coefficient is at the threshold
    if dtype == "float32":
        assert apart.max() < 1e-3
        assert np.median(apart) < 1e-6
    else:
        assert apart.max() <= max(1, 1e-3 * white)
        # 0.015 is usual; in one run of the suite it was 0.028.
        assert np.mean(apart > 0) < 0.04
    if values["sigma"] and values.get("chroma", 100):
        inner = np.s_[20:-20, 20:-20]
        smooth = np.diff(actual / white, axis=1)[inner].std()
        assert smooth < np.diff(noisy, axis=1)[inner].std() / 3


def test_noise_of_each_frequency_is_removed_from_its_own() -> None:
    spec = filters.get("sliding_dct")
    source = np.random.default_rng(3).normal(0.5, 0.1, (40, 50, 3)).astype(np.float32)
    spectra = np.random.default_rng(4).uniform(0.1, 3, (3, 8, 8))
    values = {**spec.validate({"sigma": 10.0}), "spectra": spectra}
    made = []
    for passes in (spec.implementation(Cpu).uncompiled, spec.implementation(Cpu).plan):
        output = np.empty_like(source)
        for sweep in passes(CpuTask(source, output, values, Border.MIRROR, PARALLEL.id)):
            sweep.kernel(*sweep.arguments, 0, sweep.rows)
        made.append(output)
    np.testing.assert_allclose(made[0], made[1], atol=2e-3)
    assert np.abs(made[0] - made[1]).mean() < 1e-5


def head(components: int = 1) -> np.ndarray:
    """Return a volume with Rician noise of sigma 10, as large as some tiles.

    Read-only, as in the program.
    """
    z, y, x = np.mgrid[:10, :40, :50]
    signal = 100 + 80 * np.sin(x / 9) * np.cos(y / 7) * np.cos(z / 5)
    noise = np.random.default_rng(5).normal(0, 10, (2, *signal.shape, components))
    voxels = np.hypot(signal[..., None] + noise[0], noise[1]).astype(np.float32)
    voxels.flags.writeable = False
    return voxels


@pytest.mark.parametrize(
    ("name", "values"), [(name, each) for name, several in CUBES.items() for each in several]
)
def test_masks_of_voxels_have_the_same_bits(name: str, values: dict[str, Any]) -> None:
    spec, source = filters.get(name), np.round(head() * 8)[:, :20, :21] - 300
    source.flags.writeable = False
    for border, box, whole in all_pairs(spec.borders, (None, Box((0, 3, 2), (4, 17, 5))), (0, 1)):
        resolved = {**spec.validate(values), WHOLE: bool(whole), MIDDLE: 4.0}
        made = []
        for passes in (spec.implementation(Cpu).uncompiled, spec.implementation(Cpu).plan):
            output = np.full((*(box.sides if box else source.shape[:3]), 1), np.nan, np.float32)
            for sweep in passes(CpuTask(source, output, resolved, border, PARALLEL.id, part=box)):
                for unit in range(sweep.rows):
                    sweep.kernel(*sweep.arguments, unit, unit + 1)
            made.append(output)
        np.testing.assert_array_equal(made[0], made[1], f"{border} {box} {whole}")


BOXES = [
    None,
    Box((3, 0, 0), (1, 40, 50)),
    Box((0, 35, 0), (10, 1, 50)),
    Box((2, 3, 49), (7, 9, 1)),
]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"noise": "gaussian", "sigma_from": "given", "sigma": (9.0,)},
        {"sigma_from": "adaptive", "strength": 80.0},
        {"strength": 0.0},
    ],
)
def test_the_volume_dct_differs_by_rounding(values: dict[str, Any], box: Box | None) -> None:
    spec, source = filters.get("volume_dct"), head(components=2)
    resolved = spec.resolve(source, spec.validate(values))
    made = []
    for passes in (spec.implementation(Cpu).uncompiled, spec.implementation(Cpu).plan):
        output = np.empty((*(box.sides if box else source.shape[:3]), 2), np.float32)
        task = CpuTask(source, output, resolved, Border.REFLECT, PARALLEL.id, part=box)
        for sweep in passes(task):
            for unit in range(sweep.rows):
                sweep.kernel(*sweep.arguments, unit, unit + 1)
        made.append(output)
    actual, wanted = made
    assert np.abs(actual - wanted).max() < 1  # of a coefficient at the threshold
    np.testing.assert_allclose(np.median(np.abs(actual - wanted)), 0, atol=1e-4)


def test_methods_that_stand_in_have_the_name_of_a_filter() -> None:
    named = {
        spec.id: spec.implementation(Cpu).stand_in
        for kind in Kind
        for spec in filters.discover(kind).values()
        if spec.implementation(Cpu).stand_in
    }
    assert named == {
        "collaborative": "sliding DCT",
        "volume_collaborative": "volume DCT",
        "mri_nlm": "volume DCT",
    }


@pytest.mark.parametrize("name", ["maximum", "minimum", "median", "mean", "negative", "sobel"])
def test_doubles_beyond_the_floats(name: str) -> None:
    """As floats, but for the factor: code for doubles would be compiled for this test alone."""
    spec, source, factor = filters.get(name), picture("float32", (12, 11, 1)), 2.0**150
    actual = by_numpy(spec, source.astype(np.float64) * factor, {}, Border.REDUCE) / factor
    # White is next to nothing there.
    wanted = -source if name == "negative" else apply(spec, source, {}, Border.REDUCE)
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)
