"""What is filtered: seeded noise, a photograph, a phantom head, or what somebody opened."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.errors import AppError, InvalidParameter
from kernelscope.images import phantom
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.paths import RESOURCES
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.samples import Kind, Pixels

SEED = 20130521
"""Of everything random."""

HEAD_SIGMA = 10.0
"""Rician noise of the head, whose brightest tissue is 255."""

SALT_AND_PEPPER = 0.05
"""Share of the photograph's pixels that turn black or white; source M does not state its own."""

PHOTOGRAPH_SIGMA = math.sqrt(0.001)
"""Gaussian noise of the photograph, of white: what source N adds."""

_SMALLEST = {2: 64**2, 3: 16**3}
"""Pixels of a picture and voxels of a volume that a slow run falls back to, about."""


class Content(StrEnum):
    """What a picture or a volume shows."""

    NOISE = "noise"
    PHOTOGRAPH = "photograph"
    SALT_AND_PEPPER = "salt and pepper"
    HEAD = "head"
    GIVEN = "given"


@dataclass(frozen=True)
class Data:
    """A picture or a scan to filter, made when it is needed.

    Attributes
    ----------
    content : Content
        ``noise``: uniform, 8 bit. ``photograph``: grey, 8 bit, with Gaussian noise; ``salt and
        pepper``: the same with that. ``head``: volumes with Rician noise. ``given``: what `of` got.
    shape : tuple of int
        (height, width) of a picture, (depth, height, width) of a volume.
    channels : int
        Channels of a picture, components of a scan.
    title : str
        Of what was given.
    given : Image or Scan, optional
        None also where a report tells of something that was given elsewhere.
    """

    content: Content
    shape: tuple[int, ...]
    channels: int = 1
    title: str = ""
    given: Source | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, source: Source) -> Data:
        """Return a picture or a scan that somebody opened."""
        planes = source.planes
        return cls(Content.GIVEN, planes.shape[:-1], planes.shape[-1], source.title, source)

    @classmethod
    def square(cls, spec: FilterSpec, side: int, channels: int = 1) -> Data:
        """Return what a filter is timed on by default: noise, or a head as wide as deep."""
        if spec.kind is Kind.VOLUME:
            return cls(Content.HEAD, (side, side, side), channels)
        return cls(Content.NOISE, (side, side), channels)

    @property
    def size(self) -> int:
        """Pixels or voxels."""
        return math.prod(self.shape)

    @property
    def digest(self) -> str:
        """What tells a given picture or scan from others; empty where there is none."""
        if self.given is None:
            return ""
        return hashlib.sha256(self.given.planes.tobytes()).hexdigest()[:16]

    def parts(self) -> Iterator[Data]:
        """Yield parts of growing size, each side doubled, the last of which is all of it."""
        part = self.resized(tuple(side // 2 for side in self.shape))
        if part.size >= _SMALLEST[len(self.shape)]:
            yield from part.parts()
        yield self

    def at_most(self, side: int) -> Data:
        """Return a part, no side of which is longer than `side`."""
        return self.resized(tuple(min(length, side) for length in self.shape))

    def resized(self, shape: tuple[int, ...]) -> Data:
        return replace(self, shape=shape)

    def make(self) -> Source:
        """Return it in memory of its own, which neither a cache nor a card knows yet.

        Raises
        ------
        AppError
            If it was given elsewhere, or if nobody can make such data.
        """
        if self.given is not None:
            return self.given.cropped(self.shape)
        if self.content is Content.GIVEN:
            raise AppError(f"“{self.title}” is not here.", "Open it, and measure it again.")
        pixels = _pixels(self.content, self.shape, self.channels)
        if self.content is Content.HEAD:
            volumes = (np.ascontiguousarray(volume) for volume in pixels)
            return Scan(tuple(Volume.from_array(volume.copy(), "head") for volume in volumes))
        return Image.from_array(pixels.copy(), str(self.content))

    def truth(self) -> Image | None:
        """Return the picture without its noise, where it is known and can judge a result."""
        if self.content not in (Content.PHOTOGRAPH, Content.SALT_AND_PEPPER):
            return None
        return Image.from_array(_photograph(self.shape), "photograph")

    def describe(self) -> str:
        """Return ``1024×1024`` or, of a volume, ``189×157×130``: width, height, depth."""
        return "×".join(map(str, reversed(self.shape)))


def kind_of(data: Data) -> Kind:
    return Kind.PICTURE if len(data.shape) == 2 else Kind.VOLUME


@functools.lru_cache(maxsize=8)
def _pixels(content: Content, shape: tuple[int, ...], channels: int) -> NDArray[Any]:
    """Return the samples, read-only; of a head shape (components, depth, height, width)."""
    rng = np.random.default_rng(SEED)
    if content is Content.HEAD:
        pixels: NDArray[Any] = _head(shape, channels)
    elif content is Content.PHOTOGRAPH:
        noise = rng.normal(0, 255 * PHOTOGRAPH_SIGMA, shape)
        pixels = np.clip(np.rint(_photograph(shape) + noise), 0, 255).astype(np.uint8)
    elif content is Content.SALT_AND_PEPPER:
        chance = rng.random(shape)
        pixels = _photograph(shape).copy()
        pixels[chance < SALT_AND_PEPPER] = 255
        pixels[chance < SALT_AND_PEPPER / 2] = 0
    else:
        pixels = rng.integers(0, 256, (*shape, channels) if channels > 1 else shape, np.uint8)
    pixels.flags.writeable = False
    return pixels


def _head(shape: tuple[int, ...], components: int) -> NDArray[np.float32]:
    depth, height, width = shape
    contrasts = tuple(phantom.Contrast)
    if components > len(contrasts):
        raise InvalidParameter(
            f"The phantom has no {components} components.", f"Use up to {len(contrasts)}."
        )
    truth = phantom.head((depth, height, width), contrasts[:components]).truth
    seeds = itertools.count(SEED)
    return np.stack(
        [
            phantom.add_noise(truth[contrast], phantom.Noise.RICIAN, HEAD_SIGMA, next(seeds)).voxels
            for contrast in contrasts[:components]
        ]
    )


@functools.lru_cache(maxsize=8)
def _photograph(shape: tuple[int, ...]) -> Pixels:
    """Return the sample photograph, every so manyth pixel of it."""
    from kernelscope.files import read_image

    pixels = read_image(RESOURCES / "camera.bmp").pixels
    rows, columns = (
        np.arange(side) * whole // side for side, whole in zip(shape, pixels.shape, strict=True)
    )
    chosen: Pixels = pixels[np.ix_(rows, columns)]
    return chosen
