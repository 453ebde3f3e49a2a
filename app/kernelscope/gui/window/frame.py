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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMainWindow, QWidget, QWidgetItem

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Backend
from kernelscope.gui.docks.console import Console
from kernelscope.gui.docks.film_strip import FilmStrip
from kernelscope.gui.docks.filter_browser import FilterBrowser
from kernelscope.gui.docks.headline import Headline
from kernelscope.gui.docks.ladder import Ladder
from kernelscope.gui.docks.measure_panel import MeasurePanel
from kernelscope.gui.docks.parameter_panel import ParameterPanel, WithinBox
from kernelscope.gui.docks.quality_panel import QualityPanel
from kernelscope.gui.docks.runs_panel import RunsPanel
from kernelscope.gui.docks.steps_panel import StepsPanel
from kernelscope.gui.docks.timing_panel import TimingPanel
from kernelscope.gui.docks.view_bar import ViewBar
from kernelscope.gui.session.session import Session
from kernelscope.gui.session.subject import REFERENCED
from kernelscope.gui.tools.file_dialogs import Pictures, Recipes
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.layouts import Boundary, Pages
from kernelscope.gui.widgets.parts import dressed, in_column, scrolled, set_help
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window import menus
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.bars import (
    BatchProgress,
    PanelButtons,
    Preparing,
    RunBar,
    StatusBar,
    ToolBar,
)
from kernelscope.gui.window.dock_list import DockName, Drawer, make_docks
from kernelscope.gui.window.page import Page
from kernelscope.gui.window.scans import Scans
from kernelscope.gui.window.viewer import Viewer
from kernelscope.gui.work.background import Background
from kernelscope.schema.samples import Kind


class SettingsColumn(QWidget):
    """The panel, the ladder and Run; the ladder shows all its rungs, the panel scrolls instead."""

    def __init__(self, above: QWidget, panel: QWidget, ladder: QWidget) -> None:
        super().__init__()
        self.setObjectName("settingsColumn")
        self._bottom: QWidget | None = None
        self._scrolls, self._parts = (panel, ladder), [above, panel, ladder]
        for widget in self._parts:
            hidden = widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
            widget.setParent(self)
            widget.setVisible(not hidden)

    def end_with(self, widget: QWidget) -> None:
        self._bottom = widget
        self._parts.append(widget)
        widget.setParent(self)
        widget.show()

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
        for each in self._scrolls:
            excess = sum(heights.values()) - self.height()
            if each in heights and excess > 0:
                least = each.minimumSizeHint().height()
                heights[each] = max(least, heights[each] - excess)
        top = 0
        for each, height in heights.items():
            if each is self._bottom:
                top = max(top, self.height() - height)
            each.setGeometry(0, top, self.width(), height)
            top += height

    def _height(self, widget: QWidget) -> int:
        item = QWidgetItem(widget)
        flows = item.hasHeightForWidth()
        return item.heightForWidth(self.width()) if flows else item.sizeHint().height()


if TYPE_CHECKING:
    from kernelscope.gui.window.companions import Companions

_logger = logging.getLogger(__name__)


class Frame(QMainWindow):
    """Input and output in the middle, settings next to them, runs and figures below."""

    companions: Companions  # the other windows; `MainWindow` makes them
    _console_seen = False

    def __init__(self, backends: Mapping[str, Backend], settings: Settings) -> None:
        super().__init__()
        self.setObjectName("mainWindow")
        self.setWindowTitle("Kernelscope")
        self.setWindowIcon(theme.app_icon())
        self.settings = settings
        self.backends = backends
        self._make_parts()
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
        self._stack.setCurrentWidget(self.page)

    # --- docks ---

    @Action(
        "debug",
        "&Console",
        "F12",
        ticked=lambda frame: frame._console_seen,
        help="window#kernels-benchmark-and-console",
    )
    def toggle_console(self) -> None:
        """The log: actions of the program with durations, and errors."""
        console, wanted = self.docks[DockName.CONSOLE], not self._console_seen
        console.setVisible(wanted)
        if wanted:
            console.raise_()

    def _raise_figures(self) -> None:
        """Bring the figures to the front once there are any, unless the user closed them."""
        if not self.docks[DockName.QUALITY].isHidden():
            self.docks[DockName.QUALITY].raise_()

    def _on_console_seen(self, seen: bool) -> None:
        """Keep the button down while the console is visible."""
        self._console_seen = seen
        self.actions_.tick(self)

    def _on_controls_seen(self, seen: bool) -> None:
        """Show Run and Cancel in the tool bar while the settings are closed."""
        for id_ in ("run", "cancel"):
            self._tool_bar.offer(self.actions_[id_], not seen)

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

    def _make_parts(self) -> None:
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
        self.quality = QualityPanel(self.session, self.background)
        self.measure = MeasurePanel(self.session.subject.regions)
        self.ladder = Ladder()
        self._settings_column = SettingsColumn(self.scans.components, self.panel, self.ladder)
        self.docks = make_docks(
            self,
            {
                DockName.FILTERS: self.filters,
                DockName.STEPS: self.steps_panel,
                DockName.CONTROLS: self._settings_column,
                DockName.RUNS: self.runs,
                DockName.TIMING: self.timing,
                DockName.QUALITY: self.quality,
                DockName.MEASURE: scrolled(self.measure),
                DockName.CONSOLE: self.console,
            },
        )
        self.drawer = Drawer(self.docks.values())
        self.panel_buttons = PanelButtons(self, self.docks)
        self.actions_ = Actions(self, self.docks)
        self.actions_.follow = self.panel_buttons.show_state
        self.measure.add_tool(WithinBox(self.session, self.measure, "measureWithin"))
        self.quality.set_menu(self.actions_.menu(menus.REFERENCE))
        self._tool_bar = ToolBar(*self.actions_.tools, parent=self)
        self.addToolBar(self._tool_bar)
        quality = self.docks[DockName.QUALITY]
        quality.visibilityChanged.connect(self.quality.set_seen)
        self.session.when({REFERENCED}, self._raise_figures)
        self.docks[DockName.CONTROLS].visibilityChanged.connect(self._on_controls_seen)
        self.docks[DockName.CONSOLE].visibilityChanged.connect(self._on_console_seen)
        self._run_bar = RunBar(self.actions_["run"], self.actions_["cancel"])
        self._settings_column.end_with(self._run_bar)
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
        self.headline = Headline()
        self._stack = Pages()
        for page in self.pages.values():
            self._stack.addWidget(page)
        centre = dressed(QWidget(), "centre")
        column = (self._view_bar, self.headline, (self._stack, 1), self.film_strip)
        in_column(*column, of=centre, margins=(2, 0, 2, 0), spacing=4)
        self.setCentralWidget(Boundary(centre))
        self.preparing = Preparing(self.session, self.background)
        self.batch_progress = BatchProgress(self.actions_["batch"])
        self._status = StatusBar((self.batch_progress, self.preparing), self.panel_buttons)
        self.setStatusBar(self._status)
        self._show_page()
        self.panel.setFocus()  # in a search field, keys without Ctrl would be letters
