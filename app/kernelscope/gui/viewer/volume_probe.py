"""The probe of volumes: the voxel that is read off, marked in input and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.session.slice_view import SliceView
from kernelscope.gui.viewer import volume_values as values
from kernelscope.gui.viewer.plane_canvas import Probe
from kernelscope.gui.viewer.slices import PaneContent, Slabs
from kernelscope.gui.viewer.volume_pane import VolumePane
from kernelscope.images.planes import Plane, Position
from kernelscope.images.volume import Volume


class VolumeProbe:
    """The voxel under the cursor, or where the keyboard has moved the probe to."""

    def __init__(self, panes: Sequence[VolumePane], view: SliceView) -> None:
        self._panes, self._view = panes, view

    def clear(self) -> None:
        """Read off the crosshair again."""
        self._view.probe = None

    def follow(self, position: Position, planes: Sequence[Plane]) -> None:
        """Stay in the slice that is shown when another one is; `position` is the crosshair."""
        if self._view.probe is not None:
            number, voxel = self._view.probe
            moved = list(voxel)
            moved[planes[number].axis] = position[planes[number].axis]
            z, y, x = moved
            self._view.probe = number, (z, y, x)

    def hover(
        self,
        number: int,
        place: tuple[int, int] | None,
        plane: Plane,
        position: Position,
        shape: tuple[int, ...],
    ) -> None:
        """Read off the voxel at a column and row of a plane, or none outside of the volume."""
        self._view.probe = None
        if place is not None:
            column, row = place
            if 0 <= column < shape[plane.columns] and 0 <= row < shape[plane.rows]:
                self._view.probe = number, plane.moved(position, column, row, shape)

    def move(
        self,
        number: int,
        steps: tuple[int, int],
        plane: Plane,
        position: Position,
        shape: tuple[int, ...],
    ) -> None:
        """Move the probe by columns and rows; where there is none, begin at the crosshair."""
        if self._view.probe is None or self._view.probe[0] != number:
            self._view.probe = number, position
            return
        column, row = plane.place(self._view.probe[1], shape)
        right, down = steps
        self._view.probe = number, plane.moved(position, column + right, row + down, shape)

    def show(
        self,
        volume: Volume,
        planes: Sequence[Plane],
        position: Position,
        content_at: Callable[[Position, Sequence[Plane]], PaneContent],
        slabs: Slabs,
        look: Look,
    ) -> str:
        """Mark the voxel in both panes with its values; return them, or those of the crosshair.

        `content_at` returns the content of the output pane at a voxel of some planes.
        """
        number, voxel = self._view.probe or (None, position)
        plane = planes[number] if number is not None else None
        index = position[plane.axis] if plane is not None else 0
        content = content_at(voxel, planes if plane is None else (plane,))
        shows_values = self._view.panes.shows_values
        factor = values.factor_of(volume, self._view.panes.units)
        found = values.values_at(voxel, volume, content, slabs, look, plane, index, factor)
        for pane in self._panes:
            own = "input" if pane is self._panes[0] else found[-1][0]
            for each, view in enumerate(pane.views):
                if each != number:
                    view.set_probe(None)
                    continue
                lines = values.probe_lines(found, own, view.height()) if shows_values else ()
                view.set_probe(Probe(*planes[each].place(voxel, volume.voxels.shape), lines))
        facts = (values.place_text(volume, voxel), *(f"{name} {text}" for name, text in found))
        return "   ".join(facts)
