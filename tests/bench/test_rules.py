"""Caches and load."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelscope.bench import rules
from kernelscope.bench.rules import Load
from tests.scripts import run_python


def test_the_last_cache_is_the_largest(tmp_path: Path) -> None:
    for name, size in (("index0", "32K\n"), ("index2", "512K\n"), ("index3", "32768K\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(size)
    assert max(rules.cache_sizes(tmp_path)) == 32 * 2**20


def test_evicting_rewrites_more_than_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "last_cache", lambda: 4096)
    evictor = rules.Evictor()
    evictor.evict()
    evictor.evict()
    assert evictor.block.nbytes == 8192
    assert (evictor.block == 2).all()


def clocks(monkeypatch: pytest.MonkeyPatch, *readings: tuple[float, float, float] | None) -> None:
    iterator = iter(readings)
    monkeypatch.setattr(rules, "_clocks", lambda: next(iterator))


def test_load_is_what_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 12 busy seconds in 4, 8 are ours: 1 core of others."""
    clocks(monkeypatch, (100.0, 50.0, 10.0), (104.0, 62.0, 18.0))
    assert Load().others() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "readings", [(None, None), ((1.0, 1.0, 1.0), (1.001, 1.0, 1.0))], ids=["no clock", "too short"]
)
def test_unknown_load(
    monkeypatch: pytest.MonkeyPatch, readings: tuple[tuple[float, float, float] | None, ...]
) -> None:
    clocks(monkeypatch, *readings)
    assert Load().others() is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc/stat is Linux")
def test_another_program_is_seen() -> None:
    load = Load()
    busy = "import time; end = time.perf_counter() + 0.7\nwhile time.perf_counter() < end: pass"
    run_python(busy)
    others = load.others()
    assert others is not None
    assert others > 0.4
