"""The source of a filter: a picture, or volumes of one head.

`Image` and `Scan` have these members, and whatever runs, times or describes a filter asks for
them instead of for the type.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.samples import Components, Kind, Pixels

if TYPE_CHECKING:
    from kernelscope.images.volume import Volume


@dataclass(frozen=True)
class Channel:
    """The meaning of the samples of a picture or volume."""

    name: str = ""  # such as a dye: "DAPI"; empty if unknown
    colour: str = ""  # six hexadecimal digits, red first; empty if unknown
    facts: tuple[tuple[str, str], ...] = ()  # further properties as OME names them: wavelengths
    window: tuple[float, float] | None = field(default=None, compare=False)
    """The levels that its file draws black and in full colour; results have none."""


UNKNOWN_CHANNEL = Channel()


def fingerprint(samples: NDArray[Any]) -> Hashable:
    """Return a value that is equal for the same samples."""
    return samples.shape, samples.dtype.str, zlib.crc32(np.ascontiguousarray(samples).data)


def sizes_of(kept: Iterable[Source | Volume]) -> dict[int, int]:
    """Return the bytes of arrays by their identity: each counts once, however many share it."""
    different = {id(each): each for each in kept}
    return {id(array): array.nbytes for each in different.values() for array in each.arrays()}


class Source(Protocol):
    """Samples that never change, and where they came from."""

    @property
    def kind(self) -> Kind:
        """The kind of filters that take it as a whole."""

    @property
    def unit(self) -> str:
        """Unit of its size, in which speeds are given: ``pixels`` or ``voxels``."""

    @property
    def title(self) -> str:
        """Short name for window titles and labels."""

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the pictures or volumes that are filtered together."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Changes that were made when it was read, for the user to know."""

    @property
    def pixels(self) -> NDArray[Any]:
        """The array that a GPU keeps of a picture or of a scan that is one array."""

    @property
    def key(self) -> object:
        """The thing by which a GPU recognises the source in its memory."""

    @property
    def components(self) -> Pixels | Components:
        """The samples for `FilterSpec.resolve`: `planes`, or volumes that need not be one array."""

    @property
    def planes(self) -> NDArray[Any]:
        """The samples that filters read: (height, width, channels), or with depth before."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `planes`, which need not be made for it."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of `planes`, which need not be made for it."""

    @property
    def samples(self) -> tuple[NDArray[Any], ...]:
        """The arrays that were given: the pixels, or the voxels of each volume."""

    @property
    def is_grey(self) -> bool:
        """Whether there are no colours to convert to greyscale."""

    @property
    def size(self) -> str:
        """Width, height and depth in words, like ``512×256``."""

    @property
    def mode(self) -> str:
        """Colour model and depth, or the number of volumes, in words."""

    @property
    def fingerprint(self) -> Hashable:
        """Equal for sources with the same samples, which it does not keep in memory."""

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return every array that it holds in memory by now."""

    def describe(self) -> str:
        """Return title, size and mode in words."""

    def like(self, planes: NDArray[Any], *, finite: bool = False) -> Source:
        """Return the same with the samples of `planes`, which must not be written to afterwards.

        `finite` says that floats were looked at already.
        """

    def stand_in(self, shape: tuple[int, ...]) -> Source:
        """Return a source whose planes have this shape, without taking memory for them."""

    def cropped(self, shape: tuple[int, ...]) -> Source:
        """Return a copy of the corner of this shape, without the file and its metadata."""
