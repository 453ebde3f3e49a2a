"""Makes the tables and plots of README.md beside it from the JSON files beside it.

``python resources/bench/make_page.py`` rewrites what stands between the marks of the page (and
of the table in the project's README), and draws the plots anew; needs the window's libraries.
Nothing that was measured is typed by hand: a test compares the pages with the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.bench import Plan, Report, Row, find_baseline, load, merge, speed_up
from app.bench.figures import SOURCES, Figure, all_figures, beside
from app.bench.report import format_reasons
from app.bench.statistics import BASELINE, full_time, short, summarise
from app.gui.bench_charts import Choice, Plot, chart
from app.gui.bench_plots import create_drawer, save_chart

FOLDER = Path(__file__).parent
PAGE, README = FOLDER / "README.md", FOLDER.parents[1] / "README.md"

EXPERIMENTS = ("f-levels", "f-tables", "m-ladder", "n-nlm", "v-one", "v-three", "quick-look")
"""Those with a CPU part and a GPU part, ``cpu-NAME.json`` and ``gpu-NAME.json``."""

_NOTHING = Report({}, Plan(sweeps=()), ())
_SIZE = (4096, 4096)
_CLEAR = 1.1
"""A ratio from which on one of two is said to be faster."""


def reports(*names: str) -> Report:
    """Return what lies in those of some files that there are, as one report."""
    paths = (FOLDER / f"{name}.json" for name in names)
    return merge([_NOTHING, *(load(path) for path in paths if path.exists())])


def experiment(name: str) -> Report:
    return reports(f"cpu-{name}", f"gpu-{name}")


# Tables --------------------------------------------------------------------------------


def table(headings: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """Return Markdown whose first `text` columns are aligned to the left."""
    rule = ["---" if column < text else "--:" for column in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *lines))


def milliseconds(row: Row | None, waiting: bool = False) -> str:
    """Return the time for all of the data; ≈ where it was timed on a part."""
    if row is None or not row.seconds:
        return ""
    about = "≈ " if row.shape != row.asked else ""
    return f"{about}{short(1e3 * full_time(row, waiting))}"


def gain(row: Row | None, rows: Sequence[Row], waiting: bool = True, over: str = BASELINE) -> str:
    """Return how many times longer another series takes."""
    base = find_baseline(rows, row, over) if row is not None and row.seconds else None
    if row is None or base is None:
        return ""
    found = speed_up(row, base, waiting)
    return f"{'≈ ' if found.scaled else ''}{short(found.factor)}"


def subjects(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows in groups that are about the same filter and data."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.subject, []).append(row)
    return list(groups.values())


def by_level(report: Report) -> str:
    """Return a line for each level of an experiment about one filter and one size."""
    rows = report.rows
    return table(
        (
            *("by", "computing, ms", "± %", "end to end, ms"),
            *("× serial", "× serial, end to end", "× parallel, end to end", "theirs"),
        ),
        (
            (
                row.series,
                milliseconds(row),
                f"{50 * summarise(row.seconds).spread:.0f}",
                milliseconds(row, waiting=True),
                gain(row, rows, waiting=False),
                gain(row, rows),
                gain(row, rows, over="CPU parallel"),
                "; ".join(figure.describe() for figure in beside(row)),
            )
            for row in rows
            if row.seconds
        ),
    )


def times(report: Report, quantity: str = "time") -> str:
    """Return a line for each filter and size, a column for each series: computing, in ms."""
    series = list(dict.fromkeys(row.series for row in report.rows if row.seconds))

    def line(rows: Sequence[Row]) -> Sequence[str]:
        found = {row.series: row for row in rows}
        theirs = (f for f in all_figures() if f.is_about(rows[0]) and f.quantity == quantity)
        decibels = next((f"{row.psnr:.2f}" for row in rows if row.psnr is not None), "")
        return (
            rows[0].label,
            rows[0].size,
            *(milliseconds(found.get(name)) for name in series),
            decibels,
            "; ".join(dict.fromkeys(f"{figure.variant} {figure.amount()}" for figure in theirs)),
        )

    lines = [line(rows) for rows in subjects(report.rows)]
    headings = ("filter", "size", *series, "PSNR, dB", "theirs")
    used = [n for n in range(len(headings)) if any(cells[n] for cells in lines)]
    return table([headings[n] for n in used], [[cells[n] for n in used] for cells in lines], text=2)


def gains(report: Report, level: str) -> str:
    """Return a line for each filter, a column for each size: speed-ups, theirs in brackets."""
    sizes = list(dict.fromkeys(row.size for row in report.rows))
    labels = list(dict.fromkeys(row.label for row in report.rows))
    found = {(row.label, row.size): row for row in report.rows if row.series == level}

    def cell(label: str, size: str) -> str:
        row = found.get((label, size))
        theirs = [short(f.low) for f in beside(row) if f.quantity == "speed-up"] if row else []
        return f"{gain(row, report.rows)} ({theirs[0]})" if theirs else gain(row, report.rows)

    return table(
        ("filter", *sizes), ((label, *(cell(label, size) for size in sizes)) for label in labels)
    )


def libraries(report: Report) -> str:
    """Return ours beside each library: computing in ms, ours / theirs, and how results differ."""
    names = list(dict.fromkeys(row.series for row in report.rows if row.library and row.seconds))

    def line(rows: Sequence[Row]) -> Iterator[str]:
        ours = min(
            (row for row in rows if row.seconds and not row.library), key=full_time, default=None
        )
        yield from (rows[0].label, rows[0].size, milliseconds(ours))
        found = {row.series: row for row in rows if row.library and row.seconds}
        for name in names:
            row = found.get(name)
            yield milliseconds(row)
            yield f"{full_time(ours) / full_time(row):.2f}" if ours and row else ""
        yield "; ".join(
            f"{name}: {row.difference.describe()}"
            for name, row in found.items()
            if row.difference is not None and row.difference.largest
        )

    headings = ["filter", "size", "ours, ms"]
    for name in names:
        headings += [f"{name}, ms", "ours / it"]
    lines = [list(line(rows)) for rows in subjects(report.rows)]
    return table((*headings, "results that differ"), lines, text=2)


def by_filter(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of `lines`, whose first cell is a label: one for each filter.

    What belongs to its mask sizes stands side by side, small ones first.
    """
    groups: dict[str, list[tuple[str, ...]]] = {}
    for label, *cells in lines:
        parts = label.split(", ")
        side = next((part for part in parts if _SIDE.fullmatch(part)), "")
        name = ", ".join(part for part in parts if part != side)
        groups.setdefault(name, []).append((_SIDE.sub(r"\1", side), *cells))
    for group in groups.values():
        group.sort(key=lambda cells: int(cells[0] or 0))
    body = (
        (name, *(slashed(column) for column in zip(*group, strict=True)))
        for name, group in groups.items()
    )
    return table(("filter", "mask sizes", *headings), body, text=2)


