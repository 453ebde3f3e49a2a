"""All settings of a run, generated from the filters' specs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from kernelscope import filters
from kernelscope.engine.area import Area
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.errors import InvalidParameter
from kernelscope.gui.model.filter_groups import by_category
from kernelscope.gui.model.form_state import FormState, RunSettings
from kernelscope.gui.model.rungs import Place, Rung
from kernelscope.gui.panels.editors import shrink
from kernelscope.gui.panels.filter_form import FilterForm, same_values
from kernelscope.gui.panels.run_options import RunOptionsForm
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.commands import action
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.help_place import HELP_ROLE, set_help
from kernelscope.gui.widgets.settings import Settings
from kernelscope.manual import filter_page
from kernelscope.spec.samples import Kind

FIRST_FILTER = "median"
"""Chosen at the very first start: shows the most on a noisy picture."""

_WIDTH = 300


class ParameterPanel(QScrollArea):
    """The filter, its parameters, and the options of the run.

    Each filter's values stay as they were left when another filter is chosen.

    Signals
    -------
    filter_changed : str
        The filter with this id was chosen.
    changed
        The result of `arguments` may have changed.
    kernel_wanted
        The user asks for the CUDA source of the filter at its level.
    estimate_wanted : str
        The user asks to estimate the parameter of this name from the input.
    places_offered
        The places where the filter can run, or the one that is chosen, are others.
    """

    filter_changed = Signal(str)
    changed = Signal()
    kernel_wanted = Signal()
    estimate_wanted = Signal(str)
    places_offered = Signal()

    def __init__(
        self, backends: Mapping[str, Backend], settings: Settings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self._settings = settings
        self._known: tuple[Any, dict[str, Any], Step] | None = None
        """The last step and the values that it was made of: it is asked for ten times a change."""
        self._forms: dict[str, FilterForm] = {}
        self._current: FilterForm | None = None
        self._kind = Kind.PICTURE
        self._others: dict[Kind, str] = {}
        """The filters chosen for the kinds that are not shown."""

        self._filter = ChoiceBox(self)
        self._filter.setObjectName("filter")
        self._filter.setAccessibleName("Filter")
        self._filter.setMaxVisibleItems(30)
        shrink(self._filter)
        self._fill_filters()
        label = QLabel("F&ilter", self)
        label.setBuddy(self._filter)
        self._summary = QLabel(self)
        self._summary.setObjectName("summary")
        self._summary.setWordWrap(True)

        self._make_parameters()
        run_box = QGroupBox("Options", self)
        run_box.setObjectName("runBox")
        self._options = RunOptionsForm(backends, run_box)
        self._options.kernel_wanted.connect(self.kernel_wanted)
        self._options.changed.connect(self.changed)
        self._options.offered.connect(self.places_offered)
        QVBoxLayout(run_box).addWidget(self._options)

        content = QWidget(self)
        layout = QVBoxLayout(content)
        layout.setSpacing(8)
        layout.addWidget(label)
        layout.addWidget(self._filter)
        layout.addWidget(self._summary)
        layout.addWidget(self._parameters)
        layout.addWidget(run_box)
        layout.addStretch(1)
        self.setWidget(content)  # which also filters the events of the content
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

        self._filter.currentIndexChanged.connect(self._on_filter)
        remembered = settings.text("filter")
        known = filters.discover()
        first = remembered if remembered in known else FIRST_FILTER
        self.set_filter(first if first in known else next(iter(known)))
        self._options.set_texts(settings.texts("run"))

    def _make_parameters(self) -> None:
        """Make the box into which the form of the filter comes."""
        self._parameters = QGroupBox("Parameters", self)
        self._parameters.setObjectName("parameters")
        self._form_space = QVBoxLayout(self._parameters)
        self._reset = QPushButton("Reset to Def&aults", self._parameters)
        self._reset.setObjectName("reset")
        self._reset.setAccessibleName("Reset to defaults")
        self._reset.setToolTip("Set this filter's parameters to their defaults.")
        self._reset.clicked.connect(self.reset)
        self._problem = QLabel(self._parameters)
        self._problem.setObjectName("problem")
        self._problem.setWordWrap(True)
        self._problem.hide()
        self._form_space.addWidget(self._problem)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._reset)
        self._form_space.addLayout(row)

    def minimumSizeHint(self) -> QSize:
        """Return a width in which no control is cut off, whatever the font."""
        bar, content = self.verticalScrollBar(), self.widget()
        needed = content.minimumSizeHint().width() + bar.sizeHint().width() if content else 0
        return QSize(max(needed, _WIDTH), super().minimumSizeHint().height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    @property
    def filter_box(self) -> QComboBox:
        """The list of the filters."""
        return self._filter

    @property
    def filter_id(self) -> str:
        """Identifier of the filter that is chosen."""
        return str(self._filter.currentData())

    @property
    def filter_kind(self) -> Kind:
        """Kind of data that the chosen filter works on."""
        return filters.get(self.filter_id).kind

    def set_filter(self, filter_id: str) -> None:
        """Choose a filter; one that is not offered for the open kind changes nothing."""
        row = self._filter.findData(filter_id)
        if row >= 0:
            self._filter.setCurrentIndex(row)

    def set_kind(self, kind: Kind, *, microscope: bool = False) -> None:
        """Offer the filters for pictures or for volumes, and choose the last one used there.

        Without one, volumes of a `microscope` get no filter that supposes the noise of MRI.
        """
        if kind is self._kind:
            return
        self._others[self._kind], self._kind = self.filter_id, kind
        first = (
            FIRST_FILTER if microscope else next(iter(next(iter(by_category(kind).values())))).id
        )
        with QSignalBlocker(self._filter):
            self._filter.clear()
            self._fill_filters()
            self.set_filter(self._others.get(kind, first))
        self._options.offer_grey(kind is Kind.PICTURE)
        self._on_filter()

    def set_availability(self, availability: Mapping[str, Availability]) -> None:
        """Offer the devices that can be used."""
        self._options.set_availability(availability)
        self.changed.emit()

    def run_settings(self) -> RunSettings:
        """Return the step and the options that are set; raises `InvalidParameter`."""
        form = self._options
        values = self.form.values()
        key = self.filter_id, form.border, form.grey, form.within
        known = self._known
        if known is None or key != known[0] or not same_values(values, known[1]):
            step = Step.of_numbers(
                self.filter_id, values, border=form.border, grey=form.grey, within=form.within
            )
            self._known = known = key, values, step
        return RunSettings(known[2], self.run_options())

    def step_of(self, filter_id: str) -> Step:
        """Return the step that Run would take if this filter were chosen.

        Parameters that runs estimate are `ESTIMATE`. Raises `InvalidParameter`.
        """
        spec, options = filters.get(filter_id), self._options
        if filter_id in self._forms:
            self._forms[filter_id].values()  # or they could not be used
            texts = self._forms[filter_id].texts()
        else:
            texts = self._settings.texts(f"filters/{filter_id}")
        values: dict[str, Any] = {}
        for name, text in texts.items():
            with contextlib.suppress(InvalidParameter):  # it no longer fits the filter
                values[name] = ESTIMATE if text == ESTIMATE else spec.parameter(name).parse(text)
        border = options.border_for(spec)
        return Step.create(filter_id, values, border=border, grey=options.grey)

    def run_options(self, place: Place | None = None) -> RunOptions:
        """Return the options of a run, here or at another place; raises `InvalidParameter`."""
        return self._options.options(place)

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The places where the chosen filter can run, or why it cannot."""
        return self._options.rungs

    @property
    def place(self) -> Place:
        """The place where the filter will run."""
        return self._options.place

    def offer_area(self, name: str, area: Area | None) -> None:
        """Offer to filter only a region of this name; None for no region."""
        self._options.offer_area(name, area)

    def choose_place(self, place: Place) -> None:
        """Let the filter run there from now on."""
        self._options.choose(place)

    def show_request(self, request: Request) -> None:
        """Show the settings that `request` was made with."""
        self.set_filter(request.step.filter.id)
        self.form.set_values(request.step.parameters)
        self._options.show_request(request)
        self.changed.emit()

    def state(self) -> FormState | None:
        """Return the settings for `show_state`; None while they are not valid."""
        try:
            values = self.form.values()
            return FormState(self.filter_id, values, self.automatic, self._options.texts())
        except InvalidParameter:
            return None

    def show_state(self, state: FormState) -> None:
        """Show a state that `state` returned, or the settings of a run."""
        self.set_filter(state.filter_id)
        if self.filter_id != state.filter_id:
            return
        self.form.set_values(state.parameters)
        self.form.set_texts(dict.fromkeys(state.automatic, ESTIMATE))
        self._options.set_texts(state.options)
        self.changed.emit()

    def set_values(self, filter_id: str, values: Mapping[str, Any]) -> None:
        """Set parameters of a filter that was shown already; others keep their values."""
        self._forms[filter_id].set_values(values)

    @property
    def automatic(self) -> tuple[str, ...]:
        """Parameters of the chosen filter that every run estimates again."""
        return self.form.automatic

    def set_estimates(self, filter_id: str, values: Mapping[str, Any]) -> None:
        """Show estimates for parameters of a filter that has been shown."""
        self._forms[filter_id].show_estimates(values)

    def show_estimates(self, result: Result | None) -> None:
        """Show the estimates of the displayed run, and remove all others."""
        for form in self._forms.values():
            form.forget_estimates()
        if result is not None and result.request.step.filter.id in self._forms:
            self._forms[result.request.step.filter.id].show_estimates(result.estimates)

    @action(
        "resetParameters",
        "R&eset Parameters",
        help="window",
    )
    def reset(self) -> None:
        """Set the parameters of the chosen filter to their defaults."""
        self.form.reset()

    def save(self) -> None:
        """Remember everything in the settings."""
        of_pictures = self._kind is Kind.PICTURE
        chosen = self.filter_id if of_pictures else self._others[Kind.PICTURE]
        self._settings.set_text("filter", chosen)
        # Regions are not remembered: the next picture would be filtered in an unseen one.
        self._settings.set_texts("run", {**self._options.texts(), "within": ""})
        for filter_id, form in self._forms.items():
            self._settings.set_texts(f"filters/{filter_id}", form.texts())

    @property
    def form(self) -> FilterForm:
        """The editors of the filter that is shown."""
        assert self._current is not None
        return self._current

    def _fill_filters(self) -> None:
        model = self._filter.model()
        assert isinstance(model, QStandardItemModel)
        for category, specs in by_category(self._kind).items():
            self._filter.addItem(category)
            heading = model.item(self._filter.count() - 1)
            heading.setFlags(Qt.ItemFlag.NoItemFlags)
            font = heading.font()
            font.setBold(True)
            heading.setFont(font)
            heading.setForeground(QColor("#808080"))  # readable on light and on dark
            for spec in specs:
                self._filter.addItem(spec.name, spec.id)
                self._filter.setItemData(
                    self._filter.count() - 1, spec.summary, Qt.ItemDataRole.ToolTipRole
                )
                self._filter.setItemData(self._filter.count() - 1, filter_page(spec), HELP_ROLE)

    def _on_filter(self) -> None:
        spec = filters.get(self.filter_id)
        if self._current is not None:
            self._current.hide()
        if spec.id not in self._forms:
            form = self._forms[spec.id] = FilterForm(spec, self._parameters)
            form.set_texts(self._settings.texts(f"filters/{spec.id}"))
            form.changed.connect(self._check)
            form.changed.connect(self.changed)
            form.estimate_wanted.connect(self.estimate_wanted)
            self._form_space.insertWidget(0, form)
        self._current = self._forms[spec.id]
        self._put_into_tab_order(self._current)
        self._current.show()
        for widget in (self._filter, self._parameters, self._summary):
            set_help(widget, filter_page(spec))
        self._summary.setText(spec.summary)
        self._summary.setToolTip(f"Source: {spec.source}")
        self._reset.setVisible(bool(spec.parameters))
        self._options.set_filter(spec)
        self._check()
        self.filter_changed.emit(spec.id)
        self.changed.emit()

    def _put_into_tab_order(self, form: FilterForm) -> None:
        """Let Tab go through `form` after the filter, whenever it was made."""
        before: QWidget = self._filter
        for widget in form.findChildren(QWidget):
            takes_focus = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if takes_focus and widget.focusProxy() is None and widget.window() is self.window():
                QWidget.setTabOrder(before, widget)
                before = widget
        QWidget.setTabOrder(before, self._reset)

    def _check(self) -> None:
        """Show errors that Run would report."""
        try:
            self.form.values()
        except InvalidParameter as error:
            self._problem.setStyleSheet(f"color: {theme.error_text(self.palette()).name()}")
            self._problem.setText(str(error))
            self._problem.setVisible(not self.form.explains(str(error)))
        else:
            self._problem.hide()
