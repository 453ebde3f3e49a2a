"""Conclusions of the sources as ratios: published, measured here, and a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from page_files import FOLDER, SEVERAL, SIZE, experiment
from page_tables import subjects, table
from page_textbooks import textbook_ratio

from kernelscope.bench.figures import (
    PSNR,
    SCALING,
    SOURCES,
    SPEED_UP,
    TIME,
    PublishedFigure,
    Scope,
    all_figures,
)
from kernelscope.bench.report import Report
from kernelscope.bench.statistics import (
    Interval,
    Ratio,
    find_baseline,
    ratio,
    short,
)

_CLEAR = 1.1
"""Smallest ratio at which one of two is called faster."""

_SAME_DECIBELS = 0.01
"""Levels whose PSNRs differ by less than this agree."""


class Verdict(StrEnum):
    """Verdict on a conclusion of a source, for one quantity."""

    HOLDS = "holds"
    NO_LONGER = "no longer"
    NOT_OURS = "not with our kernels"
    UNCLEAR = "unclear"
    NOT_HERE = "not here"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A finding of a source, as a ratio: published, and measured here.

    Attributes
    ----------
    theirs : str
        The published ratio, with its scope.
    runs, kernels : Ratio, optional
        Measured here, of whole runs and of kernels alone.
    textbook : Ratio, optional
        The same for textbook kernels.
    equal : bool
        The source found that there is no difference.
    missing : str
        Why it was not measured here.
    """

    source: str
    text: str
    theirs: str
    runs: Ratio | None = None
    kernels: Ratio | None = None
    textbook: Ratio | None = None
    equal: bool = False
    missing: str = "not measured"

    def line(self) -> tuple[str, ...]:
        """Return the cells of a line, the verdict last."""
        return (
            SOURCES[self.source].author,
            self.text,
            self.theirs,
            amount(self.runs),
            amount(self.kernels),
            amount(self.textbook),
            self.verdict() or self.missing,
        )

    def verdict(self) -> str:
        """Return the verdict for each quantity, with its confidence."""
        said = []
        if self.kernels is not None:
            said.append(("kernels", self.of_kernels(self.kernels), self.kernels))
        if self.runs is not None:
            said.append(("whole runs", self.of_runs(self.runs), self.runs))
        texts = [f"{found} ({sure(of.interval)})" for _, found, of in said]
        if len(said) < 2:
            return "".join(texts)
        return "; ".join(f"{what}: {text}" for (what, *_), text in zip(said, texts, strict=True))

    def of_kernels(self, found: Ratio) -> Verdict:
        """Judge by kernels: “no longer” only if the textbook kernels agree."""
        judged = judge(found, self.equal)
        if judged is not Verdict.NO_LONGER:
            return judged
        if self.textbook is None:
            return Verdict.NOT_HERE
        agrees = judge(self.textbook, self.equal) is Verdict.NO_LONGER
        return Verdict.NO_LONGER if agrees else Verdict.NOT_OURS

    def of_runs(self, found: Ratio) -> Verdict:
        """Judge by whole runs, most of which may be transfers."""
        judged = judge(found, self.equal)
        return Verdict.NOT_HERE if judged is Verdict.NO_LONGER else judged


def judge(found: Ratio, equal: bool) -> Verdict:
    """Return whether one is faster, or none is, anywhere in the interval of the ratio."""
    low, high = found.interval.low, found.interval.high
    if equal:
        if low > 1 / _CLEAR and high < _CLEAR:
            return Verdict.HOLDS
        return Verdict.NO_LONGER if low >= _CLEAR or high <= 1 / _CLEAR else Verdict.UNCLEAR
    if low >= _CLEAR:
        return Verdict.HOLDS
    return Verdict.NO_LONGER if high < _CLEAR else Verdict.UNCLEAR


def sure(interval: Interval) -> str:
    """Return ``99 % sure``; medians without stored repeats have no confidence."""
    if interval.low == interval.high and not interval.confidence:
        return "single figures"
    return interval.describe().rpartition(", ")[2]


