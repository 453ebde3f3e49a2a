"""Zooming and panning of all planes of input and output together."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QSizeF

from kernelscope.gui.viewer import volume_values as values
from kernelscope.gui.viewer.camera import PlaneCamera
from kernelscope.gui.viewer.volume_pane import VolumePane
from kernelscope.images.planes import Plane, Position
from kernelscope.images.volume import Volume


class VolumeCamera:
    """Looks at the planes of a volume in all panes alike.

    `panes`: those that are hidden, and hidden views of them, do not decide on the size of slices.
    """

    def __init__(self, panes: Sequence[VolumePane]) -> None:
        self._panes = panes
        self._camera = PlaneCamera()
        self._volume: Volume | None = None
        self._planes: Sequence[Plane] = ()

    def show(self, volume: Volume, planes: Sequence[Plane]) -> None:
        self._volume, self._planes = volume, planes
        self._camera.set_extents([values.extent(volume, plane) for plane in planes])
        self.apply()

    def reset(self) -> None:
        """Look at whole slices, from the next call of `apply` on."""
        self._camera.reset()

    def one_to_one(self, position: Position, ratio: float) -> None:
        """Show the smallest side of a voxel as one pixel of a screen with this pixel ratio."""
        if self._volume is not None:
            wanted = 1 / min(self._volume.spacing) / ratio
            self.zoom_all(position, wanted / (self._fit * self._camera.zoom))

    def zoom_all(self, position: Position, factor: float) -> None:
        """Magnify all planes about a voxel."""
        if self._volume is not None:
            self._camera.zoom_about(values.middles(self._volume, self._planes, position), factor)
            self.apply()

    def zoom_at(self, number: int, factor: float, point: QPointF) -> None:
        """Magnify all planes; the point under the cursor in one of them stays there."""
        if self._planes:
            view = self._panes[0].views[number]
            middle = QPointF(view.width() / 2, view.height() / 2)
            self._camera.zoom_at(number, point - middle, factor, self._fit)
            self.apply()

    def pan(self, number: int, right: float, down: float) -> None:
        """Move a plane by screen pixels."""
        if self._planes:
            self._camera.pan(number, QPointF(right, down), self._fit)
            self.apply()

    def apply(self) -> None:
        """Draw the slices where they belong in views of the present size."""
        for pane in self._panes:
            pane.place_hint()
        if not self._planes:
            return
        fit = self._fit
        for pane in self._panes:
            for number, view in enumerate(pane.views):
                view.set_camera(self._camera.area(number, QSizeF(view.size()), fit))

    @property
    def _fit(self) -> float:
        """The scale of whole slices, in screen pixels per millimetre."""
        return self._camera.fit_of(
            (number, QSizeF(view.size()))
            for pane in self._panes
            for number, view in enumerate(pane.views)
            if not view.isHidden() and not pane.isHidden()
        )
