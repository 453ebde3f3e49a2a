"""Minimum filter, erosion by a square: every pixel becomes the smallest value around it.

    10 12 11
    13 55 12    becomes 10
    11 14 13

Source: Gonzalez and Woods, Digital Image Processing, chapters 5 and 9.
"""

from __future__ import annotations

from kernelscope.filters.shared.extremes import spec

SPEC = spec(
    "minimum",
    lowest=True,
    summary="Takes the smallest value around each pixel: widens dark areas.",
    synonyms=("erosion", "erode", "min", "darken", "morphology"),
    use="To remove bright specks and bridges that are narrower than the mask, and with *Maximum* "
    "after it, of the same size, to open: all else then has its size again.",
    avoid="Dark specks become as large as the mask. The median removes specks of both kinds.",
)