def amount(found: Ratio | None) -> str:
    """Return ``1.68× (1.66 to 1.7)``, with ≈ if a part was timed."""
    if found is None:
        return ""
    about = "≈ " if found.scaled else ""
    between = f"{short(found.interval.low)} to {short(found.interval.high)}"
    return f"{about}{short(found.value)}× ({between})"


def between(
    report: Report,
    slower: str,
    faster: str,
    *,
    label: str = "",
    size: str = "",
    waiting: bool = False,
) -> Ratio | None:
    """Return the time of one series divided by that of another, about the same subject."""
    for mine in report.rows:
        if mine.series == slower and label in ("", mine.label) and size in ("", mine.size):
            other = find_baseline(report.rows, mine, faster) if mine.seconds else None
            if other is not None:
                return ratio(mine, other, waiting)
    return None


def theirs(
    source: str, level: str, test: Callable[[PublishedFigure], bool] = lambda figure: True
) -> float:
    """Return the middle of the first figure of a source for a level that passes a test."""
    for figure in all_figures():
        if (figure.source, figure.level) == (source, level) and test(figure):
            return figure.middle
    raise LookupError(f"{source} {level}")


def claims() -> Iterator[Claim]:
    """Yield the sources' conclusions that can be stated as a ratio."""
    yield from claims_of_f()
    yield from claims_of_m()
    yield from claims_of_n()
    yield from claims_of_v()


def claims_of_f() -> Iterator[Claim]:
    levels, tables = experiment("f-levels"), experiment("f-tables")
    mask, sizes = "Custom mask, 9×9", ("128×128", "4096×4096")

    def custom(side: int, size: int) -> Callable[[PublishedFigure], bool]:
        return lambda f: f.filter == "mask" and f.mask_side == side and f.shape == (size, size)

    def median(figure: PublishedFigure) -> bool:
        return figure.parameters.get("size") == "9" and figure.shape == SIZE

    large = {
        level: theirs("F", level, custom(9, 4096)) for level in ("global", "constant", "shared")
    }
    for slower, faster, text in (
        ("global", "constant", "constant memory beats global memory (mask 9×9, 4096²)"),
        ("constant", "shared", "shared memory beats constant memory alone (mask 9×9, 4096²)"),
    ):
        names = f"GPU {slower}", f"GPU {faster}"
        yield Claim(
            source="F",
            text=text,
            theirs=f"{short(large[faster] / large[slower])}×, whole runs",
            runs=between(levels, *names, waiting=True),
            kernels=between(levels, *names),
            textbook=textbook_ratio(mask, sizes[1], slower, faster),
        )
    small_gain, large_gain = (
        between(tables, "CPU serial", "GPU shared", label=mask, size=size, waiting=True)
        for size in sizes
    )
    growth = large["shared"] / theirs("F", "shared", custom(9, 128))
    yield Claim(
        source="F",
        text="the larger the picture, the larger the gain (mask 9×9, 4096² over 128²)",
        theirs=f"{short(growth)}×, whole runs",
        runs=large_gain.over(small_gain) if large_gain and small_gain else None,
    )
    label = "Median, mask size 9"
    medians = between(tables, "CPU serial", "GPU shared", label=label, size=sizes[1], waiting=True)
    yield Claim(
        source="F",
        text="a mask gains more than a median (9×9, 4096²)",
        theirs=f"{short(large['shared'] / theirs('F', 'shared', median))}×, whole runs",
        runs=large_gain.over(medians) if large_gain and medians else None,
    )
    yield Claim(
        source="F",
        text="a median by selection beats one by bubble sort (9×9, 1024², here serial code)",
        theirs="4× (chapter 6), by what device not stated",
        runs=between(experiment("f-selection"), "CPU serial-bubble", "CPU serial", label=label),
    )


