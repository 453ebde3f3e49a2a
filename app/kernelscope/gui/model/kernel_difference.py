"""The differences between the kernels of two levels of a filter, line by line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from kernelscope.backends.cuda.inspection import PlannedLaunch
from kernelscope.backends.cuda.sources import SourceFile, find_kernel
from kernelscope.engine.backend import Fact
from kernelscope.schema.launch import Launch

SAME, GONE, NEW, HEADING = "same", "gone", "new", "heading"
"""The kinds of lines: in both, in the first only, in the second only, in neither."""

_SIGNS = {SAME: " ", GONE: "-", NEW: "+", HEADING: " "}
_TOKEN = re.compile(r"\w+|\W")

_ALIKE = 0.4  # two lines that are at least this similar have their differing words marked


@dataclass(frozen=True)
class DifferenceLine:
    """A line of a difference.

    `spans`: where in the text the words are that the other line lacks.
    """

    kind: str  # see `SAME` and the others
    text: str  # without the sign
    spans: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return f"{_SIGNS[self.kind]} {self.text}".rstrip()


def difference(
    files: Sequence[SourceFile],
    first: Sequence[tuple[PlannedLaunch, Sequence[Fact]]],
    second: Sequence[tuple[PlannedLaunch, Sequence[Fact]]],
) -> list[DifferenceLine]:
    """Return how the launches of two levels differ, and then their kernels' source.

    `files`: in which the kernels are. `first` and `second`: every launch of a level, with the facts
    about it.
    """
    lines: list[DifferenceLine] = []
    pairs = list(itertools.zip_longest((facts for _, facts in first), (f for _, f in second)))
    for number, (before, after) in enumerate(pairs, start=1):
        which = f" {number} of {len(pairs)}" if len(pairs) > 1 else ""
        lines.append(DifferenceLine(HEADING, f"// Launch{which}"))
        lines += _of_facts(before or (), after or ())
    lines.append(DifferenceLine(HEADING, "// Kernel" if len(pairs) == 1 else "// Kernels"))
    sources = [
        _joined(_function(files, plan.launch) for plan, _ in side) for side in (first, second)
    ]
    return [*lines, *_of_texts(*sources)]


def text_difference(before: str, after: str) -> list[DifferenceLine]:
    return list(_of_texts(before.split("\n"), after.split("\n")))


def _joined(functions: Iterator[list[str]]) -> list[str]:
    lines: list[str] = []
    for function in functions:
        lines += ["", *function] if lines else function
    return lines


def _function(files: Sequence[SourceFile], launch: Launch) -> list[str]:
    place = find_kernel(files, launch.kernel, launch.defines)
    if place is None:
        return [f"// {launch.kernel} is made by a macro"]
    (text,) = (file.text for file in files if file.name == place.file)
    return text.split("\n")[place.start : place.stop]


def _of_facts(before: Sequence[Fact], after: Sequence[Fact]) -> Iterator[DifferenceLine]:
    """Yield facts of both, in the order of the first; those of one name follow each other."""
    first, second = ({fact.name: _said(fact) for fact in facts} for facts in (before, after))
    width = max(map(len, (*first, *second)), default=0)
    for name in dict.fromkeys((*first, *second)):
        values = first.get(name), second.get(name)
        if values[0] == values[1]:
            yield DifferenceLine(SAME, f"//   {name:{width}}  {values[0]}")
            continue
        for kind, value in zip((GONE, NEW), values, strict=True):
            if value is not None:
                yield DifferenceLine(kind, f"//   {name:{width}}  {value}")


def _said(fact: Fact) -> str:
    return f"{fact.value} {fact.unit}".rstrip()


def _of_texts(before: list[str], after: list[str]) -> Iterator[DifferenceLine]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield from (DifferenceLine(SAME, text) for text in before[i:j])
            continue
        gone, new = before[i:j], after[k:m]
        spans = [_spans(a, b) for a, b in zip(gone, new, strict=False)]
        rest = [((), ())] * (max(len(gone), len(new)) - len(spans))
        paired: list[tuple[_Spans, _Spans]] = [*spans, *rest]
        yield from (
            DifferenceLine(GONE, text, own) for text, (own, _) in zip(gone, paired, strict=False)
        )
        yield from (
            DifferenceLine(NEW, text, own) for text, (_, own) in zip(new, paired, strict=False)
        )


_Spans = tuple[tuple[int, int], ...]


def _spans(before: str, after: str) -> tuple[_Spans, _Spans]:
    words, others = _TOKEN.findall(before), _TOKEN.findall(after)
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return (), ()
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    return (
        tuple(_span(words, i, j) for _, i, j, _, _ in changes if j > i),
        tuple(_span(others, k, m) for _, _, _, k, m in changes if m > k),
    )


def _span(words: Sequence[str], start: int, stop: int) -> tuple[int, int]:
    before = sum(map(len, words[:start]))
    return before, before + sum(map(len, words[start:stop]))
