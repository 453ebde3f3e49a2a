"""Traces of kernels: what they count is what a pencil counts."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda.inspection import plans
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator import tracing
from kernelscope.backends.emulator.launch import run_launch
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.backends.emulator.translation import laps_counted
from kernelscope.base.errors import AppError
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import Level
from kernelscope.traffic.totals import (
    Totals,
    branches,
    joined,
    launch_totals,
    occurrence,
    requests,
    thread_totals,
    warp_totals,
)
from kernelscope.traffic.trace import OUTPUT, Event, MemorySpace, SourceLine, Trace
from tests import builds
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import QuickCompiler
from tests.backends.traces import of_thread

pytestmark = [needs_compiler, pytest.mark.slow]

TEXT = """#line 1 "mean.cu"
struct Geometry { int width, height, channels, out_width, first, last, a, b, c; };
__constant__ int weights[64];
extern "C" __global__ void mean_global(
    const unsigned char* source, unsigned char* output, Geometry g)
{
    const int lane = threadIdx.x + blockIdx.x * blockDim.x;
    BODY
}
"""

Traced = Callable[[str], Trace]
READ, WRITE = Event.READ, Event.WRITE


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    """Run a body as the mean filter's kernel, one block of 64 threads; return its trace."""

    def run(body: str) -> Trace:
        monkeypatch.setattr(tracing, "read_source", lambda file: TEXT.replace("BODY", body))
        tracer = Tracer(QuickCompiler.find(), threads=1)
        pixels = np.arange(4096, dtype=np.uint16).reshape(1, 4096)
        request = Request.create(Image.from_array(pixels), "mean", block=(64, 1))
        try:
            return tracer.trace(request, level_of(request, "global"), 0)
        finally:
            tracer.close()

    return run


def level_of(request: Request, name: str) -> Level:
    levels = request.step.filter.levels(Device.GPU)
    return next(each for each in levels if each.id == name)


def both(trace: Trace, space: MemorySpace, event: Event) -> Totals:
    """Return the totals, which C++ and NumPy have to agree on."""
    counted = launch_totals(trace)[space, event]
    again = warp_totals(trace, requests(trace))[space, event]
    again.block_sectors = counted.block_sectors  # for caches: C++ only
    assert counted == again
    return counted


LOADS = "const {type}* cells = (const {type}*)source; output[lane] = (unsigned char)cells[{index}];"


@pytest.mark.parametrize(
    ("kind", "index", "sectors", "needed"),
    [
        ("unsigned char", "lane", 2, 2),  # a warp's row of bytes fills a sector
        ("int", "lane", 8, 8),  # of words, four
        ("int", "lane + 1", 10, 8),  # not at its beginning, one more for each warp
        ("int", "2 * lane", 16, 8),  # every other word
        ("unsigned char", "32 * lane", 64, 2),  # a column: each thread another sector
        ("int", "7", 2, 2),  # the same cell for all
        ("unsigned long long", "lane", 16, 16),
    ],
)
def test_sectors_of_global_loads(
    traced: Traced, kind: str, index: str, sectors: int, needed: int
) -> None:
    trace = traced(LOADS.format(type=kind, index=index))
    loads = both(trace, MemorySpace.GLOBAL, READ)
    assert (loads.accesses, loads.requests) == (64, 2)
    assert (loads.sectors, loads.needed) == (sectors, needed)
    stores = both(trace, MemorySpace.GLOBAL, WRITE)
    assert (stores.accesses, stores.requests, stores.sectors, stores.footprint) == (64, 2, 2, 2)


@pytest.mark.parametrize("declared", ["uint4 tile[64];", "struct { float f; uint4 tile[64]; } m;"])
def test_a_vector_is_one_access(traced: Traced, declared: str) -> None:
    """As on a GPU; four accesses with gaps between the lanes would meet bank conflicts."""
    body = f"__shared__ {declared}\n    uint4* tile = m.tile;\n" if "m;" in declared else ""
    body = (
        (body or f"__shared__ {declared}\n")
        + """
    const uint4 v = ((const uint4*)source)[lane];
    tile[lane] = make_uint4(v.w, v.z, v.y, v.x);
    __syncthreads();
    const uint4 w = tile[63 - lane];
    output[lane] = (unsigned char)(w.x + w.y + w.z + w.w);"""
    )
    trace = traced(body)
    loads = both(trace, MemorySpace.GLOBAL, READ)
    assert (loads.accesses, loads.requests, loads.sectors, loads.needed) == (64, 2, 32, 32)
    for event in (READ, WRITE):
        tile = both(trace, MemorySpace.SHARED, event)
        assert (tile.accesses, tile.requests) == (64, 2)
        assert (tile.wavefronts, tile.conflicts) == (8, 0)  # eight lanes in a turn


