"""Shared by the denoisers of pictures: camera noise made white, and results brought back.

The noise of a camera has the variance a · mean + b, and a denoiser wants the same everywhere. The
generalised Anscombe transform of samples z gives it a standard deviation of about 1:

    f(z) = 2 / a · sqrt(max(0, a z + 3/8 a² + b))

A denoiser estimates E[f(z)]. f of the mean is more than the mean of f, so that the inverse of f is
too dark; the exact unbiased inverse takes E[f(z)] to the mean of z. It is tabulated by numerical
integration: over the Poisson distribution of photons and the normal one of the read-out, clipped at
black and white where samples are. For a = b = 1, for example, z = 3 becomes f = 4.18; noise around
a mean of 3 has E[f(z)] = 3.88, and that becomes 3 again. A negative b is that of samples to which
the camera adds an offset: they have no photons at -b / a.

Transforms begin at 0 and are multiplied by the sigma of the picture: the result has white noise of
this sigma, and its border `constant` is black.

Sources: Anscombe, "The transformation of Poisson, binomial and negative-binomial data", Biometrika
35, 1948; Murtagh, Starck and Bijaoui, "Image restoration with noise suppression using a
multiresolution support", Astronomy and Astrophysics Supplement 112, 1995; Mäkitalo and Foi,
"Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian noise", IEEE
Transactions on Image Processing 22, 2013. The tables are computed here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Plane, kernel
from kernelscope.base.parallel import in_parts
from kernelscope.filters.shared.flat_noise import flat_sigma
from kernelscope.filters.shared.noise_model import (
    SIDE,
    NoiseKind,
    NoiseModel,
    find_noise,
    opponent_variances,
    opponents,
)
from kernelscope.schema.filter import NoiseChoice, NoiseSteps
from kernelscope.schema.parameters import Choice, ChoiceParameter
from kernelscope.schema.samples import Pixels, colour_count, white_level

# Correlated noise made white, and its removal brought back ------------------------------
#
# A denoiser supposes noise that has the same power S in all frequencies w. The noise of scaling
# and demosaicing has less in high ones. Dividing the picture by the root of that power makes the
# noise white, and the picture sharper; the part that the denoiser removes is multiplied by the same
# root, and taken off the picture:
#
#     v = 1/sqrt(S) * u,    g = u - sqrt(S) * (v - D(v))
#
# where * is a convolution and D the denoiser. Nothing is lost where it removes nothing. With S =
# 4 in low frequencies and 0.25 in high ones, for example, fine detail counts four times as much
# as coarse detail of the same contrast: so much less noise is in it.
#
# S is known in the 8 x 8 frequencies of a block. The masks of 17 x 17 have these roots there and
# are smooth between. Colours are treated as opponents, each with the power of its own noise.

_ROOTS = np.sqrt(np.array([3, 2, 6], np.float32))

_WEAKEST = 0.01  # of the mean power: frequencies with less noise than that are not raised further


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


NO_VALUES: Mapping[str, Any] = {}


class Whitener:
    """Steps before and after a denoiser of white noise, for noise of a spectrum."""

    reach = SIDE  # how far around a pixel each step looks
    values = NO_VALUES

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
        """Return the picture less the part removed from its stable form."""
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


Numbers = NDArray[np.float64]

_EXACT, _STEP = 60.0, 0.125
"""Means in photons up to which photons are counted one by one, and from one mean to the next; above
the distribution is normal to 3e-4 of sigma."""

_MOST = 1000.0
"""Photons up to which a table goes where nothing is clipped: f is inverted by its series there."""

_ENTRIES = 4096  # of a table of the inverse
_ROWS = 16  # that are restored at a time
_NODES = np.linspace(-6, 6, 241)  # of the normal distribution, in units of its sigma

_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()

_UNEQUAL = 1.3
"""Sigmas of channels that differ by this factor are made equal: estimates of small pictures differ
by less, and that of floats takes longer on a GPU than that of bytes."""

_LINEAR = 1e-3
"""A variance that differs by less than this share from black to white is the same everywhere."""


@dataclass(frozen=True, eq=False)
class _Transform:
    """f of one channel, and the table of its inverse; both in photons: samples / a.

    - `read_out`: b / a²: variance of the normal noise, in photons², less an offset in photons.
    - `start`: f of black.
    - `first`, `last`: the values of f at the ends of the table.
    - `means`: the inverse, at even steps between these.
    """

    read_out: float
    start: float
    first: float
    last: float
    means: Numbers

    @classmethod
    def of(cls, read_out: float, white: float) -> _Transform:
        """Return the transform for b / a²; `white` is infinite without clipping."""
        offset = max(-read_out, 0.0)
        levels = _levels(min(white, _MOST) if math.isinf(white) else white - offset)
        expected = np.maximum.accumulate(_expected(levels, read_out, offset, white))
        first, last = float(expected[0]), float(expected[-1])
        means = offset + np.interp(np.linspace(first, last, _ENTRIES), expected, levels)
        return cls(read_out, float(_anscombe(np.float64(0), read_out)), first, last, means)


def _levels(last: float) -> Numbers:
    """Return means from 0 to `last`, close to each other where the inverse bends."""
    dense = np.arange(0, min(last, _EXACT), _STEP)
    if last <= _EXACT:
        return np.append(dense, last)
    # Even steps of the square root, which f resembles.
    return np.concatenate([dense, np.linspace(math.sqrt(_EXACT), math.sqrt(last), 2048) ** 2])


def _anscombe(photons: Any, read_out: float) -> Any:
    return 2 * np.sqrt(np.maximum(photons + 0.375 + read_out, 0))


def _expected(levels: Numbers, read_out: float, offset: float, white: float) -> Numbers:
    """Return E[f(z)] for means in photons, to which an offset is added."""
    few = levels[levels < _EXACT]
    counts = np.arange(int(_EXACT + 12 * math.sqrt(_EXACT)))
    logarithms = np.append(0, np.cumsum(np.log(counts[1:])))
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.exp(counts * np.log(few)[:, None] - few[:, None] - logarithms)
    chances[few == 0] = counts == 0
    read = offset + math.sqrt(read_out + offset) * _NODES
    # Without clipping, a count with its read-out may be below 0.
    lowest = -math.inf if math.isinf(white) else 0.0
    of_count = _anscombe(np.clip(counts[:, None] + read, lowest, white), read_out) @ _WEIGHTS
    many = levels[levels >= _EXACT]
    spread = offset + np.sqrt(many + read_out + offset)[:, None] * _NODES
    of_many = _anscombe(np.clip(many[:, None] + spread, lowest, white), read_out) @ _WEIGHTS
    return np.concatenate([chances @ of_count / chances.sum(1), of_many])


@kernel
def restore(
    stable: Plane, samples: Array, scales: Array, table: Array, channel: Line, linear: Line
) -> None:
    """Write the means whose noisy samples have these means after `f`; see `Stabiliser`.

    - `stable`: float32, shape (rows, columns, channels).
    - `samples`: float64. The result, in the same shape.
    - `scales`: float64, shape (channels, 5). 1 / sigma of the result, f of black, first and last f
      of the table, and a.
    - `table`: float64, shape (channels, entries).
    - `channel`: int. The channels that are transformed.
    - `linear`: float64. For channels that are only multiplied, the factor; else 0.
    """
    entries = table.shape[1]
    for y in range(stable.shape[0]):
        for x in range(stable.shape[1]):
            for c in channel:
                value = np.float64(stable[y, x, c])
                if linear[c] != 0:
                    samples[y, x, c] = value * linear[c]
                    continue
                inverse, start, first, last, photon = scales[c]
                f = value * inverse + start
                if f <= first:
                    mean = table[c, 0]
                elif f < last:
                    place = (f - first) * ((entries - 1) / (last - first))
                    low = min(int(place), entries - 2)
                    mean = table[c, low] + (place - low) * (table[c, low + 1] - table[c, low])
                elif linear[-1] != 0:  # clipped
                    mean = table[c, entries - 1]
                else:  # the series, which the table joins; NaN stays
                    mean = table[c, entries - 1] + (f * f - last * last) / 4
                samples[y, x, c] = mean * photon


class Stabiliser:
    """Steps before and after a denoiser of white noise.

    Between them the picture is float32 and has white noise of the standard deviation
    `model.sigma` in all channels. Alpha, and channels without noise, stay as they are.

    - `white`: the sample that is 1 in the unit of the model, by default that of the type.
    - `sigma`: another standard deviation between the steps.
    """

    reach = 0
    values = NO_VALUES

    def __init__(
        self,
        model: NoiseModel,
        dtype: np.dtype[Any],
        white: float | None = None,
        sigma: float | None = None,
    ) -> None:
        self._dtype, self._white = dtype, white_level(dtype) if white is None else white
        self._sigma = model.sigma if sigma is None else sigma
        self._clips = dtype.kind == "u"
        count = len(model.sigmas)
        self._linear = np.zeros(count + 1)
        self._linear[-1] = self._clips
        self._scales = np.zeros((count, 5))
        self._tables = np.zeros((count, _ENTRIES))
        self._read_outs = np.zeros(count)
        known: dict[tuple[float, float], _Transform] = {}
        for c, sigma in enumerate(model.sigmas):
            a, b = (model.slopes[c], model.offsets[c]) if model.slopes else (0.0, sigma**2)
            if a <= _LINEAR * b:
                self._linear[c] = math.sqrt(b) / self._sigma if b else 1.0
                continue
            if (a, b) not in known:
                known[a, b] = _Transform.of(b / a**2, 1 / a if self._clips else math.inf)
            found = known[a, b]
            self._scales[c] = 1 / self._sigma, found.start, found.first, found.last, a
            self._tables[c] = found.means
            self._read_outs[c] = found.read_out

    def forward(self, pixels: Pixels) -> NDArray[np.float32]:
        """Return samples with white noise."""
        stable = pixels.astype(np.float32)
        count = min(len(self._scales), colour_count(pixels.shape[2]))

        def channel(samples: Pixels, c: int) -> Numbers:
            values = samples.astype(np.float64) / self._white
            if self._linear[c]:
                return np.asarray(values / self._linear[c])
            inverse, start, *_, photon = self._scales[c]
            return np.asarray((_anscombe(values / photon, self._read_outs[c]) - start) / inverse)

        if self._clips:
            levels = np.arange(int(self._white) + 1)
            tables = [channel(levels, c).astype(np.float32) for c in range(count)]

        def work(part: slice) -> None:
            for c in range(count):
                samples = pixels[part, :, c]
                stable[part, :, c] = tables[c][samples] if self._clips else channel(samples, c)

        in_parts(work, stable)
        return stable

    def backward(self, result: Pixels, *before: Pixels) -> Pixels:
        """Return the means of the samples whose means, with white noise, these are."""
        output = np.empty(result.shape, self._dtype)
        channels = np.arange(min(len(self._scales), colour_count(result.shape[2])))

        def work(part: slice) -> None:
            # Some rows at a time, which stay in the cache.
            for first in range(part.start, part.stop, _ROWS):
                rows = slice(first, min(first + _ROWS, part.stop))
                samples = result[rows].astype(np.float64)
                restore(result[rows], samples, self._scales, self._tables, channels, self._linear)
                samples[..., : len(channels)] *= self._white
                if self._clips:
                    np.clip(np.rint(samples, out=samples), 0, self._white, out=samples)
                output[rows] = samples

        in_parts(work, result)
        return output


@functools.lru_cache(maxsize=16)
def _steps_for(model: NoiseModel, sigma: float, dtype: np.dtype[Any]) -> NoiseSteps | None:
    """Return always the same object: by it the engine knows that a picture is stable already."""
    return stabiliser(model.with_sigma(sigma), dtype)


def stabiliser(model: NoiseModel, dtype: np.dtype[Any]) -> Stabiliser | None:
    """Return the steps that make the noise of a camera white; None of other noise."""
    if model.kind is not NoiseKind.CAMERA or not 0 < model.sigma < math.inf:
        return None
    return Stabiliser(model, dtype)


@functools.lru_cache(maxsize=16)
def _whitening_steps_for(
    model: NoiseModel, sigma: float, dtype: np.dtype[Any]
) -> NoiseSteps | None:
    if model.spectra is not None and 0 < sigma < math.inf:
        return Whitener(model, dtype)
    return _steps_for(model, sigma, dtype)


@functools.lru_cache(maxsize=16)
def _careful_steps_for(model: NoiseModel, sigma: float, dtype: np.dtype[Any]) -> NoiseSteps | None:
    if model.spectra is not None and not model.whitens:
        return None
    return _whitening_steps_for(model, sigma, dtype)


@functools.lru_cache(maxsize=16)
def _all_steps_for(model: NoiseModel, sigma: float, dtype: np.dtype[Any]) -> NoiseSteps | None:
    unequal = max(model.sigmas) > _UNEQUAL * min(model.sigmas)
    if model.kind is NoiseKind.WHITE and unequal and 0 < sigma < math.inf:
        return Stabiliser(model.with_sigma(sigma), dtype)
    return _whitening_steps_for(model, sigma, dtype)


# For the declarations of filters ------------------------------------------------------

NOISE = ChoiceParameter(
    name="noise",
    label="Noise",
    symbol="noise",
    help="How the noise depends on the brightness and on its neighbours.",
    default="auto",
    choices=(
        Choice(
            "auto",
            "As the picture",
            "Which of these it is, or that of a JPEG file, is found from the picture: the right "
            "choice for nearly all. A notice says how sure that is.",
        ),
        Choice("white", "White", "The same everywhere."),
        Choice(
            "camera",
            "Camera",
            "Photons and read-out: variance a · mean + b, found from the picture. It is made "
            "equal before, and brought back after (Anscombe's transform). For raw files and linear "
            "pictures: the error of a JPEG is another, which *As the picture* finds.",
        ),
        Choice(
            "correlated",
            "Correlated",
            "Neighbours have noise in common, as after scaling or demosaicing: found as a "
            "spectrum.",
        ),
    ),
)
"""The parameter of a filter whose `FilterSpec.noise` is one of the `NoiseChoice`s below."""

MODEL = "noise_model"
"""Name of the `NoiseModel` among the parameters that `FilterSpec.resolve` gets."""


def _find(pixels: Pixels, noise: str, *, of_jpeg: bool = True) -> NoiseModel:
    return find_noise(pixels, None if noise == "auto" else NoiseKind(noise), of_jpeg=of_jpeg)


def _steps(
    steps_for: Callable[[NoiseModel, float, np.dtype[Any]], NoiseSteps | None],
    model: NoiseModel,
    parameters: Mapping[str, Any] | None,
    dtype: np.dtype[Any],
) -> NoiseSteps | None:
    if parameters and not parameters.get("strength", 1):
        return None  # every sample stays
    sigma = model.sigma
    if parameters and "sigma" in parameters:  # in percent of white
        sigma = parameters["sigma"] / 100
    return steps_for(model, sigma, dtype)


def _describe(model: NoiseModel, noise: str, white: float) -> str:
    """Return the noise that was found: sigma in percent of white, as it is set.

    It is in levels where it is a small share of many.
    """
    if noise != "auto":
        return ""
    if model.kind is NoiseKind.CAMERA:
        return model.describe(white)
    is_small = white > 255 and 0 < model.sigma < _SMALL_SHARE
    return model.describe(white, " levels") if is_small else model.describe(100, " % of the range")


_SMALL_SHARE = 1e-3  # of white: the slider for sigma begins there

NOISE_STEPS = NoiseChoice(
    parameter="noise",
    found="auto",
    white="white",
    camera=NoiseKind.CAMERA,
    key=MODEL,
    find=_find,
    steps=functools.partial(_steps, _steps_for),
    describe=_describe,
)
"""For a filter that knows a spectrum for each plane: see `with_spectra`."""

WHITENING_STEPS = replace(NOISE_STEPS, steps=functools.partial(_steps, _careful_steps_for))
"""For one that knows a single spectrum, that of noise that cannot be made white."""

ALL_STEPS = replace(
    NOISE_STEPS,
    find=functools.partial(_find, of_jpeg=False),
    steps=functools.partial(_steps, _all_steps_for),
)
"""For one that compares channels, too: their noise is made equal. The error of a JPEG file has next
to nothing in several frequencies, and cannot be made white: only its sigma counts."""


def estimate_sigma(pixels: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return the standard deviation of the noise in percent of white, by its model."""
    model: NoiseModel | None = parameters.get(MODEL)
    model = model or _find(pixels, parameters.get("noise", "auto"))
    if model.spectra is None or parameters["noise"] != NoiseKind.WHITE:
        return 100 * model.sigma
    # `Whitener` made it white. Texture may have been taken for noise of low frequencies.
    channels = range(pixels.shape[2])
    flat = math.sqrt(sum(flat_sigma(pixels[..., c : c + 1]) ** 2 for c in channels) / len(channels))
    return 100 * (flat if flat > model.sigma else math.sqrt(flat * model.sigma))


def with_spectra(source: Pixels, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the ``spectra`` of noise in the opponent planes, unless it is white and equal."""
    model = parameters.get(MODEL)
    if (
        model is None
        and parameters["noise"] == NoiseKind.CORRELATED
        and "spectra" not in parameters
    ):
        model = find_noise(source[..., : colour_count(source.shape[2])], NoiseKind.CORRELATED)
    if not isinstance(model, NoiseModel) or not model.sigma:
        return parameters
    if model.spectra is not None:
        return {**parameters, "spectra": model.spectra}
    if model.kind is NoiseKind.WHITE and not model.alike:
        powers = opponent_variances(np.square(model.sigmas)) / model.sigma**2
        return {**parameters, "spectra": np.broadcast_to(powers[:, None, None], (3, SIDE, SIDE))}
    return parameters
