"""The gallery: pictures in bounded memory, thumbnails, orders, and figures in words."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.engine.request import Request
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.timing import Repeats, Stage
from kernelscope.gui.docks.headline import Headline
from kernelscope.gui.model.gallery import Gallery, judge_run, thumbnail
from kernelscope.gui.model.runs import Run, figures_of
from kernelscope.gui.model.times import BUSY, VARYING
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import Quality
from kernelscope.images.scan import Scan
from kernelscope.images.source import Channel
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from tests.gui.helpers import child

MEGABYTE = 1_000_000

SOURCE = Image.from_array(np.zeros((1000, 1000), np.uint8), "black")


def result(
    value: int, size: int = 3, source: Image = SOURCE, level: str = "parallel", **options: Any
) -> Result:
    """Return a run with an output of a million bytes of this value."""
    request = Request.create(source, "mean", {"size": size}, **options)
    output = Image.from_array(np.full((1000, 1000), value, np.uint8), "flat")
    return Result(request, output, "cpu", level, (Stage("compute", 0.01),))


def put(gallery: Gallery, each: Result) -> tuple[Run, list[Run]]:
    run = gallery.add(each)
    return run, gallery.keep(run, gallery.examine(run))


@pytest.mark.slow
def test_the_oldest_pictures_without_a_star_make_room() -> None:
    gallery = Gallery(limit=4 * MEGABYTE)  # the input and three outputs
    runs = []
    for value in range(3):
        run, dropped = put(gallery, result(value, size=3 + 2 * value))
        runs.append(run)
        assert dropped == []
    runs[0].starred = True
    kept = runs[1].result
    assert kept is not None
    pixels = weakref.ref(kept.image.pixels)
    del kept
    newest, dropped = put(gallery, result(9, size=9))
    assert dropped == [runs[1]]
    assert [run.result is not None for run in (*runs, newest)] == [True, False, True, True]
    gc.collect()
    assert pixels() is None
    assert gallery.bytes == 4 * MEGABYTE
    assert (runs[1].seconds, runs[1].run_settings.step.parameters["size"]) == (0.01, 5)
    assert runs[1].thumbnail is not None


def test_stars_go_last_and_the_newest_picture_never() -> None:
    gallery = Gallery(limit=2 * MEGABYTE)
    first, _ = put(gallery, result(1))
    first.starred = True
    second, dropped = put(gallery, result(2, size=5))
    assert dropped == [first], "the limit holds"
    gallery.limit = 1
    third, dropped = put(gallery, result(3, size=7))
    assert dropped == [second]
    assert third.result is not None


def test_equal_outputs_of_equal_work_share_an_array() -> None:
    gallery = Gallery(limit=100 * MEGABYTE)
    first, _ = put(gallery, result(7, level="serial"))
    second, _ = put(gallery, result(7, level="parallel"))
    assert first.result is not None
    assert second.result is not None
    assert second.result.image.pixels is first.result.image.pixels
    assert second.result.level == "parallel"
    assert gallery.bytes == 2 * MEGABYTE
    other, _ = put(gallery, result(8, level="serial"))
    assert gallery.bytes == 3 * MEGABYTE, "another output, as of a level that shows a fault"
    alike, _ = put(gallery, result(7, size=5))
    assert alike.result is not None
    assert alike.result.image.pixels is not first.result.image.pixels, "other work"
    assert other.result is not None


def test_a_run_that_was_deleted_meanwhile_stays_so() -> None:
    gallery = Gallery()
    run = gallery.add(result(1))
    examined = gallery.examine(run)
    gallery.remove(run)
    assert gallery.keep(run, examined) == []
    assert list(gallery) == []
    assert run.thumbnail is None


def test_a_result_finds_its_run_also_after_it_shares_its_output() -> None:
    gallery = Gallery()
    put(gallery, result(7, level="serial"))
    own = result(7)
    run, _ = put(gallery, own)
    assert run.result is not own
    assert gallery.find(own) is run
    assert gallery.find(result(7)) is None


def test_settings_that_distinguish_a_run() -> None:
    gallery = Gallery()
    one, _ = put(gallery, result(1))
    assert gallery.distinguishing(one) == (), "all as by default"
    two, _ = put(gallery, result(1, size=5))
    assert gallery.distinguishing(one) == ("3×3",)
    assert gallery.distinguishing(two) == ("5×5",)
    three, _ = put(gallery, result(1, size=5, level="serial"))
    assert gallery.distinguishing(three) == ("5×5", "Serial"), "equal settings, another level"


def test_a_thumbnail_is_an_average_and_keeps_the_shape() -> None:
    chequers = np.zeros((400, 800, 3), np.uint8)
    chequers[::2, ::2, 0] = chequers[1::2, 1::2, 0] = 200
    small = thumbnail(Image.from_array(chequers), 160)
    assert small.shape == (80, 160, 3)
    np.testing.assert_allclose(small[2:-2, 2:-2, 0], 100, atol=20)
    assert small[:, :, 1:].max() == 0


@pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5000, 1), (3, 193), (7000, 4000)], ids=str)
def test_pictures_of_any_size_have_a_thumbnail(shape: tuple[int, int]) -> None:
    small = thumbnail(Image.from_array(np.full(shape, 90, np.uint8)), 192)
    assert max(small.shape[:2]) <= 192
    assert min(small.shape[:2]) >= 1
    assert np.unique(small).tolist() == [90]


def test_scientific_pictures_and_volumes_are_seen_well() -> None:
    ramp: NDArray[np.float32] = np.linspace(-20, 65, 10_000, dtype=np.float32).reshape(100, 100)
    small = thumbnail(Image.from_array(ramp))
    assert (small.min(), small.max()) == (0, 255)
    assert 110 < small[50, 50, 0] < 145
    voxels = np.zeros((9, 20, 30), np.float32)
    voxels[4, :10] = 7.0
    slice_ = thumbnail(Scan((Volume.from_array(voxels, "a"),)))
    assert slice_.shape == (20, 30, 3)
    assert (slice_[0, 0, 0], slice_[19, 0, 0]) == (255, 0)


def test_a_thumbnail_looks_as_the_picture_does_in_the_viewer() -> None:
    """Photographs of 16 bits were stretched, and channels were grey."""
    photo = np.full((20, 30, 3), 20_000, np.uint16)
    photo[:10] = 40_000
    small = thumbnail(Image.from_array(photo))
    assert np.unique(small).tolist() == [round(20_000 / 257), round(40_000 / 257)]

    voxels = np.zeros((3, 20, 30), np.uint16)
    voxels[:, :10] = 500
    green = replace(Volume.from_array(voxels, "a"), channel=Channel("GFP", "00ff00"))
    assert np.unique(thumbnail(Scan((green,))).reshape(-1, 3), axis=0).tolist() == [
        [0, 0, 0],
        [0, 255, 0],
    ]
    windowed = replace(green, channel=replace(green.channel, window=(0.0, 1000.0)))
    assert thumbnail(Scan((windowed,))).max() == 128


def test_runs_are_compared_with_a_reference_that_is_chosen_later() -> None:
    gallery = Gallery(limit=3 * MEGABYTE)
    gone, _ = put(gallery, replace(result(1), quality=Judgement(None, Quality(1, 1, 40.0, 1.0))))
    kept, _ = put(gallery, result(2, size=5))
    put(gallery, result(3, size=7))
    assert gone.result is None
    truth = Image.from_array(np.full((1000, 1000), 2, np.uint8), "truth")
    others = gallery.to_judge(SOURCE, truth)
    assert kept in others
    assert gone not in others
    assert gone.psnr is None, "its figures were those of another reference"
    assert kept.result is not None
    judgement = judge_run(kept.result, SOURCE, truth)
    assert judgement is not None
    assert judgement.after.psnr == np.inf
    assert judgement.before is not None
    assert judgement.before.mse == 4
    kept.judgement, kept.reference = judgement, truth
    assert kept not in gallery.to_judge(SOURCE, truth)
    elsewhere = Image.from_array(np.zeros((1000, 1000), np.uint8), "other")
    assert gallery.to_judge(elsewhere, truth) == []


def test_the_default_limit_leaves_most_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelscope.base.memory.available", lambda: 400 * MEGABYTE)
    assert Gallery().limit == 100 * MEGABYTE
    monkeypatch.setattr("kernelscope.base.memory.available", lambda: float("inf"))
    assert Gallery().limit == 1 << 30


# Figures and chips ---------------------------------------------------------------------


def test_the_headline_has_time_rate_and_gain() -> None:
    each = replace(
        result(1),
        quality=Judgement(Quality(1, 1, 30.09, 0.9), Quality(1, 1, 33.21, 0.9)),
        repeats=Repeats((0.009, 0.010, 0.011), (0.009, 0.010, 0.011)),
    )
    run = Gallery().add(each)
    figures = figures_of(each, run, run.judgement)
    assert figures.text == "10.0 ms, 100 MP/s, +3.1 dB"
    assert figures.note == "CPU parallel, median of 3, ± 10 %"
    assert not figures.detail


def test_times_that_vary_are_a_warning_in_words_with_the_figure_behind_it(qtbot: QtBot) -> None:
    times = (0.009, 0.010, 0.160)
    run = Gallery().add(replace(result(1), repeats=Repeats(times, times)))
    assert run.result is not None
    figures = figures_of(run.result, run)
    assert figures.note == f"CPU parallel, median of 3, {VARYING}"
    assert "%" not in figures.note
    assert figures.detail.startswith("± 755 %: 10.0 ms, median of 3 (9.00 ms to 160 ms)")
    assert figures.detail.endswith(f"; {BUSY}"), "the cause is behind it as well"
    strip = Headline()
    qtbot.addWidget(strip)
    strip.resize(1200, 40)
    strip.show_figures(figures)
    note = child(strip, QLabel, "headlineNote")
    assert "± 755 %" in note.toolTip()
    assert note.property("role") == "warning"
    strip.show_figures(figures_of(result(1), None))
    assert note.property("role") == "note"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(33.0, 30.5, "−2.5 dB"), (None, 30.5, "30.5 dB"), (30.0, np.inf, "equal to the reference")],
)
def test_quality_in_the_headline(before: float | None, after: float, text: str) -> None:
    first = None if before is None else Quality(1, 1, before, 0.9)
    judgement = Judgement(first, Quality(1, 1, after, 0.9))
    assert figures_of(result(1), None, judgement).text == f"10.0 ms, 100 MP/s, {text}"


def test_a_result_without_an_entry_says_how_it_was_taken() -> None:
    assert figures_of(result(1), None, remark="live, one run").note == "CPU parallel, live, one run"


def texts(filter_id: str, /, **values: Any) -> list[str]:
    spec = filters.get(filter_id)
    chips = spec.chips(spec.validate(values), values.get("estimates"))
    return [chip.text for chip in chips if not chip.usual]


def test_chips_name_what_differs_from_the_defaults() -> None:
    assert texts("nlm") == []
    assert texts("nlm", patch=9, search_radius=12, filter_sigma=0.02224) == [
        "9×9",
        "r 12 px",
        "h 0.0222",
    ]
    assert texts("nlm", search="image") == ["search whole image"], "then there is no radius"
    assert texts("sobel", form="single", direction="NE") == ["one direction", "direction NE"]
    assert texts("mri_nlm", search_radius=(5, 5, 2)) == ["r 5, 5, 2 voxels"]
    assert texts("sliding_dct", sigma=3.1712) == ["σ 3.17 %"]


def test_an_estimate_is_a_chip_of_its_own() -> None:
    spec = filters.get("nlm")
    values = spec.defaults()
    chips = spec.chips(values, {"filter_sigma": 0.0371234})
    assert [chip.text for chip in chips if not chip.usual] == ["h 0.0371"]


def test_every_parameter_of_every_filter_has_a_short_chip() -> None:
    for spec in filters.discover().values():
        for chip in spec.chips(spec.defaults()):
            assert chip.usual
            assert 0 < len(chip.text) <= 32, chip


def test_chips_of_a_request_have_border_grey_and_block() -> None:
    colour = Image.from_array(np.zeros((9, 9, 3), np.uint8))
    request = Request.create(colour, "mean", border=Border.WRAP, grey=True, block=(16, 8))
    shown = [chip.text for chip in request.chips() if not chip.usual]
    assert shown == ["wrap border", "in grey", "blocks of 16×8"]