# Statements on an array of 64 structs of four words, with the requests of the two warps, their
# turns, and the fewest turns. Word for word, the lanes would be four words apart, and four of them
# in each bank.
WRITES = {
    "tile[lane] = four;": (2, 8, 8),
    "tile[lane].at[1] = lane; tile[lane].at[0] = 3;": (2, 8, 4),
    "tile[lane].at[1] = lane; tile[lane].at[2] = 3;": (4, 16, 4),  # no 8 bytes begin at 4
    "tile[lane].at[3] = lane; tile[lane].at[0] = 3;": (4, 16, 4),
    "for (int i = 0; i < 3; ++i) tile[lane].at[i] = lane;": (4, 16, 6),  # there are no 12 bytes
}
READS = {
    "const Four v = tile[lane]; sum = v.at[0] + v.at[1] + v.at[2] + v.at[3];": (2, 8, 8),
    "for (int i = 0; i < 3; ++i) sum += tile[lane].at[i];": (2, 8, 8),  # the fourth as well
    "sum = tile[lane].at[2] + tile[lane].at[3];": (2, 8, 4),
    "sum = tile[lane].at[2] + tile[lane ^ 1].at[3];": (4, 16, 4),
    "sum = tile[lane].at[0]; if (lane % 2) sum += tile[lane].at[1];": (4, 16, 4),
    "if (lane % 2) sum = tile[lane].at[0]; sum += tile[lane].at[1];": (4, 16, 4),
    "for (volatile int i = 0; i < 2; i = i + 1) sum += tile[lane].at[i];": (4, 16, 4),
    "const unsigned char* const b = (const unsigned char*)&tile[lane];"
    " sum = b[0] + b[1] * 3 + b[2] * 5 + b[3] * 7;": (8, 32, 8),  # cells smaller than a word
    # In the second warp the last of four words lies elsewhere.
    "sum = tile[lane].at[0] + tile[lane].at[1] + tile[lane].at[2] + tile[lane ^ lane / 32].at[3];":
    (6, 24, 8),
    # The second word is left out once.
    "for (volatile int i = 0; i < 2; i = i + 1) { const int n = (lane + i) % 64;"
    " sum += tile[n].at[0]; if (n == lane) sum += tile[n].at[1]; }": (6, 24, 6),
    # Two loops that lanes may leave at different times.
    "for (int i = threadIdx.x; i < 64; i += 64) sum += tile[i].at[0];"
    " for (int i = threadIdx.x; i < 64; i += 64) sum += tile[i].at[1];": (4, 16, 4),
    # A turn of a lane ends after 4,096 accesses, here between the two.
    "for (volatile int i = 0; i < 1500; i = i + 1) { const int n = (lane + i) % 64;"
    " sum += tile[n].at[0] + tile[n].at[1] + tile[n ^ 1].at[3]; }": (6000, 24000, 9000),
    # A sum by halves of a block: the words lie side by side in the first of two steps only.
    "for (volatile int step = 1; step <= 2; step = step * 2) {"
    " sum += tile[lane].at[0] + tile[lane].at[step]; __syncthreads(); }": (8, 32, 8),
}  # fmt: skip