def claims_of_m() -> Iterator[Claim]:
    ladder = experiment("m-ladder")
    for level, other, text, equal in (
        ("serial", "global", "the GPU beats serial code (mean 3×3, 256²)", False),
        ("single-block", "global", "many blocks beat a single one (mean 3×3, 256²)", False),
        ("global", "shared", "shared memory is no gain (mean 3×3, 256²)", True),
        ("texture", "global", "textures are slower than global memory (mean 3×3, 256²)", False),
    ):
        names = [f"{'CPU' if each == 'serial' else 'GPU'} {each}" for each in (level, other)]
        quotient = theirs("M", level) / theirs("M", other)
        yield Claim(
            source="M",
            text=text,
            theirs=f"{short(quotient)}×, {Scope.NOT_STATED}",
            runs=between(ladder, *names, waiting=True),
            kernels=between(ladder, *names),
            textbook=textbook_ratio("Mean, mask size 3", "256×256", level, other),
            equal=equal,
        )


def claims_of_n() -> Iterator[Claim]:
    whole = next(f for f in all_figures() if f.source == "N" and f.quantity == SPEED_UP)
    nlm = experiment("n-nlm")
    yield Claim(
        source="N",
        text=f"a GPU beats serial code (whole image, {whole.shape[0]}²)",
        theirs=f"{short(whole.low)}×, whole runs",
        runs=between(
            nlm,
            "CPU serial",
            "GPU shared",
            label=f"Non-local means, patch size {whole.parameters['patch']}",
            size="×".join(map(str, whole.shape)),
            waiting=True,
        ),
    )
    inside, handed = (
        next(f for f in all_figures() if f.source == "N" and (f.quantity, f.level) == (TIME, level))
        for level in ("shared", "host-partitions")
    )
    names = "GPU host-partitions", "GPU shared"
    size = "×".join(map(str, inside.shape))
    label = f"Non-local means, patch size {inside.parameters['patch']}"
    yield Claim(
        source="N",
        text="walking the partitions in the kernel beats handing them over by the host "
        f"(patch {inside.parameters['patch']}, {inside.shape[0]}²)",
        theirs=f"faster on a GTX 480, in a chart; {short(handed.low / inside.low)}× on a GT 640M, "
        f"{Scope.NOT_STATED}",
        runs=between(nlm, *names, label=label, size=size, waiting=True),
        kernels=between(nlm, *names, label=label, size=size),
    )


def claims_of_v() -> Iterator[Claim]:
    def largest(figure: PublishedFigure) -> bool:
        wanted = {"dimensions": "3d", "patch_radius": "2", "search_radius": "5"}
        return (figure.parameters, figure.channels, figure.shape, figure.quantity) == (
            wanted,
            3,
            (130, 157, 189),
            TIME,
        )

    serial = theirs("V", "serial", largest)
    single, double = (
        theirs("V", "shared", lambda f, n=gpus: largest(f) and f.gpus == n)  # type: ignore[misc]
        for gpus in (1, 2)
    )
    label, size = "MRI NLM, dimensions 3d, patch radius 2, search radius 5", "189×157×130"
    three = experiment("v-three")
    yield Claim(
        source="V",
        text="a GPU beats serial code (three components, 3D, v = 5, d = 2, 189×157×130)",
        theirs=f"{short(serial / single)}×, whole runs",
        runs=between(three, "CPU serial", "GPU shared", label=label, size=size, waiting=True),
    )
    for figure in all_figures():
        if figure.average and figure.quantity == SPEED_UP:
            yield average(figure)
    report = several_gpus()
    names = "GPU shared", "2 GPUs shared"
    found = between(three, *names, label=label, size=size, waiting=True)
    yield Claim(
        source="V",
        text="two GPUs beat one (three components, 3D, v = 5, d = 2, 189×157×130)",
        theirs=f"{short(single / double)}×, whole runs",
        runs=found,
        missing="not measured: one GPU here",
    )
    factor = next(f for f in all_figures() if f.average and f.quantity == SCALING)
    yield Claim(
        source="V",
        text="two GPUs beat one (average, one component)",
        theirs=f"{short(factor.low)}×, whole runs",
        runs=mean_ratio(experiment("v-one"), *names, shape=factor.shape),
        missing="not measured: one GPU here",
    )
    cubes = experiment("v-sizes")
    sides = {
        f.gpus: f.low for f in all_figures() if f.shape == (512, 512, 512) and f.level == "shared"
    }
    found = between(cubes, *names, size="512×512×512", waiting=True)
    where = "level shared" if found else "level tuned, two H200"
    yield Claim(
        source="V",
        text=f"two GPUs beat one (table 4-5, 512³, v = 5, d = 1; here {where})",
        theirs=f"{short(sides[1] / sides[2])}×, whole runs",
        runs=found or report,
        missing="not measured: one GPU here",
    )


