"""The filter, its parameters and the options of a run: shows the session, and writes to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeySequence, QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QGroupBox,
    QLabel,
    QLineEdit,
    QScrollArea,
    QToolButton,
    QWidget,
)

from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.options import Device
from kernelscope.engine.result import Result
from kernelscope.gui.model.filter_groups import by_category
from kernelscope.gui.model.runs import describe_result
from kernelscope.gui.session.session import (
    FILTER,
    KIND,
    MIB,
    MOST_MIB,
    MOST_REPEATS,
    OPTIONS,
    PLACES,
    REGION,
    SETTINGS,
    VALUES,
    Session,
    Values,
)
from kernelscope.gui.session.subject import INPUT, MOMENT, PART, RESULT, Fields
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.form import (
    Form,
    LineEditor,
    Listed,
    ListEditor,
    NumberEditor,
    Option,
    Tick,
    Whole,
    field_of,
)
from kernelscope.gui.widgets.masks import MaskEditor
from kernelscope.gui.widgets.parts import (
    HELP_ROLE,
    action_button,
    dressed,
    in_column,
    in_row,
    label_of,
    plain_tip,
    push_button,
    set_help,
    text_label,
    tool_button,
)
from kernelscope.gui.work.background import Background
from kernelscope.images.levels import given_levels
from kernelscope.schema.blocks import USUAL_BLOCKS, Block, block_name
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import MaskPreset, Parameter, number_text, read_number
from kernelscope.schema.samples import Kind, Levels
from kernelscope.teach.manual import anchor_of, filter_page

_LEVELS_TIP = (
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
            dressed(QLineEdit(self), name, name.capitalize(), tip=_LEVELS_TIP.format(name))
            for name in ("black", "white")
        )
        self._automatic = tool_button(
            "Auto",
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
        session.follow(self._show, early=True)
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


_WITHIN_TIP = (
    "Filters the selected region of interest and keeps the rest of the picture. The region keeps "
    "its values of the whole result: its neighbours outside are those of the input."
)
_BLOCK = (
    "Threads of each block, across and down. The list of runs shows the cost of a size; the kernel "
    "does not change."
)


def _threads(block: Block) -> str:
    return f"{block_name(block)} threads"


_OPTIONS = (
    Listed("border", "&Border", Border.REFLECT, "Values of the image beyond its edges."),
    Tick("grey", "Convert to &greyscale first", help="ITU-R BT.601: 0.299 R + 0.587 G + 0.114 B"),
)
_GPU_OPTIONS = (
    Listed(
        "block",
        "Bloc&k",
        None,
        _BLOCK,
        entries=(("as planned", None), *((_threads(block), block) for block in USUAL_BLOCKS)),
        text_of=_threads,
    ),
    Whole(
        "repeat",
        "Re&peat kernel",
        1,
        "Number of runs of the kernel on a GPU, after a warm-up; the median is reported.",
        low=1,
        high=MOST_REPEATS,
        unit="×",
    ),
    Whole(
        "memoryLimit",
        "GPU &memory",
        0,
        "Limit of the GPU memory for images; larger ones are filtered in strips.",
        high=MOST_MIB,
        unit="MiB",
        lowest="all that is free",
    ),
)


class WithinBox(QCheckBox):
    """Checked, it limits the filter to the selected region, and follows it."""

    def __init__(self, session: Session, parent: QWidget | None, name: str = "within") -> None:
        super().__init__(parent)
        self.setObjectName(name)
        set_help(self, "window#measuring")
        self._session = session
        self.toggled.connect(session.limit)
        session.follow(self._show, early=True)
        self._show(frozenset({REGION}))

    def _show(self, fields: Fields) -> None:
        if not fields & {REGION, KIND}:
            return
        limit, (name, offered) = self._session.within, self._session.region
        with QSignalBlocker(self):
            self.setChecked(limit is not None)
        area = limit or offered
        name = name if area is not None and area == offered else ""
        self.setText(f"Filter only in {name or 'a region'}")
        self.setVisible(area is not None and self._session.kind is Kind.PICTURE)
        place = f"{area.describe()[:1].upper()}{area.describe()[1:]}. " if area is not None else ""
        tip = f"{place}{_WITHIN_TIP}"
        self.setToolTip(tip)
        self.setAccessibleName(self.text())
        self.setAccessibleDescription(tip)


class RunOptionsForm(Form):
    """Border and greyscale, the region, and the options of a GPU; the ladder shows the place."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__("runOptions", _OPTIONS, parent)
        set_help(self, "filters#borders")
        self._session = session
        self._within = WithinBox(session, self)
        self.gpu = Form("gpuOptions", _GPU_OPTIONS, self)
        set_help(self.gpu, "gpu-levels#how-a-run-uses-the-card")
        for row in (self._within, self.gpu):
            self.rows.addRow(row)
        self.changed.connect(self._write)
        self.gpu.changed.connect(self._write_gpu)
        session.follow(self._show, early=True)
        self._show(frozenset({FILTER, KIND, OPTIONS, PLACES}))

    def _write(self, name: str) -> None:
        if name == "border":
            self._session.set_border(self.values[name])
        else:
            self._session.set_grey(self.values[name])

    def _write_gpu(self) -> None:
        values, session = self.gpu.values, self._session
        memory = values["memoryLimit"] * MIB or None
        options = replace(
            session.wished, block=values["block"], repeat=values["repeat"], memory_limit=memory
        )
        session.set_options(options, self.gpu.problem)

    def _show(self, fields: Fields) -> None:
        session = self._session
        if FILTER in fields:
            borders = session.spec.borders
            self.offer("border", ((border.value.capitalize(), border) for border in borders))
            for place, border in enumerate(borders):
                box = self.editors["border"]
                box.setItemData(place, border.help, Qt.ItemDataRole.ToolTipRole)
        if fields & {FILTER, OPTIONS}:
            self.show_values(border=session.border)
        if fields & {KIND, MOMENT}:
            self.editors["grey"].setVisible(session.has_colours)
        if OPTIONS in fields:
            self.show_values(grey=session.wishes_grey)
        if fields & {PLACES, FILTER}:
            self._offer_gpu()
        if OPTIONS in fields and session.refused is None:
            wished = session.wished
            memory = (wished.memory_limit or 0) // MIB
            self.gpu.show_values(block=wished.block, repeat=wished.repeat, memoryLimit=memory)

    def _offer_gpu(self) -> None:
        session, place = self._session, self._session.place
        usable = {rung.place.device for rung in session.rungs if not rung.obstacle}
        on_card = Device.GPU in usable and place.device in (Device.AUTO, Device.GPU)
        shown = {"block": session.takes_block(place), "repeat": on_card, "memoryLimit": on_card}
        for name, matters in shown.items():
            self.gpu.show_row(name, matters)
        self.gpu.setVisible(any(shown.values()))


