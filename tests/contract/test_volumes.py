"""The contract of every filter of volumes, checked for each one that is found.

A filter ``ID`` is tested against its own module ``tests/filters/test_ID.py``, which has

``CASES``
    A list of parameter sets worth testing, with every combination of the choices.
``oracle(source, parameters)``
    The exact result, float64, for a `source` of shape (depth, height, width, components) and
    resolved parameters; independent of ``app``.
``SHAPES``
    Shapes of volumes, where they are not those of this module.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.parameters import ChoiceParameter
from kernelscope.schema.samples import Kind
from tests.pairs import all_pairs, together

pytestmark = pytest.mark.slow

VOLUMES = filters.discover(Kind.VOLUME)

SHAPES = ((1, 1, 1), (1, 9, 7), (4, 1, 5), (3, 2, 11), (6, 5, 8))
"""Single voxels, slices and lines; smaller and larger than the neighbourhood of a voxel."""

TOLERANCE = 1e-4
"""Of the largest voxel; near zero of its square, since results may be roots."""


def test_module(filter_id: str) -> ModuleType:
    return importlib.import_module(f"tests.filters.test_{filter_id}")


test_module.__test__ = False  # type: ignore[attr-defined]

cases = pytest.mark.parametrize(
    ("filter_id", "case"),
    [
        pytest.param(filter_id, case, id=f"{filter_id}-{case}")
        for filter_id in VOLUMES
        for case in range(len(test_module(filter_id).CASES))
    ],
)
each = pytest.mark.parametrize("filter_id", VOLUMES)

SLOWEST = "volume_collaborative"


@functools.cache
def make(shape: tuple[int, int, int], components: int) -> NDArray[np.float32]:
    """Return read-only voxels, the same ones each time: two tissues, noise and some zeros."""
    random = np.random.default_rng([*shape, components])
    voxels = random.normal(60, 15, (*shape, components))
    voxels[random.random(shape) < 0.3] += 100
    voxels[random.random(shape) < 0.1] = 0
    made = np.abs(voxels).astype(np.float32)
    made.flags.writeable = False
    return made


def shapes_for(filter_id: str) -> tuple[tuple[int, int, int], ...]:
    shapes: tuple[tuple[int, int, int], ...] = getattr(test_module(filter_id), "SHAPES", SHAPES)
    return shapes


def assert_close(actual: NDArray[Any], wanted: NDArray[Any], label: str = "") -> None:
    assert np.isfinite(actual).all(), label
    top = max(float(np.abs(wanted).max()), 1e-9)
    linear = np.abs(actual - wanted) / top
    squared = np.abs(np.square(actual) - np.square(wanted)) / top**2
    assert np.minimum(linear, squared).max() <= TOLERANCE, label


def run(
    filter_id: str,
    source: NDArray[np.float32],
    parameters: dict[str, Any],
    level: str,
    rows: int | None = None,
) -> NDArray[np.float32]:
    """Return the result of a level, in bands of `rows`, the last ones first."""
    spec = filters.get(filter_id)
    source = source.view()
    source.flags.writeable = False  # as in the program
    values = spec.resolve(source, spec.validate(parameters))
    output = np.full(source.shape, np.nan, np.float32)
    for sweep in spec.implementation(Cpu).plan(
        CpuTask(source, output, values, Border.REFLECT, level)
    ):
        step = rows or sweep.rows
        for start in reversed(range(0, sweep.rows, step)):
            sweep.kernel(*sweep.arguments, start, min(start + step, sweep.rows))
    return output


@each
def test_every_combination_of_choices_has_a_case(filter_id: str) -> None:
    spec = filters.get(filter_id)
    choices = [p for p in spec.parameters if isinstance(p, ChoiceParameter)]
    made = [spec.validate(case) for case in test_module(filter_id).CASES]
    seen = {tuple(values[choice.name] for choice in choices) for values in made}
    assert len(seen) == np.prod([len(choice.choices) for choice in choices])


@each
def test_it_is_described_and_mirrors_its_border(filter_id: str) -> None:
    spec = filters.get(filter_id)
    assert spec.borders == (Border.REFLECT,)
    assert spec.output_shape((3, 4, 5, 2), spec.defaults(), Border.REFLECT) == (3, 4, 5, 2)
    assert all((spec.name, spec.category, spec.source, spec.summary.endswith(".")))
    assert spec.validate(spec.defaults()) == spec.defaults()
    for parameter in spec.parameters:
        assert parameter.help.endswith(".")
        assert parameter.parse(parameter.format(parameter.default)) == parameter.default


def assert_equals_its_oracle(
    filter_id: str, case: int, components: int, shape: tuple[int, int, int], level: str
) -> None:
    spec, module = filters.get(filter_id), test_module(filter_id)
    source = make(shape, components)
    parameters = module.CASES[case]
    wanted = module.oracle(source, spec.resolve(source, spec.validate(parameters)))
    actual = run(filter_id, source, parameters, level)
    assert_close(actual, wanted, f"case {case}, {level} {shape}, {components} components")


@each
def test_every_level_equals_the_oracle(filter_id: str) -> None:
    """In all pairs of case, level, number of components and shape."""
    for case, level, components, shape in all_pairs(
        range(len(test_module(filter_id).CASES)),
        [level.id for level in filters.get(filter_id).levels("cpu")],
        (1, 2, 3),
        shapes_for(filter_id),
    ):
        assert_equals_its_oracle(filter_id, case, components, shape, level)


@pytest.mark.exhaustive
@cases
@pytest.mark.parametrize("components", [1, 2, 3])
def test_every_combination_equals_the_oracle(filter_id: str, case: int, components: int) -> None:
    for shape, level in itertools.product(
        shapes_for(filter_id), filters.get(filter_id).levels("cpu")
    ):
        assert_equals_its_oracle(filter_id, case, components, shape, level.id)


def in_tiles(filter_id: str, case: int) -> bool:
    """Whether a case is split: of the slower filters, some with every noise and origin of sigma."""
    if filter_id == SLOWEST:
        return case in (0, 4, 8)
    return filter_id != "mri_nlm" or case >= 32 or case % 5 == 0


@pytest.mark.parametrize(
    ("filter_id", "case"),
    [
        pytest.param(
            filter_id,
            case,
            id=f"{filter_id}-{case}",
            marks=() if in_tiles(filter_id, case) else pytest.mark.exhaustive,
        )
        for filter_id in VOLUMES
        for case in range(len(test_module(filter_id).CASES))
    ],
)
def test_tiles_and_bands_do_not_matter(filter_id: str, case: int) -> None:
    """A volume of several tiles along each axis: the same bytes for every split."""
    parameters = test_module(filter_id).CASES[case]
    source = make((17, 9, 400), 2)
    whole = run(filter_id, source, parameters, "parallel")
    np.testing.assert_array_equal(whole, run(filter_id, source, parameters, "parallel", 1))
    near = 2 * filters.get(filter_id).radius(filters.get(filter_id).validate(parameters)) + 1
    corner = np.s_[: 1 + near, :, : 40 + near]
    plain = run(filter_id, np.ascontiguousarray(source[corner]), parameters, SERIAL.id, 7)
    # Estimates from the whole volume differ in the corner.
    if not {"volume", "adaptive"} & {str(value) for value in parameters.values()}:
        assert_close(whole[:1, :, :20], plain[:1, :, :20])


@cases
@together("value", [0.0, 70.0, 1e-20, 1e6])
def test_constant_volumes_stay_as_they_are(filter_id: str, case: int, value: float) -> None:
    source = np.full((3, 4, 5, 2), value, np.float32)
    parameters = dict(test_module(filter_id).CASES[case])
    parameters |= {"sigma": (0.0,)} if "sigma" in parameters else {}
    for level in filters.get(filter_id).levels("cpu"):
        actual = run(filter_id, source, parameters, level.id)
        np.testing.assert_allclose(actual, source, rtol=1e-5, atol=1e-17, err_msg=level.id)


@each
def test_resolving_twice_changes_nothing(filter_id: str) -> None:
    spec = filters.get(filter_id)
    source = make((6, 5, 8), 3)
    for case in test_module(filter_id).CASES:
        once = spec.resolve(source, spec.validate(case))
        assert spec.resolve(source, once) == once
        declared = {parameter.name: once[parameter.name] for parameter in spec.parameters}
        assert spec.validate(declared) == declared


@each
def test_it_runs_in_the_engine_and_not_on_pictures(filter_id: str) -> None:
    source = make((6, 5, 8), 2)
    scan = Scan(tuple(Volume.from_array(np.ascontiguousarray(source[..., c])) for c in range(2)))
    backend = CpuBackend(2)
    try:
        for level in filters.get(filter_id).levels("cpu"):
            request = Request.create(scan, filter_id, device=Device.CPU, level=level.id)
            result = execute(request, {"cpu": backend}, CancelToken())
            assert_close(result.scan.planes, run(filter_id, source, {}, level.id))
    finally:
        backend.close()
    with pytest.raises(InvalidParameter, match="is for volumes"):
        Request.create(Image.from_array(np.zeros((4, 4), np.uint8)), filter_id)
    assert Request.create(scan, "median").by_slices
    assert not Request.create(scan, filter_id).by_slices
