"""The trace of a pixel of an edited kernel, which may do anything, in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelscope.backends.cuda.sources import source_files
from kernelscope.backends.trial.parent import TrialOutcome, try_out
from kernelscope.backends.trial.protocol import (
    TRACED,
    Ending,
    TrialJob,
    TrialLimits,
    TrialPlan,
    Work,
    read_trace,
    write_trace,
)
from kernelscope.base.json_fields import InvalidJson
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import GLOBAL, Level
from kernelscope.traffic.trace import SOURCE, Event, Trace
from tests.backends.emulated import needs_compiler
from tests.backends.traces import of_thread
from tests.patience import PATIENCE

MEAN = source_files("mean")[0].text
CALL = "    compute(source, output, g, Mean());\n"
PIXELS = np.arange(40 * 30, dtype=np.uint16).reshape(30, 40).astype(np.uint8)


def traced(
    text: str, pixel: tuple[int, int], level: Level = GLOBAL, limits: TrialLimits | None = None
) -> TrialOutcome:
    request = Request.create(
        Image.from_array(PIXELS), "mean", {"size": 3}, border=Border.NEAREST, level=level.id
    )
    plan = TrialPlan.of(request, level)
    launch = plan.plan.launches[0]
    job = TrialJob(TRACED, "mean.cu", text, launch.kernel, launch.defines, "mean", pixel=pixel)
    return try_out(job, [Work(request.source.planes, plan, plan)], limits or TrialLimits())


def first_call(code: str) -> str:
    """Return the kernels of the mean with `code` before their work."""
    return MEAN.replace(CALL, f"    {code}\n{CALL}")


def cells(trace: Trace, thread: int) -> list[tuple[int, ...]]:
    """Return row and column of the cells that a thread read, in order."""
    source = next(n for n, each in enumerate(trace.scene.arrays) if each.name == SOURCE)
    records = of_thread(trace, thread)
    reads = records[(records["event"] == Event.READ) & (records["array"] == source)]
    read = trace.scene.arrays[source]
    places = np.unravel_index(reads["offset"] // read.item, read.shape)
    return [(int(row), int(column)) for row, column in zip(*places[:2], strict=True)]


here = pytest.mark.usefixtures("trials_here")


@here
@needs_compiler
@pytest.mark.slow
def test_the_cells_are_those_that_the_edited_kernel_reads() -> None:
    wrong = MEAN.replace("part += row[t]", "part += row[t + 1]")
    assert wrong != MEAN
    made = traced(wrong, (20, 10))
    assert made.trace is not None
    trace, thread = made.trace
    assert cells(trace, thread) == [(y, x) for y in (9, 10, 11) for x in (20, 21, 22)]
    places = [trace.scene.place(int(each)) for each in of_thread(trace, thread)["site"]]
    assert "mean.cu" in {place.file for place in places if place is not None}
    assert trace.scene.level_name == "Your version"


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "ending", "words"),
    [
        ("for (volatile int i = 0;; ) ++i;", Ending.TIME, "ran for more than 0.2 s"),
        ("__trap();", Ending.DIED, "reached a trap"),
        ("*(volatile int*)8 = 3;", Ending.DIED, "outside its memory"),
        ("return;", Ending.REFUSED, "No thread of mean_global writes pixel 20, 10"),
    ],
)
def test_a_kernel_that_cannot_be_traced_is_stopped_and_named(
    code: str, ending: Ending, words: str
) -> None:
    limits = TrialLimits(run=0.2 if ending is Ending.TIME else PATIENCE)
    made = traced(first_call(code), (20, 10), limits=limits)
    assert made.trace is None
    assert made.report.ending is ending
    assert words in made.report.text


@here
@needs_compiler
@pytest.mark.slow
def test_a_kernel_that_does_not_compile_is_named() -> None:
    made = traced(first_call("int missing = nothing;"), (20, 10))
    assert made.trace is None
    assert made.report.ending is Ending.NOT_COMPILED
    assert "compile" in made.report.text


@here
@needs_compiler
@pytest.mark.slow
def test_a_damaged_trace_is_refused(tmp_path: Path) -> None:
    made = traced(MEAN, (0, 0))
    assert made.trace is not None
    trace, thread = made.trace
    write_trace(tmp_path, trace, thread)
    again, same = read_trace(tmp_path)
    assert same == thread
    assert vars(again.scene) == vars(trace.scene)
    assert (again.records == trace.records).all()
    outside = trace.records.copy()
    outside["array"][0] = 99
    write_trace(tmp_path, replace(trace, records=outside), thread)
    with pytest.raises(InvalidJson, match="of no array"):
        read_trace(tmp_path)
    write_trace(tmp_path, trace, 1 << 20)
    with pytest.raises(InvalidJson, match="thread"):
        read_trace(tmp_path)
    (tmp_path / "trace.npz").write_bytes(b"PK")
    with pytest.raises(InvalidJson, match="damaged"):
        read_trace(tmp_path)
