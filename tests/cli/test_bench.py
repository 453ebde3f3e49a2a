"""The command ``bench``."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.paths import RESOURCES
from kernelscope.bench.charts import Plot
from kernelscope.bench.peers import plain_c
from kernelscope.bench.plan import Plan
from kernelscope.bench.presets import grid
from kernelscope.bench.report import Report, load, save
from kernelscope.cli import bench as cli_bench
from kernelscope.engine.backend import Backend
from kernelscope.gui.tools import bench_charts
from tests.bench.stand_in import StandIn
from tests.cli.running import refused, run

pytestmark = pytest.mark.usefixtures("small_cache")

SMALL = "bench --filters mean --sizes 32 --masks 3 --repeat 2"


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


def test_prints_a_table_and_writes_its_figures() -> None:
    text = run(f"{SMALL} --levels serial tuned --out a.json --csv a.csv").out
    for fact in ("Kernelscope:", "Date:", "CPU:", "Python:", "Libraries: numpy"):
        assert fact in text
    assert [row[:3] for row in table(text)] == [
        ["Mean, mask size 3", "CPU serial", "32×32"],
        ["Mean, mask size 3", "GPU tuned", "32×32"],
    ]
    report = load(Path("a.json"))
    assert [len(row.seconds) for row in report.rows] == [2, 2]
    assert report.plan.repeat == 2
    assert report.machine["CPU"]
    with Path("a.csv").open(encoding="utf-8", newline="") as file:
        assert [line["level"] for line in csv.DictReader(file)] == ["serial", "tuned"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("redirected", [False, True], ids=["pipe", "file"])
def test_csv_on_stdout_comes_once_and_last(redirected: bool) -> None:
    """However often the rows so far are saved into files; nor is the file behind it replaced."""
    code = (
        "from kernelscope.bench import rules\n"
        "from kernelscope.cli import bench, main\n"
        "rules.last_cache = lambda: 1 << 20\n"
        "bench._SAVE_EVERY = 0.0\n"
        f"main.main({[*SMALL.split(), '--devices', 'cpu', '--csv', '/dev/stdout']!r})"
    )
    command = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(RESOURCES.parent / "app")}
    if redirected:
        with Path("printed").open("w") as printed:
            subprocess.run(command, stdout=printed, env=env, check=True)
        text = Path("printed").read_text(encoding="utf-8")
    else:
        text = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout
    table_of_text, heading, lines = text.partition("label,filter,parameters")
    assert heading
    assert table_of_text.startswith("Kernelscope:")
    assert "label,filter" not in lines
    assert [line.partition(",")[0] for line in lines.splitlines()[1:]] == ['"Mean'] * 2


def test_blocks_in_turn(devices: StandIn) -> None:
    out = Path("a.json")
    said = run(f"{SMALL} --levels global tuned --blocks 8x8 256x1 --out a.json")
    names = ["GPU global 8×8", "GPU global 256×1", "GPU tuned"]
    assert [row[1] for row in table(said.out)] == names
    assert {request.options.block for request in devices.requests} == {(8, 8), (256, 1), None}
    report = load(out)
    assert [row.block for row in report.rows] == [(8, 8), (256, 1), None]
    assert len({row.subject for row in report.rows}) == 1  # the same work: times compare
    assert report.plan.blocks == ((8, 8), (256, 1))
    said = run("bench --preset a.json --out again.json")
    assert [row[1] for row in table(said.out)] == names
    content = json.loads(out.read_text("utf-8"))
    del content["plan"]["blocks"]
    for row in content["rows"]:
        del row["block"], row["batch"]
    out.write_text(json.dumps(content), "utf-8")  # as before there were any
    assert [(row.block, row.batch) for row in load(out).rows] == [(None, 1)] * 3


@pytest.mark.slow
def test_without_a_gpu_only_the_cpu_unless_asked(devices: StandIn) -> None:
    devices.available = False
    text = run(SMALL).out
    assert [row[1] for row in table(text)] == ["CPU serial", "CPU parallel"]
    assert "Not measured" not in text
    text = run(f"{SMALL} --devices gpu --levels shared").out
    assert not table(text)
    assert "Not measured: Mean, mask size 3, 32×32, GPU shared. No GPU here." in text


def test_gpu_without_a_number_measures_nothing_else() -> None:
    assert [row[1] for row in table(run(f"{SMALL} --gpu --levels tuned").out)] == ["GPU tuned"]


@pytest.mark.slow
def test_a_plan_for_two_gpus_opens_two_where_there_are_two(
    monkeypatch: pytest.MonkeyPatch,
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
    save(Report({}, plan, ()), Path("plan.json"))
    run("bench --preset plan.json")
    run("bench --preset plan.json --gpu 1")
    monkeypatch.setenv("KERNELSCOPE_GPU", "1")
    run("bench --preset plan.json")
    assert opened == [None, (0, 1), (1,), None]


@pytest.mark.slow
def test_peers() -> None:
    text = run(f"{SMALL} --devices cpu --peers").out
    plainly = ["C -O2", "C -O2, size known"] if plain_c.compiler() else []
    series = ["CPU serial", "CPU parallel", "OpenCV", "SciPy", *plainly]
    assert [row[1] for row in table(text)] == series
    assert "Peers: OpenCV" in text
    text = run(f"{SMALL} --devices cpu --levels serial --peers SciPy").out
    assert [row[1] for row in table(text)] == ["CPU serial", "SciPy"]


@pytest.mark.slow
def test_a_preset_and_its_repetition() -> None:
    run("bench --levels parallel --quick --out a.json --preset", "m mean")
    report = load(Path("a.json"))
    assert report.plan.name == "M mean filter ladder (256²)"
    (row,) = report.rows
    assert len(row.seconds) == 3
    said = run("bench --preset a.json")
    assert [row[1:3] for row in table(said.out)] == [["CPU parallel", "256×256"]]


def test_verify(devices: StandIn) -> None:
    text = run(f"{SMALL} --verify").out
    assert text == "Mean, mask size 3: 7 levels give the same result. (noise, 32×32, grey, 8 bit)\n"
    picture = RESOURCES / "coffee.png"
    text = run(f"bench --filters greyscale --devices cpu --verify {picture}").out
    assert text.startswith("Greyscale: 2 levels give the same result. (coffee.png, 600×400")
    devices.too_large_for = "shared"
    text = run(f"{SMALL} --verify").out
    assert "GPU shared did not run: The GPU has too little memory." in text


@pytest.mark.slow
def test_plots_are_drawn_by_the_module_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        for name in [
            name for name in sys.modules if name.startswith("kernelscope.gui.tools.bench_")
        ]:
            without.delitem(sys.modules, name)
        without.setitem(sys.modules, "pyqtgraph", None)
        error = refused(f"{SMALL} --plot plots")  # before anything is measured
    assert "Plots need pyqtgraph, which is not installed." in error
    assert "bench --show FILE.json --plot DIR" in error

    def export(report: Report, folder: Path, announce: object) -> None:
        (folder / "rows").write_text(str(len(report.rows)))

    monkeypatch.setattr("kernelscope.gui.tools.bench_charts.export", export)
    run(f"{SMALL} --devices cpu --plot plots")
    assert Path("plots/rows").read_text() == "2"


def of_machine(name: str, cpu: str, line: str) -> None:
    """Measure, as on a machine of this processor."""
    run(f"{line} --out {name}")
    content = json.loads(Path(name).read_text(encoding="utf-8"))
    content["machine"]["CPU"] = cpu
    Path(name).write_text(json.dumps(content), encoding="utf-8")


def test_compare() -> None:
    of_machine("a.json", "one", f"{SMALL} --levels tuned")
    of_machine("b.json", "another", f"{SMALL} --levels tuned")
    text = run("bench --compare a.json b.json").out
    assert "B another" in text
    assert [row[3:6] for row in table(text)] == [["1", "1", "1.00"]]


@pytest.mark.slow
def test_two_machines_in_one_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_charts, "Plot", [Plot.TIME])  # each of the others takes 0.3 s
    line = "bench --filters mean --sizes 16 32 --masks 3 --levels serial --devices cpu"
    for name in "ab":
        of_machine(f"{name}.json", f"machine {name}", line)
    run("bench --compare a.json b.json --plot plots")
    drawn = Path("plots/time-against-size-mean-mask-size-3.svg").read_text(encoding="utf-8")
    for name in ("machine a: CPU serial", "machine b: CPU serial"):
        assert name in drawn


@pytest.mark.slow
def test_saved_runs_are_shown_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_charts, "Plot", [Plot.SPEED_UP])
    for level in ("serial", "tuned"):
        run(f"{SMALL} --levels {level} --out {level}.json")
    text = run("bench --show serial.json tuned.json --plot plots --csv both.csv").out
    assert "serial.json: measured on " in text
    serial, tuned = table(text)
    assert (serial[1], serial[7], tuned[1]) == ("CPU serial", "1", "GPU tuned")
    assert tuned[7], "it is compared with the row of the other run"
    assert Path("plots/speed-up-mean-mask-size-3.svg").exists()
    assert len(Path("both.csv").read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize(
    "line",
    [
        "--repeat 0",
        "--sizes x",
        "--devices tpu",
        "--preset M --filters mean",
        "--verify photo.png --sizes 32",
    ],
)
def test_wrong_usage(line: str) -> None:
    error = refused(f"bench {line}", status=2)
    assert f"argument {line.split()[0]}" in error


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("--levels fast", 2, "no level “fast”"),
        ("--filters blur", 2, "no filter “blur”"),
        ("--preset x", 2, "no preset “x”"),
        ("--preset F", 2, "matches several presets"),
        ("--peers Photoshop", 2, "no library “Photoshop”"),
        ("--preset x.json", 1, "x.json cannot be read"),
        ("--out missing/bench.json", 1, "cannot be written"),
    ],
)
def test_mistakes(line: str, status: int, message: str) -> None:
    assert message in refused(f"bench {line}", status=status)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "file/plots"])
def test_a_folder_for_plots_that_cannot_be_is_refused_before_measuring(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kernelscope.bench.runner.measure", lambda *_: pytest.fail("it was measured")
    )
    Path("file").write_text("")
    assert "cannot be created" in refused("bench --quick --filters mean --plot", name)
