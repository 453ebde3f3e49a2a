"""The page of results: its tables agree with the files next to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelscope.base.paths import RESOURCES
from kernelscope.bench.figures import SPEED_UP, TIME, all_figures
from kernelscope.bench.rows import Difference, Row
from kernelscope.bench.statistics import Interval, Ratio
from tests.bench.made_up import row
from tests.scripts import load_script

FOLDER = RESOURCES / "bench"
PARTS = ("files", "tables", "textbooks", "claims", "summary")
LIBRARIES = ("OpenCV", "SciPy", "scikit-image")


@pytest.fixture(scope="module")
def page() -> SimpleNamespace:
    """Return the names of the script and of the modules that it is made of."""
    with pytest.MonkeyPatch.context() as path:
        path.syspath_prepend(FOLDER)
        modules = [script("make_page")]
        modules += [sys.modules[f"page_{part}"] for part in PARTS]
    return SimpleNamespace(
        **{name: value for each in modules for name, value in vars(each).items()}
    )


@pytest.fixture(scope="module")
def blocks(page: SimpleNamespace) -> dict[str, str]:
    made: dict[str, str] = page.blocks()
    return made


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    return script("measure")


def script(name: str) -> ModuleType:
    """Return a script of the folder as a module."""
    return load_script(FOLDER / f"{name}.py")


@pytest.mark.slow
def test_tables_are_made_from_the_files(page: SimpleNamespace, blocks: dict[str, str]) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.filled(text, blocks), "run python resources/bench/make_page.py"
    for path, contents in page.manual_blocks().items():
        text = path.read_text(encoding="utf-8")
        assert text == page.filled(text, contents), path.name


@pytest.mark.slow
def test_every_experiment_has_its_files_and_every_picture_is_there(page: SimpleNamespace) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    for name in page.EXPERIMENTS:
        there = {
            device: any(
                row.seconds
                for row in page.reports(f"{device}-{name}").rows
                if row.device == device and not row.library
            )
            for device in ("cpu", "gpu")
        }
        optional = name in ("f-graphs", "v-noise", "v-patches", "v-sizes")
        assert optional or len(set(there.values())) == 1, f"{name}: on one device only, {there}"
        if not any(there.values()):
            block = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end of", text, re.DOTALL)
            assert block is None or block[1] == "Not measured yet."
    shown = re.findall(r"!\[.+?\]\((.+?)\)", text)
    assert sorted(shown) == sorted(f"{each.name}.png" for each in page.pictures())
    for name in shown:
        assert (FOLDER / name).is_file(), name


@pytest.mark.slow
def test_no_plot_is_older_than_its_figures(page: SimpleNamespace) -> None:
    now = {name: page.digest(shown) for name, shown in page.charts().items()}
    assert page.made_from() == now, "run python resources/bench/make_page.py"


def test_the_digest_of_a_plot_changes_with_its_figures(page: SimpleNamespace) -> None:
    rows = page.experiment("f-levels").rows
    choice = page.Selection("Custom mask, 9×9")
    shown = page.chart(page.Plot.BARS, choice, rows)
    slower = [replace(row, seconds=tuple(1.001 * time for time in row.seconds)) for row in rows]
    assert page.digest(shown) == page.digest(page.chart(page.Plot.BARS, choice, rows))
    assert page.digest(shown) != page.digest(page.chart(page.Plot.BARS, choice, slower))


@pytest.mark.slow
def test_a_number_typed_by_hand_is_noticed(page: SimpleNamespace, blocks: dict[str, str]) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    name, content = next(iter(blocks.items()))
    forged = text.replace(content, content.replace("×", "× or more", 1))
    assert forged != text
    assert page.filled(forged, {name: content}) == text


def test_a_page_without_a_place_for_a_table_is_wrong(page: SimpleNamespace) -> None:
    with pytest.raises(LookupError, match="0 places for f-levels"):
        page.filled("no marks", {"f-levels": "a table"})


# Conclusions ---------------------------------------------------------------------------


def lying(low: float, high: float, confidence: float = 0.99) -> Ratio:
    return Ratio((low + high) / 2, Interval(low, high, confidence))


@pytest.mark.parametrize(
    ("low", "high", "faster", "equal"),
    [
        (1.2, 1.5, "holds", "no longer"),
        (1.05, 1.3, "unclear", "unclear"),
        (0.95, 1.05, "no longer", "holds"),
        (0.8, 1.0, "no longer", "unclear"),
        (0.5, 0.6, "no longer", "no longer"),
    ],
)
def test_a_ratio_is_judged_by_all_of_its_interval(
    page: SimpleNamespace, low: float, high: float, faster: str, equal: str
) -> None:
    assert page.judge(lying(low, high), False) == faster
    assert page.judge(lying(low, high), True) == equal


def claim(page: SimpleNamespace, **changes: Any) -> Any:
    return page.Claim(source="F", text="a beats b", theirs="2×, whole runs", **changes)


def test_no_longer_takes_the_textbook_kernels(page: SimpleNamespace) -> None:
    slow, fast = lying(0.9, 1.0), lying(1.5, 1.6)
    assert claim(page, kernels=slow).verdict() == "not here (99 % sure)"
    assert claim(page, kernels=slow, textbook=slow).verdict() == "no longer (99 % sure)"
    assert claim(page, kernels=slow, textbook=fast).verdict() == (
        "not with our kernels (99 % sure)"
    )
    assert claim(page, kernels=fast, textbook=slow).verdict() == "holds (99 % sure)"
    assert claim(page, runs=slow).verdict() == "not here (99 % sure)"


def test_kernels_and_whole_runs_are_judged_apart(page: SimpleNamespace) -> None:
    both = claim(page, kernels=lying(1.5, 1.6), runs=lying(0.95, 1.0, 0.5))
    assert both.line()[3:] == (
        "0.975× (0.95 to 1)",
        "1.55× (1.5 to 1.6)",
        "",
        "kernels: holds (99 % sure); whole runs: not here (50 % sure)",
    )
    assert claim(page).line()[3:] == ("", "", "", "not measured")


def cells(block: str) -> list[list[str]]:
    """Return the cells of a table, the headings first."""
    lines = [line for line in block.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines if "---" not in line]


def raw(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file, read without the bench."""
    path = FOLDER / f"{name}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return rows


