"""Ends the work of simulated GPUs; lets tests be interrupted."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelscope.backends.cuda import compiler as compiler_module
from kernelscope.backends.cuda.compiler import Nvrtc
from kernelscope.backends.cuda.cubins import CubinCache
from kernelscope.backends.emulator import EmulatorBackend
from tests import builds
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
    if not backend.availability().available:
        pytest.skip("there is no C++ compiler")
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def compiler() -> CubinCache:
    """Return NVRTC with the kernels that it compiled in earlier sessions, by the same code.

    Cubins are found by the text, the macros and the version of NVRTC, and kept with their log.
    """
    code = Path(compiler_module.__file__).read_bytes()
    return CubinCache(Nvrtc(), builds.kept(f"cubins-{hashlib.sha256(code).hexdigest()[:16]}"))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt: the background job of a shell, as CI may be, ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
