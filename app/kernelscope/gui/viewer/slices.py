"""Draws the contents of slice views, and computes projections of large slabs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.projection import Projection, project, project_change, slab
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.viewer.layer import Layer
from kernelscope.images.planes import Plane, Position
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box

_AT_ONCE = 1 << 20
"""Voxels of a slab that is projected on the GUI thread. Of seven times as many, a maximum took 2 ms
and differences 13 to 55 ms on a core of a cloud machine."""

_KEPT = 24  # projections kept for each volume: of three planes, and of some positions before


@dataclass(frozen=True)
class PaneContent:
    """The contents of a pane."""

    volume: Volume | None = None
    minus: Volume | None = None  # subtracted from it, to show a difference
    gain: int = 1  # by which that is amplified
    display: Display | None = None  # in place of the common one
    part: Box | None = None  # the voxels that were computed, if not all of a slice

    def at(self, voxel: Position) -> Volume | None:
        """Return the volume, if it has a value at a voxel."""
        return self.volume if self.part is None or self.part.has(voxel) else None


class OutputContent:
    """The content of the output pane: a volume, or single slices of one in some planes.

    `previews`: slices in place of those of the whole: the axis that one lies across, to its index,
    a volume with it, and the part of it that was computed, None for all. `earlier`: axes of the
    planes that show an output of earlier settings, while others do not.
    """

    def __init__(self, whole: PaneContent | None = None) -> None:
        self.whole = whole or PaneContent()
        self.previews: Mapping[int, tuple[int, Volume, Box | None]] = {}
        self.earlier: frozenset[int] = frozenset()

    def at(self, position: Position, planes: Sequence[Plane], look: Look) -> PaneContent:
        """Return the preview that shows a voxel in one of `planes`, or else the whole."""
        if look.projection is Projection.SLICE:
            for plane in planes:
                index, preview, part = self.previews.get(plane.axis, (-1, None, None))
                if preview is not None and index == position[plane.axis]:
                    return PaneContent(preview, part=part)
        return self.whole

    def state(self, plane: Plane, content: PaneContent) -> str:
        """Return how a plane relates to the settings, where planes differ."""
        if plane.axis in self.earlier:
            return "Earlier settings"
        if content.part is not None:
            return "Part of the slice"
        return "Not computed yet" if self.previews and content.volume is None else ""


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
        self,
        content: PaneContent,
        plane: Plane,
        index: int,
        display: Display,
        changes: ColourMap,
        look: Look,
    ) -> tuple[Layer | None, bool]:
        """Return a slice or a projection as it is drawn, and False while it is computed elsewhere.

        `display`: for a content without levels of its own. `changes`: the colours of differences.
        """
        volume, minus = content.volume, content.minus
        if content.display is not None:
            display = replace(display, low=content.display.low, high=content.display.high)
        if volume is None:
            return None, True
        values = self.values(volume, minus, plane, index, look)
        if minus is None:
            if values is None:
                return None, False
            part = None if content.part is None else _place(content.part, plane, volume)
            return layer_of(values, display, part), True
        anatomy = self.values(minus, None, plane, index, look) if look.overlaid else values
        if values is None or anatomy is None:
            return None, False
        if look.overlaid:
            layer = layer_of(anatomy, replace(display, colour_map=ColourMap.GREY))
            layer.put_over(look.layer(values, display.width, content.gain))
        else:
            layer = layer_of(values, display.of_change(content.gain, changes))
        layer.planes = values[:, :, np.newaxis]
        layer.minus = np.broadcast_to(np.float32(0), layer.planes.shape)
        return layer, True


def layer_of(values: NDArray[Any], display: Display, part: QRectF | None = None) -> Layer:
    """Return a slice as it is drawn; `part`: the pixels that are known, if not all."""
    planes = values[:, :, np.newaxis]
    # Signed numbers are drawn as floats: pictures have none.
    drawn = planes.astype(np.float32) if planes.dtype.kind == "i" else planes
    return Layer(planes, Pyramid(drawn), 0, display, part)


def _place(part: Box, plane: Plane, volume: Volume) -> QRectF:
    """Return where the voxels of a box lie in a slice."""
    shape = volume.voxels.shape
    last = [first + side - 1 for first, side in zip(part.first, part.sides, strict=True)]
    corners = plane.place(part.first, shape), plane.place((last[0], last[1], last[2]), shape)
    (left, right), (top, bottom) = (sorted(both) for both in zip(*corners, strict=True))
    return QRectF(left, top, right + 1 - left, bottom + 1 - top)