@pytest.mark.slow
def test_a_psnr_is_that_of_the_whole_picture(blocks: dict[str, str]) -> None:
    """Not that of 64×64 pixels which the serial level was timed on."""
    said = {(line[0].strip("| "), line[1]): line for line in cells(blocks["n-nlm"])}
    column = next(line for line in said.values()).index("PSNR, dB")
    found: dict[tuple[str, str], set[str]] = {}
    for each in (*raw("cpu-n-nlm"), *raw("gpu-n-nlm")):
        if each["psnr"] is not None and each["shape"] == each["asked"]:
            size = "×".join(map(str, reversed(each["asked"])))
            found.setdefault((each["label"], size), set()).add(f"{each['psnr']:.2f}")
    assert len(found) == 9
    for key, texts in found.items():
        least, most = min(texts, key=float), max(texts, key=float)
        expected = least if least == most else f"{least} to {most}"
        assert said[key][column] == expected, key
    by_size = {key: line[column] for key, line in said.items() if key in found}
    assert len(set(by_size.values())) > 3, "each size has its own"


@pytest.mark.slow
def test_conclusions_are_ratios_of_the_medians_in_the_files(page: SimpleNamespace) -> None:
    def median(name: str, level: str, waiting: bool) -> float:
        (row,) = (each for each in raw(name) if each["level"] == level)
        if waiting and row["device"] == "gpu":
            return float(np.median(np.sum(list(row["stages"].values()), axis=0)))
        return float(np.median(row["seconds"]))

    said = {line[1]: line for line in cells(page.conclusions())}
    line = said["constant memory beats global memory (mask 9×9, 4096²)"]
    for column, waiting in ((3, True), (4, False)):
        expected = median("gpu-f-levels", "global", waiting)
        expected /= median("gpu-f-levels", "constant", waiting)
        assert float(line[column].partition("×")[0]) == pytest.approx(expected, rel=5e-3)
    line = said["shared memory is no gain (mean 3×3, 256²)"]
    expected = median("gpu-m-ladder", "global", False) / median("gpu-m-ladder", "shared", False)
    assert float(line[4].partition("×")[0]) == pytest.approx(expected, rel=5e-3)


