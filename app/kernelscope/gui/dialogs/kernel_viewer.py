"""The CUDA source of a filter at a level, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QProxyStyle,
    QPushButton,
    QSplitter,
    QStyle,
    QStyleOption,
    QTabBar,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from kernelscope.backends.cuda.info import architecture
from kernelscope.backends.cuda.inspection import (
    REPORTED,
    PlannedLaunch,
    compile_report,
    plan,
    plans,
    reporter,
)
from kernelscope.backends.cuda.preprocessor import active_lines, find_kernel
from kernelscope.backends.cuda.sources import source_files
from kernelscope.engine.backend import Fact, FactGroup
from kernelscope.engine.launch_report import LaunchReport, Resources
from kernelscope.engine.request import Request
from kernelscope.errors import AppError
from kernelscope.gui.dialogs.code_view import CodeView
from kernelscope.gui.dialogs.difference_view import DifferenceView
from kernelscope.gui.model.kernel_difference import difference
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.fact_table import FactTable
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.messages import add_button, close_box, headline
from kernelscope.gui.work.background import Background
from kernelscope.spec.launch import Launch

_LAST_RUN = "Last run on the GPU"
_COMPILE = "gpu-compile-report"

_AROUND_TAB = 6
"""Horizontal padding of a tab in pixels, both sides together."""


_SIDE = 42
"""Least width of the facts, in characters: a launch of three sizes with its unit is readable."""


class KernelViewer(QDialog):
    """Shows kernels; stays open next to the window, which reports new runs.

    Parameters
    ----------
    background : Background
        On whose threads kernels are compiled for their report.
    launches : mapping
        The last launch of each kernel, by its name; call `refresh` when there is a new one.
    """

    def __init__(
        self,
        background: Background,
        launches: Mapping[str, LaunchReport],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("kernelViewer")
        set_help(self, "gpu-levels#reading-a-kernel")
        self.setWindowTitle("Kernel")
        self.setModal(False)
        self.setSizeGripEnabled(True)
        self._background = background
        self._request: Request | None = None
        self._plan: PlannedLaunch | None = None
        self._difference: DifferenceView | None = None
        self._launches = launches

        self._headline = headline("")
        top = self._make_top()
        self._help = QLabel()
        self._help.setObjectName("levelHelp")
        self._help.setWordWrap(True)

        self._tabs = QTabWidget()
        self._tabs.setObjectName("kernelFiles")
        self._tabs.setTabBar(_FileTabs())
        self._tabs.setDocumentMode(True)
        splitter = QSplitter()
        splitter.setObjectName("kernelSplitter")
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self._tabs)
        splitter.addWidget(self._make_side())
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 2)
        box = close_box(self)
        add_button(box, "copyButton", "&Copy source", "Copy the file in view", self.copy_source)
        add_button(box, "copyFactsButton", "Copy &facts", "Copy the table", self._copy_facts)
        layout = QVBoxLayout(self)
        layout.addWidget(self._headline)
        layout.addLayout(top)
        layout.addWidget(self._help)
        layout.addWidget(splitter, 1)
        layout.addWidget(box)
        unit = self.fontMetrics().averageCharWidth()
        size = QSize(210 * unit, 40 * self.fontMetrics().height())
        self.resize(size.boundedTo(self.screen().availableSize()))
        splitter.setSizes([152 * unit, 58 * unit])
        self.finished.connect(lambda: background.forget(_COMPILE))

    def _make_top(self) -> QHBoxLayout:
        """Return the choice of two levels."""
        self._level = ChoiceBox()
        self._level.setObjectName("kernelLevel")
        self._level.setAccessibleName("Level")
        self._level.setToolTip("Another memory level of the same filter")
        self._level.currentIndexChanged.connect(self._show_level)
        caption = QLabel("&Level")
        caption.setBuddy(self._level)
        self._other = ChoiceBox()
        self._other.setObjectName("kernelOther")
        self._other.setAccessibleName("Compare with level")
        self._other.setToolTip(
            "Another level; differing lines of the kernel and facts of the launch are marked"
        )
        self._other.currentIndexChanged.connect(lambda: self._show_difference(raised=True))
        compare = QLabel("Compare &with")
        compare.setBuddy(self._other)
        top = QHBoxLayout()
        for widget in (caption, self._level, compare, self._other):
            top.addWidget(widget)
        top.addStretch(1)
        return top

    def _make_side(self) -> QWidget:
        """Return the facts of the kernel, with the button that compiles it."""
        self._facts = FactTable("kernelFacts", "Launch and resources of the kernel")
        self._state = QLabel()
        self._state.setObjectName("kernelState")
        self._state.setWordWrap(True)
        self._compile = QPushButton("Compile &report")
        self._compile.setObjectName("compileReport")
        self._compile.setAccessibleName("Compile report")
        self._compile.setToolTip(
            f"Compile this kernel for {' and '.join(map(_with_generation, REPORTED))} and see its "
            "registers; needs no GPU"
        )
        self._compile.setAutoDefault(False)  # a default button is bold, and wider than its hint
        self._compile.clicked.connect(self._on_compile)
        side = QWidget()
        side.setMinimumWidth(_SIDE * self.fontMetrics().averageCharWidth())
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._facts, 1)
        column.addWidget(self._state)
        column.addWidget(self._compile, 0, Qt.AlignmentFlag.AlignLeft)
        return side

    def show_request(self, request: Request) -> None:
        """Show the kernel that `request` would run on a GPU."""
        self._request = request
        spec = request.step.filter
        self._headline.setText(spec.describe(request.step.parameters))
        self.setWindowTitle(f"Kernel – {spec.name}")
        self._difference = None
        while self._tabs.count():
            page = self._tabs.widget(0)
            assert page is not None
            self._tabs.removeTab(0)
            page.deleteLater()
        self._level.blockSignals(True)
        self._level.clear()
        for level in spec.levels("gpu"):
            self._level.addItem(level.name, level.id)
            self._level.setItemData(
                self._level.count() - 1, level.help, Qt.ItemDataRole.ToolTipRole
            )
        wanted = self._level.findData(request.options.level)
        self._level.setCurrentIndex(wanted if wanted >= 0 else self._level.count() - 1)
        self._level.blockSignals(False)
        self._offer_others()
        self._plan = None
        self._facts.clear_groups()
        usable = bool(spec.levels("gpu"))
        for widget in (self._level, self._other, self._tabs, self._facts):
            widget.setEnabled(usable)
        self._compile.setEnabled(usable)
        if not usable:
            self._state.setText("This filter has no CUDA kernel: it runs on the CPU only.")
            return
        for file in source_files(spec.id):
            self._tabs.addTab(CodeView(file.name, file.text), file.name)
        self._show_level()

    def refresh(self) -> None:
        """Show the last launch of the kernel in view, if there is one by now."""
        if self._plan is not None:
            self._show_last_run(self._plan)

    def copy_source(self) -> None:
        """Put the file in view on the clipboard."""
        view = self._tabs.currentWidget()
        if isinstance(view, CodeView):
            QGuiApplication.clipboard().setText(view.toPlainText())

    def _copy_facts(self) -> None:
        QGuiApplication.clipboard().setText(self._facts.text())

    def _show_level(self) -> None:
        request = self._request
        assert request is not None
        level = request.step.filter.levels("gpu")[self._level.currentIndex()]
        self._background.forget(_COMPILE)
        self._compile.setEnabled(True)
        self._facts.clear_groups()
        self._plan = plan(request, level)
        self._help.setText(" ".join(filter(None, (level.help, self._plan.notice))))
        launch = self._plan.launch
        self._show_difference(raised=False)
        self._show_kernel(request, launch)
        self._facts.set_group(_planned(self._plan, request))
        self._facts.set_group(
            FactGroup(
                "Specialisation",
                tuple(Fact(name, value) for name, value in sorted(launch.defines.items())),
            )
        )
        self._show_last_run(self._plan)

    def _show_kernel(self, request: Request, launch: Launch) -> None:
        """Mark the kernel in its file, and dim the lines that its macros leave out."""
        files = source_files(request.step.filter.id)
        active = active_lines(files, launch.defines)
        found = find_kernel(files, launch.kernel, launch.defines)
        first = 0
        for number in range(self._tabs.count()):
            view = self._tabs.widget(number)
            assert isinstance(view, CodeView)
            if view is self._difference:
                continue
            name = self._tabs.tabText(number)
            here = found is not None and found.file == name
            view.show_place((found.start, found.stop) if found and here else None, active[name])
            dimmed = " Dimmed lines are left out by the macros of the launch."
            self._tabs.setTabToolTip(number, f"{name}.{dimmed if view.dimmed_lines else ''}")
            first = number if here else first
        if self._tabs.currentWidget() is not self._difference or self._difference is None:
            self._tabs.setCurrentIndex(first)

    def _offer_others(self) -> None:
        """Offer every level to compare with, the one that was chosen kept where it is there."""
        chosen = self._other.currentData()
        self._other.blockSignals(True)
        self._other.clear()
        self._other.addItem("nothing", None)
        for place in range(self._level.count()):
            self._other.addItem(self._level.itemText(place), self._level.itemData(place))
        self._other.setCurrentIndex(max(0, self._other.findData(chosen)))
        self._other.blockSignals(False)

    def _show_difference(self, *, raised: bool) -> None:
        """Show how the level chosen to compare with differs from this one; raise it if wanted."""
        place = self._tabs.indexOf(self._difference) if self._difference is not None else -1
        if self._difference is not None:
            raised = raised or self._tabs.currentIndex() == place
            self._tabs.removeTab(place)
            self._difference.deleteLater()
            self._difference = None
        request = self._request
        if request is None or self._other.currentData() is None:
            return
        levels = request.step.filter.levels("gpu")
        first, second = levels[self._level.currentIndex()], levels[self._other.currentIndex() - 1]
        lines = difference(
            source_files(request.step.filter.id),
            *(
                [(each, _planned(each, request).facts) for each in plans(request, level)]
                for level in (first, second)
            ),
        )
        self._difference = DifferenceView(lines)
        title = f"{first.name} → {second.name}"
        self._tabs.insertTab(0, self._difference, title)
        self._tabs.setTabToolTip(0, f"− {first.name}, + {second.name}")
        if raised:
            self._tabs.setCurrentIndex(0)

    def _show_last_run(self, plan: PlannedLaunch) -> None:
        report = self._launches.get(plan.launch.kernel)
        if report is None:
            self._state.setText("Not run on a GPU yet: registers and occupancy come with a run.")
            return
        self._state.clear()
        self._facts.set_group(
            FactGroup(
                _LAST_RUN,
                (
                    Fact("Grid", _by(report.grid), "blocks"),
                    Fact("Block", _by(report.block), "threads"),
                    Fact("Dynamic shared memory", f"{report.shared_bytes:,}", "bytes a block"),
                    *(_resources(report.resources) if report.resources else ()),
                    *_occupancy(report.occupancy),
                    *((Fact("Compiled by", report.compiler),) if report.compiler else ()),
                ),
            )
        )

    def _on_compile(self) -> None:
        assert self._request is not None
        assert self._plan is not None
        self._compile.setEnabled(False)
        self._state.setText("Compiling…")
        self._background.start(
            _COMPILE,
            partial(compile_report, self._request.step.filter.id, self._plan.launch),
            self._on_compiled,
            self._on_failed,
        )

    def _on_compiled(self, report: dict[str, Resources | None]) -> None:
        self._compile.setEnabled(True)
        self._state.clear()
        for target, resources in report.items():
            facts = _resources(resources) if resources else (Fact("Report", "none"),)
            facts = (Fact("Compiled by", reporter()), *facts)
            self._facts.set_group(FactGroup(f"Compiled for {_with_generation(target)}", facts))

    def _on_failed(self, error: Exception) -> None:
        self._compile.setEnabled(True)
        if not isinstance(error, AppError):
            raise error  # a bug: the window's hook reports it
        self._state.setText(str(error))


class _NarrowTabs(QProxyStyle):
    """Leaves less around the text of tabs, so that ten of them stand side by side."""

    def pixelMetric(
        self,
        metric: QStyle.PixelMetric,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
    ) -> int:
        if metric == QStyle.PixelMetric.PM_TabBarTabHSpace:
            return _AROUND_TAB
        return super().pixelMetric(metric, option, widget)


class _FileTabs(QTabBar):
    """Tabs with room for underscores.

    Fusion pushes the text of tabs that are not chosen down, and cuts off what leaves its place.
    """

    def __init__(self) -> None:
        super().__init__()
        self._style = _NarrowTabs()
        self._style.setParent(self)
        self.setStyle(self._style)

    def tabSizeHint(self, index: int) -> QSize:
        shift = self.style().pixelMetric(QStyle.PixelMetric.PM_TabBarTabShiftVertical, None, self)
        return super().tabSizeHint(index) + QSize(0, shift)


def _with_generation(target: str) -> str:
    """Return ``sm_75 (Turing)`` for ``sm_75``."""
    digits = target.removeprefix("sm_")
    return f"{target} ({architecture((int(digits[:-1]), int(digits[-1])))})"


def _occupancy(occupancy: float | None) -> tuple[Fact, ...]:
    if occupancy is None:
        return ()
    return (Fact("Theoretical occupancy", f"{occupancy:.0%}"),)


def _planned(plan: PlannedLaunch, request: Request) -> FactGroup:
    launch = plan.launch
    source = request.source
    size = "×".join(str(side) for side in source.shape[-2::-1])
    tile = "strides over all" if launch.tile is None else _by(launch.tile)
    return FactGroup(
        f"Launch for {size}, {source.mode}",
        (
            Fact("Kernel", launch.kernel),
            Fact("Grid", _by(plan.grid), "blocks"),
            Fact("Block", _by(launch.block), "threads"),
            Fact("Output of a block", tile, "" if launch.tile is None else "pixels"),
            Fact("Dynamic shared memory", f"{launch.shared_bytes:,}", "bytes a block"),
            *(
                Fact(f"{name} in constant memory", f"{values.nbytes:,}", "bytes")
                for name, values in launch.constants.items()
            ),
            *(
                Fact(f"Table {number} in global memory", f"{table.nbytes:,}", "bytes")
                for number, table in enumerate(launch.tables, 1)
            ),
            Fact("Reads the image through", "a texture" if launch.texture else "global memory"),
            Fact("Least traffic", _plain(launch.bytes_per_sample), "bytes a sample"),
            Fact("Arithmetic", _plain(launch.operations_per_sample), "operations a sample"),
        ),
    )


def _resources(resources: Resources) -> tuple[Fact, ...]:
    constant = Fact("Constant bank", f"{resources.constant_bytes:,}", "bytes")
    return (
        Fact("Registers", str(resources.registers), "a thread"),
        Fact("Spilled registers", f"{resources.spill_bytes:,}", "bytes a thread"),
        Fact("Stack", f"{resources.stack_bytes:,}", "bytes a thread"),
        Fact("Static shared memory", f"{resources.shared_bytes:,}", "bytes a block"),
        *((constant,) if resources.constant_bytes else ()),  # newer assemblers do not report it
    )


def _plain(number: float) -> str:
    """Return a number of four digits or more, never with an exponent."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _by(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)
