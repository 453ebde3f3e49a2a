"""Writes limits.md: each kernel and each path beside its goal and its floor, from the files.

``python resources/bench/limits_page.py`` reads what ``limits.py`` measured, before and after. Goals
and floors are data here: those of the project's study of speed, in milliseconds on an H100. A floor
is the time of a copy of the same bytes, measured in the same run, or, where computing takes longer,
the fewest operations of any way that the study knew, over the card's rate of them.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page_tables import table

FOLDER = Path(__file__).parent
PAGE = FOLDER / "limits.md"
BEFORE, AFTER = "gpu-limits-before", "gpu-limits"
WAITING = ("gpu-waiting", "gpus-waiting", "cpu-waiting")
SEVERAL = "gpus-shared"
TURNS_BEFORE, TURNS = "cpu-turns-before", "cpu-turns"

RENDERING = "rendering-2026-11-22.txt"
_RENDERED = re.compile(r"(\w.+?) {2,}(?:fitted|\d+ %) +[\d.]+ +[\d.]+ +([\d.]+)")
"""A row of that file: the type of picture, and the sum for a zoom."""

TIMED = ("kernels", "apart")
"""Sections of kernels; the second has those that were timed apart from the others."""

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Goal:
    """The goal of a row, in milliseconds; without `floor`, the floor is a copy, where one counts.

    `study` is the time when the goals were set, on an H100 or where it says so on an H200.
    """

    name: str
    study: str
    goal: float | None = None
    floor: float | None = None


KERNELS = (
    Goal("mean 3", "0.216", 0.205),
    Goal("mean 31", "0.230", 0.205),
    Goal("mean 63", "0.272", 0.235),
    Goal("mean 99", "0.300", 0.25),
    Goal("Sobel", "0.257", 0.205),
    Goal("Laplace", "0.256", 0.205),
    Goal("mask 3", "0.331", 0.21),
    Goal("mask 5", "0.331", 0.21),
    Goal("mask 7", "0.487", 0.215),
    Goal("mask 9", "0.707", 0.225),
    Goal("mask 15", "1.55 (H200)", 0.27),
    Goal("mask 5, divided by its sum", "", 0.21),
    Goal("mask 9, divided by its sum", "", 0.225),
    Goal("weighted mean 3", "0.335", 0.21),
    Goal("weighted mean 5", "0.378", 0.22),
    Goal("weighted mean 7", "0.498", 0.225),
    Goal("weighted mean 9", "0.567", 0.23),
    Goal("weighted mean 15", "2.77 (H200)", 0.5),
    Goal("median 3", "0.312", 0.23),
    Goal("median 5", "0.68", 0.47, 0.36),
    Goal("median 7", "1.39", 0.95, 0.72),
    Goal("median 9", "2.29", 1.5, 1.15),
    Goal("median 11", "10.5 (H200)", 2.3, 1.7),
    Goal("median 13", ""),
    Goal("median 15", "13.4 (H200)", 4, 2.7),
    Goal("median 21", "17.9 (H200)", 8, 4.7),
    Goal("median 31", "25.7 (H200)", 8, 3),
    Goal("median 15, photographs", ""),
    Goal("median 31, photographs", ""),
    Goal("rotating mask", "1.14 (scaled)", 0.6, 0.30),
    Goal("greyscale of RGB", "0.55 (scaled)", 0.41),
    Goal("NLM 4096², radius 10, patch 7", "7.1", 3.5, 2.0),
    Goal("NLM 4096², uniform patch", "5.1", 3.5, 2.0),
    Goal("NLM 512², whole image", "55.7", 28, 18.5),
    Goal("MRI NLM, 1 component", "4.37", 3.3, 1.7),
    Goal("MRI NLM, 3 components", "11.1", 9, 3.5),
)


def short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def read(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def rows_of(report: Mapping[str, Any], *sections: str) -> dict[str, Mapping[str, Any]]:
    """Return the rows of some sections by name."""
    parts = [report[section]["rows"] for section in sections if section in report]
    return {row["name"]: row for rows in parts for row in rows}


def comparison(goals: Iterable[Goal], before: Rows, after: Rows) -> str:
    """Return the table of rows that have a goal."""
    lines: list[tuple[str, ...]] = []
    for goal in goals:
        row = after.get(goal.name)
        if row is None:
            lines.append((goal.name, goal.study, "", "not timed", short(goal.goal), "", "", ""))
            continue
        copy = row.get("floor ms")
        floor = max((value for value in (goal.floor, copy) if value is not None), default=None)
        now = row["ms"]
        earlier = before.get(goal.name, {}).get("ms")
        lines.append(
            (
                goal.name,
                goal.study,
                short(earlier),
                short(now),
                short(goal.goal),
                "" if goal.goal is None else "yes" if now <= goal.goal else "no",
                short(floor),
                "" if floor is None else f"{now / floor:.2f}",
            )
        )
    headings = ("", "study", "before", "now", "goal", "reached", "floor", "now / floor")
    return table(headings, lines)


def types(before: Rows, after: Rows) -> str:
    """Return kernels of 16 bits and floats before and after, on 8192² pixels."""
    names = dict.fromkeys(name.rpartition(", ")[0] for name in after)
    lines = []
    for name in names:
        cells = [name]
        for dtype in ("uint16", "float32"):
            key = f"{name}, {dtype}"
            earlier, now = before.get(key, {}), after.get(key, {})
            copy = now.get("floor ms")
            cells += [short(earlier.get("ms")), short(now.get("ms"))]
            cells.append(f"{now['ms'] / copy:.2f}" if copy else "")
        lines.append(cells)
    if not lines:
        return ""
    headings = ["", *("uint16 before", "now", "/ copy"), *("float32 before", "now", "/ copy")]
    note = "8192×8192 pixels; *copy* is the time of a copy of the same bytes.\n\n"
    return note + table(headings, lines)


def waiting(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return what a person waits for; goals, floors and figures before are in the file."""
    lines = [
        (
            row["name"],
            short(row.get("before")),
            short(row["ms"]),
            short(row.get("goal")),
            "" if "goal" not in row else "yes" if row["met"] else "no",
            short(row.get("floor")),
            f"{row['ratio_to_floor']:.2f}" if "ratio_to_floor" in row else "",
        )
        for row in rows
    ]
    return table(("", "study", "now", "goal", "reached", "floor", "now / floor"), lines)


