"""Whether the planes of input and output are larger below each other or beside each other.

+---- input ----+       +- input -+ output -+
|   a   c   s   |       |  a c s  |  a c s  |      The second has the larger slices if there is
+---- output ---+   or  |         |         |      little height, as in a window of 1280×720.
|   a   c   s   |       |         |         |
+---------------+       +---------+---------+
"""

from __future__ import annotations

from collections.abc import Sequence

_PLANES = 3
"""Planes of each side, beside each other."""

_LEAST_GAIN = 1.15
"""Gain from which on all planes lie beside each other; else each output is below its input."""


def lies_beside(
    width: float,
    height: float,
    heading: float,
    extents: Sequence[tuple[float, float]],
    large: int | None = None,
) -> bool:
    """Return whether the output belongs beside the input, so that slices are larger.

    - `width`, `height`: the room for both, in pixels.
    - `heading`: height of the line over the planes of each side, in pixels.
    - `extents`: width and height of the slices of each plane, in millimetres.
    - `large`: the plane that has two thirds of the width, and all of the height.
    """
    share = 1 / _PLANES
    if large is not None:
        share, extents = 2 / _PLANES, extents[large : large + 1]
    below = _scale(share * width, height / 2 - heading, extents)
    beside = _scale(share * width / 2, height - heading, extents)
    return beside > _LEAST_GAIN * below


def _scale(width: float, height: float, extents: Sequence[tuple[float, float]]) -> float:
    """Return the scale in which the slices of all planes fit into views of this size."""
    return min((min(width / across, height / down) for across, down in extents), default=0.0)