def test_accesses_to_shared_memory_are_joined_as_compilers_do(traced: Traced) -> None:
    text = "struct alignas(16) Four { int at[4]; }; int all = 0;"
    text += "const Four four = {{lane, source[lane], lane + 2, lane + 3}};"
    fill = (
        "for (int i = lane; i < 256; i += 64) tile[i / 4].at[i % 4] = source[i]; __syncthreads();"
    )
    look = "__syncthreads(); all += tile[source[lane]].at[source[1] % 4];"
    for number, statement in enumerate(WRITES | READS):
        before, behind = (fill, "all += sum;") if statement in READS else ("", look)
        text += f"{{ __shared__ Four tile_{number}[64]; Four* const tile = tile_{number};"
        text += f"int sum = 0; {before} {statement} {behind} }}"
    trace = traced(f"{text} output[lane] = all;")
    made = requests(trace)
    numbers = {array.name: number for number, array in enumerate(trace.scene.arrays)}
    for number, (statement, expected) in enumerate((WRITES | READS).items()):
        array, event = numbers[f"tile_{number}"], READ if statement in READS else WRITE
        own = trace.entries[(trace.entries["array"] == array) & (trace.entries["event"] == event)]
        counted = tuple(int(own[name].sum()) for name in ("requests", "wavefronts", "ideal"))
        assert counted == expected, statement
        again = (made.array == array) & (made.event == event)
        lanes = int(own["accesses"].sum()), int(made.lanes[again].sum())
        assert lanes[0] == lanes[1]
        assert expected == (again.sum(), made.wavefronts[again].sum(), made.ideal[again].sum())
    threads = [thread_totals(trace, thread) for thread in range(64)]
    for event in (READ, WRITE):
        accesses = sum(each[MemorySpace.SHARED, event].accesses for each in threads)
        assert accesses == launch_totals(trace)[MemorySpace.SHARED, event].accesses


@pytest.mark.parametrize(
    "body",
    [
        # A read and a write of neighbouring words.
        "cells[2 * lane + 1] = lane; output[lane] = cells[2 * lane] + others[source[lane]];",
        # Words at neighbouring places of two arrays.
        "others[2 * lane + 1] = lane; cells[2 * lane] = lane; __syncthreads();"
        " output[lane] = cells[source[lane]] + others[source[lane]];",
    ],
)
def test_accesses_of_different_kinds_stay_two(traced: Traced, body: str) -> None:
    assert traced(f"__shared__ int cells[128]; __shared__ int others[128]; {body}").parts.size == 0


def test_sorted_columns_are_read_as_a_gpu_reads_them(tracer: Tracer) -> None:
    """The machine code for sm_90 has 8 stores and 10 loads of 16 bytes, and two of a word."""
    request = request_of("median", (64, 512), {"size": 5})
    (counts,) = tracer.count(request, level_of(request, "tuned"))
    shared = [
        row
        for row in counts.entries
        if counts.scene.arrays[row["array"]].space is MemorySpace.SHARED
    ]
    made: Counter[tuple[Event, int]] = Counter()
    for row in shared:
        made[Event(row["event"]), int(row["bytes"])] += int(row["requests"])
    stores = made[WRITE, 16]  # each warp stores as often
    assert {key: 8 * count / stores for key, count in made.items()} == {
        (WRITE, 16): 8,
        (READ, 16): 10,
        (READ, 4): 2,
    }
    assert {row["wavefronts"] / row["ideal"] for row in shared if row["bytes"] == 16} == {1}


@pytest.mark.parametrize(
    ("kind", "index", "turns", "ideal"),
    [
        ("int", "lane % 32", 2, 2),
        ("int", "2 * lane % 64", 4, 2),  # two words of each other bank
        ("int", "32 * (lane % 32)", 64, 2),  # all words in one bank
        ("int", "33 * (lane % 31)", 2, 2),  # a pitch of 33 words avoids it
        ("int", "5", 2, 2),  # one word for all
        ("unsigned char", "lane % 32", 2, 2),  # four bytes of a word at once
        ("double", "lane % 32", 4, 4),  # half a warp at once
    ],
)
def test_banks_of_shared_loads(
    traced: Traced, kind: str, index: str, turns: int, ideal: int
) -> None:
    trace = traced(
        f"__shared__ {kind} cells[1100]; if (lane == 0) for (int i = 0; i < 1100; ++i)"
        f" cells[i] = source[i]; __syncthreads(); output[lane] = (unsigned char)cells[{index}];"
    )
    loads = both(trace, MemorySpace.SHARED, READ)
    assert (loads.requests, loads.wavefronts, loads.ideal) == (2, turns, ideal)
    assert loads.conflicts == turns - ideal
    assert trace.barriers == 64


