"""Edited kernels on a card: results, times, and kernels that do harm."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from kernelscope.backends.trial.exercises import compare
from kernelscope.backends.trial.on_card import ORIGINAL, OWN
from kernelscope.backends.trial.parent import TrialOutcome, try_out
from kernelscope.backends.trial.protocol import CARD, Ending, TrialJob, TrialLimits, Work
from kernelscope.base.paths import KERNELS
from kernelscope.engine.request import Request
from kernelscope.gui.model.trials import card_work_for, cases_for
from kernelscope.images.image import Image
from tests.backends.test_trial_runs import MEAN, with_code

pytestmark = pytest.mark.gpu


def request(filter_id: str, level: str, side: int = 1000) -> Request:
    pixels = np.random.default_rng(0).integers(0, 200, (side, side + 30), np.uint8)
    return Request.create(Image.from_array(pixels), filter_id, level=level)


def work(filter_id: str = "mean", level: str = "shared", side: int = 1000) -> Work:
    made = request(filter_id, level, side)
    (found,) = (each for each in made.step.filter.levels("gpu") if each.id == level)
    return card_work_for(made, found)


def tried(text: str, *works: Work, run: float = 20, filter_id: str = "mean") -> TrialOutcome:
    launch = works[0].plan.plan.launches[0]
    job = TrialJob(CARD, f"{filter_id}.cu", text, launch.kernel, launch.defines, filter_id)
    return try_out(job, works, TrialLimits(run=run, memory=0))


@pytest.mark.parametrize(
    ("filter_id", "level"),
    [("mean", "shared"), ("mask", "constant"), ("sobel", "texture"), ("nlm", "tuned")],
)
def test_an_unchanged_kernel_is_right_and_as_fast(
    gpu: CudaBackend, filter_id: str, level: str
) -> None:
    text = (KERNELS / f"{filter_id}.cu").read_text(encoding="utf-8")
    outcome = tried(text, work(filter_id, level), filter_id=filter_id)
    report = outcome.report
    assert report.ending is Ending.DONE, report
    ((output, reference),) = outcome.results
    assert np.array_equal(output, reference)
    assert output.std() > 5
    assert report.device
    assert report.times[OWN] > 0
    others = {"Global memory", "Tuned"} - {"Tuned" if level == "tuned" else ""}
    assert others <= set(report.times)


def test_a_slower_kernel_takes_longer(gpu: CudaBackend) -> None:
    twice = with_code("compute(Tiles{source, memory}, output, g, Mean());")
    report = tried(twice, work(side=4000)).report
    assert report.ending is Ending.DONE, report
    assert 1.4 < report.times[OWN] / report.times[ORIGINAL] < 3


def test_a_wrong_kernel_is_wrong_where_it_is(gpu: CudaBackend) -> None:
    outcome = tried(with_code("if (blockIdx.x == 1 && threadIdx.x == 3) return;"), work(side=100))
    ((output, reference),) = outcome.results
    wrong = compare(output, reference).wrong
    assert np.flatnonzero(wrong.any(axis=0)).tolist()[0] >= 32, "other blocks have their own tiles"
    assert wrong.any()


def test_cases_of_the_contract(gpu: CudaBackend) -> None:
    made = request("mean", "global", 50)
    (level,) = (each for each in made.step.filter.levels("gpu") if each.id == "global")
    works = cases_for(made, level)[:6]
    outcome = tried(MEAN, *works)
    assert outcome.report.ending is Ending.DONE, outcome.report
    assert all(np.array_equal(*each) for each in outcome.results)
    assert len(outcome.results) == 6


HOSTILE = {
    "endless loop": ("while (clock64() > 0) {}", Ending.TIME, "more than 5 s"),
    "write behind": ("output[g.width * g.height + 5] = 3;", Ending.FAULT, "behind the output: 1 b"),
    "write in front": ("((Sample*)output)[-7] = 3;", Ending.FAULT, "nearest 7 bytes before"),
    "write to the source": ("((Sample*)source)[0] = 250;", Ending.FAULT, "into the source"),
    "wild write": ("output[1ll << 40] = 3;", Ending.FAULT, "outside its memory"),
    "trap": ("__trap();", Ending.FAULT, "trap"),
    "misaligned": ("((volatile int*)(output + 1))[0] = 1;", Ending.FAULT, "multiple of its size"),
    "no such name": ("nothing();", Ending.NOT_COMPILED, ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_harm_is_stopped_and_named(gpu: CudaBackend, name: str) -> None:
    code, ending, text = HOSTILE[name]
    report = tried(with_code(code), work(side=100), run=5).report
    assert (report.ending, text in report.text) == (ending, True), report
    # The window's own context still works.
    again = tried(MEAN, work(side=100)).report
    assert again.ending is Ending.DONE, again
