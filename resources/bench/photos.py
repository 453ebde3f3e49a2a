"""Writes photos.md: noisy photographs beside darktable's profiled denoise and the peers of Python.

Run from the root of the checkout, with darktable 4.2 installed: python resources/bench/photos.py
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tifffile
from denoisers import table
from numpy.typing import NDArray
from skimage import data
from skimage.restoration import (
    denoise_nl_means,
    denoise_tv_chambolle,
    denoise_wavelet,
    estimate_sigma,
)

import kernelscope as ks
from kernelscope.files import write_image
from kernelscope.images.image import Image

PICTURES = ("coffee", "chelsea", "astronaut")
PUSHES = (1, 4)
"""The shot has this part of the light, and is made as much brighter after."""

SLOPES = np.array([0.0007995771, 0.0003820402, 0.0005722075])
OFFSETS = np.array([3.887020e-06, 5.202192e-06, 5.427254e-06])
"""Variance of raw samples, slope · mean + offset: that of a Nikon D750 at ISO 51200, as darktable
has it."""

GAINS = np.array([2.0, 1.0, 1.5])
"""White balance."""

FROM_XYZ = np.array(
    [
        *[(3.2404542, -1.5371385, -0.4985314), (-0.969266, 1.8760108, 0.041556)],
        (0.0556434, -0.2040259, 1.0572252),
    ]
)
BLACK, WHITE = 2000, 62000
"""Of raw samples."""

NLM, WAVELETS = 3, 4
"""Modes of the profiled denoise whose other settings follow the profile."""

STRENGTHS = (0.5, 0.7, 1.0, 1.4, 2.0)

COLUMNS = (
    *("noisy", "darktable NLM", "its best strength", "darktable wavelets", "its best strength"),
    *("OpenCV, best h", "scikit-image wavelets", "its TV, best", "its NLM, best"),
    *("sliding DCT", "*Denoise*"),
)

PAGE = Path(__file__).with_name("photos.md")
SHEET = Path(__file__).with_name("photos.png")
SHOWN = (4, 200)
"""The push of the pictures in `SHEET`, and their sides."""

Pixels = NDArray[Any]


def raw(clean: Pixels, push: float, random: np.random.Generator | None) -> Pixels:
    """Return one colour at each pixel, in Bayer's pattern; without noise if nothing is random."""
    linear = np.where(clean <= 0.04045, clean / 12.92, ((clean + 0.055) / 1.055) ** 2.4)
    light = linear / GAINS / push
    if random is not None:
        light = random.poisson(light / SLOPES) * SLOPES
        light = light + random.normal(0, 1, light.shape) * np.sqrt(OFFSETS)
    y, x = np.indices(light.shape[:2]) % 2
    channel = np.where(y == x, 2 * y, 1)
    samples: Pixels = np.take_along_axis(light * push, channel[..., None], 2)[..., 0]
    return samples


def write_dng(path: Path, samples: Pixels) -> None:
    def ratios(values: Iterable[float]) -> tuple[int, ...]:
        return tuple(n for value in values for n in (round(1e6 * value), 1_000_000))

    tags = (
        *((271, "s", 0, "Kernelscope"), (272, "s", 0, "Simulated"), (274, "H", 1, 1)),
        *((33421, "H", 2, (2, 2)), (33422, "B", 4, bytes([0, 1, 1, 2]))),
        *((50706, "B", 4, bytes([1, 4, 0, 0])), (50707, "B", 4, bytes([1, 1, 0, 0]))),
        *((50708, "s", 0, "Kernelscope Simulated"), (50714, "I", 1, BLACK), (50717, "I", 1, WHITE)),
        (50721, 10, 9, ratios((FROM_XYZ / GAINS[:, None]).ravel())),
        *((50728, 5, 3, ratios(1 / GAINS)), (50778, "H", 1, 21)),
    )
    steps = np.rint(samples.clip(-0.03, 1) * (WHITE - BLACK) + BLACK).astype(np.uint16)
    options = {"photometric": "cfa", "metadata": None, "software": False}
    tifffile.imwrite(path, steps, extratags=[(*tag, True) for tag in tags], **options)


