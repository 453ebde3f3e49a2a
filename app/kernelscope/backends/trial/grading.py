"""The grade of an edited kernel: right in how many cases, and with how many reads."""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.backends.trial.comparison import Comparison, compare
from kernelscope.backends.trial.parent import Outcome


@dataclass(frozen=True, eq=False)
class Grade:
    """The comparison of a kernel with the program's own in each case.

    Attributes
    ----------
    comparisons : tuple of Comparison
    loads : float
        Cells read from global memory for each pixel of the largest case.
    goal : float, optional
        Most of those that are allowed.
    titles : tuple of str
        Of the cases; may be empty.
    """

    comparisons: tuple[Comparison, ...]
    loads: float = 0.0
    goal: float | None = None
    titles: tuple[str, ...] = ()

    @property
    def right(self) -> int:
        """In how many cases every pixel is right."""
        return sum(not each.count for each in self.comparisons)

    @property
    def worst(self) -> Comparison:
        """The first case with a wrong pixel; the first one if there is none."""
        wrong = (each for each in self.comparisons if each.count)
        return next(wrong, self.comparisons[0])

    @property
    def passed(self) -> bool:
        """Whether all is right, and the goal is reached."""
        reached = self.goal is None or self.loads <= self.goal
        return self.right == len(self.comparisons) and reached

    def __str__(self) -> str:
        worst, cases = self.worst, len(self.comparisons)
        height, width = worst.wrong.shape
        if self.right < cases:
            where = f"{width} × {height} pixels"
            first = f"Wrong: {worst.count:,} of {where} differ from the program's own kernel"
            if cases == 1:
                return f"{first}, on the emulated GPU."
            pairs = zip(self.titles, self.comparisons, strict=True) if self.titles else ()
            title = next((title for title, each in pairs if each.count), "")
            if title:
                count = f"{worst.count:,} of {worst.wrong.size:,} pixels"
                return f"{self.right} of {cases} cases are right. First wrong: {title}, {count}."
            return f"{self.right} of {cases} pictures are right. {first}."
        if cases == 1 and self.goal is None:
            own = "the program's own kernel, on the emulated GPU"
            return f"Right: all {width} × {height} pixels equal those of {own}."
        if any(self.titles) and self.goal is None:
            return f"Passed: right in {cases} of {cases} cases."
        text = f"Right on all {cases} pictures."
        if self.goal is None:
            return text
        reads = f"{self.loads:.3g} cells a pixel from global memory"
        if self.passed:
            return f"Passed. {text} It reads {reads}; the goal is at most {self.goal:.3g}."
        return f"{text} But it reads {reads}; the goal is at most {self.goal:.3g}."


def grade_of(
    outcome: Outcome, goal: float | None = None, titles: tuple[str, ...] = ()
) -> Grade | None:
    """Return the grade of a trial; None if nothing ran to its end."""
    if not outcome.results:
        return None
    comparisons = tuple(compare(*result) for result in outcome.results)
    sizes = [each.wrong.size for each in comparisons]
    largest = sizes.index(max(sizes))
    loads = outcome.report.loads
    count = loads[largest] / sizes[largest] if len(loads) == len(sizes) else 0.0
    return Grade(comparisons, count, goal, titles)
