"""Every kernel runs on the processor, gives the results of its filter's oracle, and errs nowhere.

The emulated GPU runs the plans, launches and kernels of the real one, so a wrong rank, border or
tile is found without a card. Half of the kernels are compiled so that each access is looked at as
well: outside the arrays, at cells without a value, beyond the size of an array, and of two threads
that no barrier orders. Compiling takes the time, so that levels, borders, cases, types and channels
take turns: each pair of two occurs that has code of its own.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.backends.emulator.checking import CheckedBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema import launch
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import SHARED, TEXTURE, TUNED, Level
from kernelscope.schema.samples import Kind
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import quick_compiler
from tests.contract.test_pictures import (
    assert_close,
    default_tolerance,
    expected,
    make,
    parameters_of,
    test_module,
    without_alpha,
)
from tests.pairs import all_pairs

pytestmark = [needs_compiler, pytest.mark.slow]

ROWS, COLUMNS = 11, 33
"""Two blocks each way. Where each pixel is compared with all, candidates come in two parts, one of
them narrow, and in two chunks at level *tuned*."""

SHAPES = ((ROWS, COLUMNS), (5, 5), (3, 131))

SPECS = [spec for spec in filters.discover(Kind.PICTURE).values() if spec.levels("gpu")]

at_each_border = pytest.mark.parametrize(
    ("spec", "border"),
    [
        pytest.param(spec, border, id=f"{spec.id}-{border}")
        for spec in SPECS
        for border in spec.borders
    ],
)

THIN = {1: (1, 2, 4), 2: (1, 1, 2), 3: (2, 2, 8)}
"""Shapes by components for *volume_collaborative*, of which a block has the cubes along a row:
of 9 x 11 x 13 voxels a launch takes ten seconds, or checked of 5 x 6 x 7 six. The first and the
last have a whole search window."""

DELIBERATE = {("turned_tiles", "no-barrier")}
"""The level that shows what a missing barrier does."""

SAME_VALUE = {("median", "tuned")}
"""Levels at which two threads may write the same value to a pixel of the output: at the ends of the
range their thresholds overlap, and each finds the one median."""


@pytest.fixture(scope="module")
def backend() -> Iterator[EmulatorBackend]:
    backend = EmulatorBackend(quick_compiler(), threads=1)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def checked() -> CheckedBackend:
    return CheckedBackend(quick_compiler())


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "BY_SIZE", False)  # level *tuned* runs its own kernel


def run(backend: EmulatorBackend, request: Request, level: Level, label: str) -> Any:
    """Return the result. A level reports mistakes if it is there to make them, and no other."""
    if not isinstance(backend, CheckedBackend):
        return backend.run(request, level, RunContext()).planes
    backend.findings.clear()
    result = backend.run(request, level, RunContext()).planes
    found = [str(each) for each in backend.findings]
    if (request.step.filter.id, level.id) in SAME_VALUE:
        twice = re.compile(r"writes .* of the output, without a barrier")
        found = [each for each in found if not twice.search(each)]
    if (request.step.filter.id, level.id) in DELIBERATE:
        assert any("without a barrier" in each for each in found), (label, found)
    else:
        assert not found, (label, found)
        assert backend.unwritten == 0, label
    return result


def compare(
    backend: EmulatorBackend,
    spec: FilterSpec,
    level: Level,
    border: Border,
    case: int,
    dtype: np.dtype[Any],
    channels: int,
) -> None:
    """Compare a level with the oracle in a large shape, and in a small or thin one in turn.

    Only in the large one if accesses are checked, and then the mask need not fit into it. Neither
    need that of collaborative filtering, 181 x 181 pixels, whose oracle takes a second for them.
    """
    module, parameters = test_module(spec.id), parameters_of(spec.id, case)
    if not level.exact and dtype.kind == "f":
        dtype = np.dtype(np.uint16)  # floats without a value may be NaN, which no picture holds
    tolerance = getattr(module, "tolerance", default_tolerance)(parameters, dtype)
    side = 2 * spec.radius(parameters) + 1
    is_checked = isinstance(backend, CheckedBackend)
    least = 1 if (is_checked or side > 100) and border is not Border.VALID else side
    first = max(ROWS, least), max(COLUMNS, least)
    others = ((side, side), (side + 2, side + 30)) if border is Border.VALID else SHAPES[1:]
    for shape in (first,) if is_checked else (first, others[case % 2]):
        rgba = make(dtype, "random", shape)
        colour = without_alpha(rgba, 1 if channels < 3 else 3)
        source = np.concatenate([colour, rgba[:, :, 3:]], axis=2) if channels % 2 == 0 else colour
        wanted = expected(spec.id, colour, parameters, border)
        request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
        label = f"{level.id}, {border}, case {case}, {dtype}, {shape}, {channels} channels"
        actual = run(backend, request, level, label)[:, :, : wanted.shape[2]]
        if level.exact:
            assert_close(actual, wanted, colour, tolerance, label)
        else:
            assert actual.shape == wanted.shape, label


def share_code(one: int, value: Any, two: int) -> bool:
    """Whether a value goes through code that others of its axis share, with every one of `two`.

    Levels share code for borders, types and channels, and for the values of cells, except for
    level *tuned*, and level *texture*, whose unit knows some of the borders: see `turns`.
    """
    level, border, case, dtype, channels = range(5)
    if value is TUNED or (value is TEXTURE and two != border):
        return False
    others = {level: (border, case, dtype, channels), border: (case, dtype, channels)}
    return two in others.get(one, (channels,) if one == case else ())


@functools.cache
def turns(filter_id: str) -> dict[Border, list[tuple[Any, ...]]]:
    """Return (level, case, type, channels, whether accesses are checked) at each border.

    Levels that share their code have a fourth of the borders at each filter, in turn.
    """
    spec = filters.get(filter_id)
    levels, cases = spec.levels("gpu"), range(len(test_module(filter_id).CASES))  # type: ignore[union-attr]
    found: dict[Border, list[tuple[Any, ...]]] = {border: [] for border in spec.borders}
    seen: dict[tuple[Level, Border], int] = {}
    axes = levels, spec.borders, cases, DTYPES, (1, 2, 3, 4)
    rows = all_pairs(*axes, need_not=share_code)
    there = {row[:2] for row in rows}
    for level, border in itertools.product(levels, spec.borders):
        turn = levels.index(level) + spec.borders.index(border) + SPECS.index(spec)
        if (level, border) not in there and turn % 4 == 0:
            rows.append((level, border, *(axis[len(rows) % len(axis)] for axis in axes[2:])))
    assert {row[0] for row in rows} == set(levels)
    for level, border, *others in rows:
        # In turn over levels, borders and filters, and over the cases of one level and border.
        number = seen[level, border] = seen.get((level, border), -1) + 1
        turn = levels.index(level) + spec.borders.index(border) + SPECS.index(spec) + number
        found[border].append((level, *others, turn % 2 == 0))
    return found


@at_each_border
def test_equals_its_oracle_and_errs_nowhere(
    spec: FilterSpec, border: Border, backend: EmulatorBackend, checked: CheckedBackend
) -> None:
    for level, case, dtype, channels, is_checked in turns(spec.id)[border]:
        chosen = checked if is_checked else backend
        compare(chosen, spec, level, border, case, dtype, channels)


@pytest.mark.exhaustive
@at_each_border
def test_every_combination_equals_its_oracle_and_errs_nowhere(
    spec: FilterSpec, border: Border, backend: EmulatorBackend, checked: CheckedBackend
) -> None:
    cases = range(len(test_module(spec.id).CASES))  # type: ignore[union-attr]
    for level, case in itertools.product(spec.levels("gpu"), cases):
        for dtype in DTYPES:
            compare(backend, spec, level, border, case, dtype, 1)
            compare(checked, spec, level, border, case, dtype, 4)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_blocks_that_compute_several_tiles(
    spec: FilterSpec, checked: CheckedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in large pictures: a tile is not overwritten while threads read it."""
    monkeypatch.setattr(launch, "PIXELS_A_STRIDE", 1)
    source = make(np.dtype(np.uint8), "random", (19, 33))[:, :, :1]
    parameters, border = parameters_of(spec.id, 0), spec.borders[0]
    request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
    for level in checked.levels(spec):
        if level is SHARED:
            run(checked, request, level, spec.id)