def denoise_profiled(mode: int, strength: float, push: float) -> bytes:
    """Return the parameters of version 11 of the module."""
    curve = [k / 6 for k in range(7)] * 6
    noise = (*SLOPES * push, *OFFSETS * push**2)
    usual = (1, 7, strength, 1, 0, 0, 0.1, 1)
    return struct.pack("<14fi84f4i", *usual, *noise, mode, *curve, *[0.5] * 42, 1, 1, 1, 1)


_SIDECAR = """<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:darktable="http://darktable.sf.net/" darktable:xmp_version="5"
darktable:auto_presets_applied="1" darktable:history_end="{count}" darktable:iop_order_version="2">
<darktable:history><rdf:Seq>{steps}</rdf:Seq></darktable:history>
</rdf:Description></rdf:RDF></x:xmpmeta>"""

_STEP = (
    '<rdf:li darktable:num="0" darktable:operation="denoiseprofile" darktable:enabled="1" '
    'darktable:modversion="11" darktable:params="{}" darktable:multi_name="" '
    'darktable:multi_priority="0"/>'
)


def develop(dng: Path, *denoise: bytes) -> Pixels:
    """Return the picture that darktable makes of a shot: uint16, in the curve of sRGB."""
    sidecar, output = dng.with_suffix(".xmp"), dng.with_suffix(".tif")
    steps = "".join(_STEP.format(each.hex()) for each in denoise)
    sidecar.write_text(_SIDECAR.format(count=len(denoise), steps=steps), encoding="utf-8")
    output.unlink(missing_ok=True)
    settings = ["imageio/format/tiff/bpp=16", "darkroom/workflow=none"]
    settings.append("darkroom/chromatic-adaptation=legacy")
    own = (f"--{name}dir={dng.parent / name}" for name in ("config", "cache"))
    words = ["darktable-cli", *map(str, (dng, sidecar, output)), "--icc-type", "SRGB"]
    words += ["--hq", "true", "--apply-custom-presets", "false", "--core", "--disable-opencl"]
    words += ["--library", ":memory:", *(part for each in own for part in each.split("="))]
    words += [part for each in settings for part in ("--conf", f"plugins/{each}")]
    subprocess.run(words, check=True, capture_output=True)
    return np.asarray(tifffile.imread(output))


def in_opencv(noisy: Pixels, h: float) -> Pixels:
    return np.asarray(cv2.fastNlMeansDenoisingColored(noisy, None, h, h, 7, 21) / 255)


def best(results: Iterable[Pixels], psnr: Callable[[Pixels], float]) -> Pixels:
    return max(results, key=psnr)


def judge(name: str, push: int, folder: Path) -> tuple[list[float], list[Pixels]]:
    """Return the PSNR of each column, and the pictures of the sheet: without noise the last."""
    clean = getattr(data, name)()[..., :3] / 255
    dng = folder / f"{name}.dng"
    write_dng(dng, raw(clean, 1, None))
    wanted = develop(dng) / 65535
    write_dng(dng, raw(clean, push, np.random.default_rng(7)))
    noisy = develop(dng)

    def psnr(result: Pixels) -> float:
        return float(10 * np.log10(1 / np.mean((np.clip(result, 0, 1) - wanted) ** 2)))

    profiled = {
        mode: {each: develop(dng, denoise_profiled(mode, each, push)) / 65535 for each in STRENGTHS}
        for mode in (NLM, WAVELETS)
    }
    of_darktable = {mode: best(each.values(), psnr) for mode, each in profiled.items()}
    floats = noisy / 65535
    levels = np.rint(floats * 255).astype(np.uint8)
    sigma = float(np.mean(estimate_sigma(floats, channel_axis=-1)))
    found = ks.denoise(noisy) / 65535
    results = [
        floats,
        *(each for mode, of in profiled.items() for each in (of[1.0], of_darktable[mode])),
        best((in_opencv(levels, h) for h in (2, 3, 5, 8, 12, 18)), psnr),
        denoise_wavelet(floats, channel_axis=-1, convert2ycbcr=True, rescale_sigma=True),
        best((tv(floats, weight) for weight in (0.01, 0.02, 0.04, 0.07, 0.12)), psnr),
        best((nlm(floats, share * sigma, sigma) for share in (0.6, 0.8, 1.5, 3, 6)), psnr),
        ks.sliding_dct(noisy) / 65535,
        found,
    ]
    nearest = max(of_darktable.values(), key=psnr)
    return [psnr(each) for each in results], [floats, nearest, found, wanted]


