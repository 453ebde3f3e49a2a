"""The texts and the worked example by which the pages of a filter explain it.

The formula is written in LaTeX and typeset by the pages. The example is a patch of samples that
the filter's own code filters: pages show its numbers, the mask, and the arithmetic of one result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[Any]

PATCH = (
    (12, 10, 11, 13, 90, 92, 91),
    (11, 13, 10, 12, 91, 90, 93),
    (10, 12, 14, 11, 92, 94, 90),
    (13, 11, 12, 200, 90, 91, 92),
    (12, 10, 13, 11, 93, 90, 91),
    (11, 12, 10, 13, 91, 92, 90),
    (10, 13, 12, 10, 90, 93, 92),
)
"""An edge with a little noise, and a speck beside it, in the middle."""

EDGE = (
    (12, 10, 11, 13, 40, 42, 41),
    (11, 13, 10, 12, 41, 40, 43),
    (10, 12, 14, 11, 42, 44, 40),
    (13, 11, 12, 13, 40, 41, 42),
    (12, 10, 13, 11, 43, 40, 41),
    (11, 12, 10, 13, 41, 42, 40),
    (10, 13, 12, 10, 40, 43, 42),
)
"""An edge with a little noise; the middle is beside it."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A small picture, and how its middle sample is computed."""

    patch: Sequence[Any] = PATCH
    """Samples of 8 bit, shape (height, width) or (height, width, channels); of a volume (depth,
    height, width)."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those that differ from the defaults."""
    radius: int | None = None
    """Cells on each side of the middle that are marked as its window; by default those of the
    filter."""
    masks: Callable[[Mapping[str, Any]], Mapping[str, Cells]] = lambda parameters: {}
    """Maps validated parameters to the weights of the cells, by name."""
    working: Callable[[Cells, Mapping[str, Any]], str] = lambda window, parameters: ""
    """Maps the samples of the window, row by row, and validated parameters to the arithmetic of the
    middle sample; the last number in it is the result before it is rounded."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Formula, advice and worked example of a filter."""

    formula: str = ""
    """LaTeX, without dollar signs; several lines are several formulas."""
    use: str = ""
    avoid: str = ""
    """When the filter is the right choice, and when it is not."""
    example: Example = Example()
    sample: str = "camera.bmp"
    """The file in ``resources`` that shows its effect."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the picture that shows its effect, where they differ from the defaults."""


NO_EXPLANATION = Explanation()
"""Of a filter without a page of its own texts: a filter of a test."""


def number(value: float) -> str:
    """Return a number for a page: at most two decimals, with a true minus."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-", "−")


def weighted(window: Cells, weights: Cells, divisor: float = 1) -> str:
    """Return the arithmetic of a weighted sum: products by their weight, and the division."""
    pairs = zip(np.ravel(weights), np.ravel(window), strict=True)
    groups: dict[float, list[float]] = {}
    for weight, sample in pairs:
        if weight:
            groups.setdefault(float(weight), []).append(float(sample))
    terms = [_term(weight, samples) for weight, samples in groups.items()]
    text = " + ".join(terms).replace("+ −", "− ")
    total = float(np.sum(np.asarray(weights, float) * np.asarray(window, float)))
    if divisor == 1:
        return f"{text} = {number(total)}"
    return f"({text}) / {number(divisor)} = {number(total)} / {number(divisor)} = " + number(
        total / divisor
    )


def _term(weight: float, samples: Sequence[float]) -> str:
    """Return ``2·(10 + 12)``, or ``10 + 12`` for the weight 1."""
    total = " + ".join(map(number, samples))
    if weight == 1:
        return total
    inner = f"({total})" if len(samples) > 1 else total
    return f"−{inner}" if weight == -1 else f"{number(weight)}·{inner}"
