"""Writes denoisers.md: the quality of the denoisers of pictures, sigma known and estimated.

Run from the root of the checkout: python resources/bench/denoisers.py
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data
from skimage.restoration import denoise_nl_means

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.steps import estimate
from kernelscope.files import write_image
from kernelscope.filters.shared.flat_noise import channel_sigmas
from kernelscope.images.image import Image
from kernelscope.schema.samples import UNIT

GREY = ("camera", "coins", "moon", "page", "text", "brick", "grass", "gravel")
COLOUR = ("astronaut", "coffee", "chelsea", "immunohistochemistry", "retina")
SIGMAS = (5, 10, 20, 30, 50)
SIDE = 256

COLUMNS = (
    "noisy",
    "NLM, estimate",
    "NLM as published, estimate",
    "scikit-image NLM",
    "sliding DCT",
    "sliding DCT, estimate",
    "collaborative",
    "collaborative, estimate",
    "collaborative, fast",
)

GREY_REFERENCES = {"bm3d 4.0.3": (38.13, 34.30, 30.89, 28.98, 26.35)}
COLOUR_REFERENCES = {"bm3d 4.0.3": (41.10, 37.63, 34.25, 32.27, 29.98)}
"""Means with the same draws of the noise, measured once: the package of the authors of BM3D is for
non-commercial use only, and nothing here needs it."""

TIMES = {"camera, grey": (0.55, 8.64), "astronaut, colour": (1.23, 21.07)}
"""Seconds of processor time for 512×512 pixels of collaborative filtering and of that package."""

PAGE = Path(__file__).with_name("denoisers.md")
PICTURE = Path(__file__).with_name("denoised.png")
SHOWN = ("coffee", 30)
"""The picture and sigma of `PICTURE`: noisy, and by non-local means and collaborative filtering."""

Pixels = NDArray[np.float32]


def picture(name: str) -> Pixels:
    """Return the middle of a picture, where white is 1."""
    image = np.atleast_3d(getattr(data, name)())[:, :, :3]
    top, left = (max(0, side - SIDE) // 2 for side in image.shape[:2])
    part = image[top : top + SIDE, left : left + SIDE]
    return np.ascontiguousarray(part, np.float32) / np.float32(255)


def with_noise(name: str, sigma: float) -> Pixels:
    clean = picture(name)
    random = np.random.default_rng(zlib.crc32(f"{name}{sigma}".encode()))
    return (clean + random.normal(0, sigma / 255, clean.shape)).astype(np.float32)


def psnr(pixels: NDArray[Any], clean: Pixels) -> float:
    error = np.mean((np.clip(pixels, 0, 1).astype(np.float64) - clean) ** 2)
    return float(10 * np.log10(1 / error))


def nlm_of_scikit(noisy: Pixels, sigma: float) -> Pixels:
    """Return its fast form with the factor of h that its documentation has."""
    result = denoise_nl_means(
        noisy, patch_size=7, patch_distance=10, h=0.8 * sigma, sigma=sigma, channel_axis=-1
    )
    return np.asarray(result, np.float32).reshape(noisy.shape)


def main() -> None:
    backends = {"cpu": CpuBackend()}

    def apply(noisy: Pixels, filter_id: str, parameters: Mapping[str, Any]) -> Pixels:
        image = replace(Image.from_array(noisy), given_levels=UNIT)  # noise leads far beyond it
        return execute(Request.create(image, filter_id, parameters), backends).image.planes

    def estimated(noisy: Pixels, filter_id: str, parameters: Mapping[str, Any]) -> Pixels:
        image = replace(Image.from_array(noisy), given_levels=UNIT)
        request = Request.create(image, filter_id, parameters)
        names = [
            each.name
            for each in request.step.filter.parameters
            if each.is_estimated and each.name not in parameters
        ]
        return apply(noisy, filter_id, {**parameters, **estimate(request, names)})

    def judge(name: str) -> dict[int, list[float]]:
        clean = picture(name)
        found: dict[int, list[float]] = {}
        for sigma in SIGMAS:
            noisy = with_noise(name, sigma)
            results = (
                noisy,
                estimated(noisy, "nlm", {}),
                estimated(noisy, "nlm", {"weights": "gaussian", "patch": 7}),
                nlm_of_scikit(noisy, sigma / 255),
                apply(noisy, "sliding_dct", {"sigma": sigma / 2.55}),
                estimated(noisy, "sliding_dct", {}),
                apply(noisy, "collaborative", {"sigma": sigma / 2.55}),
                estimated(noisy, "collaborative", {}),
                apply(noisy, "collaborative", {"sigma": sigma / 2.55, "setting": "fast"}),
            )
            found[sigma] = [psnr(result, clean) for result in results]
            print(name, sigma, *(f"{value:.2f}" for value in found[sigma]), flush=True)
        return found

    noisy = with_noise(*SHOWN)
    shown = (noisy, *(estimated(noisy, each, {}) for each in ("nlm", "collaborative")))
    gap = np.ones((SIDE, 8, noisy.shape[2]), np.float32)
    row = np.hstack([each for part in shown for each in (part, gap)][:-1])
    write_image(Image.from_array(np.rint(row.clip(0, 1) * 255).astype(np.uint8)), PICTURE)
    found = {name: judge(name) for name in (*GREY, *COLOUR)}
    backends["cpu"].close()
    PAGE.write_text(page(found), encoding="utf-8")


def page(found: Mapping[str, Mapping[int, list[float]]]) -> str:
    return f"""# The quality of the denoisers of pictures

