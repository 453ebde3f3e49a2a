"""Forms made from declarations: an option or parameter is declared once, the controls follow.

OPTIONS = Whole("repeat", "Re&peat kernel", 1, "Runs of the kernel", low=1, high=99), ...
form = Form("gpuOptions", OPTIONS)
form.changed    the user changed something: `values` has it, or `problem` says why not
form.show(...)  the state changed: the controls follow, without a signal
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QHBoxLayout, QLabel, QLineEdit, QWidget

from kernelscope.base.errors import InvalidParameter
from kernelscope.gui.widgets.controls import NumberBox, WholeBox
from kernelscope.gui.widgets.editors import ListEditor, create_editor, tell_of_refusals
from kernelscope.gui.widgets.parts import dressed, in_row, label_of
from kernelscope.schema.parameters import Parameter


@dataclass(frozen=True)
class Option:
    """A setting of the window, named as its control; `label` has the mark of its key."""

    name: str
    label: str
    default: Any
    help: str = ""  # tooltip

    def matters(self, values: Mapping[str, Any]) -> bool:
        return True


@dataclass(frozen=True)
class Listed(Option):
    """One of some values, each with its text; `text_of` names a value that was not offered."""

    entries: tuple[tuple[str, Any], ...] = ()
    text_of: Callable[[Any], str] | None = None


@dataclass(frozen=True)
class Whole(Option):
    """A whole number; `lowest` is written in place of the least."""

    low: int = 0
    high: int = 999
    unit: str = ""
    lowest: str = ""


@dataclass(frozen=True)
class Real(Option):
    """A real number."""

    low: float = 0.0
    high: float = 1.0
    unit: str = ""
    decimals: int = 2
    step: float = 1.0


@dataclass(frozen=True)
class Tick(Option):
    """On or off; those that follow each other share a row.

    `beside`: the label of the row; None: it spans the form.
    """

    default: bool = False
    beside: str | None = None


@dataclass(frozen=True)
class Text(Option):
    """A line of text; `hint` is written while it is empty."""

    default: str = ""
    hint: str = ""


class Form(QWidget):
    """A control for each declaration, with its label.

    `values`: the state, as it was last read or shown. `problem`: why a control holds no value now;
    `values` has the one before. `rows`: the layout; of a form that is to be laid out by hand, None.
    """

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
        self.rows: QFormLayout | None = None
        if not by_hand:
            self.rows = QFormLayout(self)
            self.rows.setContentsMargins(0, 0, 0, 0)
            self.rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.declare(options)

    def declare(self, options: Iterable[Option | Parameter]) -> None:
        """Make the controls of these options, in place of those before."""
        while self.rows is not None and self.rows.rowCount():
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
            if not isinstance(option, Tick):
                self.labels[option.name] = label_of(option.label, editor)
                ticks = None
            if self.rows is None:
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
                self.rows.addRow(self.labels[option.name], editor)
        self._offer_what_matters()

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
        """Show these values, without a signal; what is being typed in other controls stays."""
        for name, value in values.items():
            editor = self.editors[name]
            with QSignalBlocker(editor):
                if self.problem is not None or self.values[name] != value:
                    _write(editor, value)
        self.values |= values
        self._offer_what_matters()

    def offer(self, name: str, entries: Iterable[tuple[str, Any]]) -> None:
        """Offer other values; the state stays, also one that is not offered now."""
        with QSignalBlocker(self.editors[name]):
            self.editors[name].offer(entries, self.values[name])

    def _offer_what_matters(self) -> None:
        """Disable what has no effect under the values of the others."""
        for option in self.options:
            if isinstance(option, Parameter):
                matters = option.matters(self.values)
                self.editors[option.name].setEnabled(matters)
                self.labels[option.name].setEnabled(matters)


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
            editor = _TextLine(option.default, parent)
            editor.setPlaceholderText(option.hint if isinstance(option, Text) else "")
            editor.textChanged.connect(editor.changed)
    return dressed(editor, option.name, option.label.replace("&", ""), tip=option.help)


class _TickBox(QCheckBox):
    changed = Signal()

    def value(self) -> bool:
        return self.isChecked()

    def set_value(self, value: bool) -> None:
        self.setChecked(value)


class _TextLine(QLineEdit):
    changed = Signal()

    def value(self) -> str:
        return self.text()

    def set_value(self, value: str) -> None:
        self.setText(value)


def _read(editor: Any) -> Any:
    return editor.checked() if isinstance(editor, WholeBox | NumberBox) else editor.value()


def _write(editor: Any, value: Any) -> None:
    is_box = isinstance(editor, WholeBox | NumberBox)
    (editor.setValue if is_box else editor.set_value)(value)
