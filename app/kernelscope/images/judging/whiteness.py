"""Whether a denoiser removed noise alone: neighbours in the removed part have nothing in common.

White noise is independent from sample to sample. What was removed from a picture or a volume,

    r = input - result

should be so too: its correlation with itself, moved by one sample along an axis, is near 0. Edges
and layers that went with the noise raise it: parts of anatomy are larger than a sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 2**18
"""Voxels that are looked at, about: those in the middle of a volume."""

_STRUCTURE = 0.25
"""Correlation from which on structure was removed. White noise of 1 to 9 % in a phantom and a head
left 0.05 and 0.16 with the right sigma; with twice that 0.09 to 0.34."""


def removed_correlation(source: NDArray[Any], result: NDArray[Any]) -> float | None:
    """Return the largest correlation of neighbours, over the axes, in the part that was removed.

    Only the object counts, that is results above their mean: where there is no signal, Rician noise
    has a mean, which is removed with it. None if nothing was removed, or where too few voxels are
    in the object.
    """
    surplus = max(1.0, source.size / _MOST) ** (1 / 3)
    kept = [max(min(side, 8), int(side / surplus)) for side in source.shape]
    middle = tuple(
        slice((side - part) // 2, (side - part) // 2 + part)
        for side, part in zip(source.shape, kept, strict=True)
    )
    # Chosen by the noisy voxels, noise would be that of bright ones alone.
    smooth = result[middle].astype(np.float64)
    removed, inside = source[middle] - smooth, smooth > smooth.mean()
    found = [
        _correlation(np.moveaxis(removed, axis, 0), np.moveaxis(inside, axis, 0))
        for axis in range(3)
    ]
    return max((each for each in found if each is not None), default=None)


_FEWEST = 1000


def _correlation(lines: NDArray[np.float64], inside: NDArray[np.bool_]) -> float | None:
    """Return the correlation of neighbours along the first axis, of those inside."""
    both = inside[:-1] & inside[1:]
    if both.sum() < _FEWEST:
        return None
    first, second = lines[:-1][both], lines[1:][both]
    scale = float(max(np.abs(first).max(), np.abs(second).max()))
    if not 0 < scale < np.inf:
        return None
    first, second = first / scale - (first / scale).mean(), second / scale - (second / scale).mean()
    power = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    return float((first * second).sum()) / power if power else None


def structure_notice(source: NDArray[Any], result: NDArray[Any], title: str) -> str:
    """Return a warning if more than noise was removed from a volume; else nothing."""
    found = removed_correlation(source, result)
    if found is None or found < _STRUCTURE:
        return ""
    return (
        f"{title}: neighbours in the removed part are alike (correlation {found:.2f}): structure "
        "was removed with the noise, or the noise is not white. A smaller sigma keeps more."
    )
