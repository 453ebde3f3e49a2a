"""The exercises: solutions pass, starters do not, and every number in a goal is reached."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from kernelscope.backends.trial import exercises as module
from kernelscope.backends.trial.exercises import SHAPES, Exercise, Grade, exercises, grade_of
from kernelscope.backends.trial.protocol import COMPILE_ONLY, Ending, TrialJob
from kernelscope.base.errors import AppError
from kernelscope.engine.control import CancelToken
from kernelscope.gui.model.trials import TrialSubject, try_subject
from tests.backends.emulated import needs_compiler
from tests.pairs import in_turn

pytestmark = pytest.mark.usefixtures("trials_here")

each = pytest.mark.parametrize("exercise", exercises(), ids=lambda each: each.id)

COUNTED = {
    "1-thread-a-pixel": 9,
    "2-shared-tile": 34 * 10 / 256,
    "3-constant-mask": 34 * 10 / 256,
    "4-texture": 0,
    "5-several-results": 34 * 34 / 1024,
    "6-sobel-rows": 3 * 34 / 32,
    "7-nlm-tile": 38 * 14 / 256,
}
"""Reads a pixel of each solution, counted by hand."""


@functools.cache
def graded(exercise: Exercise, text: str) -> Grade:
    names = exercise.file, text, exercise.launch.kernel
    job = TrialJob(COMPILE_ONLY, *names)
    subject = TrialSubject(
        *("exercise", exercise.id, *names, {}),
        works=exercise.works,
        reference=exercise.filter_id,
    )
    made = try_subject(subject, job, CancelToken(), lambda *_: None, graded=False)
    assert made.outcome.report.ending is Ending.DONE, made.outcome.report
    assert not made.unchecked
    goal, tolerance = exercise.goal, exercise.tolerance
    grade = grade_of(made.outcome, goal, (), made.memory, tolerance, made.loads)
    assert grade is not None
    return grade


def test_there_are_seven() -> None:
    assert [exercise.id for exercise in exercises()] == list(COUNTED)


@needs_compiler
@pytest.mark.slow
@each
def test_the_solution_passes(exercise: Exercise) -> None:
    grade = graded(exercise, exercise.solution)
    assert grade.passed, str(grade)
    assert grade.right == len(SHAPES)
    assert grade.loads == pytest.approx(COUNTED[exercise.id])
    assert str(grade).startswith("Passed.")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("exercise", in_turn(exercises(), every=3), ids=lambda each: each.id)
def test_the_starter_does_not(exercise: Exercise) -> None:
    grade = graded(exercise, exercise.starter)
    assert not grade.passed
    assert "To do" in exercise.starter


@needs_compiler
@pytest.mark.slow
def test_a_missing_barrier_is_a_wrong_result() -> None:
    exercise = exercises()[1]
    assert exercise.solution.count("__syncthreads();") == 1
    assert not graded(exercise, exercise.solution.replace("__syncthreads();", "")).passed


@needs_compiler
@pytest.mark.slow
def test_reads_are_counted_for_the_largest_picture() -> None:
    exercise = exercises()[0]
    once_more = "int sum = 0 * *(const volatile Cell*)source;"
    grade = graded(exercise, exercise.solution.replace("int sum = 0;", once_more))
    assert grade.right == len(SHAPES)
    assert grade.loads == pytest.approx(10)
    assert not grade.passed
    assert "reads 10 cells a pixel" in str(grade)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "old", "new", "loads"),
    [
        pytest.param("solution", "unsigned char tile", "Cell tile", 340 / 256, id="tile of cells"),
        pytest.param(
            "starter",
            "sum += source[row + clamped(x + t, picture.width)]",
            "sum += ((const unsigned char*)source)[row + clamped(x + t, picture.width)]",
            9,
            id="plain pointer",
        ),
        pytest.param(
            "starter",
            "sum += source[row + clamped(x + t, picture.width)]",
            "{ Cell c; memcpy(&c, source + row + clamped(x + t, picture.width), 1); sum += c; }",
            9,
            id="memcpy",
        ),
    ],
)  # fmt: skip
def test_reads_count_by_the_memory_not_by_the_type(
    text: str, old: str, new: str, loads: float
) -> None:
    exercise = exercises()[1]
    source = getattr(exercise, text)
    assert old in source
    grade = graded(exercise, source.replace(old, new))
    assert grade.right == len(SHAPES)
    assert grade.loads == pytest.approx(loads)
    assert grade.passed is (loads <= 1.5)


@each
def test_each_hint_is_there_once_and_code_in_it_is_marked(exercise: Exercise) -> None:
    assert 2 <= len(exercise.hints) == len(set(exercise.hints))
    for text in (*exercise.hints, exercise.text):
        assert text.count("`") % 2 == 0
        plain = "".join(text.split("`")[::2])
        assert "__" not in plain, "Markdown would take it for emphasis"


def test_a_damaged_exercise_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = module.FOLDER / "1-thread-a-pixel"
    target = tmp_path / source.name
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert module.read_exercise(target).goal == 9
    text = (target / "exercise.json").read_text(encoding="utf-8")
    for old, new in (('"goal"', '"gaol"'), ("[32, 8]", "[32]"), ("9.0", '"9"')):
        assert old in text
        (target / "exercise.json").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(AppError, match=r"exercise\.json"):
            module.read_exercise(target)


@needs_compiler
@pytest.mark.slow
def test_a_difference_of_two_levels_is_wrong_where_floats_are_rounded() -> None:
    exercise = exercises()[-1]
    assert exercise.tolerance == 1
    one = exercise.solution.replace("+ 0.5f)", "+ 0.5f) + (x % 2 ? 0 : 1)")
    two = exercise.solution.replace("+ 0.5f)", "+ 0.5f) + (x % 2 ? 0 : 2)")
    assert one != exercise.solution
    assert graded(exercise, one).right > graded(exercise, two).right
    assert not graded(exercise, two).passed
