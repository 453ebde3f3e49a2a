"""The command ``trace``: figures of levels for people and for programs, counted without a GPU."""

from __future__ import annotations

import json
import statistics

import pytest

from kernelscope.base.durations import duration
from kernelscope.bench import recorded
from kernelscope.bench.report import load
from kernelscope.traffic.trace import SECTOR
from tests.backends.emulated import needs_compiler
from tests.cli.running import refused, run

pytestmark = [needs_compiler, pytest.mark.slow]


def test_a_table_of_levels() -> None:
    said = run("trace mean --size 5 --side 64 --level global shared texture")
    title, _, *lines = said.out.splitlines()
    assert title == "Mean, for each pixel of the output of 64×64 random pixels:"
    rows = {line[:22].strip(): line[22:].split() for line in lines[1:]}
    assert rows["global loads"] == ["25.00", "1.69", "–"]  # a tile has 36 x 12 cells for 32 x 8
    assert rows["texture fetches"] == ["–", "–", "25.00"]
    assert rows["shared loads"] == ["–", "25.00", "–"]
    assert rows["global stores"] == ["1.00", "1.00", "1.00"]
    assert rows["bytes of device memory"] == ["2.00", "2.00", "2.00"]
    assert any(line.startswith("bytes past the L1 cache ") for line in lines)
    assert rows["barriers of a thread"] == ["0.00", "2.00", "0.00"]


def test_json_has_totals_of_each_launch() -> None:
    found = json.loads(run("trace sobel --side 64 --level global --json").out)
    assert found["filter"] == "sobel"
    (level,) = found["levels"]
    (launch,) = level["launches"]
    assert (launch["kernel"], launch["grid"], launch["counted_blocks"]) == (
        *("sobel_global", [2, 8, 1]),
        16,
    )
    assert launch["totals"]["global loads"]["accesses"] == 8 * 64 * 64
    assert launch["totals"]["global stores"]["footprint"] == 64 * 64 // SECTOR


def test_the_block_of_a_pixel() -> None:
    line = "trace mean --side 64 --level shared --at"
    text = run(f"{line} 40,9").out
    assert text.startswith("mean_shared, block [1, 1, 0], 256 threads")
    assert "shared loads: 2,304 accesses, 72 requests" in text
    (block,) = json.loads(run(f"{line} 40,9 --json").out)
    assert (block["level"], block["truncated"]) == ("shared", False)
    assert block["totals"]["global loads"]["accesses"] == 34 * 10
    for space, others in {
        "global": ("wavefronts", "ideal"),
        "shared": ("sectors", "needed"),
    }.items():
        (line_of,) = (each for each in text.splitlines() if each.startswith(f"  {space} loads"))
        assert not any(each in line_of for each in others), "it has none of them, not 0"
        assert not set(others) & set(block["totals"][f"{space} loads"])
    assert "There is no pixel 64, 9" in refused(f"{line} 64,9")
    refused("trace mean --at three", status=2)


def test_volumes_and_partly_counted_launches() -> None:
    assert "global loads" in run("trace mri-nlm --side 4 --level global").out
    found = run("trace mean --size 15 --side 2048 --level global")
    assert "one of each kind: mean_global (49 of 8,192)" in found.err
    assert "225.00" in found.out


def test_least_times_on_a_card() -> None:
    said = run("trace mean --side 64 --level global shared --card", "geforce 210")
    *_, heading, _, first, second = said.out.splitlines()
    assert heading == "Lower bound on GeForce 210, and the unit that sets it:"
    assert first.split()[0] == "Global"
    assert first.endswith("µs  device memory")
    assert second.endswith("µs  device memory")
    said = run("trace median --size 3 --level global --card H100")
    *_, line, reason = said.out.splitlines()
    report = load(recorded.FOLDER / "gpu-f-graphs.json")
    [seconds] = [
        statistics.median(row.seconds)
        for row in report.rows
        if (row.filter, row.level, row.parameters.get("size")) == ("median", "global", "3")
        and tuple(row.asked) == (512, 512)
    ]
    when = recorded.day(report.machine["Date"])
    assert f"  loads and stores  recorded {when}: {duration(seconds)}, " in line
    assert line.endswith(" times")
    assert reason.startswith("Global memory ")
    assert "GTX 480" in refused("trace mean --card Voodoo", status=2)