def tv(noisy: Pixels, weight: float) -> Pixels:
    return np.asarray(denoise_tv_chambolle(noisy, weight, channel_axis=-1))


def nlm(noisy: Pixels, h: float, sigma: float) -> Pixels:
    found = denoise_nl_means(
        noisy, patch_size=7, patch_distance=10, h=h, sigma=sigma, channel_axis=-1
    )
    return np.asarray(found)


def main() -> None:
    rows, names, shown = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for push in PUSHES:
            for name in PICTURES:
                numbers, pictures = judge(name, push, Path(folder))
                rows.append(numbers)
                names.append(f"{name}, {'as exposed' if push == 1 else f'{push} times lifted'}")
                print(names[-1], *(f"{value:.2f}" for value in numbers), flush=True)
                if push == SHOWN[0]:
                    shown.append(pictures)
    write_image(Image.from_array(sheet(shown)), SHEET)
    PAGE.write_text(page(table(names, rows, COLUMNS)), encoding="utf-8")


def sheet(pictures: Sequence[Sequence[Pixels]]) -> NDArray[np.uint8]:
    """Return the middles of pictures, a line for each, with gaps."""
    side, lines = SHOWN[1], []
    for line in pictures:
        top, left = ((n - side) // 2 for n in line[0].shape[:2])
        gap = np.ones((side, 8, 3))
        parts = [each[top : top + side, left : left + side] for each in line]
        lines.append(np.hstack([part for each in parts for part in (each, gap)][:-1]))
    gap = np.ones((8, lines[0].shape[1], 3))
    stacked = np.vstack([part for each in lines for part in (each, gap)][:-1])
    return np.asarray(np.rint(stacked.clip(0, 1) * 255), np.uint8)


def page(rows: str) -> str:
    return f"""# Photographs beside darktable's profiled denoise

PSNR in dB of whole photographs of scikit-image, taken again by a camera that is computed: one
colour at each pixel, with the noise of darktable's profile of a Nikon D750 at ISO 51200, in a DNG
file. darktable 4.2.1 demosaics it and brings it into the curve of sRGB, 16 bits. *4 times lifted*
has a quarter of the light. The truth is the same file without noise, developed alike. Of
29 November 2026; of 30 November are the columns *noisy* and *sliding DCT*, with the same numbers,
and *Denoise*, which the picture below has of the day before.

darktable's *denoise (profiled)* works within that, on linear samples, and gets the very profile
that the noise was drawn from; its other settings follow from the profile, the strength is 1, or the
best of {", ".join(f"{each:g}" for each in STRENGTHS)} by the truth. All others get the developed
picture: OpenCV `fastNlMeansDenoisingColored` in bytes with the best of six h, scikit-image's
wavelets by its own estimate, its total variation with the best of five weights and its non-local
means with the best of five h. Kernelscope knows nothing else: kind, spectrum and sigma are
estimated. `python resources/bench/photos.py` writes this page.

{rows.replace("sigma", "photograph", 1)}

![Noisy photographs, darktable, Kernelscope, and without noise](photos.png)

From left to right: *4 times lifted*, darktable's nearest to the truth (of both modes and all
strengths), *Denoise* of Kernelscope, and the picture without noise.
"""


if __name__ == "__main__":
    main()
