"""Whether a denoiser removed noise alone: neighbours in the removed part have nothing in common.

White noise is independent from sample to sample. The part removed from a picture or a volume,

    r = input - result

should be so too: its correlation with itself, moved by one sample along an axis, is near 0. Edges
and layers that went with the noise raise it: parts of anatomy are larger than a sample. So does
noise that neighbours have in common from the start. Below 0 it is where the slow part of the noise
stayed: with sigma 20 in eight pictures, -0.05 to -0.23 at 60 % of the strength of the sliding DCT,
-0.02 to -0.16 at 100 %, and -0.02 to 0.04 at 150 %.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 2**16
"""Samples that are looked at, about: those in the middle of a volume or of each channel."""

_STRUCTURE, _PERHAPS, _STAYED = 0.2, 0.1, -0.2
"""Correlation from which on more than white noise was removed, or may have been: few filaments in
an empty stack lost 16 % at 0.18; and down to which a part of it was. In volumes, white noise of 1
to 9 % left 0.05 and 0.16 with the right sigma, and 0.09 to 0.34 with twice that. In six pictures
with noise of sigma 20, the sliding DCT left -0.17 to -0.05, and -0.26 to -0.09 at half the
strength; with noise that was blurred by 0.7 pixels, -0.04 to 0.34 where it was taken for white, and
0.5 where it was removed."""


def removed_correlation(source: NDArray[Any], result: NDArray[Any]) -> float | None:
    """Return the largest correlation of neighbours, over the axes, in the loss of a volume.

    Only the object counts, that is results above their mean: where there is no signal, Rician noise
    has a mean, which is removed with it. None if nothing was removed, or where too few voxels are
    in the object.
    """
    middle = _middle(source.shape)
    # Chosen by the noisy voxels, noise would be that of bright ones alone.
    smooth = result[middle].astype(np.float64)
    return max(_along_axes(source[middle] - smooth, smooth > smooth.mean()), default=None)


def picture_correlation(source: NDArray[Any], result: NDArray[Any]) -> float | None:
    """Return the correlation of neighbours in the loss of a picture, of the axis and channel where
    it is farthest from 0.

    None if nothing was removed, or where there are too few pixels.

    - `source`, `result`: shape (height, width, channels). Colours only; the result may lack a rim.
    """
    height, width, channels = result.shape
    top, left = ((a - b) // 2 for a, b in zip(source.shape, (height, width), strict=False))
    middle = _middle((height, width))
    before = source[top : top + height, left : left + width][middle]
    removed = before - result[middle].astype(np.float64)
    everywhere = np.ones(removed.shape[:2], bool)
    found = [each for c in range(channels) for each in _along_axes(removed[..., c], everywhere)]
    return max(found, key=abs, default=None)


def _middle(shape: tuple[int, ...]) -> tuple[slice, ...]:
    surplus = max(1.0, math.prod(shape) / _MOST) ** (1 / len(shape))
    kept = [max(min(side, 8), int(side / surplus)) for side in shape]
    return tuple(
        slice((side - part) // 2, (side - part) // 2 + part)
        for side, part in zip(shape, kept, strict=True)
    )


_FEWEST = 1000  # pairs of neighbours
_FLAT = 1e-12  # of the largest value removed: differences below are rounding


def _along_axes(removed: NDArray[np.float64], inside: NDArray[np.bool_]) -> list[float]:
    """Return the correlation of neighbours that are both inside, along each axis that has enough.

    The mean is that of all voxels inside: pairs leave too few out for theirs to be another.
    """
    chosen = removed[inside]
    largest = float(np.abs(chosen).max(initial=0.0))
    if not 0 < largest < np.inf:
        return []
    chosen /= largest
    chosen -= chosen.mean()
    if np.abs(chosen).max() < _FLAT:
        return []
    centred = np.zeros(removed.shape)
    centred[inside] = chosen
    squares = centred * centred
    found = []
    for axis in range(removed.ndim):
        here, there = (
            (slice(None),) * axis + (part,) for part in (slice(None, -1), slice(1, None))
        )
        if np.count_nonzero(inside[here] & inside[there]) >= _FEWEST:
            # Outside they are 0, so that a product counts if both are inside.
            first, second = squares[here] * inside[there], squares[there] * inside[here]
            power = math.sqrt(first.sum() * second.sum())
            product = (centred[here] * centred[there]).sum()
            found.append(float(product) / power if power else 0.0)
    return found


def describe_correlation(found: float) -> str:
    """Return the figure of a removed part in words."""
    return f"correlation of neighbours {found:.2f} (of white noise 0): {removed(found)} was removed"


def removed(found: float) -> str:
    """Return the meaning of a correlation in words."""
    if found >= _STRUCTURE:
        return "correlated noise or detail"
    if found >= _PERHAPS:
        return "white noise and perhaps detail"
    return "a part of the noise" if found <= _STAYED else "white noise"


def structure_notice(found: float | None, title: str) -> str:
    """Return a warning if more than noise was removed from a volume; else nothing."""
    if found is None or found < _STRUCTURE:
        return ""
    return (
        f"{title}: neighbours in the removed part are alike (correlation {found:.2f}): structure "
        "was removed with the noise, or the noise is not white. A smaller sigma keeps more."
    )
