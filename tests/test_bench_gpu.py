"""The GPU's bench on a stand-in for the GPU: what it asks for, scales and prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app import bench, bench_gpu
from app.backends.cpu import CpuBackend
from app.cli import main
from app.engine.backend import Availability, Backend
from app.engine.control import CancelToken, Progress
from app.engine.image import Image
from app.engine.request import Request
from app.engine.timing import Metric, Stopwatch
from app.errors import Cancelled, DeviceUnavailable
from app.filters.spec import GLOBAL, PARALLEL, SHARED, FilterSpec, Level

SETTINGS = bench_gpu.Settings(
    filters=("mean",), sizes=(256,), masks=(3,), levels=(), repeat=3, peers=False
)
UPLOAD, KERNEL, DOWNLOAD = 0.003, 0.001, 0.002


class StandIn(CpuBackend):
    """Computes on the CPU and reports a GPU's stages."""

    id = "gpu"
    name = "GPU"
    available = True

    def availability(self) -> Availability:
        return Availability(self.available, "a stand-in")

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return (GLOBAL, SHARED)

    def run(
        self,
        request: Request,
        level: Level,
        stopwatch: Stopwatch,
        token: CancelToken,
        progress: Progress,
    ) -> Image:
        result = super().run(request, PARALLEL, Stopwatch(), token, progress)
        stopwatch.add("compile", 5.0, counted=False)
        # Twice, as on a card: for the input and for the output.
        stopwatch.add("prepare", 0.0)
        stopwatch.add("upload", UPLOAD)
        stopwatch.add("prepare", 0.0)
        repeats = tuple(KERNEL * (1 + n) for n in range(request.repeat))
        seconds = sorted(repeats)[request.repeat // 2]
        stopwatch.add("kernel", seconds, repeats=repeats)
        stopwatch.add("download", DOWNLOAD)
        rate = 2 * request.image.pixels.nbytes / seconds
        stopwatch.metrics += [
            Metric("effective rate", rate, "B/s"),
            Metric("copy rate", 1e9, "B/s"),
        ]
        return result


@pytest.fixture
def backends() -> Iterator[dict[str, Backend]]:
    backends: dict[str, Backend] = {"gpu": StandIn(), "cpu": CpuBackend()}
    yield backends
    for backend in backends.values():
        backend.close()


def measure(settings: bench_gpu.Settings, backends: dict[str, Backend]) -> list[bench_gpu.Row]:
    return list(bench_gpu.measure(settings, backends, CancelToken(), lambda text: None))


def test_measures_every_level(backends: dict[str, Backend]) -> None:
    rows = measure(replace(SETTINGS, masks=(3, 5)), backends)
    assert [(row.parameters["size"], row.level) for row in rows] == [
        ("3", "global"),
        ("3", "shared"),
        ("5", "global"),
        ("5", "shared"),
    ]
    for row in rows:
        assert row.seconds == (KERNEL, 2 * KERNEL, 3 * KERNEL)
        assert row.median == 2 * KERNEL
        assert row.bytes == pytest.approx(2 * 256**2)
        assert row.end_to_end == pytest.approx(UPLOAD + KERNEL + DOWNLOAD)
        assert set(row.cpu_seconds) == {"serial", "parallel"}
        assert min(row.cpu_seconds.values()) > 0


def test_only_the_levels_that_were_asked_for(backends: dict[str, Backend]) -> None:
    (row,) = measure(replace(SETTINGS, levels=("shared",)), backends)
    assert row.level == "shared"


def test_a_slow_cpu_is_scaled_and_said(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    monkeypatch.setattr(bench_gpu, "CPU_SECONDS", 1e-9)
    row, _ = measure(replace(SETTINGS, sizes=(512,)), backends)
    assert row.cpu_sides == {"serial": 128, "parallel": 128}
    assert "serial from 128" in bench_gpu.format_row(row)


def test_a_slow_level_gets_a_smaller_picture(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    monkeypatch.setattr(bench_gpu, "LONGEST", KERNEL)
    row, _ = measure(replace(SETTINGS, sizes=(512,)), backends)
    assert (row.width, row.asked) == (128, 512)
    assert "512 would be slow" in bench_gpu.format_row(row)


def test_a_line_of_the_table(backends: dict[str, Backend]) -> None:
    row, _ = measure(SETTINGS, backends)
    row = replace(row, cpu_seconds={"serial": 0.6, "parallel": 0.06}, cpu_sides={})
    cells = [cell.strip() for cell in bench_gpu.format_row(row).split("|")[1:-1]]
    assert cells[1:] == ["global", "256", "2.0000", "0", "7%", "6.000", "100.0", "10.0", ""]
    assert len(cells) == len(bench_gpu.TABLE.headings)


def test_without_a_gpu_it_says_so_at_once(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    monkeypatch.setattr(StandIn, "available", False)
    announced: list[str] = []
    with pytest.raises(DeviceUnavailable, match="no GPU to time"):
        list(bench_gpu.measure(SETTINGS, backends, CancelToken(), announced.append))
    assert not announced


def test_cancel(backends: dict[str, Backend]) -> None:
    token = CancelToken()
    rows = bench_gpu.measure(SETTINGS, backends, token, lambda text: None)
    next(rows)
    token.cancel()
    with pytest.raises(Cancelled):
        next(rows)


def test_the_report_holds_every_time(tmp_path: Path, backends: dict[str, Backend]) -> None:
    rows = measure(SETTINGS, backends)
    bench.save(tmp_path / "bench.json", SETTINGS, {"GPU": "a stand-in"}, rows)
    report = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert report["machine"] == {"GPU": "a stand-in"}
    assert len(report["rows"][0]["stages"]["upload"]) == 3
    assert report["settings"]["peers"] is False


@pytest.mark.parametrize(
    "arguments", [["--peers"], ["--gpu", "--levels", "serial"], ["--levels", "global"]]
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench", *arguments])
    assert stop.value.code == 2
    assert "error: argument --" in capsys.readouterr().err
