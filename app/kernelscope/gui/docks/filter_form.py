"""The parameters of one filter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from kernelscope.gui.session.session import Values
from kernelscope.gui.widgets.editors import NumberEditor, NumbersEditor
from kernelscope.gui.widgets.form import Form
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.mask_editor import MaskEditor
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import MaskPreset
from kernelscope.teach.handbook import anchor_of
from kernelscope.teach.manual import filter_page


class FilterForm(Form):
    """An editor for each parameter of a filter, under its label."""

    estimate_wanted = Signal(str)  # the parameter of this name should be estimated from the picture

    def __init__(self, spec: FilterSpec, parent: QWidget | None = None) -> None:
        super().__init__(f"{spec.id}Form", spec.parameters, parent, by_hand=True)
        page = filter_page(spec)
        set_help(self, page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        for parameter in spec.parameters:
            label, editor = self.labels[parameter.name], self.editors[parameter.name]
            label.setToolTip(parameter.help)
            for widget in (label, editor):
                set_help(widget, f"{page}#{anchor_of(parameter.label)}")
                layout.addWidget(widget)
            layout.addSpacing(8)
            if isinstance(editor, MaskEditor):
                editor.presetChosen.connect(self._apply_preset)
            if isinstance(editor, NumberEditor):
                editor.estimate_wanted.connect(partial(self.estimate_wanted.emit, parameter.name))
        if not spec.parameters:
            nothing = QLabel("This filter has no settings.", self)
            nothing.setAlignment(Qt.AlignmentFlag.AlignLeft)
            layout.addWidget(nothing)

    def state(self) -> Values:
        """Return the values; while one cannot be read, the last ones, and the reason."""
        self.read()
        automatic = tuple(
            name
            for name, editor in self.editors.items()
            if isinstance(editor, NumberEditor) and editor.automatic
        )
        return Values(self.values, automatic, self.problem)

    def show_state(self, values: Values) -> None:
        """Show `values`; what the user types into another editor meanwhile stays there."""
        if values.problem is not None:
            self.problem = None  # or the text with the problem would be replaced
        self.show_values(**values.numbers)
        self.problem = values.problem
        for name, editor in self.editors.items():
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

    def _apply_preset(self, preset: MaskPreset) -> None:
        for name, value in preset.settings.items():
            self.editors[name].set_value(value)
