"""Edited kernels on the emulated GPU: results, comparison, and kernels that do harm."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.trial.emulated import Guarded
from kernelscope.backends.trial.exercises import WrongPixel, compare
from kernelscope.backends.trial.parent import TrialOutcome, try_out
from kernelscope.backends.trial.protocol import (
    EMULATED,
    Ending,
    TrialJob,
    TrialLimits,
    TrialPlan,
    TrialReport,
    Work,
)
from kernelscope.base import sandbox
from kernelscope.base.errors import AppError
from kernelscope.base.paths import KERNELS
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.trials import SIDE, part_of, work_for
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from tests.backends.emulated import needs_compiler
from tests.pairs import in_turn
from tests.patience import PATIENCE

pytestmark = needs_compiler

MEAN = (KERNELS / "mean.cu").read_text(encoding="utf-8")
CALL = "    compute(Tiles{source, memory}, output, g, Mean());"


def work(filter_id: str = "mean", level: str = "shared", **options: Any) -> Work:
    pixels = np.random.default_rng(0).integers(0, 200, (40, 70), np.uint8)
    request = Request.create(Image.from_array(pixels), filter_id, level=level, **options)
    (found,) = (each for each in request.step.filter.levels("gpu") if each.id == level)
    return work_for(request, found)


def tried(
    text: str, made: Work | None = None, run: float = PATIENCE, filter_id: str = "mean"
) -> TrialOutcome:
    made = made or work()
    launch = made.plan.plan.launches[0]
    job = TrialJob(EMULATED, f"{filter_id}.cu", text, launch.kernel, launch.defines, filter_id)
    return try_out(job, [made], TrialLimits(run=run))


def with_code(code: str) -> str:
    """Return the mean filter with something in front of its work at level shared."""
    assert MEAN.count(CALL) == 1
    return MEAN.replace(CALL, f"    {code}\n{CALL}")


LINE = 1 + MEAN[: MEAN.index(CALL)].count("\n")
"""Of `mean.cu`, at which that code stands."""


here = pytest.mark.usefixtures("trials_here")


# Results ------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_unchanged_kernel_is_right() -> None:
    outcome = tried(MEAN)
    assert outcome.report.ending is Ending.DONE, outcome.report
    ((output, reference),) = outcome.results
    assert compare(output, reference).count == 0
    assert output.std() > 5
    assert outcome.report.resources["sm_75"].registers > 8


@here
@pytest.mark.slow
def test_a_wrong_kernel_is_wrong_where_it_is() -> None:
    outcome = tried(with_code("if (blockIdx.x == 1 && threadIdx.x == 3) return;"))
    ((output, reference),) = outcome.results
    wrong = compare(output, reference).wrong
    assert wrong[:, 35].mean() > 0.9, "those threads write nothing, or there is no value like it"
    assert np.flatnonzero(wrong.any(axis=0)).tolist()[0] >= 32, "other blocks have their own tiles"


@here
@pytest.mark.slow
@pytest.mark.parametrize(
    ("filter_id", "level"), [("sobel", "texture"), ("nlm", "shared"), ("mean", "single-block")]
)
def test_plans_of_all_kinds_survive_the_way(filter_id: str, level: str) -> None:
    text = (KERNELS / f"{filter_id}.cu").read_text(encoding="utf-8")
    outcome = tried(text, work(filter_id, level), filter_id=filter_id)
    assert outcome.report.ending is Ending.DONE, outcome.report
    ((output, reference),) = outcome.results
    assert np.array_equal(output, reference)
    assert output.std() > 5


@here
@pytest.mark.slow
def test_border_keep_has_the_kernel_that_puts_the_rim_back() -> None:
    made = work(border=Border.KEEP)
    outcome = tried(MEAN.replace("Sum sum = 0;", "Sum sum = 90;"), made)
    ((output, reference),) = outcome.results
    wrong = compare(output, reference).wrong
    assert not wrong[0].any()
    assert wrong[1, 1:-1].all()


# Kernels that do harm -----------------------------------------------------------------

FAULTS = {
    "write behind": ("output[g.width * g.height + 5] = 3;", "behind the output: 1 b"),
    "write in front": ("((Sample*)output)[-7] = 3;", "nearest 7 bytes before"),
    "write to the source": ("((Sample*)source)[0] = 250;", "into the source"),
    "barrier in a branch": (
        "if (threadIdx.x < 5) __syncthreads();",
        f"different barriers, mean.cu:{LINE} and",
    ),
}


@here
@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    code, text = FAULTS[name]
    report = tried(with_code(code)).report
    assert (report.ending, text in report.text) == (Ending.FAULT, True), report
    assert report.hint


DEADLY = {
    "barrier that some miss": (
        "if (threadIdx.x < 5) { volatile int n = 1; while (n) __syncthreads(); }",
        Ending.FAULT,
        "different barriers",
    ),
    "endless loop": ("volatile int n = 1; while (n) {}", Ending.TIME, "more than 0.2 s"),
    "wild write": ("output[1ll << 40] = 3;", Ending.DIED, "outside its memory"),
    "wild read": ("if (*(volatile int*)8) return;", Ending.DIED, "outside its memory"),
    "trap": ("__trap();", Ending.DIED, "reached a trap"),
    "deep stack": ("volatile char all[1 << 22]; all[g.width] = 1;", Ending.DIED, "outside"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", in_turn(tuple(DEADLY), every=2))
def test_harm_is_stopped_and_named(name: str) -> None:
    code, ending, text = DEADLY[name]
    # A long limit for what ends by itself: loading may take as long as a busy machine likes.
    report = tried(with_code(code), run=0.2 if ending is Ending.TIME else PATIENCE).report
    assert (report.ending, text in report.text) == (ending, True), report
    assert report.hint


@here
@pytest.mark.slow
def test_ten_gigabytes_of_shared_memory() -> None:
    code = "__shared__ char all[10ll << 30]; all[threadIdx.x] = 1; output[0] = all[g.width];"
    report = tried(with_code(code)).report
    assert report.ending is Ending.NOT_COMPILED
    assert "10,737,418,240 bytes" in report.messages[0].text


@here
@pytest.mark.slow
def test_errors_stand_at_their_lines() -> None:
    report = tried(with_code("int a = prt;")).report
    assert report.ending is Ending.NOT_COMPILED
    assert (report.messages[0].file, report.messages[0].line) == ("mean.cu", LINE)


@pytest.mark.slow
def test_an_endless_kernel_is_cancelled() -> None:
    token, outcomes = CancelToken(), list[TrialOutcome]()
    made = work()
    launch = made.plan.plan.launches[0]
    text = with_code("volatile int n = 1; while (n) {}")
    job = TrialJob(EMULATED, "mean.cu", text, launch.kernel, launch.defines, "mean")
    runs, limits = threading.Event(), TrialLimits(run=10 * PATIENCE)
    thread = threading.Thread(
        target=lambda: outcomes.append(
            try_out(job, [made], limits, token, begun=lambda _: runs.set())
        )
    )
    thread.start()
    assert runs.wait(PATIENCE)
    token.cancel()
    thread.join(PATIENCE)
    assert outcomes[0].report.ending is Ending.CANCELLED


@pytest.mark.slow
def test_many_cases_run_in_one_process_with_bounded_memory() -> None:
    made = [work(border=border) for border in Border for _ in range(3)]  # libraries of their own
    launch = made[0].plan.plan.launches[0]
    job = TrialJob(EMULATED, "mean.cu", MEAN, launch.kernel, launch.defines, "mean")
    begun = list[int]()
    outcome = try_out(job, made, TrialLimits(run=PATIENCE), begun=begun.append)
    assert outcome.report.ending is Ending.DONE, outcome.report
    assert len(outcome.results) == len(made)
    assert all(compare(*result).count == 0 for result in outcome.results)
    assert begun == sorted(begun)
    assert begun[-1] == len(made)


@pytest.mark.slow
def test_the_case_in_which_a_kernel_dies_is_known() -> None:
    made = [work(), work(border=Border.WRAP), work()]
    launch = made[0].plan.plan.launches[0]
    code = with_code("#if BORDER == 4\n*(volatile int*)8 = 1;\n#endif")
    assert Border.WRAP.code == 4
    begun = list[int]()
    job = TrialJob(EMULATED, "mean.cu", code, launch.kernel, launch.defines, "mean")
    outcome = try_out(job, made, TrialLimits(run=PATIENCE), begun=begun.append)
    assert outcome.report.ending is Ending.DIED, outcome.report
    assert begun[-1] == 2
    assert not outcome.results


# What somebody else's kernel may not do --------------------------------------------------


ATTEMPTS = (
    'fopen("mine", "w") == 0',  # the folder of the trial may be written
    'fopen("OUT/new", "w") != 0',
    'fopen("OUT/old", "a") != 0',
    'rename("OUT/old", "OUT/moved") == 0',
    'remove("OUT/old") == 0',
    'system("echo > OUT/new") == 0',
    "socket(2, 1, 0) >= 0",  # TCP
    "socket(2, 2, 0) >= 0",  # UDP
    "socket(1, 1, 0) >= 0",  # local
)
"""What a kernel should not see, of files in a folder OUT and of the network."""


@pytest.mark.slow
@pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())
def test_a_kernel_writes_nowhere_else_and_has_no_network(tmp_path: Path) -> None:
    def all_fail(*attempts: str) -> bool:
        (tmp_path / "old").write_text("kept")
        seen = " || ".join(attempts).replace("OUT", str(tmp_path))
        first = "blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0"
        code = f"#ifndef __CUDACC__\nif ({first} && ({seen})) __trap();\n#endif"
        declared = '#ifndef __CUDACC__\nextern "C" int socket(int, int, int);\n#endif\n'
        outcome = tried(declared + with_code(code), run=PATIENCE)
        assert [path.name for path in tmp_path.iterdir()] == ["old"]
        assert (tmp_path / "old").read_text() == "kept"
        return outcome.report.ending is Ending.DONE

    assert all_fail(*ATTEMPTS), [each for each in ATTEMPTS if not all_fail(each)]


# Parts --------------------------------------------------------------------------------


def test_plans_are_written_and_read(tmp_path: Path) -> None:
    for made in (work("mask", "constant"), work("nlm", "shared"), work("mean", "single-block")):
        made.plan.write(tmp_path, "plan")
        read = TrialPlan.read(tmp_path, "plan")
        assert (read.task, read.files) == (made.plan.task, made.plan.files)
        assert read.plan.scratch == dict(made.plan.plan.scratch)
        for got, wanted in zip(read.plan.launches, made.plan.plan.launches, strict=True):
            for name in ("kernel", "block", "tile", "shared_bytes", "texture", "steps", "scratch"):
                assert getattr(got, name) == getattr(wanted, name), name
            assert got.defines == wanted.defines
            assert got.constants.keys() == wanted.constants.keys()
            for key, values in wanted.constants.items():
                assert np.array_equal(got.constants[key], values)
            assert all(map(np.array_equal, got.tables, wanted.tables))


def test_the_middle_of_a_picture_is_tried_without_alpha() -> None:
    pixels = np.zeros((SIDE + 10, 30, 4), np.uint8)
    pixels[5, 0, 0] = pixels[-6, -1, 1] = 9
    part = part_of(Image.from_array(pixels))
    assert part.planes.shape == (SIDE, 30, 3)
    assert (part.planes[0, 0, 0], part.planes[-1, -1, 1]) == (9, 9)


def test_what_cannot_be_tried_is_refused() -> None:
    colours = Image.from_array(np.zeros((9, 9, 3), np.uint8))
    request = Request.create(colours, "mean", grey=True, level="shared")
    level = filters.get("mean").levels("gpu")[2]
    with pytest.raises(AppError, match="greyscale first"):
        work_for(request, level)


def test_guards_find_writes_next_to_arrays() -> None:
    guarded = Guarded()
    first = guarded.array("one", (3, 5), np.dtype(np.uint16))
    guarded.array("two", (4,), np.dtype(np.float32))
    assert first.ctypes.data % 512 == 0
    first[...] = 7
    assert not list(guarded.faults())
    held, start, stop = guarded.held["one"]
    held[stop + 3], held[start - 2] = 0, 1
    (before, after) = guarded.faults()
    assert "in front of one: 1 bytes, the nearest 2 bytes before" in before
    assert "behind one: 1 bytes, the nearest 4 bytes behind" in after


def test_integers_are_compared_by_value() -> None:
    reference = np.zeros((3, 4, 2), np.uint8)
    output = reference.copy()
    output[1, 2] = 3, 250
    output[2, 0, 0] = 1
    found = compare(output, reference)
    assert found.count == 2
    assert found.pixel(2, 1) == WrongPixel(2, 1, 1, 0, 250)
    assert found.step(-1, 0, 1) == (2, 1)
    assert found.step(2, 1, 1) == (0, 2)
    assert found.step(0, 2, 1) == (2, 1)
    assert found.step(2, 1, -1) == (0, 2)
    assert found.nearest(3.2, 0) == (2, 1)
    clean = compare(reference, reference)
    assert (clean.count, clean.step(0, 0, 1), clean.nearest(0, 0)) == (0, None, None)


def test_floats_are_compared_with_a_tolerance() -> None:
    reference = np.array([[[100.0], [1.0], [np.nan], [np.inf], [2.0]]], np.float32)
    output = np.array([[[100.0005], [1.002], [np.nan], [np.inf], [np.nan]]], np.float32)
    assert compare(output, reference).wrong.tolist() == [[False, True, False, False, True]]


def test_a_result_of_another_shape_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelscope.backends.trial import parent

    monkeypatch.setattr(parent, "_watch", lambda *_: TrialReport(Ending.DONE))
    outcome = tried(MEAN)
    assert outcome.report.ending is Ending.DIED
    assert not outcome.results
