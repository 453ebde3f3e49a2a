"""Formulas: LaTeX of a `FilterSpec`, typeset as SVG for the program and as MathML for the site.

The libraries are imported when the first formula is typeset: the program starts without them.
"""

from __future__ import annotations

import functools

from kernelscope.teach.handbook.svg import INK

_SIZE = 20
_GAP = 14
"""Pixels of the letters, and between two formulas."""


@functools.lru_cache(maxsize=128)
def as_svg(formula: str, ink: str = INK) -> str:
    """Return the formulas of the lines of `formula` below each other, as one drawing."""
    import ziamath

    ziamath.config.svg2 = False  # letters as paths: Qt knows no symbols
    parts, width, height = [], 0.0, 0.0
    for line in formula.split("\n"):
        made = ziamath.Latex(line, size=_SIZE, color=ink)
        across, down = made.getsize()
        element = made.svgxml()
        left, top, wide, high = (float(side) for side in element.get("viewBox").split())
        made_svg = made.svg()
        body = made_svg[made_svg.index(">") + 1 : made_svg.rindex("</svg>")]
        parts.append(f'<g transform="translate({-left:g} {height - top:g})">{body}</g>')
        width, height = max(width, wide, across), height + max(high, down) + _GAP
    height -= _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f"{''.join(parts)}</svg>"
    )


def as_mathml(formula: str) -> str:
    """Return the formulas as MathML, which browsers typeset themselves."""
    from latex2mathml import converter

    return "".join(converter.convert(line, display="block") for line in formula.split("\n"))