class FilterForm(Form):
    """An editor for each parameter of a filter, under its label."""

    estimate_wanted = Signal(str)  # the parameter of this name should be estimated from the picture

    def __init__(self, spec: FilterSpec, parent: QWidget | None = None) -> None:
        # The slider that is moved most is seen without scrolling, in low windows as well.
        self.spec = spec
        ordered = sorted(spec.parameters, key=lambda each: not getattr(each, "is_strength", False))
        super().__init__(f"{spec.id}Form", ordered, parent)
        page = filter_page(spec)
        set_help(self, page)
        for parameter in spec.parameters:
            label, editor = self.labels[parameter.name], self.editors[parameter.name]
            label.setToolTip(parameter.help)
            if parameter is ordered[0] and getattr(parameter, "is_strength", False):
                label.setText(f"&{parameter.label}")
            for widget in (label, editor):
                set_help(widget, f"{page}#{anchor_of(parameter.label)}")
            if isinstance(editor, MaskEditor):
                editor.presetChosen.connect(self._apply_preset)
            if isinstance(editor, NumberEditor):
                editor.estimate_wanted.connect(partial(self.estimate_wanted.emit, parameter.name))
        if not spec.parameters:
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

    def show_colours(self, shown: bool) -> None:
        """Show the parameters that act on colours only, or hide them."""
        for parameter in self.options:
            if isinstance(parameter, Parameter) and parameter.of_colours:
                self.show_row(parameter.name, shown)

    def explains(self, problem: str) -> bool:
        masks = (editor for editor in self.editors.values() if isinstance(editor, MaskEditor))
        return any(mask.problem == problem for mask in masks)

    def show_estimates(self, values: Mapping[str, Any]) -> None:
        """Show these estimates, and no others."""
        for name, editor in self.editors.items():
            if isinstance(editor, LineEditor):
                editor.show_estimate(values.get(name))

    def show_notices(self, notices: str) -> None:
        """Add the notices of the run that is shown to the tips of the numbers that it estimated."""
        for parameter in self.spec.parameters:
            if parameter.has_estimate:
                tip = "\n".join(filter(None, (parameter.help, notices)))
                for widget in (self.labels[parameter.name], field_of(self.editors[parameter.name])):
                    widget.setToolTip(plain_tip(tip))

    def _apply_preset(self, preset: MaskPreset) -> None:
        for name, value in preset.settings.items():
            self.editors[name].set_value(value)


