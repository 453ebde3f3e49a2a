"""The comparison of counts with those of NVIDIA's profiler, on a recorded form of its table."""

from __future__ import annotations

from types import ModuleType

import pytest

from kernelscope.base.paths import RESOURCES
from kernelscope.traffic.totals import Totals
from kernelscope.traffic.trace import Event, MemorySpace
from tests.scripts import load_script

LOADS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"

TABLE = f"""==PROF== Connected to process 4711
Mean, level Shared memory: 0.1 ms
==PROF== Disconnected
"ID","Process ID","Kernel Name","Block Size","Grid Size","{LOADS}","{SECTORS}"
"","","","","","inst","sector"
"0","4711","mean_shared","(32, 8, 1)","(32, 64, 1)","50,000","100000"
"1","4711","mean_shared","(32, 8, 1)","(32, 64, 1)","50000","100000"
"2","4711","other","(32, 8, 1)","(32, 64, 1)","7","7"
"""


@pytest.fixture
def counts() -> ModuleType:
    return load_script(RESOURCES / "bench" / "counts.py")


def totals(requests: int, sectors: int) -> dict[tuple[MemorySpace, Event], Totals]:
    return {(MemorySpace.GLOBAL, Event.READ): Totals(requests=requests, sectors=sectors)}


def test_launches_of_a_kernel_are_added_up(counts: ModuleType) -> None:
    sums, blocks = counts.read_profile(TABLE, "mean_shared")
    assert (sums, blocks) == ({LOADS: 100_000, SECTORS: 200_000}, 2 * 32 * 64)
    with pytest.raises(SystemExit, match="no table"):
        counts.read_profile("==ERROR== no permission", "mean_shared")


def test_two_percent_agree_and_three_do_not(counts: ModuleType) -> None:
    profile = counts.read_profile(TABLE, "mean_shared")
    rows = counts.compare("mean_shared", profile, totals(98_100, 194_000), 4096)
    assert [(row.metric, row.agrees) for row in rows] == [(LOADS, True), (SECTORS, False)]


def test_repeated_runs_count_once(counts: ModuleType) -> None:
    profile = counts.read_profile(TABLE, "mean_shared")
    rows = counts.compare("mean_shared", profile, totals(50_000, 100_000), 2048)
    assert all(row.agrees for row in rows)
    with pytest.raises(SystemExit, match="no multiple of 3000"):
        counts.compare("mean_shared", profile, totals(1, 1), 3000)


def test_the_commands_profile_each_level_of_each_case(counts: ModuleType) -> None:
    lines = [line for line in counts.commands() if line.startswith("ncu")]
    assert len(lines) == 3 + 4 + 4 + 3  # the mask and the median have a level for constant memory
    assert all(metric in lines[0] for metric in counts.METRICS)
    mask = next(line for line in lines if "mask_constant" in line)
    assert "apply mask" in mask
    assert "--level constant" in mask
