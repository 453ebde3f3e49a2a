"""Which slices of volumes are looked at, and how they are drawn."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.projection import Projection
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.session.canvas_view import DRAWN, SLICES, CanvasView
from kernelscope.images.planes import GreyWindow, Plane, Position, auto_window
from kernelscope.images.volume import Volume

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
    window : GreyWindow
        The values of the volume that is shown that are drawn black and white.
    """

    def __init__(self) -> None:
        super().__init__()
        self.position: Position = (0, 0, 0)
        self.planes: tuple[Plane, ...] = ()
        self.plane_number: int | None = None
        self.clicked = 0
        self.look = Look()
        self.window = GreyWindow(0.5, 1)
        self.volume: Volume | None = None
        self.probe: tuple[int, Position] | None = None
        """The plane and the voxel under the cursor, or where keys have moved the probe to."""
        self._chosen: WeakKeyDictionary[Volume, GreyWindow] = WeakKeyDictionary()
        self._automatic: WeakKeyDictionary[Volume, GreyWindow] = WeakKeyDictionary()

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

    # --- level, window, gamma and colours ---

    @property
    def display(self) -> Display | None:
        if self.volume is None:
            return None
        window, look = self.window, self.look
        return Display(window.low, window.low + window.width, look.gamma, look.colour_map)

    @property
    def is_whole(self) -> bool:
        return self.volume is not None and self.volume.voxels.dtype.kind in "iu"

    def display_of(self, side: PaneSide) -> Display | None:
        return self.display

    def choose_for(self, side: PaneSide, display: Display) -> None:
        self.choose(display)

    def choose(self, display: Display) -> None:
        old = self.display
        if old is None:
            return
        with self.changing():
            if (display.low, display.high) != (old.low, old.high):
                self.choose_window(GreyWindow(display.level, display.width))
            look = replace(self.look, gamma=display.gamma, colour_map=display.colour_map)
            self.choose_look(look)

    def choose_automatic(self) -> None:
        with self.changing():
            self.choose_look(replace(self.look, gamma=1.0))
            self.choose_window(None)

    def choose_look(self, look: Look) -> None:
        """Draw in other colours, projected, or with differences over the anatomy."""
        if look != self.look:
            with self.changing(DRAWN, SLICES):
                self.look = look

    def choose_window(self, window: GreyWindow | None) -> None:
        """Choose the values drawn black and white, for this volume and the results from it.

        None for those that the program finds.
        """
        if self.volume is not None:
            self._chosen.pop(self.volume, None)
            if window is not None:
                self._chosen[self.volume] = window
            self.show_volume(self.volume)

    def show_automatic(self) -> None:
        self.choose_window(None)

    def show_full_range(self) -> None:
        if self.volume is not None:
            low, high = self.volume.value_range
            self.choose_window(GreyWindow((low + high) / 2, (high - low) or 1.0))

    @property
    def chosen_map(self) -> ColourMap:
        return self.look.colour_map

    def choose_map(self, colour_map: ColourMap) -> None:
        self.choose_look(replace(self.look, colour_map=colour_map))

    def show_volume(self, volume: Volume) -> None:
        """Take the window that was chosen for `volume`, or else the automatic one."""
        with self.changing(DRAWN):
            self.volume = volume
            self.window = self._chosen.get(volume) or self._automatic_for(volume)

    @property
    def is_automatic(self) -> bool:
        """Whether the program chose level and window."""
        return self.volume is None or self.volume not in self._chosen

    def remember(self, volume: Volume, window: GreyWindow) -> None:
        """Store the automatic window of `volume`, which takes a while to find."""
        self._automatic[volume] = window

    def _automatic_for(self, volume: Volume) -> GreyWindow:
        if volume not in self._automatic:
            self._automatic[volume] = auto_window(volume)
        return self._automatic[volume]
