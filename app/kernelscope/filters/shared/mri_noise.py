"""The noise of MRI: the parameters that describe it, and their values for a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.base.parallel import in_parts
from kernelscope.filters.shared.mri_sigma import (
    estimate_component,
    estimate_global,
    estimate_local,
)
from kernelscope.filters.shared.mri_sigma_map import estimate_smooth, map_sigma
from kernelscope.filters.shared.remembered import remembered
from kernelscope.schema.filter import Diagnostic
from kernelscope.schema.parameters import Choice, ChoiceParameter, NumbersParameter
from kernelscope.schema.samples import Components, Pixels, whole

NOISE = ChoiceParameter(
    name="noise",
    label="Noise",
    help="Effect of the noise on the mean.",
    default="auto",
    choices=(
        Choice(
            "auto",
            "As the data",
            "Rician; Gaussian where a voxel is negative, which a magnitude never is, and "
            "for files of a microscope.",
        ),
        Choice(
            "rician",
            "Rician",
            "It brightens magnitude MRI, which is corrected.",
            switch="rician",
        ),
        Choice("gaussian", "Gaussian", "None.", switch="gaussian"),
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
                "Estimated everywhere from many voxels around: noise may vary over the head.",
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

    Raises
    ------
    InvalidParameter
        If Rician noise is chosen for negative voxels: their squares would lose the sign.
    """
    if parameters["noise"] == "gaussian":
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
        return min(remembered(part, "lowest", partial(_lowest_of, part)) for part in source.parts)
    return remembered(source, "lowest", partial(_lowest_of, source))


def _lowest_of(voxels: Pixels) -> float:
    if voxels.dtype.kind == "u":
        return 0.0
    return min(in_parts(lambda part: min(float(each.min()) for each in voxels[part]), voxels))


def least_sigmas(source: Pixels | Components) -> tuple[float, ...]:
    """Return the smallest sigmas allowed for the components of `source`."""
    if isinstance(source, Components):
        numbers = range(len(source.parts))
        return _least(
            [remembered(source.parts[n], "peak", partial(_peak, source, n)) for n in numbers]
        )
    return remembered(source, "least sigmas", lambda: _least(_peaks(source)))


def _peak(source: Components, number: int) -> float:
    quick = source.peak(number)
    if quick is not None:
        return quick
    volume = source.parts[number]

    def largest(part: slice) -> float:
        # A slice at a time, which is read from memory once.
        return max(max(float(each.max()), -float(each.min())) for each in volume[part])

    return max(in_parts(largest, volume))


def _peaks(source: Pixels) -> list[float]:
    """Return the largest magnitude of each component."""

    def extremes(part: slice) -> NDArray[np.float32]:
        slices = source[part].reshape(len(source[part]), -1)  # long rows: NumPy is faster then
        low = slices.min(axis=0).astype(np.float32)
        return np.maximum(slices.max(axis=0), -low).reshape(-1, source.shape[3])

    found = np.max([extreme.max(axis=0) for extreme in in_parts(extremes, source)], axis=0)
    peaks: list[float] = found.tolist()
    return peaks


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
    least = least_sigmas(source)
    rician = is_rician(source, parameters)
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
    raised = tuple(max(pair) for pair in zip(sigma, least, strict=True))
    return {**parameters, "sigma_from": "given", "sigma": raised}


def _global_sigmas(source: Pixels | Components, rician: bool) -> list[float]:
    """Return the sigma of each component, estimated once."""
    name = "sigma", rician
    if isinstance(source, Components):
        return [
            remembered(part, name, partial(estimate_component, source, number, rician))
            for number, part in enumerate(source.parts)
        ]
    each = range(source.shape[3])
    return remembered(source, name, lambda: [estimate_global(source[..., c], rician) for c in each])


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
    unexpected = given["noise"] == "auto" and resolved["noise"] != "rician"
    noise = {"noise": resolved["noise"]} if unexpected else {}
    sigma = {"sigma": resolved["sigma"]} if given["sigma_from"] == "volume" else {}
    return noise | sigma


def map_settings(parameters: Mapping[str, Any]) -> tuple[int | None, str, bool]:
    """Return the values that a map of the noise depends on: window radius, noise, and 3-D.

    There is no window unless the filter itself works with sigmas of windows.
    """
    window = parameters["window_radius"] if parameters["sigma_from"] == "local" else None
    return window, parameters["noise"], parameters["dimensions"] == "3d"


def map_noise(voxels: Pixels, settings: tuple[Any, ...]) -> Pixels:
    """Return sigma around each voxel."""
    window, noise, deep = settings
    rician = is_rician(voxels, {"noise": noise})
    if window is None:
        return estimate_smooth(voxels, rician, deep)
    return estimate_local(voxels, window, rician, deep)


def describe_map(settings: tuple[Any, ...]) -> str:
    window, noise, _ = settings
    kind = {"auto": "", "rician": "Rician ", "gaussian": "Gaussian "}[noise]
    where = "smooth map" if window is None else f"window radius {window}"
    return f"{kind}sigma around each voxel, {where}"


NOISE_MAP = Diagnostic(
    name="Noise", settings=map_settings, compute=map_noise, describe=describe_map
)
