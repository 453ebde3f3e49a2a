"""Border treatment and rounding shared by the CPU kernels.

*Padded coordinates*: output row ``y`` needs the padded rows ``y`` to ``y + 2 * radius``, and
output column ``x`` the padded columns ``x`` to ``x + 2 * radius``. For ``valid`` the padded
image is the source itself; for all other borders it reaches `radius` pixels beyond it.
"""

from __future__ import annotations

from typing import Any

from kernelscope.base.jit import Index, Line, Number, Plane, kernel
from kernelscope.schema.borders import Border

REFLECT = Border.REFLECT.code
MIRROR = Border.MIRROR.code
NEAREST = Border.NEAREST.code
CONSTANT = Border.CONSTANT.code
WRAP = Border.WRAP.code
VALID = Border.VALID.code
REDUCE = Border.REDUCE.code


@kernel
def border_index(i: Index, n: Index, border: Index) -> Any:
    """Return the index in ``[0, n)`` that stands for `i`, or -1 if the cell is outside.

    Works for any distance from the image, so that a mask may be larger than the image.
    """
    if 0 <= i < n:
        return i
    if border == NEAREST:
        return 0 if i < 0 else n - 1
    if border == WRAP:
        return i % n
    if border == REFLECT:
        i = i % (2 * n)
        return i if i < n else 2 * n - 1 - i
    if border == MIRROR:
        if n == 1:
            return 0
        i = i % (2 * n - 2)
        return i if i < n else 2 * n - 2 - i
    return -1


@kernel
def pad_columns(buffer: Line, radius: Index, channels: Index, border: Index) -> None:
    """Fill the cells left and right of the row that stands in the middle of `buffer`.

    `buffer` is flat (columns x channels) with `radius` columns to fill on each side; none
    are filled for ``valid``, zeros are for ``constant`` and ``reduce``.
    """
    if border == VALID:
        return
    first = radius * channels
    width = buffer.size // channels - 2 * radius
    for k in range(radius):
        left = border_index(k - radius, width, border)
        right = border_index(width + k, width, border)
        for c in range(channels):
            buffer[k * channels + c] = buffer[first + left * channels + c] if left >= 0 else 0
            buffer[first + (width + k) * channels + c] = (
                buffer[first + right * channels + c] if right >= 0 else 0
            )


@kernel
def find_sides(width: Index, radius: Index, channels: Index, border: Index, sides: Line) -> None:
    """Write where the cells left and right of a row stand in it, in samples; -1 for zeros."""
    cells = radius * channels
    for k in range(radius):
        left = border_index(k - radius, width, border)
        right = border_index(width + k, width, border)
        for c in range(channels):
            sides[k * channels + c] = left * channels + c if left >= 0 else -1
            sides[cells + k * channels + c] = right * channels + c if right >= 0 else -1


@kernel
def fill_sides(cells: Line, begin: Index, end: Index, sides: Line, outside: Number) -> None:
    """Write the cells left and right of a row of `cells`; `outside` where `find_sides` has -1."""
    inset = sides.size // 2
    for k in range(inset):
        left, right = sides[k], sides[inset + k]
        cells[begin - inset + k] = cells[begin + left] if left >= 0 else outside
        cells[end + k] = cells[begin + right] if right >= 0 else outside


@kernel
def fetch_row(source: Plane, row: Index, radius: Index, border: Index, buffer: Line) -> None:
    """Write padded row `row` of `source` into `buffer` (flat: columns x channels).

    Cells outside the image are zero for ``constant`` and ``reduce``.
    """
    height, width, channels = source.shape
    margin = 0 if border == VALID else radius
    y = border_index(row - margin, height, border)
    if y < 0:
        buffer[:] = 0
        return
    samples = source[y].reshape(width * channels)
    inside = buffer[margin * channels : margin * channels + samples.size]
    for x in range(inside.size):
        inside[x] = samples[x]
    pad_columns(buffer, radius, channels, border)


@kernel
def divide_round(numerator: Index, denominator: Index) -> Any:
    """Return the integer nearest to ``numerator / denominator``, ties to even (integers)."""
    if denominator < 0:
        numerator = -numerator
        denominator = -denominator
    quotient = numerator // denominator
    twice = 2 * (numerator - quotient * denominator)
    if twice > denominator or (twice == denominator and quotient & 1):
        quotient += 1
    return quotient
