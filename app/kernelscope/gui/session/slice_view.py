"""Which slices of volumes are looked at, and how they are drawn."""

from __future__ import annotations

from kernelscope.gui.model.projection import Projection
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.session.canvas_view import DRAWN, SLICES, CanvasView
from kernelscope.images.planes import Plane, Position

_PROJECTED = "Figures of the slices through the crosshair, not of the projections."


class SliceView(CanvasView):
    """The crosshair, the planes through it, and the look of all of them.

    Attributes
    ----------
    position : tuple of int
        The voxel under the crosshair.
    planes : tuple of Plane
    plane_number : int or None
        Which plane is shown alone: an index of `planes`; None for all of them.
    clicked : int
        The view that was clicked last: the planes of the input, then those of the output.
    look : Look
    """

    def __init__(self) -> None:
        super().__init__()
        self.position: Position = (0, 0, 0)
        self.planes: tuple[Plane, ...] = ()
        self.plane_number: int | None = None
        self.clicked = 0
        self.look = Look()

    @property
    def active_plane(self) -> int:
        """The plane that is shown alone, or else was clicked last: an index of `planes`."""
        return self.clicked % 3 if self.plane_number is None else self.plane_number

    @property
    def places(self) -> list[tuple[int, int]]:
        """Axis and index of the slices that are shown, the one that was clicked last first."""
        shown = list(range(len(self.planes)))
        if self.plane_number is not None:
            shown = shown[self.plane_number : self.plane_number + 1]
        shown.sort(key=lambda number: number != self.clicked % 3)
        axes = [self.planes[number].axis for number in shown]
        return [(axis, self.position[axis]) for axis in axes]

    @property
    def axis(self) -> int:
        """The axis across which a filter for pictures takes slices."""
        return 0 if self.plane_number is None else self.planes[self.plane_number].axis

    @property
    def measured_note(self) -> str:
        return "" if self.look.projection is Projection.SLICE else _PROJECTED

    def choose_look(self, look: Look) -> None:
        """Draw slices projected, or differences over the anatomy."""
        if look != self.look:
            with self.changing(DRAWN, SLICES):
                self.look = look
