"""Edit > Preferences: the look of the program, and saving. Changes take effect immediately."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from kernelscope.files.pictures.pillow import JPEG_QUALITY as USUAL_QUALITY
from kernelscope.gui.widgets.appearance import SCALES, Appearance, Scheme, stylist
from kernelscope.gui.widgets.form import Form, Listed, Whole
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import in_column, text_label
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tool_window import ToolWindow

_SCHEMES = (("Dark", Scheme.DARK), ("Light", Scheme.LIGHT), ("As the system", Scheme.SYSTEM))

JPEG_QUALITY = "jpegQuality"  # name of the setting

USUAL = f"{USUAL_QUALITY}, or as read if higher"

QUALITY_OPTION = Whole(
    JPEG_QUALITY,
    "&JPEG quality",
    0,
    f"Of JPEG files that are saved: 100 is the largest. If you choose none, it is {USUAL_QUALITY}, "
    "or that of the JPEG that was read if it is higher",
    high=100,
    lowest=USUAL,
)

_OPTIONS = (
    Listed(
        "scheme",
        "&Theme",
        Scheme.DARK,
        "Colours of the window; pictures have a dark background in both",
        entries=_SCHEMES,
    ),
    Listed(
        "textSize",
        "Size of te&xt",
        1.0,
        "Relative to the font of the desktop",
        entries=tuple((f"{100 * scale:.0f} %", scale) for scale in SCALES),
    ),
    QUALITY_OPTION,
)


def jpeg_quality(settings: Settings) -> int | None:
    """Return the quality that the user set; None for the usual one."""
    text = settings.text(JPEG_QUALITY)
    return int(text) if text.isdecimal() and 1 <= int(text) <= 100 else None


class Preferences(ToolWindow):
    """Theme, size of text, quality of JPEG, each kept at once."""

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__("preferences", "Preferences", parent, help_page="window")
        self._settings = settings
        chosen, quality = Appearance.load(settings), jpeg_quality(settings) or 0
        self._form = Form("preferencesForm", _OPTIONS, self)
        self._form.show_values(
            scheme=chosen.scheme, textSize=chosen.scale, **{JPEG_QUALITY: quality}
        )
        self._form.changed.connect(self._apply)
        note = text_label("Changes take effect immediately and are saved.", "", "note")
        note.setWordWrap(False)
        in_column(self._form, note, 1, close_box(self), of=self)

    def _apply(self, name: str) -> None:
        values = self._form.values
        if name == JPEG_QUALITY:
            self._settings.set_text(JPEG_QUALITY, str(values[JPEG_QUALITY] or ""))
            return
        chosen = Appearance(values["scheme"], values["textSize"])
        chosen.save(self._settings)
        stylist().apply(chosen)
