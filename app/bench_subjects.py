"""What the bench runs each filter with, and the OpenCV calls that compute the same.

This is the bench's data: a filter that is not mentioned is timed with its defaults and has
no counterpart.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.filters.spec import Border, Pixels

cv2: Any = importlib.import_module("cv2") if importlib.util.find_spec("cv2") else None

Peer = Callable[[Pixels, Mapping[str, Any]], Any]
"""Computes with OpenCV what a filter computes from pixels and parameters."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """How to time a filter.

    Attributes
    ----------
    variants : tuple of mapping
        Parameters other than the mask size to time it with, in turn.
    border : Border
        A border that both sides have.
    channels : int
        Channels of the picture.
    peer : callable or None
        OpenCV's counterpart; None if there is none, or no OpenCV.
    """

    variants: tuple[Mapping[str, Any], ...] = ({},)
    border: Border = Border.REFLECT
    channels: int = 1
    peer: Peer | None = None


def subject(filter_id: str) -> Subject:
    """Return how to time the filter called `filter_id`."""
    found = _SUBJECTS.get(filter_id, Subject())
    return found if cv2 is not None else replace(found, peer=None)


def _blur(pixels: Pixels, parameters: Mapping[str, Any]) -> Any:
    side = parameters["size"]
    return cv2.blur(pixels, (side, side), borderType=cv2.BORDER_REFLECT)


def _binomial(pixels: Pixels, parameters: Mapping[str, Any]) -> Any:
    order = parameters["size"] - 1
    row = np.array([math.comb(order, k) for k in range(order + 1)]) / 2.0**order
    return cv2.sepFilter2D(pixels, -1, row, row, borderType=cv2.BORDER_REFLECT)


def _correlate(pixels: Pixels, parameters: Mapping[str, Any]) -> Any:
    weights = np.array(parameters["mask"], np.float32)
    return cv2.filter2D(pixels, -1, weights, borderType=cv2.BORDER_REFLECT)


def _laplace(pixels: Pixels, parameters: Mapping[str, Any]) -> Any:
    """The two steps that OpenCV's manual shows: signed sums, then their absolute values."""
    if parameters["form"] == "4":
        sums = cv2.Laplacian(pixels, cv2.CV_16S, ksize=1, borderType=cv2.BORDER_REFLECT)
    else:
        weights = np.array(LAPLACE_MASKS[parameters["form"]])
        sums = cv2.filter2D(pixels, cv2.CV_16S, weights, borderType=cv2.BORDER_REFLECT)
    return cv2.convertScaleAbs(sums)


LAPLACE_MASKS = {
    "4": [[0.0, 1, 0], [1, -4, 1], [0, 1, 0]],
    "8": [[1.0, 1, 1], [1, -8, 1], [1, 1, 1]],
    "5x5": [
        [0.0, 0, 1, 0, 0],
        [0, 1, 2, 1, 0],
        [1, 2, -16, 2, 1],
        [0, 1, 2, 1, 0],
        [0, 0, 1, 0, 0],
    ],
}


def _sobel(pixels: Pixels, parameters: Mapping[str, Any]) -> Any:
    if parameters["form"] == "magnitude":
        across, down = (_derivative(pixels, cv2.CV_32F, *order) for order in ((1, 0), (0, 1)))
        return cv2.convertScaleAbs(cv2.magnitude(across, down))
    if parameters["form"] == "sum":
        across, down = (_derivative(pixels, cv2.CV_16S, *order) for order in ((1, 0), (0, 1)))
        return cv2.add(cv2.convertScaleAbs(across), cv2.convertScaleAbs(down))
    sums = (
        cv2.filter2D(pixels, cv2.CV_16S, np.array(mask), borderType=cv2.BORDER_REFLECT)
        for mask in _SOBEL_DIRECTIONS
    )
    return functools.reduce(cv2.max, map(cv2.convertScaleAbs, sums))


def _derivative(pixels: Pixels, depth: int, dx: int, dy: int) -> Any:
    return cv2.Sobel(pixels, depth, dx, dy, borderType=cv2.BORDER_REFLECT)


_SOBEL_DIRECTIONS = (
    [[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]],
    [[-1.0, -2, -1], [0, 0, 0], [1, 2, 1]],
    [[0.0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
    [[-2.0, -1, 0], [-1, 0, 1], [0, 1, 2]],
)
"""Four of the eight masks; the others are these with the sign reversed."""

_SUBJECTS = {
    "greyscale": Subject(
        channels=3, peer=lambda pixels, _: cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    ),
    "laplace": Subject(
        variants=tuple({"form": form, "negative": "absolute"} for form in ("4", "8", "5x5")),
        peer=_laplace,
    ),
    "mask": Subject(variants=({"divisor": "one"},), peer=_correlate),
    "mean": Subject(peer=_blur),
    "median": Subject(
        # OpenCV's median has no other border.
        border=Border.NEAREST,
        peer=lambda pixels, parameters: cv2.medianBlur(pixels, parameters["size"]),
    ),
    "sobel": Subject(
        variants=tuple({"form": form} for form in ("sum", "magnitude", "directions")),
        peer=_sobel,
    ),
    "weighted_mean": Subject(peer=_binomial),
}