def test_constant_memory_serves_one_address_at_a_time(traced: Traced) -> None:
    trace = traced("output[lane] = weights[3];")
    assert both(trace, MemorySpace.CONSTANT, READ).conflicts == 0
    trace = traced("output[lane] = weights[lane];")
    loads = both(trace, MemorySpace.CONSTANT, READ)
    assert (loads.wavefronts, loads.ideal, loads.conflicts) == (64, 2, 62)


def test_threads_that_part_make_requests_of_their_own(traced: Traced) -> None:
    trace = traced(
        "if (lane % 2) output[lane] = source[lane]; else output[lane] = source[100 + lane] + 1;"
    )
    loads = both(trace, MemorySpace.GLOBAL, READ)
    assert (loads.accesses, loads.requests) == (64, 4)
    found = branches(trace)
    assert found.divergent == 2
    assert found.places == (
        (SourceLine("mean.cu", 6), 2),
    )  # where the code before the branch begins
    assert branches(trace, 0).divergent == 1
    assert branches(traced("output[lane] = source[lane];")).divergent == 0


def test_loops_of_different_length_meet_again_at_a_barrier(traced: Traced) -> None:
    trace = traced(
        "int sum = 0; for (int i = 0; i < lane % 32; ++i) sum += source[i]; __syncthreads();"
        "for (int i = 0; i < 2; ++i) { sum += source[100 + i]; __syncthreads(); }"
        "output[lane] = sum;"
    )
    # Of the first loop 31 requests a warp, with fewer and fewer threads; of the second, two.
    assert both(trace, MemorySpace.GLOBAL, READ).requests == 2 * (31 + 2)


def test_lanes_that_leave_a_loop_wait_for_the_others(traced: Traced) -> None:
    trace = traced(
        "const int t = threadIdx.x % 32; int sum = 0;"
        "for (int s = threadIdx.x / 32; s < 4; s += 2)"
        "    for (int i = threadIdx.x % 32; i < 36; i += 32) sum += source[64 * s + i];"
        "output[lane] = sum + t;"
    )
    loads = both(trace, MemorySpace.GLOBAL, READ)
    assert (loads.requests, loads.sectors) == (2 * 4, 2 * 4)  # of each row 32 cells, then 4
    assert loads.accesses == 4 * 36


def test_a_loop_that_is_left_early_keeps_the_laps_of_the_one_around_it(traced: Traced) -> None:
    trace = traced(
        "int sum = 0; for (int s = threadIdx.x % 32; s < 64; s += 32) {"
        "    for (int i = threadIdx.x % 4; i < 4; ++i) { if (i == 3) break; sum += source[i]; }"
        "    sum += source[200];"
        "} output[lane] = sum;"
    )
    # Two laps, each with three inner laps at most and a read of all lanes behind them.
    assert both(trace, MemorySpace.GLOBAL, READ).requests == 2 * 2 * (3 + 1)


def test_a_pixel_on_the_rim_is_written_by_an_instruction_of_its_own(tracer: Tracer) -> None:
    request = request_of("mask", (64, 64), MASK)
    (counts,) = tracer.count(request, level_of(request, "constant"))
    # In rows inside the picture the first and the last warp part at the rim, and write twice.
    assert launch_totals(counts)[MemorySpace.GLOBAL, WRITE].requests == 2 * 64 + 2 * 62


LOOPS = """\
#pragma GCC unroll 1
    for (int i = threadIdx.x;
         i < n; i += 32) a[i] = 0;
    for (int i = 0; i < threadIdx.x; ++i) a[i] = 0;
"""


def test_loops_from_a_threads_index_count_laps() -> None:
    lines = laps_counted(LOOPS).splitlines()
    assert lines == [
        "",
        "    if (emulator::checks::Loop loop_(0); false) {} else "
        '_Pragma("GCC unroll 1") for (int i = threadIdx.x; loop_.turn(), (',
        "         i < n);  i += 32) a[i] = 0;",
        "    for (int i = 0; i < threadIdx.x; ++i) a[i] = 0;",
    ]


