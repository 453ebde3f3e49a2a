"""Which axes of an array make pictures, and pictures from arrays of any number of axes.

::

    shape (40, 3, 512, 512), axes=(2, 3), channel_axis=1     40 pictures in colour
    shape (512, 512, 7), channel_axis=-1                     7 grey pictures, the channels

A filter for pictures takes one of them at a time: grey, RGB, or with alpha if that is declared.
Other numbers of channels are filtered one by one.
"""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.library.arrays import MOST_CHANNELS

_logger = logging.getLogger(__name__)

_GREY_OR_RGB, _WITH_ALPHA = (1, 3), (2, 4)
FilterPlanes = Callable[[NDArray[Any], int], NDArray[Any]]
"""Maps a picture and its number to its result."""


@dataclass(frozen=True)
class Layout:
    """The axes of arrays that make pictures, by their numbers; all of them are at least 0."""

    ndim: int
    rows: int
    columns: int
    channels: int | None = None
    alpha: bool = False

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        name: str,
        channel_axis: Any = None,
        axes: Any = None,
        *,
        alpha: bool = False,
    ) -> Layout:
        """Return the layout that the arguments of a function declare.

        Raises `InvalidImage` where an array of more than two axes may be a picture in colour or
        a stack; `InvalidParameter` for axes that it does not have.
        """
        channels, ndim = None, len(shape)
        if channel_axis is not None:
            channels = _axis(channel_axis, ndim, "channel_axis")
        elif axes is None and ndim == 3:
            channels = _last_axis(shape, dtype, name)
        left = [each for each in range(ndim) if each != channels]
        if axes is not None:
            left = axes_of(axes, ndim, 2)
            if channels in left:
                raise InvalidParameter("axes: the axis of the channels is one of them.")
        if len(left) != 2:
            raise InvalidImage(
                f"{name}: an array of shape {shape} is not a picture.",
                "Use up to 4 channels, or say which axis they are: channel_axis=0. Of a stack, "
                "name the axes of its pictures: axes=(1, 2); of a volume, all three.",
            )
        layout = cls(ndim, left[0], left[1], channels, alpha)
        if alpha and (channels is None or shape[channels] not in _WITH_ALPHA):
            found = 1 if channels is None else shape[channels]
            raise InvalidParameter(
                f"alpha: an array of {found} channel{'s' * (found > 1)} has none.",
                "Alpha is the last of 2 or 4 channels.",
            )
        return layout

    @property
    def others(self) -> list[int]:
        taken = (self.rows, self.columns, self.channels)
        return [each for each in range(self.ndim) if each not in taken]

    def is_plain(self, shape: Sequence[int]) -> bool:
        """Return whether the array is one picture as it stands."""
        as_it_is = (self.rows, self.columns, self.channels) in ((0, 1, None), (0, 1, 2))
        return as_it_is and not self.others and self._together(shape)

    def _together(self, shape: Sequence[int]) -> bool:
        """Return whether the channels are filtered as one picture."""
        if self.channels is None:
            return True
        return shape[self.channels] in (_WITH_ALPHA if self.alpha else _GREY_OR_RGB)

    def count(self, shape: Sequence[int]) -> int:
        each = 1 if self._together(shape) else shape[self.channels or 0]
        return each * math.prod(shape[axis] for axis in self.others)

    def sides_of(self, shape: Sequence[int]) -> tuple[int, int, int]:
        together = self.channels is not None and self._together(shape)
        channels = shape[self.channels] if together and self.channels is not None else 1
        return shape[self.rows], shape[self.columns], channels

    def result_shape(
        self, shape: Sequence[int], sides: Sequence[int], channels: int
    ) -> tuple[int, ...]:
        """Return the shape that `filtered` makes of results with such sides and channels."""
        found = {axis: shape[axis] for axis in self.others}
        found |= {self.rows: sides[0], self.columns: sides[1]}
        if self.channels is not None and not self._together(shape):
            found[self.channels] = shape[self.channels]
        elif channels > 1 or (self.channels is not None and shape[self.channels] == 1):
            found[self.ndim if self.channels is None else self.channels] = channels
        return tuple(found[axis] for axis in sorted(found))

    def first(self, array: NDArray[Any]) -> NDArray[Any]:
        return next(self._pictures(array))

    def filtered(self, array: NDArray[Any], run: FilterPlanes) -> NDArray[Any]:
        """Return the results of all pictures, each axis at its place.

        An axis of channels is left out where results are grey, and is the last one where they are
        in colour and the source has none.
        """
        if self.is_plain(array.shape):
            return run(array, 0)
        results = [run(each, number) for number, each in enumerate(self._pictures(array))]
        if self.channels is not None and not self._together(array.shape):
            if results[0].ndim > 2:
                raise InvalidParameter(
                    f"The filter makes colours, and {array.shape[self.channels]} channels are "
                    "filtered one by one.",
                    "Filter grey or RGB.",
                )
            step = array.shape[self.channels]
            parts = range(0, len(results), step)
            results = [np.stack(results[place : place + step], -1) for place in parts]
        others = self.others
        made = np.stack(results).reshape(*(array.shape[axis] for axis in others), *results[0].shape)
        axes = [*others, self.rows, self.columns]
        if results[0].ndim > 2:
            axes.append(self.ndim if self.channels is None else self.channels)
        places = [sorted(axes).index(axis) for axis in axes]
        return np.ascontiguousarray(np.moveaxis(made, range(made.ndim), places))

    def _pictures(self, array: NDArray[Any]) -> Iterator[NDArray[Any]]:
        others = self.others
        channels = () if self.channels is None else (self.channels,)
        moved = np.transpose(array, (*others, self.rows, self.columns, *channels))
        together = self._together(array.shape)
        for index in np.ndindex(moved.shape[: len(others)]):
            if together:
                yield moved[index]
            else:
                yield from np.moveaxis(moved[index], -1, 0)


