"""Writes nlm-strength.md: the loss of non-local means with its estimated strength.

Run from the root of the checkout: python resources/bench/nlm_strength.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage import data
from sklearn.datasets import load_sample_image

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.filters.nlm import SPEC
from kernelscope.filters.nlm.strength import estimate_strength
from kernelscope.images.image import Image

CHOSEN_ON = (
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
"""Pictures of skimage.data, whose files are in its wheel; the last six in colour. The number of
operations of the estimate was chosen on these."""

HELD_OUT = (
    "brick",
    "cell",
    "clock",
    "grass",
    "gravel",
    "page",
    "text",
    "immunohistochemistry",
    "china.jpg",
    "flower.jpg",
)
"""The other pictures of about that size in the wheels of scikit-image and scikit-learn, except
drawings and variants of pictures above; the last three in colour."""

VARIANCES = (0.0004, 0.001, 0.004, 0.015)
SIDE = 192
PUBLISHED: dict[str, Any] = {"weights": "gaussian", "patch": 7}
"""The form of source N."""

STEPS = 2.0 ** np.arange(-2.5, 2.01, 0.25)
"""Strengths among which the best is sought, in units of the mean distance of noise."""

PAGE = Path(__file__).with_name("nlm-strength.md")


COST = """The cost, on two cores with nothing beside them, defaults, medians, measured before sigma
was estimated beside texture: 36 ms for the 512×512
pixels of `camera`, where level *parallel* takes 90 ms for the filter itself. The estimate runs on
the CPU whatever device the filter has. On an H100 the filter's kernel takes 0.5 ms for 256×256
pixels (README.md beside this page), so that there the estimate takes far longer than the
filter; who filters many pictures alike gives the number that was printed for the first."""


def picture(name: str) -> NDArray[np.uint8]:
    """Return the middle of a picture, shape (SIDE, SIDE, channels) or less where it is smaller."""
    found = load_sample_image(name) if "." in name else getattr(data, name)()
    image = np.atleast_3d(found[0] if isinstance(found, tuple) else found)[:, :, :3]
    top, left = (max(0, side - SIDE) // 2 for side in image.shape[:2])
    return np.ascontiguousarray(image[top : top + SIDE, left : left + SIDE])


def main() -> None:
    backends = {"cpu": CpuBackend()}
    seen, held_out = (judge(names, backends) for names in (CHOSEN_ON, HELD_OUT))
    without_grass = np.mean([row.loss for row in held_out if "| grass" not in row.text])
    text = f"""# The strength of non-local means

`filter_sigma` is estimated where nobody sets it: by Stein's unbiased risk estimate, which knows
from the noisy picture alone how far an average is from the picture without noise, and with the
sigma that `filters/shared/flat_noise.py` measures beside texture. How many pixels it looks at was
chosen by looking at the first {len(CHOSEN_ON)} pictures.
The other {len(HELD_OUT)} had no part in it.
The form is source N's, with a Gaussian over a patch of 7.
All are the middle {SIDE}×{SIDE} of a picture that comes with
scikit-image or scikit-learn (text and page are less high), with Gaussian noise of four variances,
default patch and search radius. *Best* is the best of {len(STEPS)} strengths in steps of
{2**0.25:.2f}. A loss is the PSNR in dB that the estimate, or source N's constant 0.02, gives away
against it; below 0 it beats every strength that was tried.
`python resources/bench/nlm_strength.py` writes this page.

| pictures | mean loss of the estimate | median | largest | mean loss of 0.02 |
|---|--:|--:|--:|--:|
| held out | **{means(held_out)} |
| chosen on | **{means(seen)} |

Held out without the picture of grass, texture as fine as noise, the mean is
{without_grass:.2f} dB.

{COST}

## Held out

{table(held_out)}

## Chosen on

{table(seen)}
"""
    PAGE.write_text(text, encoding="utf-8")
    backends["cpu"].close()


class Row(NamedTuple):
    """One picture with one variance; losses in dB."""

    text: str
    loss: float
    loss_of_n: float


def means(rows: list[Row]) -> str:
    """Return the cells of a table without the first asterisks."""
    losses = [row.loss for row in rows]
    of_n = np.mean([row.loss_of_n for row in rows])
    return f"{np.mean(losses):.2f} dB** | {np.median(losses):.2f} | {max(losses):.2f} | {of_n:.2f}"


def table(rows: list[Row]) -> str:
    head = "| picture | variance | best | PSNR | estimate | PSNR | loss | loss of 0.02 |"
    return "\n".join([head, "|---|--:|--:|--:|--:|--:|--:|--:|", *(row.text for row in rows)])


def judge(names: Sequence[str], backends: dict[str, CpuBackend]) -> list[Row]:
    """Return a row for each picture and variance."""

    def apply(image: Image, filter_id: str, parameters: Mapping[str, Any]) -> Image:
        return execute(Request.create(image, filter_id, parameters), backends).image

    def psnr(image: Image, clean: Image) -> float:
        error = np.mean((image.planes.astype(float) - clean.planes) ** 2)
        return float(10 * np.log10(255**2 / error))

    rows = []
    for number, name in enumerate(names):
        clean = Image.from_array(picture(name))
        for variance in VARIANCES:
            noise = {"variance": variance, "seed": number}
            noisy = apply(clean, "gaussian_noise", noise)
            unit = 2 * variance * 8.688  # the sum of G squared of the default patch
            tried = {
                step: psnr(apply(noisy, "nlm", PUBLISHED | {"filter_sigma": unit * step}), clean)
                for step in STEPS
            }
            best = max(tried, key=lambda step: tried[step])
            strength = estimate_strength(noisy.planes, SPEC.validate(PUBLISHED))
            found = psnr(apply(noisy, "nlm", PUBLISHED | {"filter_sigma": strength}), clean)
            fixed = psnr(apply(noisy, "nlm", PUBLISHED | {"filter_sigma": 0.02}), clean)
            loss, loss_of_n = tried[best] - found, tried[best] - fixed
            text = (
                f"| {name} | {variance:g} | {unit * best:.3g} | {tried[best]:.2f} | "
                f"{strength:.3g} | {found:.2f} | {loss:+.2f} | {loss_of_n:+.2f} |"
            )
            rows.append(Row(text, loss, loss_of_n))
            print(text, flush=True)
    return rows


if __name__ == "__main__":
    main()
