"""Makes the tables and plots of README.md beside it from the JSON files beside it.

``python resources/bench/make_page.py`` rewrites the text between the marks of the page (and of two
tables of the manual), and redraws the plots whose figures changed; needs the window's libraries.
No measured number is typed by hand: a test compares the pages with the files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from page_claims import conclusions
from page_files import C_PEER, FOLDER, MANUAL, NOTHING, PAGE, experiment, reports
from page_summary import before, in_short
from page_tables import (
    MISSING,
    beside_c,
    by_block,
    by_level,
    by_memory,
    gains,
    gaps,
    in_brief,
    in_turns,
    kernels,
    libraries,
    machines,
    on_the_card,
    times,
)
from page_textbooks import beside_textbooks

from kernelscope.bench.charts import Chart, Plot, Selection, chart
from kernelscope.bench.figures import (
    PSNR,
)
from kernelscope.bench.report import Report, load
from kernelscope.gui.tools.bench_charts import create_drawer, save_chart


def blocks() -> dict[str, str]:
    """Return the text between the marks of the page, by their names."""
    graphs = reports("gpu-f-graphs", "cpu-f-tables", "cpu-f-graphs")
    kernels_of_f = by_memory(graphs, ["GPU global", "GPU constant", "GPU shared"])
    contents = {
        "in short": in_short(),
        "before": before(),
        "conclusions": conclusions(),
        "textbook": beside_textbooks(),
        "serial": beside_c(reports("cpu-c", "cpu-peers")),
        "serial in turns": in_turns(),
        "f-levels": by_level(experiment("f-levels")),
        "f-tables shared": gains(experiment("f-tables"), "GPU shared"),
        "f-tables tuned": gains(experiment("f-tables"), "GPU tuned"),
        "f-tables parallel": gains(experiment("f-tables"), "CPU parallel"),
        "f-graphs": kernels_of_f,
        "f-selection": times(experiment("f-selection")),
        "ladder": times(reports("gpu-ladder")),
        "ladder-others": times(reports("gpu-ladder-others")),
        "f-access": times(reports("gpu-f-access")),
        "m-ladder": by_level(experiment("m-ladder")),
        "n-nlm": times(experiment("n-nlm"), quantity=PSNR),
        "n-runs": times(experiment("n-nlm"), waiting=True),
        "n-kernels": kernels(reports("gpu-n-nlm")),
        "blocks": by_block(reports("gpu-blocks")),
        "nlm-4096": times(reports("gpu-nlm-4096")),
        "v-one": times(experiment("v-one"), waiting=True),
        "v-three": times(experiment("v-three"), waiting=True),
        "v-noise": times(experiment("v-noise")),
        "v-sizes": times(experiment("v-sizes"), waiting=True),
        "v-patches": times(experiment("v-patches"), waiting=True),
        "peers cpu": libraries(reports("cpu-peers")),
        "peers gpu": libraries(reports("gpu-peers-16384")),
        "peers gpu sizes": libraries(reports("gpu-peers-sizes")),
        "machines": machines(),
        "gaps": gaps(),
    }
    drawn = {picture.name: picture for picture in pictures()}
    for name in MAY_LACK:
        if name in drawn:
            contents[name] = f"![{drawn[name].text}]({name}.png)\n\n{contents[name]}"
        else:
            contents[name] = MISSING
    return contents


MAY_LACK = ("f-graphs", "v-sizes", "v-patches")
"""Blocks that contain a picture, as long as there is something to draw."""


def manual_blocks() -> dict[Path, dict[str, str]]:
    """Return the text between the marks of the manual's pages."""
    beside_opencv = in_brief(load(FOLDER / "cpu-peers.json"), "OpenCV")
    on_card = on_the_card(reports("gpu-peers-16384"))
    return {
        MANUAL / "benchmark.md": {"bench table": beside_opencv},
        MANUAL / "gpu-levels.md": {"gpu table": on_card},
    }


def filled(text: str, contents: dict[str, str]) -> str:
    """Return a page with `contents` between its marks."""
    for name, content in contents.items():
        pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)"
        literal = content.replace("\\", r"\\")
        text, count = re.subn(pattern, f"{literal}\n", text, flags=re.S)
        if count != 1:
            raise LookupError(f"The page has {count} places for {name}.")
    return text


@dataclass(frozen=True)
class Picture:
    """A plot of the page.

    Attributes
    ----------
    name : str
        Of its file, without the suffix.
    text : str
        Alternative text, if the page's own text does not describe it.
    """

    name: str
    report: Report
    plot: Plot
    choice: Selection
    waiting: bool = False
    text: str = ""


