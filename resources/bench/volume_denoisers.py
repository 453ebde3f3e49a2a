"""Writes volume-denoisers.md: the quality of the denoisers of volumes: of heads, and of stacks.

Run from the root of the checkout: python resources/bench/volume_denoisers.py
The anatomy is a data file of nilearn, which the tests need as well.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelscope
from kernelscope.files.volumes import read_volume

sys.path.append(str(Path(__file__).parents[2]))
from tests.engine.test_stack_noise import light, stack
from tests.scans import MNI_T1

SIDE = 56
FILTERS = ("mri_nlm", "volume_dct", "volume_collaborative")
NOISES = ("1 %", "3 %", "5 %", "7 %", "9 %", "11 %", "1-3 %", "3-9 %")

PACKAGES = {
    "phantom": {
        "BM4D": (44.87, 38.36, 35.51, 33.78, 32.26, 31.0, 39.94, 33.85),
        "DIPY, best": (44.38, 37.7, 33.98, 31.36, 29.4, 28.54, 39.74, 31.75),
    },
    "anatomy": {
        "BM4D": (45.01, 39.33, 36.78, 35.0, 33.71, 32.54, 40.38, 34.71),
        "DIPY, best": (42.87, 37.33, 34.96, 33.23, 31.95, 30.77, 38.31, 33.09),
    },
}
"""For each of `NOISES`. Measured once, on the same voxels and noise, whose sigma was given:
bm4d 4.2.5 of the authors, which is for non-commercial use only, and the best of nlmeans (classic,
blockwise) and adaptive soft matching of DIPY 1.12.1. The package bm4d has no transform for Rician
noise: it ran between a transform of ours that makes its variance equal, and the exact inverse of
that. Nothing here needs them."""

PAGE = Path(__file__).with_name("volume-denoisers.md")

Voxels = NDArray[np.float32]


def phantom() -> Voxels:
    voxels: Voxels = np.asarray(kernelscope.phantom(80), np.float32)
    return voxels


def anatomy() -> Voxels:
    """Return the middle of the T1w template of MNI, whose 99.95th percentile is 255."""
    whole = read_volume(MNI_T1).voxels
    whole = whole.transpose()  # x first, as nibabel has it: the packages got the same noise
    scaled = np.clip(whole.astype(np.float32) * 255 / np.percentile(whole, 99.95), 0, 255)
    return middle(scaled.astype(np.float32), 96)


def middle(voxels: Voxels, side: int = SIDE) -> Voxels:
    starts = [(n - side) // 2 for n in voxels.shape]
    return np.ascontiguousarray(voxels[tuple(slice(n, n + side) for n in starts)])


def with_noise(clean: Voxels, noise: str) -> tuple[Voxels, Voxels]:
    """Return the volume with Rician noise, and sigma everywhere; 1-3 % is strongest inside."""
    percent = int(noise.removesuffix(" %").split("-")[0])
    lines = [np.linspace(-1, 1, n) for n in clean.shape]
    z, y, x = np.meshgrid(*lines, indexing="ij")
    varies = "-" in noise
    factor = 3 - 2 * np.sqrt((z**2 + y**2 + x**2) / 3) if varies else np.ones(clean.shape)
    sigma = (2.55 * percent * factor).astype(np.float32)
    random = np.random.default_rng(percent + 100 * varies)
    real, imaginary = random.normal(0, 1, clean.shape), random.normal(0, 1, clean.shape)
    return np.hypot(clean + real * sigma, imaginary * sigma).astype(np.float32), sigma


def psnr(voxels: Voxels, clean: Voxels) -> float:
    """Return the PSNR within the head."""
    error = (voxels.astype(np.float64) - clean)[clean > 10]
    return float(10 * np.log10(255**2 / np.mean(error**2)))


def filtered(voxels: Voxels, name: str, values: Mapping[str, Any]) -> Voxels:
    result: Voxels = getattr(kernelscope, name)(voxels, device="cpu", **values)
    return result


def row(whole: Voxels, noise: str, kind: str) -> list[str]:
    noisy, sigma = (middle(each) for each in with_noise(whole, noise))
    clean = middle(whole)
    given: dict[str, Any] = {"sigma_from": "given", "sigma": (float(sigma.mean()),)}
    estimate: dict[str, Any] = {"sigma_from": "adaptive" if "-" in noise else "volume"}
    results = [psnr(noisy, clean)]
    for name in FILTERS:
        results += [psnr(filtered(noisy, name, each), clean) for each in (given, estimate)]
    packages = [each[NOISES.index(noise)] for each in PACKAGES[kind].values()]
    return [noise, *(f"{each:.2f}" for each in (*results, *packages))]


CAMERAS: tuple[tuple[float, float, float, float, str], ...] = (
    (5, 30, 0, 0, "uint8"),
    (5, 10, 3, 0, "uint8"),
    (5, 2, 3, 100, "uint16"),
    (20, 10, 0, 0, "uint8"),
    (20, 10, 5, 10, "uint8"),
    (20, 2, 3, 100, "uint16"),
    (100, 2, 2, 0, "uint8"),
    (100, 1, 10, 100, "uint16"),
    (100, 2, 3, 100, "uint16"),
    (1000, 2, 3, 100, "uint16"),
    (1000, 30, 10, 100, "uint16"),
)
"""Photons at white, levels per photon, read noise and black in levels, and the type of voxels."""


def stack_row(camera: tuple[float, float, float, float, str]) -> list[str]:
    photons, gain, read, black, dtype = camera
    noisy, white = stack(photons, gain, read, black, dtype, seed=3), photons * gain
    clean = np.minimum(black + light(3) * white, np.iinfo(dtype).max)

    def cell(voxels: NDArray[Any]) -> str:
        pair = (each.astype(np.float32) for each in (voxels, clean))
        found = kernelscope.quality(*pair, volume=True, white=white + black, black=black)
        return f"{found.psnr:.2f} / {found.ssim:.3f}"

    made = [filtered(noisy, name, {"noise": each}) for name in FILTERS for each in STACK_NOISES]
    return [*(f"{each:g}" for each in camera[:4]), *(cell(each) for each in (noisy, *made))]


STACK_NOISES = ("gaussian", "camera")


def stacks() -> str:
    names = [name.replace("_", "-") for name in FILTERS]
    columns = [f"{name}, {noise}" for name in names for noise in STACK_NOISES]
    head = ["photons", "gain", "read noise", "black", "noisy", *columns]
    lines = [f"| {' | '.join(head)} |", "|" + "--:|" * len(head)]
    for camera in CAMERAS:
        lines.append(f"| {' | '.join(stack_row(camera))} |")
        print(lines[-1], flush=True)
    return (
        """
