"""Drawings as SVG: rectangles, lines and text, in a size of their own.

Ink is ``currentColor`` and grounds are transparent, so that one drawing serves light and dark
pages. Only elements of SVG Tiny are used, which Qt draws as well as browsers do.
"""

from __future__ import annotations

import itertools
from html import escape
from typing import NamedTuple

INK = "currentColor"  # the colour of the text around a drawing

ACCENT = "#1f8fdc"
"""Marks the middle of an example; readable on light and dark grounds."""

_FONT = "'Noto Sans', 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"


_LINE = 9  # texts whose baselines are less apart stand beside each other
GROWN = 1.25  # how much larger letters can be while the lines of a drawing keep apart
_STEPS = 5  # from the usual letters to the largest ones


class _Text(NamedTuple):
    x: float
    y: float
    text: str
    size: float
    fill: str
    anchor: str
    weight: str

    @property
    def column(self) -> tuple[float, float, str]:
        return self.x, self.size, self.anchor

    def ends(self, letters: float = 1) -> tuple[float, float]:
        # About as wide as the usual fonts are.
        width = 0.6 * letters * self.size * len(self.text)
        left = self.x - width * {"start": 0, "middle": 0.5, "end": 1}[self.anchor]
        return left, left + width

    def svg(self, letters: float) -> str:
        return (
            f'<text x="{self.x:g}" y="{self.y:g}" font-size="{letters * self.size:g}" '
            f'fill="{self.fill}" text-anchor="{self.anchor}"{self.weight}>'
            f"{escape(self.text)}</text>"
        )


class Drawing:
    """A growing drawing; `svg` returns its text.

    - `title`: description for those who cannot see it.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.width = self.height = 0.0  # of the drawing so far
        self.bottom = 0.0  # of its lowest part
        self._parts: list[str | _Text] = []

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        opacity: float = 1,
        stroke: str = INK,
        thickness: float = 1,
        dashed: bool = False,
        round_: float = 0,
    ) -> None:
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self._add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" '
            f'fill="{fill}" fill-opacity="{opacity:g}" stroke="{stroke}" '
            f'stroke-width="{thickness:g}"{dashes}/>',
            x + width + thickness,
            y + height + thickness,
        )

    def line(
        self,
        x: float,
        y: float,
        to_x: float,
        to_y: float,
        *,
        stroke: str = INK,
        thickness: float = 1,
        opacity: float = 1,
    ) -> None:
        self._add(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{stroke}" '
            f'stroke-width="{thickness:g}" stroke-opacity="{opacity:g}"/>',
            max(x, to_x) + thickness,
            max(y, to_y) + thickness,
        )

    def arrow(
        self,
        x: float,
        y: float,
        to_x: float,
        to_y: float,
        *,
        stroke: str = INK,
        thickness: float = 1.5,
    ) -> None:
        """Draw a line with a head at its end."""
        length = max(((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5, 1e-6)
        along = (to_x - x) / length, (to_y - y) / length
        self.line(x, y, to_x, to_y, stroke=stroke, thickness=thickness)
        size = 3 + 2 * thickness
        back_x, back_y = to_x - size * along[0], to_y - size * along[1]
        side_x, side_y = -along[1] * size / 2, along[0] * size / 2
        points = (
            f"{to_x:g},{to_y:g} {back_x + side_x:g},{back_y + side_y:g} "
            f"{back_x - side_x:g},{back_y - side_y:g}"
        )
        self._add(f'<polygon points="{points}" fill="{stroke}"/>', to_x, to_y)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        fill: str = INK,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        part = _Text(x, y, text, size, fill, anchor, weight)
        self._add(part, part.ends()[1], y + 0.3 * size)

    def _letters(self, text: _Text, most: float) -> float:
        """Return by how much texts of a line can grow without meeting or leaving the drawing."""
        every = [part for part in self._parts if isinstance(part, _Text)]
        line = [each for each in every if abs(each.y - text.y) < _LINE]
        for step in range(_STEPS, 0, -1):
            letters = 1 + (most - 1) * step / _STEPS
            ends = sorted(each.ends(letters) for each in line)
            apart = all(first[1] <= second[0] for first, second in itertools.pairwise(ends))
            if apart and ends[0][0] >= 0 and max(end for _, end in ends) <= self.width:
                return letters
        return 1

    def svg(self, ink: str = INK, letters: float = 1) -> str:
        """Return the drawing; `ink` replaces the colour of the text around it.

        - `letters`: by how much letters are larger than usual, where there is room.
        """
        width, height = round(self.width + 2), round(self.height + 2)
        grown: dict[tuple[float, float, str], float] = {}
        for part in self._parts:
            if isinstance(part, _Text):  # lines below each other grow alike
                most = self._letters(part, letters)
                grown[part.column] = min(grown.get(part.column, most), most)
        body = "".join(
            part if isinstance(part, str) else part.svg(grown[part.column]) for part in self._parts
        ).replace(INK, ink)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{_FONT}" role="img">'
            f"<title>{escape(self.title)}</title>{body}</svg>"
        )

    def _add(self, part: str | _Text, right: float, bottom: float) -> None:
        self._parts.append(part)
        self.width = max(self.width, right)
        self.bottom = max(self.bottom, bottom)
        self.height = max(self.height, bottom)
