"""OpenCV, on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelscope.bench.peers import library
from kernelscope.bench.peers.library import (
    Library,
    Made,
    Maker,
    Parameters,
    binomial,
    laplace_mask,
    mask_and_divisor,
    unchanged,
)
from kernelscope.schema.borders import Border

_BORDERS = {
    Border.REFLECT: "BORDER_REFLECT",
    Border.MIRROR: "BORDER_REFLECT_101",
    Border.NEAREST: "BORDER_REPLICATE",
    Border.CONSTANT: "BORDER_CONSTANT",
}
"""OpenCV's names; its filters do not support the others."""


def _with_border(make: Callable[[Any, Parameters, int], Made | None]) -> Maker:
    """Return a maker that passes OpenCV's number of the border."""

    def with_code(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
        import cv2

        if border not in _BORDERS:
            return None
        return make(pixels, parameters, getattr(cv2, _BORDERS[border]))

    return with_code


def _mean(pixels: Any, parameters: Parameters, border: int) -> Made:
    import cv2

    side = parameters["size"]
    return lambda: cv2.blur(pixels, (side, side), borderType=border), unchanged


def _weighted_mean(pixels: Any, parameters: Parameters, border: int) -> Made:
    import cv2

    row = binomial(parameters["size"]) / 2.0 ** (parameters["size"] - 1)
    return lambda: cv2.sepFilter2D(pixels, -1, row, row, borderType=border), unchanged


def _mask(pixels: Any, parameters: Parameters, border: int) -> Made | None:
    import cv2

    if parameters["negative"] != "clip":
        return None
    mask, divisor = mask_and_divisor(parameters)
    scaled = (mask / divisor).astype(np.float32)
    return lambda: cv2.filter2D(pixels, -1, scaled, borderType=border), unchanged


def _median(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    import cv2

    if border is not Border.NEAREST:
        return None
    return lambda: cv2.medianBlur(pixels, parameters["size"]), unchanged


def _laplace(pixels: Any, parameters: Parameters, border: int) -> Made | None:
    """Use the two steps of OpenCV's manual: signed sums, then their absolute values."""
    import cv2

    if parameters["negative"] != "absolute":
        return None
    mask = laplace_mask(parameters)

    def call() -> Any:
        if parameters["form"] == "4":
            sums = cv2.Laplacian(pixels, cv2.CV_16S, ksize=1, borderType=border)
        else:
            sums = cv2.filter2D(pixels, cv2.CV_16S, mask, borderType=border)
        return cv2.convertScaleAbs(sums)

    return call, unchanged


def _sobel(pixels: Any, parameters: Parameters, border: int) -> Made | None:
    import cv2

    from kernelscope.filters.sobel.cpu import MASKS

    masks = MASKS.astype(np.float64)

    def derivatives(depth: int) -> Any:
        return (cv2.Sobel(pixels, depth, dx, 1 - dx, borderType=border) for dx in (1, 0))

    def magnitude() -> Any:
        return cv2.convertScaleAbs(cv2.magnitude(*derivatives(cv2.CV_32F)))

    def total() -> Any:
        return cv2.add(*map(cv2.convertScaleAbs, derivatives(cv2.CV_16S)))

    def directions() -> Any:
        sums = (cv2.filter2D(pixels, cv2.CV_16S, mask, borderType=border) for mask in masks)
        return functools.reduce(cv2.max, map(cv2.convertScaleAbs, sums))

    forms = {"magnitude": magnitude, "sum": total, "directions": directions}
    call = forms.get(parameters["form"])
    return None if call is None else (call, unchanged)


def _greyscale(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    import cv2

    if parameters["rounding"] != "nearest":
        return None
    return lambda: cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), unchanged


def _nlm(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
    import cv2

    distance = library.distance(parameters, border)
    if distance is None:
        return None
    patch, window = parameters["patch"], 2 * parameters["search_radius"] + 1
    strength = 255 * distance
    return lambda: cv2.fastNlMeansDenoising(pixels, None, strength, patch, window), unchanged


LIBRARY = Library(
    name="OpenCV",
    module="cv2",
    makers={
        "greyscale": _greyscale,
        "laplace": _with_border(_laplace),
        "mask": _with_border(_mask),
        "mean": _with_border(_mean),
        "median": _median,
        "nlm": _nlm,
        "sobel": _with_border(_sobel),
        "weighted_mean": _with_border(_weighted_mean),
    },
    rank=0,
)
