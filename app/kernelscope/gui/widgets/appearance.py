"""How the program looks: dark, light or as the system, and the size of its text.

    Appearance (kept in the settings) --> palette, font and style sheet of the application

The style is Fusion, the same on every platform. The palette colours it; `resources/style.qss` adds
the parts that a palette cannot express: flat tabs and headers, the filled primary button, visible
focus, and the three sizes of text.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget

from kernelscope.base.paths import RESOURCES
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.settings import Settings

HEADLINE, HEADING, NOTE = 18 / 11, 1.3, 9 / 11
"""Sizes of text relative to labels: 18, 14 and 9 points where labels have 11."""

_FILES = "check", "close", "float"
"""Icons that a style sheet takes from files; their greys have contrast on light and dark."""


def style_sheet(palette: QPalette, size: float) -> str:
    role = QPalette.ColorRole
    window, text = palette.color(role.Window), palette.color(role.WindowText)
    dark = theme.is_dark(palette)
    fill = palette.color(role.Highlight)
    values = {
        "window": window.name(),
        "bar": _mix(window, text, 0.03 if dark else 0.04),
        "raised": _mix(window, text, 0.05) if dark else palette.color(role.Base).name(),
        "hover": _mix(window, text, 0.13),
        "press": _mix(window, text, 0.2),
        "line": _mix(window, text, 0.19 if dark else 0.2),
        "rim": palette.color(role.Mid).name() if dark else _mix(window, text, 0.14),
        "groove": _mix(window, text, 0.16 if dark else 0.2),
        "knob": _mix(window, text, 0.75) if dark else "#ffffff",
        "scroll": _mix(window, text, 0.28),
        "edge": _mix(window, text, 0.45),
        "base": palette.color(role.Base).name(),
        "link": palette.color(role.Link).name(),
        **{name: (RESOURCES / "icons" / f"{name}.svg").as_posix() for name in _FILES},
        "text": text.name(),
        "quiet": theme.quiet_text(palette).name(),
        "faint": palette.color(QPalette.ColorGroup.Disabled, role.Text).name(),
        "button": palette.color(role.Button).name(),
        "alternate": palette.color(role.AlternateBase).name(),
        "accent": palette.color(role.Accent).name(),
        "fill": fill.name(),
        "chosen": _mix(window, text, 0.2 if dark else 0.16),
        "fill_hover": fill.lighter(115).name(),
        "on_fill": palette.color(role.HighlightedText).name(),
        "tip": palette.color(role.ToolTipBase).name(),
        "tip_text": palette.color(role.ToolTipText).name(),
        "warning": theme.warning_text(palette).name(),
        "problem": theme.error_text(palette).name(),
        "headline_size": f"{size * HEADLINE:.1f}",
        "heading_size": f"{size * HEADING:.1f}",
        "note_size": f"{size * NOTE:.1f}",
    }
    sheet = (RESOURCES / "style.qss").read_text(encoding="utf-8")
    for name, value in values.items():
        sheet = sheet.replace(f"{{{name}}}", value)
    return sheet


def _mix(ground: QColor, text: QColor, share: float) -> str:
    parts = (
        round((1 - share) * a + share * b)
        for a, b in (
            (ground.red(), text.red()),
            (ground.green(), text.green()),
            (ground.blue(), text.blue()),
        )
    )
    return QColor(*parts).name()


_ROLE, _GROUP = QPalette.ColorRole, QPalette.ColorGroup

SMALLEST = 9.0
"""Points; some desktops have no font of their own, and Qt then takes 9 points or fewer."""

SCALES = (0.9, 1.0, 1.25, 1.5)
"""Sizes of text that are offered, relative to the font of the desktop."""

_GROUP_NAME = "appearance"


class Scheme(StrEnum):
    DARK = "dark"
    LIGHT = "light"
    SYSTEM = "system"


@dataclass(frozen=True)
class Appearance:
    scheme: Scheme = Scheme.DARK
    scale: float = 1.0

    @classmethod
    def load(cls, settings: Settings) -> Appearance:
        texts = settings.texts(_GROUP_NAME)
        scheme, scale = texts.get("scheme", ""), texts.get("scale", "")
        scales = {str(each): each for each in SCALES}
        return cls(
            Scheme(scheme) if scheme in list(Scheme) else Scheme.DARK, scales.get(scale, 1.0)
        )

    def save(self, settings: Settings) -> None:
        settings.set_texts(_GROUP_NAME, {"scheme": self.scheme.value, "scale": str(self.scale)})


class Stylist(QObject):
    """Gives an application its look, and follows the system where that was chosen."""

    restyled = Signal()  # after all widgets have other colours, or another size of text

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self._font = application.font()
        self.appearance = Appearance()
        if application.style().name().lower() != "fusion":
            application.setStyle("Fusion")
        application.styleHints().colorSchemeChanged.connect(self._on_system)

    @property
    def is_dark(self) -> bool:
        if self.appearance.scheme is not Scheme.SYSTEM:
            return self.appearance.scheme is Scheme.DARK
        return self._application.styleHints().colorScheme() is not Qt.ColorScheme.Light

    def apply(self, appearance: Appearance) -> None:
        self.appearance = appearance
        font = QFont(self._font)
        font.setPointSizeF(max(self._font.pointSizeF(), SMALLEST) * appearance.scale)
        colours = palette(dark=self.is_dark)
        with _widgets_kept():
            # Qt replaces a style sheet once for each widget and once more for each of its parents,
            # but takes one away, and sets the first one, in a single pass.
            self._application.setStyleSheet("")
            self._application.setPalette(colours)
            self._application.setFont(font)
            self._application.setStyleSheet(style_sheet(colours, font.pointSizeF()))
            # Qt goes on drawing their titles in the old size unless theirs is another one.
            large = QFont(font)
            large.setPointSizeF(font.pointSizeF() + 0.01)
            for window in QApplication.topLevelWidgets():
                for widget in (window, *window.findChildren(QWidget)):
                    if isinstance(widget, QDockWidget):
                        widget.setFont(large)
                    # Qt goes through them in no order: some take the font that their parent had.
                    elif not widget.font().resolveMask() and widget.font() != font:
                        widget.setFont(QFont())
        self.restyled.emit()

    def _on_system(self) -> None:
        if self.appearance.scheme is Scheme.SYSTEM:
            self.apply(self.appearance)


@contextmanager
def _widgets_kept() -> Iterator[None]:
    """Let Python destroy no widget.

    Qt goes through a list of all widgets when the look changes and calls handlers written in
    Python. If garbage were collected there, closed windows would vanish from under Qt.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def stylist() -> Stylist:
    """Return the stylist of the application; there is one."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    return application.findChild(Stylist) or Stylist(application)


def palette(*, dark: bool) -> QPalette:
    """Return the colours of the window: neutral greys, so that pictures look as they are."""
    colours = _DARK if dark else _LIGHT
    made = QPalette()
    for role, name in colours.items():
        made.setColor(role, QColor(name))
    faint = QColor("#7c7c7c" if dark else "#8c8c8c")
    for role in (_ROLE.WindowText, _ROLE.Text, _ROLE.ButtonText, _ROLE.HighlightedText):
        made.setColor(_GROUP.Disabled, role, faint)
    made.setColor(_GROUP.Disabled, _ROLE.Highlight, QColor("#444444" if dark else "#d0d0d0"))
    made.setColor(_GROUP.Disabled, _ROLE.Base, QColor(colours[_ROLE.Window]))
    return made


_DARK = {
    _ROLE.Window: "#262626",
    _ROLE.WindowText: "#dedede",
    _ROLE.Base: "#1d1d1d",
    _ROLE.AlternateBase: "#222222",
    _ROLE.Text: "#e2e2e2",
    _ROLE.PlaceholderText: "#979797",
    _ROLE.Button: "#353535",
    _ROLE.ButtonText: "#e2e2e2",
    _ROLE.BrightText: "#ffffff",
    _ROLE.Highlight: "#2f6bd0",
    _ROLE.HighlightedText: "#ffffff",
    _ROLE.Accent: "#6aa5ff",
    _ROLE.Link: "#86b4ff",
    _ROLE.LinkVisited: "#b9a3f5",
    _ROLE.ToolTipBase: "#3b3b3b",
    _ROLE.ToolTipText: "#f0f0f0",
    _ROLE.Light: "#4a4a4a",
    _ROLE.Midlight: "#3e3e3e",
    _ROLE.Mid: "#1a1a1a",
    _ROLE.Dark: "#141414",
    _ROLE.Shadow: "#0a0a0a",
}

_LIGHT = {
    _ROLE.Window: "#f1f1f1",
    _ROLE.WindowText: "#1f1f1f",
    _ROLE.Base: "#ffffff",
    _ROLE.AlternateBase: "#f6f6f6",
    _ROLE.Text: "#1b1b1b",
    _ROLE.PlaceholderText: "#6f6f6f",
    _ROLE.Button: "#fafafa",
    _ROLE.ButtonText: "#1f1f1f",
    _ROLE.BrightText: "#ffffff",
    _ROLE.Highlight: "#2f6bd0",
    _ROLE.HighlightedText: "#ffffff",
    _ROLE.Accent: "#2560c8",
    _ROLE.Link: "#1c57bd",
    _ROLE.LinkVisited: "#6a3fb5",
    _ROLE.ToolTipBase: "#fffff0",
    _ROLE.ToolTipText: "#1b1b1b",
    _ROLE.Light: "#ffffff",
    _ROLE.Midlight: "#e6e6e6",
    _ROLE.Mid: "#bdbdbd",
    _ROLE.Dark: "#9c9c9c",
    _ROLE.Shadow: "#6c6c6c",
}
