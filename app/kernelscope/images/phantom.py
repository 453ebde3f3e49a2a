"""A head whose truth is known: MRI volumes of ellipsoids, and the noise of scanners.

The ellipsoids follow the idea of Shepp and Logan (IEEE Transactions on Nuclear Science 21,
1974): each replaces those below it. The brightness of a tissue is not chosen but
computed, from its relaxation times and proton density and from the sequences with which
BrainWeb simulates its heads (Kwan, Evans and Pike, IEEE Transactions on Medical Imaging 18,
1999; the table is BrainWeb's, for 1.5 T).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.parallel import on_cores

BRIGHTEST = 255.0  # the signal of the brightest tissue in every contrast, before shading

SIZE = (181.0, 217.0, 181.0)
"""Of the head in millimetres along z, y and x, with the air around it, where voxels have a size."""

Shape = tuple[int, int, int]
Voxel = tuple[float, float, float]


def affine(voxel: Voxel | None = None) -> NDArray[np.float64]:
    """Return that of a head, as in `Volume`: x runs to the patient's right, y to the back.

    - `voxel`: size along z, y and x in millimetres; by default 1.
    """
    z, y, x = voxel or (1.0, 1.0, 1.0)
    return np.diag([x, -y, z, 1.0])


class Tissue(IntEnum):
    """The main tissue of a voxel of `Phantom.labels`."""

    BACKGROUND = 0
    CSF = 1
    GREY = 2
    WHITE = 3
    SCALP = 4
    SKULL = 5
    LESION = 6


class Contrast(StrEnum):
    T1W = "T1w"
    T2W = "T2w"
    PDW = "PDw"


class ScannerNoise(StrEnum):
    GAUSSIAN = "gaussian"
    UNIFORM = "uniform"
    RICIAN = "rician"
    VARYING_RICIAN = "varying-rician"


@dataclass(frozen=True)
class Phantom:
    """A head without noise: the `Tissue` of each voxel, and the signals, 0 to `BRIGHTEST`."""

    labels: NDArray[np.uint8]
    truth: dict[Contrast, NDArray[np.float32]]


class Noisy(NamedTuple):
    """A volume with noise, and the standard deviation of the noise at each voxel.

    Of Rician noise, that is the standard deviation of the real and of the imaginary part.
    """

    voxels: NDArray[np.float32]
    sigma: NDArray[np.float32]


class _Magnetism(NamedTuple):
    """Relaxation times in milliseconds and relative proton density."""

    t1: float
    t2: float
    t2_star: float
    density: float


_MAGNETISM = {
    Tissue.CSF: _Magnetism(2569, 329, 58, 1.0),
    Tissue.GREY: _Magnetism(833, 83, 69, 0.86),
    Tissue.WHITE: _Magnetism(500, 70, 61, 0.77),
    Tissue.SCALP: _Magnetism(350, 70, 58, 1.0),  # fat
    Tissue.LESION: _Magnetism(752, 237, 204, 0.76),  # multiple sclerosis
}
"""Background and skull give no signal."""


@dataclass(frozen=True)
class _Ellipsoid:
    """A body in coordinates from -1 to 1 along each axis of the volume."""

    tissue: Tissue
    # Along x (to the side), y (front to back) and z (up).
    centre: tuple[float, float, float]
    radii: tuple[float, float, float]
    angle: float = 0.0  # degrees by which it is turned in the plane of a slice

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """Takes offsets from the centre to where the body is the unit ball."""
        cosine, sine = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        turn = np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])
        return np.asarray(turn / np.array(self.radii)[:, None])

    @cached_property
    def reach(self) -> NDArray[np.float64]:
        """How far it extends from its centre along x, y and z."""
        return np.asarray(np.linalg.norm(np.linalg.inv(self.matrix), axis=1))


def _pair(
    tissue: Tissue,
    centre: tuple[float, float, float],
    radii: tuple[float, float, float],
    angle: float = 0.0,
) -> tuple[_Ellipsoid, _Ellipsoid]:
    """Return a body on the right and its mirror image on the left."""
    x, y, z = centre
    return (
        _Ellipsoid(tissue, (x, y, z), radii, angle),
        _Ellipsoid(tissue, (-x, y, z), radii, -angle),
    )


_HEAD = (
    _Ellipsoid(Tissue.SCALP, (0, 0, 0), (0.80, 0.95, 0.93)),
    _Ellipsoid(Tissue.SKULL, (0, 0, 0), (0.75, 0.90, 0.88)),
    _Ellipsoid(Tissue.CSF, (0, 0, 0), (0.69, 0.84, 0.82)),
    _Ellipsoid(Tissue.GREY, (0, 0, 0.07), (0.65, 0.80, 0.71)),
    _Ellipsoid(Tissue.CSF, (0, 0, 0.30), (0.022, 0.66, 0.50)),
    *_pair(Tissue.WHITE, (0.30, 0, 0.12), (0.25, 0.67, 0.54), 3),
    # Folds of the cortex, and the bridge between the halves.
    *_pair(Tissue.GREY, (0.44, -0.42, 0.20), (0.09, 0.03, 0.30), 35),
    *_pair(Tissue.GREY, (0.48, -0.10, 0.20), (0.10, 0.025, 0.32), -10),
    *_pair(Tissue.GREY, (0.46, 0.22, 0.20), (0.10, 0.03, 0.28), -25),
    *_pair(Tissue.GREY, (0.38, 0.46, 0.18), (0.03, 0.12, 0.24), 20),
    _Ellipsoid(Tissue.WHITE, (0, -0.02, 0.22), (0.20, 0.30, 0.06)),
    # Cerebellum and brain stem.
    *_pair(Tissue.GREY, (0.22, 0.42, -0.50), (0.24, 0.26, 0.17), -20),
    *_pair(Tissue.WHITE, (0.20, 0.40, -0.50), (0.14, 0.14, 0.08), -20),
    _Ellipsoid(Tissue.WHITE, (0, 0.14, -0.48), (0.11, 0.12, 0.30)),
    # Ventricles, and the nuclei next to them.
    *_pair(Tissue.CSF, (0.10, -0.10, 0.14), (0.055, 0.26, 0.10), -14),
    *_pair(Tissue.CSF, (0.20, 0.22, 0.06), (0.05, 0.17, 0.08), 24),
    _Ellipsoid(Tissue.CSF, (0, 0.02, -0.02), (0.02, 0.12, 0.10)),
    *_pair(Tissue.GREY, (0.12, 0.06, 0.00), (0.08, 0.13, 0.09), -20),
    *_pair(Tissue.GREY, (0.24, -0.14, 0.02), (0.07, 0.18, 0.11), -12),
    # Lesions from large to tiny, on one side only.
    _Ellipsoid(Tissue.LESION, (0.34, 0.34, 0.26), (0.070, 0.090, 0.090), 30),
    _Ellipsoid(Tissue.LESION, (0.30, -0.38, 0.28), (0.045, 0.055, 0.060)),
    _Ellipsoid(Tissue.LESION, (0.26, 0.08, 0.36), (0.030, 0.030, 0.040)),
    _Ellipsoid(Tissue.LESION, (0.34, -0.24, 0.36), (0.018, 0.018, 0.025)),
)
"""From the outside in: each replaces those below it."""


def head(
    shape: Shape,
    contrasts: Sequence[Contrast | str] = tuple(Contrast),
    *,
    shading: float = 0.0,
    voxel: Voxel | None = None,
) -> Phantom:
    """Return a head without noise, that fills a volume or is as large as a head is.

    Where tissues meet inside a voxel their signals mix linearly: an ellipsoid's share of a
    voxel falls from 1 to 0 over one voxel across its surface.

    - `shape`: depth, height and width in voxels.
    - `contrasts`: which volumes to make.
    - `shading`: by which share of itself, at most, the signal varies smoothly over the head, as the
      sensitivity of coils makes it; 0 to 1.
    - `voxel`: size of a voxel along z, y and x in millimetres. The head has `SIZE` then, in the
      middle of the volume, which may cut it off. By default it fills the volume.

    Raises `InvalidParameter` if a side or a voxel's size is not positive, a contrast is unknown, or
    the shading out of range.
    """
    _check_shape(shape)
    if voxel is not None and not all(0 < side < np.inf for side in voxel):
        raise InvalidParameter(f"A voxel of {voxel} mm has no size.", "Use more than 0 mm.")
    wanted = [_member(Contrast, contrast) for contrast in contrasts]
    if not 0 <= shading <= 1:
        raise InvalidParameter(f"A shading of {shading} is out of range.", "Use 0 to 1.")
    labels = np.zeros(shape, np.uint8)
    signals = np.array([tissue_signals(contrast) for contrast in wanted], np.float32)
    truth = {contrast: np.zeros(shape, np.float32) for contrast in wanted}
    extents = [1.0, 1.0, 1.0]  # of the volume, in heads
    if voxel is not None:
        extents = [n * side / head for n, side, head in zip(shape, voxel, SIZE, strict=True)]
    axes = tuple(_coordinates(side, extent) for side, extent in zip(shape, extents, strict=True))
    steps = [2 * extent / side for side, extent in zip(shape, extents, strict=True)]

    def fill(z: int) -> None:
        planes = [truth[contrast][z] for contrast in wanted]
        for body in _HEAD:
            _paint(body, axes, steps, z, labels[z], planes, signals)
        if shading:
            for plane in planes:
                plane *= _shade(axes, z, shading)

    on_cores(fill, range(shape[0]))
    return Phantom(labels, truth)


def add_noise(
    truth: NDArray[np.float32], kind: ScannerNoise | str, sigma: float, seed: int = 0
) -> Noisy:
    """Add the noise of a scanner.

    Gaussian and uniform noise have standard deviation `sigma`. Rician noise is the
    magnitude of a complex signal with Gaussian noise of `sigma` in both parts (Gudbjartsson
    and Patz, Magnetic Resonance in Medicine 34, 1995). Varying Rician noise rises smoothly
    from `sigma` at the corners to three times that in the middle, as parallel imaging makes
    it (the model of Manjón et al., Journal of Magnetic Resonance Imaging 31, 2010).

    - `truth`: float32, shape (depth, height, width).
    - `sigma`: in the units of `truth`, not negative.
    - `seed`: the same seed gives the same noise.

    Raises `InvalidParameter` if the kind is unknown or `sigma` negative or not finite.
    """
    kind = _member(ScannerNoise, kind)
    if not 0 <= sigma < np.inf:
        raise InvalidParameter(f"A sigma of {sigma} is out of range.", "Use 0 or more.")
    seeds = np.random.SeedSequence(seed).spawn(len(truth))
    axes = tuple(_coordinates(side, 1.0) for side in truth.shape)
    noisy = Noisy(np.empty(truth.shape, np.float32), np.full(truth.shape, sigma, np.float32))

    def fill(z: int) -> None:
        rng = np.random.default_rng(seeds[z])
        plane, level = truth[z], noisy.sigma[z]
        if kind is ScannerNoise.VARYING_RICIAN:
            level *= 1 + 2 * _hill(axes, z)
        if kind is ScannerNoise.UNIFORM:
            # A uniform distribution of width 1 has the standard deviation 1 / sqrt(12).
            new = plane + (rng.random(plane.shape, np.float32) - 0.5) * np.sqrt(12) * level
        else:
            new = plane + rng.standard_normal(plane.shape, np.float32) * level
        if kind in (ScannerNoise.RICIAN, ScannerNoise.VARYING_RICIAN):
            new = np.hypot(new, rng.standard_normal(plane.shape, np.float32) * level)
        noisy.voxels[z] = new

    on_cores(fill, range(len(truth)))
    return noisy


def tissue_signals(contrast: Contrast) -> list[float]:
    """Return the signal of every tissue, by its number.

    T1w: spoiled gradient echo with TR 18 ms, TE 10 ms and 30 degrees. T2w and PDw: the late
    (120 ms) and the early (35 ms) of two spin echoes with TR 3300 ms. In the steady state.
    """
    signals = np.zeros(len(Tissue))
    for tissue, (t1, t2, t2_star, density) in _MAGNETISM.items():
        if contrast is Contrast.T1W:
            flip, recovered = np.radians(30), np.exp(-18 / t1)
            steady = np.sin(flip) * (1 - recovered) / (1 - np.cos(flip) * recovered)
            signals[tissue] = density * steady * np.exp(-10 / t2_star)
        else:
            echo = 120 if contrast is Contrast.T2W else 35
            signals[tissue] = density * (1 - np.exp(-3300 / t1)) * np.exp(-echo / t2)
    scaled: list[float] = (signals * BRIGHTEST / signals.max()).tolist()
    return scaled


def _paint(
    body: _Ellipsoid,
    axes: tuple[NDArray[np.float32], ...],
    steps: Sequence[float],
    z: int,
    labels: NDArray[np.uint8],
    planes: list[NDArray[np.float32]],
    signals: NDArray[np.float32],
) -> None:
    """Draw one slice of an ellipsoid over the others."""
    voxel = np.array(steps[::-1], np.float32)
    low, high = (np.array(body.centre) + side * (body.reach + voxel) for side in (-1, 1))
    if not low[2] <= axes[0][z] <= high[2]:
        return
    rows, columns = (
        slice(*np.searchsorted(axes[axis], (low[2 - axis], high[2 - axis]))) for axis in (1, 2)
    )
    y, x = axes[1][rows, None], axes[2][None, columns]
    offsets = (x - body.centre[0], y - body.centre[1], axes[0][z] - body.centre[2])
    a = body.matrix.astype(np.float32)
    inside = [sum(a[i, j] * offsets[j] for j in range(3)) for i in range(3)]
    radius = np.sqrt(sum(part * part for part in inside))
    # The gradient of the radius turns its excess over 1 into a distance in voxels.
    slope = np.sqrt(
        sum((sum(a[i, j] * inside[i] for i in range(3)) * voxel[j]) ** 2 for j in range(3))
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # The centre is far from the surface.
        share = np.clip(0.5 + (1 - radius) * radius / slope, 0, 1)
    share[slope == 0] = 1
    labels[rows, columns][share >= 0.5] = body.tissue
    for plane, signal in zip(planes, signals, strict=True):
        part = plane[rows, columns]
        part += share * (signal[body.tissue] - part)


def _coordinates(side: int, extent: float) -> NDArray[np.float32]:
    """Return the centres of `side` voxels between -extent and extent."""
    return (((2 * np.arange(side) + 1) / side - 1) * extent).astype(np.float32)


def _shade(axes: tuple[NDArray[np.float32], ...], z: int, amount: float) -> NDArray[np.float32]:
    """Return factors from 1 - amount to 1, brightest at the front, above and to one side."""
    y, x = axes[1][:, None], axes[2][None, :]
    waves = np.cos(1.2 * (x - 0.4)) * np.cos(1.2 * (y + 0.5)) * np.cos(1.2 * (axes[0][z] - 0.3))
    return np.asarray(1 - amount * (1 - waves) / 2, np.float32)


def _hill(axes: tuple[NDArray[np.float32], ...], z: int) -> NDArray[np.float32]:
    """Return a smooth hill: 1 in the middle of the volume, nearly 0 in its corners."""
    y, x = axes[1][:, None], axes[2][None, :]
    return np.asarray(np.exp(-2 * (x * x + y * y + axes[0][z] ** 2)), np.float32)


def _check_shape(shape: Any) -> None:
    if len(shape) != 3 or min(shape) < 1:
        raise InvalidParameter(
            f"A phantom of {'×'.join(map(str, shape))} voxels cannot be made.",
            "Give depth, height and width, at least 1 each.",
        )


def _member(kinds: type[Any], value: str) -> Any:
    if value not in [kind.value for kind in kinds]:
        raise InvalidParameter(
            f"“{value}” is unknown here.", f"Use {', '.join(kind.value for kind in kinds)}."
        )
    return kinds(value)