def test_the_median_of_small_pictures_errs_nowhere(
    checked: CheckedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of its own, two rows a thread; the last row has no other one beside it."""
    monkeypatch.setattr(launch, "BY_SIZE", True)
    pixels = make(np.dtype(np.uint8), "random", (ROWS, 32))[:, :, :1]
    request = Request.create(Image.from_array(pixels.copy()), "median", {"size": 3})
    wanted = expected("median", pixels, parameters_of("median", 0), request.step.border)
    np.testing.assert_array_equal(run(checked, request, TUNED, "median"), wanted)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_volumes_equal_those_of_the_processor(
    components: int, backend: EmulatorBackend, checked: CheckedBackend
) -> None:
    """Of one and two components the accesses as well, each level once."""
    random = np.random.default_rng(components)
    cpu = CpuBackend(threads=1)
    try:
        for spec in filters.discover(Kind.VOLUME).values():
            shape = (5, 6, 7) if components < 3 else (9, 11, 13)
            if spec.id == "volume_collaborative":
                shape = THIN[components]
            voxels = 100 + 20 * random.standard_normal((components, *shape)).astype(np.float32)
            scan = Scan(tuple(Volume.from_array(each, str(n)) for n, each in enumerate(voxels)))
            values: dict[str, Any] = {"search_radius": 2, "sigma": 20.0}
            values |= {"sigma_from": "local", "sigma": ()} if components == 2 else {}
            known = spec.defaults()
            if "window_radius" not in known and components == 2:
                values["sigma_from"] = "adaptive"
            parameters = {name: value for name, value in values.items() if name in known}
            request = Request.create(scan, spec.id, parameters)
            wanted = cpu.run(request, cpu.levels(spec)[0], RunContext()).planes
            assert np.ptp(wanted) > 1
            for number, level in enumerate(backend.levels(spec)):
                label = f"{spec.id}, {level.id}, {components} components"
                is_checked = components == 1 + number % 2
                actual = run(checked if is_checked else backend, request, level, label)
                np.testing.assert_allclose(actual, wanted, atol=2e-3, err_msg=label)
    finally:
        cpu.close()
