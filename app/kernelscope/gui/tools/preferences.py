"""Edit > Preferences: the look of the program, and saving. Changes take effect immediately."""

from __future__ import annotations

from PySide6.QtWidgets import QFormLayout, QLabel, QSpinBox, QWidget

from kernelscope.files.pictures.pillow import JPEG_QUALITY as USUAL_QUALITY
from kernelscope.gui.widgets.appearance import SCALES, Appearance, Scheme, stylist
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import dressed, in_column
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.theme import set_role
from kernelscope.gui.widgets.tool_window import ToolWindow

_SCHEMES = {
    Scheme.DARK: "Dark",
    Scheme.LIGHT: "Light",
    Scheme.SYSTEM: "As the system",
}

JPEG_QUALITY = "jpegQuality"  # name of the setting


def jpeg_quality(settings: Settings) -> int:
    """Return the quality of JPEG files that the user chose."""
    text = settings.text(JPEG_QUALITY)
    return int(text) if text.isdecimal() and 1 <= int(text) <= 100 else USUAL_QUALITY


class Preferences(ToolWindow):
    """Theme, size of text, quality of JPEG. It does not block the main window.

    `settings`: where the choice is kept, at once.
    """

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__("preferences", "Preferences", parent, help_page="window")
        self._settings = settings
        chosen = Appearance.load(settings)

        self._scheme = dressed(
            ChoiceBox(self),
            "scheme",
            "Theme",
            tip="Colours of the window; pictures have a dark background in both",
        )
        for scheme, name in _SCHEMES.items():
            self._scheme.addItem(name, scheme.value)
        self._scheme.setCurrentIndex(self._scheme.findData(chosen.scheme.value))

        self._scale = dressed(
            ChoiceBox(self), "textSize", "Size of text", tip="Relative to the font of the desktop"
        )
        for scale in SCALES:
            self._scale.addItem(f"{100 * scale:.0f} %", scale)
        self._scale.setCurrentIndex(SCALES.index(chosen.scale))

        self._quality = dressed(
            QSpinBox(self),
            "jpegQuality",
            "JPEG quality",
            tip="Of JPEG files that are saved: 100 is the best, and the largest",
        )
        self._quality.setRange(1, 100)
        self._quality.setValue(jpeg_quality(settings))

        form = QFormLayout()
        form.addRow("&Theme", self._scheme)
        form.addRow("Size of te&xt", self._scale)
        form.addRow("&JPEG quality", self._quality)
        note = QLabel("Changes take effect immediately and are saved.")
        set_role(note, "note")
        in_column(form, note, 1, close_box(self), of=self)
        self._scheme.currentIndexChanged.connect(self._apply)
        self._scale.currentIndexChanged.connect(self._apply)
        self._quality.valueChanged.connect(
            lambda value: self._settings.set_text(JPEG_QUALITY, str(value))
        )

    def _apply(self) -> None:
        chosen = Appearance(Scheme(self._scheme.currentData()), self._scale.currentData())
        chosen.save(self._settings)
        stylist().apply(chosen)
