"""The widgets of the main window and where they stand; `MainWindow` connects them.

tool bar
view bar, headline        settings: filter, parameters, ladder, Run
input | output
film strip
runs, timing, quality, console
status bar
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QLabel,
    QMainWindow,
    QStackedWidget,
    QStatusBar,
    QStyle,
    QStyleOption,
    QToolButton,
    QVBoxLayout,
    QWidget,
    QWidgetItem,
)

from kernelscope.base.errors import AppError
from kernelscope.base.text import one_line
from kernelscope.engine.backend import Backend
from kernelscope.gui.docks.console import Console
from kernelscope.gui.docks.film_strip import FilmStrip
from kernelscope.gui.docks.filter_browser import FilterBrowser
from kernelscope.gui.docks.headline import Headline
from kernelscope.gui.docks.measure_panel import MeasurePanel
from kernelscope.gui.docks.parameter_panel import ParameterPanel
from kernelscope.gui.docks.quality_panel import QualityPanel
from kernelscope.gui.docks.runs_panel import RunsPanel
from kernelscope.gui.docks.steps_panel import StepsPanel
from kernelscope.gui.docks.timing_panel import TimingPanel
from kernelscope.gui.docks.view_bar import ViewBar
from kernelscope.gui.session.session import Session
from kernelscope.gui.tools.file_dialogs import Pictures
from kernelscope.gui.tools.recipe_dialogs import Recipes
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.commands import WindowState
from kernelscope.gui.widgets.elided_label import plain_tip
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.layouts import Boundary, Slot
from kernelscope.gui.widgets.parts import dressed, in_row, switch
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.dock_list import DOCKS, Dock, DockName, DockSide, Drawer, make_docks
from kernelscope.gui.window.dock_watch import DockWatch
from kernelscope.gui.window.judging import Judging
from kernelscope.gui.window.page import Page
from kernelscope.gui.window.preparing import Preparing
from kernelscope.gui.window.run_bar import RunBar
from kernelscope.gui.window.scans import Scans
from kernelscope.gui.window.tool_bar import ToolBar
from kernelscope.gui.window.viewer import Viewer
from kernelscope.gui.work.background import Background
from kernelscope.schema.samples import Kind

_MARGIN = 6
"""Pixels left of the message, as in Qt's own status bar, and between it and the labels."""


class StatusBar(QStatusBar):
    """Its message ends in “…” before the labels on the right; the tooltip has it all.

    Qt's own status bar cuts it off in the middle of a letter.

    - `pixel`, `zoom`: values under the cursor, and the magnification; `widgets` stand before.
    """

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self.setObjectName("statusBar")
        self.messageChanged.connect(lambda text: self.setToolTip(plain_tip(text)))
        self.pixel = QLabel(self)
        self.pixel.setObjectName("pixel")
        self.pixel.setAccessibleName("Position and values under the cursor")
        self.zoom = QLabel(self)
        self.zoom.setObjectName("zoom")
        self.zoom.setAccessibleName("Zoom")
        self.pixel.setContentsMargins(12, 0, 0, 0)
        self.zoom.setContentsMargins(12, 0, 0, 0)
        self._permanent = [*widgets, self.pixel, self.zoom]
        for widget in self._permanent:
            self.addPermanentWidget(widget)

    def changeEvent(self, event: QEvent) -> None:
        """Give the labels the room that another size of text needs."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            for label in (self.pixel, self.zoom):
                label.updateGeometry()

    def clear_figures(self) -> None:
        """Empty the labels on the right, which belong to a page."""
        self.pixel.clear()
        self.zoom.clear()

    def showMessage(self, message: str, timeout: int | None = 0) -> None:
        super().showMessage(one_line(message), timeout)

    def withdraw(self, message: str) -> None:
        """Clear the message if it is still this one."""
        if message and self.currentMessage() == one_line(message):
            self.clearMessage()

    def shown_message(self) -> str:
        return self.fontMetrics().elidedText(
            self.currentMessage(), Qt.TextElideMode.ElideRight, self._area().width()
        )

    def _area(self) -> QRect:
        right = min(each.x() for each in self._permanent if not each.isHidden()) - _MARGIN
        return QRect(_MARGIN, 0, right - _MARGIN, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        panel = QStyle.PrimitiveElement.PE_PanelStatusBar
        self.style().drawPrimitive(panel, option, painter, self)
        painter.setPen(self.palette().windowText().color())
        painter.drawText(self._area(), Qt.AlignmentFlag.AlignVCenter, self.shown_message())


class SettingsColumn(QWidget):
    """The controls of the page, the panel, the ladder of levels, and Run with its progress.

    - `ladder`: as high as its rungs, below the panel, which scrolls in the height that is left.
    - `run`: Run and its progress, at the bottom.
    """

    def __init__(self, above: Iterable[QWidget], panel: QWidget) -> None:
        super().__init__()
        self.setObjectName("settingsColumn")
        self.ladder = Slot("ladderSlot", self)
        self.run = Slot("runSlot", self)
        self._panel, self._parts = panel, (*above, panel, self.ladder, self.run)
        for widget in (*above, panel):
            hidden = widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
            widget.setParent(self)
            widget.setVisible(not hidden)

    def sizeHint(self) -> QSize:
        return self._size([each.sizeHint() for each in self._shown()])

    def minimumSizeHint(self) -> QSize:
        return self._size([each.minimumSizeHint() for each in self._shown()])

    def _shown(self) -> list[QWidget]:
        return [each for each in self._parts if not each.isHidden()]

    @staticmethod
    def _size(hints: Sequence[QSize]) -> QSize:
        return QSize(max(each.width() for each in hints), sum(each.height() for each in hints))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._arrange()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Place the parts; a layout would take as much height from the ladder as from the panel."""
        heights = {each: self._height(each) for each in self._shown()}
        for each in (self._panel, self.ladder):
            excess = sum(heights.values()) - self.height()
            if each in heights and excess > 0:
                least = each.minimumSizeHint().height()
                heights[each] = max(least, heights[each] - excess)
        top = 0
        for each, height in heights.items():
            if each is self.run:
                top = max(top, self.height() - height)
            each.setGeometry(0, top, self.width(), height)
            top += height

    def _height(self, widget: QWidget) -> int:
        item = QWidgetItem(widget)
        flows = item.hasHeightForWidth()
        return item.heightForWidth(self.width()) if flows else item.sizeHint().height()


