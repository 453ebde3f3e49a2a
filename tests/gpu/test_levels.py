"""The levels compute the same as textbook kernels; `bench_levels` compares the cost of both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gpu.contenders import Card
from tests.gpu.textbook import Case, all_cases, differing

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def card() -> Iterator[Card]:
    with Card() as card:
        yield card


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_equals_the_textbook_on_the_interior(case: Case, card: Card) -> None:
    assert set(differing(card, case, 300).values()) == {0}
