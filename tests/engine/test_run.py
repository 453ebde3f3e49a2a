"""One request from start to end: which device, which level, which reports."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled, DeviceUnavailable, InvalidParameter, OutOfMemory
from kernelscope.engine.context import RunLog
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.timing import Stage
from kernelscope.images.image import Image
from kernelscope.schema.levels import GPU_LEVELS, Level
from tests.engine.fakes import FakeBackend, request


def machine(gpu: bool, gpu_levels=GPU_LEVELS) -> dict[str, FakeBackend]:
    """Return backends of a machine with or without a usable GPU."""
    return {
        "gpu": FakeBackend("gpu", available=gpu, levels=gpu_levels),
        "cpu": FakeBackend("cpu"),
    }


@pytest.mark.parametrize("of_part", [False, True])
def test_mended_samples_are_counted(backends: dict[str, CpuBackend], of_part: bool) -> None:
    """*Contrast* could not be set by sight: neither window nor command line said what it found."""
    pixels = np.full((40, 50, 3), 90, np.uint8)
    pixels[::2] += 1
    pixels[8, 9] = 255
    pixels[20, 30, 1] = 0
    image = Image.from_array(pixels, "photo")
    wanted = Request.create(image, "hot_pixels")
    if of_part:
        wanted = replace(wanted, region=Region(15, 5, 20, 40), live=True)
    result = execute(wanted, backends)
    text = "1 sample in this part" if of_part else "4 samples"
    assert [each for each in result.notices if "mended" in each] == [f"Hot pixels: mended {text}."]
    assert result.caption == f"Hot pixels · {1 if of_part else 4} mended · CPU parallel"
    assert execute(Request.create(image, "mean"), backends).changed is None
    nothing = Image.from_array(pixels[:7], "top")
    found = execute(Request.create(nothing, "hot_pixels"), backends)
    assert "Hot pixels: mended no sample." in found.notices
    grey = execute(Request.create(image, "hot_pixels", grey=True), backends)
    assert grey.changed == 2


@pytest.mark.parametrize("gpu", [False, True])
def test_auto_takes_the_gpu_if_there_is_one(gpu: bool) -> None:
    image = Image.from_array(np.zeros((512, 512), np.uint8))
    result = execute(Request.create(image, "mean", device=Device.AUTO), machine(gpu))
    assert (result.device, result.level) == (("gpu", "tuned") if gpu else ("cpu", "parallel"))


def test_auto_takes_the_cpu_for_a_filter_that_the_gpu_lacks() -> None:
    assert execute(request(device=Device.AUTO), machine(True, ())).device == "cpu"


def test_auto_takes_the_device_that_has_the_level() -> None:
    result = execute(request(device=Device.AUTO, level="serial"), machine(True))
    assert (result.device, result.level) == ("cpu", "serial")


def test_the_result_of_a_level_that_shows_a_fault_says_so() -> None:
    fault = Level("fault", "Fault", "Shows a fault.", exact=False)
    backends = machine(True, (fault, *GPU_LEVELS))
    result = execute(request(device=Device.GPU, level="fault"), backends)
    assert result.notices == ("Level Fault shows a fault: its result is wrong.",)
    assert not execute(request(device=Device.GPU, level="tuned"), backends).notices


def test_an_explicit_gpu_never_falls_back() -> None:
    backends = machine(False)
    with pytest.raises(DeviceUnavailable) as caught:
        execute(request(device=Device.GPU), backends)
    assert caught.value.message == "The GPU cannot be used: fake GPU"
    with pytest.raises(DeviceUnavailable, match="no GPU backend"):
        execute(request(device=Device.GPU), {"cpu": backends["cpu"]})


@pytest.mark.parametrize("level", [None, "tuned"])
def test_a_device_that_lacks_the_filter_is_refused(level: str | None) -> None:
    with pytest.raises(InvalidParameter) as caught:
        execute(request(device=Device.GPU, level=level), machine(True, ()))
    assert str(caught.value) == "Mean does not run on the GPU. Choose CPU or Auto."


@pytest.mark.parametrize("device", [Device.AUTO, Device.CPU])
def test_an_unknown_level_is_refused(device: Device) -> None:
    with pytest.raises(InvalidParameter) as caught:
        execute(request(device=device, level="warp"), machine(True))
    assert caught.value.message == "Mean has no level “warp” on the CPU."
    assert caught.value.hint == "Use one of serial, parallel."


def test_a_block_is_dropped_with_a_word_where_it_has_no_effect() -> None:
    asked: list[Request] = []
    backends = {
        "gpu": FakeBackend("gpu", lambda request, *_: asked.append(request), levels=GPU_LEVELS),
        "cpu": FakeBackend(),
    }
    block = (16, 16)
    shared = execute(request(device=Device.GPU, level="shared", block=block), backends)
    assert asked[-1].options.block == shared.request.options.block == block
    assert shared.settings == "Mean, mask size 3 px, reflect border, blocks of 16×16"
    assert not shared.notices
    for device, level, name in ((Device.GPU, "tuned", "GPU tuned"), (Device.CPU, None, "CPU para")):
        result = execute(request(device=device, level=level, block=block), backends)
        assert result.request.options.block is None
        assert "blocks" not in result.settings
        assert result.notices[0].startswith(f"The block size 16×16 has no effect: Mean at {name}")
        assert result.notices[0].endswith(
            "GPU levels with a choice: single-block, global, shared, texture."
        )
    assert asked[-1].options.block is None
    picture = Image.from_array(np.zeros((4, 4), np.uint8))
    fixed = Request.create(picture, "turned_tiles", device=Device.GPU, level="global", block=block)
    (notice,) = execute(fixed, backends).notices
    assert notice.endswith("has a fixed one. No level has a choice.")


def test_too_little_memory_is_told_as_such() -> None:
    def body(*_: object) -> None:
        raise MemoryError

    with pytest.raises(OutOfMemory, match="untitled, 4×4, grey, 8 bit"):
        execute(request(), {"cpu": FakeBackend(body=body)})


def test_stages_come_in_order_and_compiling_is_not_counted() -> None:
    backend = CpuBackend(threads=1)
    result = execute(request(level="serial"), {"cpu": backend})
    names = [stage.name for stage in result.stages]
    assert names == ["prepare", "compile", "compute", "convert"]
    assert [stage.name for stage in result.stages if not stage.counted] == ["compile"]


def test_greyscale_comes_first() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (6, 7, 4), np.uint8)
    backends = {"cpu": CpuBackend(threads=1)}
    image = Image.from_array(pixels)
    grey = execute(Request.create(image, "greyscale"), backends).image
    at_once = execute(Request.create(image, "mean", grey=True), backends).image
    assert at_once.channels == 2
    one_by_one = execute(Request.create(grey, "mean"), backends).image
    np.testing.assert_array_equal(at_once.pixels, one_by_one.pixels)


def test_a_token_that_is_set_stops_before_anything_is_computed() -> None:
    token = CancelToken()
    token.cancel()
    assert token.cancelled
    with pytest.raises(Cancelled):
        execute(request(), {"cpu": CpuBackend(threads=1)}, token)


def test_a_log_records_what_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    log = RunLog()
    now += 3
    with log.stage("prepare"):
        now += 0.25
    with pytest.raises(Cancelled), log.stage("compute"):
        raise Cancelled
    log.add("kernel", 0.125, counted=False)
    log.add("copy", 0.5, begun=log.origin + 2.0)
    first, second, third = log.stages
    assert first == Stage("prepare", 0.25, start=3.0)
    # Without a word of when it began, it has just ended.
    assert second == Stage("kernel", 0.125, counted=False, start=3.125)
    assert third == Stage("copy", 0.5, start=cast(float, pytest.approx(2.0)))