class Centre(QWidget):
    """One column; the page takes all the height that is left.

    `headline`: the strip over the pictures: time, rate and quality of the output. `stack`: the
    pages. `film_strip`: the open pictures, below the page.
    """

    def __init__(self, view_bar: QWidget, pages: Iterable[QWidget]) -> None:
        super().__init__()
        self.setObjectName("centre")
        self.headline = Slot("headlineSlot", self)
        self.film_strip = Slot("filmStripSlot", self)
        self.stack = QStackedWidget(self)
        for page in pages:
            self.stack.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(4, 2, 4, 2)
        column.setSpacing(4)
        column.addWidget(view_bar)
        column.addWidget(self.headline)
        column.addWidget(self.stack, 1)
        column.addWidget(self.film_strip)


if TYPE_CHECKING:
    from kernelscope.gui.window.companions import Companions

_logger = logging.getLogger(__name__)


class Frame(QMainWindow):
    """Input and output in the middle, settings next to them, runs and figures below."""

    companions: Companions
    """The other windows; `MainWindow` makes them."""

    def __init__(
        self, backends: Mapping[str, Backend], settings: Settings, parts: Iterable[type]
    ) -> None:
        super().__init__()
        self.setObjectName("mainWindow")
        self.setWindowTitle("Kernelscope")
        self.setWindowIcon(theme.app_icon())
        self.settings = settings
        self.backends = backends
        self._make_parts(parts)
        self._lay_out()

    @property
    def page(self) -> Page[Any, Any]:
        return self.pages[self.session.kind]

    @property
    def canvas(self) -> PairView:
        return self.page.canvas

    def show_status(self, text: str) -> None:
        self.statusBar().showMessage(text)

    def _show_page(self) -> None:
        self._centre.stack.setCurrentWidget(self.page)

    # --- messages ---

    def report_bug(self, exception: BaseException) -> None:
        """Log an unexpected exception and offer the log; the window stays usable."""
        _logger.critical("Unexpected error", exc_info=exception)
        dialogs.show_bug(self, exception, self.console.text())

    def report(self, error: Exception) -> None:
        self.show_status("")  # the work that the status bar named has ended
        if isinstance(error, AppError):
            dialogs.show_error(self, error)
        else:
            self.report_bug(error)

    # --- building ---

    def _make_parts(self, parts: Iterable[type]) -> None:
        self.console = Console()  # first, so that it misses nothing
        self.background = Background(self, self.report)
        self.file_dialogs = Pictures(self, self.settings, self.background)
        self.session = Session(self.backends, self.settings.texts, self.settings.text("filter"))
        self.panel = ParameterPanel(self.session, self.background)
        self.pictures = Page(self.session.pictures, self.background)
        self.volumes = Page(self.session.volumes, self.background)
        self.scans = Scans(self.session.volumes, self.background, self)
        self.pages: dict[Kind, Page[Any, Any]] = {
            Kind.PICTURE: self.pictures,
            Kind.VOLUME: self.volumes,
        }
        self.recipes = Recipes(self, self.background)
        self.runs = RunsPanel(self.session.gallery)
        self.filters = FilterBrowser()
        self.film_strip = FilmStrip()
        self.steps_panel = StepsPanel()
        self.timing = TimingPanel()
        self.quality = QualityPanel(self.session)
        self.measure = MeasurePanel()
        self._settings_column = SettingsColumn([self.scans.components], self.panel)
        self.docks = make_docks(
            self,
            {
                DockName.FILTERS: self.filters,
                DockName.STEPS: self.steps_panel,
                DockName.CONTROLS: self._settings_column,
                DockName.RUNS: self.runs,
                DockName.TIMING: self.timing,
                DockName.QUALITY: self.quality,
                DockName.MEASURE: self.measure,
                DockName.CONSOLE: self.console,
            },
        )
        self.drawer = Drawer(self.docks.values())
        self.panel_buttons = PanelButtons(self, self.docks)
        self.actions_ = Actions(self, self.docks, parts)
        self.actions_.follow = self.panel_buttons.show_state
        self.quality.set_menu(self.actions_.reference_menu)
        self._tool_bar = ToolBar(*self.actions_.tools, parent=self)
        self.addToolBar(self._tool_bar)
        self.judging = Judging(self.session, self.quality, self.background)
        self.dock_watch = DockWatch(self, self._tool_bar)
        self._run_bar = RunBar(self.actions_["run"], self.actions_["cancel"])
        self._settings_column.run.put(self._run_bar)
        self._view_bar = ViewBar(
            tuple(self.actions_[id_] for id_ in ("undo", "redo", "reuse")),
            self.actions_.of_choice("arrangement"),
            self.actions_.of_choice("view"),
            self.actions_["displayControls"],
        )
        self.viewer = Viewer(self, self._view_bar.display_button)

    def _lay_out(self) -> None:
        set_help(self, "window")
        self.setAcceptDrops(True)
        self._centre = Centre(self._view_bar, self.pages.values())
        self.headline = Headline()
        self._centre.headline.put(self.headline)
        self.setCentralWidget(Boundary(self._centre))
        self.preparing = Preparing(self.session, self.background)
        self._status = StatusBar(self.preparing, self.panel_buttons)
        self.setStatusBar(self._status)
        self._show_page()
        self.panel.setFocus()  # in a search field, keys without Ctrl would be letters


