"""The median filter: its networks, and the places where windows are short, odd or huge."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidImage
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.median import SPEC, networks
from kernelscope.filters.median import cpu as median_cpu
from kernelscope.filters.median.cpu import BUBBLE, HUANG
from kernelscope.filters.median.kernels import Medians, median_counting
from kernelscope.filters.median.networks import Operation, Program, ShiftedValue, median_program
from kernelscope.filters.shared.groups import sweep_rows
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
from kernelscope.schema.levels import PARALLEL, SERIAL
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.oracle import OWN_FOOTPRINT, footprint_of, masked_windows
from tests.pairs import in_turn

CASES: list[dict[str, Any]] = [
    *({"size": size} for size in (3, 5, 13, 17)),
    {"size": 7, "footprint": "disk"},
    {"size": 3, "footprint": "cross"},
    {"footprint": OWN_FOOTPRINT},
]


def slow_levels(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Sorting by exchanges takes the fourth power of the size."""
    return (BUBBLE.id,) if parameters["size"] > 5 else ()


LEVELS = [level.id for level in SPEC.levels("cpu")]
BORDERS = [border for border in Border if border is not Border.KEEP]
"""Those that kernels know: the oracle does not know the other, the contract sees to it."""

FLOAT_LEVELS = [level for level in LEVELS if level != HUANG.id]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    """Sort every window, cells that do not count at the end, and take the middle.

    Of an even number of cells that is the lower one of squares, and the upper one of other masks.
    """
    table = footprint_of({"footprint": "square", **parameters})
    cells, counted = masked_windows(source, table, border)
    cells = cells.astype(np.float64)
    cells[~counted] = np.inf
    ordered = np.sort(cells.reshape(*cells.shape[:3], -1), axis=-1)
    count = counted.sum(axis=(-2, -1))
    rank = (count - 1) // 2 if table.all() else count // 2
    return np.take_along_axis(ordered, rank[..., None], axis=-1)[..., 0]


def median(
    backend: CpuBackend,
    pixels: NDArray[Any],
    size: int,
    border: Border = Border.REFLECT,
    level: str = PARALLEL.id,
) -> NDArray[Any]:
    request = Request.create(Image.from_array(pixels), "median", {"size": size}, border=border)
    chosen = next(known for known in SPEC.levels("cpu") if known.id == level)
    return backend.run(request, chosen, RunContext()).planes


def interpret(program: Program, rows: NDArray[Any]) -> NDArray[Any]:
    """Run a program the slow way; `rows` has shape (inputs, columns, ...)."""
    memory = dict(enumerate(rows))
    for stage in program.stages:
        known = {lane: np.roll(memory[lane.node], -lane.shift, axis=0) for lane in stage.reads}
        for node, (larger, a, b) in stage.operations.items():
            known[ShiftedValue(node)] = (np.maximum if larger else np.minimum)(known[a], known[b])
        memory |= {node: known[ShiftedValue(node)] for node in stage.writes}
    nodes = {place: node for node, place in program.places.items()}
    return np.stack([memory[nodes[place]] for place in program.results])


def inputs(program: Program, size: int) -> int:
    return size + len(program.results) - 1


