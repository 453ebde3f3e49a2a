"""Shared by the denoisers of pictures: the noise in the flattest blocks."""

from __future__ import annotations

import math

import numpy as np

from kernelscope.filters.shared.non_local import estimate_sigma
from kernelscope.spec.samples import Pixels, white_level

_BLOCK, _FLATTEST = 8, 0.3
"""Side of the blocks in which noise is measured, and the share of them that is."""

_QUIETEST, _SHORT = 0.2, 1.375
"""Which quantile of the noise in those blocks is taken, as fine texture only ever adds to it, and
the mean of pure noise over that quantile: of the 64 squares that are averaged neighbours are much
alike, so that their mean varies as a chi-squared distribution of 19 degrees of freedom does."""


def flat_sigma(pixels: Pixels) -> float:
    """Return the standard deviation of the noise, as a fraction of white, from the flattest blocks.

    A denoiser takes the noise for known, and detail that is mistaken for noise is smoothed away. So
    only the third of all blocks counts whose quarters have the most equal means, and that are
    nowhere black or white. The noise in a block is the response of the mask of Immerkær ("Fast
    noise variance estimation", Computer Vision and Image Understanding 64, 1996). As the mask
    responds to fine texture too, the quieter ones among these blocks determine the estimate.
    Pictures with fewer than 64 blocks have `estimate_sigma`.

    Parameters
    ----------
    pixels : ndarray, shape (height, width, channels)
        Without alpha; uint8, uint16 or float32.
    """
    white = white_level(pixels.dtype)
    height, width = ((side - 2) // _BLOCK for side in pixels.shape[:2])
    if height * width < 64:
        return estimate_sigma(pixels)
    estimates = []
    for c in range(pixels.shape[2]):
        image = pixels[: height * _BLOCK + 2, : width * _BLOCK + 2, c].astype(np.float32)
        lines = image[:-2] - 2 * image[1:-1] + image[2:]
        rest = lines[:, :-2] - 2 * lines[:, 1:-1] + lines[:, 2:]
        inside = image[1:-1, 1:-1]
        quarter = _BLOCK // 2
        means = inside.reshape(2 * height, quarter, 2 * width, quarter).mean((1, 3))
        spread = means.reshape(height, 2, width, 2).var((1, 3))
        noise = np.square(rest).reshape(height, _BLOCK, width, _BLOCK).mean((1, 3)) / 36
        clipped = (inside <= 0) | (inside >= white) if white > 1 else np.zeros_like(inside, bool)
        usable = ~clipped.reshape(height, _BLOCK, width, _BLOCK).any((1, 3)) & (noise > 0)
        if usable.sum() >= 64:
            flat = usable & (spread <= np.quantile(spread[usable], _FLATTEST))
            estimates.append(math.sqrt(_SHORT * float(np.quantile(noise[flat], _QUIETEST))) / white)
    return float(np.mean(estimates)) if estimates else estimate_sigma(pixels)
