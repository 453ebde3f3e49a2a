"""Writes noise_kinds.md: the quality of the denoisers of pictures where noise is not white.

Run from the root of the checkout: python resources/bench/noise_kinds.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from denoisers import picture, psnr
from numpy.typing import NDArray
from scipy.ndimage import convolve, gaussian_filter

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.steps import estimate
from kernelscope.images.image import Image

PICTURES = ("camera", "coins", "moon", "grass", "astronaut")
COLOUR = ("astronaut", "coffee", "chelsea", "retina")
FILTERS = {"nlm": "NLM", "sliding_dct": "sliding DCT", "collaborative": "collaborative"}
CHOICES = {"white": "white", "auto": "found"}

PAGE = Path(__file__).with_name("noise_kinds.md")

Picture = NDArray[Any]


def camera(clean: Picture, photons: float) -> Picture:
    """Return a picture whose white is so many photons, with a read-out noise of one photon."""
    random = np.random.default_rng(7)
    counts = random.poisson(clean.astype(np.float64) * photons)
    return (counts + random.normal(0, 1, clean.shape)) / photons


def correlated(clean: Picture, sigma: float) -> Picture:
    """Return a picture with noise that was blurred by 0.7 pixels, of this sigma of 255 after it."""
    noise = np.random.default_rng(3).normal(0, 1, clean.shape)
    noise = gaussian_filter(noise, (0.7, 0.7, 0), mode="wrap")
    return np.asarray(clean + noise * (sigma / 255 / noise.std()))


_GREEN = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4
_OTHERS = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4


def demosaiced(clean: Picture, photons: float) -> Picture:
    """Return the photo of a camera: one colour at each pixel, interpolated, in the curve of sRGB.

    The read-out noise is of two photons. Infinitely many photons are a photo without noise.
    """
    linear = np.where(clean <= 0.04045, clean / 12.92, ((clean + 0.055) / 1.055) ** 2.4)
    if np.isfinite(photons):
        random = np.random.default_rng(7)
        linear = random.poisson(linear * photons) + random.normal(0, 2, clean.shape)
        linear = linear / photons
    y, x = np.indices(clean.shape[:2]) % 2
    sites = ((y == 0) & (x == 0), y != x, (y == 1) & (x == 1))
    masks = (_OTHERS, _GREEN, _OTHERS)
    planes = [
        convolve(linear[..., c] * site, mask, mode="mirror")
        for c, (site, mask) in enumerate(zip(sites, masks, strict=True))
    ]
    found = np.clip(np.stack(planes, -1), 0, 1)
    curve: Picture = np.where(found <= 0.0031308, 12.92 * found, 1.055 * found ** (1 / 2.4) - 0.055)
    return curve


KINDS: Mapping[str, tuple[Callable[[Picture, float], Picture], float]] = {
    "camera, 20 photons": (camera, 20),
    "camera, 100 photons": (camera, 100),
    "correlated, sigma 20": (correlated, 20),
    "demosaiced, 100 photons": (demosaiced, 100),
    "demosaiced, 400 photons": (demosaiced, 400),
}


def main() -> None:
    backends = {"cpu": CpuBackend()}
    heads = [f"{name}, {kind}" for name in FILTERS.values() for kind in CHOICES.values()]
    lines = [f"| noise | picture | noisy | {' | '.join(heads)} |"]
    lines.append("|---|---|" + "--:|" * (len(heads) + 1))
    for kind, (make, amount) in KINDS.items():
        for name in COLOUR if make is demosaiced else PICTURES:
            clean: Picture = picture(name)
            noisy = np.clip(np.rint(make(clean, amount) * 255), 0, 255).astype(np.uint8)
            if make is demosaiced:
                clean = demosaiced(clean, np.inf).astype(np.float32)
            found = [psnr(noisy / np.float32(255), clean)]
            for filter_id in FILTERS:
                for choice in CHOICES:
                    request = Request.create(Image.from_array(noisy), filter_id, {"noise": choice})
                    parameters = request.step.filter.parameters
                    names = [each.name for each in parameters if each.is_estimated]
                    values = {"noise": choice, **estimate(request, names)}
                    made = Request.create(request.source, filter_id, values)
                    result = execute(made, backends).image.planes
                    found.append(psnr(result / np.float32(255), clean))
            lines.append(f"| {kind} | {name} | {' | '.join(f'{each:.2f}' for each in found)} |")
            print(lines[-1], flush=True)
    backends["cpu"].close()
    PAGE.write_text(page("\n".join(lines)), encoding="utf-8")


def page(table: str) -> str:
    return f"""# The quality of the denoisers where noise is not white

PSNR in dB, of pictures in bytes, clipped at black and white: the middle 256×256 of those of
scikit-image. Everything is estimated from the noisy picture: under *white* one sigma, under *found*
(`noise=auto`) the kind as well. White of the camera is 20 or 100 photons, with a read-out noise of
one; correlated noise was blurred by 0.7 pixels. Demosaiced pictures have one colour at each pixel,
in Bayer's pattern, with photons and a read-out noise of two, and were interpolated and brought into
the curve of sRGB: their noise is correlated and depends on the brightness. The picture without
noise is interpolated as well.
`python resources/bench/noise_kinds.py` writes this page.

{table}
"""


if __name__ == "__main__":
    main()
