"""Reports: JSON, CSV, text, and two of them side by side."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelscope.base.errors import AppError
from kernelscope.bench.figures import beside
from kernelscope.bench.plan import Plan
from kernelscope.bench.presets import grid
from kernelscope.bench.report import Report, beside_each_other, facts, load, merge, save
from kernelscope.bench.rows import Difference
from kernelscope.bench.runner import measure
from kernelscope.bench.statistics import find_baseline
from kernelscope.bench.tables import (
    TABLE,
    compare,
    format_comparison,
    format_origins,
    format_reasons,
    format_row,
    save_csv,
    to_csv,
)
from kernelscope.engine.backend import Backend, Fact, FactGroup
from kernelscope.engine.control import CancelToken
from tests.bench.made_up import row

PLAN = Plan(sweeps=grid(["mean"], [16], [3]), repeat=2, peers=True)
SERIAL = row(asked=(100, 100), seconds=(0.06, 0.06, 0.06), cache="cold", load=0.0)
TUNED = row(
    asked=(100, 100),
    device="gpu",
    level="tuned",
    seconds=(0.001, 0.002, 0.003),
    stages={"upload": (0.003,) * 3, "kernel": (0.001, 0.002, 0.003), "download": (0.001,) * 3},
    bytes=2e4,
    operations=5e4,
    copy_rate=1e12,
    cache="cold",
    notices=("In strips.",),
)
LIBRARY = row(
    asked=(100, 100),
    level="OpenCV",
    library=True,
    seconds=(0.01,),
    difference=Difference(1.0, 0.25),
    cache="warm",
    load=1.26,
)
MISSING = row(asked=(100, 100), device="gpu", level="shared", reason="There is no GPU.")
REPORT = Report({"CPU": "a, with comma", "Date": "today"}, PLAN, (SERIAL, TUNED, LIBRARY, MISSING))


# JSON ----------------------------------------------------------------------------------


def test_json_holds_everything(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(REPORT, path)
    assert load(path).rows == REPORT.rows
    assert load(path).machine == REPORT.machine
    assert load(path).plan.to_json() == PLAN.to_json()
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["rows"][1]["seconds"] == [0.001, 0.002, 0.003]


@pytest.mark.slow
def test_a_run_repeats_from_its_json(tmp_path: Path, backends: dict[str, Backend]) -> None:
    path = tmp_path / "results.json"
    rows = tuple(measure(PLAN, backends, CancelToken()))
    save(Report(facts(backends, with_peers=True), PLAN, rows), path)
    again = measure(load(path).plan, backends, CancelToken())
    assert [(each.subject, each.series, each.shape, each.reason) for each in again] == [
        (each.subject, each.series, each.shape, each.reason) for each in rows
    ]


def test_a_report_of_before_a_row_learnt_more_still_opens(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(REPORT, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    for each in content["rows"]:
        for name in ("gpus", "block", "batch", "kernels", "machine"):
            del each[name]
    for name in ("gpus", "blocks", "libraries"):
        del content["plan"][name]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert load(path).rows == REPORT.rows
    assert load(path).plan == REPORT.plan


def test_rows_of_before_a_parameter_was_there_compare_with_newer_ones(tmp_path: Path) -> None:
    known = ("sobel", {"form": "sum", "direction": "N"}), ("greyscale", {"rounding": "nearest"})
    rows = tuple(row(filter=name, parameters=values, seconds=(0.1,)) for name, values in known)
    newer = replace(REPORT, rows=rows)
    path = tmp_path / "results.json"
    save(newer, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    for each, added in zip(content["rows"], ("direction", "rounding"), strict=True):
        del each["parameters"][added]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert [pair.ratio is not None for pair in compare(load(path), newer)] == [True, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON: line 1, column 2"),
        ("[]", "is not a report"),
        ("{}", "is not a report"),
        ('{"format": "kernelscope recipe", "version": 1}', "is not a report"),
        ('{"format": "kernelscope bench", "version": 99}', "has version 99"),
        ('{"format": "kernelscope bench", "version": "1"}', "version: expected a whole number"),
    ],
)
def test_what_is_no_report(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(AppError, match=message):
        load(path)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "results"
    for write in (save, save_csv):
        with pytest.raises(AppError, match="cannot be written"):
            write(REPORT, nowhere)
    with pytest.raises(AppError, match="cannot be read"):
        load(nowhere)


def test_facts_of_this_machine(backends: dict[str, Backend]) -> None:
    found = facts(backends, with_peers=True)
    for name in ("Kernelscope", "Date", "System", "CPU", "Libraries", "GPU", "Peers"):
        assert found[name]
    assert "commit" in found["Kernelscope"]
    import cv2  # of which the program takes several versions

    assert f"OpenCV {cv2.__version__}" in found["Peers"]
    assert found["Compiler"] == "NVRTC 1.0"
    assert "Name" not in found


def test_what_several_gpus_measured_is_told_of_each(
    backends: dict[str, Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [
        FactGroup(f"GPU {number}: {title}", (Fact("Copy on the card", text, "GB/s"),))
        for number, text in enumerate(("2900", "4300"))
        for title in ("Device", "Measured")
    ]
    groups.append(FactGroup("Software", (Fact("PyCUDA", "2026.1"),)))
    monkeypatch.setattr(backends["gpu"], "facts", lambda: iter(groups))
    found = facts(backends)
    assert found["GPU 0: Copy on the card"] == "2900 GB/s"
    assert found["GPU 1: Copy on the card"] == "4300 GB/s"
    assert found["GPU"].startswith("2 × ")


# CSV -----------------------------------------------------------------------------------


def test_csv_has_a_line_for_each_row(tmp_path: Path) -> None:
    save_csv(REPORT, tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_text(encoding="utf-8") == to_csv(REPORT)
    serial, tuned, library, missing = csv.DictReader(io.StringIO(to_csv(REPORT)))
    assert float(serial["median_s"]) == 0.06
    assert float(serial["speed_up"]) == 1
    assert float(tuned["end_to_end_median_s"]) == pytest.approx(0.006)
    assert float(tuned["speed_up"]) == pytest.approx(10)
    assert float(tuned["lower_quartile_s"]) == pytest.approx(0.0015)
    assert float(tuned["upload_median_s"]) == pytest.approx(0.003)
    assert tuned["notices"] == "In strips."
    assert (library["library"], float(library["share_that_differs"])) == ("yes", 0.25)
    assert (missing["reason"], missing["median_s"]) == ("There is no GPU.", "")
    for line in (serial, tuned, library, missing):
        assert line["parameters"] == "size=3"
        assert line["CPU"] == "a, with comma"
        assert line["asked"] == "100x100"


# Text ----------------------------------------------------------------------------------


def cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.split("|")[1:-1]]


def test_a_line_of_the_table() -> None:
    line = cells(format_row(TUNED, REPORT.rows))
    assert len(line) == len(TABLE.headings)
    assert line == [
        *("Mean, mask size 3", "GPU tuned", "100×100"),
        *("2", "25", "6", "5", "10", "In strips."),
    ]
    assert cells(format_row(SERIAL, REPORT.rows))[5] == "", "there is nothing to carry"
    assert cells(format_row(TUNED, [TUNED]))[7] == "", "without a baseline"


def test_remarks() -> None:
    text = format_row(LIBRARY, REPORT.rows)
    assert "25.00 % differ from ours, by up to 1" in text
    assert "1.3 cores busy with other programs" in text
    assert "warm caches" in text
    part = replace(SERIAL, asked=(1024, 512), shape=(256, 128))
    cells = [cell.strip() for cell in format_row(part, [part]).split("|")]
    assert cells[3:5] == ["128×256", "60"], "the timed part, and its time"
    assert cells[8:10] == ["1", "a part of 512×1024; estimate for all: ≈ 960 ms"]
    batches = replace(TUNED, asked=(200, 100), batch=16)
    assert (
        format_row(batches, [batches])
        .rstrip(" |")
        .endswith(
            "a part of 100×200; estimate for all: ≈ 4 ms, 12 ms end to end; "
            "each time is the mean of 16 launches; In strips."
        )
    )


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs files for open pipes")
def test_csv_goes_into_a_pipe() -> None:
    """As ``--csv /dev/stdout | less`` asks for: the path resolves to a file that is not there."""
    end, start = os.pipe()
    with os.fdopen(end, encoding="utf-8") as reader:
        try:
            save_csv(REPORT, Path(f"/dev/fd/{start}"))
        finally:
            os.close(start)
        assert reader.read() == to_csv(REPORT)


def test_csv_has_what_was_timed_and_what_all_should_take() -> None:
    part = replace(SERIAL, asked=(1024, 512), shape=(256, 128))
    (line,) = csv.DictReader(io.StringIO(to_csv(replace(REPORT, rows=(part,)))))
    assert (line["asked"], line["measured"]) == ("512x1024", "128x256")
    assert float(line["median_s"]) == pytest.approx(0.06)
    assert float(line["median_s_of_all"]) == pytest.approx(0.96)
    assert float(line["end_to_end_median_s_of_all"]) == pytest.approx(0.96)
    assert (line["launches_per_time"], line["gpus"]) == ("1", "")


def test_the_authors_figures_stand_among_the_remarks() -> None:
    assert "published: 1.296 ms" in format_row(row(asked=(256, 256), seconds=(1.0,)), [])


def test_reasons_are_told_once() -> None:
    rows = [replace(MISSING, level=level) for level in ("a", "b", "c", "d", "e")]
    (line,) = format_reasons([*rows, SERIAL])
    assert line.startswith("Not measured: Mean, mask size 3, 100×100, GPU a; ")
    assert line.endswith("GPU c and 2 more. There is no GPU.")


def test_whose_figures_they_are_is_told_once() -> None:
    rows = [row(asked=(256, 256), level=level) for level in ("serial", "parallel", "serial")]
    (line,) = format_origins(rows)
    assert line.startswith("Published: parallel computing report no. 5, measured on Xeon")
    assert not list(format_origins([SERIAL]))


# Two reports -----------------------------------------------------------------------------


def test_compare() -> None:
    faster = replace(SERIAL, seconds=(0.02, 0.03, 0.04))
    noisy = replace(TUNED, seconds=(0.0015, 0.0025, 0.0028))
    second = Report({"CPU": "b", "Date": "today"}, PLAN, (faster, noisy, MISSING))
    serial, tuned, library = compare(REPORT, second)
    assert serial.ratio is not None
    assert serial.ratio.value == pytest.approx(0.5)
    assert (serial.ratio.interval.low, serial.ratio.interval.high) == pytest.approx((1 / 3, 2 / 3))
    assert serial.clear
    assert tuned.ratio is not None
    assert tuned.ratio.value == pytest.approx(1.25)
    assert not tuned.clear
    assert (library.second, library.ratio, library.row) == (None, None, LIBRARY)


def test_two_machines_stand_side_by_side() -> None:
    theirs = Report({"CPU": "b", "Date": "today"}, PLAN, (SERIAL, TUNED))
    both = beside_each_other(replace(REPORT, rows=(SERIAL, TUNED)), theirs)
    assert [each.series for each in both.rows] == [
        "a: CPU serial",
        "a: GPU tuned",
        "b: CPU serial",
        "b: GPU tuned",
    ]
    for ours, tuned in (both.rows[:2], both.rows[2:]):
        assert find_baseline(both.rows, tuned) is ours, "of the same machine"
    cards = [Report({"CPU": "a", "GPU": name}, PLAN, (TUNED,)) for name in ("c, 8 GiB", "d")]
    assert [each.machine for each in beside_each_other(*cards).rows] == ["c", "d"]
    assert [each.machine for each in beside_each_other(REPORT, REPORT).rows[::4]] == ["A", "B"]
    commits = [Report({"Kernelscope": f"1, commit {name}"}, PLAN, (TUNED,)) for name in ("c", "d")]
    assert [each.machine for each in beside_each_other(*commits).rows] == ["c", "d"]
    serial = row(asked=(256, 256), seconds=(1.0,))
    assert list(beside(serial))
    assert not list(beside(replace(serial, machine="a"))), "it would stand there twice"


def test_what_was_opened_says_whose_it_is(tmp_path: Path) -> None:
    machine = {
        "CPU": "a CPU",
        "GPU": "a card, 8 GiB",
        "Kernelscope": "1.0, commit abc",
        "Date": "2026-11-21 20:25+00:00",
    }
    for name, rows in (("cpu", (SERIAL,)), ("both", REPORT.rows), ("none", ())):
        save(Report(machine, PLAN, rows), tmp_path / f"{name}.json")
    found = [load(tmp_path / f"{name}.json") for name in ("cpu", "both", "none")]
    assert merge(found).files == {
        "cpu.json": "2026-11-21 20:25, a CPU, commit abc",
        "both.json": "2026-11-21 20:25, a CPU and a card, 8 GiB, commit abc",
        "none.json": "2026-11-21 20:25, commit abc",
    }
    assert not REPORT.files, "measured here"


def test_comparison_says_what_tells_the_two_apart() -> None:
    part = replace(SERIAL, shape=(50, 50), seconds=(0.03, 0.02, 0.04))
    second = Report({"CPU": "b", "Date": "today"}, PLAN, (part, TUNED))
    text = list(format_comparison(REPORT, second))
    assert text[0] == "CPU: A a, with comma; B b"
    assert not any(line.startswith("Date") for line in text)
    lines = [cells(line) for line in text if line.startswith("| Mean")]
    assert lines[0][3:] == ["60", "≈ 120", "2.00", "1.33 to 2.67, 50 % sure", "B timed on 50×50"]
    assert lines[1][3:] == ["2", "2", "1.00", "0.333 to 3, 50 % sure", "unclear"]
    assert lines[2][3:] == ["10", "none", "", "", ""]


def test_merged_reports_say_what_both_machines_are() -> None:
    card = Report({"CPU": "b", "Date": "today", "GPU": "c"}, PLAN, (TUNED,))
    both = merge([replace(REPORT, rows=(SERIAL,)), card])
    assert both.rows == (SERIAL, TUNED)
    assert both.machine == {"CPU": "a, with comma; b", "Date": "today", "GPU": "c"}


def test_a_report_is_replaced_whole_and_a_device_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run rewrites its report every two seconds: a kill must not cost the measurements."""
    path = tmp_path / "a.json"
    save(REPORT, path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fdopen", full)
        with pytest.raises(AppError, match="No space left"):
            save(REPORT, path)
    assert load(path).rows == REPORT.rows
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    pipe = tmp_path / "link"
    pipe.symlink_to("/dev/null")
    save(REPORT, pipe)
    assert pipe.is_symlink()
