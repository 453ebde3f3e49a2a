"""Our kernels next to textbook kernels of the same memory, timed in turns."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from page_files import FOLDER, TEXTBOOKS
from page_tables import MISSING, table

from kernelscope.bench.statistics import (
    Ratio,
    ratio_of_times,
    short,
    summarise,
)


@dataclass(frozen=True)
class Pair:
    """A level of ours and the textbook kernel of the same memory, timed in turns.

    Attributes
    ----------
    ours, textbook : sequence of float
        Seconds of every repeat.
    """

    label: str
    size: str
    level: str
    ours: Sequence[float]
    textbook: Sequence[float]


@functools.cache
def textbook() -> tuple[tuple[str, ...], tuple[Pair, ...]]:
    """Return the GPUs that measured the textbook kernels, and the pairs; empty without a file."""
    known: dict[str, None] = {}
    pairs: list[Pair] = []
    for name in TEXTBOOKS:
        path = FOLDER / f"{name}.json"
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(content, dict) and content.get("card"):
                known.setdefault(content["card"])
            pairs += pairs_of(content)
    return tuple(known), tuple(pairs)


def pairs_of(content: Any) -> Iterator[Pair]:
    """Yield the pairs of a file of `bench_levels`, by its side and cases, or of `textbook_nlm`."""
    if isinstance(content, list):
        for row in content:
            yield Pair(row["label"], row["size"], row["level"], row["ours"], row["textbook"])
        return
    size = "×".join([str(content["side"])] * 2)
    for row in content["rows"]:
        family, _, side = row["case"].rpartition(" ")
        label = _CASES[family].format(side) if family in _CASES else row["case"]
        yield Pair(label, size, row["level"], row["times"], row["textbook_times"])


_CASES = {
    "mask": "Custom mask, {0}×{0}",
    "mean": "Mean, mask size {0}",
    "median": "Median, mask size {0}",
    "weighted mean": "Weighted mean, mask size {0}",
}
"""Labels of the bench for the cases of `bench_levels`."""


def textbook_ratio(label: str, size: str, slower: str, faster: str) -> Ratio | None:
    """Return the time of one textbook kernel divided by that of another."""
    found = {pair.level: pair for pair in textbook()[1] if (pair.label, pair.size) == (label, size)}
    if slower not in found or faster not in found:
        return None
    return ratio_of_times(found[slower].textbook, found[faster].textbook)


def beside_textbooks() -> str:
    """Return a line for each filter: ours / the textbook kernel, a column for each level."""
    cards, pairs = textbook()
    if not pairs:
        return MISSING
    levels = list(dict.fromkeys(pair.level for pair in pairs))
    found: dict[tuple[str, str], dict[str, Pair]] = {}
    for pair in pairs:
        found.setdefault((pair.label, pair.size), {})[pair.level] = pair

    def cell(pair: Pair | None) -> str:
        if pair is None:
            return ""
        quotient = ratio_of_times(pair.ours, pair.textbook)
        low, high = quotient.interval.low, quotient.interval.high
        median = 1e3 * summarise(pair.ours).median
        return f"{quotient.value:.2f} ({low:.2f} to {high:.2f}; {short(median)} ms)"

    lines = [
        (label, size, *(cell(by_level.get(level)) for level in levels))
        for (label, size), by_level in found.items()
    ]
    on_card = f"On {', '.join(cards)}:\n\n" if cards else ""
    return f"{on_card}{table(('filter', 'size', *levels), lines, text=2)}"
