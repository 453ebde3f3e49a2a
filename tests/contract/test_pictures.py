"""The contract of every filter, checked for each one that is found.

A filter ``ID`` is tested against its own module ``tests/filters/test_ID.py``, which has

``CASES``
    A list of parameter sets worth testing, with every value of each choice.
``oracle(source, parameters, border)``
    The exact result before rounding and saturation, shape (height', width', channels'), for a
    `source` of shape (height, width, channels) without alpha; independent of ``app``.
``tolerance(parameters, dtype)``, optional
    The largest difference allowed: levels of an integer type, or a fraction of the image's
    range for float32. Without it 0 and 1e-5, as specified for integer masks and for floats.
``slow_levels(parameters)``, optional
    The ids of levels whose work per pixel is so much that they leave out the picture of most
    pixels; the smaller ones have odd sides, lines and several bands as well.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import DTYPES, Image
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask, FilterSpec
from kernelscope.schema.levels import CPU_LEVELS, Level
from kernelscope.schema.parameters import ChoiceParameter
from tests.oracle import to_dtype
from tests.pairs import all_pairs, together

pytestmark = pytest.mark.slow

SHAPES = ((1, 1), (1, 7), (7, 1), (2, 3), (5, 5), (17, 33), (31, 64), (3, 131))
"""Single pixels, lines, smaller than the mask, not a multiple of any vector, and wider."""

MOST_PIXELS = max(SHAPES, key=math.prod)

CONTENTS = {
    np.dtype(np.uint8): ("random", "few", "black", "white"),
    np.dtype(np.uint16): ("random", "few", "black", "white"),
    np.dtype(np.float32): ("random", "even", "wide"),
}
"""Contents of the images; see `make`. The first is used in every shape, the others in one."""


@functools.cache
def test_module(filter_id: str) -> ModuleType | None:
    name = f"tests.filters.test_{filter_id}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


test_module.__test__ = False  # type: ignore[attr-defined]


def each_case() -> list[Any]:
    """Return (filter, index of its case) for every filter that has a test module."""
    return [
        pytest.param(filter_id, case, id=f"{filter_id}-{case}")
        for filter_id in filters.discover()
        for case in range(len(getattr(test_module(filter_id), "CASES", ())))
    ]


dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
borders = pytest.mark.parametrize("border", Border)


def default_tolerance(parameters: dict[str, Any], dtype: np.dtype[Any]) -> float:
    return 1e-5 if dtype.kind == "f" else 0


def parameters_of(filter_id: str, case: int) -> dict[str, Any]:
    return filters.get(filter_id).validate(test_module(filter_id).CASES[case])  # type: ignore[union-attr]


@functools.lru_cache(maxsize=256)
def make(dtype: np.dtype[Any], content: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Return read-only RGBA pixels, the same ones each time.

    ``random`` is rich in black and white, which is where sums overflow and saturate; ``few``
    has few different values, so that ties are frequent; ``wide`` leaves [0, 1] on both sides.
    """
    random = np.random.default_rng([*shape, len(content)])
    size = (*shape, 4)
    white = 1.0 if dtype.kind == "f" else np.iinfo(dtype).max
    if content == "random":
        pixels = random.uniform(0, white, size)
        extreme = random.random(size)
        pixels[extreme < 0.15] = 0
        pixels[extreme > 0.85] = white
    elif content == "wide":
        pixels = random.uniform(-1000, 1000, size)
    elif content == "few":
        pixels = random.integers(0, 4, size).astype(float)
    else:
        pixels = np.full(size, {"black": 0.0, "white": white, "even": 0.3}[content])
    made = pixels.astype(dtype)
    made.flags.writeable = False
    return made


def without_alpha(pixels: NDArray[Any], colours: int) -> NDArray[Any]:
    """Return RGBA `pixels` as RGB (3 colours) or grey (1)."""
    return np.ascontiguousarray(pixels[:, :, :colours])


def run(backend: CpuBackend, request: Request, level: Level) -> NDArray[Any]:
    result = backend.run(request, level, RunContext())
    assert not result.pixels.flags.writeable
    assert result.pixels.flags.c_contiguous
    return result.planes


def assert_same(actual: NDArray[Any], wanted: NDArray[Any], message: str) -> None:
    if not np.array_equal(actual, wanted):  # at once, where NumPy's report takes long to begin
        np.testing.assert_array_equal(actual, wanted, err_msg=message)


def assert_close(
    actual: NDArray[Any],
    wanted: NDArray[Any],
    source: NDArray[Any],
    tolerance: float,
    message: str,
) -> None:
    """Compare bytes, or where a `tolerance` is allowed, differences."""
    assert actual.dtype == wanted.dtype, message
    assert actual.shape == wanted.shape, message
    if tolerance == 0:
        assert_same(actual, wanted, message)
        return
    if source.dtype.kind == "f":
        tolerance *= max(float(np.ptp(source)), float(np.abs(source).max()))
    difference = np.abs(actual.astype(np.float64) - wanted.astype(np.float64))
    assert difference.max() <= tolerance, f"{message}: off by {difference.max()}"