_HEIGHT = 190
"""Pixels of the panels at the bottom when the first of them opens."""


class PanelButtons(QWidget):
    """A button for each panel at the bottom that has something to show.

    It opens the panel in place of the one that is open, or closes it.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[DockName, QDockWidget]) -> None:
        super().__init__(window)
        self.setObjectName("panelButtons")
        self._window, self._docks = window, docks
        self._state = WindowState()
        self._buttons: dict[DockName, QToolButton] = {}
        for each in DOCKS:
            if each.side is DockSide.BOTTOM:
                button = switch(each.title, f"{each.name}PanelButton", f"Panel {each.title}")
                button.setAutoRaise(True)
                button.clicked.connect(
                    lambda wanted, name=each.name: self._on_clicked(name, wanted)
                )
                docks[each.name].visibilityChanged.connect(lambda _: self._show())
                self._buttons[each.name] = button
        in_row(*self._buttons.values(), of=self, margins=0, spacing=2)
        dressed(self, "panelButtons", "Panels at the bottom")
        self._show()

    def show_state(self, state: WindowState) -> None:
        """Offer the panels that have something now, and open or close those beside the pictures.

        Those stand there of their own accord, as the steps do once there are two.
        """
        before, self._state = self._state, state
        for each in DOCKS:
            met = each.need.met(state)
            if each.side is DockSide.LEFT and met is not each.need.met(before):
                self._docks[each.name].setVisible(met)
        self._show()

    def open(self, name: DockName) -> None:
        """Show a panel in place of the others at the bottom, those that float apart."""
        open_ = [each for each in self._at_the_bottom() if not each.isHidden()]
        dock = self._docks[name]
        dock.show()
        dock.raise_()
        if not open_:
            self._window.resizeDocks([dock], [_HEIGHT], Qt.Orientation.Vertical)
        for each in open_:
            each.setVisible(each is dock)

    def _on_clicked(self, name: DockName, wanted: bool) -> None:
        if wanted:
            self.open(name)
            return
        for each in self._at_the_bottom():
            each.hide()

    def _at_the_bottom(self) -> list[QDockWidget]:
        docks = [self._docks[name] for name in self._buttons]
        return [each for each in docks if not each.isFloating()]

    def _show(self) -> None:
        for each in DOCKS:
            button = self._buttons.get(each.name)
            if button is None:
                continue
            dock = self._docks[each.name]
            button.setVisible(each.need.met(self._state) or not dock.isHidden())
            button.setText(_title(each, self._state))
            button.setChecked(not dock.isHidden() and not dock.visibleRegion().isEmpty())


def _title(dock: Dock, state: WindowState) -> str:
    number = {DockName.RUNS: state.runs, DockName.MEASURE: state.regions}.get(dock.name)
    return f"{dock.title} {number}" if number else dock.title
