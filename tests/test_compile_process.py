"""Kernels are compiled in another process, and loaded from the cache."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope.base import compile_process, jit
from kernelscope.base.compile_process import CompileProcess
from kernelscope.filters.shared.border_kernels import divide_round
from tests.paths import ROOT

MODULE = "kernelscope.filters.shared.border_kernels"

LOADS = """
from kernelscope.base import jit
jit.load_numba()
from numba.core import compiler
from kernelscope.base.compile_process import CompileProcess
from kernelscope.filters.shared.border_kernels import divide_round
def refuse(*_, **__):
    raise AssertionError("compiled here")
compiler.compile_extra = refuse
other = CompileProcess()
jit.compile_elsewhere(other)
{before}
assert divide_round(7, 2) == 4
"""


def python(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=settings | {"XDG_CACHE_HOME": str(cache)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def asked() -> Iterator[list[tuple[str, str, Any]]]:
    """Return the kernels that are compiled elsewhere, which here is nowhere."""
    requests: list[tuple[str, str, Any]] = []
    jit.compile_elsewhere(lambda *request: requests.append(request))
    yield requests
    jit.compile_elsewhere(None)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is set the Linux way")
def test_this_process_compiles_nothing(tmp_path: Path) -> None:
    done = python(LOADS.format(before=""), tmp_path)
    assert done.returncode == 0, done.stderr
    # The other process may be gone: it was idle, or had grown.
    gone = "import numpy as np; divide_round(np.int8(1), 2); other._process.kill()"
    done = python(LOADS.format(before=gone), tmp_path / "empty")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is set the Linux way")
def test_without_another_process_this_one_compiles(tmp_path: Path) -> None:
    """One that is always full answers nothing, and a system may start none."""
    for before in (
        "jit.compile_elsewhere(None)",
        "import sys; sys.executable = '/nowhere'",
        "import sys; sys.executable = '/bin/true'",
    ):
        done = python(LOADS.format(before=before), tmp_path)
        assert "compiled here" in done.stderr


def test_requests_are_answered_until_there_are_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def serve(*requests: tuple[str, str, tuple[Any, ...]]) -> list[str]:
        answers = io.StringIO()
        compile_process.serve(io.BytesIO(b"".join(map(pickle.dumps, requests))), answers)
        return answers.getvalue().splitlines()

    monkeypatch.setattr(compile_process, "MOST_BYTES", 2**60)  # this process may hold more
    good = (MODULE, "divide_round", jit.JitKernel.types_of(1, 2))
    bad = (MODULE, "nobody", ())
    assert serve(good) == [""]
    assert serve(bad, good) == [f"AttributeError: module '{MODULE}' has no attribute 'nobody'", ""]
    monkeypatch.setattr(compile_process, "MOST_BYTES", 0)
    assert serve(good) == []


def test_only_new_code_that_others_can_find_is_compiled_elsewhere(
    asked: list[tuple[str, str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    types = jit.JitKernel.types_of(np.int16(1), np.int8(2))
    monkeypatch.setattr(divide_round, "_is_kept", lambda _: True)
    divide_round.compile_for(jit.JitKernel.types_of(1, np.int8(3)))
    assert asked == []
    monkeypatch.setattr(divide_round, "_is_kept", lambda _: False)
    divide_round.compile_for(types)
    divide_round.compile_for(types)
    assert asked == [(MODULE, "divide_round", types)]

    @jit.kernel
    def one(value):  # type: ignore[no-untyped-def]
        return value + 1

    assert one(1) == 2
    assert len(asked) == 1


def test_a_process_that_ends_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def start() -> subprocess.Popen[bytes]:
        starts.append(1)
        return subprocess.Popen(
            [sys.executable, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    monkeypatch.setattr(compile_process, "_start", start)
    other = CompileProcess()
    other(MODULE, "divide_round", ())
    other(MODULE, "divide_round", ())
    assert len(starts) == 2
    other.close()


def test_nobody_waits_for_code_that_cannot_be_kept(
    asked: list[tuple[str, str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose dispatcher has no cache that could be asked."""
    monkeypatch.setattr(jit, "can_cache", lambda: False)
    monkeypatch.setattr(divide_round, "_dispatchers", {})
    assert not divide_round.would_wait(np.zeros((2, 3), np.float16), 2)
    assert asked == []


@pytest.mark.slow
def test_a_call_that_would_wait_is_known_before(asked: list[tuple[str, str, Any]]) -> None:
    values = np.zeros((2, 3), np.float16)  # of a type that nothing has compiled
    assert divide_round.would_wait(values, 2)
    assert not jit.kernel(lambda value: value).would_wait(7), "another process does not find it"
    assert asked == []
    jit.compile_elsewhere(None)
    assert not divide_round.would_wait(values, 2)
