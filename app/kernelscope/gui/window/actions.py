"""Everything the menus offer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from kernelscope.files import SAMPLES
from kernelscope.gui.model.comparison import View
from kernelscope.gui.panels.parameter_panel import VOLUMES, by_category
from kernelscope.gui.widgets.icons import icon
from kernelscope.spec.samples import Kind

if TYPE_CHECKING:
    from kernelscope.gui.window.main_window import MainWindow

Key = QKeySequence.StandardKey

_VIEW_KEYS = {View.OUTPUT: "F2", View.RESIDUAL: "F3", View.DIFFERENCE: "F4"}


class Actions:
    """The window's actions, in its menu bar."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._view_group = QActionGroup(window)
        pictures = window.pictures
        bar = window.menuBar()
        bar.setObjectName("menuBar")

        self.open = self._action(
            "open", "&Open…", pictures.choose, Key.Open, "Open a picture or a volume (Ctrl+O)"
        )
        open_folder = self._action(
            "openFolder",
            "Open &Folder as Volume…",
            pictures.choose_folder,
            "Ctrl+Shift+O",
            "Open a folder of slices: pictures or a DICOM series",
        )
        phantom = self._action(
            "newPhantom",
            "New &Phantom…",
            window.new_phantom,
            "Ctrl+N",
            "Make a head of known truth with the noise of a scanner",
        )
        self.slice = self._action(
            "openSlice",
            "Open Slice as P&icture",
            window.open_slice,
            tip="Go on with the slice that was clicked last, as it is shown",
        )
        self.save = self._action(
            "save",
            "&Save Output…",
            window.save_output,
            Key.Save,
            "Save the output to a file (Ctrl+S)",
        )
        self.save_all = self._action(
            "saveAll",
            "Save &All Components…",
            window.save_components,
            "Ctrl+Alt+S",
            "Save the output of every component, each to a file with its own header",
        )
        self.save_view = self._action(
            "saveView",
            "Save &Residual or Difference…",
            window.save_view,
            "Ctrl+Shift+S",
            "Save the difference that is shown: of pictures amplified, of volumes the values",
        )
        quit_ = self._action("quit", "&Quit", window.close, "Ctrl+Q")
        self.paste = self._action(
            "paste",
            "&Paste Picture",
            pictures.paste,
            Key.Paste,
            "Open the clipboard’s picture",
        )
        self.copy = self._action(
            "copy", "&Copy Output", window.copy_output, Key.Copy, "Put the output on the clipboard"
        )
        self.reuse = self._action(
            "reuse",
            "Use &Output as Input",
            window.use_output,
            tip="Go on from the output, for example with another filter (Ctrl+U)",
        )
        self.reuse.setShortcuts([QKeySequence("Ctrl+U"), QKeySequence("Ctrl+Return")])
        self.reuse.setIconText("Use as Input")
        self.undo = self._action("undo", "&Undo", window.undo, Key.Undo)
        self.undo.setIconText("↶")
        self.redo = self._action("redo", "&Redo", window.redo)
        self.redo.setShortcuts([QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y")])
        self.redo.setIconText("↷")
        self.reference = (
            self._action("chooseReference", "&Choose…", window.choose_reference),
            self._action("inputAsReference", "Use &Input", window.use_input_as_reference),
            self._action("clearReference", "C&lear", window.clear_reference),
        )
        self.views = {view: self._view(view, key) for view, key in _VIEW_KEYS.items()}
        self.views[View.OUTPUT].setChecked(True)
        self.switch = self._action(
            "switchKind",
            "Picture &or Volume",
            window.switch_kind,
            "Ctrl+Shift+V",
            "Go from the volume to the picture that was open, or back",
        )
        self.noise_map = self._action(
            "noiseMap",
            "Show &Noise Map",
            window.show_noise_map,
            "F6",
            "Sigma around each voxel of the input, as MRI NLM estimates it (F6)",
        )
        reset = self._action("resetParameters", "&Reset Parameters", window.panel.reset)
        fit = self._action(
            "fit", "&Fit to Window", lambda: window.canvas.fit(), "Ctrl+0", "Show the whole picture"
        )
        one_to_one = self._action(
            "oneToOne",
            "&Actual Size (1:1)",
            lambda: window.canvas.one_to_one(),
            "Ctrl+1",
            "One pixel on one",
        )
        zoom_in = self._action("zoomIn", "Zoom &In", lambda: window.canvas.zoom_in(), Key.ZoomIn)
        zoom_in.setShortcuts([*QKeySequence.keyBindings(Key.ZoomIn), QKeySequence("Ctrl+=")])
        zoom_out = self._action(
            "zoomOut", "Zoom &Out", lambda: window.canvas.zoom_out(), Key.ZoomOut
        )
        self.run = self._action("run", "&Run", window.run, "F5", "Apply the filter (F5, Ctrl+R)")
        self.run.setShortcuts([QKeySequence("F5"), QKeySequence("Ctrl+R")])
        self.cancel = self._action("cancel", "&Cancel", window.cancel, "Esc", "Stop the run (Esc)")
        kernel = self._action(
            "viewKernel",
            "View &Kernel…",
            window.show_kernel,
            "Ctrl+K",
            "The CUDA source of the filter at its level (Ctrl+K)",
        )
        self.run_recipe = self._action(
            "runRecipe",
            "Run R&ecipe…",
            window.recipes.choose,
            "Ctrl+Shift+R",
            "Run several filters from a file, one after the other",
        )
        self.save_recipe = self._action(
            "saveRecipe",
            "&Save Recipe…",
            window.save_recipe,
            tip="Save the steps that led to the input, and the filter as it is set",
        )
        bench = self._action(
            "benchmark",
            "&Benchmark…",
            window.show_bench,
            "Ctrl+B",
            "Time filters, levels, devices and libraries against each other (Ctrl+B)",
        )
        gpu = self._action(
            "gpuInfo",
            "&GPU Information…",
            window.show_gpu,
            tip="What the GPU is and has, or step by step what is missing",
        )
        self.debug = self._action(
            "debug",
            "&Console",
            window.toggle_console,
            "F12",
            "What the program does, how long it takes, and what went wrong (F12)",
        )
        self.debug.setCheckable(True)
        guide = self._action(
            "manual",
            "&Manual",
            window.show_manual,
            Key.HelpContents,
            "The pages of the manual, with a search over all of them (F1)",
        )
        about = self._action("about", "&About Kernelscope", window.show_about)

        for action, name, text in (
            (self.open, "load", "Load"),
            (self.save, "save", "Save"),
            (self.run, "run", "Run"),
            (self.cancel, "cancel", "Cancel"),
            (kernel, "kernel", "Kernel"),
            (bench, "benchmark", "Benchmark"),
            (self.debug, "debug", "Debug"),
            (gpu, "gpu", "GPU info"),
        ):
            action.setIcon(icon(name))
            action.setIconText(text)
        self.tools = (
            ((self.open, self.save), (self.run, self.cancel, kernel, bench)),
            ((self.debug, gpu),),
        )

        file_menu = self._menu("fileMenu", "&File")
        file_menu.addActions([self.open, open_folder])
        self._recent = file_menu.addMenu("Open &Recent")
        self._recent.setObjectName("recentMenu")
        self._recent.aboutToShow.connect(self.fill_recent)
        samples = file_menu.addMenu("Sample &Pictures")
        samples.setObjectName("samplesMenu")
        for sample in SAMPLES:
            samples.addAction(
                self._action(
                    f"sample{sample.path.stem}",
                    sample.caption,
                    partial(pictures.open, sample.path),
                )
            )
        file_menu.addSeparator()
        file_menu.addActions([phantom, self.slice])
        file_menu.addSeparator()
        file_menu.addActions([self.save, self.save_all, self.save_view])
        file_menu.addSeparator()
        file_menu.addAction(quit_)

        edit_menu = self._menu("editMenu", "&Edit")
        edit_menu.addActions([self.undo, self.redo, self.reuse])
        edit_menu.addSeparator()
        edit_menu.addActions([self.copy, self.paste])
        edit_menu.addSeparator()
        self.reference_menu = edit_menu.addMenu("Re&ference")
        self.reference_menu.setObjectName("referenceMenu")
        self.reference_menu.addActions(self.reference)
        edit_menu.addAction(reset)

        view_menu = self._menu("viewMenu", "&View")
        view_menu.addActions([fit, one_to_one, zoom_in, zoom_out])
        view_menu.addSeparator()
        view_menu.addActions([*self.views.values(), self.noise_map])
        view_menu.addSeparator()
        view_menu.addAction(self.switch)
        view_menu.addSeparator()
        for dock, key in zip(window.docks[:3], ("F8", "F9", "F7"), strict=True):
            toggle = dock.toggleViewAction()
            toggle.setShortcut(QKeySequence(key))
            toggle.triggered.connect(dock.raise_)  # may lie behind another tab
            toggle.setObjectName(f"show{dock.objectName().capitalize()}")
            view_menu.addAction(toggle)
        view_menu.addAction(self.debug)

        self._filters = self._add_filters(self._menu("filterMenu", "Fil&ter"))

        run_menu = self._menu("runMenu", "&Run")
        run_menu.addActions([self.run, self.cancel])
        run_menu.addSeparator()
        run_menu.addActions([self.run_recipe, self.save_recipe])
        run_menu.addSeparator()
        run_menu.addActions([kernel, bench])

        help_menu = self._menu("helpMenu", "&Help")
        help_menu.addActions([guide, gpu, about])

    def show_kind(self, kind: Kind) -> None:
        """Offer what can be done with a picture or with a volume."""
        volumes = kind is Kind.VOLUME
        for action in (self.slice, self.noise_map):
            action.setEnabled(volumes)
        self._of_volumes.setEnabled(volumes)

    def mark_filter(self, filter_id: str) -> None:
        """Tick the filter that is chosen."""
        self._filters[filter_id].setChecked(True)

    def name_steps(self, undo: str, redo: str) -> None:
        """Say what undo and redo would do; empty for nothing."""
        for action, word, name in ((self.undo, "Undo", undo), (self.redo, "Redo", redo)):
            action.setEnabled(bool(name))
            action.setText(f"&{word} {name.replace('&', '&&')}".rstrip())
            key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            action.setToolTip(f"{word} {name or 'nothing'} ({key})")

    def fill_recent(self) -> None:
        """List the recent files as they are now."""
        self._recent.clear()
        paths = self._window.settings.recent_files
        for number, path in enumerate(paths, start=1):
            label = f"&{number % 10} {path.name}".replace("&&", "&")
            entry = self._action(
                f"recent{number}", label, partial(self._window.pictures.open, path)
            )
            entry.setToolTip(str(path))
            entry.setStatusTip(str(path))
            self._recent.addAction(entry)
        if not paths:
            self._recent.addAction("No files yet").setEnabled(False)
            return
        self._recent.addSeparator()
        self._recent.addAction(
            self._action("clearRecent", "&Clear List", self._window.settings.clear_recent)
        )

    def _add_filters(self, menu: QMenu) -> dict[str, QAction]:
        group = QActionGroup(self._window)
        actions = {}
        for category, specs in by_category(Kind.VOLUME).items():
            submenu = menu.addMenu(category)
            if category == VOLUMES:
                self._of_volumes = submenu
            submenu.setObjectName(f"filters{category}Menu")
            for spec in specs:
                entry = self._action(
                    f"filter{spec.id}",
                    spec.name,
                    partial(self._window.panel.set_filter, spec.id),
                    tip=spec.summary,
                )
                entry.setCheckable(True)
                group.addAction(entry)
                submenu.addAction(entry)
                actions[spec.id] = entry
        return actions

    def _view(self, view: View, key: str) -> QAction:
        name = view.value.capitalize()
        action = self._action(
            f"view{name}",
            f"Show &{name}",
            partial(self._window.set_view, view),
            key,
            f"{view.help} ({key})",
        )
        action.setIconText(name)
        action.setCheckable(True)
        self._view_group.addAction(action)
        return action

    def _menu(self, name: str, title: str) -> QMenu:
        menu = self._window.menuBar().addMenu(title)
        menu.setObjectName(name)
        menu.setToolTipsVisible(True)
        return menu

    def _action(
        self,
        name: str,
        text: str,
        slot: Callable[[], object],
        key: QKeySequence.StandardKey | str | None = None,
        tip: str = "",
    ) -> QAction:
        action = QAction(text, self._window)
        action.setObjectName(name)
        action.triggered.connect(lambda: slot())
        if key is not None:
            action.setShortcut(QKeySequence(key))
        if tip:
            action.setToolTip(tip)
            action.setStatusTip(tip)
        self._window.addAction(action)
        return action
