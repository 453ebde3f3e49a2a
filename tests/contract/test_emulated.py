"""Every kernel runs on the processor and gives the results of its filter's oracle.

The emulated GPU runs the plans, launches and kernels of the real one, so a wrong rank, border or
tile is found without a card. Each border is tried with one type, one number of channels and one
set of parameters, in turn, at every level that a GPU has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.spec import launch
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.levels import TUNED
from kernelscope.spec.samples import Kind
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

pytestmark = pytest.mark.slow

ROWS = 17

SHAPES = ((ROWS, 33), (5, 5), (3, 131))

SPECS = [spec for spec in filters.discover(Kind.PICTURE).values() if spec.levels("gpu")]

HAVE_TUNED = [spec for spec in SPECS if TUNED in spec.levels("gpu")]

TURNS = [
    pytest.param(spec, turn, border, id=f"{spec.id}-{border}")
    for number, spec in enumerate(SPECS)
    for turn, border in enumerate(spec.borders, start=number)
]


def rows_of(parameters: Mapping[str, Any]) -> int:
    """Return the rows of the largest picture: fewer where each pixel is compared with all.

    Candidates still come in two parts, one of them narrow, and in two chunks at level *tuned*.
    """
    return 11 if parameters.get("search") == "image" else ROWS


@pytest.fixture(scope="module")
def backend() -> Iterator[EmulatorBackend]:
    backend = EmulatorBackend(quick_compiler(), threads=1)
    assert backend.availability().available, "g++ or clang++ runs the kernels of these tests"
    yield backend
    backend.close()


@pytest.mark.parametrize(("spec", "turn", "border"), TURNS)
def test_equals_its_oracle(
    spec: FilterSpec,
    turn: int,
    border: Border,
    backend: EmulatorBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "BY_SIZE", False)  # level *tuned* runs its own kernel
    module = test_module(spec.id)
    assert module is not None
    parameters = parameters_of(spec.id, turn % len(module.CASES))
    dtype, colours = DTYPES[turn % len(DTYPES)], (1, 3)[turn % 2]
    tolerance = getattr(module, "tolerance", default_tolerance)(parameters, dtype)
    side = 2 * spec.radius(parameters) + 1
    rows = rows_of(parameters)
    shapes = ((rows, 33), *SHAPES[1:])
    if border is Border.VALID:
        shapes = ((side, side), (side + 2, side + 30), (max(rows, side), max(33, side)))
    for shape in shapes:
        rgba = make(dtype, "random", shape)
        colour = without_alpha(rgba, colours)
        source = np.concatenate([colour, rgba[:, :, 3:]], axis=2) if turn % 3 == 0 else colour
        wanted = expected(spec.id, colour, parameters, border)
        request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
        for level in backend.levels(spec):
            actual = backend.run(request, level, RunContext()).planes
            same = actual[:, :, : wanted.shape[2]]
            if not level.exact:
                assert same.shape == wanted.shape
                continue
            label = f"{level.id}, {dtype}, {shape}, {source.shape[2]} channels"
            assert_close(same, wanted, colour, tolerance, label)


@pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if TUNED in spec.levels("gpu")], ids=lambda spec: spec.id
)
def test_tuned_equals_its_oracle_in_every_case(
    spec: FilterSpec, backend: EmulatorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several kernels share the level; parameters and types choose between them."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    module = test_module(spec.id)
    assert module is not None
    for case in range(len(module.CASES)):
        for dtype in DTYPES:
            parameters = parameters_of(spec.id, case)
            colour = without_alpha(make(dtype, "random", (rows_of(parameters), 33)), 1)
            border = spec.borders[0]
            wanted = expected(spec.id, colour, parameters, border)
            image = Image.from_array(colour)
            request = Request.create(image, spec.id, parameters, border=border)
            actual = backend.run(request, TUNED, RunContext()).planes
            tolerance = getattr(module, "tolerance", default_tolerance)(parameters, dtype)
            assert_close(actual, wanted, colour, tolerance, f"{parameters}, {dtype}")


@pytest.mark.parametrize("components", [1, 3])
def test_volumes_equal_those_of_the_processor(components: int, backend: EmulatorBackend) -> None:
    random = np.random.default_rng(components)
    voxels = [
        100 + 20 * random.standard_normal((9, 11, 13)).astype(np.float32) for _ in range(components)
    ]
    scan = Scan(tuple(Volume.from_array(each, str(n)) for n, each in enumerate(voxels)))
    cpu = CpuBackend(threads=1)
    try:
        for spec in filters.discover(Kind.VOLUME).values():
            parameters = {"sigma": 20.0} if "sigma" in spec.defaults() else {}
            request = Request.create(scan, spec.id, parameters)
            wanted = cpu.run(request, cpu.levels(spec)[0], RunContext()).planes
            assert np.ptp(wanted) > 1
            for level in backend.levels(spec):
                actual = backend.run(request, level, RunContext()).planes
                np.testing.assert_allclose(actual, wanted, atol=2e-3, err_msg=level.id)
    finally:
        cpu.close()
