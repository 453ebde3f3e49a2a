"""The recorded figures of the project's machines, and the nearest of them to a setting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.bench.plan import Plan
from kernelscope.bench.presets import grid
from kernelscope.bench.recorded import Recorded, RecordedTime, Wanted, day, entries, with_cpu
from kernelscope.bench.report import Report, load, merge, save
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import BASELINE
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border

MEDIAN = Step.of_numbers("median", {"size": 3})


def row(level: str = "tuned", *, size: int = 3, side: int = 512, **others: Any) -> Row:
    spec = filters.get("median")
    parameters = {each.name: each.format(each.default) for each in spec.parameters}
    values: dict[str, Any] = {
        "label": f"Median, mask size {size}",
        "filter": "median",
        "parameters": parameters | {"size": str(size)},
        "border": "reflect",
        "content": "noise",
        "channels": 1,
        "asked": (side, side),
        "shape": (side, side),
        "device": "gpu",
        "level": level,
        "seconds": (0.001,),
    }
    return Row(**{**values, **others})


def recorded(*rows: Row) -> Recorded:
    return Recorded(RecordedTime(each, "a card", "22 Nov 2026", Path("gpu.json")) for each in rows)


def nearest(found: Recorded, *, size: int = 3, side: int = 512, **others: Any) -> Row:
    step = Step.of_numbers("median", {"size": size}, **others)
    return found.nearest(Wanted(step, (side, side)))["tuned"].row


def test_the_same_setting_is_the_nearest() -> None:
    rows = [row(size=size, side=side) for size in (3, 5, 9) for side in (128, 512, 4096)]
    found = recorded(*rows)
    for each in rows:
        size = int(each.parameters["size"])
        assert nearest(found, size=size, side=each.asked[0]) is each


def test_the_size_of_the_mask_counts_more_than_that_of_the_picture() -> None:
    found = recorded(row(size=9, side=512), row(size=5, side=2048))
    assert nearest(found, size=5).parameters["size"] == "5"


def test_a_border_counts_less_than_a_mask() -> None:
    found = recorded(row(size=3, border="wrap"), row(size=9))
    assert nearest(found, border=Border.REFLECT).border == "wrap"
    both = recorded(row(border="wrap"), row(border="reflect"))
    assert nearest(both, border=Border.WRAP).border == "wrap"


def test_pictures_of_as_many_channels_are_nearer() -> None:
    grey, colour = row(), row(channels=3)
    found = recorded(grey, colour)
    assert found.nearest(Wanted(MEDIAN, (512, 512), 1))["tuned"].row is grey
    assert found.nearest(Wanted(MEDIAN, (512, 512), 3))["tuned"].row is colour


def test_levels_come_from_one_setting_where_it_has_them() -> None:
    levels = [row(level, side=1024) for level in ("global", "shared", "tuned")]
    wanted = Wanted(MEDIAN, (512, 512))
    every = recorded(row("tuned", side=512), row("selection", side=4096), *levels)
    found = every.nearest(wanted)
    assert {figure.row.asked for figure in found.values()} == {(1024, 1024)}
    assert set(found) == {"global", "shared", "tuned"}
    each = every.nearest_of_each(wanted)
    assert {level: figure.row.asked[0] for level, figure in each.items()} == {
        "global": 1024, "shared": 1024, "tuned": 1024, "selection": 4096,
    }  # fmt: skip


def test_the_same_work_is_nearer_than_any_other() -> None:
    """Even with fewer levels and another size; a time of other work is of little use."""
    others = [row(level, size=5) for level in ("global", "shared", "texture", "tuned")]
    found = recorded(*others, row(side=4096), row(side=4096, channels=3))
    grey, colour = (
        found.nearest(Wanted(MEDIAN, (512, 512), channels)).values() for channels in (1, 3)
    )
    assert [(each.row.asked, each.row.channels) for each in grey] == [((4096, 4096), 1)]
    assert [(each.row.asked, each.row.channels) for each in colour] == [((4096, 4096), 3)]


@pytest.mark.parametrize(
    ("changes", "same", "text"),
    [
        ({}, True, "mask size 3, 512×512"),
        ({"shape": (100, 100)}, True, "mask size 3, 512×512"),
        ({"dtype": np.dtype(np.uint8)}, True, "mask size 3, 512×512"),
        ({"dtype": np.dtype(np.uint16)}, False, "mask size 3, 8 bit, 512×512"),
        ({"channels": 3}, False, "mask size 3, 1 channel, 512×512"),
        ({"step": Step.of_numbers("median", {"size": 5})}, False, "mask size 3, 512×512"),
        (
            {"step": Step.of_numbers("median", {"size": 3}, border=Border.WRAP)},
            True,
            "mask size 3, border reflect, 512×512",
        ),
    ],
    ids=["same", "size", "bytes", "two bytes", "colour", "mask", "border"],
)
def test_a_figure_is_described_by_its_mask_and_by_what_differs(
    changes: dict[str, Any], same: bool, text: str
) -> None:
    figure = RecordedTime(row(), "a card", "22 Nov 2026", Path("gpu.json"))
    wanted = replace(Wanted(MEDIAN, (512, 512)), **changes)
    assert wanted.is_done_by(figure) == same
    assert wanted.describe(figure) == text


@pytest.mark.parametrize(
    ("name", "recorded", "values", "same", "text"),
    [
        ("mask", {"mask": "1 2 1; 2 4 2; 1 2 1"}, {}, True, "mask 3×3"),
        ("mask", {"mask": "1 2 1; 2 4 2; 1 2 1", "divisor": "count"}, {}, True,
         "mask 3×3"),
        ("sobel", {}, {}, True, "mask 3×3"),
        ("sobel", {"form": "directions"}, {}, True, "mask 3×3, form directions"),
        ("laplace", {"form": "5x5"}, {}, False, "mask 5×5, form 5x5"),
        ("nlm", {}, {"patch": 5, "search_radius": 11}, False, "patch size 7, search radius 10"),
        ("nlm", {"filter_sigma": "0.1"}, {}, True, "patch size 7, search radius 10"),
        ("median", {}, {"footprint": "disk"}, False, "mask size 3, mask shape square"),
        ("median", {"footprint": "disk"}, {"footprint": "disk"}, True, "mask size 3"),
        ("minimum", {}, {"footprint": ((1, 1),)}, False, "mask size 3, mask shape square"),
        ("greyscale", {}, {}, True, ""),
        ("collaborative", {}, {}, True, ""),
        ("sliding_dct", {}, {"noise": "white"}, True, "noise auto"),
        ("turned_tiles", {}, {}, True, ""),
        ("volume_collaborative", {}, {}, True, ""),
    ],
)  # fmt: skip
def test_the_settings_of_other_filters(
    name: str, recorded: dict[str, str], values: dict[str, Any], same: bool, text: str
) -> None:
    """The sum of radii is equal in both of non-local means; the work is not."""
    spec = filters.get(name)
    parameters = {each.name: each.format(each.default) for each in spec.parameters} | recorded
    measured = row(filter=name, label=spec.name, parameters=parameters)
    figure = RecordedTime(measured, "a card", "22 Nov 2026", Path("gpu.json"))
    wanted = Wanted(Step.of_numbers(name, values), (512, 512))
    assert wanted.is_done_by(figure) == same
    assert wanted.describe(figure) == ", ".join(filter(None, [text, "512×512"]))


@pytest.mark.parametrize(
    "others", [{"library": True}, {"gpus": 2}, {"block": (8, 8)}, {"seconds": (), "reason": "no"}]
)
def test_rows_that_are_no_plain_runs_of_a_level_are_left_out(others: dict[str, Any]) -> None:
    assert recorded(row(**others)).nearest(Wanted(MEDIAN, (512, 512))) == {}


def test_figures_of_another_device_or_filter_are_not_shown() -> None:
    found = recorded(row(device="cpu"))
    assert found.nearest(Wanted(MEDIAN, (512, 512), 1)) == {}
    assert set(found.nearest(Wanted(MEDIAN, (512, 512)), "cpu")) == {"tuned"}
    assert found.nearest(Wanted(Step.of_numbers("mean"), (512, 512)), "cpu") == {}


def test_a_report_is_read_with_machine_and_day(tmp_path: Path) -> None:
    machine = {"GPU": "2 × NVIDIA H200, 143771 MiB", "Date": "2026-11-02 17:12+00:00"}
    report = Report(machine, Plan(sweeps=grid(["median"], [512], [3]), name="A plan"), (row(),))
    save(report, tmp_path / "gpu-a.json")
    (tmp_path / "gpu-b.json").write_text("[]")
    (tmp_path / "gpu-c.json").write_text("{")
    wanted = Wanted(Step.of_numbers("median"), (64, 64))
    (figure,) = Recorded.read(tmp_path).nearest(wanted).values()
    assert (figure.machine, figure.card, figure.date) == ("NVIDIA H200", "H200", "2 Nov 2026")
    assert figure.setting == "Median, mask size 3, border reflect, 512×512"
    for size in ("7", "3"):
        plain = replace(figure.row, label="Median", parameters={"size": size})
        text = f"Median, mask size {size}, border reflect, 512×512"
        assert replace(figure, row=plain).setting == text, "also the default size"
    assert not figure.scaled
    assert replace(figure, row=replace(figure.row, shape=(256, 512))).seconds == 0.002
    (entry,) = entries(tmp_path)
    assert entry.title == "A plan, 2 × H200, 2 Nov 2026"


def test_damaged_or_missing_reports_have_no_figures(tmp_path: Path) -> None:
    head = '{"format": "kernelscope bench", "machine": %s, "plan": %s}'
    for number, values in enumerate((('{"GPU": 3}', "{}"), ("{}", "[]"), ("[]", "{}"))):
        (tmp_path / f"gpu-{number}.json").write_text(head % values, encoding="utf-8")
    assert entries(tmp_path) == []
    assert entries(tmp_path / "none") == []
    assert Recorded.read(tmp_path / "none").nearest(Wanted(Step.of_numbers("mean"), (9, 9))) == {}


def test_the_projects_figures_say_which_card_and_day() -> None:
    step = Step.of_numbers("median", {"size": 5})
    found = Recorded.read().nearest(Wanted(step, (2048, 2048)))
    assert {"global", "shared", "texture", "tuned"} <= set(found)
    assert len({(figure.card, figure.date) for figure in found.values()}) == 1
    assert {figure.row.asked for figure in found.values()} == {(2048, 2048)}
    assert {figure.row.parameters["size"] for figure in found.values()} == {"5"}
    assert len(entries()) > 10


def test_reports_are_titled_by_author_and_not_by_letter() -> None:
    titles = [each.title for each in entries()]
    assert any(title.startswith("Korčuška 2013: tables 1-3, H100 ") for title in titles)
    assert any(title.startswith("Salari 2019: ") for title in titles)
    assert any(title.startswith("Beside libraries 16384, ") for title in titles)
    assert any(title.startswith("NLM 4096, ") for title in titles)
    assert "Block sizes" in {title.partition(",")[0] for title in titles}


@pytest.mark.parametrize(("text", "shown"), [("2026-01-09 10:00", "9 Jan 2026"), ("", "")])
def test_days(text: str, shown: str) -> None:
    assert day(text) == shown


# --- the time of a run elsewhere ---


def request(side: int = 1024, dtype: Any = np.uint8, channels: int = 1, **changes: Any) -> Request:
    pixels = np.zeros((side, side, channels)[: 2 if channels == 1 else 3], dtype)
    values = {"size": 3} | changes.pop("parameters", {})
    return Request.create(Image.from_array(pixels, "black"), "median", values, **changes)


def slow(seconds: float = 0.1, **others: Any) -> Row:
    return row(seconds=(seconds,), **others)


def test_the_time_elsewhere_is_that_of_the_fastest_level() -> None:
    found = recorded(slow(side=1024, level="global"), slow(0.04, side=1024)).elsewhere(request())
    assert found is not None
    assert (found.seconds, found.scaled, found.figure.row.level) == (0.04, False, "tuned")


def test_a_time_elsewhere_is_scaled_by_the_pixels_from_the_nearest_size() -> None:
    rows = [slow(0.1, side=512), slow(0.3, side=1500)]
    found = recorded(*rows).elsewhere(request())
    assert found is not None
    assert found.scaled
    assert found.seconds == pytest.approx(0.3 * 1024**2 / 1500**2)
    found = recorded(rows[0]).elsewhere(request())
    assert found is not None
    assert found.seconds == pytest.approx(0.4), "four times the pixels are the limit"
    assert recorded(slow(side=511)).elsewhere(request()) is None
    assert recorded(slow(side=2049)).elsewhere(request()) is None


@pytest.mark.parametrize(
    "other",
    [
        slow(side=1024, size=5),
        slow(side=1024, channels=3),
        slow(side=1024, content="given"),
        slow(side=1024, shape=(512, 1024)),
    ],
    ids=["another mask", "colours", "unknown samples", "a part"],
)
def test_other_work_says_nothing_about_the_time_elsewhere(other: Row) -> None:
    assert recorded(other).elsewhere(request()) is None


def test_only_recorded_types_of_samples_have_a_time_elsewhere() -> None:
    found = recorded(slow(side=1024))
    assert found.elsewhere(request(border=Border.MIRROR)) is not None, "borders cost little"
    assert found.elsewhere(request(dtype=np.uint16)) is None
    assert found.elsewhere(request(channels=3)) is None


def test_colours_that_become_grey_first_are_other_work() -> None:
    found = recorded(slow(side=1024), slow(side=1024, channels=3))
    colour = request(channels=3)
    assert found.elsewhere(colour) is not None
    assert set(found.same(colour, "a")) == {"tuned"}
    grey = replace(colour, step=replace(colour.step, grey=True))
    assert found.elsewhere(grey) is None
    assert found.same(grey, "a") == {}
    assert Wanted.by(grey).channels == 1


def test_a_short_time_is_not_scaled() -> None:
    short = slow(0.0004, side=512)
    assert recorded(short).elsewhere(request()) is None
    assert recorded(short).elsewhere(request(512)) is not None


def test_time_of_a_filter_that_takes_the_whole_picture_is_not_scaled() -> None:
    values = {"patch": "3", "search": "image"}
    found = recorded(row(side=64, filter="nlm", parameters=values, seconds=(1.0,)))
    source = Image.from_array(np.zeros((64, 64), np.uint8), "black")
    larger = Image.from_array(np.zeros((65, 64), np.uint8), "black")
    wanted = {"patch": 3, "search": "image"}
    assert found.elsewhere(Request.create(source, "nlm", wanted)) is not None
    assert found.elsewhere(Request.create(larger, "nlm", wanted)) is None


@pytest.mark.slow
def test_nlm_as_published_has_a_time_on_the_recorded_card() -> None:
    """Scaled to twice the pixels: half of them take less than a time that is scaled."""
    source = Image.from_array(np.zeros((4096, 8192), np.uint8), "black")
    found = Recorded.read().elsewhere(Request.create(source, "nlm", {"weights": "gaussian"}))
    assert found is not None
    assert (found.figure.card, found.scaled) == ("H100", True)
    assert 0.002 < found.seconds < 0.1


def test_a_report_of_a_gpu_is_opened_with_that_of_a_cpu(tmp_path: Path) -> None:
    cpu, gpu, alone = (tmp_path / f"{name}.json" for name in ("cpu-a", "gpu-a", "gpu-b"))
    for path in (cpu, gpu, alone):
        path.write_text("{}", "utf-8")
    assert with_cpu(gpu) == [cpu, gpu]
    assert with_cpu(alone) == [alone]
    assert with_cpu(cpu) == [cpu]


def test_recorded_experiments_of_the_sources_have_their_baseline() -> None:
    """Those of the sources whose authors published speed-ups over serial code."""
    opened = [
        merge([load(path) for path in with_cpu(entry.path)])
        for entry in entries()
        if entry.path.stem in ("gpu-f-levels", "gpu-f-tables", "gpu-m-ladder", "gpu-quick-look")
    ]
    assert len(opened) == 4
    for report in opened:
        assert any(row.runner == BASELINE and row.seconds for row in report.rows)
