"""The grade of a kernel in words, and the case that is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelscope.backends.trial.exercises import Grade, compare

SHAPES = ((1, 1), (7, 1), (17, 33), (31, 64))


def grade(wrong: dict[int, int], titles: tuple[str, ...] = ()) -> Grade:
    """Return a grade with so many wrong pixels in some of the cases."""
    comparisons = []
    for number, shape in enumerate(SHAPES):
        reference = np.zeros((*shape, 1), np.uint8)
        output = reference.copy()
        output.reshape(-1)[: wrong.get(number, 0)] = 1
        comparisons.append(compare(output, reference, 0))
    return Grade(tuple(comparisons), titles=titles)


@pytest.mark.parametrize("titles", [(), ("", "", "", "")])
def test_of_cases_that_differ_in_size_the_largest_wrong_one_is_shown(
    titles: tuple[str, ...],
) -> None:
    """The map of wrong pixels was that of one pixel, in which no pattern is seen."""
    found = grade({0: 1, 1: 2, 2: 40}, titles)
    assert found.worst.wrong.shape == (17, 33)
    assert str(found) == (
        "Right on 1 of 4 pictures. Of the largest wrong one, 40 of 33 × 17 pixels differ from "
        "the program's own kernel."
    )


def test_of_cases_with_titles_the_first_wrong_one_is_shown() -> None:
    found = grade({1: 2, 2: 40}, ("8 bit", "16 bit", "float", "cut"))
    assert found.worst.wrong.shape == (7, 1)
    assert str(found) == "Right in 2 of 4 cases. First wrong: 16 bit, 2 of 7 pixels."


def test_a_kernel_that_is_right_shows_its_first_case() -> None:
    found = grade({})
    assert found.worst.wrong.shape == (1, 1)
    assert str(found) == "Right on all 4 pictures."
    assert found.passed


def test_a_kernel_whose_reads_were_not_counted_does_not_reach_a_goal() -> None:
    found = replace(grade({}), goal=1.5)
    assert not found.passed
    assert str(found) == ("Right on all 4 pictures. Its reads from global memory were not counted.")
