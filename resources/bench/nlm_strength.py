"""Writes nlm-strength.md: how far non-local means with its estimated strength is from its best.

Run from the root of the checkout: python resources/bench/nlm_strength.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data

from app.backends.cpu import CpuBackend
from app.engine.image import Image
from app.engine.request import Request
from app.engine.run import execute
from app.filters.nlm import SPEC
from app.filters.nlm_strength import estimate_strength

PICTURES = (
    "camera",
    "coins",
    "moon",
    "retina",
    "astronaut",
    "chelsea",
    "coffee",
    "rocket",
    "stereo_motorcycle",
    "hubble_deep_field",
)
"""Of skimage.data, whose files are in its wheel; the last six in colour."""

VARIANCES = (0.0004, 0.001, 0.004, 0.015)
SIDE = 192
STEPS = 2.0 ** np.arange(-2.5, 2.01, 0.25)
"""Strengths among which the best is sought, in units of the mean distance of noise."""

PAGE = Path(__file__).with_name("nlm-strength.md")


def picture(name: str) -> NDArray[np.uint8]:
    """Return the middle of a picture, shape (SIDE, SIDE, channels)."""
    found = getattr(data, name)()
    image = np.atleast_3d(found[0] if isinstance(found, tuple) else found)[:, :, :3]
    top, left = ((side - SIDE) // 2 for side in image.shape[:2])
    return np.ascontiguousarray(image[top : top + SIDE, left : left + SIDE])


def main() -> None:
    backends = {"cpu": CpuBackend()}

    def apply(image: Image, filter_id: str, parameters: Mapping[str, Any]) -> Image:
        return execute(Request.create(image, filter_id, parameters), backends).image

    def psnr(image: Image, clean: Image) -> float:
        error = np.mean((image.planes.astype(float) - clean.planes) ** 2)
        return float(10 * np.log10(255**2 / error))

    lines, losses, of_n = [], [], []
    for number, name in enumerate(PICTURES):
        clean = Image.from_array(picture(name))
        for variance in VARIANCES:
            noise = {"variance": variance, "seed": number}
            noisy = apply(clean, "gaussian_noise", noise)
            unit = 2 * variance * 8.688  # the sum of G squared of the default patch
            tried = {
                step: psnr(apply(noisy, "nlm", {"filter_sigma": unit * step}), clean)
                for step in STEPS
            }
            best = max(tried, key=lambda step: tried[step])
            strength = estimate_strength(noisy.planes, SPEC.defaults())
            found = psnr(apply(noisy, "nlm", {"filter_sigma": strength}), clean)
            fixed = psnr(apply(noisy, "nlm", {"filter_sigma": 0.02}), clean)
            losses.append(tried[best] - found)
            of_n.append(tried[best] - fixed)
            lines.append(
                f"| {name} | {variance:g} | {unit * best:.3g} | {tried[best]:.2f} | "
                f"{strength:.3g} | {found:.2f} | {losses[-1]:+.2f} | {of_n[-1]:+.2f} |"
            )
            print(lines[-1], flush=True)
    mean, median, most = np.mean(losses), np.median(losses), max(losses)
    text = f"""# The strength of non-local means

`filter_sigma` is estimated where nobody sets it: by Stein's unbiased risk estimate, which knows
from the noisy picture alone how far an average is from the picture without noise, and with a
noise level that is measured in the flattest blocks (`app/filters/nlm_strength.py`). No number in
it was fitted to pictures, so all {len(PICTURES)} are held out: the middle {SIDE}×{SIDE} of
pictures of `skimage.data`, Gaussian noise of four variances, default patch and search radius.
*Best* is the best of {len(STEPS)} strengths in steps of {2**0.25:.2f}. A loss is the PSNR in dB
that the estimate, or source N's constant 0.02, gives away against it; below 0 it beats every
strength that was tried. `python resources/bench/nlm_strength.py` writes this page.

Mean loss of the estimate: **{mean:.2f} dB** (median {median:.2f}, largest {most:.2f}).
Mean loss of 0.02: {np.mean(of_n):.2f} dB.

| picture | variance | best | PSNR | estimate | PSNR | loss | loss of 0.02 |
|---|--:|--:|--:|--:|--:|--:|--:|
"""
    PAGE.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    backends["cpu"].close()


if __name__ == "__main__":
    main()
