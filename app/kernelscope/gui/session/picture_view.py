"""How a picture and its output are looked at."""

from __future__ import annotations

from kernelscope.gui.session.canvas_view import CanvasView


class PictureView(CanvasView):
    """The pixel that is read off, beside what pictures and volumes have in common."""

    def __init__(self) -> None:
        super().__init__()
        self.place: tuple[int, int] | None = None
        """The pixel under the pointer or at the probe: column and row."""