def slashed(cells: Sequence[str]) -> str:
    """Return cells side by side, — for empty ones among others."""
    return " / ".join(cell or "—" for cell in cells) if any(cells) else ""


def in_brief(report: Report, library: str) -> str:
    """Return what was measured how, and a line for each filter, beside a library."""
    known = report.machine
    version = next(text for text in known["Peers"].split(", ") if text.startswith(library))

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            ours = next((row for row in rows if row.seconds and not row.library), None)
            other = next((row for row in rows if row.seconds and row.series == library), None)
            if ours is not None and other is not None:
                quotient = f"{full_time(ours) / full_time(other):.2f}"
                yield ours.label, milliseconds(ours), milliseconds(other), quotient

    busy = max((row.load for row in report.rows if row.load is not None), default=0.0)
    disturbed = f", up to {busy:.1f} cores busy with other programs" if busy >= 0.1 else ""
    head = (
        f"Level `parallel` beside {version} in the same run, in ms: {known['CPU']}, "
        f"{known['Date'][:10]}, {report.rows[0].size} {report.rows[0].content}, 8 bit, medians of "
        f"{report.plan.repeat}, cold caches, compiling excluded{disturbed} "
        f"([all rows and libraries](resources/bench/README.md#beside-other-libraries))."
    )
    return f"{head}\n\n{by_filter(('ours', library, f'ours / {library}'), lines())}"