def _last_axis(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> int | None:
    """Return the axis of channels if the last one of three is short.

    Raises `InvalidImage` for types that no picture in colour has, and where the first axis may be
    the one of the channels as well: shape (3, 40, 3) is any of four things.
    """
    if shape[2] > MOST_CHANNELS:
        return None
    of_pictures = dtype.kind == "f" or (dtype.kind == "u" and dtype.itemsize <= 2)
    is_strip = 1 < shape[0] <= MOST_CHANNELS < shape[1]
    if shape[2] > 1 and (is_strip or not of_pictures):
        raise InvalidImage(
            f"{name}: an array of shape {shape} and type {dtype} may be a picture in colour or a "
            "stack.",
            "Say which: channel_axis=-1, or axes=(1, 2) for the pictures of a stack.",
        )
    if shape[2] > 1:
        channels = "red, green and blue" if shape[2] == 3 else f"{shape[2]} channels"
        _logger.info(
            "%s: the last axis of shape %s is taken for %s. Of a stack, axes=(1, 2) names the "
            "pictures.",
            name,
            shape,
            channels,
        )
    return 2


def _axis(value: Any, ndim: int, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(
            f"{name}: {value!r} is not a whole number.", "Use one such as -1."
        ) from None
    if not -ndim <= number < ndim:
        raise InvalidParameter(
            f"{name}: an array of {ndim} axes has no axis {number}.",
            f"Use {-ndim} to {ndim - 1}.",
        )
    return number % ndim


def axes_of(axes: Any, ndim: int, count: int) -> list[int]:
    """Return the numbers of `count` axes, or raise `InvalidParameter`."""
    try:
        found = [_axis(each, ndim, "axes") for each in axes]
    except TypeError:
        found = []
    if len(set(found)) != count or len(found) != count:
        raise InvalidParameter(
            f"axes: {axes!r} does not name {'two' if count == 2 else 'three'} axes.",
            "Use the rows and the columns, such as (1, 2); of volumes the slices as well: "
            "(0, 1, 2).",
        )
    return found