def test_a_thread_keeps_order_values_and_lines(traced: Traced) -> None:
    trace = traced("const int a = source[2 * lane];\n output[lane] = a + 7;")
    mine = of_thread(trace, 5)
    read, write = mine[mine["event"] <= WRITE]
    pixels = np.arange(4096, dtype=np.uint16).view(np.uint8)
    assert (read["event"], read["offset"], read["value"]) == (READ, 10, pixels[10])
    assert (write["event"], write["offset"], write["value"]) == (WRITE, 5, pixels[10] + 7)
    lines = [trace.scene.place(int(each["site"])) for each in (read, write)]
    assert lines == [SourceLine("mean.cu", 7), SourceLine("mean.cu", 8)]
    totals = thread_totals(trace, 5)
    assert {key: each.accesses for key, each in totals.items()} == {
        (MemorySpace.GLOBAL, READ): 1,
        (MemorySpace.GLOBAL, WRITE): 1,
    }


def request_of(
    name: str, side: tuple[int, int], values: Mapping[str, object], **more: object
) -> Request:
    pixels = np.random.default_rng(3).integers(0, 256, side, np.uint8)
    return Request.create(Image.from_array(pixels), name, dict(values), **more)  # type: ignore[arg-type]


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    made = Tracer(QuickCompiler.find())
    yield made
    made.close()


MASK = {"mask": [[1, 2, 1], [2, 4, 2], [1, 2, 1]]}


