"""Makes the layers of pictures and slices; projections of large slabs are computed elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from kernelscope.gui.model.display import Display
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.model.projection import Projection, project, project_change, slab
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.viewer.layer import Layer
from kernelscope.images.image import Image
from kernelscope.images.judging.pictures import ZERO
from kernelscope.images.planes import Plane
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import white_level

_AT_ONCE = 1 << 20
"""Voxels of a slab that is projected on the GUI thread. Of seven times as many, a maximum took 2 ms
and differences 13 to 55 ms on a core of a cloud machine."""

_KEPT = 24  # projections kept for each volume: of three planes, and of some positions before


Key = tuple[Any, ...]


class Slabs:
    """Slices and projections of volumes; large ones are computed when `compute` is called."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Volume, dict[Key, NDArray[Any]]] = WeakKeyDictionary()
        self._wanted: dict[Key, Callable[[], NDArray[Any]]] = {}

    def values(
        self, volume: Volume, minus: Volume | None, plane: Plane, index: int, look: Look
    ) -> NDArray[Any] | None:
        """Return the values to draw; None if they have to be computed elsewhere first."""
        axis = plane.axis
        if look.projection is Projection.SLICE:
            cut = plane.cut(volume.voxels, index)
            if minus is None:
                return cut
            change: NDArray[np.float32] = cut.astype(np.float32) - plane.cut(minus.voxels, index)
            return change
        part = slab(index, look.slices, volume.voxels.shape[axis])
        key = (id(minus), axis, part, look.projection)
        made = self._made.setdefault(volume, {})
        if key not in made:

            def work() -> NDArray[Any]:
                if minus is None:
                    return project(volume, axis, part, look.projection)
                return project_change(volume, minus, axis, part, look.projection)

            if volume.voxels.size // volume.voxels.shape[axis] * len(part) > _AT_ONCE:
                self._wanted[(volume, *key)] = work
                return None
            self._keep(volume, key, work())
        return plane.cut(made[key], 0)

    def take_work(self) -> Callable[[], dict[Key, NDArray[Any]]] | None:
        """Return a function that computes all that is wanted; None if nothing is."""
        wanted, self._wanted = self._wanted, {}
        if not wanted:
            return None
        return lambda: {key: work() for key, work in wanted.items()}

    def put(self, computed: dict[Key, NDArray[Any]]) -> None:
        """Keep the answer of the function of `take_work`."""
        for (volume, *key), values in computed.items():
            self._keep(volume, tuple(key), values)

    def _keep(self, volume: Volume, key: Key, values: NDArray[Any]) -> None:
        made = self._made.setdefault(volume, {})
        while len(made) >= _KEPT:
            del made[next(iter(made))]
        made[key] = values

    def draw(
        self, content: DrawnView, plane: Plane, index: int, display: Display, look: Look
    ) -> tuple[Layer | None, bool]:
        """Return a slice or a projection, and False while it is computed elsewhere.

        `display`: how its values are drawn, and those of a volume under a difference.
        """
        volume, minus = content.shown, content.minus
        if not isinstance(volume, Volume) or content.problem:
            return None, True
        assert minus is None or isinstance(minus, Volume)
        values = self.values(volume, minus, plane, index, look)
        if minus is None:
            if values is None:
                return None, False
            part = None if content.part is None else _place(content.part, plane, volume)
            layer = layer_of(values, display, part)
            return layer, self._add_channels(layer, volume, plane, index, look)
        under = self.values(minus, None, plane, index, look) if look.overlaid else values
        if values is None or under is None:
            return None, False
        layer = layer_of(under, display)
        if look.overlaid:
            put_change(layer, Pyramid(values[:, :, np.newaxis]), look, display.width, content.gain)
        layer.planes = values[:, :, np.newaxis]
        layer.minus = np.broadcast_to(np.float32(0), layer.planes.shape)
        return layer, True

    def _add_channels(
        self, layer: Layer, volume: Volume, plane: Plane, index: int, look: Look
    ) -> bool:
        """Add the other channels of a composite; return False if they are computed elsewhere."""
        for other, display in look.beside:
            if other is volume or other.voxels.shape != volume.voxels.shape:
                continue
            values = self.values(other, None, plane, index, look)
            if values is None:
                return False
            layer.add_light(Pyramid(_drawable(values)), display)
        return True


def _drawable(values: NDArray[Any]) -> NDArray[Any]:
    """Return a slice as a picture of one channel; signed numbers as floats: pictures have none."""
    # Neighbours on the screen may lie a slice apart in the volume, and are read at every zoom.
    planes = np.ascontiguousarray(values)[:, :, np.newaxis]
    return planes.astype(np.float32) if planes.dtype.kind == "i" else planes


def put_change(
    layer: Layer, change: Pyramid, look: Look, width: float, gain: int, zero: float = 0
) -> None:
    """Draw differences over a layer; `width`: from black to white, in steps from `zero`."""

    def colours(samples: NDArray[Any]) -> NDArray[np.uint8]:
        sizes = samples.astype(np.float32) - np.float32(zero)
        if sizes.shape[2] > 1:  # the colour that has changed most
            largest = np.abs(sizes).argmax(axis=2, keepdims=True)
            sizes = np.take_along_axis(sizes, largest, axis=2)
        return look.layer(sizes[:, :, 0], width, gain)

    layer.put_over(change, colours)


def picture_layer(content: DrawnView, display: Display, look: Look) -> Layer | None:
    """Return a picture or a difference; the display of the latter is that of its bytes."""
    image, minus = content.shown, content.minus
    if not isinstance(image, Image):
        return None
    if minus is None:
        return Layer(image.planes, content.pyramid, content.offset, display)
    assert isinstance(minus, Image)
    if look.overlaid and content.pyramid is not None:
        layer = Layer(image.planes, content.under, content.offset, display)
        white = content.window or white_level(image.pixels.dtype)
        scaled = replace(look, threshold=look.threshold * 255 * content.gain / white)
        put_change(layer, content.pyramid, scaled, 255, 1, ZERO)
    else:
        layer = Layer(image.planes, content.pyramid, content.offset, display)
    layer.minus = minus.planes
    return layer


def layer_of(values: NDArray[Any], display: Display, part: QRectF | None = None) -> Layer:
    planes = np.ascontiguousarray(values)[:, :, np.newaxis]
    return Layer(planes, Pyramid(_drawable(planes[:, :, 0])), 0, display, part)


def _place(part: Box, plane: Plane, volume: Volume) -> QRectF:
    """Return where the voxels of a box lie in a slice."""
    shape = volume.voxels.shape
    last = [first + side - 1 for first, side in zip(part.first, part.sides, strict=True)]
    corners = plane.place(part.first, shape), plane.place((last[0], last[1], last[2]), shape)
    (left, right), (top, bottom) = (sorted(both) for both in zip(*corners, strict=True))
    return QRectF(left, top, right + 1 - left, bottom + 1 - top)
