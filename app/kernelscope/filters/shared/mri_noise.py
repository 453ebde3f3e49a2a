"""The noise of MRI: the parameters that describe it, and their values for a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.base.parallel import in_parts
from kernelscope.base.remembered import remembered
from kernelscope.filters.shared.mri_sigma import (
    FLATTEST,
    FLATTEST_FOR_BETA,
    estimate_component,
    estimate_local,
    estimates_by_share,
)
from kernelscope.filters.shared.mri_sigma_map import estimate_smooth, map_sigma
from kernelscope.filters.shared.noise_model import NoiseKind
from kernelscope.filters.shared.stack_noise import NOISE_STEPS, find_noises, in_words
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop
from kernelscope.schema.filter import Diagnostic, FilterSpec, Unit
from kernelscope.schema.parameters import Choice, ChoiceParameter, NumbersParameter
from kernelscope.schema.samples import ENDS, Components, Kind, Pixels, whole

NOISE = ChoiceParameter(
    name="noise",
    label="Noise",
    help="Distribution of the noise, which decides on its bias.",
    default="auto",
    choices=(
        Choice(
            "auto",
            "As the data",
            "Rician; Gaussian where a voxel is negative, which a magnitude never is. For files "
            "of a microscope that of a camera, if it is found, or Gaussian.",
        ),
        Choice(
            "rician",
            "Rician",
            "That of magnitude MRI: it brightens weak signals. This bias is removed.",
            switch="rician",
        ),
        Choice("gaussian", "Gaussian", "It has no bias.", switch="gaussian"),
        Choice(
            NoiseKind.CAMERA.value,
            "Camera",
            "Photons and read-out: variance gain · level + offset, found from the volume. It is "
            "made equal before, and brought back after (Anscombe's transform).",
        ),
    ),
)


def sigma_from(*more: Choice) -> ChoiceParameter:
    """Return the parameter for the source of sigma, with `more` choices than all filters have."""
    return ChoiceParameter(
        name="sigma_from",
        label="Sigma from",
        symbol="σ from",
        help="How much noise there is.",
        default="volume",
        choices=(
            Choice("volume", "Volume", "Estimated, one sigma for each volume."),
            Choice(
                "adaptive",
                "Smooth map",
                "A sigma for each voxel from many around it: noise that varies in space, as after "
                "parallel imaging.",
                switch="adaptive",
            ),
            *more,
            Choice("given", "Numbers", "As written."),
        ),
    )


SIGMA = NumbersParameter(
    name="sigma",
    label="Sigma",
    symbol="σ",
    help="Standard deviation of the noise in units of the voxels: one for all volumes, "
    "or one for each.",
    minimum=0.0,
    maximum=float(np.finfo(np.float32).max),
    most=4,
    none="estimated",
    of_samples=True,
    implies={"sigma_from": "given"},
    matters=lambda parameters: parameters["sigma_from"] == "given",
)

_FLOOR = 1e-6
"""Sigma is raised to this share of the largest voxel, so that nothing is divided by 0."""

LEAST, MOST = 1e-18, 1e15
"""Limits of sigma and of voxels: float32 holds their squares, and sums of those."""


def check(parameters: Mapping[str, Any]) -> None:
    if parameters["sigma_from"] == "given" and not parameters["sigma"]:
        raise InvalidParameter(
            "Sigma is set to “Numbers”, but no value was given.",
            "Enter one, or choose an estimate.",
        )


def is_rician(source: Pixels | Components, parameters: Mapping[str, Any]) -> bool:
    """Return whether the noise is Rician: if nothing else is chosen, where no voxel is negative.

    Raises `InvalidParameter` if Rician noise is chosen for negative voxels: their squares would
    lose the sign.
    """
    if parameters["noise"] in ("gaussian", NoiseKind.CAMERA):
        return False
    negative = _lowest(source) < 0
    if negative and parameters["noise"] == "rician":
        lowest = _lowest(source)
        raise InvalidParameter(
            f"Noise: Rician noise is that of magnitudes, and voxels go down to {lowest:g}.",
            "Choose “As the data” (noise=auto) or Gaussian.",
        )
    return not negative


def _lowest(source: Pixels | Components) -> float:
    """Return the smallest voxel of all components."""
    if isinstance(source, Components):
        signed = [n for n, part in enumerate(source.parts) if part.dtype.kind != "u"]
        return min((source.ends(number)[0] for number in signed), default=0.0)
    return min(low for low, _ in _ends(source))


def least_sigmas(source: Pixels | Components) -> tuple[float, ...]:
    """Return the smallest sigmas allowed for the components of `source`."""
    if isinstance(source, Components):
        return _least([_peak(source, number) for number in range(len(source.parts))])
    return _least([max(high, -low) for low, high in _ends(source)])


def _peak(source: Components, number: int) -> float:
    """Return the largest magnitude of a component."""
    part = source.parts[number]

    def find() -> float:
        quick = source.peak(number)
        low, high = source.ends(number) if quick is None else (0.0, quick)
        return float(max(high, -low))

    return remembered(part, "peak", find)


def _ends(source: Pixels) -> list[tuple[float, float]]:
    """Return the smallest and the largest voxel of each component."""
    return remembered(source, ENDS, partial(_ends_of, source))


def _ends_of(source: Pixels) -> list[tuple[float, float]]:
    def ends(part: slice) -> NDArray[np.float32]:
        slices = source[part].reshape(len(source[part]), -1)  # long rows: NumPy is faster then
        both = np.stack([slices.min(axis=0), slices.max(axis=0)]).astype(np.float32)
        each = both.reshape(2, -1, source.shape[3] if source.ndim == 4 else 1)
        return np.stack([each[0].min(axis=0), each[1].max(axis=0)])

    found = np.stack(in_parts(ends, source))
    lows, highs = found[:, 0].min(axis=0), found[:, 1].max(axis=0)
    return list(zip(lows.tolist(), highs.tolist(), strict=True))


def _least(peaks: Sequence[float]) -> tuple[float, ...]:
    if max(peaks) > MOST:
        raise InvalidImage(
            f"A voxel of {max(peaks):g} is too large.", f"Scale the volume to less than {MOST:g}."
        )
    return tuple(max(_FLOOR * peak, LEAST) for peak in peaks)


def resolve(source: Pixels | Components, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in ``noise`` and ``sigma``, one for each component of `source`; it is never 0.

    Afterwards ``sigma_from`` is ``given``; or it is ``local``, and ``sigma`` is the lower limit of
    local sigmas; or it is ``adaptive``, with that limit and a ``sigma_map``.
    """
    components = source.shape[3]
    rician = is_rician(source, parameters)  # before the peaks, which it may find by the way
    least = least_sigmas(source)
    parameters = {**parameters, "noise": "rician" if rician else "gaussian"}
    if parameters["sigma_from"] == "adaptive":
        return {**measure(whole(source), parameters, least), **parameters, "sigma": least}
    if parameters["sigma_from"] == "local":
        return {**parameters, "sigma": least}
    if parameters["sigma_from"] == "volume":
        sigma = _global_sigmas(source, rician)
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
    bounded = tuple(min(max(pair), MOST) for pair in zip(sigma, least, strict=True))
    return {**parameters, "sigma_from": "given", "sigma": bounded}