def on_the_card(report: Report) -> str:
    """Return the same for the kernels of the level *tuned* beside NPP and CuPy."""
    known, names = report.machine, ("NPP", "CuPy")

    def lines() -> Iterator[Sequence[str]]:
        for rows in subjects(report.rows):
            found = {row.series: row for row in rows if row.seconds}
            ours = found.get("GPU tuned")
            if ours is not None and ours.bytes is not None and ours.copy_rate is not None:
                rate = ours.bytes / full_time(ours) / ours.copy_rate
                theirs = (milliseconds(found.get(name)) for name in names)
                yield ours.label, milliseconds(ours), f"{rate:.0%}", *theirs

    head = (
        f"Kernels of level `tuned` beside NVIDIA's NPP and CuPy in the same run, in ms: "
        f"{known['GPU'].partition(',')[0]}, driver {known['Driver']}, {known['Date'][:10]}, "
        f"{report.rows[0].size} {report.rows[0].content}, 8 bit, medians of "
        f"{len(report.rows[0].seconds)}, cold caches; a copy on the card moves "
        f"{known['Copy on the card, read + written']} "
        f"([all rows](resources/bench/README.md#beside-other-libraries))."
    )
    return f"{head}\n\n{by_filter(('ours', 'of the copy rate', *names), lines())}"


_SIDE = re.compile(r"(?:mask size )?(\d+)(?:×\d+)?")


def machines() -> str:
    """Return what measured what, and when."""
    lines = []
    for path in sorted(FOLDER.glob("*.json")):
        report = load(path)
        known = {name.casefold(): text for name, text in report.machine.items()}
        loads = [row.load for row in report.rows if row.load is not None]
        busy = f"{min(loads):.1f} to {max(loads):.1f}" if loads else ""
        where = known["gpu"] if path.stem.startswith("gpu-") else known["cpu"]
        details = [known[name] for name in ("driver", "compiler") if name in known]
        commit = known["kernelscope"].rpartition(" ")[2]
        lines.append(
            (
                f"[{path.name}]({path.name})",
                ", ".join((where, *details)),
                commit,
                known["date"],
                busy,
            )
        )
    return table(("file", "measured on", "commit", "date", "cores busy otherwise"), lines, text=4)


def gaps() -> str:
    """Return which rows were timed on a part, and which could not run, with the reasons."""
    lines = []
    for path in sorted(FOLDER.glob("*.json")):
        rows = load(path).rows
        parts = [row for row in rows if row.seconds and row.shape != row.asked]
        if parts:
            names = "; ".join(
                f"{row.label}, {row.size}, {row.series}: {'×'.join(map(str, reversed(row.shape)))}"
                for row in parts
            )
            lines.append(f"- `{path.stem}`: timed on a part, as all would have been slow: {names}.")
        lines += [f"- `{path.stem}`: {text}" for text in format_reasons(rows)]
    return "\n".join(lines)


