"""Wrong accesses of edited kernels to memory are named with their lines, right results or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope.backends.trial.exercises import exercises, grade_of
from kernelscope.backends.trial.parent import TrialOutcome, try_out
from kernelscope.backends.trial.protocol import (
    CHECKED,
    COMPILE_ONLY,
    Ending,
    TrialJob,
    TrialReport,
)
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model import trials
from kernelscope.gui.model.trials import (
    CHECKED_OPERATIONS,
    CHECKED_SIDES,
    TrialSubject,
    Tried,
    small_work_for,
    try_subject,
    work_for,
)
from kernelscope.images.image import Image
from kernelscope.schema.levels import Level
from tests.backends.emulated import needs_compiler
from tests.backends.test_trial_runs import LINE, MEAN, with_code


def asked(filter_id: str, level: str, **parameters: int) -> tuple[Request, Level]:
    pixels = np.random.default_rng(0).integers(0, 200, (300, 320), np.uint8)
    request = Request.create(Image.from_array(pixels), filter_id, parameters or None, level=level)
    (found,) = (each for each in request.step.filter.levels("gpu") if each.id == level)
    return request, found


def tried(text: str, filter_id: str = "mean", level: str = "shared") -> Tried:
    request, found = asked(filter_id, level)
    launch = work_for(request, found).plan.plan.launches[0]
    job = TrialJob(COMPILE_ONLY, f"{filter_id}.cu", text, launch.kernel, launch.defines)
    subject = TrialSubject(
        *(filter_id, level, job.name, text, launch.kernel, launch.defines),
        works=lambda: [work_for(request, found, 40)],
        small=lambda: small_work_for(request, found),
    )
    return try_subject(subject, job, CancelToken(), lambda *_: None, graded=False)


here = pytest.mark.usefixtures("trials_here")


@here
@needs_compiler
@pytest.mark.slow
def test_a_kernel_without_mistakes_has_no_findings() -> None:
    made = tried(MEAN)
    assert made.outcome.report.ending is Ending.DONE
    assert (made.memory, made.findings, made.unchecked) == ("", (), "")
    grade = grade_of(made.outcome, memory=made.memory)
    assert grade is not None
    assert grade.passed


WRONG = {
    "write behind": ("output[g.width * g.height + 5] = 3;", Ending.FAULT, "of the output"),
    "no value": (
        "__shared__ volatile int box[300]; if (box[threadIdx.x] == 12345) output[0] = 1;",
        Ending.DONE,
        "reads a cell that nothing has written",
    ),
    "no barrier": (
        "__shared__ volatile int box[32][33]; box[threadIdx.y][threadIdx.x] = 1; "
        "if (threadIdx.x && box[threadIdx.y][threadIdx.x - 1] != 1) return;", Ending.DONE,
        "without a barrier between it and thread",
    ),
}  # fmt: skip


@here
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("code", "ending", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_access_is_named_with_its_line(code: str, ending: Ending, words: str) -> None:
    made = tried(with_code(code))
    assert made.outcome.report.ending is ending
    assert made.memory.startswith(f"Wrong access to memory at mean.cu:{LINE}: mean_shared, block")
    assert words in made.memory
    assert any((each.file, each.line) == ("mean.cu", LINE) for each in made.findings)
    grade = grade_of(made.outcome, memory=made.memory)
    if ending is Ending.DONE:  # the result was right by chance
        assert grade is not None
        assert grade.right == 1
        assert not grade.passed
        assert str(grade).startswith("Right: all")
        assert str(grade).endswith(made.memory)


@needs_compiler
@pytest.mark.slow
def test_the_access_of_a_kernel_that_dies_is_named() -> None:
    made = tried(with_code("if (*(volatile int*)8) return;"))
    assert made.outcome.report.ending is Ending.DIED
    assert "reads outside its arrays" in made.memory
    assert made.findings[0].line == LINE


@here
@needs_compiler
@pytest.mark.slow
def test_a_missing_barrier_of_an_exercise_is_named() -> None:
    exercise = exercises()[1]
    barrier = "__syncthreads();"
    assert exercise.solution.count(barrier) == 1
    # Only the threads of a warp wait for each other then.
    text = exercise.solution.replace(barrier, "__syncwarp();")
    job = TrialJob(COMPILE_ONLY, exercise.file, text, exercise.launch.kernel)
    subject = TrialSubject(
        *("exercise", exercise.id, exercise.file, text, exercise.launch.kernel, {}),
        works=exercise.works,
        goal=exercise.goal,
        reference=exercise.filter_id,
    )
    made = try_subject(subject, job, CancelToken(), lambda *_: None, graded=False)
    assert "without a barrier" in made.memory
    assert "Put __syncthreads()" in made.memory, "not a value for cells that come too late"
    places = [(each.line, each.text.partition(" (")[0]) for each in made.findings]
    assert len(places) == len(set(places)) <= 4, "once for all pictures"


@here
@needs_compiler
@pytest.mark.slow
def test_what_cannot_be_checked_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(job: TrialJob, *rest: Any) -> TrialOutcome:
        late = TrialOutcome(TrialReport(Ending.TIME, "Compiling took too long."))
        return late if job.target == CHECKED else try_out(job, *rest)

    monkeypatch.setattr(trials, "try_out", stopped)
    made = tried(MEAN)
    assert made.outcome.report.ending is Ending.DONE
    assert made.memory == ""
    wanted = "Its accesses to memory were not checked: Compiling took too long."
    assert made.unchecked == wanted


def test_the_part_that_is_checked_is_small_where_a_pixel_costs_much() -> None:
    mean = small_work_for(*asked("mean", "shared"))
    assert mean.source.shape == (CHECKED_SIDES[1], CHECKED_SIDES[1], 1)
    nlm = small_work_for(*asked("nlm", "shared"))
    side = nlm.source.shape[0]
    assert CHECKED_SIDES[0] <= side < 48
    operations = sum(each.operations_per_sample for each in nlm.plan.plan.launches)
    assert side * side * operations <= CHECKED_OPERATIONS or side == CHECKED_SIDES[0]


def test_the_kernels_that_are_checked_are_those_that_run() -> None:
    for filter_id in ("mean", "median", "nlm", "sobel", "mask"):
        request, level = asked(filter_id, "tuned")
        usual, small = work_for(request, level), small_work_for(request, level)
        kernels = [[each.kernel for each in work.plan.plan.launches] for work in (usual, small)]
        assert kernels[0] == kernels[1]