def average(figure: PublishedFigure) -> Claim:
    """Return the claim of an average of speed-ups over the rows of a table."""
    volumes = experiment("v-one" if figure.channels == 1 else "v-three")
    by = "GPU shared" if figure.gpus == 1 else f"{figure.gpus} GPUs shared"
    size = "×".join(map(str, reversed(figure.shape)))
    count = "one GPU beats" if figure.gpus == 1 else "two GPUs beat"
    components = "one component" if figure.channels == 1 else "three components"
    return Claim(
        source="V",
        text=f"{count} serial code (average of all radii, {components}, {size})",
        theirs=f"{short(figure.low)}×, whole runs",
        runs=mean_ratio(volumes, "CPU serial", by, shape=figure.shape),
        missing="not measured: one GPU here" if figure.gpus > 1 else "not measured",
    )


def mean_ratio(report: Report, slower: str, faster: str, *, shape: tuple[int, ...]) -> Ratio | None:
    """Return the mean of the ratios of whole runs over all rows about a shape."""
    found = [
        ratio(row, other, waiting=True)
        for row in report.rows
        if row.series == slower and row.seconds and row.asked == shape
        if (other := find_baseline(report.rows, row, faster)) is not None
    ]
    if not found:
        return None
    missed = sum(1 - each.interval.confidence for each in found)
    return Ratio(
        sum(each.value for each in found) / len(found),
        Interval(
            sum(each.interval.low for each in found) / len(found),
            sum(each.interval.high for each in found) / len(found),
            max(0.0, 1 - missed),
        ),
        any(each.scaled for each in found),
    )


def several_gpus() -> Ratio | None:
    """Return the speed-up of two GPUs over one, from the run that is stored as text."""
    path = FOLDER / f"{SEVERAL}.txt"
    if not path.exists():
        return None
    totals = dict(re.findall(r"512\^3 (\d) GPU\(s\):.*TOTAL ([\d.]+)", path.read_text("utf-8")))
    found = float(totals["1"]) / float(totals["2"])
    return Ratio(found, Interval(found, found, 0.0))


def agreement() -> tuple[str, ...]:
    """Return the table line for source N's conclusion that transfers cost accuracy."""
    variants = [
        f.low
        for f in all_figures()
        if f.source == "N" and f.quantity == PSNR and "lena" in f.variant and f.shape == (256, 256)
        if f.parameters["patch"] == "7"
    ]
    spreads = []
    for rows in subjects(experiment("n-nlm").rows):
        found = [row.psnr for row in rows if row.psnr is not None and not row.is_part]
        if len(found) > 1:
            spreads.append(max(found) - min(found))
    most = max(spreads, default=None)
    verdict = "not measured"
    if most is not None:
        verdict = "refuted: all levels agree" if most < _SAME_DECIBELS else "levels differ"
    here = "" if most is None else f"at most {most:.4f} dB in {len(spreads)} pictures"
    return (
        SOURCES["N"].author,
        "transfers cost accuracy: variants differ in PSNR (Lena, 256², patch 7)",
        f"{max(variants) - min(variants):.2f} dB",
        here,
        "",
        "",
        verdict,
    )


def conclusions() -> str:
    headings = ("source", "conclusion", "theirs", "here, whole runs", "here, kernels")
    lines = [claim.line() for claim in claims()]
    place = max(n for n, line in enumerate(lines) if line[0] == SOURCES["N"].author) + 1
    lines.insert(place, agreement())
    return table((*headings, "textbook kernels", "verdict"), lines, text=2)