# Conclusions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a source found, as a ratio: theirs, and ours.

    Attributes
    ----------
    equal : bool
        The source found that there is no difference.
    """

    source: str
    text: str
    theirs: float
    ours: float | None
    equal: bool = False

    def line(self) -> tuple[str, ...]:
        """Return the cells of a line, the verdict last."""
        author = SOURCES[self.source].author
        if self.ours is None:
            return author, self.text, f"{short(self.theirs)}×", "", "not measured"
        clear = self.ours >= _CLEAR
        holds = not clear and self.ours > 1 / _CLEAR if self.equal else clear
        return (
            author,
            self.text,
            f"{short(self.theirs)}×",
            f"{short(self.ours)}×",
            "holds" if holds else "no longer",
        )


def ratio(
    report: Report,
    slower: str,
    faster: str,
    *,
    label: str = "",
    size: str = "",
    waiting: bool = False,
) -> float | None:
    """Return how many times longer one series takes than another."""

    def time(series: str) -> float | None:
        for row in report.rows:
            alike = row.series == series and label in ("", row.label) and size in ("", row.size)
            if alike and row.seconds:
                return full_time(row, waiting)
        return None

    first, second = time(slower), time(faster)
    return None if first is None or second is None else first / second


def theirs(source: str, level: str, test: Callable[[Figure], bool] = lambda figure: True) -> float:
    """Return the middle of the first figure of a source for a level that passes a test."""
    for figure in all_figures():
        if (figure.source, figure.level) == (source, level) and test(figure):
            return (figure.low + figure.high) / 2
    raise LookupError(f"{source} {level}")


def claims() -> Iterator[Claim]:
    """Yield what can be put as a ratio of the sources' conclusions."""
    levels, tables = experiment("f-levels"), experiment("f-tables")

    def custom(side: int, size: int) -> Callable[[Figure], bool]:
        return lambda f: f.filter == "mask" and f.mask_side == side and f.shape == (size, size)

    def median(figure: Figure) -> bool:
        return figure.parameters.get("size") == "9" and figure.shape == _SIZE

    def time(figure: Figure) -> bool:
        return figure.quantity == "time"

    names = ("global", "constant", "shared")
    large = {level: theirs("F", level, custom(9, 4096)) for level in names}
    yield Claim(
        "F",
        "constant memory beats global memory (mask 9×9, 4096², kernel)",
        large["constant"] / large["global"],
        ratio(levels, "GPU global", "GPU constant"),
    )
    yield Claim(
        "F",
        "shared memory beats constant memory alone (mask 9×9, 4096², kernel)",
        large["shared"] / large["constant"],
        ratio(levels, "GPU constant", "GPU shared"),
    )
    mask, sizes = "Custom mask, 9×9", ("128×128", "4096×4096")
    small_, large_ = (
        ratio(tables, "CPU serial", "GPU shared", label=mask, size=size, waiting=True)
        for size in sizes
    )
    yield Claim(
        "F",
        "the larger the picture, the larger the gain (mask 9×9, 4096² over 128², end to end)",
        large["shared"] / theirs("F", "shared", custom(9, 128)),
        large_ / small_ if large_ and small_ else None,
    )
    medians = ratio(
        tables, "CPU serial", "GPU shared", label="Median, mask size 9", size=sizes[1], waiting=True
    )
    yield Claim(
        "F",
        "a mask gains more than a median (9×9, 4096², end to end)",
        large["shared"] / theirs("F", "shared", median),
        large_ / medians if large_ and medians else None,
    )
    ladder = experiment("m-ladder")
    for level, other, text, equal in (
        ("serial", "global", "the GPU beats serial code (mean 3×3, 256², kernel)", False),
        ("single-block", "global", "many blocks beat a single one (mean 3×3, 256², kernel)", False),
        ("global", "shared", "shared memory is no gain (mean 3×3, 256², kernel)", True),
        ("texture", "global", "textures are slower than that (mean 3×3, 256², kernel)", False),
    ):
        names = [f"{'CPU' if each == 'serial' else 'GPU'} {each}" for each in (level, other)]
        yield Claim(
            "M",
            text,
            theirs("M", level, time) / theirs("M", other, time),
            ratio(ladder, *names),
            equal,
        )
    whole = next(f for f in all_figures() if f.source == "N" and f.quantity == "speed-up")
    yield Claim(
        "N",
        f"a GPU beats serial code (whole image, {whole.shape[0]}², end to end)",
        whole.low,
        ratio(
            experiment("n-nlm"),
            "CPU serial",
            "GPU shared",
            label=f"Non-local means, patch size {whole.parameters['patch']}",
            size="×".join(map(str, whole.shape)),
            waiting=True,
        ),
    )
    volumes = experiment("v-three")
    label, size = "MRI NLM, dimensions 3d, patch radius 2, search radius 5", "189×157×130"

    def largest(figure: Figure) -> bool:
        wanted = {"dimensions": "3d", "patch_radius": "2", "search_radius": "5"}
        return (figure.parameters, figure.channels, figure.shape) == (wanted, 3, (130, 157, 189))

    serial = theirs("V", "serial", largest)
    single, double = (
        next((f.low + f.high) / 2 for f in all_figures() if f.variant == variant and largest(f))
        for variant in ("1 gpu", "2 gpus")
    )
    yield Claim(
        "V",
        "a GPU beats serial code (three components, 3D, v = 5, d = 2, end to end)",
        serial / single,
        ratio(volumes, "CPU serial", "GPU shared", label=label, size=size, waiting=True),
    )
    yield Claim("V", "two GPUs beat one (the same)", single / double, None)


