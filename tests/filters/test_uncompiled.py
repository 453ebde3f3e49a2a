"""Filters by NumPy alone against their compiled code: integers have the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask, FilterSpec
from kernelscope.schema.levels import PARALLEL
from tests.filters import apply
from tests.filters.test_nlm import tolerance as nlm_tolerance
from tests.oracle import OWN_FOOTPRINT
from tests.pairs import in_turn
from tests.paths import ROOT

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


def test_nearly_all_filters_have_such_a_form() -> None:
    lacking = set(filters.discover()) - set(SETTINGS)
    assert lacking == {"collaborative", "ripple", "sliding_dct"}


def test_the_manual_names_those_that_have_none() -> None:
    page = " ".join((ROOT / "resources" / "docs" / "window.md").read_text("utf-8").split())
    assert "Collaborative filtering, sliding DCT and ripple wait for it." in page


@pytest.mark.parametrize("name", ["maximum", "minimum", "median", "mean", "negative", "sobel"])
def test_doubles_beyond_the_floats(name: str) -> None:
    spec, source = filters.get(name), picture("float32", (12, 11, 1)).astype(np.float64) * 1e50
    actual = by_numpy(spec, source, {}, Border.REDUCE)
    wanted = apply(spec, source, {}, Border.REDUCE)
    np.testing.assert_allclose(actual, wanted, rtol=1e-12)
