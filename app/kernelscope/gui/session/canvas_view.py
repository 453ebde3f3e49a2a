"""How input and output are looked at: arrangement, units, levels and colours."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelscope.gui.model.arrangement import Arrangement, Units
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.session.subject import Observed

DRAWN, PANES, SEEN, SLICES = "drawn", "panes", "seen", "slices"
"""Of a view: other levels or colours; another arrangement or units; another part of pictures is in
view; other slices of volumes."""


@dataclass(frozen=True)
class Panes:
    """How input and output share the room, and how values are read off."""

    arrangement: Arrangement = Arrangement.SIDE_BY_SIDE
    units: Units = Units.STORED
    shows_values: bool = True
    """Beside the cursor."""
    magnified: bool = False
    """Whether a magnifier is drawn at the cursor."""


class CanvasView(Observed):
    """The state of the views of an input and its output, which draw what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.panes = Panes()
        self._instead = self._held = False

    def arrange(self, **changes: object) -> None:
        """Change attributes of `panes`."""
        with self.changing(PANES):
            self.panes = replace(self.panes, **changes)  # type: ignore[arg-type]

    @property
    def shows_input(self) -> bool:
        """Whether the input is drawn in place of the output."""
        return self._instead or self._held

    def show_input_instead(self) -> None:
        """Draw the input in place of the output, or the output again."""
        with self.changing(PANES):
            self._instead = not self._instead

    def hold_input(self, held: bool) -> None:
        """Draw the input in place of the output while a key is held."""
        if held != self._held:
            with self.changing(PANES):
                self._held = held

    @property
    def measured_note(self) -> str:
        """A sentence about measured figures, where they are not those of the values in view."""
        return ""

    # --- level, window, gamma and colours ---

    @property
    def display(self) -> Display | None:
        """How values are drawn; None while nothing is open."""
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers."""
        raise NotImplementedError

    @property
    def colour_map(self) -> ColourMap:
        """The colours that are drawn: a picture in colour has only the grey maps."""
        return self.display.colour_map if self.display is not None else ColourMap.GREY

    @property
    def sides(self) -> tuple[PaneSide, ...]:
        """The pictures to choose from where they are drawn separately; else empty."""
        return ()

    def choose_side(self, side: PaneSide) -> None:
        """Let `display` be that of the input or the output, where they are drawn separately."""

    def choose(self, display: Display) -> None:
        """Draw values so."""
        raise NotImplementedError

    def choose_automatic(self) -> None:
        """Draw values with the contrast that the program finds."""
        raise NotImplementedError

    def show_automatic(self) -> None:
        """Draw input and output with the contrast that the program finds."""
        raise NotImplementedError

    def show_full_range(self) -> None:
        """Draw 0 black and the largest value white; of volumes, the smallest voxel black."""
        raise NotImplementedError

    @property
    def chosen_map(self) -> ColourMap:
        """The colours of grey pictures and of volumes."""
        raise NotImplementedError

    def choose_map(self, colour_map: ColourMap) -> None:
        """Draw grey pictures and volumes in these colours."""
        raise NotImplementedError