_WIDTH = 300
_IN_SIGHT = 3  # parameters that are seen without scrolling, in low windows as well
_LEAST_LINES = 12  # of text: as much as they may take from the ladder


class ParameterPanel(QScrollArea):
    """Each filter's values stay as they were left when another filter is chosen."""

    estimate_wanted = Signal(str)
    """The user asks to estimate the parameter of this name from the input."""

    def __init__(self, session: Session, background: Background) -> None:
        super().__init__()
        self.setObjectName("panel")
        self._session = session
        self._forms: dict[str, FilterForm] = {}
        self._current: FilterForm | None = None
        self._shows = False  # whether the form is being filled in: its changes are no edits

        self.filter_box = dressed(ChoiceBox(self), "filter", "Filter")
        self.filter_box.setMaxVisibleItems(30)
        self._fill_filters()
        self._summary = text_label("", "summary", parent=self)

        self._make_parameters()
        run_box = dressed(QGroupBox("Options", self), "runBox")
        levels = LevelsForm(session, background, run_box)  # first for Tab as well
        self._options = RunOptionsForm(session, run_box)
        in_column(levels, self._options, of=run_box)

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
        session.follow(self._show, early=True)
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
        """Return a size in which no control is cut off, and the first parameters are in sight."""
        bar, content = self.verticalScrollBar(), self.widget()
        if content is None or self._current is None:
            return QSize(_WIDTH, super().minimumSizeHint().height())
        needed = content.minimumSizeHint().width() + bar.sizeHint().width()
        shown = [each for each in self._current.editors.values() if not each.isHidden()]
        last = shown[:_IN_SIGHT][-1] if shown else self._current
        low = last.mapTo(content, last.rect().bottomLeft()).y() + 4
        most = _LEAST_LINES * self.fontMetrics().height()
        height = max(super().minimumSizeHint().height(), min(low, most))
        return QSize(max(needed, _WIDTH), height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def _show_estimates(self, result: Result | None) -> None:
        """Show the estimates of the displayed run, and remove all others."""
        known = {result.request.step.filter.id: result.estimates} if result is not None else {}
        for id_, form in self._forms.items():
            form.show_estimates(known.get(id_, {}))

    @Action("resetParameters", "R&eset Parameters", help="window")
    def reset(self) -> None:
        self._session.reset()

    def settings(self) -> Iterator[tuple[Option | Parameter, QWidget, str]]:
        """Yield the settings that are shown, with their editors and the keys of their labels."""
        for form in (self.form, self._options, self._options.gpu):
            for option in form.options:
                label, editor = form.labels.get(option.name), form.editors[option.name]
                if editor.isVisibleTo(self):
                    key = QKeySequence.mnemonic(label.text() if label else option.label)
                    yield option, editor, key.toString(QKeySequence.SequenceFormat.NativeText)

    def focus_on(self, editor: QWidget) -> None:
        self.ensureWidgetVisible(editor)
        field_of(editor).setFocus(Qt.FocusReason.ShortcutFocusReason)

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
        if fields & {KIND, MOMENT, OPTIONS, SETTINGS}:
            self._show_colours()
        if fields & {MOMENT, RESULT, PART} and self._session.kind is Kind.VOLUME:
            subject = self._session.subject
            previews = subject.previews_in_view  # which know the estimates of the whole as well
            self._show_estimates(previews[-1].result if previews else subject.result)
        if fields & {FILTER, MOMENT, RESULT}:
            result = self._session.subject.result
            shown = result if result and result.request.step.filter is self.form.spec else None
            self.form.show_notices(describe_result(shown) if shown is not None else "")
        self._show_problem()

    def _show_colours(self) -> None:
        self.form.show_colours(self._session.has_colours and not self._session.grey)

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
        self._show_colours()
        self._current.show()
        set_help(self, filter_page(spec))
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
        unusual = {
            name for name, each in spec.defaults().items() if values.numbers[name] != each
        }  # numbers that are estimated differ for each picture
        changed = unusual - {*values.automatic} or {*values.automatic} != estimated
        self._reset.setVisible(bool(changed) or values.problem is not None)

    def _write(self) -> None:
        if not self._shows:
            # A text that is typed when another filter is chosen belongs to the one before.
            self._session.edit(self.form.state(), self.form.spec.id)

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
