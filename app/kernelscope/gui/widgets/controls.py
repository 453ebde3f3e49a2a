"""Boxes, lists and sliders: the same in every locale, and under a passing wheel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QSlider,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStyleOptionSlider,
    QToolTip,
    QWidget,
)

from kernelscope.base.errors import InvalidParameter
from kernelscope.gui.widgets.parts import dressed
from kernelscope.schema.parameters import read_number

_MOST_DECIMALS = 323  # with this many, Qt keeps every bit of a float
_LONGEST = 10  # characters up to which a number is shown in full; longer ones to six digits


_Qt: Any = object  # stands for the class of Qt's that these are mixed into


class _Calm(_Qt):  # type: ignore[misc]
    """The wheel changes it only where it has the focus; otherwise the panel around it scrolls."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class ChoiceBox(_Calm, QComboBox):
    """A list whose longer texts end in dots: Qt would cut them so that they seem complete."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel does not give it

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        super().initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox,
            option,
            QStyle.SubControl.SC_ComboBoxEditField,
            self,
        )
        text, room = self.currentText(), field.width() - 2
        shown = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room)
        option.currentText = shown


def choice_box(
    name: str,
    accessible: str,
    entries: Iterable[str | tuple[str, Any]] = (),
    chosen: Callable[[], object] | None = None,
    *,
    tip: str = "",
) -> ChoiceBox:
    """Return a list of texts, some with their data; ``chosen()`` comes after each choice."""
    box = dressed(ChoiceBox(), name, accessible, tip=tip)
    for each in entries:
        text, data = (str(each), None) if isinstance(each, str) else each
        box.addItem(text, data)
    if chosen is not None:
        box.currentIndexChanged.connect(lambda: chosen())
    return box


class Slider(_Calm, QSlider):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the place that is clicked, as Qt does for the middle button: ten volumes a page are
        often all of them.
        """
        option, part = QStyleOptionSlider(), QStyle.SubControl
        self.initStyleOption(option)
        place, slider = event.position().toPoint(), QStyle.ComplexControl.CC_Slider
        hit = self.style().hitTestComplexControl(slider, option, place, self)
        left = event.button() is Qt.MouseButton.LeftButton
        if left and hit is not part.SC_SliderHandle:
            button = Qt.MouseButton.MiddleButton
            where = event.position(), event.globalPosition()
            event = QMouseEvent(event.type(), *where, button, button, event.modifiers())
        super().mousePressEvent(event)


class _Box(_Calm):
    """Common behaviour of boxes for numbers.

    They take every key: Qt's own drop keys that they do not understand, so that ``0,05`` becomes 5
    where the locale has a decimal point, and 0.05 where it has a comma. Here typed text stays
    as it was typed; `typed` returns it, and while it is no number, or out of range, the box keeps
    its value and is not acceptable. When it is left like that, it returns to the value that it held
    before, and says so.
    """

    _before: float

    def _set_up(self) -> None:
        plain = QLocale.c()
        plain.setNumberOptions(
            QLocale.NumberOption.OmitGroupSeparator | QLocale.NumberOption.RejectGroupSeparator
        )
        self.setLocale(plain)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._before = self.value()

    def typed(self) -> str:
        """Return the text of the number in the box, without prefix and suffix."""
        return self._bare(self.lineEdit().text())

    def checked(self) -> Any:
        """Return the value; raises `InvalidParameter` while something else stands in the box."""
        if not self.hasAcceptableInput():
            limits = " to ".join(map(self.textFromValue, (self.minimum(), self.maximum())))
            raise InvalidParameter(
                f"{self.accessibleName()}: “{self.typed()}” is no such number.", f"Use {limits}."
            )
        return self.value()

    def _bare(self, text: str) -> str:
        return text.strip().removeprefix(self.prefix()).removesuffix(self.suffix()).strip()

    def _read(self, text: str) -> Any:
        """Return the number in `text`; None if it is no number or out of range."""
        if self.specialValueText() and text == self.specialValueText():
            return self.minimum()
        try:
            number = self._parse(self._bare(text))
        except ValueError:
            return None
        return number if self.minimum() <= number <= self.maximum() else None

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        well = self._read(text) is not None
        state = QValidator.State.Acceptable if well else QValidator.State.Intermediate
        return state, text, position

    def valueFromText(self, text: str) -> Any:
        if self._bare(text) == self.textFromValue(self.value()):
            return self.value()  # it may have more digits than are shown
        number = self._read(text)
        return self.value() if number is None else number

    def setValue(self, value: float) -> None:
        """Show `value`, or the nearest that is in range, however large it is."""
        super().setValue(min(max(value, self.minimum()), self.maximum()))
        self._before = self.value()

    def stepBy(self, steps: int) -> None:
        super().stepBy(steps)
        self._before = self.value()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._leave()
        super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._before = self.value()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._leave()
        super().focusOutEvent(event)

    def _leave(self) -> None:
        if not self.hasAcceptableInput():
            refused = self.typed()
            self.setValue(self._before)
            self.lineEdit().setText(f"{self.prefix()}{self.shown()}{self.suffix()}")
            limits = " to ".join(map(self.textFromValue, (self.minimum(), self.maximum())))
            QToolTip.showText(
                self.mapToGlobal(QPoint(0, self.height())),
                f"“{refused}” is not a number from {limits}: {self.shown()} stays.",
                self,
            )
        self._before = self.value()

    def shown(self) -> str:
        return str(self.textFromValue(self.value()))


class WholeBox(_Box, QSpinBox):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._set_up()

    def _parse(self, text: str) -> int:
        if not text.lstrip("+-").isdecimal():
            raise ValueError(text)
        return int(text)

    def textFromValue(self, value: int) -> str:
        return str(value)


class NumberBox(_Box, QDoubleSpinBox):
    """A box for a real number; the arrows multiply and divide by `factor`, or add without one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._digits = 2
        self.factor: float | None = None
        super().setDecimals(_MOST_DECIMALS)
        self._set_up()

    def setDecimals(self, decimals: int) -> None:
        """Set the usual number of decimals; typed numbers may have more."""
        self._digits = decimals

    def _parse(self, text: str) -> float:
        return read_number(text)

    def textFromValue(self, value: float) -> str:
        if round(value, self._digits) == value:
            text = f"{value:.{self._digits}f}"
            return text.rstrip("0").removesuffix(".") if "." in text else text
        return repr(value) if len(repr(value)) <= _LONGEST else f"{value:.6g}"

    def stepBy(self, steps: int) -> None:
        if self.factor is not None and self.value() > 0:
            self.setValue(float(f"{self.value() * self.factor**steps:.3g}"))
            return
        stepped = self.value() + steps * self.singleStep()
        self.setValue(float(f"{stepped:.12g}") if math.isfinite(stepped) else stepped)
