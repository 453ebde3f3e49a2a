"""OpenCV, on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from kernelscope.bench.peers import library
from kernelscope.bench.peers.library import (
    Library,
    Made,
    Maker,
    Parameters,
    laplace_mask,
    mask_and_divisor,
    unchanged,
)
from kernelscope.filters.shared.correlation import binomial
from kernelscope.filters.shared.footprints import table_of
from kernelscope.filters.shared.separable import radius
from kernelscope.schema.borders import Border

_BORDERS = {
    Border.REFLECT: "BORDER_REFLECT",
    Border.MIRROR: "BORDER_REFLECT_101",
    Border.NEAREST: "BORDER_REPLICATE",
    Border.CONSTANT: "BORDER_CONSTANT",
}
"""OpenCV's names; its filters do not support the others."""


def _with(
    make: Callable[[Any, Any, Parameters, int | None], Made | None],
    borders: Collection[Border] = tuple(_BORDERS),
) -> Maker:
    """Return a maker for some borders that passes OpenCV and its number of the border."""

    def with_opencv(pixels: Any, parameters: Parameters, border: Border) -> Made | None:
        if border not in borders:
            return None
        import cv2

        code = getattr(cv2, _BORDERS[border]) if border in _BORDERS else None
        return make(cv2, pixels, parameters, code)

    return with_opencv


def _mean(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made:
    side = parameters["size"]
    return lambda: cv2.blur(pixels, (side, side), borderType=border), unchanged


def _weighted_mean(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made:
    row = binomial(parameters["size"]) / 2.0 ** (parameters["size"] - 1)
    return lambda: cv2.sepFilter2D(pixels, -1, row, row, borderType=border), unchanged


def _gaussian(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made | None:
    sigma, side = parameters["sigma"], 2 * radius(parameters) + 1
    if isinstance(sigma, tuple):
        return None
    return lambda: cv2.GaussianBlur(pixels, (side, side), sigma, borderType=border), unchanged


def _mask(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made | None:
    if parameters["negative"] != "clip":
        return None
    mask, divisor = mask_and_divisor(parameters)
    scaled = (mask / divisor).astype(np.float32)
    return lambda: cv2.filter2D(pixels, -1, scaled, borderType=border), unchanged


def _median(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made:
    return lambda: cv2.medianBlur(pixels, parameters["size"]), unchanged


def _extreme(name: str, cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made:
    function, cells = getattr(cv2, name), table_of(parameters).astype(np.uint8)
    return lambda: function(pixels, cells, borderType=border, borderValue=0), unchanged


_OPERATIONS = {
    "opening": "MORPH_OPEN",
    "closing": "MORPH_CLOSE",
    "gradient": "MORPH_GRADIENT",
    "white-top-hat": "MORPH_TOPHAT",
    "black-top-hat": "MORPH_BLACKHAT",
}


def _morphology(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made:
    code, cells = _OPERATIONS[parameters["operation"]], table_of(parameters).astype(np.uint8)
    operation = getattr(cv2, code)
    return (
        lambda: cv2.morphologyEx(pixels, operation, cells, borderType=border, borderValue=0),
        unchanged,
    )


def _laplace(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made | None:
    """Use the two steps of OpenCV's manual: signed sums, then their absolute values."""
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


def _sobel(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made | None:
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


def _greyscale(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made | None:
    if parameters["rounding"] != "nearest":
        return None
    return lambda: cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), unchanged


def _nlm(cv2: Any, pixels: Any, parameters: Parameters, border: int | None) -> Made | None:
    distance = library.distance(parameters, Border.MIRROR)
    if distance is None:
        return None
    patch, window = parameters["patch"], 2 * parameters["search_radius"] + 1
    strength = 255 * distance
    return lambda: cv2.fastNlMeansDenoising(pixels, None, strength, patch, window), unchanged


LIBRARIES = (
    Library(
        name="OpenCV",
        module="cv2",
        makers={
            "gaussian": _with(_gaussian),
            "greyscale": _with(_greyscale, tuple(Border)),
            "laplace": _with(_laplace),
            "mask": _with(_mask),
            "maximum": _with(functools.partial(_extreme, "dilate")),
            "mean": _with(_mean),
            "median": _with(_median, (Border.NEAREST,)),
            "minimum": _with(functools.partial(_extreme, "erode")),
            "morphology": _with(_morphology),
            "nlm": _with(_nlm, (Border.MIRROR,)),
            "sobel": _with(_sobel),
            "weighted_mean": _with(_weighted_mean),
        },
        rank=0,
    ),
)
