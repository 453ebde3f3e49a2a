"""Ends the work of simulated GPUs; lets tests be interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from kernelscope.backends.emulator import EmulatorBackend
from tests.backends.fake_card import FakeCard
from tests.backends.quick_compiler import QuickCompiler, quick_compiler


@pytest.fixture(autouse=True)
def closed_cards() -> Iterator[None]:
    yield
    while FakeCard.opened:
        FakeCard.opened.pop().close()


@pytest.fixture(scope="module")
def emulator(request: pytest.FixtureRequest) -> Iterator[EmulatorBackend]:
    """Yield an emulated GPU of one thread, which needs g++ or clang++.

    Modules whose kernels run for longer than they compile set ``OPTIMISED = True``.
    """
    optimised = getattr(request.module, "OPTIMISED", False)
    backend = EmulatorBackend(QuickCompiler.find() if optimised else quick_compiler(), threads=1)
    assert backend.availability().available
    yield backend
    backend.close()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt: the background job of a shell, as CI may be, ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
