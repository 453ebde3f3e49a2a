"""The data to filter: seeded noise, a photograph, a phantom head, or an opened file."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.base.paths import RESOURCES
from kernelscope.images import phantom
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind, Pixels

SEED = 20130521  # seed of all random data
HEAD_SIGMA = 10.0  # rician noise of the head, in grey levels; its brightest tissue is 255

MOST_CHANNELS = 4

SALT_AND_PEPPER = 0.05
"""Share of the photograph's pixels that turn black or white; source M does not state its share."""

PHOTOGRAPH_SIGMA = math.sqrt(0.001)
"""Standard deviation of the photograph's Gaussian noise, in units of white, as in source N."""

_SMALLEST = {2: 64**2, 3: 16**3}
"""Approximate size, in pixels or voxels, of the smallest part that a slow run is timed on."""


class Content(StrEnum):
    NOISE = "noise"
    PHOTOGRAPH = "photograph"
    SALT_AND_PEPPER = "salt and pepper"
    HEAD = "head"
    GIVEN = "given"


@dataclass(frozen=True)
class Data:
    content: Content
    """``noise``: uniform, 8 bit. ``photograph``: grey, 8 bit, with Gaussian noise. ``salt and
    pepper``: the photograph with that noise. ``head``: volumes with Rician noise. ``given``: the
    source passed to `of`."""
    shape: tuple[int, ...]  # (height, width) of a picture, (depth, height, width) of a volume
    channels: Annotated[int, (1, MOST_CHANNELS)] = 1  # of a picture; components of a scan
    title: str = ""  # title of the given source
    given: Source | None = field(default=None, compare=False, repr=False)
    """Also None if a report describes data that were opened elsewhere."""

    @classmethod
    def of(cls, source: Source) -> Data:
        """Return the data of a picture or a scan that the user opened."""
        planes = source.planes
        return cls(Content.GIVEN, planes.shape[:-1], planes.shape[-1], source.title, source)

    @classmethod
    def square(cls, spec: FilterSpec, side: int, channels: int = 1) -> Data:
        """Return the default data for a filter: noise, or a head that is as wide as deep."""
        if spec.kind is Kind.VOLUME:
            return cls(Content.HEAD, (side, side, side), channels)
        return cls(Content.NOISE, (side, side), channels)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def digest(self) -> str:
        """Digest that distinguishes given pictures or scans; empty for generated data."""
        if self.given is None:
            return ""
        return hashlib.sha256(self.given.planes.tobytes()).hexdigest()[:16]

    def parts(self) -> Iterator[Data]:
        """Yield parts of growing size; each side doubles, and the last part is all of the data."""
        part = self.resized(tuple(side // 2 for side in self.shape))
        if part.size >= _SMALLEST[len(self.shape)]:
            yield from part.parts()
        yield self

    def at_most(self, side: int) -> Data:
        return self.resized(tuple(min(length, side) for length in self.shape))

    def resized(self, shape: tuple[int, ...]) -> Data:
        return replace(self, shape=shape)

    def make(self) -> Source:
        if self.given is not None:
            return self.given.cropped(self.shape)
        if self.content is Content.GIVEN:
            raise AppError(f"“{self.title}” is not open.", "Open it, and measure again.")
        pixels = _pixels(self.content, self.shape, self.channels)
        if self.content is Content.HEAD:
            volumes = (np.ascontiguousarray(volume) for volume in pixels)
            return Scan(tuple(Volume.from_array(volume.copy(), "head") for volume in volumes))
        return Image.from_array(pixels.copy(), str(self.content))

    def truth(self) -> Image | None:
        """Return the picture without noise if it is known and results can be compared with it."""
        if self.content not in (Content.PHOTOGRAPH, Content.SALT_AND_PEPPER):
            return None
        return Image.from_array(_photograph(self.shape), "photograph")

    def describe(self) -> str:
        return "×".join(map(str, reversed(self.shape)))


def kind_of(data: Data) -> Kind:
    return Kind.PICTURE if len(data.shape) == 2 else Kind.VOLUME


def forget() -> None:
    _pixels.cache_clear()
    _photograph.cache_clear()


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
            phantom.add_noise(
                truth[contrast], phantom.ScannerNoise.RICIAN, HEAD_SIGMA, next(seeds)
            ).voxels
            for contrast in contrasts[:components]
        ]
    )


@functools.lru_cache(maxsize=8)
def _photograph(shape: tuple[int, ...]) -> Pixels:
    """Return the sample photograph, reduced to every n-th pixel."""
    from kernelscope.files import read_image

    pixels = read_image(RESOURCES / "camera.bmp").pixels
    rows, columns = (
        np.arange(side) * whole // side for side, whole in zip(shape, pixels.shape, strict=True)
    )
    chosen: Pixels = pixels[np.ix_(rows, columns)]
    return chosen
