"""Trials on a card, as far as they go without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.trial.exercises import compare, grade_of
from kernelscope.backends.trial.on_card import FENCE, ORIGINAL, OWN, _Fenced, ending_of
from kernelscope.backends.trial.parent import TrialOutcome
from kernelscope.backends.trial.protocol import (
    CARD,
    CHECKED,
    COMPILE_ONLY,
    EMULATED,
    CaseFiles,
    Ending,
    TrialJob,
    TrialLimits,
    TrialReport,
    Work,
)
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model import trials
from kernelscope.gui.model.trials import (
    CARD_SIDE,
    TrialSubject,
    card_work_for,
    times_of,
    try_subject,
)
from kernelscope.images.image import Image
from tests.backends.fake_card import FakeCard


def test_fences_show_what_was_written_beside_an_array() -> None:
    card = FakeCard(16 << 20)
    fenced = card.call(_Fenced, card, 1000)
    assert card.call(fenced.faults, "it") == []
    for place in (fenced.start - 3, fenced.start + 1000 + 6):
        card.call(card.cuda.memset_d8_async, place, 7, 1, card.stream)
    before, after = card.call(fenced.faults, "it")
    assert before == ("It wrote in front of it: 1 bytes, the nearest 3 bytes before its beginning.")
    assert after == "It wrote behind it: 1 bytes, the nearest 7 bytes behind its end."
    card.call(card.cuda.memset_d8_async, fenced.start, 9, 1000, card.stream)
    assert len(card.call(fenced.faults, "it")) == 2, "the array itself is the kernel's"
    card.call(card.free, fenced.memory)
    assert FENCE >= 1 << 20


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("cuEventSynchronize failed: an illegal memory access was encountered", "outside its mem"),
        ("cuStreamSynchronize failed: misaligned address", "no multiple of its size"),
        ("cuLaunchKernel failed: too many resources requested for launch", "more registers"),
        ("cuEventSynchronize failed: unspecified launch failure", "a trap"),
        ("cuLaunchKernel failed: something new", "something new"),
    ],
)
def test_messages_of_the_driver_have_a_cause_and_a_way_out(message: str, text: str) -> None:
    cause, hint = ending_of(message)
    assert text in cause
    assert hint.endswith(".")


def test_names_of_other_plans_survive_the_way(tmp_path: Path) -> None:
    request = Request.create(picture(300), "mean", level="shared")
    (level,) = (each for each in request.step.filter.levels("gpu") if each.id == "shared")
    work = card_work_for(request, level)
    files = CaseFiles(tmp_path, 0)
    files.write(work)
    others = list(files.others())
    assert [name for name, _ in others] == list(work.others)
    levels = [plan.task.level for _, plan in others]
    assert levels == [plan.task.level for plan in work.others.values()]
    assert len(set(levels)) > 1


def test_times_are_said_with_the_own_kernel_first() -> None:
    report = TrialReport(
        Ending.DONE, times={ORIGINAL: 2e-3, "Tuned": 1e-3, OWN: 4e-3}, device="H100"
    )
    assert times_of(report) == (
        "Median of 7 launches: yours 4.00 ms, original 2.00 ms, Tuned 1.00 ms."
    )
    assert times_of(replace(report, times={})) == ""
    assert times_of(replace(report, device="")) == "", "an emulated kernel has no time"


def test_a_grade_names_the_card() -> None:
    pixels = np.zeros((2, 3, 1), np.uint8)
    outcome = TrialOutcome(TrialReport(Ending.DONE, device="NVIDIA X"), ((pixels, pixels),))
    grade = grade_of(outcome)
    assert str(grade).endswith("the program's own kernel, on NVIDIA X.")
    assert compare(pixels, pixels).count == 0


def picture(side: int) -> Image:
    return Image.from_array(np.zeros((side, side), np.uint8))


def test_on_a_card_the_picture_is_large_and_other_levels_come_along() -> None:
    request = Request.create(picture(300), "mean", level="shared")
    (level,) = (each for each in request.step.filter.levels("gpu") if each.id == "shared")
    work = card_work_for(request, level)
    assert work.source.shape == (300, 300, 1)
    names = {each.name for each in request.step.filter.levels("gpu")}
    assert set(work.others) == names - {level.name, "Single block"}
    assert "Single block" in names
    assert CARD_SIDE == 4096


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("graded", [False, True])
def test_the_card_comes_first_and_the_emulator_where_it_refuses(
    monkeypatch: pytest.MonkeyPatch, refused: bool, graded: bool
) -> None:
    targets: list[tuple[str, int]] = []

    def try_out(
        job: TrialJob, works: object = (), limits: TrialLimits | None = None, *_: object
    ) -> TrialOutcome:
        targets.append((job.target, limits.memory if limits else -1))
        ending = Ending.REFUSED if refused and job.target == CARD else Ending.DONE
        return TrialOutcome(TrialReport(ending))

    monkeypatch.setattr(trials, "try_out", try_out)
    monkeypatch.setattr(HostCompiler, "find", lambda: HostCompiler(("g++",)))
    request = Request.create(picture(30), "mean", level="shared")
    (level,) = (each for each in request.step.filter.levels("gpu") if each.id == "shared")
    made: list[Work] = [card_work_for(request, level)]
    subject = TrialSubject(
        "mean", "shared", "mean.cu", "", "mean_shared", {}, lambda: made, lambda: made,
        card=lambda: made[0],
    )  # fmt: skip
    job = TrialJob(COMPILE_ONLY, "mean.cu", "", "mean_shared")
    try_subject(subject, job, CancelToken(), lambda *_: None, graded=graded)
    usual = TrialLimits().memory
    card = [] if graded else [(CARD, 0)]
    emulated = [(EMULATED, usual)] if graded or refused else []
    assert targets[:-1] == card + emulated
    assert targets[-1][0] == CHECKED
