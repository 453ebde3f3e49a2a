"""Drawings as SVG: rectangles, lines and text, in a size of their own.

Ink is ``currentColor`` and grounds are transparent, so that one drawing serves light and dark
pages. Only elements of SVG Tiny are used, which Qt draws as well as browsers do.
"""

from __future__ import annotations

from html import escape

INK = "currentColor"  # the colour of the text around a drawing

ACCENT = "#1f8fdc"
"""Marks the middle of an example; readable on light and dark grounds."""

_FONT = "'Noto Sans', 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"


class Drawing:
    """A growing drawing; `svg` returns its text.

    - `title`: description for those who cannot see it.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.width = self.height = 0.0  # of the drawing so far
        self._parts: list[str] = []

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
        # About as wide as the usual fonts are: only the size of the drawing depends on it.
        width = 0.6 * size * len(text)
        right = {"start": x + width, "middle": x + width / 2, "end": x}[anchor]
        self._add(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" '
            f'text-anchor="{anchor}"{weight}>{escape(text)}</text>',
            right,
            y + 0.3 * size,
        )

    def svg(self, ink: str = INK) -> str:
        """Return the drawing; `ink` replaces the colour of the text around it."""
        width, height = round(self.width + 2), round(self.height + 2)
        body = "".join(self._parts).replace(INK, ink)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{_FONT}" role="img">'
            f"<title>{escape(self.title)}</title>{body}</svg>"
        )

    def _add(self, part: str, right: float, bottom: float) -> None:
        self._parts.append(part)
        self.width = max(self.width, right)
        self.height = max(self.height, bottom)
