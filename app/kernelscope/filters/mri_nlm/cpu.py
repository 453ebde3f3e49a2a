"""Non-local means of MRI volumes: T1w, T2w, PDw, ... of one head, denoised together.

Every voxel i becomes an average over the voxels j of the search window around it. Their
weights are exp(-D), where D is the mean, over the components c, of the mean squared
difference between the patches around i and j in units of ``2 beta sigma_c²``. Rician noise
adds 2 sigma² to the mean of the squares: there, squares are averaged and that is taken back.

*Extended coordinates* are those of the volume after `extend`, which mirrors it beyond its
border by the filter's reach.

Level *parallel* goes offset by offset through a tile, a few rows of a few slices: the squared
differences to the voxels at one offset are made once and summed up along x, y and z, each sum
shared by all patches. The rows of a slice are one long line, margins included, so that every
step is a loop over thousands of samples with nothing to decide; what comes out in the margins
is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.errors import InvalidImage, InvalidParameter
from kernelscope.filters.mri_nlm.cuda import GAPS, plan_mri_nlm, search_and_patch
from kernelscope.filters.mri_nlm.sigma import estimate_around, estimate_global, plan_local
from kernelscope.filters.mri_nlm.sigma_map import map_sigma, plan_map, sigmas_at
from kernelscope.filters.mri_nlm.strength import estimate_beta
from kernelscope.filters.shared.border_kernels import REFLECT, border_index
from kernelscope.filters.shared.non_local import add_weighted, fused, power_of_two
from kernelscope.filters.shared.plain import cell, no_simd, rolled
from kernelscope.jit import inlined, kernel
from kernelscope.parallel import in_parts
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import Cpu, CpuPass, FilterSpec, FilterTask
from kernelscope.spec.launch import Cuda
from kernelscope.spec.levels import GLOBAL, SERIAL, SHARED, TUNED
from kernelscope.spec.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    NumbersParameter,
    RadiiParameter,
)
from kernelscope.spec.samples import Kind, Pixels

_SLICES = 8
"""Slices of a tile: each offset needs those of a patch besides."""

_PLANE = 2048
"""About how many samples a tile has of each slice: what it works on fits into the caches."""

_ROWS = 4
"""Rows that a tile has at least, however long they are."""

_MAP_OFFSETS = 80
"""How many offsets of the search window take as long as a map of local sigmas, about."""

_FLOOR = 1e-6
"""Share of the largest voxel that sigma is raised to, so that nothing is divided by 0."""

_LEAST, _MOST = 1e-18, 1e15
"""Limits of sigma and of voxels: float32 holds their squares, and sums of those."""


_FLATTEST = 0.25
"""Share of the blocks of a head from which the noise is measured by which beta is estimated. What
is taken for noise is smoothed away, so that it matters more there than in the weights."""


class Reach(NamedTuple):
    """Radii along z, y and x; those along z are 0 in 2-D.

    Attributes
    ----------
    margin, search, patch : tuple of int
        Of the extended volume beyond the volume, of the search window, and of a patch.
    """

    margin: tuple[int, int, int]
    search: tuple[int, int, int]
    patch: tuple[int, int, int]


class Model(NamedTuple):
    """What the noise does.

    Attributes
    ----------
    sigmas : ndarray of float32, shape (components, depth, height, width) or (components, 1, 1, 1)
        Standard deviation, of each voxel or of all.
    strength : float32
        Makes squared differences, summed up over a patch, in units of sigma², what a component
        adds to D.
    rician : bool
    """

    sigmas: NDArray[np.float32]
    strength: np.float32
    rician: bool


class Scratch(NamedTuple):
    """What `compare` works in; all arrays are float32, lines of samples along the last axis.

    Attributes
    ----------
    squares, folded, partial, distances : ndarray, shape (samples,)
    boxes : ndarray, shape (groups, samples)
        Sums along x and y, of as many slices as a patch has. A group of components shares
        them: all components, or each has its own where sigma is local.
    strengths : ndarray, shape (components,)
        Makes squares binary logarithms of weights; 1 where sigma is local.
    local_strengths : ndarray, shape (groups, slices, samples)
        The same for each voxel; no groups unless sigma is local.
    sums : ndarray, shape (components + 1, slices, samples)
        Weights times voxels, or their squares, and last the weights.
    """

    squares: Any
    folded: Any
    partial: Any
    distances: Any
    boxes: Any
    strengths: Any
    local_strengths: Any
    sums: Any


@kernel
def extend(source: Any, extended: Any, margin: Any, start: Any, stop: Any) -> None:
    """Write slices `start` to `stop` of `extended` (components, slices, rows, columns)."""
    depth, height, width, components = source.shape
    for slice_ in range(start, stop):
        z = border_index(slice_ - margin[0], depth, REFLECT)
        for row in range(extended.shape[2]):
            y = border_index(row - margin[1], height, REFLECT)
            for column in range(extended.shape[3]):
                x = border_index(column - margin[2], width, REFLECT)
                for c in range(components):
                    extended[c, slice_, row, column] = source[z, y, x, c]


@kernel
def sigma_at(sigmas: Any, c: Any, z: Any, y: Any, x: Any) -> Any:
    """Return the sigma of a component at a voxel, or the only one there is."""
    _, depth, height, width = sigmas.shape
    return sigmas[c, min(z, depth - 1), min(y, height - 1), min(x, width - 1)]


@kernel
def settle_mean(mean: Any, sigma: Any, rician: Any) -> Any:
    """Return the result for a mean of voxels, or of their squares."""
    return np.sqrt(max(mean - 2 * sigma * sigma, 0)) if rician else mean


@inlined
def distance(samples: Any, here: Any, there: Any, plane: Any, pitch: Any, patch: Any) -> Any:
    """Return the sum of squared differences of two patches.

    Parameters
    ----------
    samples : ndarray of float32, one-dimensional
    here, there : int
        Places of the first cells of the patches.
    plane, pitch : int
        Samples from one slice to the next, and from one row.
    patch : tuple of int
        Radii along the axes.
    """
    no_simd()
    total = 0.0
    for s in range(2 * patch[0] + 1):
        for r in range(2 * patch[1] + 1):
            row = s * plane + r * pitch
            for t in range(2 * patch[2] + 1):
                rolled()
                difference = cell(samples, here + row + t) - cell(samples, there + row + t)
                total += difference * difference
    return total


@kernel
def nlm_serial(extended: Any, output: Any, reach: Any, model: Any, start: Any, stop: Any) -> None:
    """Plain loops: for voxels `start` to `stop`, every candidate and every cell of its patch."""
    no_simd()
    _, height, width, components = output.shape
    pitch = extended.shape[3]
    plane = extended.shape[2] * pitch
    block = extended.shape[1] * plane
    samples = extended.reshape(extended.size)
    # Patches begin their radii above, before and to the left of their voxel.
    corner = reach.patch[0] * plane + reach.patch[1] * pitch + reach.patch[2]
    strengths = np.empty(components)
    totals = np.empty(components)
    for voxel in range(start, stop):
        z = voxel // (height * width)
        y = voxel // width % height
        x = voxel % width
        zz, yy, xx = z + reach.margin[0], y + reach.margin[1], x + reach.margin[2]
        here = zz * plane + yy * pitch + xx
        for c in range(components):
            # Binary logarithms: Numba's exp has an older, slower interface to the C library.
            sigma = sigma_at(model.sigmas, c, z, y, x)
            strengths[c] = -math.log2(math.e) * model.strength / sigma**2
        totals[:] = 0
        weights = 0.0
        for dz in range(-reach.search[0], reach.search[0] + 1):
            for dy in range(-reach.search[1], reach.search[1] + 1):
                for dx in range(-reach.search[2], reach.search[2] + 1):
                    there = here + dz * plane + dy * pitch + dx
                    apart = strengths[0] * distance(
                        samples, here - corner, there - corner, plane, pitch, reach.patch
                    )
                    for c in range(1, components):
                        first = c * block - corner
                        apart += strengths[c] * distance(
                            samples, first + here, first + there, plane, pitch, reach.patch
                        )
                    weight = np.exp2(apart)
                    weights += weight
                    for c in range(components):
                        rolled()
                        value = cell(samples, c * block + there)
                        totals[c] += weight * (value * value if model.rician else value)
        for c in range(components):
            sigma = sigma_at(model.sigmas, c, z, y, x)
            output[z, y, x, c] = settle_mean(totals[c] / weights, sigma, model.rician)


@fused
def square_differences(own: Any, other: Any, strength: Any, squares: Any) -> None:
    """Write `strength` times (own - other)²."""
    for k in range(squares.size):
        difference = own[k] - other[k]
        squares[k] = strength * (difference * difference)


@fused
def add_square_differences(own: Any, other: Any, strength: Any, squares: Any) -> None:
    """Add `strength` times (own - other)²."""
    for k in range(squares.size):
        difference = own[k] - other[k]
        squares[k] += strength * (difference * difference)


@kernel
def fold(samples: Any, stride: Any, radius: Any, sums: Any) -> None:
    """Write to sums[k] the sum of samples[k], samples[k + stride], ...: ``2 radius + 1``."""
    if radius == 0:
        sums[:] = samples[: sums.size]
        return
    second, third = samples[stride:], samples[2 * stride :]
    for k in range(sums.size):
        sums[k] = samples[k] + second[k] + third[k]
    for more in range(3, 2 * radius + 1, 2):
        second, third = samples[more * stride :], samples[(more + 1) * stride :]
        for k in range(sums.size):
            sums[k] += second[k] + third[k]


@fused
def weigh(distances: Any, weights: Any) -> None:
    """Turn distances, binary logarithms of weights, into weights; add them to `weights`."""
    for k in range(distances.size):
        weight = power_of_two(distances[k])
        distances[k] = weight
        weights[k] += weight


@fused
def add_weighted_squares(weights: Any, samples: Any, sums: Any) -> None:
    """Add `weights` times the squares of `samples` to `sums`."""
    for k in range(weights.size):
        sums[k] += weights[k] * (samples[k] * samples[k])


@kernel
def compare(
    voxels: Any, place: Any, shift: Any, tile: Any, patch: Any, rician: Any, scratch: Any
) -> None:
    """Let the voxels of a tile count those at one offset from them.

    Parameters
    ----------
    voxels : ndarray of float32, shape (components, samples)
        The extended volume.
    place : tuple of int
        Index of the tile's first voxel; samples of an extended slice and of a row.
    shift : int
        Samples from a voxel to its partner.
    tile, patch : tuple of int
        Slices of the tile, and samples from the first voxel of one to the last; the radii of
        a patch.
    """
    first, plane, pitch = place
    slices, count = tile
    deep, high, half = patch
    components, groups = voxels.shape[0], scratch.boxes.shape[0]
    local = scratch.local_strengths.size > 0
    squares = scratch.squares[: count + 2 * (high * pitch + half)]
    folded = scratch.folded[: count + 2 * high * pitch]
    distances, partial = scratch.distances[:count], scratch.partial[:count]
    for z in range(-deep, slices + deep):
        corner = first + z * plane - high * pitch - half
        slot = z % (2 * deep + 1) * count
        for group in range(groups):
            own, other = voxels[group, corner:], voxels[group, corner + shift :]
            square_differences(own, other, scratch.strengths[group], squares)
            for c in range(1, 1 if local else components):
                own, other = voxels[c, corner:], voxels[c, corner + shift :]
                add_square_differences(own, other, scratch.strengths[c], squares)
            fold(squares, 1, half, folded)
            fold(folded, pitch, high, scratch.boxes[group, slot : slot + count])
        done = z - deep
        if done < 0:
            continue
        weights = scratch.sums[components, done]
        if local:
            distances[:] = 0
            for group in range(groups):
                fold(scratch.boxes[group], count, deep, partial)
                add_weighted(partial, scratch.local_strengths[group, done], distances)
        else:
            fold(scratch.boxes[0], count, deep, distances)
        weigh(distances, weights)
        candidates = first + done * plane + shift
        for c in range(components):
            if rician:
                add_weighted_squares(distances, voxels[c, candidates:], scratch.sums[c, done])
            else:
                add_weighted(distances, voxels[c, candidates:], scratch.sums[c, done])


@kernel
def nlm_tiles(
    extended: Any, output: Any, reach: Any, model: Any, tile: Any, start: Any, stop: Any
) -> None:
    """For tiles `start` to `stop`, of ``tile`` slices and rows: every offset, then the averages."""
    depth, height, width, components = output.shape
    pitch = extended.shape[3]
    plane = extended.shape[2] * pitch
    voxels = extended.reshape(components, extended.shape[1] * plane)
    deep, high, half = reach.patch
    longest = (tile[1] - 1) * pitch + width
    local = model.sigmas.size > components
    groups = components if local else 1
    scratch = Scratch(
        np.empty(longest + 2 * (high * pitch + half), np.float32),
        np.empty(longest + 2 * high * pitch, np.float32),
        np.empty(longest, np.float32),
        np.empty(longest, np.float32),
        np.empty((groups, (2 * deep + 1) * longest), np.float32),
        np.ones(components, np.float32),
        np.zeros((groups if local else 0, tile[0], longest), np.float32),
        np.empty((components + 1, tile[0], longest), np.float32),
    )
    strength = np.float32(-math.log2(math.e)) * model.strength
    if not local:
        scratch.strengths[:] = strength / model.sigmas[:, 0, 0, 0] ** 2
    across = -(-height // tile[1])
    for unit in range(start, stop):
        z_first, y_first = unit // across * tile[0], unit % across * tile[1]
        slices, rows = min(tile[0], depth - z_first), min(tile[1], height - y_first)
        if local:
            for c in range(components):
                for z in range(slices):
                    for y in range(rows):
                        for x in range(width):
                            sigma = model.sigmas[c, z_first + z, y_first + y, x]
                            scratch.local_strengths[c, z, y * pitch + x] = strength / sigma**2
        scratch.sums[:] = 0
        z, y = z_first + reach.margin[0], y_first + reach.margin[1]
        place = (z * plane + y * pitch + reach.margin[2], plane, pitch)
        size = (slices, (rows - 1) * pitch + width)
        for dz in range(-reach.search[0], reach.search[0] + 1):
            for dy in range(-reach.search[1], reach.search[1] + 1):
                for dx in range(-reach.search[2], reach.search[2] + 1):
                    shift = dz * plane + dy * pitch + dx
                    compare(voxels, place, shift, size, reach.patch, model.rician, scratch)
        for z in range(slices):
            for y in range(rows):
                for x in range(width):
                    sums = scratch.sums[:, z, y * pitch + x]
                    for c in range(components):
                        sigma = sigma_at(model.sigmas, c, z_first + z, y_first + y, x)
                        mean = sums[c] / sums[components]
                        output[z_first + z, y_first + y, x, c] = settle_mean(
                            mean, sigma, model.rician
                        )


def reach_of(parameters: Mapping[str, Any]) -> Reach:
    """Return the radii of a filter's search window and patches, and what it sees."""
    search, patch = search_and_patch(parameters)
    margin = [s + p for s, p in zip(search, patch, strict=True)]
    if parameters["sigma_from"] == "local":
        # A window's pseudo-residuals need one voxel more on each side; it is a cube.
        margin = [max(*margin, parameters["window_radius"] + 1)] * 3
    x, y, z = margin
    deep = parameters["dimensions"] == "3d"
    return Reach((z * deep, y, x), search[::-1], patch[::-1])


