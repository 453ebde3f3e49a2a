"""Live runs before the code of their filter is there, and times without compiling."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base import jit
from kernelscope.engine.context import RunLog
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.run import execute
from kernelscope.engine.steps import execute_all
from kernelscope.gui.model.freshness import Freshness, Pace, describe_part, freshness
from kernelscope.gui.model.runs import figures_of
from kernelscope.images.image import Image
from tests.patience import PATIENCE

PICTURE = Image.from_array(np.random.default_rng(0).integers(0, 256, (40, 50), np.uint8), "a")


def test_numpy_computes_until_the_code_is_ready(backend: CpuBackend) -> None:
    ready, names = threading.Event(), list[str]()

    def on_ready(name: str) -> None:
        names.append(name)
        ready.set()

    backend.on_ready = on_ready
    request = replace(Request.create(PICTURE, "mean", device=Device.CPU), live=True)
    first = execute(request, {"cpu": backend})
    assert first.uncompiled
    assert first.compile_seconds == 0
    assert first.where == "CPU, by NumPy"
    assert ready.wait(PATIENCE)
    later = execute(request, {"cpu": backend})
    assert not later.uncompiled
    assert later.where == "CPU parallel"
    np.testing.assert_array_equal(first.image.pixels, later.image.pixels)
    execute(request, {"cpu": backend})
    assert names == ["Mean"]


def test_another_method_makes_previews_alone(backend: CpuBackend) -> None:
    ready = threading.Event()
    backend.on_ready = lambda name: ready.set()
    wanted = Request.create(PICTURE, "collaborative", {"sigma": 8.0}, device=Device.CPU)
    preview = replace(wanted, live=True, stand_in="")
    first = execute(preview, {"cpu": backend})
    assert first.uncompiled
    assert first.request.stand_in == "sliding DCT"
    assert first.where == "CPU, quick preview by sliding DCT"
    dct = execute(Request.create(PICTURE, "sliding_dct", {"sigma": 8.0}), {"cpu": CpuBackend()})
    assert np.abs(first.image.pixels.astype(int) - dct.image.pixels).max() <= 1
    assert ready.wait(PATIENCE)
    later = execute(preview, {"cpu": backend})
    assert later.request.stand_in is None
    assert later.where == "CPU parallel"
    own = execute(wanted, {"cpu": CpuBackend()})
    np.testing.assert_array_equal(later.image.pixels, own.image.pixels)


def test_what_is_kept_waits_for_the_filter_itself(backend: CpuBackend) -> None:
    """Outputs of earlier steps, and thumbnails."""
    backend.on_ready = lambda name: None
    wanted = Request.create(PICTURE, "collaborative", {"sigma": 8.0}, device=Device.CPU)
    result = execute(replace(wanted, live=True), {"cpu": backend})
    assert not result.uncompiled
    assert result.request.stand_in is None


@pytest.mark.parametrize("region", [None, Region(3, 4, 20, 30)])
def test_parts_and_steps_name_the_method(backend: CpuBackend, region: Region | None) -> None:
    backend.on_ready = lambda name: None
    wanted = Request.create(PICTURE, "collaborative", {"sigma": 8.0}, device=Device.CPU)
    then = () if region else (RunSettings.of(Request.create(PICTURE, "negative")),)
    asked = replace(wanted, region=region, then=then, live=True, stand_in="")
    result = execute_all(asked, {"cpu": backend})
    assert result.request.stand_in == "sliding DCT"
    assert freshness(result.request, asked) is Freshness.PREVIEW
    assert describe_part(result.request) == "by sliding DCT"


def test_code_that_nobody_waits_for_is_not_compiled_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go, compiled = threading.Event(), threading.Event(), list[int]()

    def compile_all(self: CpuBackend, passes: Any, context: Any) -> None:
        begun.set()
        assert go.wait(PATIENCE)
        compiled.append(len(passes))

    monkeypatch.setattr(CpuBackend, "_compile_all", compile_all)
    backend = CpuBackend(threads=1)
    backend.on_ready = lambda name: None
    for filter_id in ("mean", "median", "minimum"):
        request = replace(Request.create(PICTURE, filter_id, device=Device.CPU), live=True)
        execute(request, {"cpu": backend})
    assert begun.wait(PATIENCE)
    closing = threading.Thread(target=backend.close)
    closing.start()
    assert backend._compiler is not None
    while not backend._compiler._shutdown:
        time.sleep(0.001)
    go.set()
    closing.join(PATIENCE)
    assert compiled == [1]


def test_code_that_cannot_be_compiled_is_logged(
    backend: CpuBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(backend, "_compile_all", fail)
    backend.on_ready = lambda name: pytest.fail("it is not ready")
    request = replace(Request.create(PICTURE, "mean", device=Device.CPU), live=True)
    assert execute(request, {"cpu": backend}).uncompiled
    backend.close()
    assert "The code of Mean could not be compiled" in caplog.text


def test_a_preview_by_another_method_does_not_stay_where_the_code_cannot_be_compiled(
    backend: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("no room")

    ready, compile_all = threading.Event(), backend._compile_all
    backend.on_ready = lambda name: ready.set()
    monkeypatch.setattr(backend, "_compile_all", fail)
    wanted = Request.create(PICTURE, "collaborative", {"sigma": 8.0}, device=Device.CPU)
    preview = replace(wanted, live=True, stand_in="")
    assert execute(preview, {"cpu": backend}).request.stand_in
    assert ready.wait(PATIENCE)
    with pytest.raises(OSError, match="no room"):
        execute(preview, {"cpu": backend})
    monkeypatch.setattr(backend, "_compile_all", compile_all)
    assert execute(preview, {"cpu": backend}).request.stand_in is None, "there is room again"


def test_others_wait_for_the_code(backend: CpuBackend) -> None:
    request = Request.create(PICTURE, "mean", device=Device.CPU)
    assert not execute(replace(request, live=True), {"cpu": backend}).uncompiled
    backend.on_ready = lambda name: None
    backend._compiled.clear()
    assert not execute(request, {"cpu": backend}).uncompiled, "Run is measured"
    without = replace(Request.create(PICTURE, "nlm", {"search": "image"}), live=True)
    assert not execute(without, {"cpu": backend}).uncompiled, "it has no such form"


def test_compiling_within_a_stage_is_no_time_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_for(self: jit.JitKernel, types: Any) -> bool:
        time.sleep(0.02)
        return True

    monkeypatch.setattr(jit.JitKernel, "compile_for", compile_for)
    log = RunLog(logged=False)
    kernel = jit.kernel(lambda: None)
    with log.stage("prepare"):
        kernel.compile()
    times = {each.name: each for each in log.stages}
    assert not times["compile"].counted
    assert times["compile"].seconds >= 0.02
    assert times["prepare"].counted
    assert times["prepare"].start >= times["compile"].start + times["compile"].seconds
    assert log.first
    with log.stage("compute"):
        pass
    assert [each.name for each in log.stages].count("compile") == 1


def test_a_cold_time_has_a_mark(backend: CpuBackend) -> None:
    request = replace(Request.create(PICTURE, "mean", device=Device.CPU), live=True)
    result = replace(execute(request, {"cpu": backend}), first=True)
    figures = figures_of(result, None, remark="live, one run")
    assert figures.text.startswith("≈ ")
    assert figures.note.startswith("CPU parallel, live, one run, the first")
    warm = figures_of(replace(result, first=False), None, remark="live, one run")
    assert not warm.text.startswith("≈")
    early = figures_of(replace(result, first=False, uncompiled=True), None)
    assert early.note == "CPU, by NumPy while its code is prepared, one run"


def test_the_pace_without_code_is_forgotten_once_it_is_there() -> None:
    pace, request = Pace(), Request.create(PICTURE, "mean", device=Device.CPU)
    pace.record(request, 2.0, uncompiled=True)
    assert pace.expect(request) == 2.0
    pace.forget_uncompiled()
    assert pace.expect(request) is None
    pace.record(request, 0.1)
    pace.forget_uncompiled()
    assert pace.expect(request) == 0.1
