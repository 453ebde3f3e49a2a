"""The filter, its parameters and the options of a run: shows the session, and writes to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QGroupBox,
    QLabel,
    QScrollArea,
    QToolButton,
    QWidget,
)

from kernelscope.engine.result import Result
from kernelscope.gui.docks.levels_form import LevelsForm
from kernelscope.gui.docks.run_options import RunOptionsForm
from kernelscope.gui.model.filter_groups import by_category
from kernelscope.gui.session.session import FILTER, KIND, VALUES, Session, Values
from kernelscope.gui.session.subject import MOMENT, PART, RESULT, Fields
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.form import Form, ListEditor, NumberEditor, NumbersEditor, shrink
from kernelscope.gui.widgets.help_place import HELP_ROLE, set_help
from kernelscope.gui.widgets.mask_editor import MaskEditor
from kernelscope.gui.widgets.parts import (
    action_button,
    dressed,
    in_column,
    in_row,
    label_of,
    push_button,
    text_label,
)
from kernelscope.gui.work.background import Background
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import MaskPreset
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import anchor_of, filter_page


class FilterForm(Form):
    """An editor for each parameter of a filter, under its label."""

    estimate_wanted = Signal(str)  # the parameter of this name should be estimated from the picture

    def __init__(self, spec: FilterSpec, parent: QWidget | None = None) -> None:
        super().__init__(f"{spec.id}Form", spec.parameters, parent)
        page = filter_page(spec)
        set_help(self, page)
        for parameter in spec.parameters:
            label, editor = self.labels[parameter.name], self.editors[parameter.name]
            label.setToolTip(parameter.help)
            for widget in (label, editor):
                set_help(widget, f"{page}#{anchor_of(parameter.label)}")
            if isinstance(editor, MaskEditor):
                editor.presetChosen.connect(self._apply_preset)
            if isinstance(editor, NumberEditor):
                editor.estimate_wanted.connect(partial(self.estimate_wanted.emit, parameter.name))
        if not spec.parameters and self.rows is not None:
            self.rows.addRow(QLabel("This filter has no settings."))

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
        """Show `values`; text that the user types into another editor meanwhile stays there."""
        if values.problem is not None:
            self.problem = None  # or the text with the problem would be replaced
        self.show_values(**values.numbers)
        self.problem = values.problem
        for name, editor in self.editors.items():
            if isinstance(editor, NumberEditor):
                editor.set_automatic(name in values.automatic)

    def explains(self, problem: str) -> bool:
        masks = (editor for editor in self.editors.values() if isinstance(editor, MaskEditor))
        return any(mask.problem == problem for mask in masks)

    def show_estimates(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            editor = self.editors[name]
            if isinstance(editor, NumbersEditor):
                editor.show_estimate(value)

    def forget_estimates(self) -> None:
        for editor in self.editors.values():
            if isinstance(editor, NumbersEditor):
                editor.forget_estimate()

    def _apply_preset(self, preset: MaskPreset) -> None:
        for name, value in preset.settings.items():
            self.editors[name].set_value(value)


_WIDTH = 300


class ParameterPanel(QScrollArea):
    """Each filter's values stay as they were left when another filter is chosen."""

    estimate_wanted = Signal(str)
    """The user asks to estimate the parameter of this name from the input."""

    def __init__(
        self, session: Session, background: Background, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self._session = session
        self._forms: dict[str, FilterForm] = {}
        self._current: FilterForm | None = None
        self._shows = False  # whether the form is being filled in: its changes are no edits

        self.filter_box = dressed(ChoiceBox(self), "filter", "Filter")
        self.filter_box.setMaxVisibleItems(30)
        shrink(self.filter_box)
        self._fill_filters()
        self._summary = text_label("", "summary", parent=self)

        self._make_parameters()
        run_box = dressed(QGroupBox("Options", self), "runBox")
        levels = LevelsForm(session, background, run_box)  # first for Tab as well
        in_column(levels, RunOptionsForm(session, run_box), of=run_box)

        content = QWidget(self)
        self._chooser = label_of("F&ilter", self.filter_box)
        self._browse = in_row(self._chooser, (self.filter_box, 1))
        self._browse_button: QToolButton | None = None
        self._title = text_label("", "filterTitle", "title", parent=content)
        self._title.hide()
        parts = self._browse, self._title, self._parameters, run_box, self._summary
        in_column(*parts, 1, of=content, spacing=6)
        self.setWidget(content)  # which also filters the events of the content
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

        self.filter_box.currentIndexChanged.connect(
            lambda _: session.set_filter(str(self.filter_box.currentData()))
        )
        session.follow(self._show)
        self._show_filter()

    def _make_parameters(self) -> None:
        self._parameters = dressed(QGroupBox("Parameters", self), "parameters")
        self._reset = push_button(
            "Reset to def&aults",
            "reset",
            self._session.reset,
            "Reset to defaults",
            tip="Set this filter's parameters to their defaults.",
        )
        self._problem = text_label("", "problem", parent=self._parameters)
        self._problem.hide()
        self._make_dimensions()
        mask = in_row(self._dimensions_label, (self._dimensions, 1))
        rows = mask, self._problem, in_row(1, self._reset)
        self._form_space = in_column(*rows, of=self._parameters, margins=(9, 0, 9, 0))

    def _make_dimensions(self) -> None:
        """Make the list of volumes that says where masks extend."""
        entries = ("2-D: in each slice", False), ("3-D: through the slices", True)
        self._dimensions = dressed(ListEditor(entries, False, self), "maskDimensions", "Mask")
        self._dimensions.setToolTip(
            "Whether the mask of the filter lies in each slice, or is a cube of voxels. In 3-D the "
            "filter has parameters of its own."
        )
        self._dimensions.changed.connect(
            lambda: self._session.set_in_3d(bool(self._dimensions.value()))
        )
        self._dimensions_label = label_of("Mas&k", self._dimensions)

    def add_browser(self, action: QAction) -> None:
        self._browse_button = action_button(action)
        self._browse.addWidget(self._browse_button)
        self._put_into_tab_order(self.form)

    def show_chooser(self, shown: bool) -> None:
        """Show the list of filters, or only a title while the browser is open."""
        browse = self._browse_button
        for widget in (self._chooser, self.filter_box, *([browse] if browse is not None else [])):
            widget.setVisible(shown)
        self._title.setVisible(not shown)

    def sizeHint(self) -> QSize:
        content = self.widget()
        if content is None:
            return QSize(_WIDTH, 0)
        height = content.heightForWidth(self.viewport().width())
        return QSize(_WIDTH, height if height >= 0 else content.sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return a width in which no control is cut off, whatever the font."""
        bar, content = self.verticalScrollBar(), self.widget()
        needed = content.minimumSizeHint().width() + bar.sizeHint().width() if content else 0
        return QSize(max(needed, _WIDTH), super().minimumSizeHint().height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def _show_estimates(self, result: Result | None) -> None:
        """Show the estimates of the displayed run, and remove all others."""
        for form in self._forms.values():
            form.forget_estimates()
        if result is not None and result.request.step.filter.id in self._forms:
            self._forms[result.request.step.filter.id].show_estimates(result.estimates)

    @Action("resetParameters", "R&eset Parameters", help="window")
    def reset(self) -> None:
        self._session.reset()

    @property
    def form(self) -> FilterForm:
        assert self._current is not None
        return self._current

    def _fill_filters(self) -> None:
        model = self.filter_box.model()
        assert isinstance(model, QStandardItemModel)
        for category, specs in by_category(self._session.kind).items():
            self.filter_box.addItem(category)
            heading = model.item(self.filter_box.count() - 1)
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            font = heading.font()
            font.setBold(True)
            heading.setFont(font)
            heading.setForeground(QColor("#808080"))  # readable on light and on dark
            for spec in specs:
                self.filter_box.addItem(spec.name, spec.id)
                place = self.filter_box.count() - 1
                self.filter_box.setItemData(place, spec.summary, Qt.ItemDataRole.ToolTipRole)
                self.filter_box.setItemData(place, filter_page(spec), HELP_ROLE)

    def _show(self, fields: Fields) -> None:
        if KIND in fields:
            with QSignalBlocker(self.filter_box):
                self.filter_box.clear()
                self._fill_filters()
        if FILTER in fields:
            self._show_filter()
        elif VALUES in fields:
            self._show_values()
        if fields & {MOMENT, RESULT, PART} and self._session.kind is Kind.VOLUME:
            subject = self._session.subject
            previews = subject.previews_in_view  # which know the estimates of the whole as well
            self._show_estimates(previews[-1].result if previews else subject.result)
        self._show_problem()

    def _show_filter(self) -> None:
        spec = self._session.spec
        with QSignalBlocker(self.filter_box):
            self.filter_box.setCurrentIndex(self.filter_box.findData(spec.base_id))
        with QSignalBlocker(self._dimensions):
            self._dimensions.set_value(spec.is_in_3d)
        self._dimensions.setVisible(self._session.offers_3d)
        self._dimensions_label.setVisible(self._session.offers_3d)
        if self._current is not None:
            self._current.hide()
        if spec.id not in self._forms:
            form = self._forms[spec.id] = FilterForm(spec, self._parameters)
            form.changed.connect(self._write)
            form.estimate_wanted.connect(self.estimate_wanted)
            self._form_space.insertWidget(1, form)
        self._current = self._forms[spec.id]
        self._put_into_tab_order(self._current)
        self._show_values()
        self._current.show()
        for widget in (self.filter_box, self._parameters, self._summary):
            set_help(widget, filter_page(spec))
        if self._session.offers_3d:
            set_help(self._dimensions, f"{filter_page(spec)}#volumes-in-3-d")
        self._title.setText(spec.name)
        self._summary.setText(spec.summary)
        self._summary.setToolTip(f"Source: {spec.source}")
        self._show_problem()

    def _show_values(self) -> None:
        self._shows = True
        self.form.show_state(self._session.values)
        self._shows = False
        self._write()  # an editor may have rounded a number
        spec, values = self._session.spec, self._session.values
        estimated = {each.name for each in spec.parameters if each.is_estimated}
        changed = values.numbers != spec.defaults() or {*values.automatic} != estimated
        self._reset.setVisible(changed or values.problem is not None)

    def _write(self) -> None:
        if not self._shows:
            self._session.edit(self.form.state())

    def _put_into_tab_order(self, form: FilterForm) -> None:
        """Let Tab go through `form` after the filter, whenever it was made."""
        before: QWidget = self.filter_box
        if self._browse_button is not None:
            QWidget.setTabOrder(before, self._browse_button)
            before = self._browse_button
        for widget in form.findChildren(QWidget):
            takes_focus = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if takes_focus and widget.focusProxy() is None and widget.window() is self.window():
                QWidget.setTabOrder(before, widget)
                before = widget
        QWidget.setTabOrder(before, self._reset)

    def _show_problem(self) -> None:
        """Show the error that Run would report about the parameters."""
        problem = self._session.values_problem
        if problem:
            self._problem.setStyleSheet(f"color: {theme.error_text(self.palette()).name()}")
            self._problem.setText(problem)
        self._problem.setVisible(bool(problem) and not self.form.explains(problem))