def pictures() -> Iterator[Picture]:
    """Yield the plots of the page, without those of missing measurements."""
    for picture in _pictures():
        if any(row.seconds and picture.choice.has(row) for row in picture.report.rows):
            yield picture


def _pictures() -> Iterator[Picture]:
    levels, tables = experiment("f-levels"), experiment("f-tables")
    mask, large = "Custom mask, 9×9", "4096×4096"
    yield Picture("f-levels", levels, Plot.SPEED_UP, Selection(mask), waiting=True)
    yield Picture("f-kernels", on(levels, "gpu"), Plot.BARS, Selection(mask))
    many = replace(levels, rows=tuple(r for r in levels.rows if r.level != "single-block"))
    yield Picture("f-stages", many, Plot.STAGES, Selection(mask, large))
    for name, label in (("mask", mask), ("median", "Median, mask size 9"), ("sobel", "Sobel")):
        yield Picture(f"f-{name}", tables, Plot.SPEED_UP, Selection(label), waiting=True)
    yield Picture(
        "f-graphs",
        on(reports("gpu-f-graphs"), "gpu"),
        Plot.BARS,
        Selection(None, large),
        text="Kernels of every filter of the thesis by memory level",
    )
    yield Picture("m-ladder", experiment("m-ladder"), Plot.BARS, Selection("Mean, mask size 3"))
    nlm = Selection("Non-local means, patch size 7")
    yield Picture("n-nlm", experiment("n-nlm"), Plot.TIME, nlm, waiting=True)
    volume = Selection(None, "189×157×130")
    yield Picture("v-one", experiment("v-one"), Plot.BARS, volume, waiting=True)
    yield Picture("v-three", experiment("v-three"), Plot.BARS, volume, waiting=True)
    cubes = Selection("MRI NLM, dimensions 3d, patch radius 1, search radius 5")
    yield Picture(
        "v-sizes",
        experiment("v-sizes"),
        Plot.TIME,
        cubes,
        waiting=True,
        text="Whole runs against the number of voxels, as in figure 4-2",
    )
    yield Picture(
        "v-patches",
        experiment("v-patches"),
        Plot.BARS,
        Selection(None, "428×247×338"),
        waiting=True,
        text="Whole runs by the radius of the patches",
    )
    kernels_ = reports("gpu-f-levels", "gpu-f-tables")
    yield Picture("roofline", kernels_, Plot.ROOFLINE, Selection(None, large))
    peers = [row for row in reports("cpu-peers").rows if row.level != C_PEER]
    yield Picture(
        "peers-cpu", Report({}, NOTHING.plan, tuple(peers)), Plot.BARS, Selection(None, large)
    )
    largest = Selection(None, "16384×16384")
    yield Picture("peers-gpu", reports("gpu-peers-16384"), Plot.BARS, largest)


def on(report: Report, device: str) -> Report:
    """Return the rows of one device."""
    return replace(report, rows=tuple(row for row in report.rows if row.device == device))


PLOTS = FOLDER / "plots.txt"
"""The digest of what each plot shows, so that a test notices one that is older than its figures."""


def charts() -> dict[str, Chart]:
    """Return what the plots of the page show, by the name of the file."""
    return {
        each.name: chart(each.plot, each.choice, each.report.rows, waiting=each.waiting)
        for each in pictures()
    }


def digest(shown: Chart) -> str:
    """Of six digits of each number: the last ones depend on the version of Python."""
    text = re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda found: f"{float(found[0]):.6g}", repr(shown))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def made_from() -> dict[str, str]:
    """Return the digest of what each plot in the folder shows."""
    lines = PLOTS.read_text("utf-8").splitlines() if PLOTS.exists() else []
    return {name: text for text, name in map(str.split, lines)}


def main() -> None:
    for path, contents in ((PAGE, blocks()), *manual_blocks().items()):
        path.write_text(filled(path.read_text(encoding="utf-8"), contents), encoding="utf-8")
    drawer, known = create_drawer(), made_from()
    made = {name: digest(shown) for name, shown in charts().items()}
    for name, shown in charts().items():
        path = FOLDER / f"{name}.png"
        if known.get(name) != made[name] or not path.is_file():
            save_chart(shown, path)
            print(path.name)
    PLOTS.write_text("".join(f"{text} {name}\n" for name, text in made.items()), "utf-8")
    del drawer


if __name__ == "__main__":
    main()
