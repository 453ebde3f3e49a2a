"""The quick bench: what it measures, and what it says about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app import bench, bench_subjects, filters
from app.backends import create_backends
from app.bench_subjects import Subject, subject
from app.cli import main
from app.engine.backend import Backend
from app.engine.control import CancelToken
from app.errors import AppError, Cancelled

SETTINGS = bench.Settings(
    filters=("mean",), sizes=(64,), masks=(3, 5), levels=("serial", "parallel"), repeat=2
)


@pytest.fixture
def backends() -> Iterator[dict[str, Backend]]:
    backends = create_backends()
    yield backends
    for backend in backends.values():
        backend.close()


def measure(settings: bench.Settings, backends: dict[str, Backend]) -> list[bench.Row]:
    return list(bench.measure(settings, backends, CancelToken(), lambda text: None))


def test_measures_each_filter_mask_size_and_level(backends: dict[str, Backend]) -> None:
    announced: list[str] = []
    rows = list(
        bench.measure(replace(SETTINGS, sizes=(64, 96)), backends, CancelToken(), announced.append)
    )
    assert [(row.parameters["size"], row.width, row.level) for row in rows] == [
        (mask, size, level)
        for mask in ("3", "5")
        for size in (64, 96)
        for level in ("serial", "parallel")
    ]
    assert announced[0] == "1/8  Mean, mask size 3, serial"
    for row in rows:
        assert len(row.seconds) == len(row.peer_seconds) == 2
        assert min(row.seconds) > 0
        assert row.width == row.height == row.asked


def test_every_filter_can_be_timed(backends: dict[str, Backend]) -> None:
    """Each has cases that it accepts, at a size that also fits its default parameters."""
    rows = measure(replace(SETTINGS, filters=(), masks=(3,), levels=("parallel",)), backends)
    assert {row.filter for row in rows} == set(filters.discover())


def test_bench_knows_only_filters_that_exist() -> None:
    assert set(bench_subjects._SUBJECTS) <= set(filters.discover())


@pytest.mark.parametrize("filter_id", ["laplace", "mask", "mean", "median", "sobel"])
def test_opencv_computes_the_same(filter_id: str, backends: dict[str, Backend]) -> None:
    """Otherwise the ratio would compare different things."""
    settings = replace(SETTINGS, filters=(filter_id,), masks=(3, 9), levels=("parallel",))
    rows = measure(settings, backends)
    assert rows
    assert [row.difference for row in rows] == [""] * len(rows)


def test_a_different_result_is_told(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    wrong = Subject(peer=lambda pixels, _: np.full_like(pixels, 255))
    monkeypatch.setitem(bench_subjects._SUBJECTS, "mean", wrong)
    (row,) = measure(replace(SETTINGS, masks=(3,), levels=("parallel",)), backends)
    assert "differ from OpenCV, by up to" in row.difference
    assert row.difference in bench.format_row(row)


def test_without_opencv_there_is_no_ratio(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    monkeypatch.setattr(bench_subjects, "cv2", None)
    assert subject("mean").peer is None
    (row,) = measure(replace(SETTINGS, masks=(3,), levels=("parallel",)), backends)
    assert row.ratio is None
    assert not row.peer_seconds


def test_a_slow_level_gets_a_smaller_picture(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    monkeypatch.setattr(bench, "LONGEST", 1e-9)
    (row,) = measure(replace(SETTINGS, sizes=(512,), masks=(3,), levels=("serial",)), backends)
    assert (row.width, row.asked) == (128, 512)
    assert "512 would be slow" in bench.format_row(row)


@pytest.mark.parametrize(
    ("size", "sides"),
    [(4096, [128, 256, 512, 1024, 2048, 4096]), (600, [150, 300, 600]), (130, [130]), (7, [7])],
)
def test_sides_to_try(size: int, sides: list[int]) -> None:
    assert bench.sides_up_to(size) == sides


def test_statistics() -> None:
    row = bench.Row(
        label="Mean",
        filter="mean",
        parameters={},
        border="reflect",
        device="cpu",
        level="serial",
        width=1000,
        height=2000,
        channels=1,
        asked=1000,
        seconds=(0.3, 0.1, 0.2),
        peer_seconds=(0.1, 0.1, 5.0),
    )
    assert row.median == 0.2
    assert row.megapixels_per_second == pytest.approx(10)
    assert row.ratio == pytest.approx(2)


def test_mistakes_are_found_before_anything_is_timed(backends: dict[str, Backend]) -> None:
    settings = replace(SETTINGS, filters=("greyscale", "mean"), masks=(3, 4))
    announced: list[str] = []
    with pytest.raises(AppError, match="4 is even"):
        list(bench.measure(settings, backends, CancelToken(), announced.append))
    assert not announced


def test_cancel(backends: dict[str, Backend]) -> None:
    token = CancelToken()
    rows = bench.measure(SETTINGS, backends, token, lambda text: None)
    next(rows)
    token.cancel()
    with pytest.raises(Cancelled):
        next(rows)


def test_command_prints_a_table_and_writes_every_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bench.json"
    arguments = [
        "bench",
        "--quick",
        "--filters",
        "mean",
        "--sizes",
        "64",
        "--masks",
        "3",
        "--levels",
        "parallel",
    ]
    assert main([*arguments, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    for fact in ("Kernelscope:", "Date:", "CPU:", "Python:", "Libraries: numpy"):
        assert fact in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert len({line.count("|") for line in table}) == 1
    assert "Mean, mask size 3" in table[2]
    report = json.loads(out.read_text(encoding="utf-8"))
    assert len(report["rows"][0]["seconds"]) == 3
    assert report["machine"]["CPU"]
    assert report["settings"]["sizes"] == [64]


@pytest.mark.parametrize("arguments", [["--repeat", "0"], ["--sizes", "x"], ["--levels", "fast"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench", *arguments])
    assert stop.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_unwritable_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "bench",
        "--filters",
        "greyscale",
        "--sizes",
        "8",
        "--levels",
        "parallel",
        "--repeat",
        "1",
        "--out",
    ]
    assert main([*arguments, str(tmp_path / "missing" / "bench.json")]) == 1
    output = capsys.readouterr()
    assert "error: " in output.err
    assert "Greyscale" not in output.out
