"""Ends the work of simulated GPUs; lets tests be interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.backends.fake_card import FakeCard


@pytest.fixture(autouse=True)
def closed_cards() -> Iterator[None]:
    yield
    while FakeCard.opened:
        FakeCard.opened.pop().close()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt: the background job of a shell, as CI may be, ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
