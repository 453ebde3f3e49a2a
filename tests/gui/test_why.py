"""Why a level is faster than the one beside it: sentences on counted loads and on times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.bench.memory_ladder import CountedRung
from kernelscope.bench.recorded import Recorded, Wanted
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import KnownRung, Rung, RungPlace, Time
from kernelscope.gui.model.why import loads_of, times_of, with_neighbours
from kernelscope.gui.tools import level_dialog
from kernelscope.gui.tools.level_dialog import LevelDialog
from kernelscope.gui.tools.manual_window import drawn
from kernelscope.gui.widgets.appearance import Appearance, Stylist
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.levels import CONSTANT, CPU_LEVELS


@cache
def request_of(side: int, size: int, filter_id: str = "mean") -> Request:
    pixels = np.random.default_rng(1).integers(0, 256, (side, side), np.uint8)
    return Request.create(Image.from_array(pixels), filter_id, {"size": size})


@cache
def counted(side: int, size: int, filter_id: str = "mean") -> dict[str, CountedRung]:
    request, tracer = request_of(side, size, filter_id), Tracer()
    try:
        return {
            level.id: CountedRung(level, tracer.count(request, level))
            for level in filters.get(filter_id).levels(Device.GPU)
            if level.id in ("global", "shared")
        }
    finally:
        tracer.close()


def rungs(
    filter_id: str, device: Device = Device.GPU, times: Mapping[str, Time] = MappingProxyType({})
) -> list[KnownRung]:
    kernels = Device.CPU if device is Device.CPU else Device.GPU
    return with_neighbours(
        [
            KnownRung(
                Rung(RungPlace(device, level.id), level.name, "GPU", level),
                time=times.get(level.id),
            )
            for level in filters.get(filter_id).levels(kernels)
        ]
    )


def by_id(entries: list[KnownRung]) -> dict[str, KnownRung]:
    return {each.rung.place.level or "": each for each in entries}


def test_levels_of_a_gpu_are_compared_with_global_and_those_of_the_cpu_with_the_first() -> None:
    for device in (Device.GPU, Device.EMULATED):
        beside = {
            id_: each.beside and each.beside.rung.place.level
            for id_, each in by_id(rungs("median", device)).items()
        }
        assert beside["shared"] == beside["tuned"] == beside["single-block"] == "global"
        assert beside["global"] == "single-block"
    serial = CPU_LEVELS[0].id
    on_cpu = by_id(rungs("median", Device.CPU))
    assert on_cpu[serial].beside is None
    assert on_cpu["parallel"].beside is not None
    assert on_cpu["parallel"].beside.rung.place.level == serial


def test_a_level_that_a_filter_lacks_is_compared_with_none() -> None:
    entries = [each.rung for each in rungs("median")]
    gap = replace(entries[2], gap=True, obstacle="no mask")
    found = with_neighbours([KnownRung(each) for each in (entries[1], gap, entries[3])])
    assert found[1].beside is None
    assert found[2].beside is not None


@pytest.mark.parametrize("filter_id", ["mean", "median", "sobel", "dot_product"])
def test_levels_promise_no_mask_to_filters_that_have_none(filter_id: str) -> None:
    helps = [each.help for each in filters.get(filter_id).levels(Device.GPU) if each != CONSTANT]
    assert not [each for each in helps if "mask" in each and "if there is one" not in each]


def test_counted_loads_stand_beside_those_of_global_memory() -> None:
    """By hand: 25 cells of a mask; a tile of 32×8 pixels with a halo of 2 has 36×12 cells."""
    lines = loads_of(by_id(rungs("mean"))["shared"], counted(64, 5), request_of(64, 5))
    assert lines == [
        "Loads for a pixel, counted on the emulated GPU: 1.69 from global memory, 25.0 from "
        "shared memory; Global memory: 25.0 from global memory.",
        "It has 14.8 times fewer loads from global memory than level Global memory.",
    ]


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        (0.5, "It is faster, and has 14.8 times fewer loads"),
        (2.0, "It is slower in spite of 14.8 times fewer loads"),
        (1.02, "It takes as long, with 14.8 times fewer loads"),
    ],
)
def test_the_verdict_says_whether_times_follow_the_counts(seconds: float, verdict: str) -> None:
    one, other = (Time(each, each, 5, each, each) for each in (1.0, seconds))
    entry = by_id(rungs("mean", times={"global": one, "shared": other}))["shared"]
    assert loads_of(entry, counted(64, 5), request_of(64, 5))[1].startswith(verdict)


def test_measured_times_that_vary_are_not_compared_without_a_warning() -> None:
    times = {"serial": Time(0.1, 0.1, 5, 0.1, 0.11), "parallel": Time(0.025, 0.03, 5, 0.02, 0.025)}
    entry = by_id(rungs("median", Device.CPU, times))["parallel"]
    assert times_of(entry) == "4.00 times as fast as Serial, measured here: 25.0 ms, Serial 100 ms."
    times["serial"] = Time(0.1, 0.1, 5, 0.05, 0.11)
    entry = by_id(rungs("median", Device.CPU, times))["parallel"]
    assert times_of(entry).endswith("Times vary: run both again before you compare them.")
    assert times_of(by_id(rungs("median", Device.CPU))["parallel"]) == ""


def test_recorded_times_are_said_to_be_recorded_and_bounded_at_their_own_size_only() -> None:
    request = request_of(512, 5, "median")
    figures = Recorded.read().nearest(Wanted.by(request))
    known = with_neighbours(
        [replace(each, figure=figures.get(each.rung.place.level or "")) for each in rungs("median")]
    )
    entry = by_id(known)["shared"]
    figure, other = figures["shared"], figures["global"]
    assert other.row.size == figure.row.size == "512×512"
    assert f", recorded on {figure.card}, {figure.date}, at 512×512: " in times_of(entry)
    found = counted(64, 5, "median")
    lines = loads_of(entry, found, request)
    assert lines[-1].startswith(f"On {figure.card}: at least ")
    assert "; recorded " in lines[-1]
    assert ". Global memory: at least " in lines[-1]
    assert lines[-1].endswith(" Loads from shared memory take their turns as well.")
    smaller = request_of(64, 5, "median")
    bound = loads_of(entry, found, smaller)[-1]
    assert bound.startswith(f"On {figure.card}, 64×64: at least ")
    assert "recorded" not in bound
    for others in (
        loads_of(entry, found, smaller, " on 64×64 pixels"),
        loads_of(entry, found, request_of(512, 3, "median")),
    ):
        assert not [line for line in others if line.startswith("On ")]


def test_loads_that_caches_serve_are_the_reason_why_fewer_gain_little() -> None:
    """A mean of 9×9 has 32.4 times fewer loads, and was 1.13 times as fast: nothing said why."""
    found, request = counted(64, 9), request_of(64, 9)

    def lines(faster: float) -> list[str]:
        one, other = (Time(each, each, 5, each, each) for each in (1.0, 1 / faster))
        entry = by_id(rungs("mean", times={"global": one, "shared": other}))["shared"]
        return loads_of(entry, found, request)

    (served,) = (line for line in lines(1.13) if line.startswith("Caches can serve most"))
    assert re.fullmatch(
        r"Caches can serve most of the others: a pixel takes ([\d.]+) bytes past the L1 cache "
        r"\(there \1\) and 2.00 bytes of device memory \(there 2.00\)\.",
        served,
    )
    assert not [line for line in lines(30) if line.startswith("Caches")], "times follow the loads"


def test_times_recorded_at_other_settings_are_not_explained_by_counts_of_these() -> None:
    """By hand: 81 cells of a mask; a tile of 32×8 pixels with a halo of 4 has 40×16 cells."""
    figures = Recorded.read().nearest(Wanted.by(request_of(64, 3)))
    known = [replace(e, figure=figures.get(e.rung.place.level or "")) for e in rungs("mean")]
    entry = by_id(with_neighbours(known))["shared"]
    verdict = loads_of(entry, counted(64, 3), request_of(64, 3))[1]
    assert "slower in spite of" in verdict
    other = [replace(each, other_settings="mask size 3, 256×256") for each in known]
    entry = by_id(with_neighbours(other))["shared"]
    verdict = loads_of(entry, counted(64, 9), request_of(64, 9))[1]
    assert verdict == (
        "It has 32.4 times fewer loads from global memory than level Global memory. "
        "No time is recorded at these settings to compare them with."
    )
    assert "at other settings (mask size 3, 256×256)" in times_of(entry)


@pytest.fixture
def dialog(qtbot: QtBot) -> Iterator[LevelDialog]:
    background = Background()
    made = LevelDialog(background)
    qtbot.addWidget(made)
    yield made
    made.reject()
    background.close()


def test_the_window_counts_while_it_is_open(qtbot: QtBot, dialog: LevelDialog) -> None:
    spec, text = filters.get("mean"), dialog.findChild(QLabel, "levelLoads")
    dialog.show_entry(by_id(rungs("mean"))["shared"], spec, request_of(64, 5))
    assert "Counting the loads" in text.text()
    height = dialog.height()
    qtbot.waitUntil(lambda: "Counting" not in text.text(), timeout=60_000)
    assert "1.69 from global memory, 25.0 from shared memory" in text.text()
    assert dialog.height() == height, "buttons would slide from under the pointer"
    dialog.show_entry(by_id(rungs("mean", Device.CPU))["parallel"], spec, request_of(64, 5))
    assert not text.text()


def test_the_drawing_and_its_letters_grow_with_the_text(
    dialog: LevelDialog, stylist: Stylist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels of the largest letters; at 150 % they stayed as they were."""
    sizes: list[float] = []

    def spy(content: bytes, ink: QColor, ratio: float, scale: float) -> QImage:
        image = drawn(content, ink, ratio, scale)
        (width,) = re.findall(rb'<svg [^>]*?width="(\d+)"', content)
        largest = max(map(float, re.findall(rb'font-size="([^"]+)"', content)))
        sizes.append(largest * image.width() / image.devicePixelRatio() / int(width))
        return image

    monkeypatch.setattr(level_dialog, "drawn", spy)
    for scale in (1.0, 1.25, 1.5):
        sizes.clear()
        stylist.apply(Appearance(scale=scale))
        dialog.show_entry(by_id(rungs("mean"))["shared"], filters.get("mean"))
        if scale == 1:
            usual = sizes[-1]
        assert sizes[-1] >= (1 + 0.7 * (scale - 1)) * usual, "less only where there is no room"
