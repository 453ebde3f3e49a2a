"""The contract of filters whose mask goes through the slices of volumes: `FilterSpec.in_3d`.

Integers have the bytes of `tests.filters.cubes`, at every level of the CPU and of the emulated GPU,
with every border; floats come as near as their rounding allows.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda.strips import strip
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.backends.emulator import launch as emulated_launch
from kernelscope.backends.emulator.checking import CheckedBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import Cpu, CpuTask
from kernelscope.schema.launch import planned
from tests.backends.emulated import build, needs_compiler
from tests.backends.quick_compiler import quick_compiler
from tests.filters.cubes import CASES, expected, sides_of
from tests.pairs import all_pairs

pytestmark = pytest.mark.slow

SPECS = filters.in_3d()

BORDERS = tuple(border for border in Border if border is not Border.VALID)

TYPES = ("uint8", "uint16", "int16", "float32")

SHAPES = ((1, 1, 1), (1, 9, 7), (4, 1, 5), (3, 2, 11), (6, 21, 40))

each = pytest.mark.parametrize("filter_id", SPECS)


def make(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return voxels of the whole range of their type; of floats from -40 to 160."""
    random = np.random.default_rng([*shape, TYPES.index(dtype)])
    if dtype == "float32":
        return random.uniform(-40, 160, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def request_for(
    filter_id: str, voxels: NDArray[Any], parameters: dict[str, Any], border: Border, **more: Any
) -> Request:
    scan = Scan((Volume.from_array(voxels),))
    return Request.create(scan, filter_id, parameters, border=border, **more)


def assert_equal(actual: NDArray[Any], wanted: NDArray[Any], label: object) -> None:
    assert actual.dtype == wanted.dtype, label
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(actual, wanted, rtol=3e-7, atol=1e-4, err_msg=str(label))
    else:
        np.testing.assert_array_equal(actual, wanted, str(label))


def test_every_choice_has_a_case() -> None:
    assert CASES.keys() == SPECS.keys()
    for filter_id, spec in SPECS.items():
        for parameter in spec.parameters:
            values = {spec.validate(case)[parameter.name] for case in CASES[filter_id]}
            assert {choice.value for choice in parameter.named_values()} <= values


@each
def test_every_level_of_the_processor_equals_the_oracle(
    filter_id: str, backend: CpuBackend
) -> None:
    """In all pairs of case, border, type, shape and level."""
    levels = [level.id for level in SPECS[filter_id].levels("cpu")]
    for row in all_pairs(CASES[filter_id], BORDERS, TYPES, SHAPES, levels):
        case, border, dtype, shape, level = row
        voxels = make(shape, dtype)
        request = request_for(filter_id, voxels, case, border, device=Device.CPU, level=level)
        made = execute(request, {"cpu": backend}).scan.volumes[0].voxels
        assert_equal(made, expected(filter_id, voxels, case, border), row)


@needs_compiler
@each
def test_every_kernel_equals_the_oracle(filter_id: str) -> None:
    """At each level with all borders, types and cases; every second time accesses are checked."""
    spec, plain = SPECS[filter_id], EmulatorBackend(quick_compiler(), threads=1)
    checked = CheckedBackend(quick_compiler())
    small = [case for case in CASES[filter_id] if case.get("size") not in (7, 9)]
    small = [case for case in small if case.get("sigma") != 1.5]
    axes = spec.levels("gpu"), BORDERS, TYPES, small
    rows = all_pairs(*axes, need_not=lambda one, _, two: axes[one] is BORDERS)
    for number, (level, border, dtype, case) in enumerate(rows):
        label = filter_id, level.id, border, dtype, case
        voxels = make(((5, 6, 35), (2, 3, 3))[number % 3 == 2], dtype)
        request = request_for(filter_id, voxels, case, border)
        backend: Any = checked if number % 2 else plain
        checked.findings.clear()
        made = backend.run(request, level, RunContext()).volumes[0].voxels
        assert not checked.findings, label
        assert_equal(made, expected(filter_id, voxels, case, border), label)
    plain.close()


@needs_compiler
@pytest.mark.parametrize("border", [Border.REFLECT, Border.WRAP, Border.CONSTANT, Border.REDUCE])
@pytest.mark.parametrize("level", ["global", "shared"])
def test_slabs_of_slices_have_the_bytes_of_the_whole(level: str, border: Border) -> None:
    """A card with little memory gets some slices and their halo."""
    case, voxels = {"size": (3, 1, 5)}, make((9, 4, 33), "int16").astype(np.float32)
    wanted = expected("median_3d", voxels.astype(np.int16), case, border)
    spec = SPECS["median_3d"]
    parameters = {**spec.validate(case), "whole": True}
    task, plan = planned(spec, (*voxels.shape, 1), voxels.dtype, parameters, border, level)
    (launch,) = plan.launches
    library = build("median_3d", launch.kernel, tuple(sorted(launch.defines.items())))
    for first, last in ((0, 2), (2, 3), (3, 7), (7, 9)):
        part = strip(9, (first, last), 2, border)
        pieces = [voxels[row : row + count] for _, row, count in part.source_pieces(9)]
        output = np.full(voxels.shape, np.nan, np.float32)
        numbers = np.array([33, 4, 9, 1, first, last, part.source_first, first], np.int32)
        with mock.patch.object(emulated_launch, "geometry", return_value=numbers):
            memory = emulated_launch.Memory(np.concatenate(pieces), output, {})
            emulated_launch.run_launch(
                library, launch, task, memory, [], CancelToken(), lambda part: None
            )
        np.testing.assert_array_equal(output[: last - first], wanted[first:last])
        assert np.isnan(output[last - first :]).all()


@each
def test_bands_and_boxes_have_the_bytes_of_the_whole(filter_id: str) -> None:
    spec, source = SPECS[filter_id], make((7, 21, 19), "float32")[..., np.newaxis]
    source.flags.writeable = False
    for case, border in all_pairs(CASES[filter_id], BORDERS):
        values = spec.validate(case)
        results = []
        for box, band in (None, 99), (None, 1), (Box((2, 5, 3), (3, 11, 9)), 2):
            output = np.full((*(box.sides if box else source.shape[:3]), 1), np.nan, np.float32)
            task = CpuTask(source, output, values, border, "parallel", part=box)
            for sweep in spec.implementation(Cpu).plan(task):
                for start in reversed(range(0, sweep.rows, band)):
                    sweep.kernel(*sweep.arguments, start, min(start + band, sweep.rows))
            results.append(output)
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0][2:5, 5:16, 3:12])


