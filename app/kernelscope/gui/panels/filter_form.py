"""The parameters of one filter."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from kernelscope.engine.step import ESTIMATE
from kernelscope.errors import InvalidParameter
from kernelscope.gui.panels.editors import (
    Editor,
    NumberEditor,
    NumbersEditor,
    create_editor,
)
from kernelscope.gui.panels.mask_editor import MaskEditor
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.handbook import anchor_of
from kernelscope.manual import filter_page
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.parameters import MaskPreset


def same_values(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether values of the same parameters are the same in value and type.

    Masks count as different unless they are one object: comparing them takes as long as checking.
    """
    return one.keys() == other.keys() and all(
        value is other[name]
        or (type(value) is type(other[name]) is not tuple and value == other[name])
        for name, value in one.items()
    )


class FilterForm(QWidget):
    """An editor for each parameter of a filter, under its label.

    Signals
    -------
    changed
    estimate_wanted : str
        The parameter of this name should be estimated from the picture.
    """

    changed = Signal()
    estimate_wanted = Signal(str)

    def __init__(self, spec: FilterSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{spec.id}Form")
        self._spec = spec
        page = filter_page(spec)
        set_help(self, page)
        self._checked: tuple[dict[str, Any], dict[str, Any]] | None = None
        """The last values, as they were read and as they were checked."""
        self.editors: dict[str, Editor] = {}
        self._labels: dict[str, QLabel] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        for parameter in spec.parameters:
            editor = create_editor(parameter, self)
            label = QLabel(parameter.label, self)
            label.setBuddy(editor)
            for widget in (label, editor):
                set_help(widget, f"{page}#{anchor_of(parameter.label)}")
            label.setToolTip(parameter.help)
            layout.addWidget(label)
            self._labels[parameter.name] = label
            layout.addWidget(editor)
            layout.addSpacing(8)
            editor.changed.connect(self._on_changed)
            if isinstance(editor, MaskEditor):
                editor.presetChosen.connect(self._apply_preset)
            if isinstance(editor, NumberEditor):
                editor.estimate_wanted.connect(partial(self.estimate_wanted.emit, parameter.name))
            self.editors[parameter.name] = editor
        if not spec.parameters:
            nothing = QLabel("This filter has no settings.", self)
            nothing.setAlignment(Qt.AlignmentFlag.AlignLeft)
            layout.addWidget(nothing)
        self._offer_what_matters()

    def values(self) -> dict[str, Any]:
        """Return the checked values; raises `InvalidParameter`."""
        raw = self._raw_values()
        if self._checked is None or not same_values(
            raw, self._checked[0]
        ):  # asked for ten times a change
            self._checked = raw, self._spec.validate(raw)
        return dict(self._checked[1])

    def explains(self, problem: str) -> bool:
        """Return whether an editor shows `problem` itself."""
        masks = (editor for editor in self.editors.values() if isinstance(editor, MaskEditor))
        return any(mask.problem == problem for mask in masks)

    @property
    def automatic(self) -> tuple[str, ...]:
        """The parameters that every run estimates again; `values` has the last estimates."""
        return tuple(
            name
            for name, editor in self.editors.items()
            if isinstance(editor, NumberEditor) and editor.automatic
        )

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Show `values`; parameters that are not named keep theirs."""
        for name, value in values.items():
            self.editors[name].set_value(value)

    def show_estimates(self, values: Mapping[str, Any]) -> None:
        """Show estimates in fields without a number."""
        for name, value in values.items():
            editor = self.editors[name]
            if isinstance(editor, NumbersEditor):
                editor.show_estimate(value)
            elif isinstance(editor, NumberEditor):
                editor.set_estimate(value)

    def forget_estimates(self) -> None:
        """Remove the values of `show_estimates`."""
        for editor in self.editors.values():
            if isinstance(editor, NumbersEditor):
                editor.forget_estimate()

    def reset(self) -> None:
        """Go back to the defaults."""
        self.set_values(self._spec.defaults())
        for parameter in self._spec.parameters:
            if parameter.is_estimated:
                self._set_automatic(parameter.name)

    def texts(self) -> dict[str, str]:
        """Return the values as texts to remember; none if they are not valid."""
        try:
            values = self._raw_values()
        except InvalidParameter:
            return {}
        return {
            name: ESTIMATE if name in self.automatic else self._spec.parameter(name).format(value)
            for name, value in values.items()
        }

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Show values that `texts` returned before, if they still fit the filter."""
        for name, text in texts.items():
            if text == ESTIMATE:
                self._set_automatic(name)
                continue
            with contextlib.suppress(InvalidParameter):
                self.set_values({name: self._spec.parameter(name).parse(text)})

    def _set_automatic(self, name: str) -> None:
        editor = self.editors.get(name)
        if isinstance(editor, NumberEditor):
            editor.set_automatic(True)

    def _raw_values(self) -> dict[str, Any]:
        return {name: editor.value() for name, editor in self.editors.items()}

    def _on_changed(self) -> None:
        self._offer_what_matters()
        self.changed.emit()

    def _offer_what_matters(self) -> None:
        """Disable parameters without effect under the values of the others."""
        try:
            values = self._raw_values()
        except InvalidParameter:
            return  # as it was, until the values can be read
        for parameter in self._spec.parameters:
            matters = parameter.matters(values)
            self.editors[parameter.name].setEnabled(matters)
            self._labels[parameter.name].setEnabled(matters)

    def _apply_preset(self, preset: MaskPreset) -> None:
        self.set_values(preset.settings)