def radius(parameters: Mapping[str, Any]) -> int:
    return reach_of(parameters).margin[0]


def check(parameters: Mapping[str, Any]) -> None:
    if parameters["sigma_from"] == "given" and not parameters["sigma"]:
        raise InvalidParameter(
            "Sigma is to be given, but there is none.", "Write it, or let it be estimated."
        )


def least_sigmas(source: Pixels) -> tuple[float, ...]:
    """Return what sigmas of the components of `source` have to be at least."""

    def extremes(part: slice) -> NDArray[np.float32]:
        slices = source[part].reshape(len(source[part]), -1)  # long rows: NumPy is faster then
        return np.maximum(slices.max(axis=0), -slices.min(axis=0)).reshape(-1, source.shape[3])

    peaks = np.max([extreme.max(axis=0) for extreme in in_parts(extremes, source)], axis=0).tolist()
    if max(peaks) > _MOST:
        raise InvalidImage(
            f"A voxel of {max(peaks):g} is too large.", f"Scale the volume to less than {_MOST:g}."
        )
    return tuple(max(_FLOOR * peak, _LEAST) for peak in peaks)


def resolve(source: Pixels, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in ``sigma``, one for each component of `source`; it is never 0.

    Afterwards ``sigma_from`` is ``given``, or it is ``local`` and ``sigma`` says what a local
    sigma is at least; or it is ``adaptive``, ``sigma`` says the same, and there is a ``sigma_map``.
    """
    if "sigma_map" in parameters:
        return parameters
    components = source.shape[3]
    least = least_sigmas(source)
    if parameters["sigma_from"] == "adaptive":
        deep, rician = parameters["dimensions"] == "3d", parameters["noise"] == "rician"
        sigma_map = map_sigma(source, np.array(least), rician, deep)
        return {**parameters, "sigma": least, "sigma_map": sigma_map}
    if parameters["sigma_from"] == "local":
        return {**parameters, "sigma": least}
    if parameters["sigma_from"] == "volume":
        rician = parameters["noise"] == "rician"
        sigma = [estimate_global(source[..., c], rician) for c in range(components)]
    else:
        sigma = list(parameters["sigma"])
        if len(sigma) == 1:
            sigma *= components
        if len(sigma) != components:
            raise InvalidParameter(
                f"Sigma: {len(sigma)} numbers do not go with {components} "
                + ("volumes." if components > 1 else "volume."),
                "Write one for all volumes, or one for each.",
            )
    raised = tuple(max(pair) for pair in zip(sigma, least, strict=True))
    return {**parameters, "sigma_from": "given", "sigma": raised}


def suggest_beta(source: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return the ``beta`` of least estimated error; see `kernelscope.filters.mri_nlm.strength`."""
    components = source.shape[3]
    reach = reach_of(parameters)
    deep, rician = parameters["dimensions"] == "3d", parameters["noise"] == "rician"
    resolved = resolve(source, parameters)
    least = np.array(least_sigmas(source))

    def same(sigmas: Any) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        """Return what maps any places to these sigmas."""
        return lambda places: np.broadcast_to(np.asarray(sigmas, float), (len(places), components))

    if resolved["sigma_from"] == "given":
        noise_at = divisors_at = same(resolved["sigma"])
        if parameters["sigma_from"] == "volume":
            flat = [estimate_global(source[..., c], rician, _FLATTEST) for c in range(components)]
            noise_at = same(np.maximum(flat, least))
    else:
        sigma_map = resolved.get("sigma_map") or map_sigma(source, least, rician, deep)
        noise_at = divisors_at = partial(sigmas_at, sigma_map)
        if parameters["sigma_from"] == "local":
            window = parameters["window_radius"]
            divisors_at = partial(estimate_around, source, least, window, rician, deep)
    return estimate_beta(source, noise_at, divisors_at, reach.search, reach.patch, rician)


def estimates(given: Mapping[str, Any], resolved: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"sigma": resolved["sigma"]} if given["sigma_from"] == "volume" else {}


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    reach = reach_of(parameters)
    depth, height, width, components = source.shape
    sides = (n + 2 * margin for n, margin in zip(source.shape, reach.margin, strict=False))
    extended: NDArray[np.float32] = np.empty((components, *sides), np.float32)
    passes = [CpuPass(extend, (source, extended, reach.margin), extended.shape[1], cost=0)]
    rician = parameters["noise"] == "rician"
    offsets, cells = (
        math.prod(2 * radius + 1 for radius in radii) for radii in (reach.search, reach.patch)
    )
    if parameters["sigma_from"] == "adaptive":
        sigmas = np.empty((components, depth, height, width), np.float32)
        passes.append(replace(plan_map(parameters["sigma_map"], sigmas), cost=0))
    elif parameters["sigma_from"] == "local":
        least = np.array(parameters["sigma"])
        sigmas = np.empty((components, depth, height, width), np.float32)
        sigma_pass = plan_local(extended, sigmas, least, parameters["window_radius"], rician)
        passes.append(replace(sigma_pass, cost=_MAP_OFFSETS / offsets))
    else:
        sigmas = np.array(parameters["sigma"], np.float32).reshape(components, 1, 1, 1)
    strength = 1 / (2 * parameters["beta"] * components * cells)
    model = Model(sigmas, np.float32(strength), rician)
    if task.level == SERIAL.id:
        passes.append(CpuPass(nlm_serial, (extended, output, reach, model), output[..., 0].size))
    else:
        rows = min(height, max(_ROWS, _PLANE // extended.shape[3]))
        slices = min(depth, _SLICES)
        units = -(-depth // slices) * -(-height // rows)
        passes.append(CpuPass(nlm_tiles, (extended, output, reach, model, (slices, rows)), units))
    return passes


SPEC = FilterSpec(
    id="mri_nlm",
    name="MRI NLM",
    category="Denoising",
    kind=Kind.VOLUME,
    summary="Averages voxels that look alike in all volumes of a scan; knows the noise of MRI.",
    source="Salari, master's thesis, Kerman 2019; after Coupé et al. 2008 and Manjón et al. 2009",
    parameters=(
        ChoiceParameter(
            name="dimensions",
            label="Dimensions",
            help="Where patches and search windows extend.",
            default="3d",
            choices=(
                Choice("3d", "3-D", "Through slices too: finds more that looks alike."),
                Choice("2d", "2-D", "Within each slice: faster, and for thick slices."),
            ),
        ),
        RadiiParameter(
            name="search_radius",
            label="Search radius",
            help="How far the search window reaches from the voxel; thick slices want less along "
            "z: 5, 5, 2.",
            default=5,
            minimum=1,
            maximum=7,
            unit="voxels",
        ),
        RadiiParameter(
            name="patch_radius",
            label="Patch radius",
            help="How far the patches that are compared reach from their middle, on each axis.",
            default=1,
            minimum=1,
            maximum=5,
            unit="voxels",
        ),
        ChoiceParameter(
            name="noise",
            label="Noise",
            help="What the noise does to the mean.",
            default="rician",
            choices=(
                Choice(
                    "rician",
                    "Rician",
                    "It makes magnitude MRI brighter: that is taken back.",
                    switch="rician",
                ),
                Choice("gaussian", "Gaussian", "Nothing.", switch="gaussian"),
            ),
        ),
        ChoiceParameter(
            name="sigma_from",
            label="Sigma from",
            help="How much noise there is.",
            default="volume",
            choices=(
                Choice("volume", "Volume", "Estimated, one sigma for each volume."),
                Choice(
                    "adaptive",
                    "Smooth map",
                    "Estimated everywhere from many voxels around: noise may vary over the head.",
                    switch="adaptive",
                ),
                Choice(
                    "local",
                    "Window",
                    "Estimated from 27 or 125 voxels, as source V has it: the estimate is noisy.",
                ),
                Choice("given", "Numbers", "As written."),
            ),
        ),
        NumbersParameter(
            name="sigma",
            label="Sigma",
            help="Standard deviation of the noise in units of the voxels: one for all volumes, "
            "or one for each.",
            minimum=0.0,
            maximum=_MOST,
            most=4,
            none="estimated",
            implies={"sigma_from": "given"},
            matters=lambda parameters: parameters["sigma_from"] == "given",
        ),
        IntParameter(
            name="window_radius",
            label="Window radius",
            help="How far the window reaches in which noise is estimated.",
            default=2,
            minimum=1,
            maximum=2,
            unit="voxels",
            matters=lambda parameters: parameters["sigma_from"] == "local",
        ),
        FloatParameter(
            name="beta",
            label="Beta",
            help="Strength: more smooths more. Source V has 1.",
            default=1.0,
            minimum=0.1,
            maximum=4.0,
            step=0.1,
            decimals=4,
            estimate=suggest_beta,
            estimated=True,
            formerly={1: 1.0},
        ),
    ),
    radius=radius,
    implementations={
        "cpu": Cpu(plan_cpu),
        "gpu": Cuda(plan_mri_nlm, (GLOBAL, SHARED, TUNED), GAPS),
    },
    borders=(Border.REFLECT,),
    check=check,
    resolve=resolve,
    estimates=estimates,
)
