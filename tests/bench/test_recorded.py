"""The recorded figures of the project's machines, and the nearest of them to a setting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelscope import filters
from kernelscope.bench.plan import Plan
from kernelscope.bench.recorded import Figure, Recorded, day, entries
from kernelscope.bench.report import Report
from kernelscope.bench.rows import Row
from kernelscope.bench.storage import save
from kernelscope.bench.sweeps import grid
from kernelscope.engine.step import Step
from kernelscope.spec.borders import Border


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
    return Recorded(Figure(each, "a card", "22 Nov 2026", Path("gpu.json")) for each in rows)


def nearest(found: Recorded, *, size: int = 3, side: int = 512, **others: Any) -> Row:
    step = Step.of_numbers("median", {"size": size}, **others)
    return found.nearest(step, (side, side), 1)["tuned"].row


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
    step = Step.of_numbers("median", {"size": 3})
    assert found.nearest(step, (512, 512), 1)["tuned"].row is grey
    assert found.nearest(step, (512, 512), 3)["tuned"].row is colour


def test_levels_come_from_one_setting_where_it_has_them() -> None:
    levels = [row(level, side=1024) for level in ("global", "shared", "tuned")]
    found = recorded(row("tuned", side=512), *levels).nearest(
        Step.of_numbers("median", {"size": 3}), (512, 512), 1
    )
    assert {figure.row.asked for figure in found.values()} == {(1024, 1024)}
    assert set(found) == {"global", "shared", "tuned"}


@pytest.mark.parametrize(
    "others", [{"library": True}, {"gpus": 2}, {"block": (8, 8)}, {"seconds": (), "reason": "no"}]
)
def test_rows_that_are_no_plain_runs_of_a_level_are_left_out(others: dict[str, Any]) -> None:
    step = Step.of_numbers("median", {"size": 3})
    assert recorded(row(**others)).nearest(step, (512, 512), 1) == {}


def test_figures_of_another_device_or_filter_are_not_shown() -> None:
    found = recorded(row(device="cpu"))
    step = Step.of_numbers("median", {"size": 3})
    assert found.nearest(step, (512, 512), 1) == {}
    assert set(found.nearest(step, (512, 512), 1, "cpu")) == {"tuned"}
    assert found.nearest(Step.of_numbers("mean"), (512, 512), 1, "cpu") == {}


def test_a_report_is_read_with_machine_and_day(tmp_path: Path) -> None:
    machine = {"GPU": "2 × NVIDIA H200, 143771 MiB", "Date": "2026-11-02 17:12+00:00"}
    report = Report(machine, Plan(sweeps=grid(["median"], [512], [3]), name="A plan"), (row(),))
    save(report, tmp_path / "gpu-a.json")
    (tmp_path / "gpu-b.json").write_text("[]")
    (tmp_path / "gpu-c.json").write_text("{")
    (figure,) = Recorded.read(tmp_path).nearest(Step.of_numbers("median"), (64, 64), 1).values()
    assert (figure.machine, figure.card, figure.date) == ("NVIDIA H200", "H200", "2 Nov 2026")
    assert figure.setting == "Median, mask size 3, border reflect, 512×512"
    assert not figure.scaled
    assert replace(figure, row=replace(figure.row, shape=(256, 512))).seconds == 0.002
    (entry,) = entries(tmp_path)
    assert entry.title == "A plan, 2 × H200, 2 Nov 2026"


def test_an_installation_without_reports_has_no_figures(tmp_path: Path) -> None:
    assert entries(tmp_path / "none") == []
    assert Recorded.read(tmp_path / "none").nearest(Step.of_numbers("mean"), (9, 9), 1) == {}


def test_the_projects_figures_say_which_card_and_day() -> None:
    found = Recorded.read().nearest(Step.of_numbers("median", {"size": 5}), (2048, 2048), 1)
    assert {"global", "shared", "texture", "tuned"} <= set(found)
    assert {figure.card for figure in found.values()} == {"H100"}
    assert {figure.row.asked for figure in found.values()} == {(2048, 2048)}
    assert {figure.row.parameters["size"] for figure in found.values()} == {"5"}
    assert len(entries()) > 10


@pytest.mark.parametrize(("text", "shown"), [("2026-01-09 10:00", "9 Jan 2026"), ("", "")])
def test_days(text: str, shown: str) -> None:
    assert day(text) == shown