@each
def test_the_order_of_axes_does_not_matter(filter_id: str, backend: CpuBackend) -> None:
    """The result of a volume whose axes change places is the result with its axes changed."""
    for case, border in all_pairs(CASES[filter_id], BORDERS):
        voxels = make((5, 7, 9), "uint16")
        z, y, x = sides_of(filter_id, case)
        turned = {**case, "size": (z, x, y)} if "size" in case else case
        if isinstance(case.get("sigma"), tuple):
            x, y, z = case["sigma"]
            turned = {**case, "sigma": (z, x, y)}
        made = [
            execute(
                request_for(filter_id, each, values, border, device=Device.CPU), {"cpu": backend}
            )
            for each, values in (
                (voxels, case),
                (np.ascontiguousarray(voxels.transpose(1, 2, 0)), turned),
            )
        ]
        first, second = (each.scan.volumes[0].voxels for each in made)
        np.testing.assert_array_equal(second, first.transpose(1, 2, 0))


def test_several_volumes_are_filtered_one_by_one(backend: CpuBackend) -> None:
    """Each as if it were alone: bytes stay bytes beside floats."""
    voxels = [make((4, 5, 6), dtype) for dtype in ("uint8", "float32")]
    scan = Scan(tuple(map(Volume.from_array, voxels)))
    done: list[float] = []
    request = Request.create(scan, "mean_3d", {"size": 3}, device=Device.CPU)
    made = execute(request, {"cpu": backend}, progress=lambda stage, part: done.append(part)).scan
    for one, source in zip(made.volumes, voxels, strict=True):
        assert_equal(one.voxels, expected("mean_3d", source, {"size": 3}, Border.REFLECT), "")
    assert done == sorted(done)
    assert done[-1] == 1


def test_tiles_fit_into_the_shared_memory_of_every_card() -> None:
    """The widest masks get smaller blocks, or the kernels of level constant."""
    largest = {"mean_3d": 15, "weighted_mean_3d": 11, "median_3d": 11}
    wide: list[tuple[str, dict[str, Any]]] = [
        *((filter_id, {"size": size}) for filter_id, size in largest.items()),
        *(("gaussian_3d", {"sigma": sigma}) for sigma in (1.0, 10.0, 30.0)),
    ]
    for filter_id, case in wide:
        spec, dtype = SPECS[filter_id], np.dtype(np.float32)
        values = spec.validate(case)
        task, plan = planned(spec, (40, 50, 60, 1), dtype, values, Border.REFLECT, "shared")
        assert all(launch.shared_bytes <= 48 * 1024 for launch in plan.launches), case
        falls_back = case.get("sigma") == 30
        assert bool(plan.notice) is falls_back
        assert all(("constant" in launch.kernel) is falls_back for launch in plan.launches)
        own = planned(spec, task.shape, dtype, values, Border.REFLECT, "global", (16, 8))[1]
        assert all(launch.block == (16, 8, 1) for launch in own.launches)


def test_it_is_for_volumes_and_no_filter_of_its_own() -> None:
    for filter_id, spec in SPECS.items():
        assert filters.get(spec.base_id).in_3d is spec
        assert filter_id not in filters.discover(spec.kind)
        assert spec.validate(spec.defaults()) == spec.defaults()
        assert spec.borders == BORDERS
        with pytest.raises(Exception, match="is for volumes"):
            Request.create(Image.from_array(np.zeros((4, 4), np.uint8)), filter_id)
