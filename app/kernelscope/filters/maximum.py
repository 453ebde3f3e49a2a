"""Maximum filter, dilation by a square: every pixel becomes the largest value around it.

    10 12 11
    13  5 12    becomes 14
    11 14 13

Source: Gonzalez and Woods, Digital Image Processing, chapters 5 and 9.
"""

from __future__ import annotations

from kernelscope.filters.shared.extremes import spec

SPEC = spec(
    "maximum",
    lowest=False,
    summary="Takes the largest value around each pixel: widens bright areas.",
    synonyms=("dilation", "dilate", "max", "brighten", "morphology"),
    use="To close dark gaps that are narrower than the mask, and with *Minimum* after it, of the "
    "same size, to close: all else then has its size again.",
    avoid="Bright specks become as large as the mask. The median removes specks of both kinds.",
)
