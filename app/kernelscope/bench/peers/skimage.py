"""scikit-image, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.bench.peers import library
from kernelscope.bench.peers.library import (
    Library,
    Made,
    Parameters,
    round_and_saturate,
    unchanged,
)
from kernelscope.bench.peers.ndimage import MISSING_BORDERS
from kernelscope.schema.borders import Border


def _median(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    if border in MISSING_BORDERS:
        return None
    from skimage.filters import median

    square = np.ones((parameters["size"], parameters["size"]), bool)
    return lambda: median(pixels, square, mode=str(border)), unchanged


def _nlm(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    distance = library.distance(parameters, border)
    if distance is None:
        return None
    from skimage.restoration import denoise_nl_means

    patch, radius = parameters["patch"], parameters["search_radius"]
    return (
        lambda: denoise_nl_means(pixels, patch, radius, distance, fast_mode=True),
        lambda values: round_and_saturate(255 * values),
    )


LIBRARY = Library(
    name="scikit-image", module="skimage", makers={"median": _median, "nlm": _nlm}, rank=2
)
