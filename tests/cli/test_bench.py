"""The command ``bench``."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.paths import RESOURCES
from kernelscope.bench import Plan, Report, grid, load, save
from kernelscope.bench.peers import plain_c
from kernelscope.cli import bench as cli_bench
from kernelscope.cli.main import main
from kernelscope.engine.backend import Backend
from tests.bench.stand_in import StandIn

SMALL = ["bench", "--filters", "mean", "--sizes", "32", "--masks", "3", "--repeat", "2"]


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Let the command find a GPU, which tests may take away."""
    gpu = StandIn()

    @contextmanager
    def backends(number: int | None = None) -> Iterator[dict[str, Backend]]:
        found: dict[str, Backend] = {"gpu": gpu, "cpu": CpuBackend()}
        try:
            yield found
        finally:
            for backend in found.values():
                backend.close()

    monkeypatch.setattr(cli_bench, "open_backends", backends)
    return gpu


def table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_prints_a_table_and_writes_what_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, lines = tmp_path / "results.json", tmp_path / "results.csv"
    arguments = ["--levels", "serial", "tuned", "--out", str(out), "--csv", str(lines)]
    assert main([*SMALL, *arguments]) == 0
    text = capsys.readouterr().out
    for fact in ("Kernelscope:", "Date:", "CPU:", "Python:", "Libraries: numpy"):
        assert fact in text
    rows = table(text)
    assert [row[:3] for row in rows] == [
        ["Mean, mask size 3", "CPU serial", "32×32"],
        ["Mean, mask size 3", "GPU tuned", "32×32"],
    ]
    report = load(out)
    assert [len(row.seconds) for row in report.rows] == [2, 2]
    assert report.plan.repeat == 2
    assert report.machine["CPU"]
    with lines.open(encoding="utf-8", newline="") as file:
        assert [line["level"] for line in csv.DictReader(file)] == ["serial", "tuned"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("redirected", [False, True], ids=["pipe", "file"])
def test_csv_on_stdout_comes_once_and_last(
    redirected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the rows so far are saved into files; nor is the file behind it replaced."""
    code = (
        "from kernelscope.cli import bench, main\n"
        "bench._SAVE_EVERY = 0.0\n"
        f"main.main({[*SMALL, '--devices', 'cpu', '--csv', '/dev/stdout']!r})"
    )
    command = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(RESOURCES.parent / "app")}
    if redirected:
        path = tmp_path / "printed"
        with path.open("w") as printed:
            subprocess.run(command, stdout=printed, env=env, check=True)
        text = path.read_text(encoding="utf-8")
    else:
        text = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout
    table_of_text, heading, lines = text.partition("label,filter,parameters")
    assert heading
    assert table_of_text.startswith("Kernelscope:")
    assert "label,filter" not in lines
    assert [line.partition(",")[0] for line in lines.splitlines()[1:]] == ['"Mean'] * 2


def test_blocks_in_turn(
    devices: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, again = tmp_path / "results.json", tmp_path / "again.json"
    options = ["--levels", "global", "tuned", "--blocks", "8x8", "256x1"]
    assert main([*SMALL, *options, "--out", str(out)]) == 0
    names = ["GPU global 8×8", "GPU global 256×1", "GPU tuned"]
    assert [row[1] for row in table(capsys.readouterr().out)] == names
    assert {request.options.block for request in devices.requests} == {(8, 8), (256, 1), None}
    report = load(out)
    assert [row.block for row in report.rows] == [(8, 8), (256, 1), None]
    assert len({row.subject for row in report.rows}) == 1  # the same work: times compare
    assert report.plan.blocks == ((8, 8), (256, 1))
    assert main(["bench", "--preset", str(out), "--out", str(again)]) == 0
    assert [row[1] for row in table(capsys.readouterr().out)] == names
    content = json.loads(out.read_text("utf-8"))
    del content["plan"]["blocks"]
    for row in content["rows"]:
        del row["block"], row["batch"]
    out.write_text(json.dumps(content), "utf-8")  # as before there were any
    assert [(row.block, row.batch) for row in load(out).rows] == [(None, 1)] * 3


def test_without_a_gpu_only_the_cpu_unless_asked(
    devices: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    devices.available = False
    assert main(SMALL) == 0
    text = capsys.readouterr().out
    assert [row[1] for row in table(text)] == ["CPU serial", "CPU parallel"]
    assert "Not measured" not in text
    assert main([*SMALL, "--devices", "gpu", "--levels", "shared"]) == 0
    text = capsys.readouterr().out
    assert not table(text)
    assert "Not measured: Mean, mask size 3, 32×32, GPU shared. No GPU here." in text


def test_gpu_without_a_number_measures_nothing_else(
    devices: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--gpu", "--levels", "tuned"]) == 0
    assert [row[1] for row in table(capsys.readouterr().out)] == ["GPU tuned"]


def test_a_plan_for_two_gpus_opens_two_where_there_are_two(
    devices: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[object] = []
    usual = vars(cli_bench)["open_backends"]

    def watched(gpus: Sequence[int] | None = None) -> AbstractContextManager[dict[str, Backend]]:
        opened.append(gpus)
        return usual(gpus)

    monkeypatch.setattr(cli_bench, "open_backends", watched)
    monkeypatch.delenv("KERNELSCOPE_GPU", raising=False)
    sweeps = grid(["mri_nlm"], [6], [3])
    plan = Plan(sweeps=sweeps, devices=("gpu",), levels=("shared",), gpus=(1, 2), repeat=1)
    path = tmp_path / "plan.json"
    save(Report({}, plan, ()), path)
    assert main(["bench", "--preset", str(path)]) == 0
    assert main(["bench", "--preset", str(path), "--gpu", "1"]) == 0
    monkeypatch.setenv("KERNELSCOPE_GPU", "1")
    assert main(["bench", "--preset", str(path)]) == 0
    assert opened == [None, (0, 1), (1,), None]


def test_peers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--devices", "cpu", "--peers"]) == 0
    text = capsys.readouterr().out
    plainly = ["C -O2", "C -O2, size known"] if plain_c.compiler() else []
    series = ["CPU serial", "CPU parallel", "OpenCV", "SciPy", *plainly]
    assert [row[1] for row in table(text)] == series
    assert "Peers: OpenCV" in text
    assert main([*SMALL, "--devices", "cpu", "--levels", "serial", "--peers", "SciPy"]) == 0
    assert [row[1] for row in table(capsys.readouterr().out)] == ["CPU serial", "SciPy"]


def test_a_preset_and_its_repetition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results.json"
    arguments = ["--levels", "parallel", "--quick"]
    assert main(["bench", "--preset", "m mean", *arguments, "--out", str(out)]) == 0
    assert load(out).plan.name == "M mean filter ladder (256²)"
    (row,) = load(out).rows
    assert len(row.seconds) == 3
    capsys.readouterr()
    assert main(["bench", "--preset", str(out)]) == 0
    assert [row[1:3] for row in table(capsys.readouterr().out)] == [["CPU parallel", "256×256"]]


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--verify"]) == 0
    text = capsys.readouterr().out
    assert text == "Mean, mask size 3: 7 levels give the same result. (noise, 32×32, grey, 8 bit)\n"
    shutil.copy(RESOURCES / "coffee.png", tmp_path)
    picture = str(tmp_path / "coffee.png")
    arguments = ["--filters", "greyscale", "--devices", "cpu", "--verify", picture]
    assert main(["bench", *arguments]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Greyscale: 2 levels give the same result. (coffee.png, 600×400")


def test_verify_names_what_did_not_run(
    devices: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    devices.too_large_for = "shared"
    assert main([*SMALL, "--verify"]) == 0
    assert "GPU shared did not run: The GPU has too little memory." in capsys.readouterr().out


def test_plots_are_drawn_by_the_module_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as without:
        for name in [
            name for name in sys.modules if name.startswith("kernelscope.gui.tools.bench_")
        ]:
            without.delitem(sys.modules, name)
        without.setitem(sys.modules, "pyqtgraph", None)
        assert main([*SMALL, "--plot", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "Plots need pyqtgraph, which is not installed." in output.err
    assert "bench --show FILE.json --plot DIR" in output.err
    assert not output.out, "it is said before anything is measured"

    def export(report: Report, folder: Path, announce: object) -> None:
        (folder / "rows").write_text(str(len(report.rows)))

    monkeypatch.setattr("kernelscope.gui.tools.bench_charts.export", export)
    assert main([*SMALL, "--devices", "cpu", "--plot", str(tmp_path)]) == 0
    assert (tmp_path / "rows").read_text() == "2"


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for path in (first, second):
        assert main([*SMALL, "--levels", "tuned", "--out", str(path)]) == 0
    content = json.loads(second.read_text(encoding="utf-8"))
    content["machine"]["CPU"] = "another"
    second.write_text(json.dumps(content), encoding="utf-8")
    capsys.readouterr()
    assert main(["bench", "--compare", str(first), str(second)]) == 0
    text = capsys.readouterr().out
    assert "B another" in text
    assert [row[3:6] for row in table(text)] == [["1", "1", "1.00"]]


@pytest.mark.slow
def test_two_machines_in_one_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    options = ["--filters", "mean", "--sizes", "16", "32", "--masks", "3", "--levels", "serial"]
    for path in paths:
        assert main(["bench", *options, "--devices", "cpu", "--out", str(path)]) == 0
        content = json.loads(path.read_text(encoding="utf-8"))
        content["machine"]["CPU"] = f"machine {path.stem}"
        path.write_text(json.dumps(content), encoding="utf-8")
    plots = tmp_path / "plots"
    assert main(["bench", "--compare", *map(str, paths), "--plot", str(plots)]) == 0
    drawn = (plots / "time-against-size-mean-mask-size-3.svg").read_text(encoding="utf-8")
    for name in ("machine a: CPU serial", "machine b: CPU serial"):
        assert name in drawn


@pytest.mark.slow
def test_saved_runs_are_shown_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "serial.json", tmp_path / "tuned.json"]
    for path in paths:
        assert main([*SMALL, "--levels", path.stem, "--out", str(path)]) == 0
    capsys.readouterr()
    plots, lines = tmp_path / "plots", tmp_path / "both.csv"
    options = ["--plot", str(plots), "--csv", str(lines)]
    assert main(["bench", "--show", *map(str, paths), *options]) == 0
    text = capsys.readouterr().out
    assert "serial.json: measured on " in text
    serial, tuned = table(text)
    assert (serial[1], serial[7], tuned[1]) == ("CPU serial", "1", "GPU tuned")
    assert tuned[7], "it is compared with the row of the other run"
    assert (plots / "speed-up-mean-mask-size-3.svg").exists()
    assert len(lines.read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["--repeat", "0"],
        ["--sizes", "x"],
        ["--devices", "tpu"],
        ["--preset", "M", "--filters", "mean"],
        ["--verify", "photo.png", "--sizes", "32"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench", *arguments])
    assert stop.value.code == 2
    assert f"argument {arguments[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--levels", "fast"], 2, "no level “fast”"),
        (["--filters", "blur"], 2, "no filter “blur”"),
        (["--preset", "x"], 2, "no preset “x”"),
        (["--preset", "F"], 2, "matches several presets"),
        (["--peers", "Photoshop"], 2, "no library “Photoshop”"),
        (["--preset", "x.json"], 1, "x.json cannot be read"),
        (["--out", "missing/bench.json"], 1, "cannot be written"),
    ],
)
def test_mistakes(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == status
    output = capsys.readouterr()
    assert message in output.err
    assert not table(output.out)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "file/plots"])
def test_a_folder_for_plots_that_cannot_be_is_refused_before_measuring(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kernelscope.bench.measure", lambda *_: pytest.fail("it was measured"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["bench", "--quick", "--filters", "mean", "--plot", name]) == 1
    assert "cannot be created" in capsys.readouterr().err
