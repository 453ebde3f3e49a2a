"""Themes and sizes of text: the choice is kept, readable, and visible immediately."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QLabel,
    QMessageBox,
    QProxyStyle,
    QStyle,
    QStyleHintReturn,
    QStyleOption,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets import appearance, theme
from kernelscope.gui.widgets.appearance import SCALES, Appearance, Scheme, Stylist
from kernelscope.gui.widgets.settings import Settings
from tests.gui.helpers import contrast


@pytest.mark.parametrize("dark", [True, False])
def test_text_is_readable_and_grounds_are_neutral(qapp: QApplication, dark: bool) -> None:
    palette = appearance.palette(dark=dark)
    assert theme.is_dark(palette) is dark
    role = QPalette.ColorRole
    pairs = [
        (role.WindowText, role.Window),
        (role.Text, role.Base),
        (role.Text, role.AlternateBase),
        (role.ButtonText, role.Button),
        (role.HighlightedText, role.Highlight),
        (role.ToolTipText, role.ToolTipBase),
        (role.PlaceholderText, role.Base),
        (role.Link, role.Window),
    ]
    for text, ground in pairs:
        assert contrast(palette.color(text).name(), palette.color(ground).name()) >= 4.5, text
    for colour in (theme.quiet_text(palette), theme.warning_text(palette)):
        assert contrast(colour.name(), palette.color(role.Window).name()) >= 4.5
    accent, window = palette.color(role.Accent).name(), palette.color(role.Window).name()
    assert contrast(accent, window) >= 3
    for plain in (role.Window, role.Base, role.Button):
        assert palette.color(plain).saturation() == 0
    dark_ground = theme.canvas_ground(palette)
    assert dark_ground.lightness() < 40, "pictures lie on dark in every theme"
    assert contrast(theme.canvas_quiet(palette).name(), dark_ground.name()) >= 4.5


def test_the_choice_is_kept(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "settings.json")
    assert Appearance.load(settings) == Appearance(Scheme.DARK, 1.0)
    Appearance(Scheme.LIGHT, SCALES[-1]).save(settings)
    again = Settings(tmp_path / "settings.json")
    assert Appearance.load(again) == Appearance(Scheme.LIGHT, SCALES[-1])
    again.set_texts("appearance", {"scheme": "pink", "scale": "1e9"})
    assert Appearance.load(again) == Appearance()


@pytest.mark.slow
def test_a_theme_is_seen_at_once(qtbot: QtBot, stylist: Stylist) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.resize(40, 40)
    widget.show()

    def ground() -> QColor:
        return widget.grab().toImage().pixelColor(20, 20)

    for scheme, low, high in ((Scheme.DARK, 20, 60), (Scheme.LIGHT, 220, 256)):
        stylist.apply(Appearance(scheme))
        assert low < ground().lightness() < high


@pytest.mark.slow
def test_text_has_three_sizes_that_follow_the_choice(qtbot: QtBot, stylist: Stylist) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    column = QVBoxLayout(widget)
    labels = {role: QLabel("2.5 ms", widget) for role in ("headline", "", "note")}
    for role, label in labels.items():
        theme.set_role(label, role)
        column.addWidget(label)
    stylist.apply(Appearance())
    widget.show()
    sizes = {role: label.fontInfo().pointSizeF() for role, label in labels.items()}
    assert sizes["headline"] / sizes[""] == pytest.approx(18 / 11, rel=0.05)
    assert sizes["note"] / sizes[""] == pytest.approx(9 / 11, rel=0.05)
    stylist.apply(Appearance(scale=1.5))
    for role, label in labels.items():
        assert label.fontInfo().pointSizeF() == pytest.approx(1.5 * sizes[role], rel=0.05)


@pytest.mark.slow
def test_a_role_can_change(qtbot: QtBot, stylist: Stylist) -> None:
    stylist.apply(Appearance())
    label = QLabel("3 runs were dropped")
    qtbot.addWidget(label)
    label.show()
    plain = label.palette().color(QPalette.ColorRole.WindowText)
    theme.set_role(label, "problem")
    red = label.palette().color(QPalette.ColorRole.WindowText)
    assert red == theme.error_text(QApplication.palette()) != plain
    theme.set_role(label, "")
    assert label.palette().color(QPalette.ColorRole.WindowText) == plain


@pytest.mark.slow
def test_system_follows_the_desktop(
    qapp: QApplication, stylist: Stylist, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints = SimpleNamespace(colorScheme=lambda: Qt.ColorScheme.Light)
    desktop = SimpleNamespace(
        styleHints=lambda: hints,
        setPalette=qapp.setPalette,
        setFont=qapp.setFont,
        setStyleSheet=qapp.setStyleSheet,
    )
    monkeypatch.setattr(stylist, "_application", desktop)
    stylist.apply(Appearance(Scheme.SYSTEM))
    assert not theme.is_dark(qapp.palette())
    for scheme, dark in ((Qt.ColorScheme.Dark, True), (Qt.ColorScheme.Unknown, True)):
        hints.colorScheme = partial(Qt.ColorScheme, scheme)
        qapp.styleHints().colorSchemeChanged.emit(scheme)
        assert theme.is_dark(qapp.palette()) is dark
    stylist.apply(Appearance(Scheme.LIGHT))
    qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert not theme.is_dark(qapp.palette())


class _DesktopStyle(QProxyStyle):
    """Gives standard buttons icons, as Qt does on an X11 desktop."""

    def styleHint(  # noqa: N802
        self,
        hint: QStyle.StyleHint,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
        data: QStyleHintReturn | None = None,
    ) -> int:
        if hint is QStyle.StyleHint.SH_DialogButtonBox_ButtonsHaveIcons:
            return 1
        return super().styleHint(hint, option, widget, data)


@pytest.mark.slow
def test_no_button_of_a_dialog_has_an_icon(
    qtbot: QtBot, qapp: QApplication, stylist: Stylist
) -> None:
    """Only standard buttons would have one, and stand beside others without."""
    qapp.setStyle(_DesktopStyle("Fusion"))
    standard = QDialogButtonBox.StandardButton
    stylist.apply(Appearance())
    box = QDialogButtonBox(standard.Save | standard.Close)
    message = QMessageBox()
    message.setStandardButtons(QMessageBox.StandardButton.Save | QMessageBox.StandardButton.Cancel)
    for each in (box, message):
        qtbot.addWidget(each)
        assert len(each.buttons()) == 2
        assert all(button.icon().isNull() for button in each.buttons())
