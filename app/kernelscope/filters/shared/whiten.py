"""Shared by the denoisers of pictures: correlated noise made white, and its removal brought back.

A denoiser supposes noise that has the same power S in all frequencies w. The noise of scaling and
demosaicing has less in high ones. Dividing the picture by the root of that power makes the noise
white, and the picture sharper; what the denoiser removes of it is multiplied by the same root, and
taken off the picture:

    v = 1/sqrt(S) * u,    g = u - sqrt(S) * (v - D(v))

where * is a convolution and D the denoiser. Nothing is lost where it removes nothing. With S = 4 in
low frequencies and 0.25 in high ones, for example, fine detail counts four times as much as coarse
detail of the same contrast: so much less noise is in it.

S is known in the 8 x 8 frequencies of a block. The masks of 17 x 17 have these roots there and are
smooth between. Colours are treated as opponents, each with the power of its own noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, kernel
from kernelscope.base.parallel import in_parts
from kernelscope.filters.shared.noise_model import SIDE, NoiseModel, opponents
from kernelscope.schema.samples import Pixels, colour_count, white_level

_ROOTS = np.sqrt(np.array([3, 2, 6], np.float32))

_WEAKEST = 0.01
"""Of the mean power: frequencies with less noise than that are not raised further."""


def _colours(grey: Pixels, across: Pixels, green: Pixels) -> list[Pixels]:
    """Return the three channels whose `opponents` these are."""
    grey, across, green = grey / _ROOTS[0], across / _ROOTS[1], green / _ROOTS[2]
    return [grey + across + green, grey - 2 * green, grey - across + green]


def _mask(response: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the mask that has a response at the frequencies of a block: even along both axes.

    Shape (9, 9): the weights of samples up to 8 pixels away.
    """
    ends = response
    for axis in (0, 1):  # the highest frequency of all, too, by the last two
        last, before = ends.take(-1, axis), ends.take(-2, axis)
        limits = last / 2, last * 2
        beyond = np.clip(last**2 / before, *limits)
        ends = np.concatenate([ends, np.expand_dims(beyond, axis)], axis)
    k = np.arange(SIDE + 1)
    cosines = np.cos(np.pi * np.outer(k, k) / SIDE) / SIDE
    cosines[:, [0, SIDE]] /= 2
    # The last pixel counts from both sides.
    cosines[SIDE] /= 2
    return np.asarray(cosines @ ends @ cosines.T, np.float32)


@kernel
def convolve_rows(
    wide: Array, masks: Array, first: Index, out: Array, folded: Array, row: Array
) -> None:
    """Write rows from `first` on of planes times their masks.

    - `wide`: float32, shape (planes, rows + 16, columns + 16).
    - `masks`: float32, shape (planes, 9, 9).
    - `out`: float32, shape (planes, rows of this part, columns).
    - `folded`, `row`: float32, of a wide row and of one. Scratch.
    """
    columns = out.shape[2]
    for c in range(out.shape[0]):
        for y in range(out.shape[1]):
            middle = first + y + 8
            row[:] = 0
            for j in range(9):
                above, below = wide[c, middle - j], wide[c, middle + j]
                if j == 0:
                    folded[:] = above
                else:
                    for x in range(folded.size):
                        folded[x] = above[x] + below[x]
                weights = masks[c, j]
                for x in range(columns):
                    total = weights[0] * folded[x + 8]
                    total += weights[1] * (folded[x + 7] + folded[x + 9])
                    total += weights[2] * (folded[x + 6] + folded[x + 10])
                    total += weights[3] * (folded[x + 5] + folded[x + 11])
                    total += weights[4] * (folded[x + 4] + folded[x + 12])
                    total += weights[5] * (folded[x + 3] + folded[x + 13])
                    total += weights[6] * (folded[x + 2] + folded[x + 14])
                    total += weights[7] * (folded[x + 1] + folded[x + 15])
                    total += weights[8] * (folded[x] + folded[x + 16])
                    row[x] += total
            out[c, y] = row


class Whitener:
    """Steps before and after a denoiser of white noise, for noise of a spectrum."""

    reach = SIDE
    """How far around a pixel each step looks."""

    def __init__(self, model: NoiseModel, dtype: np.dtype[Any]) -> None:
        assert model.spectra is not None
        roots = np.sqrt(np.maximum(model.spectra, _WEAKEST))
        self._raise = np.stack([_mask(1 / each) for each in roots])
        self._lower = np.stack([_mask(each) for each in roots])
        self._dtype, self._white = dtype, white_level(dtype)

    def forward(self, pixels: Pixels) -> NDArray[np.float32]:
        """Return samples with white noise."""
        stable = pixels.astype(np.float32) / np.float32(self._white)
        count = colour_count(pixels.shape[2])
        stable[..., :count] = self._convolved(stable[..., :count], self._raise)
        return stable

    def backward(self, result: Pixels, stable: Pixels, pixels: Pixels) -> Pixels:
        """Return the picture less what was removed of its stable form."""
        count = colour_count(pixels.shape[2])
        removed = self._convolved(stable[..., :count] - result[..., :count], self._lower)
        output = pixels.copy()
        found = pixels[..., :count] - removed * np.float32(self._white)
        if self._dtype.kind == "u":
            np.clip(np.rint(found, out=found), 0, self._white, out=found)
        output[..., :count] = found
        return output

    def _convolved(self, samples: Pixels, masks: NDArray[np.float32]) -> NDArray[np.float32]:
        height, width, count = samples.shape
        opponent = count == len(masks) == 3
        planes = np.moveaxis(samples, 2, 0)
        planes = opponents(planes) if opponent else planes
        wide = np.pad(planes, ((0, 0), (SIDE, SIDE), (SIDE, SIDE)), mode="symmetric")
        masks = np.ascontiguousarray(np.broadcast_to(masks, (count, *masks.shape[1:])))
        out = np.empty((count, height, width), np.float32)

        def work(part: slice) -> None:
            scratch = np.empty(width + 2 * SIDE, np.float32), np.empty(width, np.float32)
            convolve_rows(wide, masks, part.start, out[:, part], *scratch)

        in_parts(work, out[0])
        return np.stack(_colours(*out) if opponent else list(out), axis=2)