def window_medians(rows: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the medians of the windows at column 0, one for each output row."""
    return np.stack(
        [
            np.median(rows[y : y + size, :size].reshape(size * size, *rows.shape[2:]), axis=0)
            for y in range(len(rows) - size + 1)
        ]
    )


def test_network_of_size_3_is_right_for_every_order() -> None:
    """The 0-1 principle: a network of minima and maxima that is right for bits always is."""
    program = median_program(3)
    count = 3 * inputs(program, 3)
    rows = (np.arange(2**count) >> np.arange(count)[:, None] & 1).reshape(-1, 3, 2**count)
    np.testing.assert_array_equal(interpret(program, rows)[:, 0], window_medians(rows, 3))


@pytest.mark.slow
@pytest.mark.parametrize("size", range(5, 32, 2))
def test_network_is_right_for_bits_and_orders(size: int) -> None:
    """Bits with about as many ones as zeros are the ones that would find a fault."""
    program = median_program(size)
    random = np.random.default_rng(size)
    shape = (inputs(program, size), size, 400 if size < 16 else 60)
    density = random.uniform(0.45, 0.55, shape[-1])
    for rows in (np.where(random.random(shape) < density, 1, 0), random.random(shape)):
        np.testing.assert_array_equal(interpret(program, rows)[:, 0], window_medians(rows, size))


def dump(size: int) -> str:
    """Return the loops of `median_program` as text, one for each stage.

    ``row0[x+1]`` is the sample of the first input row at the pixel to the right of x; v1, v2, ...
    are values in a register, or in memory if later loops or the caller need them.
    """
    program = median_program(size)
    inputs = size + len(program.results) - 1
    operations = {node: each for stage in program.stages for node, each in stage.operations.items()}
    names = {node: f"row{node}" for node in range(inputs)}
    names |= {node: f"v{number}" for number, node in enumerate(operations, 1)}
    nodes = {place: node for node, place in program.places.items()}

    def name(lane: ShiftedValue) -> str:
        return f"{names[lane.node]}[x+{lane.shift}]" if lane.shift else f"{names[lane.node]}[x]"

    lines = []
    for number, stage in enumerate(program.stages, 1):
        lines.append(
            f"loop {number}: 0 <= x < width" + (f" + {stage.reach}" if stage.reach else "")
        )
        wanted = {operation: names[node] for node, operation in stage.operations.items()}
        while wanted:
            operation = larger, a, b = next(iter(wanted))
            twin = Operation(not larger, a, b)
            left, does = wanted.pop(operation), "max" if larger else "min"
            if twin in wanted:
                left, does = f"{left}, {wanted.pop(twin)}", "sort"
            lines.append(f"    {left} = {does}({name(a)}, {name(b)})")
        lines.append("    keep " + ", ".join(names[node] for node in stage.writes))
    results = ", ".join(names[nodes[place]] for place in program.results)
    return "\n".join([*lines, f"medians: {results}"])


def test_the_module_shows_the_network_of_size_3() -> None:
    assert textwrap.indent(dump(3), "    ") in str(networks.__doc__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "border"), in_turn((np.uint8, np.uint16, np.float32), BORDERS, every=3)
)
def test_large_sizes_and_widths_that_fill_no_vector(
    dtype: type, border: Border, backend: CpuBackend
) -> None:
    random = np.random.default_rng(7)
    largest = 21 if dtype is np.uint8 else 13  # sizes that the contract compiles as well
    for size, shape in ((largest, (37, 45, 1)), (3, (15, 1031, 1)), (5, (23, 203, 3))):
        pixels = random.integers(0, 256, shape).astype(dtype)
        wanted = oracle(pixels, {"size": size}, border).astype(dtype)
        for level in FLOAT_LEVELS if dtype is np.float32 else LEVELS:
            np.testing.assert_array_equal(
                median(backend, pixels, size, border, level), wanted, f"{level} {size}"
            )


@pytest.mark.parametrize("size", [3, 5, 13])
def test_wide_images_are_cut_into_chunks(size: int, backend: CpuBackend) -> None:
    random = np.random.default_rng(size)
    for width in (4095, 4096, 4097, 9001):
        pixels = random.integers(0, 65536, (size + 1, width, 1), dtype=np.uint16)
        wanted = median(backend, pixels, size, level=SERIAL.id)
        np.testing.assert_array_equal(median(backend, pixels, size), wanted)


def hard_pictures(size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield pictures that bring counts, ranks and segments to their bounds.

    All cells in one count; as many below the middle as above it, but for one; the median in
    another segment at each pixel, or in one that was not needed for a long time.
    """
    random = np.random.default_rng(size)
    for value in (0, 15, 16, 240, 255):
        yield np.full((3, 70, 1), value, np.uint8)
    columns, rows = np.arange(90), np.arange(4)[:, None]
    yield np.broadcast_to(255 * (columns % 2), (4, 90)).astype(np.uint8)[..., None]
    yield (255 * ((columns + rows) % 2)).astype(np.uint8)[..., None]
    yield np.broadcast_to(columns // size % 2 * 16 + 15, (4, 90)).astype(np.uint8)[..., None]
    yield (16 * random.permutation(90)[None] % 256 + 0 * rows).astype(np.uint8)[..., None]
    yield random.integers(0, 2, (5, 90, 3), np.uint8) * np.uint8(255)
    yield random.integers(0, 256, (5, 90, 3), np.uint8)


@pytest.mark.parametrize("size", [median_cpu.COUNTED, 31])
def test_counts_at_their_bounds(size: int, backend: CpuBackend) -> None:
    for number, pixels in enumerate(hard_pictures(size)):
        for border in (Border.NEAREST, Border.CONSTANT):
            wanted = oracle(pixels, {"size": size}, border).astype(np.uint8)
            np.testing.assert_array_equal(
                median(backend, pixels, size, border), wanted, f"picture {number}, {border}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("border", [Border.VALID, Border.WRAP])
def test_counts_in_stripes_and_bands(border: Border) -> None:
    """Stripes end within a vector, within a block of columns, or with a single column."""
    random = np.random.default_rng(4)
    for width in (513, 543, 1055):
        ramp = np.linspace(0, 200, width)[:, None]
        pixels = (ramp + random.integers(0, 50, (26, width, 2))).astype(np.uint8)
        pixels.flags.writeable = False  # as in the program
        wanted = oracle(pixels, {"size": 19}, border).astype(np.uint8)
        output = np.zeros_like(wanted)
        for start, stop in ((0, 1), (1, 2), (2, 7), (7, len(wanted))):
            median_counting(pixels, output, 9, border.code, start, stop)
        np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("border", BORDERS)
def test_3x3_of_bytes_in_rows_around_the_length_of_a_vector(
    border: Border, backend: CpuBackend
) -> None:
    """Bits find each fault of a network; an odd number of rows leaves a part of the last sweep."""
    random = np.random.default_rng(6)
    for shape in ((3, 31, 1), (4, 32, 1), (17, 33, 1), (8, 66, 1), (7, 10, 3), (10, 11, 3)):
        for most in (2, 256):
            pixels = random.integers(0, most, shape).astype(np.uint8)
            wanted = oracle(pixels, {"size": 3}, border).astype(np.uint8)
            np.testing.assert_array_equal(median(backend, pixels, 3, border), wanted, str(shape))


def test_3x3_of_bytes_in_bands() -> None:
    pixels = np.random.default_rng(8).integers(0, 256, (19, 80, 1)).astype(np.uint8)
    pixels.flags.writeable = False
    wanted = oracle(pixels, {"size": 3}, Border.MIRROR).astype(np.uint8)
    output = np.zeros_like(wanted)
    for start, stop in ((0, 1), (1, 4), (4, 19)):
        before = output.copy()
        sweep_rows(pixels, output, Medians(), Border.MIRROR.code, start, stop)
        before[start:stop] = wanted[start:stop]
        np.testing.assert_array_equal(output, before)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("level", [level.id for level in SPEC.levels("gpu") if level.exact])
def test_squares_have_the_lower_and_masks_the_upper_middle_at_all_levels(level: str) -> None:
    """Level *constant* reads a mask for squares as well."""
    pixels = np.array([[10, 20], [30, 40]], np.uint8)[..., None]
    for footprint in ("square", "cross", OWN_FOOTPRINT):
        parameters = {"size": 3, "footprint": footprint}
        np.testing.assert_array_equal(
            emulated.run("median", pixels, parameters, level, Border.REDUCE),
            oracle(pixels, parameters, Border.REDUCE),
            str(footprint),
        )


@pytest.mark.parametrize("border", [Border.REDUCE, Border.VALID, Border.WRAP])
def test_bubble_sort_in_strips(
    border: Border, backend: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit of work is a piece of a row: sorting large windows takes long."""
    pixels = np.random.default_rng(2).integers(0, 9, (9, 40, 3), dtype=np.uint8)
    wanted = oracle(pixels, {"size": 5}, border).astype(np.uint8)
    for columns in (1, 3, 39, 40, 41):
        monkeypatch.setattr(median_cpu, "EXCHANGES", columns * 5**4)
        np.testing.assert_array_equal(median(backend, pixels, 5, border, BUBBLE.id), wanted)


def test_a_unit_of_bubble_sort_ends_in_time() -> None:
    source = np.zeros((40, 30_000, 1), np.uint8)
    task = CpuTask(source, source.copy(), SPEC.validate({"size": 31}), Border.WRAP, BUBBLE.id)
    widths = [
        last - first
        for first, last in (p.arguments[-1] for p in SPEC.implementation(Cpu).plan(task))
    ]
    assert sum(widths) == 30_000
    assert max(widths) * 31**4 < 2**25


def test_fractions_cannot_be_counted(backend: CpuBackend) -> None:
    with pytest.raises(InvalidImage, match="counted"):
        median(backend, np.zeros((9, 9), np.float32), 3, level=HUANG.id)


def test_all_but_parallel_run_on_one_thread() -> None:
    assert [level.id for level in SPEC.levels("cpu") if not level.single] == [PARALLEL.id]
    assert LEVELS[-1] == PARALLEL.id, "the last level is taken where none was chosen"