## Stacks of a microscope

PSNR in dB and SSIM of all voxels, of 160×160×16 with blurred blobs and filaments. The column
*photons* has their number where it is brightest; gain is in levels per photon, read noise and black
are in levels; black 0 and white of bytes clip. All is estimated from the noisy stack: one sigma, or
the gain and the noise of the darkest level.

"""
        + "\n".join(lines)
        + "\n"
    )


def main() -> None:
    text = f"""# The quality of the denoisers of volumes

PSNR in dB within the head, of {SIDE}×{SIDE}×{SIDE} voxels with Rician noise in percent of white.
1-3 % and 3-9 % vary over the volume and are strongest in the middle. MRI NLM, Volume DCT and Volume
collaborative have two columns: sigma is given (its mean, where it varies), and sigma is estimated
(a smooth map, where it varies). `python resources/bench/volume_denoisers.py` writes this page.
"""
    head = ["noise", "noisy"]
    for name in FILTERS:
        title = name.replace("_", "-")
        head += [title, f"{title}, estimate"]
    head += list(PACKAGES["phantom"])
    for kind, whole, title in (
        ("phantom", phantom(), "A phantom"),
        ("anatomy", anatomy(), "Real anatomy: the T1w template of MNI"),
    ):
        lines = [f"\n## {title}\n", f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)]
        lines += [f"| {' | '.join(row(whole, noise, kind))} |" for noise in NOISES]
        text += "\n".join(lines) + "\n"
    text += """
The last two columns were measured once, on the same voxels, with sigma given (BM4D: the map, where
it varies): the package bm4d 4.2.5 of the authors, which is for non-commercial use only, between a
transform of ours that makes the variance of Rician noise equal and its inverse, and the best of the
denoisers for single volumes of DIPY 1.12.1. Nothing here needs them.
"""
    text += stacks()
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
