"""Black and white of data whose type does not state them: floats, and volumes."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QLineEdit, QWidget

from kernelscope.base.errors import InvalidParameter
from kernelscope.gui.session.session import KIND, Session
from kernelscope.gui.session.subject import INPUT, MOMENT, Fields
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    label_of,
    text_label,
    tool_button,
)
from kernelscope.gui.work.background import Background
from kernelscope.images.levels import given_levels
from kernelscope.schema.parameters import number_text, read_number
from kernelscope.schema.samples import Levels

_TIP = (
    "The sample that stands for {}, to which amounts of noise, thresholds, PSNR and SSIM are "
    "relative. Empty: that of the samples, which is shown in grey."
)


class LevelsForm(QWidget):
    """Two numbers, and a button that empties both; hidden where the type states its own."""

    def __init__(
        self, session: Session, background: Background, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("levelsForm")
        set_help(self, "filters#black-and-white")
        self._session, self._background = session, background
        self._black, self._white = (
            dressed(QLineEdit(self), name, name.capitalize(), tip=_TIP.format(name))
            for name in ("black", "white")
        )
        self._automatic = tool_button(
            "Automatic",
            "levelsOfSamples",
            lambda: session.subject.set_levels(None),
            "Black and white of the samples",
            tip="Take the black and white of the samples.",
        )
        self._problem = text_label("", "levelsProblem", parent=self)
        self._problem.hide()
        fields = (
            label_of("Black", self._black),
            self._black,
            label_of("&White", self._white),
            self._white,
            self._automatic,
        )
        in_column(in_row(*fields), self._problem, of=self, margins=0)
        for each in (self._black, self._white):
            each.editingFinished.connect(self._write)
        session.follow(self._show)
        self._show(frozenset({KIND}))

    def _write(self) -> None:
        """Give the numbers to the session, or show why they cannot be used."""
        try:
            self._session.subject.set_levels(self._read())
        except InvalidParameter as error:
            self._refuse(str(error))
        else:
            self._refuse("")

    def _read(self) -> Levels | None:
        numbers = []
        for text in (self._white.text(), self._black.text()):
            try:
                numbers.append(read_number(text) if text.strip() else None)
            except ValueError:
                raise InvalidParameter(f"“{text}” is not a number.", "Write “0.5”.") from None
        return given_levels(*numbers)

    def _refuse(self, problem: str) -> None:
        self._problem.setStyleSheet(f"color: {theme.error_text(self.palette()).name()}")
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))

    def _show(self, fields: Fields) -> None:
        if not fields & {KIND, MOMENT, INPUT}:
            return
        subject = self._session.subject
        self.setVisible(subject.takes_levels)
        if not subject.takes_levels:
            return
        levels = subject.levels
        for field, number in zip((self._black, self._white), levels or (None, None), strict=True):
            with QSignalBlocker(field):
                field.setText("" if number is None else number_text(number))
        self._automatic.setEnabled(levels is not None)
        self._refuse("")
        self._show_levels_of_samples(None)
        self._background.start(
            "levels of samples",
            subject.levels_of_samples(),
            self._show_levels_of_samples,
            lambda error: None,  # a run reports it
        )

    def _show_levels_of_samples(self, levels: Levels | None) -> None:
        for field, number in zip((self._black, self._white), levels or ("", ""), strict=True):
            field.setPlaceholderText(f"{number:.4g}" if number != "" else "")