def conclusions() -> str:
    return table(
        ("source", "conclusion", "theirs", "here", "verdict"), (c.line() for c in claims()), text=2
    )


def in_short() -> str:
    """Return what the experiments amount to, as a list; without what was not measured."""
    levels, tables = experiment("f-levels"), experiment("f-tables")
    nlm, volumes = experiment("n-nlm"), experiment("v-three")
    mask, large, small = "Custom mask, 9×9", "4096×4096", "128×128"
    patches, whole = "Non-local means, patch size 7", "256×256"
    heads = "MRI NLM, dimensions 3d, patch radius 1, search radius 3"
    beside_global = {
        name: ratio(levels, "GPU global", f"GPU {name}")
        for name in ("constant", "texture", "shared", "tuned")
    }
    tuned = next((row for row in levels.rows if row.series == "GPU tuned" and row.seconds), None)
    kernel = summarise(tuned.seconds).median / summarise(tuned.waits).median if tuned else None
    facts: tuple[tuple[str, Sequence[float | None]], ...] = (
        (
            "The kernel of a 9×9 mask on 4096² pixels, beside global memory: constant memory is "
            "{}× as fast, textures {}×, shared memory {}×, the level *tuned* {}×.",
            tuple(beside_global.values()),
        ),
        (
            "Of such a run at level *tuned* the kernel is {} %: the rest is the picture's way to "
            "the card and back. End to end *tuned* is {}× as fast as global memory.",
            (
                100 * kernel if kernel else None,
                ratio(levels, "GPU global", "GPU tuned", waiting=True),
            ),
        ),
        (
            "Beside all cores of the CPU, a 9×9 mask at level *tuned* is {}× as fast end to end on "
            "4096² pixels, and {}× on 128².",
            [
                ratio(tables, "CPU parallel", "GPU tuned", label=mask, size=size, waiting=True)
                for size in (large, small)
            ],
        ),
        (
            "On the same two cores, *parallel* is {}× as fast as *serial* there: a speed-up over "
            "serial code says little about the GPU.",
            [ratio(tables, "CPU serial", "CPU parallel", label=mask, size=large)],
        ),
        (
            "Non-local means over a whole picture of 256² pixels, patches of 7×7: shared memory is "
            "{}× as fast as global memory, *tuned* another {}×, and that {}× as fast as all cores.",
            [
                ratio(nlm, slower, faster, label=patches, size=whole)
                for slower, faster in (
                    ("GPU global", "GPU shared"),
                    ("GPU shared", "GPU tuned"),
                    ("CPU parallel", "GPU tuned"),
                )
            ],
        ),
        (
            "Three volumes of 189×157×130 voxels, d = 1, v = 3: shared memory is {}× as fast as "
            "global memory, *tuned* another {}×.",
            [
                ratio(volumes, slower, faster, label=heads, size="189×157×130")
                for slower, faster in (("GPU global", "GPU shared"), ("GPU shared", "GPU tuned"))
            ],
        ),
    )
    return "\n".join(
        "- " + text.format(*(short(value) for value in values if value is not None))
        for text, values in facts
        if None not in values
    )


# The pages -----------------------------------------------------------------------------


