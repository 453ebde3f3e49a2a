"""Compilers whose work is kept, and edited kernels in this process; lets tests be interrupted."""

from __future__ import annotations

import hashlib
import signal
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelscope.backends.cuda import compiler as compiler_module
from kernelscope.backends.cuda.compiler import CompileError, Cubin, CubinCache, Nvrtc
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.trial import child, parent
from kernelscope.backends.trial.protocol import StageNotes, TrialJob
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


class QuickNvrtc(Nvrtc):
    """Optimises nothing, in a fifth of the time; what it cannot compile so, it does as usual."""

    def __init__(self) -> None:
        super().__init__("--Ofast-compile=max")

    def compile(self, *arguments: Any) -> Cubin:
        try:
            return super().compile(*arguments)
        except CompileError:
            return Nvrtc().compile(*arguments)


def kept_by(compiler: Any) -> CubinCache:
    """Return a compiler with the kernels that it compiled in earlier sessions, by the same code.

    Cubins are found by the text, the macros and the compiler's version, and kept with their log.
    """
    code = Path(compiler_module.__file__).read_bytes()
    return CubinCache(compiler, builds.kept(f"cubins-{hashlib.sha256(code).hexdigest()[:16]}"))


@pytest.fixture(scope="session")
def compiler() -> CubinCache:
    return kept_by(Nvrtc())


@pytest.fixture(scope="session")
def quick_nvrtc() -> CubinCache:
    return kept_by(QuickNvrtc())


class _TrialHere:
    """Stands for the process of a trial, which has ended once it was started."""

    returncode = 0

    def __init__(self, command: Sequence[str], **_: object) -> None:
        folder = Path(command[-1])
        job = TrialJob.read(folder)
        child._TARGETS[job.target](job, folder, StageNotes(folder)).write(folder)

    def poll(self) -> int:
        return 0


@pytest.fixture
def trials_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try edited kernels in this process, with code that earlier sessions compiled.

    For kernels that end: a process and its compilers take two seconds for each.
    """

    def keep(kind: type[Nvrtc] | type[HostCompiler]) -> None:
        real: Any = kind.compile

        def compile_(compiler: Any, *arguments: Any) -> Cubin:
            names = {each: getattr(compiler, each) for each in ("name", "version")}
            return kept_by(SimpleNamespace(**names, compile=partial(real, compiler))).get(
                *arguments
            )

        monkeypatch.setattr(kind, "compile", compile_)

    keep(Nvrtc)
    keep(HostCompiler)
    here = SimpleNamespace(Popen=_TrialHere, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(parent, "subprocess", here)
    monkeypatch.setattr(parent, "_end", lambda process: None)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt: the background job of a shell, as CI may be, ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
