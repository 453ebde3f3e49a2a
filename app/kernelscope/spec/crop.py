"""The part of a picture that a filter needs for a part of its result."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_ROW = "first_row"
"""Name under which plans find the row of the picture at which their source begins, where that is
a part of a picture; no parameter has this name."""


@dataclass(frozen=True)
class Crop:
    """How a picture may be cropped so that a part of the result keeps its bytes.

    Every filter needs the halo of its mask, which follows from its radius.

    Attributes
    ----------
    whole : str
        Why no part can be computed on its own, as the end of a sentence; empty if it can.
    rows : bool
        Whole rows are needed: a result depends on all of its row, or on its place in it.
    grid : int
        Parts begin at multiples of this many pixels, and end there or with the picture.
    """

    whole: str = ""
    rows: bool = False
    grid: int = 1


HALO_ONLY = Crop()
"""No samples are needed in addition to the halo, as for most filters."""