@pytest.mark.slow
def test_two_gpus_are_judged_by_what_was_measured(
    page: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rows, where there are some; else by the run that is kept as text."""
    said = {line[1]: line for line in cells(page.conclusions())}
    (line,) = (line for text, line in said.items() if "512³" in text)
    if "two H200" in line[1]:
        assert line[3] == "1.7× (1.7 to 1.7)", "232.82 / 137.09 ms"
    one = row(
        filter="mri_nlm",
        label="MRI NLM, dimensions 3d, patch radius 1, search radius 5",
        parameters={"dimensions": "3d", "patch_radius": "1", "search_radius": "5"},
        asked=(512, 512, 512),
        device="gpu",
        level="shared",
        seconds=(3.0,) * 9,
    )
    two = replace(one, gpus=2, seconds=(2.0,) * 9)
    made = page.Report({}, page.Plan(sweeps=()), (one, two))
    monkeypatch.setattr("page_claims.experiment", lambda name: made)
    (line,) = (each.line() for each in page.claims_of_v() if "512³" in each.text)
    assert line[1:4] == (
        "two GPUs beat one (table 4-5, 512³, v = 5, d = 1; here level shared)",
        "1.66×, whole runs",
        "1.5× (1.5 to 1.5)",
    )
    assert line[6].startswith("holds")


def test_levels_that_differ_in_psnr_would_be_said(
    page: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = row(asked=(64, 64), seconds=(1.0,), psnr=30.0)
    part = replace(one, shape=(32, 32), level="parallel", psnr=25.0)

    def verdict(*rows: Row) -> tuple[str, ...]:
        made = page.Report({}, page.Plan(sweeps=()), rows)
        monkeypatch.setattr("page_claims.experiment", lambda name: made)
        found: tuple[str, ...] = page.agreement()
        return found

    assert verdict(one, part)[-1] == "not measured", "a part is another picture"
    alike = replace(one, device="gpu", level="shared", psnr=30.001)
    assert verdict(one, part, alike)[3:] == (
        "at most 0.0010 dB in 1 pictures", "", "", "refuted: all levels agree"
    )  # fmt: skip
    assert verdict(one, replace(alike, psnr=29.0))[-1] == "levels differ"
    assert page.decibels([one, part, replace(alike, psnr=29.0)]) == "29.00 to 30.00"


# Like beside like ----------------------------------------------------------------------


@pytest.mark.slow
def test_what_m_does_not_state_is_said_with_each_of_its_figures(
    page: SimpleNamespace, blocks: dict[str, str]
) -> None:
    heading, *lines = cells(blocks["m-ladder"])
    column = heading.index("theirs |") if "theirs |" in heading else len(heading) - 1
    quoted = {line[0].strip("| "): line[column] for line in lines}
    for level in ("global", "shared", "texture", "single-block"):
        assert "report no. 5" in quoted[f"GPU {level}"]
        assert "kernel or whole run not stated" in quoted[f"GPU {level}"]
    assert "not stated" not in quoted["CPU serial"], "nothing is carried there"
    assert "times of kernels" not in page.PAGE.read_text(encoding="utf-8").replace(
        "times are of kernels", ""
    )


@pytest.mark.slow
def test_plots_show_figures_of_the_same_quantity_only(page: SimpleNamespace) -> None:
    quoted = 0
    for each in page.pictures():
        drawn = page.chart(each.plot, each.choice, each.report.rows, waiting=each.waiting)
        styles = {series.name: series.style for series in drawn.series if not series.theirs}
        quantity = SPEED_UP if each.plot is page.Plot.SPEED_UP else TIME
        for series in drawn.series:
            if not series.theirs:
                continue
            quoted += 1
            author, _, variant = series.name.partition(": ")
            figures = [
                figure
                for figure in all_figures()
                if (figure.origin.author, figure.variant, figure.quantity)
                == (author, variant, quantity)
            ]
            assert figures, series.name
            assert all(figure.is_of(each.waiting) for figure in figures), series.name
            assert series.style in styles.values(), "the colour of a level of ours"
    assert quoted > 8


def test_volumes_quote_whole_runs_beside_whole_runs(page: SimpleNamespace) -> None:
    radii = {"dimensions": "3d", "patch_radius": "2", "search_radius": "3"}
    shared = row(
        filter="mri_nlm",
        parameters=radii,
        channels=3,
        asked=(37, 256, 256),
        device="gpu",
        level="shared",
        seconds=(0.04,),
        stages={"upload": (0.06,), "kernel": (0.04,)},
    )
    report = page.Report({}, page.Plan(sweeps=()), (shared,))
    (_, line) = cells(page.times(report, waiting=True))
    assert line[2] == "100"
    assert "1 gpu 6.1 to 6.6 s [as printed; its speed-up of 188 to 230× implies 21" in line[3]
    (heading, line) = cells(page.times(report))
    assert line[2].rstrip(" |") == "40"
    assert not any("theirs" in cell for cell in heading) or "1 gpu" not in line[-1]


# Other programs' files -----------------------------------------------------------------


@pytest.fixture
def textbook(
    page: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A folder with files of textbook kernels, and nothing else."""
    stencils = [
        {"case": "mask 9", "level": level, "times": [ours] * 9, "textbook_times": [theirs] * 9}
        for level, ours, theirs in (("global", 0.42e-3, 0.4e-3), ("constant", 0.24e-3, 0.25e-3))
    ]
    volumes = [
        {"label": "NLM", "size": "256×256", "level": "global", "ours": [2.0], "textbook": [1.0]}
    ]
    contents = {
        "gpu-textbook-4096": {"card": "a card", "side": 4096, "rows": stencils},
        "gpu-textbook-nlm": volumes,
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    for name in ("page_files", "page_textbooks"):
        monkeypatch.setattr(f"{name}.FOLDER", tmp_path)
    page.textbook.cache_clear()
    yield
    page.textbook.cache_clear()


@pytest.mark.usefixtures("textbook")
def test_ours_stand_beside_the_textbook_kernels(page: SimpleNamespace) -> None:
    heading, mask, means = cells(page.beside_textbooks())
    assert page.beside_textbooks().startswith("On a card:")
    assert [cell.strip(" |") for cell in heading] == ["filter", "size", "global", "constant"]
    assert mask[0] == "| Custom mask, 9×9"
    assert mask[2].startswith("1.05 (1.05 to 1.05; 0.42 ms)")
    assert means[:3] == ["| NLM", "256×256", "2.00 (2.00 to 2.00; 2,000 ms)"]
    found = page.textbook_ratio("Custom mask, 9×9", "4096×4096", "global", "constant")
    assert found.value == pytest.approx(1.6)
    assert page.textbook_ratio("Custom mask, 9×9", "4096×4096", "global", "shared") is None
    assert page.bench_files() == [], "they are no files of the bench"


def test_serial_stands_beside_c(page: SimpleNamespace) -> None:
    serial = row(asked=(64, 64), seconds=(0.0023,) * 9)
    peer = replace(serial, level="C -O2", library=True, seconds=(0.002,) * 9)
    other = replace(serial, level="parallel", seconds=(0.001,) * 9)
    report = page.Report({}, page.Plan(sweeps=()), (serial, other, peer))
    (_, line) = cells(page.beside_c(report))
    assert line[1:5] == ["64×64", "2.3", "2", "1.15"]
    assert "C -O2" not in page.libraries(report)
    sized = replace(peer, level="C -O2, size known", seconds=(0.001,) * 9)
    report = replace(report, rows=(*report.rows, sized))
    (_, line) = cells(page.beside_c(report))
    assert line[1:5] + line[6:] == ["64×64", "2.3", "2", "1.15", "1", "2.30 |"]
    assert "C -O2" not in page.libraries(report)


def test_serial_stands_in_turns_beside_c_that_knows_the_size(page: SimpleNamespace) -> None:
    (head, *lines) = cells(page.in_turns())
    assert head[2:] == ["serial / C", "serial / C -O2, size known |"]
    ratios = {
        line[0].strip("| "): [float(cell.partition(" ")[0]) for cell in line[2:]] for line in lines
    }
    assert len(ratios) == 14
    assert all(sized >= any_size for any_size, sized in ratios.values())
    assert ratios["mean 3"][1] > 1.8, "as the text says"


def test_blocks_stand_side_by_side(page: SimpleNamespace) -> None:
    rows = [
        row(asked=(64, 64), device="gpu", level="shared", block=block, seconds=(seconds,))
        for block, seconds in (((8, 8), 0.001), ((32, 32), 0.002))
    ]
    (heading, line) = cells(page.by_block(page.Report({}, page.Plan(sweeps=()), tuple(rows))))
    assert heading[2:] == ["level", "8×8", "32×32 |"]
    assert line[2:] == ["shared", "1", "2 |"]


def test_kernels_of_two_passes_are_told_apart(page: SimpleNamespace) -> None:
    two = row(
        asked=(64, 64),
        shape=(32, 32),
        device="gpu",
        level="shared",
        seconds=(0.003,) * 3,
        kernels={"nlm_weights": (0.001,) * 3, "nlm_mean": (0.002,) * 3},
    )
    (_, line) = cells(page.kernels(page.Report({}, page.Plan(sweeps=()), (two,))))
    assert line[3].rstrip(" |") == "nlm_weights ≈ 4; nlm_mean ≈ 8"


def test_scaled_times_and_libraries_stand_in_tables(page: SimpleNamespace) -> None:
    part = row(asked=(64, 64), shape=(32, 32), seconds=(0.001,))
    ours = row(asked=(64, 64), level="parallel", seconds=(0.002,))
    library = row(
        asked=(64, 64),
        level="OpenCV",
        library=True,
        seconds=(0.004,),
        difference=Difference(1.0, 0.25),
    )
    report = page.Report({}, page.Plan(sweeps=()), (part, ours, library))
    timed = "≈ 4 (1 on 32×32)"
    assert (
        page.by_level(report)
        .splitlines()[2]
        .startswith(f"| CPU serial | {timed} | 0 | {timed} | 1 |")
    )
    assert page.libraries(report).splitlines()[2] == (
        "| Mean, mask size 3 | 64×64 | 2 | 4 | 0.50 "
        "| OpenCV: 25.00 % differ from ours, by up to 1 |"
    )


# Measuring -----------------------------------------------------------------------------
@pytest.mark.slow
def test_everything_on_the_page_can_be_measured_again(
    page: SimpleNamespace, measure: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    for device in ("cpu", "gpu"):
        known = {each.name for each in measure.EXPERIMENTS[device]}
        assert set(page.EXPERIMENTS) <= known
        files = {path.stem for path in FOLDER.glob(f"{device}-*.json")} - {*page.LIMITS}
        assert {name.removeprefix(f"{device}-") for name in files} <= known
        assert {name.removeprefix("gpu-") for name in page.TEXTBOOKS} <= known or device == "cpu"
        assert measure.main([device, "--list"]) == 0
        text = capsys.readouterr().out
        assert len(text.splitlines()) == len(known) + 1
        assert re.search(r"together +about +[1-9]", text)


def test_experiments_are_runs_of_the_bench(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs: list[list[str]] = []

    def stand_in(arguments: list[str]) -> int:
        runs.append(arguments)
        return int("f-levels" in arguments[-1])

    monkeypatch.setattr(measure, "kernelscope", stand_in)
    arguments = ["cpu", "--only", "f-levels", "peers", "--out", str(tmp_path / "new")]
    assert measure.main(arguments) == 1, "one of them failed, and the other was run"
    old = str(FOLDER / "cpu-peers.json")
    assert [run[:-1] for run in runs] == [
        ["bench", "--preset", "F level", "--devices", "cpu", "--out"],
        ["bench", "--preset", old, "--peers", *LIBRARIES, "--devices", "cpu", "--out"],
    ]
    assert runs[0][-1] == str(tmp_path / "new" / "cpu-f-levels.json")
    runs.clear()
    seconds = {"f-levels": 5.0, "m-ladder": 1.0}
    monkeypatch.setattr(measure, "expected", lambda device, each: seconds.get(each.name, 9.0))
    assert measure.main(["cpu", "--within", "2", "--out", str(tmp_path / "new")]) == 0
    assert [run[2] for run in runs] == ["M mean"], "the others take longer"
    with pytest.raises(SystemExit):
        measure.main(["cpu", "--only", "everything"])
    (plain,) = (each for each in measure.EXPERIMENTS["gpu"] if each.name == "textbook-nlm")
    commands: list[list[str]] = []
    monkeypatch.setattr(
        measure.subprocess,
        "run",
        lambda command, check: commands.append(command) or subprocess.CompletedProcess(command, 0),
    )
    assert measure.run("gpu", plain, tmp_path) == 0
    path = str(tmp_path / "gpu-textbook-nlm.json")
    assert commands == [[sys.executable, "-m", "tests.gpu.textbook_nlm", path]]


def test_all_kernels_of_a_plan_are_compiled_before(measure: ModuleType) -> None:
    (levels,) = (each for each in measure.EXPERIMENTS["gpu"] if each.name == "v-one")
    needed = set(measure.cubins([measure.plan_of("gpu", levels)]))
    assert {name for name, _ in needed} == {"mri_nlm"}
    assert len(needed) >= 4, "in the plane and in space, small patches and large"
