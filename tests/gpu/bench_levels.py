"""Time the levels beside textbook kernels: ``python -m tests.gpu.bench_levels [NAME ...]``.

For every case the kernels of all levels and those of the textbook take turns in one run, on copies
of a picture that are not in the cache; short launches are timed in batches. Exit status 1 if a
level takes more than `BAR` times as long as the textbook's kernel, or results differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from tests.gpu.contenders import Card, Pictures, compile_all, measure
from tests.gpu.textbook import Case, all_cases, differing, picture

BAR = 1.15


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of cases; all by default")
    parser.add_argument("--side", type=int, default=4096, help="of the picture, in pixels")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, help="where to write every time, as JSON")
    options = parser.parse_args(arguments)
    cases = [
        case
        for case in all_cases()
        if not options.names or any(name in case.name for name in options.names)
    ]
    shape = (options.side, options.side, 1)
    with Card() as card:
        compile_all(job for case in cases for job in case.jobs(card.architecture, shape))
        print(f"{card.name}, {options.side}x{options.side}, medians of {options.repeats}")
        rows = [row for case in cases for row in compare(card, case, options.side, options.repeats)]
        name = card.name
    if options.out:
        report = {"card": name, "side": options.side, "bar": BAR, "rows": rows}
        options.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    over = [row for row in rows if row["ratio"] > BAR]
    wrong = [row for row in rows if row["differing"]]
    print(f"{len(rows)} levels: {len(over)} above {BAR}, {len(wrong)} with other results")
    return 1 if over or wrong else 0


def compare(card: Card, case: Case, side: int, repeats: int) -> list[dict[str, Any]]:
    """Return a row for each level of a case, and print it."""
    wrong = differing(card, case, min(side, 300))
    pictures = Pictures(card, picture(side), (side, side, 1))
    rows = []
    try:
        pairs = case.pairs(pictures)
        contenders = list({each.name: each for pair in pairs.values() for each in pair}.values())
        times = measure(card, contenders, pictures.count, repeats)
        for level, (own, plain) in pairs.items():
            ours, textbook = (statistics.median(times[name]) for name in (own.name, plain.name))
            ratio = ours / textbook
            row = {
                "case": case.name,
                "level": level,
                "ours": ours,
                "textbook": textbook,
                "ratio": ratio,
                "differing": wrong[level],
                "times": times[own.name],
                "textbook_times": times[plain.name],
            }
            rows.append(row)
            mark = " <-- other results" if wrong[level] else " <--" if ratio > BAR else ""
            print(
                f"{case.name:16} {level:20} {ours * 1e3:9.4f} ms"
                f"  textbook {textbook * 1e3:9.4f}  ratio {row['ratio']:5.2f}{mark}",
                flush=True,
            )
    finally:
        pictures.free()
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
