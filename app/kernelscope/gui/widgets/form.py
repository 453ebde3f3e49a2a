"""Forms made from declarations: an option or parameter is declared once, its editor follows.

OPTIONS = Whole("repeat", "Re&peat kernel", 1, "Runs of the kernel", low=1, high=99), ...
form = Form("gpuOptions", OPTIONS)
form.changed             the user changed something: `values` has it, or `problem` says why not
form.show_values(...)    the state changed: the editors follow, without a signal
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QStyle,
    QStyleOptionSpinBox,
    QToolButton,
    QWidget,
)

from kernelscope.base.errors import InvalidParameter
from kernelscope.gui.widgets.controls import ChoiceBox, NumberBox, Slider, WholeBox
from kernelscope.gui.widgets.masks import CellSheet, MaskEditor
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, label_of, switch, tool_button
from kernelscope.schema.parameters import (
    AxesParameter,
    ChoiceParameter,
    FloatParameter,
    FootprintParameter,
    IntParameter,
    MaskParameter,
    NumbersParameter,
    OddParameter,
    Parameter,
    RadiiParameter,
    SidesParameter,
    rounded,
)

_QUICK_SIZES = (3, 5, 7, 9)
_SLIDER_STEPS = 1000

_FACTOR = 1.1  # of a step where values span powers of ten: seven of them double the value
_LEAST_BOX = 84  # pixels that a box for a number is wide at least


class _OddSpinBox(WholeBox):
    """Steps from odd to odd; even numbers can be typed, and are refused with the reason."""

    def stepBy(self, steps: int) -> None:
        even = self.value() % 2 == 0
        self.setValue(self.value() + 2 * steps - (1 if steps > 0 else -1) * even)


class OddEditor(QWidget):
    """Buttons for the usual mask sizes and a box for any other."""

    changed = Signal()

    def __init__(self, parameter: OddParameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self._buttons: dict[int, QToolButton] = {}
        for size in _QUICK_SIZES:
            if parameter.minimum <= size <= parameter.maximum:
                spoken = f"{parameter.label} {size} {parameter.unit}"
                name = f"{parameter.name}{size}"
                button = switch(str(size), name, spoken, tip=f"{size}×{size}")
                button.setMinimumWidth(30)
                button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
                button.clicked.connect(lambda _=False, size=size: self._pick(size))
                self._buttons[size] = button
                row.addWidget(button)
        row.addStretch(1)
        self._box = _OddSpinBox(self)
        self._box.setRange(parameter.minimum, parameter.maximum)
        self._box.setValue(parameter.default)
        _dress_box(self._box, parameter)
        self._box.valueChanged.connect(self._on_changed)
        tell_of_refusals(self._box, self.changed.emit)
        row.addWidget(self._box)
        self._parameter = parameter
        self._mark()

    def value(self) -> int:
        """Return the number; raises `InvalidParameter` while something else stands there."""
        return int(_checked(self._box, self._parameter))

    def set_value(self, value: int) -> None:
        self._box.setValue(value)

    def _pick(self, size: int) -> None:
        self._box.setValue(size)
        self._mark()  # a click on the button that is on already must not switch it off

    def _on_changed(self) -> None:
        self._mark()
        self.changed.emit()

    def _mark(self) -> None:
        for size, button in self._buttons.items():
            button.setChecked(size == self._box.value())


class NumberEditor(QWidget):
    """A box over the whole range, a slider over the usual one and, if need be, *Estimate*.

    That stays pressed if every run estimates the number again, until the user sets one.
    """

    changed = Signal()
    estimate_wanted = Signal()

    def __init__(
        self, parameter: IntParameter | FloatParameter, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._low, self._high = parameter.slider or (parameter.minimum, parameter.maximum)
        self._parameter = parameter
        self._geometric = False
        self._box: WholeBox | NumberBox
        if isinstance(parameter, FloatParameter):
            self._box = NumberBox(self)
            self._box.setDecimals(parameter.decimals)
            self._geometric = parameter.geometric
            self._box.factor = _FACTOR if parameter.geometric else None
            steps = _SLIDER_STEPS
        else:
            self._box = WholeBox(self)
            steps = max(1, math.ceil((self._high - self._low) / parameter.step))
        self._decimals = parameter.decimals if isinstance(parameter, FloatParameter) else None
        self._button: QToolButton | None = None
        self._box.setRange(parameter.minimum, parameter.maximum)  # type: ignore[arg-type]
        self._box.setSingleStep(parameter.step)  # type: ignore[arg-type]
        self._box.setValue(parameter.default)
        tell_of_refusals(self._box, self.changed.emit)
        _dress_box(self._box, parameter)

        self._line = in_row(1, self._box, margins=0, spacing=4)
        if parameter.has_estimate:
            self._button = self._estimate_button(parameter)
            self._line.addWidget(self._button)
        self._slider = dressed(
            Slider(self), f"{parameter.name}Slider", f"{parameter.label}, slider"
        )
        self._slider.setRange(0, steps)
        self._slider.setPageStep(max(1, steps // 10))
        self._slider.setSingleStep(max(1, steps // 100))
        in_column(self._line, self._slider, of=self, margins=0, spacing=0)
        self._slider.valueChanged.connect(self._on_slid)
        self._box.valueChanged.connect(self._on_changed)
        self._move_slider()

    def put_under(self, label: QLabel) -> None:
        self._line.insertWidget(0, label)

    def value(self) -> int | float:
        """Return the number; raises `InvalidParameter` while something else stands there."""
        number: int | float = _checked(self._box, self._parameter)
        return number

    def set_value(self, value: float) -> None:
        self.set_automatic(False)
        self._box.setValue(value)

    @property
    def automatic(self) -> bool:
        return self._button is not None and self._button.isChecked()

    def set_automatic(self, automatic: bool) -> None:
        if self._button is not None and self._button.isCheckable():
            self._button.setChecked(automatic)

    def _estimate_button(self, parameter: Parameter) -> QToolButton:
        button = QToolButton(self)
        button.setText("Estimate")
        button.setCheckable(parameter.is_estimated)
        button.setChecked(parameter.is_estimated)
        name = f"Estimate {parameter.label.lower()} from the input"
        more = ": pressed, every run does that" if parameter.is_estimated else ""
        dressed(button, f"{parameter.name}Estimate", name, tip=f"{name}{more}")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(self._on_estimate)
        button.toggled.connect(self.changed)
        return button

    def _on_estimate(self) -> None:
        self.set_automatic(True)
        self.estimate_wanted.emit()

    def _on_slid(self, position: int) -> None:
        share = position / self._slider.maximum()
        if self._geometric:
            value = self._low * (self._high / self._low) ** share
            self._box.setValue(float(f"{value:.3g}"))
            return
        value = self._low + (self._high - self._low) * share
        self._box.setValue(round(value, self._decimals))

    def _on_changed(self) -> None:
        self.set_automatic(False)
        self._move_slider()
        self.changed.emit()

    def _move_slider(self) -> None:
        value = self._box.value()
        if self._geometric:
            if 0 < value < self._low:  # noise of a few of 65535 levels
                self._low = 10.0 ** math.floor(math.log10(value))
            share = math.log(max(value, self._low) / self._low) / math.log(self._high / self._low)
        else:
            share = (value - self._low) / (self._high - self._low)
        share = min(max(share, 0.0), 1.0)  # the box goes further than the slider
        with QSignalBlocker(self._slider):
            self._slider.setValue(round(share * self._slider.maximum()))


class AxesEditor(NumberEditor):
    """As `NumberEditor`, with a line for a number for each axis, which counts where it has one."""

    def __init__(self, parameter: AxesParameter, parent: QWidget | None = None) -> None:
        super().__init__(parameter, parent)
        self._each = dressed(
            QLineEdit(self), f"{parameter.name}Axes", f"{parameter.label} along each axis"
        )
        self._each.setPlaceholderText("or x, y" if parameter.axes == 2 else "or x, y, z")
        self._line.addWidget(self._each)
        self._slider.raise_()  # the order of children is that of Tab
        self._each.textChanged.connect(self.changed)

    def value(self) -> Any:
        """Return one number, or those of the axes; raises `InvalidParameter`."""
        text = self._each.text().strip()
        return self._parameter.parse(text) if text else super().value()

    def set_value(self, value: Any) -> None:
        is_one = not isinstance(value, tuple)
        with QSignalBlocker(self._each):
            self._each.setText("" if is_one else self._parameter.format(value))
        if is_one:
            super().set_value(value)

    def _on_changed(self) -> None:
        with QSignalBlocker(self._each):
            self._each.clear()
        super()._on_changed()


class LineEditor(QLineEdit):
    """A line for a text, or for the value of a parameter; `hint` is written while it is empty."""

    changed = Signal()

    def __init__(
        self, value: Any, hint: str, parent: QWidget, parameter: Parameter | None = None
    ) -> None:
        super().__init__(parent)
        self._hint, self._parameter = hint, parameter
        self.show_estimate(None)
        self.set_value(value)
        self.textChanged.connect(self.changed)

    def show_estimate(self, value: tuple[float, ...] | None) -> None:
        """Have an estimate in place of the hint; None: the hint alone."""
        hint = self._hint
        if value is not None and self._parameter is not None:
            hint = f"{self._parameter.format(rounded(value))} ({hint})"
        self.setPlaceholderText(hint)

    def value(self) -> Any:
        """Return the value in the field; the field of a parameter raises `InvalidParameter`."""
        return self.text() if self._parameter is None else self._parameter.parse(self.text())

    def set_value(self, value: Any) -> None:
        self.setText(value if self._parameter is None else self._parameter.format(value))


def _radii_editor(parameter: RadiiParameter, parent: QWidget) -> LineEditor:
    return LineEditor(parameter.default, "one, or along x, y, z", parent, parameter)


class ListEditor(ChoiceBox):
    """A list of texts for values; `text_of` names one that is not offered."""

    changed = Signal()

    def __init__(
        self,
        entries: Iterable[tuple[str, Any]],
        value: Any,
        parent: QWidget | None = None,
        text_of: Callable[[Any], str] | None = None,
    ) -> None:
        super().__init__(parent)
        self._values: list[Any] = []  # Qt would keep members of enumerations as plain texts
        self._text_of = text_of
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setMinimumContentsLength(10)  # where there is no room for the whole texts
        self.offer(entries, value)
        self.currentIndexChanged.connect(self.changed)

    def offer(self, entries: Iterable[tuple[str, Any]], value: Any = None) -> None:
        self.clear()
        self._values.clear()
        for text, each in entries:
            self._values.append(each)
            self.addItem(text, each)
        self.set_value(value if value in self._values else self.value())

    def value(self) -> Any:
        return self._values[self.currentIndex()] if self._values else None

    def set_value(self, value: Any) -> None:
        """Choose a value, which is offered from now on; without a name for it, the first."""
        if value not in self._values and self._text_of is not None:
            self._values.append(value)
            self.addItem(self._text_of(value), value)
        self.setCurrentIndex(self._values.index(value) if value in self._values else 0)


class ChoiceEditor(ListEditor):
    """A list of the named values of a parameter."""

    def __init__(self, parameter: ChoiceParameter, parent: QWidget | None = None) -> None:
        choices = parameter.choices
        entries = [(c.label, c.value) for c in choices]
        own = parameter.caption if isinstance(parameter, FootprintParameter) else None
        super().__init__(entries, parameter.default, parent, own)
        for place, choice in enumerate(choices):
            self.setItemData(place, choice.help, Qt.ItemDataRole.ToolTipRole)


class FootprintEditor(ChoiceEditor):
    """The named shapes of a mask; `draw` begins another one in `sheet` from the shape in front."""

    draw_wanted = Signal()

    def __init__(self, parameter: FootprintParameter, parent: QWidget | None = None) -> None:
        self.sheet = CellSheet(parameter, parent)
        self.draw = tool_button(
            "Draw…", "footprintDraw", lambda: self.draw_wanted.emit(), "Draw a mask of your own"
        )
        self.draw.setParent(parent)
        self._named = len(parameter.choices)
        super().__init__(parameter, parent)
        self.setSizeAdjustPolicy(self.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(7)  # beside the button, in a narrow panel
        self.sheet.changed.connect(self._on_drawn)
        self.currentIndexChanged.connect(self._follow)
        self._follow()

    def value(self) -> Any:
        found = super().value()
        return found if isinstance(found, str) else self.sheet.value()

    def set_value(self, value: Any) -> None:
        if not isinstance(value, str):
            self.sheet.show_cells(value)
        self._choose(value)

    def _choose(self, value: Any) -> None:
        """Choose a value in the list; a table takes the place of the one before."""
        if not isinstance(value, str) and value not in self._values:
            with QSignalBlocker(self):
                del self._values[self._named :]
                while self.count() > self._named:
                    self.removeItem(self._named)
        super().set_value(value)
        self._follow()

    def _on_drawn(self) -> None:
        with QSignalBlocker(self), contextlib.suppress(InvalidParameter):
            self._choose(self.sheet.value())
        self.changed.emit()

    def _follow(self) -> None:
        named = self.currentIndex() < self._named
        self.draw.setVisible(named)
        self.sheet.setVisible(not named)


Editor = OddEditor | NumberEditor | LineEditor | ChoiceEditor | MaskEditor
"""All have ``value()``, ``set_value(value)`` and the signal ``changed()``."""


_EDITORS: Mapping[type[Parameter], Callable[[Any, QWidget], Editor]] = {
    OddParameter: OddEditor,
    IntParameter: NumberEditor,
    FloatParameter: NumberEditor,
    AxesParameter: AxesEditor,
    ChoiceParameter: ChoiceEditor,
    FootprintParameter: FootprintEditor,
    NumbersParameter: lambda numbers, parent: LineEditor(
        numbers.default, numbers.none, parent, numbers
    ),
    RadiiParameter: _radii_editor,
    SidesParameter: _radii_editor,
    MaskParameter: MaskEditor,
}
"""The widget of each kind of parameter; a new kind needs a line here."""


def create_editor(parameter: Parameter, parent: QWidget) -> Editor:
    kind = IntParameter if parameter.has_estimate and parameter.sets_side else type(parameter)
    editor = _EDITORS[kind](parameter, parent)  # buttons for sizes have none for an estimate
    editor.setAccessibleDescription(parameter.help)
    return dressed(editor, parameter.name, parameter.label, tip=parameter.help)


def tell_of_refusals(box: WholeBox | NumberBox, changed: Callable[[], object]) -> None:
    """Call `changed` also when the typed text becomes no number, or one again."""
    refused = False

    def look() -> None:
        nonlocal refused
        was, refused = refused, not box.hasAcceptableInput()
        if was or refused:
            changed()

    box.lineEdit().textChanged.connect(look)


def _checked(box: WholeBox | NumberBox, parameter: Parameter) -> Any:
    """Return the number in `box`, or say in the words of `parameter` why there is none."""
    return box.value() if box.hasAcceptableInput() else parameter.parse(box.typed())


def _dress_box(box: WholeBox | NumberBox, parameter: Parameter) -> None:
    dressed(box, f"{parameter.name}Box", parameter.label, tip=parameter.help)

    def make_room() -> None:
        if parameter.unit:
            box.setSuffix(parameter.behind(box.value()))
        box.ensurePolished()
        option = QStyleOptionSpinBox()
        box.initStyleOption(option)
        metrics = box.fontMetrics()
        text = QSize(
            metrics.horizontalAdvance(f"{box.shown()}{box.suffix()} "), box.lineEdit().height()
        )
        kind = QStyle.ContentsType.CT_SpinBox
        needed = box.style().sizeFromContents(kind, option, text, box).width()
        box.setMinimumWidth(max(_LEAST_BOX, needed))

    box.valueChanged.connect(make_room)
    make_room()


@dataclass(frozen=True)
class Option:
    """A setting of the window, named as its control; `label` has the mark of its key."""

    name: str
    label: str
    default: Any
    help: str = ""  # tooltip


@dataclass(frozen=True)
class Listed(Option):
    """One of some values, each with its text; `text_of` names a value that was not offered."""

    entries: tuple[tuple[str, Any], ...] = ()
    text_of: Callable[[Any], str] | None = None


@dataclass(frozen=True)
class Whole(Option):
    low: int = 0
    high: int = 999
    unit: str = ""
    lowest: str = ""


@dataclass(frozen=True)
class Real(Option):
    low: float = 0.0
    high: float = 1.0
    unit: str = ""
    decimals: int = 2
    step: float = 1.0


@dataclass(frozen=True)
class Tick(Option):
    """On or off; those that follow each other share a row, with the label `beside` if given."""

    default: bool = False
    beside: str | None = None


@dataclass(frozen=True)
class Text(Option):
    """A line of text; `hint` is written while it is empty."""

    default: str = ""
    hint: str = ""


class Form(QWidget):
    """A labelled control for each declaration; `values` are the last ones without a `problem`."""

    changed = Signal(str)  # the option of this name

    def __init__(
        self,
        name: str,
        options: Iterable[Option | Parameter],
        parent: QWidget | None = None,
        *,
        by_hand: bool = False,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.values: dict[str, Any] = {}
        self.problem: InvalidParameter | None = None
        self.editors: dict[str, Any] = {}
        self.labels: dict[str, QLabel] = {}
        self.options: tuple[Option | Parameter, ...] = ()
        self._by_hand = by_hand
        self.rows = QFormLayout()
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        if not by_hand:
            self.setLayout(self.rows)
        self.declare(options)

    def declare(self, options: Iterable[Option | Parameter]) -> None:
        while self.rows.rowCount():
            self.rows.removeRow(0)
        self.options = tuple(options)
        self.values = {option.name: option.default for option in self.options}
        self.problem, self.editors, self.labels = None, {}, {}
        ticks: QHBoxLayout | None = None
        for option in self.options:
            editor = self.editors[option.name] = _create(option, self)
            changed = partial(self._on_changed, option.name)
            if isinstance(editor, WholeBox | NumberBox):
                editor.valueChanged.connect(lambda _, changed=changed: changed())
                tell_of_refusals(editor, changed)
            else:
                editor.changed.connect(changed)
            if isinstance(option, FootprintParameter):
                editor.draw_wanted.connect(partial(self._draw, option, editor))
            if not isinstance(option, Tick):
                self.labels[option.name] = label_of(option.label, field_of(editor))
                ticks = None
            if self._by_hand:
                continue
            if isinstance(option, Tick):
                if ticks is None:
                    ticks = in_row(1)
                    if option.beside is None:
                        self.rows.addRow(ticks)
                    else:
                        self.rows.addRow(option.beside, ticks)
                ticks.insertWidget(ticks.count() - 1, editor)
            else:
                self._add_row(self.labels[option.name], editor)
        self._offer_what_matters()

    def _add_row(self, label: QLabel, editor: QWidget) -> None:
        """Lay a control out beside its label, or below it where it needs the width."""
        if isinstance(editor, NumberEditor):
            editor.put_under(label)
            self.rows.addRow(editor)
        elif isinstance(editor, FootprintEditor):
            self.rows.addRow(label, in_row((editor, 1), editor.draw, margins=0))
            self.rows.addRow(editor.sheet)
        elif isinstance(editor, OddEditor | MaskEditor):
            self.rows.addRow(label)
            self.rows.addRow(editor)
        else:
            self.rows.addRow(label, editor)

    def _draw(self, parameter: FootprintParameter, editor: FootprintEditor) -> None:
        """Let the user change the cells of the named shape that is chosen."""
        editor.set_value(parameter.cells_of(self.values))
        editor.sheet.table.setFocus()

    def _on_changed(self, name: str) -> None:
        self.read()
        self.changed.emit(name)

    def read(self) -> None:
        """Take the values of the controls into the state."""
        try:
            self.values, self.problem = {n: _read(e) for n, e in self.editors.items()}, None
        except InvalidParameter as error:
            self.problem = error
        else:
            self._offer_what_matters()

    def show_values(self, **values: Any) -> None:
        """Show these values, without a signal; text that is being typed in other controls stays."""
        for name, value in values.items():
            editor = self.editors[name]
            with QSignalBlocker(editor):
                if self.problem is not None or self.values[name] != value:
                    _write(editor, value)
        self.values |= values
        self._offer_what_matters()

    def offer(self, name: str, entries: Iterable[tuple[str, Any]]) -> None:
        with QSignalBlocker(self.editors[name]):
            self.editors[name].offer(entries, self.values[name])

    def show_row(self, name: str, shown: bool) -> None:
        self.rows.setRowVisible(self.editors[name], shown)

    def _offer_what_matters(self) -> None:
        """Disable options without an effect under the values of the others."""
        for option in self.options:
            if isinstance(option, Parameter):
                matters = option.matters(self.values)
                self.editors[option.name].setEnabled(matters)
                self.labels[option.name].setEnabled(matters)


def field_of(editor: QWidget) -> QWidget:
    """Return the part of an editor that the keys go to."""
    if editor.focusPolicy() is not Qt.FocusPolicy.NoFocus:
        return editor
    taking = Qt.FocusPolicy.TabFocus
    inner = (each for each in editor.findChildren(QWidget) if each.focusPolicy() & taking)
    return editor.findChild(QAbstractSpinBox) or next(inner, editor)


def _create(option: Option | Parameter, parent: QWidget) -> Any:
    if isinstance(option, Parameter):
        return create_editor(option, parent)
    editor: QWidget
    match option:
        case Listed():
            editor = ListEditor(option.entries, option.default, parent, option.text_of)
        case Whole() | Real():
            editor = WholeBox(parent) if isinstance(option, Whole) else NumberBox(parent)
            if isinstance(option, Real) and isinstance(editor, NumberBox):
                editor.setDecimals(option.decimals)
                editor.setSingleStep(option.step)
            elif isinstance(option, Whole):
                editor.setSpecialValueText(option.lowest)
            editor.setRange(option.low, option.high)  # type: ignore[arg-type]
            editor.setSuffix(option.unit and f" {option.unit}")
            editor.setValue(option.default)
        case Tick():
            editor = _TickBox(option.label, parent)
            editor.setChecked(option.default)
            editor.toggled.connect(editor.changed)
        case _:
            editor = LineEditor(option.default, getattr(option, "hint", ""), parent)
    return dressed(editor, option.name, option.label.replace("&", ""), tip=option.help)


class _TickBox(QCheckBox):
    changed = Signal()

    def value(self) -> bool:
        return self.isChecked()

    def set_value(self, value: bool) -> None:
        self.setChecked(value)


def _read(editor: Any) -> Any:
    return editor.checked() if isinstance(editor, WholeBox | NumberBox) else editor.value()


def _write(editor: Any, value: Any) -> None:
    is_box = isinstance(editor, WholeBox | NumberBox)
    (editor.setValue if is_box else editor.set_value)(value)