def blocks() -> dict[str, str]:
    """Return what stands between the marks of the page, by their names."""
    return {
        "in short": in_short(),
        "conclusions": conclusions(),
        "f-levels": by_level(experiment("f-levels")),
        "f-tables shared": gains(experiment("f-tables"), "GPU shared"),
        "f-tables tuned": gains(experiment("f-tables"), "GPU tuned"),
        "f-tables parallel": gains(experiment("f-tables"), "CPU parallel"),
        "m-ladder": by_level(experiment("m-ladder")),
        "n-nlm": times(experiment("n-nlm"), "psnr"),
        "nlm-4096": times(reports("gpu-nlm-4096")),
        "v-one": times(experiment("v-one")),
        "v-three": times(experiment("v-three")),
        "peers cpu": libraries(reports("cpu-peers")),
        "peers gpu": libraries(reports("gpu-peers-16384", "gpu-peers-16384-more")),
        "peers gpu sizes": libraries(reports("gpu-peers-sizes")),
        "machines": machines(),
        "gaps": gaps(),
    }


def readme_blocks() -> dict[str, str]:
    """Return what stands between the marks of the project's README."""
    return {
        "bench table": in_brief(load(FOLDER / "cpu-peers.json"), "OpenCV"),
        "gpu table": on_the_card(reports("gpu-peers-16384-more", "gpu-peers-16384")),
    }


def filled(text: str, contents: dict[str, str]) -> str:
    """Return a page with `contents` between its marks."""
    for name, content in contents.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        text, count = re.subn(pattern, lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text, flags=re.S)
        if count != 1:
            raise LookupError(f"The page has {count} places for {name}.")
    return text


@dataclass(frozen=True)
class Picture:
    """A plot of the page.

    Attributes
    ----------
    name : str
        Of its file, without the ending.
    """

    name: str
    report: Report
    plot: Plot
    choice: Choice
    waiting: bool = False


def pictures() -> Iterator[Picture]:
    """Yield the plots of the page."""
    levels, tables = experiment("f-levels"), experiment("f-tables")
    mask, large = "Custom mask, 9×9", "4096×4096"
    yield Picture("f-levels", levels, Plot.SPEED_UP, Choice(mask))
    many = replace(levels, rows=tuple(r for r in levels.rows if r.level != "single-block"))
    yield Picture("f-stages", many, Plot.STAGES, Choice(mask, large))
    for name, label in (("mask", mask), ("median", "Median, mask size 9"), ("sobel", "Sobel")):
        yield Picture(f"f-{name}", tables, Plot.SPEED_UP, Choice(label), waiting=True)
    yield Picture("m-ladder", experiment("m-ladder"), Plot.BARS, Choice("Mean, mask size 3"))
    nlm = Choice("Non-local means, patch size 7")
    yield Picture("n-nlm", experiment("n-nlm"), Plot.TIME, nlm, waiting=True)
    volume = Choice(None, "189×157×130")
    yield Picture("v-one", experiment("v-one"), Plot.BARS, volume, waiting=True)
    yield Picture("v-three", experiment("v-three"), Plot.BARS, volume, waiting=True)
    kernels = reports("gpu-f-levels", "gpu-f-tables")
    yield Picture("roofline", kernels, Plot.ROOFLINE, Choice(None, large))
    yield Picture("peers-cpu", reports("cpu-peers"), Plot.BARS, Choice(None, large))
    largest = Choice(None, "16384×16384")
    yield Picture(
        "peers-gpu", reports("gpu-peers-16384", "gpu-peers-16384-more"), Plot.BARS, largest
    )


def main() -> None:
    for path, contents in ((PAGE, blocks()), (README, readme_blocks())):
        path.write_text(filled(path.read_text(encoding="utf-8"), contents), encoding="utf-8")
    drawer = create_drawer()
    for each in pictures():
        shown = chart(each.plot, each.choice, each.report.rows, waiting=each.waiting)
        save_chart(shown, FOLDER / f"{each.name}.png")
    del drawer


if __name__ == "__main__":
    main()