def several(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the times of volumes on one GPU and on two."""
    named = {row["name"]: row for row in rows}
    lines = []
    for name, one in named.items():
        two = named.get(name.replace("1 GPU", "2 GPUs"), one)
        if two is not one:
            pairs = [(one[key], two[key]) for key in ("ms", "kernels")]
            cells = [(short(a), short(b), f"{a / b:.2f}") for a, b in pairs]
            lines.append((name.removesuffix(", 1 GPU"), *cells[0], *cells[1]))
    heads = ("1 GPU", "2 GPUs", "ratio")
    return table(("", *heads, *(f"kernels, {each}" for each in heads)), lines)


def rendering() -> str:
    """Return processor ms until a picture is painted: the worst zoom of each type."""
    worst: dict[str, list[float]] = {}
    column = 0
    for line in (FOLDER / RENDERING).read_text(encoding="utf-8").splitlines():
        column += line.startswith("After")
        if found := _RENDERED.match(line):
            times = worst.setdefault(found[1], [0.0, 0.0])
            times[column] = max(times[column], float(found[2]))
    lines = []
    for name, (before, after) in worst.items():
        goal = 8 if name.endswith("8 bit") else 20
        reached = "yes" if after <= goal else "no"
        lines.append((name, short(before), short(after), short(goal), reached))
    return table(("", "before", "now", "goal", "reached"), lines)


def turns(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return milliseconds of level *parallel* and of OpenCV in the same run."""

    def middle(row: Mapping[str, Any] | None, name: str) -> float | None:
        times = row["seconds"].get(name) if row else None
        return 1e3 * statistics.median(times["clock"]) if times else None

    earlier = {row["case"]: row for row in before.get("rows", ())}
    lines = []
    for row in after.get("rows", ()):
        ours, theirs = middle(row, "parallel"), middle(row, "OpenCV")
        old = middle(earlier.get(row["case"]), "parallel")
        ratio = f"{ours / theirs:.2f}" if ours and theirs else ""
        lines.append((row["case"], short(old), short(ours), short(theirs), ratio))
    return table(("", "before", "now", "OpenCV", "now / OpenCV"), lines)


def source(report: Mapping[str, Any]) -> str:
    """Return on what, when and of which commits a file was measured."""
    commits = sorted({part["commit"] for part in report.values() if "commit" in part})
    return f"{report.get('machine', {}).get('name', 'unknown')}, commit {', '.join(commits)}"


TEXT = """# To the limit

How far each kernel and each path is from its goal and from its floor. Milliseconds, medians after a
warm-up; kernels by events, on grey pictures of 16384×16384 bytes unless a row says otherwise.
*Study* is the time when the goals were set. *Floor* is the copy of the same bytes on the card in
the same run, or, where computing takes longer, the fewest operations of any way that the study
knew, at the card's rate of them. Made by `limits_page.py` from the files of `limits.py`.

Before: {before}, with whatever the last run had left in the cache of the card. Now: {after}, with a
cache that was emptied.

## Kernels

{kernels}

## 16 bits and floats

{types}

## What a person waits for

On the card {waiting_machine}: upload, kernel and download of a new source each time. First runs are
those of a new process with empty caches, on two cores, after another filter ran; those of the CPU
are on {first_machine}. Code is *loaded* where it comes with the package. Hosts of the same card
differ: five of them took 0.08 to 0.17 ms for 128² pixels on 26 November 2026.

{waiting}

Volumes of MRI NLM, before and after: [times by stages](volumes-2026-11-26.txt).

### Volumes on several GPUs

On {several}:
floats from host array to host array, by the clock, and the kernels of the busiest card, in
milliseconds. 512³ is MRI NLM. Volumes that two GPUs would take no shorter stay on one.

{shared}

4096² pixels painted into 900×900 on two cores, the worst of five zooms in milliseconds of the
processor; no floor is known ([all zooms]({rendering_file})):

{rendering}

## Level parallel beside OpenCV

In turns on {turns_machine}, 4096×4096 noise of 8 bits, medians of the clock.

{turns}
"""


def page() -> str:
    """Return the text of the page, from the files."""
    before, after, turned = read(BEFORE), read(AFTER), read(TURNS)
    waits, shared = [read(name) for name in WAITING], read(SEVERAL)
    return TEXT.format(
        before=source(before),
        after=source(after),
        kernels=comparison(KERNELS, rows_of(before, *TIMED), rows_of(after, *TIMED)),
        types=types(rows_of(before, "types"), rows_of(after, "types")),
        waiting_machine=waits[0].get("machine", {}).get("GPU", ""),
        first_machine=waits[-1].get("machine", {}).get("CPU", ""),
        waiting=waiting(row for found in waits for row in found.get("rows", ())),
        several=", ".join(shared["machine"][each] for each in ("GPU", "Kernelscope", "Date")),
        shared=several(shared["rows"]),
        rendering=rendering(),
        rendering_file=RENDERING,
        turns_machine=turned.get("machine", {}).get("CPU", ""),
        turns=turns(read(TURNS_BEFORE), turned),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
