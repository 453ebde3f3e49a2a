"""Ends what cards that are made up have begun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends.fake_card import FakeCard


@pytest.fixture(autouse=True)
def closed_cards() -> Iterator[None]:
    yield
    while FakeCard.opened:
        FakeCard.opened.pop().close()