def expected(
    filter_id: str, source: NDArray[Any], parameters: dict[str, Any], border: Border
) -> NDArray[Any]:
    """Return the result of the filter's oracle, in the type of `source`, which has no alpha.

    With border ``keep`` that is the source, and within it the part that fits.
    """
    module = test_module(filter_id)
    assert module is not None
    if border is not Border.KEEP:
        return to_dtype(module.oracle(source, parameters, border), source.dtype)
    spec = filters.get(filter_id)
    radius = spec.radius(parameters)
    wanted = np.empty(spec.output_shape(source.shape, parameters, border), source.dtype)
    wanted[:] = source if radius else 0
    if min(source.shape[:2]) > 2 * radius:
        inside = slice(radius, -radius or None)
        exact = module.oracle(source, parameters, Border.VALID)
        wanted[inside, inside] = to_dtype(exact, source.dtype)
    return wanted


def levels(spec: FilterSpec, dtype: np.dtype[Any]) -> list[Level]:
    """Return the levels for samples of `dtype`: of a filter's own levels, those that take them."""
    usual = {level.id for level in CPU_LEVELS}
    source = np.zeros((99, 99, 1), dtype)

    def takes(level: Level) -> bool:
        task = CpuTask(source, source.copy(), spec.defaults(), Border.REFLECT, level.id)
        try:
            spec.implementation(Cpu).plan(task)
        except InvalidImage:
            return False
        return True

    return [level for level in spec.levels("cpu") if level.id in usual or takes(level)]


def variants(spec: FilterSpec) -> list[tuple[np.dtype[Any], Level]]:
    """Return all pairs of a type and a level that takes it: each has code of its own."""
    return [(dtype, level) for dtype in DTYPES for level in levels(spec, dtype)]


def is_slow(spec: FilterSpec, parameters: dict[str, Any], level: Level) -> bool:
    """Return whether a level leaves out the picture of most pixels."""
    slow = getattr(test_module(spec.id), "slow_levels", None)
    return slow is not None and level.id in slow(parameters)


PICTURES = len(SHAPES) + max(map(len, CONTENTS.values())) - 1


def picture(number: int, dtype: np.dtype[Any], side: int, border: Border) -> tuple[str, Any]:
    """Return content and shape of one of the `PICTURES`, for a mask of that `side`."""
    first, *others = CONTENTS[dtype]
    if number < len(SHAPES):
        content, (height, width) = first, SHAPES[number]
    else:
        content, (height, width) = others[(number - len(SHAPES)) % len(others)], (5, 35)
    if border is Border.VALID:  # which needs room for the mask
        height, width = max(height, side), max(width, side)
    return content, (height, width)


@together("spec", filters.discover().values())
def test_has_an_oracle_and_cases(spec: FilterSpec) -> None:
    module = test_module(spec.id)
    assert module is not None, f"tests/filters/test_{spec.id}.py is missing"
    assert callable(module.oracle)
    assert module.CASES
    for parameter in spec.parameters:
        if isinstance(parameter, ChoiceParameter):
            tried = {spec.validate(case)[parameter.name] for case in module.CASES}
            assert tried >= {choice.value for choice in parameter.choices}


class Oracle:
    """Compares levels with the oracle of one case, which computes each result once."""

    def __init__(self, filter_id: str, case: int, backend: CpuBackend) -> None:
        self.spec, self.backend = filters.get(filter_id), backend
        self.parameters = parameters_of(filter_id, case)
        self.side = 2 * self.spec.radius(self.parameters) + 1
        self.expected = functools.cache(
            lambda dtype, content, shape, colours, border: expected(
                filter_id,
                without_alpha(make(dtype, content, shape), colours),
                self.parameters,
                border,
            )
        )

    def check(
        self,
        dtype: np.dtype[Any],
        level: Level,
        border: Border,
        content: str,
        shape: tuple[int, int],
        channels: int,
    ) -> None:
        spec, parameters = self.spec, self.parameters
        colours = 1 if channels < 3 else 3
        rgba = make(dtype, content, shape)
        colour, alpha = without_alpha(rgba, colours), rgba[:, :, 3:]
        source = np.concatenate([colour, alpha], axis=2) if channels > colours else colour
        before = source.copy()
        request = Request.create(Image.from_array(source), spec.id, parameters, border=border)
        label = f"{level.id}, {border}, {dtype}, {content} {shape}, {channels} channels"
        wanted = self.expected(dtype, content, shape, colours, border)
        actual = run(self.backend, request, level)
        tolerance = getattr(test_module(spec.id), "tolerance", default_tolerance)
        assert_close(
            actual[:, :, : wanted.shape[2]], wanted, colour, tolerance(parameters, dtype), label
        )
        radius = self.side // 2
        crop = slice(radius, -radius) if border is Border.VALID and radius else slice(None)
        left = alpha[crop, crop, : channels - colours]
        assert_same(actual[:, :, wanted.shape[2] :], left, f"alpha, {label}")
        assert_same(source, before, f"the input was changed, {label}")


