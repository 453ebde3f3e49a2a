"""The sources' figures and the project's recorded ones, as the pages quote them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernelscope import filters
from kernelscope.bench.figures import SOURCES, SPEED_UP, PublishedFigure, all_figures


def published(source: str, **about: Any) -> tuple[PublishedFigure, ...]:
    """Return the figures of a source whose attributes have the values in `about`."""
    return tuple(
        figure
        for figure in all_figures()
        if figure.source == source
        and all(getattr(figure, name) == value for name, value in about.items())
    )


def quote(figure: PublishedFigure) -> str:
    """Return a figure in words: ``Mean 3×3, 256×256, shared: 0.01069 ms``."""
    size = "×".join(str(side) for side in reversed(figure.shape))
    spec = filters.get(figure.filter)
    words = [spec.name]
    if figure.mask_side:
        words.append(f"{figure.mask_side}×{figure.mask_side}")
    words += [
        parameter.brief(parameter.parse(figure.parameters[parameter.name]))
        for parameter in spec.parameters
        if parameter.name in figure.parameters
    ]
    over = " as fast as serial code" if figure.quantity == SPEED_UP else ""
    text = f"{', '.join(words)}, {size}, {figure.variant}: {figure.amount()}{over}"
    return f"{text} [{figure.remark}]" if figure.remark else text


def credits(figures: Iterable[PublishedFigure]) -> tuple[str, ...]:
    """Return, for each source of some figures, its letter, author, year and hardware."""
    letters = dict.fromkeys(figure.source for figure in figures)
    return tuple(f"{letter}: {SOURCES[letter].describe()}" for letter in letters)
