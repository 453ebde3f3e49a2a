"""Level and window of volumes: automatic, or as the user chose them for each volume."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kernelscope.images.planes import GreyWindow, auto_window
from kernelscope.images.volume import Volume


class GreyWindows:
    """The values that are drawn black and white.

    Attributes
    ----------
    current : GreyWindow
        Those of the volume that is shown.
    volume : Volume or None
        The volume that is shown.
    """

    def __init__(self) -> None:
        self.current = GreyWindow(0.5, 1)
        self.volume: Volume | None = None
        self._chosen: WeakKeyDictionary[Volume, GreyWindow] = WeakKeyDictionary()
        self._automatic: WeakKeyDictionary[Volume, GreyWindow] = WeakKeyDictionary()

    @property
    def is_automatic(self) -> bool:
        """Whether the program chose the window."""
        return self.volume is None or self.volume not in self._chosen

    def show(self, volume: Volume) -> None:
        """Take the window that was chosen for `volume`, or else the automatic one."""
        self.volume = volume
        self.current = self._chosen.get(volume) or self._automatic_for(volume)

    def choose(self, window: GreyWindow | None) -> None:
        """Use `window` for the volume that is shown, now and later; None for the automatic one."""
        if self.volume is not None:
            self._chosen.pop(self.volume, None)
            if window is not None:
                self._chosen[self.volume] = window
            self.show(self.volume)

    def choose_full(self) -> None:
        """Draw the smallest voxel black and the largest white."""
        if self.volume is not None:
            low, high = self.volume.value_range
            self.choose(GreyWindow((low + high) / 2, (high - low) or 1.0))

    def remember(self, volume: Volume, window: GreyWindow) -> None:
        """Store the automatic window of `volume`, which takes a while to find."""
        self._automatic[volume] = window

    def _automatic_for(self, volume: Volume) -> GreyWindow:
        if volume not in self._automatic:
            self._automatic[volume] = auto_window(volume)
        return self._automatic[volume]
