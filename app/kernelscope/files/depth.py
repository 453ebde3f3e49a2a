"""Sample arithmetic: from one depth to another, with and without alpha, colour to grey."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def top(dtype: np.dtype[Any]) -> int:
    """Return the value of white: 255, 65535, or 1 for floats."""
    return 1 if dtype.kind == "f" else int(np.iinfo(dtype).max)


def rescale(samples: NDArray[Any], maximum: int) -> NDArray[Any]:
    """Stretch unsigned samples of 0 to `maximum` (at most 65535) over 8 or 16 whole bits."""
    target = np.dtype(np.uint8 if maximum <= 255 else np.uint16)
    if maximum == top(target):
        return samples.astype(target, copy=False)
    return _scaled(samples, top(target), maximum).astype(target)


def convert_depth(pixels: NDArray[Any], target: np.dtype[Any]) -> NDArray[Any]:
    """Round to an integer type with fewer levels; floats are clipped to 0 to 1 first."""
    if pixels.dtype.kind == "f":
        return np.rint(np.clip(pixels, 0, 1) * np.float32(top(target))).astype(target)
    return _scaled(pixels, top(target), top(pixels.dtype)).astype(target)


def compose_on_white(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return (height, width, channels) pixels over white, without their alpha channel."""
    white = top(pixels.dtype)
    colour, alpha = pixels[:, :, :-1], pixels[:, :, -1:]
    if pixels.dtype.kind == "f":
        alpha = np.clip(alpha, 0, 1)
        return colour * alpha + (1 - alpha)
    # At most white * white: fits 32 bits for 16-bit samples.
    alpha = alpha.astype(np.uint32)
    over = colour * alpha + white * (white - alpha)
    return ((over + white // 2) // white).astype(pixels.dtype)


def undo_premultiplied(colour: NDArray[Any], alpha: NDArray[Any]) -> NDArray[Any]:
    """Divide (height, width, channels) colour by its (height, width, 1) alpha."""
    if colour.dtype.kind == "f":
        return np.divide(colour, alpha, out=np.zeros_like(colour), where=alpha != 0)
    white = top(colour.dtype)
    divisor = np.maximum(alpha, 1).astype(np.uint32)
    plain = (colour.astype(np.uint32) * white + divisor // 2) // divisor
    return np.minimum(plain, white).astype(colour.dtype)


def cmyk_to_rgb(inks: NDArray[Any]) -> NDArray[Any]:
    """Return the white light that (height, width, 4) inks leave: (1 - C)(1 - K) and so on."""
    white = top(inks.dtype)
    light = white - inks
    if inks.dtype.kind == "f":
        return light[:, :, :3] * light[:, :, 3:]
    product = light[:, :, :3].astype(np.uint32) * light[:, :, 3:]
    return ((product + white // 2) // white).astype(inks.dtype)


def to_grey(colour: NDArray[Any]) -> NDArray[Any]:
    """Return (height, width, 1) grey of (height, width, 3) colour, after ITU-R BT.601."""
    grey = colour @ np.array([[299.0], [587.0], [114.0]]) / 1000
    if colour.dtype.kind != "f":
        grey = np.rint(grey)
    return grey.astype(colour.dtype)


def _scaled(samples: NDArray[Any], numerator: int, denominator: int) -> NDArray[Any]:
    """Return round(samples * numerator / denominator) for products below 2**32."""
    return (samples.astype(np.uint32) * numerator + denominator // 2) // denominator
