"""No kernel reads or writes where it must not, at any level, although its results are right.

The emulated GPU looks at each access: outside the arrays, at cells without a value, beyond the size
of an array, and of two threads that no barrier orders. `test_emulated.py` compares the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.emulator.checking import CheckedBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.spec import launch
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.levels import SHARED, TUNED, Level
from kernelscope.spec.samples import Kind
from tests.backends.quick_compiler import quick_compiler
from tests.contract.test_emulated import rows_of
from tests.contract.test_pictures import make, parameters_of, test_module, without_alpha

pytestmark = pytest.mark.slow

COLUMNS = 33

SPECS = [spec for spec in filters.discover(Kind.PICTURE).values() if spec.levels("gpu")]

HAVE_TUNED = [spec for spec in SPECS if TUNED in spec.levels("gpu")]

TURNS = [
    pytest.param(spec, turn, border, id=f"{spec.id}-{border}")
    for number, spec in enumerate(SPECS)
    for turn, border in enumerate(spec.borders, start=number)
]

DELIBERATE = {("turned_tiles", "no-barrier")}
"""The level that shows what a missing barrier does."""


@pytest.fixture(scope="module")
def backend() -> CheckedBackend:
    backend = CheckedBackend(quick_compiler())
    assert backend.availability().available, "g++ or clang++ runs the kernels of these tests"
    return backend


def run(backend: CheckedBackend, request: Request, levels: Sequence[Level]) -> None:
    """A level reports mistakes if it is there to make them, and no other does."""
    for level in levels:
        backend.findings.clear()
        backend.run(request, level, RunContext())
        found = [str(each) for each in backend.findings]
        if (request.step.filter.id, level.id) in DELIBERATE:
            assert found, level.id
            assert any("without a barrier" in each for each in found), found
            continue
        assert not found, (level.id, found)
        assert backend.unwritten == 0, level.id


@pytest.mark.parametrize(("spec", "turn", "border"), TURNS)
def test_pictures(
    spec: FilterSpec,
    turn: int,
    border: Border,
    backend: CheckedBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "BY_SIZE", False)  # level *tuned* runs its own kernel
    module = test_module(spec.id)
    assert module is not None
    parameters = parameters_of(spec.id, turn % len(module.CASES))
    dtype = DTYPES[turn % len(DTYPES)]
    side = 2 * spec.radius(parameters) + 1
    shape = (max(rows_of(parameters), side), max(COLUMNS, side))
    source = without_alpha(make(dtype, "random", shape), (1, 3)[turn % 2])
    request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
    # Compiling takes the time: with each border every other level, and all levels in two turns of
    # the cases, whose number may be even.
    levels, cases = backend.levels(spec), len(module.CASES)
    first = (turn + (turn // cases if cases % 2 == 0 else 0)) % 2
    run(backend, request, levels[first::2] if len(spec.borders) > 1 else levels)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_blocks_that_compute_several_tiles(
    spec: FilterSpec, backend: CheckedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in large pictures: a tile is not overwritten while threads read it."""
    monkeypatch.setattr(launch, "PIXELS_A_STRIDE", 1)
    levels = [level for level in backend.levels(spec) if level is SHARED]
    source = make(np.dtype(np.uint8), "random", (37, 33))[:, :, :1]
    parameters = parameters_of(spec.id, 0)
    border = spec.borders[0]
    request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
    run(backend, request, levels)


@pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if TUNED in spec.levels("gpu")], ids=lambda spec: spec.id
)
def test_tuned_in_every_case(
    spec: FilterSpec, backend: CheckedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several kernels share the level; parameters choose between them."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    module = test_module(spec.id)
    assert module is not None
    for case in range(len(module.CASES)):
        parameters = parameters_of(spec.id, case)
        shape = rows_of(parameters), COLUMNS
        source = without_alpha(make(np.dtype(np.uint8), "random", shape), 1)
        border = spec.borders[0]
        request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
        run(backend, request, [TUNED])


@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("spec", filters.discover(Kind.VOLUME).values(), ids=lambda spec: spec.id)
def test_volumes(spec: FilterSpec, components: int, backend: CheckedBackend) -> None:
    random = np.random.default_rng(1)
    voxels = (100 + 20 * random.standard_normal((components, 5, 6, 7))).astype(np.float32)
    parameters = dict(spec.defaults())
    for name, value in (("search_radius", 2), ("sigma_from", "local" if components > 1 else None)):
        if name in parameters and value is not None:
            parameters[name] = value
    scan = Scan(tuple(Volume.from_array(each, str(n)) for n, each in enumerate(voxels)))
    run(backend, Request.create(scan, spec.id, parameters), backend.levels(spec))