PSNR in dB of results between 0 and 1, with white noise of sigma of 255 that is not clipped. The
pictures are the middle {SIDE}×{SIDE} of those of scikit-image. scikit-image's non-local means
and the columns without *estimate* know sigma.
`python resources/bench/denoisers.py` writes this page.

![A noisy picture, and the same by non-local means and by collaborative filtering](denoised.png)

*{SHOWN[0]}* with sigma {SHOWN[1]}, by non-local means and by collaborative filtering: all is
estimated.

## Means of {len(GREY)} grey pictures

{means([found[name] for name in GREY], GREY_REFERENCES)}

The last column is of the package of the authors of BM3D, one run with the same draws of the noise.
It is for non-commercial use only, and nothing here needs it.

## Means of {len(COLOUR)} colour pictures

{means([found[name] for name in COLOUR], COLOUR_REFERENCES)}

## Processor time beside the package of the authors

Seconds for 512×512 pixels in float32 with sigma 20 known, setting *full*, on two cores of an AMD
EPYC beside other work, on 30 November 2026: medians of three turns, and of two in colour. The times
of the clock depended on that work.

{
        table(
            list(TIMES),
            [[*each, each[1] / each[0]] for each in TIMES.values()],
            ("collaborative", "bm3d 4.0.3", "ratio"),
        ).replace("sigma", "picture", 1)
    }

## Each picture

{
        table(
            [f"{name}, {sigma}" for name in found for sigma in SIGMAS],
            [found[name][sigma] for name in found for sigma in SIGMAS],
            COLUMNS,
        )
    }

{estimates()}"""


def estimates() -> str:
    """Return a section about the estimate of sigma."""
    means, farthest = [], []
    for name in (*GREY, *COLOUR):
        found = [np.array(channel_sigmas(with_noise(name, s))) * 255 / s for s in SIGMAS]
        means.append([float(each.mean()) for each in found])
        farthest.append([float(each[np.abs(each - 1).argmax()]) for each in found])
    heads = [f"{kind}{sigma}" for kind in ("", "channel, ") for sigma in SIGMAS]
    rows = [[*mean, *far] for mean, far in zip(means, farthest, strict=True)]
    return f"""## The estimate of sigma

Over the sigma that was added: the mean of the channels, and the channel that is farthest off. The
noise that a picture has already counts as well, at sigma 5 most: *astronaut*, in its blue, and
*gravel* have some.

{table((*GREY, *COLOUR), rows, heads).replace("sigma", "picture", 1)}
"""


def means(
    pictures: Sequence[Mapping[int, list[float]]], references: Mapping[str, Sequence[float]]
) -> str:
    rows = [
        [
            *np.mean([each[sigma] for each in pictures], axis=0),
            *(each[i] for each in references.values()),
        ]
        for i, sigma in enumerate(SIGMAS)
    ]
    return table([str(sigma) for sigma in SIGMAS], rows, (*COLUMNS, *references))


def table(names: Sequence[str], rows: Sequence[Sequence[float]], columns: Sequence[str]) -> str:
    lines = [f"| sigma | {' | '.join(columns)} |", "|---|" + "--:|" * len(columns)]
    for name, row in zip(names, rows, strict=True):
        lines.append(f"| {name} | {' | '.join(f'{value:.2f}' for value in row)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
