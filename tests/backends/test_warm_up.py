"""The usual code, compiled ahead: order, progress, and the mark that it is done."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from kernelscope.backends import warm_up
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.warm_up import COMMON, DTYPES, Done, FilterCode, pieces
from kernelscope.base import jit
from kernelscope.cli.main import main
from kernelscope.filters.nlm import strength
from kernelscope.images import reduction
from tests.scripts import run_python


def test_filters_in_use_come_first_with_all_their_types() -> None:
    found = pieces(["sobel", "median", "no such filter"])
    assert [each.filter_id for each in found[:6]] == ["sobel"] * 3 + ["median"] * 3
    assert len(found) == len(set(found)) == len(COMMON) * len(DTYPES)
    assert found[6] == FilterCode("nlm", "uint8")
    assert pieces()[: len(COMMON)] == [FilterCode(each, "uint8") for each in COMMON]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(warm_up, "COMMON", ("negative", "mean"))
    monkeypatch.setattr(warm_up, "_is_kept", lambda *_: False)
    return tmp_path


def test_each_piece_is_reported_and_the_last_one_leaves_a_mark(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str]] = []

    def run(backend: CpuBackend, request, level, context) -> None:  # type: ignore[no-untyped-def]
        ran.append((request.step.filter.id, request.source.dtype.name))

    monkeypatch.setattr(CpuBackend, "run", run)
    assert not warm_up.is_done()
    warm_up.serve(io.StringIO("mean\n"))
    lines = [Done(*json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert [(each.number, each.of) for each in lines] == [(n, 6) for n in range(7)]
    assert lines[0].next == "Mean, 8 bit"
    assert lines[-1].next == ""
    assert list(dict.fromkeys(ran))[:4] == [
        *(("mean", dtype) for dtype in DTYPES),
        ("negative", "uint8"),
    ]
    assert warm_up.is_done()


def test_code_that_is_there_is_neither_listed_nor_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = pieces()
    kept, ran = {work[0], work[3]}, []
    monkeypatch.setattr(warm_up, "_is_kept", lambda piece, _: piece in kept)
    monkeypatch.setattr(warm_up, "_compile", lambda piece, _: ran.append(piece))
    steps = warm_up.compile_all(work)
    assert next(steps) == Done(0, 4, work[1].name)
    kept.add(work[2])  # by a run
    assert list(steps) == [Done(2, 4, work[4].name), Done(3, 4, work[5].name), Done(4, 4, "")]
    assert ran == [work[1], work[4], work[5]]
    assert warm_up.is_done()


def test_estimates_are_compiled_as_well(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuBackend, "run", lambda *_: None)
    risks = mock.Mock(would_wait=strength.risks.would_wait)
    monkeypatch.setattr(strength, "risks", risks)
    list(warm_up.compile_all([FilterCode("nlm", "uint8")]))
    risks.assert_called()


def test_the_command_says_what_it_compiles(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuBackend, "run", lambda *_: None)
    assert main(["warm-up"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 6: Negative, 8 bit"
    assert lines[-1] == "All is compiled."
    monkeypatch.setattr(jit, "can_cache", lambda: False)
    assert main(["warm-up"]) == 1
    assert "Set XDG_CACHE_HOME" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", DTYPES)
def test_pictures_are_shown_reduced_by_compiled_code(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    monkeypatch.setattr(reduction, "_compiled", set())
    assert list(warm_up._requests(FilterCode(COMMON[0], dtype)))
    assert np.dtype(dtype) in reduction._compiled


@pytest.mark.slow
def test_compiled_code_is_found_by_another_process(tmp_path: Path) -> None:
    """What is compiled ahead is what a run of that filter and type loads."""
    code = """
import sys, numpy as np
from kernelscope.backends import warm_up
warm_up.COMMON, warm_up.DTYPES = ("negative",), ("uint8",)
print(*(done.of for done in warm_up.compile_all(warm_up.pieces())))
print(*(done.of for done in warm_up.compile_all(warm_up.pieces())))
from kernelscope.base import jit
jit._elsewhere = lambda *of: print("asked for", of[:2])
from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
picture = Image.from_array(np.zeros((50, 60), np.uint8), "a")
execute(Request.create(picture, "negative", device=Device.CPU), {"cpu": CpuBackend()})
print("done", warm_up.is_done())
"""
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    assert run_python(code, env=env).splitlines() == ["1 1", "0", "done True"]
