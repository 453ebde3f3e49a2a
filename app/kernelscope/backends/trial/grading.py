"""The grade of an edited kernel: right in how many cases, and with how many reads."""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.backends.trial.comparison import Comparison, compare
from kernelscope.backends.trial.parent import TrialOutcome

EMULATED = "the emulated GPU"


@dataclass(frozen=True, eq=False)
class Grade:
    """The comparison of a kernel with the program's own in each case."""

    comparisons: tuple[Comparison, ...]
    loads: float = 0.0
    """Cells read from global memory for each pixel of the largest case."""
    goal: float | None = None
    """Most of those that are allowed."""
    titles: tuple[str, ...] = ()
    """Of the cases; there may be none, or empty ones."""
    memory: str = ""
    """What is wrong with its accesses to memory, in a sentence; empty if nothing was found."""
    device: str = ""
    """The card that it ran on; empty for the emulated GPU."""

    @property
    def right(self) -> int:
        """In how many cases every pixel is right."""
        return sum(not each.count for each in self.comparisons)

    @property
    def worst(self) -> Comparison:
        """The case to show: the first one with a wrong pixel, or the first one of all.

        Cases without titles differ in size alone: of those, the largest one with a wrong pixel.
        """
        wrong = [each for each in self.comparisons if each.count]
        if not any(self.titles):
            wrong.sort(key=lambda each: each.wrong.size, reverse=True)
        return wrong[0] if wrong else self.comparisons[0]

    @property
    def worst_case(self) -> int:
        """The number of that case, from 0 on."""
        return next(n for n, each in enumerate(self.comparisons) if each is self.worst)

    @property
    def reached(self) -> bool:
        """Whether it reads no more than the goal allows."""
        return self.goal is None or self.loads <= self.goal

    @property
    def passed(self) -> bool:
        """Whether all is right, the memory is used well, and the goal is reached."""
        return self.right == len(self.comparisons) and self.reached and not self.memory

    def __str__(self) -> str:
        return f"{self._results()} {self.memory}".rstrip()

    def _results(self) -> str:
        worst, cases = self.worst, len(self.comparisons)
        height, width = worst.wrong.shape
        if self.right < cases:
            where = f"{worst.count:,} of {width} × {height} pixels"
            first = f"{where} differ from the program's own kernel"
            if cases == 1:
                return f"Wrong: {first}, on {self.device or EMULATED}."
            pairs = zip(self.titles, self.comparisons, strict=True) if self.titles else ()
            title = next((title for title, each in pairs if each.count), "")
            if title:
                count = f"{worst.count:,} of {worst.wrong.size:,} pixels"
                return f"Right in {self.right} of {cases} cases. First wrong: {title}, {count}."
            return f"Right on {self.right} of {cases} pictures. Of the largest wrong one, {first}."
        if cases == 1 and self.goal is None:
            own = f"the program's own kernel, on {self.device or EMULATED}"
            return f"Right: all {width} × {height} pixels equal those of {own}."
        if any(self.titles) and self.goal is None:
            return f"{'R' if self.memory else 'Passed: r'}ight in {cases} of {cases} cases."
        text = f"Right on all {cases} pictures."
        if self.goal is None:
            return text
        reads = f"{self.loads:.3g} cells a pixel from global memory"
        if self.reached:
            passed = "Passed. " if self.passed else ""
            return f"{passed}{text} It reads {reads}; the goal is at most {self.goal:.3g}."
        return f"{text} But it reads {reads}; the goal is at most {self.goal:.3g}."


def grade_of(
    outcome: TrialOutcome,
    goal: float | None = None,
    titles: tuple[str, ...] = (),
    memory: str = "",
    tolerance: int = 0,
) -> Grade | None:
    """Return the grade of a trial, in which pixels may differ by `tolerance` levels.

    None if nothing ran to its end.
    """
    if not outcome.results:
        return None
    comparisons = tuple(compare(*result, tolerance) for result in outcome.results)
    sizes = [each.wrong.size for each in comparisons]
    largest = sizes.index(max(sizes))
    loads = outcome.report.loads
    count = loads[largest] / sizes[largest] if len(loads) == len(sizes) else 0.0
    return Grade(comparisons, count, goal, titles, memory, outcome.report.device)
