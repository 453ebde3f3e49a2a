"""The parameters of one filter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from kernelscope.base.errors import InvalidParameter
from kernelscope.gui.session.session import Values
from kernelscope.gui.widgets.editors import Editor, NumberEditor, NumbersEditor, create_editor
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.mask_editor import MaskEditor
from kernelscope.gui.widgets.parts import label_of
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import MaskPreset
from kernelscope.teach.handbook import anchor_of
from kernelscope.teach.manual import filter_page


class FilterForm(QWidget):
    """An editor for each parameter of a filter, under its label."""

    changed = Signal()
    estimate_wanted = Signal(str)  # the parameter of this name should be estimated from the picture

    def __init__(self, spec: FilterSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{spec.id}Form")
        self._spec = spec
        page = filter_page(spec)
        set_help(self, page)
        self._shown = Values(spec.defaults())
        """The values that stand in the form, as far as they can be read."""
        self.editors: dict[str, Editor] = {}
        self._labels: dict[str, QLabel] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        for parameter in spec.parameters:
            editor = create_editor(parameter, self)
            label = label_of(parameter.label, editor)
            for widget in (label, editor):
                set_help(widget, f"{page}#{anchor_of(parameter.label)}")
            label.setToolTip(parameter.help)
            layout.addWidget(label)
            self._labels[parameter.name] = label
            layout.addWidget(editor)
            layout.addSpacing(8)
            editor.changed.connect(self.changed)
            if isinstance(editor, MaskEditor):
                editor.presetChosen.connect(self._apply_preset)
            if isinstance(editor, NumberEditor):
                editor.estimate_wanted.connect(partial(self.estimate_wanted.emit, parameter.name))
            self.editors[parameter.name] = editor
        if not spec.parameters:
            nothing = QLabel("This filter has no settings.", self)
            nothing.setAlignment(Qt.AlignmentFlag.AlignLeft)
            layout.addWidget(nothing)
        self._offer_what_matters(self._shown.numbers)

    def read(self) -> Values:
        """Return the values; while one cannot be read, the last ones, and the reason."""
        automatic = tuple(
            name
            for name, editor in self.editors.items()
            if isinstance(editor, NumberEditor) and editor.automatic
        )
        try:
            numbers = {name: editor.value() for name, editor in self.editors.items()}
        except InvalidParameter as error:
            self._shown = Values(self._shown.numbers, automatic, error)
        else:
            self._shown = Values(numbers, automatic)
            self._offer_what_matters(numbers)
        return self._shown

    def show_values(self, values: Values) -> None:
        """Show `values`; what the user types into another editor meanwhile stays there."""
        shown, self._shown = self._shown, values
        again = shown.problem is not None and values.problem is None
        for name, editor in self.editors.items():
            if again or values.numbers[name] != shown.numbers[name]:
                editor.set_value(values.numbers[name])
            if isinstance(editor, NumberEditor):
                editor.set_automatic(name in values.automatic)

    def explains(self, problem: str) -> bool:
        """Return whether an editor shows `problem` itself."""
        masks = (editor for editor in self.editors.values() if isinstance(editor, MaskEditor))
        return any(mask.problem == problem for mask in masks)

    def show_estimates(self, values: Mapping[str, Any]) -> None:
        """Show estimates in fields without a number."""
        for name, value in values.items():
            editor = self.editors[name]
            if isinstance(editor, NumbersEditor):
                editor.show_estimate(value)

    def forget_estimates(self) -> None:
        """Remove the values of `show_estimates`."""
        for editor in self.editors.values():
            if isinstance(editor, NumbersEditor):
                editor.forget_estimate()

    def _offer_what_matters(self, numbers: Mapping[str, Any]) -> None:
        """Disable parameters without effect under the values of the others."""
        for parameter in self._spec.parameters:
            matters = parameter.matters(numbers)
            self.editors[parameter.name].setEnabled(matters)
            self._labels[parameter.name].setEnabled(matters)

    def _apply_preset(self, preset: MaskPreset) -> None:
        for name, value in preset.settings.items():
            self.editors[name].set_value(value)
