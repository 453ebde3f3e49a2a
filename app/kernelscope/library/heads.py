"""Heads whose truth is known, and the noise of scanners, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelscope.base.errors import InvalidParameter, OutOfMemory, naming
from kernelscope.images.phantom import Contrast, add_noise, head
from kernelscope.images.phantom import ScannerNoise as Kind
from kernelscope.images.volume import check_shape
from kernelscope.library.arguments import check_choice, number_of
from kernelscope.library.arrays import host_array

_WEIGHTINGS = {contrast.removesuffix("w").lower(): contrast for contrast in Contrast}

_MOST_SEED = 2**63


def phantom(
    shape: int | Sequence[int] = (181, 217, 181),
    weighting: Literal["t1", "t2", "pd"] = "t1",
    *,
    voxel: float | Sequence[float] | None = None,
    shading: float = 0.0,
) -> NDArray[np.float32]:
    """Return a head of ellipsoids with the contrast of MRI, without noise.

    Parameters
    ----------
    shape : int or sequence of int, default (181, 217, 181)
        Depth, height and width in voxels; one number for all three.
    weighting : {'t1', 't2', 'pd'}, default 't1'
        Contrast of the scan.
    voxel : float or sequence of float, optional
        Size of a voxel along z, y and x in millimetres: the head has its natural size then, and
        parts outside of the volume are cut off. By default the head fills the volume.
    shading : float, default 0.0
        By which share of itself, at most, the signal varies smoothly over the head; 0 to 1.

    Returns
    -------
    ndarray of float32, shape (depth, height, width)
        Signals from 0 to 255.

    Raises
    ------
    InvalidParameter
        For a value out of range; the message names the argument.
    OutOfMemory
        If there is not enough memory for it.
    """
    with naming("phantom(): "):
        check_choice("weighting", weighting, list(_WEIGHTINGS))
        sides = tuple(int(side) for side in _three("shape", shape, whole=True))
        check_shape(sides, "shape")
        spacing = None if voxel is None else _three("voxel", voxel)
        contrast = _WEIGHTINGS[weighting]
        share = number_of("shading", shading)
        try:
            made = head(sides, [contrast], shading=share, voxel=spacing)  # type: ignore[arg-type]
        except MemoryError:
            raise OutOfMemory(
                "There is not enough memory for a phantom of this shape.", "Use a smaller one."
            ) from None
    return made.truth[contrast]


def noise(
    volume: ArrayLike,
    kind: Literal["gaussian", "uniform", "rician", "varying-rician"] = "rician",
    *,
    sigma: float = 20.0,
    seed: int = 0,
) -> NDArray[np.float32]:
    """Return a volume with the noise of a scanner.

    For noise on pictures there are the functions `gaussian_noise`, `rician_noise`,
    `poisson_noise`, `speckle_noise` and `salt_and_pepper_noise`.

    Parameters
    ----------
    volume : array_like, shape (depth, height, width)
        Without noise, for instance from `phantom`.
    kind : {'gaussian', 'uniform', 'rician', 'varying-rician'}, default 'rician'
        'varying-rician' is three times as strong in the middle as at the corners.
    sigma : float, default 20.0
        Standard deviation in the units of the volume; of Rician noise that of the real and the
        imaginary part.
    seed : int, default 0
        The same seed gives the same noise.

    Returns
    -------
    ndarray of float32, shape (depth, height, width)

    Raises
    ------
    AppError
        For an array that is no volume, or a value out of range; the message names the argument.
    """
    with naming("noise(): "):
        check_choice("kind", kind, [each.value for each in Kind])
        strength = number_of("sigma", sigma)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise InvalidParameter(f"seed: {seed!r} is not a whole number.", "Use 0 or more.")
        if not 0 <= seed < _MOST_SEED:
            raise InvalidParameter(f"seed: {seed} is out of range.", "Use 0 or more.")
        truth = host_array(volume, "volume")
        check_shape(truth.shape, "volume")
        return add_noise(truth.astype(np.float32, copy=False), kind, strength, int(seed)).voxels


def _three(name: str, value: Any, *, whole: bool = False) -> tuple[float, float, float]:
    """Return one number three times, or three numbers."""
    numbers = (value,) * 3 if isinstance(value, int | float | np.number) else value
    try:
        z, y, x = numbers
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"{name}: {value!r} is neither one number nor three.",
            "Give them along z, y and x.",
        ) from None
    found = number_of(name, z), number_of(name, y), number_of(name, x)
    if whole and not all(number.is_integer() for number in found):
        raise InvalidParameter(f"{name}: {value!r} are not whole numbers.", "Use 1 or more.")
    return found