def _global_sigmas(source: Pixels | Components, rician: bool) -> list[float]:
    """Return the sigma of each component, estimated once."""
    if isinstance(source, Components):
        name = "sigma", rician
        return [
            remembered(part, name, partial(estimate_component, source, number, rician))
            for number, part in enumerate(source.parts)
        ]
    return [sigma for sigma, _ in weights_and_strength(source, rician)]


def weights_and_strength(source: Pixels, rician: bool) -> list[list[float]]:
    """Return the sigma for weights and that for their strength of each component.

    Once for both: their blocks are the same, and so is the air.
    """

    def find() -> list[list[float]]:
        parts = np.moveaxis(source, 3, 0)
        return [estimates_by_share(part, rician, FLATTEST, FLATTEST_FOR_BETA) for part in parts]

    return remembered(source, ("sigmas", rician), find)


def measure(
    source: Pixels, parameters: Mapping[str, Any], least: tuple[float, ...] | None = None
) -> Mapping[str, Any]:
    """Return the ``sigma_map`` of adaptive sigma, unless it comes with the parameters."""
    if parameters["sigma_from"] != "adaptive" or "sigma_map" in parameters:
        return {}
    deep, rician = parameters["dimensions"] == "3d", is_rician(source, parameters)
    floor = np.array(least_sigmas(source) if least is None else least)
    return {"sigma_map": map_sigma(source, floor, rician, deep)}


def estimates(given: Mapping[str, Any], resolved: Mapping[str, Any]) -> Mapping[str, Any]:
    noise = {"noise": resolved["noise"]} if given["noise"] == "auto" else {}
    sigma = {"sigma": resolved["sigma"]} if given["sigma_from"] == "volume" else {}
    return noise | sigma


def map_settings(
    parameters: Mapping[str, Any], microscope: bool
) -> tuple[int | None, str, bool, bool]:
    """Return the values that a map of the noise depends on: window radius, noise, whether photons
    are looked for, and 3-D.

    There is no window unless the filter itself works with sigmas of windows.
    """
    window = parameters["window_radius"] if parameters["sigma_from"] == "local" else None
    noise = parameters["noise"]
    photons = noise == NoiseKind.CAMERA or (noise == "auto" and microscope)
    return window, noise, photons, parameters["dimensions"] == "3d"


def map_noise(voxels: Pixels, settings: tuple[Any, ...]) -> tuple[Pixels, str]:
    """Return sigma around each voxel, and its model and source."""
    window, noise, photons, deep = settings
    if photons:
        found = find_noises([voxels], noise)
        if found is not None and found[0].is_photons:
            around = "3×3×3" if deep else "3×3"
            words = f"{in_words(found)}; sigma at the mean of {around} voxels"
            return found[0].sigmas_around(voxels, deep), words
        noise = "gaussian"
    rician = is_rician(voxels, {"noise": noise})
    kind = f"{'Rician' if rician else 'Gaussian'} sigma around each voxel"
    if window is None:
        return estimate_smooth(voxels, rician, deep), f"{kind}, smooth map"
    return estimate_local(voxels, window, rician, deep), f"{kind}, window radius {window}"


NOISE_MAP = Diagnostic(name="Noise", settings=map_settings, compute=map_noise)

VolumeSpec = partial(
    FilterSpec,
    category="Denoising",
    kind=Kind.VOLUME,
    unit=Unit.SQUARES,
    borders=(Border.REFLECT,),
    crop=Crop(boxes=True),
    check=check,
    resolve=resolve,
    noise=NOISE_STEPS,
    estimates=estimates,
    measure=measure,
    diagnostic=NOISE_MAP,
)
"""A `FilterSpec` with the fields that all denoisers of volumes share."""
