"""The checked emulated GPU finds mistakes that the results of a kernel need not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.emulator import checking
from kernelscope.backends.emulator.checking import CheckedBackend, Finding, MistakeKind
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.levels import GLOBAL
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import quick_compiler

pytestmark = [needs_compiler, pytest.mark.slow]

COLUMNS, ROWS = 40, 3

TEXT = """#line 1 "mean.cu"
struct Geometry { int width, height, channels, out_width, first, last, a, b, c; };
extern "C" __global__ void mean_global(
    const unsigned char* source, unsigned char* output, Geometry g)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int n = threadIdx.y * blockDim.x + threadIdx.x, count = blockDim.x * blockDim.y;
    const bool inside = x < g.width && y < g.height;
    const int i = y * g.width + x;
    BODY
}
"""


Check = Callable[[str], tuple[list[Finding], int]]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run a body as the mean filter's kernel; return what was found, and the unwritten bytes."""

    def run(body: str) -> tuple[list[Finding], int]:
        text = TEXT.replace("BODY", body)
        monkeypatch.setattr(checking, "read_source", lambda file: text)
        backend = CheckedBackend(quick_compiler())
        pixels = np.arange(ROWS * COLUMNS, dtype=np.uint8).reshape(ROWS, COLUMNS)
        request = Request.create(Image.from_array(pixels), "mean")
        level = next(each for each in backend.levels(request.step.filter) if each.id == "global")
        backend.run(request, level, RunContext())
        return backend.findings, backend.unwritten

    return run


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


GOOD = """__shared__ unsigned char tile[1024];
    tile[n] = inside ? source[i] : 0;
    __syncthreads();
    if (inside) output[i] = tile[count - 1 - n];"""


def test_a_good_kernel_has_no_findings(check: Check) -> None:
    assert check(GOOD) == ([], 0)


def test_a_missing_barrier_is_a_race_between_two_threads(check: Check) -> None:
    found, _ = check(GOOD.replace("__syncthreads();", ""))
    races = [each for each in found if each.kind is MistakeKind.RACE_WITH_READ]
    assert {each.kind for each in found} == {MistakeKind.RACE_WITH_READ, MistakeKind.UNINITIALISED}
    race = races[0]
    assert race.array == "the shared tile"
    assert race.other is not None
    assert (race.block, race.other[0]) == (0, 0)
    writer, reader = race.thread, race.other[1]
    if not race.write:
        writer, reader = reader, writer
    assert (writer, reader) == (race.offset, 255 - race.offset)
    assert race.place in {"mean.cu:10", "mean.cu:12"}


def test_a_barrier_of_the_warp_does_not_order_other_warps(check: Check) -> None:
    own = GOOD.replace("tile[count - 1 - n]", "tile[n ^ 1]")
    assert check(own.replace("__syncthreads", "__syncwarp"))[0] == []
    found, _ = check(GOOD.replace("__syncthreads", "__syncwarp"))
    assert MistakeKind.RACE_WITH_READ in {each.kind for each in found}


def test_a_shuffle_orders_no_memory(check: Check) -> None:
    body = GOOD.replace("tile[count - 1 - n]", "tile[n ^ 1]")
    found, _ = check(body.replace("__syncthreads();", "__shfl_sync(~0u, n, 0);"))
    assert MistakeKind.RACE_WITH_READ in {each.kind for each in found}


def test_atomic_sums_do_not_race_and_plain_ones_do(check: Check) -> None:
    body = """__shared__ unsigned total, most;
    if (n == 0) total = most = 0;
    __syncthreads();
    atomicAdd(&total, 1u);
    atomicMax(&most, (unsigned)n);
    __syncthreads();
    if (inside) output[i] = source[i / (total == most + 1)];"""
    assert check(body) == ([], 0)
    found, _ = check(body.replace("atomicAdd(&total, 1u)", "++total"))
    assert MistakeKind.RACE_WITH_READ in {each.kind for each in found}


def test_cells_that_nothing_has_written(check: Check) -> None:
    body = GOOD.replace("tile[n] =", "if (n != 240) tile[n] =")
    finding = only(check(body)[0])
    assert (finding.kind, finding.offset, finding.count) == (MistakeKind.UNINITIALISED, 240, 1)
    assert (finding.place, finding.write) == ("mean.cu:12", False)


def test_shared_memory_is_not_kept_for_the_next_block(check: Check) -> None:
    body = GOOD.replace("tile[n] =", "if (blockIdx.x == 0) tile[n] =")
    finding = only(check(body)[0])
    assert (finding.kind, finding.block) == (MistakeKind.UNINITIALISED, 1)


@pytest.mark.parametrize(
    ("access", "array", "offset", "write"),
    [
        ("output[i] = source[i + (i == 119)];", "the source", 120, False),
        ("output[i - (i == 0)] = 1;", "the output", -1, True),
        ("output[i + 4000000000000ll] = 1;", "", 0, True),
    ],
)
def test_accesses_outside(check: Check, access: str, array: str, offset: int, write: bool) -> None:
    finding = only(check(f"if (inside) {{ {access} }}")[0])
    assert finding.kind is MistakeKind.OUTSIDE
    assert (finding.array, finding.offset, finding.write) == (array, offset, write)
    assert finding.place == "mean.cu:9"


def test_arrays_have_room_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or an access behind one would be found in the next, and taken for right."""
    backend, arrays = CheckedBackend(quick_compiler()), dict[str, Any]()
    array_of = backend._array

    def noted(name: str, array: Any, known: bool) -> Any:
        arrays[name] = array
        return array_of(name, array, known)

    monkeypatch.setattr(backend, "_array", noted)
    request = Request.create(Image.from_array(np.ones((ROWS, COLUMNS), np.uint8)), "gaussian")
    backend.run(request, GLOBAL, RunContext())
    assert arrays.keys() == {"the source", "the output", "table 1", "the buffer sums"}
    for name, array in arrays.items():
        before = array.ctypes.data - array.base.ctypes.data
        assert min(before, array.base.nbytes - before - array.nbytes) >= 4096, name


def test_a_table_may_have_the_place_of_one_of_an_earlier_launch() -> None:
    backend, weights = CheckedBackend(), np.ones(5)
    sizes = [backend._array("table 1", weights[:n], True).written.sum() for n in (1, 5, 2)]
    assert sizes == [8, 40, 16]


def test_an_index_beyond_a_row_of_an_array(check: Check) -> None:
    body = """__shared__ unsigned char tile[32][32];
    tile[n / 32][n % 32] = 1;
    __syncthreads();
    if (inside) output[i] = tile[0][n == 5 ? 32 : 0];"""
    finding = only(check(body)[0])
    assert (finding.kind, finding.offset, finding.place) == (MistakeKind.INDEX, 32, "mean.cu:12")


def test_blocks_that_write_the_same_cell(check: Check) -> None:
    found, unwritten = check("if (inside && i) output[i] = 1; if (n == 0) output[0] = 1;")
    finding = only(found)
    assert finding.kind is MistakeKind.RACE_OF_WRITES
    assert (finding.array, finding.offset, unwritten) == ("the output", 0, 0)
    text = "writes 1 byte at offset 0 of the output, without a barrier between it and thread 0"
    assert text in str(finding)


def test_pixels_that_are_never_written(check: Check) -> None:
    assert check("if (inside && i % 10) output[i] = 1;") == ([], 12)