@functools.cache
def rows(filter_id: str) -> dict[int, list[tuple[Any, ...]]]:
    """Return ((border, number of a picture), (type, level), channels) of each case.

    They have every pair of these and of the case: each level works on each type at each border in
    each shape, and in each case.
    """
    spec, found = filters.get(filter_id), dict[int, list[tuple[Any, ...]]]()
    for views, variant, case, channels in all_pairs(
        list(itertools.product(spec.borders, range(PICTURES))),
        variants(spec),
        range(len(test_module(filter_id).CASES)),  # type: ignore[union-attr]
        (1, 2, 3, 4),
    ):
        found.setdefault(case, []).append((views, variant, channels))
    return found


@pytest.mark.parametrize(("filter_id", "case"), each_case())
def test_equals_its_oracle(filter_id: str, case: int, backend: CpuBackend) -> None:
    oracle = Oracle(filter_id, case, backend)
    for (border, number), (dtype, level), channels in rows(filter_id)[case]:
        content, shape = picture(number, dtype, oracle.side, border)
        if shape == MOST_PIXELS and is_slow(oracle.spec, oracle.parameters, level):
            shape = SHAPES[5]
        oracle.check(dtype, level, border, content, shape, channels)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("filter_id", "case"), each_case())
@dtypes
@borders
def test_equals_its_oracle_in_every_combination(
    filter_id: str, case: int, dtype: np.dtype[Any], border: Border, backend: CpuBackend
) -> None:
    oracle = Oracle(filter_id, case, backend)
    if border not in oracle.spec.borders:
        return
    for number, level, channels in itertools.product(
        range(PICTURES), levels(oracle.spec, dtype), (1, 2, 3, 4)
    ):
        content, shape = picture(number, dtype, oracle.side, border)
        if shape != MOST_PIXELS or not is_slow(oracle.spec, oracle.parameters, level):
            oracle.check(dtype, level, border, content, shape, channels)


@together(("filter_id", "case"), [each.values for each in each_case()])
def test_refuses_what_valid_would_leave_empty(filter_id: str, case: int) -> None:
    parameters = parameters_of(filter_id, case)
    side = 2 * filters.get(filter_id).radius(parameters) + 1
    if side == 1:
        return  # a filter of single pixels fits everywhere
    for shape in ((side - 1, side), (side, side - 1)):
        with pytest.raises(InvalidParameter, match="valid"):
            Request.create(
                Image.from_array(np.zeros(shape, np.uint8)),
                filter_id,
                parameters,
                border=Border.VALID,
            )


def assert_bands_do_not_matter(
    filter_id: str,
    case: int,
    dtype: np.dtype[Any],
    level: Level,
    border: Border,
    bands: tuple[int, ...] = (16, 3, 1),
) -> None:
    """The same bytes for every split into bands, whatever the order in which they run."""
    spec = filters.get(filter_id)
    parameters = parameters_of(filter_id, case)
    side = 2 * spec.radius(parameters) + 1
    if border is not Border.VALID:  # only there has the mask to fit
        side = min(side, 49)
    source = without_alpha(make(dtype, "random", (max(17, side + 16), max(33, side))), 3)
    source.flags.writeable = False
    results = []
    for rows in (source.shape[0], *bands):
        output = np.empty(spec.output_shape(source.shape, parameters, border), dtype)
        task = CpuTask(source, output, parameters, border, level.id)
        for sweep in spec.implementation(Cpu).plan(task):
            for start in reversed(range(0, sweep.rows, rows)):
                sweep.kernel(*sweep.arguments, start, min(start + rows, sweep.rows))
        results.append(output)
    for result in results[1:]:
        np.testing.assert_array_equal(
            result, results[0], f"{parameters}, {level.id}, {border}, {dtype}"
        )


def of_bands(spec: FilterSpec) -> list[Border]:
    """Return borders that are read, that shrink the mask and that shrink the picture."""
    usual = (Border.REFLECT, Border.REDUCE, Border.VALID)
    return [each for each in usual if each in spec.borders] or [spec.borders[0]]


@pytest.mark.parametrize("spec", filters.discover().values(), ids=lambda spec: spec.id)
def test_bands_do_not_matter(spec: FilterSpec) -> None:
    cases = range(len(test_module(spec.id).CASES))  # type: ignore[union-attr]
    rows = all_pairs(cases, variants(spec), of_bands(spec))
    for number, (case, (dtype, level), border) in enumerate(rows):
        assert_bands_do_not_matter(spec.id, case, dtype, level, border, ((16, 3, 1)[number % 3],))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("filter_id", "case"), each_case())
@dtypes
def test_bands_do_not_matter_in_any_combination(
    filter_id: str, case: int, dtype: np.dtype[Any]
) -> None:
    spec = filters.get(filter_id)
    for level, border in itertools.product(levels(spec, dtype), of_bands(spec)):
        assert_bands_do_not_matter(filter_id, case, dtype, level, border)