@pytest.mark.parametrize(
    ("name", "values", "cells", "rows", "radius"),
    [
        ("mean", {"size": 5}, 25, 8, 2),
        ("mask", MASK, 9, 8, 1),
        ("median", {"size": 5}, 25, 4, 2),
        ("sobel", {}, 8, 8, 1),
    ],
)
def test_real_kernels_follow_closed_forms(
    tracer: Tracer, name: str, values: Mapping[str, object], cells: int, rows: int, radius: int
) -> None:
    request = request_of(name, (128, 256), values)
    middle = (128 // rows // 2) * 8 + 4

    def totals(level: str) -> dict[tuple[MemorySpace, Event], Totals]:
        trace = tracer.trace(request, level_of(request, level), middle)
        assert not trace.truncated
        both(trace, MemorySpace.GLOBAL, WRITE)
        return launch_totals(trace)

    threads, warps = 32 * rows, rows
    plain = totals("global")
    weights = cells if name == "mask" else 0
    assert plain[MemorySpace.GLOBAL, READ].accesses == threads * (cells + weights)
    assert plain[MemorySpace.GLOBAL, READ].requests == warps * (cells + weights)
    # A row of bytes is a sector in the middle column, and two in each of the others.
    side = 2 * radius + 1
    aligned = cells // side if name != "sobel" else 2
    assert plain[MemorySpace.GLOBAL, READ].sectors == warps * (2 * cells - aligned + weights)
    shared = totals("shared")
    tile = (32 + 2 * radius) * (rows + 2 * radius)
    assert shared[MemorySpace.GLOBAL, READ].accesses == tile
    assert shared[MemorySpace.SHARED, WRITE].accesses == tile
    assert shared[MemorySpace.SHARED, READ].accesses == threads * cells
    assert shared[MemorySpace.SHARED, READ].conflicts == 0
    # The tile's rows begin before a sector and end behind it. Each takes two requests, of 32 and of
    # few cells, that reach two sectors each, whether or not a thread has another row to copy.
    assert shared[MemorySpace.GLOBAL, READ].footprint == 3 * (rows + 2 * radius)
    assert shared[MemorySpace.GLOBAL, READ].requests == 2 * (rows + 2 * radius)
    assert shared[MemorySpace.GLOBAL, READ].sectors == 4 * (rows + 2 * radius)
    assert shared[MemorySpace.SHARED, WRITE].conflicts == 0
    texture = totals("texture")
    assert texture[MemorySpace.TEXTURE, READ].accesses == threads * cells
    assert texture[MemorySpace.TEXTURE, READ].requests == warps * cells


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize("name", ["mean", "mask", "median", "sobel"])
def test_loads_are_those_of_nvidias_compiler(tracer: Tracer, name: str, tmp_path: Path) -> None:
    """At level shared all threads go the same way: each instruction of PTX is executed once."""
    request = request_of(name, (64, 64), MASK if name == "mask" else {})
    level = level_of(request, "shared")
    totals = thread_totals(tracer.trace(request, level, 0), 0)
    launch = plans(request, level)[0].launch
    source = read_source(name)
    macros = [f"-D{key}={value}" for key, value in launch.defines.items()]
    command = ["nvcc", "-ptx", "-arch=sm_90", "-std=c++17", *macros, "kernel.cu", "-o"]

    def write(path: Path) -> None:
        (tmp_path / "kernel.cu").write_text(source, encoding="utf-8")
        done = [*command, str(path)]
        subprocess.run(done, cwd=tmp_path, check=True, capture_output=True, text=True)

    made = builds.built(write, ".ptx", source, command, builds.version("nvcc"))
    text = made.read_text(encoding="utf-8")
    body = text[text.index(f"{launch.kernel}(") :].partition("\n}")[0]
    spaces = {"ld.shared": MemorySpace.SHARED, "ld.const": MemorySpace.CONSTANT}
    for instruction, space in spaces.items():
        assert body.count(instruction) == totals.get((space, READ), Totals()).accesses


def test_a_whole_launch_is_counted_on_several_cores(tracer: Tracer) -> None:
    request = request_of("mean", (96, 128), {"size": 5})
    level = level_of(request, "shared")
    (found,) = tracer.count(request, level)
    alone = Tracer(threads=1)
    (again,) = alone.count(request, level)
    alone.close()
    assert launch_totals(found) == launch_totals(again)
    assert (found.counted, found.scene.blocks) == (48, 48)
    totals = launch_totals(found)
    assert totals[MemorySpace.GLOBAL, WRITE].accesses == 96 * 128
    assert totals[MemorySpace.GLOBAL, WRITE].footprint == 96 * 128 // 32
    assert totals[MemorySpace.GLOBAL, READ].footprint == 96 * 128 // 32
    assert totals[MemorySpace.SHARED, READ].accesses == 25 * 96 * 128
    tiles = 4 * 12 * 36 * 12
    assert totals[MemorySpace.GLOBAL, READ].accesses == tiles  # the rim folds back inside


def test_of_a_large_launch_blocks_that_are_alike_are_counted_once(tracer: Tracer) -> None:
    request = request_of("mean", (256, 512), {"size": 3})
    level = level_of(request, "global")
    (whole,) = tracer.count(request, level)
    (part,) = tracer.count(request, level, most=1_000_000)
    assert whole.counted == 16 * 32
    assert part.counted == 7 * 7
    assert launch_totals(part) == launch_totals(whole)


def test_a_launch_beyond_counting_is_refused(tracer: Tracer) -> None:
    request = request_of("mean", (256, 512), {"size": 3})
    with pytest.raises(AppError, match="too often to be counted"):
        tracer.count(request, level_of(request, "single-block"), most=10_000)


def test_a_trace_has_an_end(tracer: Tracer) -> None:
    request = request_of("mean", (256, 512), {"size": 3})
    trace = tracer.trace(request, level_of(request, "single-block"), 0, most=5000)
    assert trace.truncated
    assert len(trace.records) == 5000
    with pytest.raises(AppError, match="no block 1"):
        tracer.trace(request, level_of(request, "single-block"), 1)
    assert not tracer.trace(request, level_of(request, "global"), 9).truncated


def test_lanes_that_exchange_values_stay_together(tracer: Tracer) -> None:
    """The tuned mean passes values between lanes, where each waits for the others."""
    request = request_of("mean", (128, 512), {"size": 5})
    trace = tracer.trace(request, level_of(request, "tuned"), 0)
    stores = launch_totals(trace)[MemorySpace.GLOBAL, WRITE]
    assert stores.accesses / stores.requests > 16
    both(trace, MemorySpace.GLOBAL, WRITE)


@pytest.mark.parametrize("level", ["single-block", "shared"])
def test_of_a_large_block_one_warp_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tracer: Tracer, level: str
) -> None:
    """The warp of the pixel wholly; of other threads, only copies to shared memory."""
    request = request_of("mean", (64, 64), {"size": 5})
    chosen = level_of(request, level)
    whole, thread = tracer.trace_pixel(request, chosen, 40, 20)
    monkeypatch.setattr(tracing, "WHOLE_RECORDS", 1000)
    part, again = tracer.trace_pixel(request, chosen, 40, 20)
    assert again == thread
    assert whole.whole
    assert not part.whole
    assert not part.truncated
    warp = thread // 32
    columns = ["value", "site", "offset", "event", "array", "bytes", "thread"]
    expected = whole.of_warp(warp).records[columns]
    np.testing.assert_array_equal(part.of_warp(warp).records[columns], expected)
    assert launch_totals(part) == launch_totals(whole)
    others = part.records[part.records["thread"] // 32 != warp]
    spaces = part.scene.spaces()[others["array"]]
    if level == "single-block":
        assert not len(others)
        return
    assert (spaces[1::2] == MemorySpace.SHARED).all()
    assert (spaces[::2] == MemorySpace.GLOBAL).all()
    assert (others["event"][1::2] == WRITE).all()
    assert (others["event"][::2] == READ).all()
    assert (others["thread"][1::2] == others["thread"][::2]).all()
    stores = whole.records[(whole.records["event"] == WRITE)]
    stores = stores[whole.scene.spaces()[stores["array"]] == MemorySpace.SHARED]
    stores = stores[stores["thread"] // 32 != warp]
    for name in ("thread", "offset", "value"):
        np.testing.assert_array_equal(others[name][1::2], stores[name])


def test_keys_are_joined_in_order() -> None:
    first, second = np.array([3, 3, 0, 2**40]), np.array([0, 2**30, 7, 1])
    together = joined(first, second)
    assert (np.argsort(together) == [2, 0, 1, 3]).all()
    assert len(np.unique(together)) == 4
    assert (joined(first, second, second) == joined(first, second)).sum() < 4
    assert (
        occurrence(joined(np.array([1, 2, 1, 1]), np.array([5, 5, 5, 6]))) == [0, 0, 1, 0]
    ).all()


def test_a_pixel_of_non_local_means_is_traced_at_its_last_kernel(tracer: Tracer) -> None:
    request = request_of("nlm", (64, 64), {"search_radius": 2, "patch": 3})
    chosen = level_of(request, "shared")
    found, thread = tracer.trace_pixel(request, chosen, 40, 20)
    assert found.scene.kernel == "nlm_shared_mean"
    assert of_thread(found, thread)["event"].tolist().count(Event.WRITE) > 1


def test_an_expensive_launch_before_runs_in_one_block(
    monkeypatch: pytest.MonkeyPatch, tracer: Tracer
) -> None:
    """The pixel's value is that of a whole run."""
    request = request_of("nlm", (64, 64), {"search_radius": 2, "patch": 3})
    chosen = level_of(request, "global")
    found, thread = tracer.trace_pixel(request, chosen, 40, 20)
    monkeypatch.setattr(tracing, "_EXPENSIVE", 0.0)
    again, same = tracer.trace_pixel(request, chosen, 40, 20)
    assert same == thread
    np.testing.assert_array_equal(of_thread(again, thread), of_thread(found, thread))


def test_what_a_launch_between_reads_is_computed_whole(
    monkeypatch: pytest.MonkeyPatch, tracer: Tracer
) -> None:
    """Collaborative filtering compares blocks twice; groups between read what all blocks found."""
    monkeypatch.setattr(tracing, "_EXPENSIVE", 0.0)
    run, blocks = Tracer._run, []

    def noted(*arguments: Any) -> None:
        blocks.append(arguments[4])
        run(*arguments)

    monkeypatch.setattr(Tracer, "_run", noted)
    request = request_of("collaborative", (40, 40), {"setting": "fast"})
    chosen = level_of(request, "global")
    kernels = [each.kernel for each in tracing.job_of(request, chosen).plan.launches]
    (first, second) = (n for n, name in enumerate(kernels) if name.endswith("match"))
    assert tracer.trace(request, chosen, 0, launch=second).scene.kernel == kernels[second]
    assert blocks == [None] * second
    blocks.clear()
    found, _ = tracer.trace_pixel(request, chosen, 20, 20)
    assert found.scene.kernel == kernels[first]
    assert blocks == [None] * first


def test_a_launch_before_computes_what_the_block_needs(
    monkeypatch: pytest.MonkeyPatch, tracer: Tracer
) -> None:
    """Of the first pass of the sliding DCT, whose launch writes no pixel either."""
    given: list[range | None] = []

    def noted(*arguments: Any, **more: Any) -> None:
        given.append(more.get("rows"))
        run_launch(*arguments, **more)

    request = request_of("sliding_dct", (200, 40), {"sigma": 9.0})
    for level, rows in (("global", range(64, 128)), ("shared", range(57, 114))):
        chosen = level_of(request, level)
        with monkeypatch.context() as patch:
            patch.setattr(tracing, "_rows_of", lambda *_: None)
            whole, thread = tracer.trace_pixel(request, chosen, 20, 90)
        with monkeypatch.context() as patch:
            patch.setattr(tracing, "run_launch", noted)
            found, same = tracer.trace_pixel(request, chosen, 20, 90)
        assert {*given} == {rows}
        given.clear()
        assert same == thread
        np.testing.assert_array_equal(of_thread(found, thread), of_thread(whole, thread))


@pytest.mark.exhaustive
def test_a_pixel_of_sums_of_several_blocks_has_a_thread_at_its_place(tracer: Tracer) -> None:
    request = request_of("nlm", (64, 64), {"search_radius": 3, "patch": 3})
    found, _ = tracer.trace_pixel(request, level_of(request, "tuned"), 40, 20)
    assert (found.scene.kernel, found.scene.launches) == ("nlm_tuned", 2)


@pytest.mark.parametrize(("pixel", "block"), [((40, 20), 0), ((125, 20), 1), ((40, 45), 2)])
def test_where_no_thread_writes_the_pixel_its_place_in_a_tile_counts(
    tracer: Tracer, pixel: tuple[int, int], block: int
) -> None:
    """Collaborative filtering compares the blocks of a picture with eight pixels around it.

    Of those at every fourth column and row, the thread has one in which the pixel is.
    """
    request = request_of("collaborative", (100, 160), {"setting": "fast"})
    step, across = 4, 32
    found, thread = tracer.trace_pixel(request, level_of(request, "global"), *pixel)
    assert (found.number, found.whole_warp) == (block, True)
    first = [(each + 8) // step * step - 8 for each in pixel]
    row, column = thread // across, thread % across
    columns = across * step * (block % 2) + column * step - 8
    assert columns == first[0]
    assert 8 * step * (block // 2) + row * step - 8 == first[1]


def test_a_pixel_that_no_thread_writes_is_refused(
    tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "writer_of", lambda *_: None)
    request = request_of("mean", (64, 64), {"size": 3})
    with pytest.raises(AppError, match=r"No thread of mean_global writes pixel 40, 20\."):
        tracer.trace_pixel(request, level_of(request, "global"), 40, 20)


def test_a_single_block_is_traced_in_the_rows_of_one_lap(tracer: Tracer) -> None:
    """Its 1,024 threads stride over the picture: all laps of 1024 x 1024 take seconds."""
    pixels = np.random.default_rng(7).integers(0, 256, (100, 70), np.uint8)
    request = Request.create(Image.from_array(pixels), "mean", {"size": 3})
    level = level_of(request, "single-block")
    whole = tracer.trace(request, level, 0)
    for y, rows in ((0, range(32)), (40, range(32, 64)), (99, range(96, 100))):
        lap, thread = tracer.trace_pixel(request, level, 50, y)
        assert lap.rows == rows
        assert thread == y % 32 * 32 + 50 % 32
        output = next(n for n, each in enumerate(whole.scene.arrays) if each.name == OUTPUT)
        records = of_thread(whole, thread)
        writes = (records["event"] == WRITE) & (records["array"] == output)
        before = np.cumsum(writes) - writes  # outputs that the thread has written before
        row = records["offset"][writes] // 70
        expected = records[np.isin(row[np.minimum(before, len(row) - 1)], rows)]
        found = of_thread(lap, thread)
        for name in ("value", "offset", "event", "array"):
            np.testing.assert_array_equal(
                found[name][found["event"] <= WRITE], expected[name][expected["event"] <= WRITE]
            )
    block = tracer.trace_pixel(request, level_of(request, "global"), 50, 40)[0]
    assert block.rows is None
