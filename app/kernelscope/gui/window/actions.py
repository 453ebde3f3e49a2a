"""Makes Qt's actions and menus from `kernelscope.menus`, and keeps them up to date.

Commands are looked up on the window by name when an action is triggered, so that nothing here
needs to know the window's class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu

from kernelscope import commands, edit_menu, file_menu, files, menus, run_menu, step_menu
from kernelscope.bench import recorded
from kernelscope.commands import Action, State, Submenu
from kernelscope.gui.dialogs.command_palette import Command
from kernelscope.gui.model.filter_groups import VOLUMES, by_category
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.icons import icon
from kernelscope.gui.widgets.settings import Settings
from kernelscope.manual import filter_page
from kernelscope.menu_help import PLACES
from kernelscope.menus import DockName
from kernelscope.spec.samples import Kind


class Actions(Mapping[str, QAction]):
    """The window's actions by id, in its menu bar.

    Parameters
    ----------
    window : QMainWindow
        Has the methods that the actions name in `Action.command`.
    docks : mapping of docks by name
        Their actions for showing and hiding become entries of a menu.
    settings : Settings
        Holds the recent files.
    """

    def __init__(
        self, window: QMainWindow, docks: Mapping[DockName, QDockWidget], settings: Settings
    ) -> None:
        self._window = window
        self._docks = docks
        self._settings = settings
        self.state = State()
        self._applied: State | None = None
        self._made: dict[str, tuple[str, Action, QAction]] = {}
        self._choices: dict[str, QActionGroup] = {}
        self._menus: dict[str, QMenu] = {}
        window.menuBar().setObjectName("menuBar")
        for menu in menus.MENUS:
            self._fill(window.menuBar().addMenu(menu.title), (menu,))
        self._fill_samples()
        self._fill_recorded()
        self._fill_filters()
        self._menus[file_menu.RECENT.id].aboutToShow.connect(self.fill_recent)
        self["viewOutput"].setChecked(True)

    def __getitem__(self, id_: str) -> QAction:
        return self._made[id_][2]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    @property
    def tools(self) -> tuple[list[list[QAction]], list[list[QAction]]]:
        """The actions of the tool bar in groups: on the left, and at the far right."""
        left, right = (
            [[self[id_] for id_ in group] for group in groups] for groups in menus.TOOL_BAR
        )
        return left, right

    @property
    def views(self) -> tuple[QAction, ...]:
        """The actions that choose a view of the result."""
        return tuple(made for _, action, made in self._made.values() if action.choice == "view")

    @property
    def runs_menu(self) -> tuple[Action, ...]:
        """The declared actions of the menu of runs."""
        return tuple(entry for entry in run_menu.RUNS.entries if isinstance(entry, Action))

    @property
    def steps_menu(self) -> tuple[str, ...]:
        """Ids of the actions of steps."""
        return tuple(each.id for each in step_menu.STEPS.entries if isinstance(each, Action))

    @property
    def arrangements(self) -> tuple[QAction, ...]:
        """The actions that arrange input and output."""
        return tuple(
            made for _, action, made in self._made.values() if action.choice == "arrangement"
        )

    @property
    def reference_menu(self) -> QMenu:
        return self._menus[edit_menu.REFERENCE.id]

    def commands(self) -> list[Command]:
        """Return all actions for the command palette."""
        return [
            Command(
                title=commands.plain(made.text()),
                place=place,
                keys=_native(made.shortcut()),
                help=action.tip,
                problem=self._problem(action),
                run=made.trigger,
                synonyms=" ".join(action.synonyms),
            )
            for place, action, made in self._made.values()
        ]

    def refresh(self, state: State) -> None:
        """Enable the actions that this state allows, and name the steps of Undo and Redo."""
        self._set_state(state)
        if self["run"].iconText() != (word := "Restart" if state.busy else "Run"):
            self["run"].setIconText(word)
        self.name_steps(state.undo, state.redo)

    def _set_state(self, state: State) -> None:
        if state == self._applied:
            return
        self.state = self._applied = state
        for _, action, made in self._made.values():
            if action.need is not commands.NOTHING:
                made.setEnabled(action.need.met(state))
        self._menus[_filters_menu(VOLUMES)].setEnabled(state.volumes)

    def refresh_difference(self, savable: bool) -> None:
        """Enable saving of the residual or difference that is shown."""
        self._set_state(replace(self.state, difference=savable))

    def refresh_runs(self, runs: int, chosen: int, kept: bool, baseline: bool) -> None:
        """Enable the actions of runs that the choice of runs allows."""
        self._set_state(replace(self.state, runs=runs, chosen=chosen, kept=kept, baseline=baseline))

    def refresh_steps(self, cards: int, later: bool, alone: bool) -> None:
        """Enable the actions of steps that are possible now."""
        self._set_state(replace(self.state, cards=cards, later=later))
        self["stepAlone"].setChecked(alone)

    def name_comparison(self, where: str, problem: str) -> None:
        """Name the level that other runs would be compared with, or why they cannot be."""
        action = self["compareRuns"]
        action.setToolTip(problem or run_menu.COMPARE_TIP)
        action.setText(f"&Compare with {where}" if where else "&Compare With This Level")
        action.setIconText(f"Compare with {where}" if where else "Compare times")

    def mark_view(self, name: str) -> None:
        """Tick the view that is chosen."""
        self[f"view{name.capitalize()}"].setChecked(True)

    def mark_filter(self, filter_id: str) -> None:
        """Tick the filter that is chosen."""
        self[f"filter{filter_id}"].setChecked(True)

    def name_steps(self, undo: str, redo: str) -> None:
        """Name the steps that undo and redo would take; empty for none."""
        for id_, word, name in (("undo", "Undo", undo), ("redo", "Redo", redo)):
            text = f"&{word} {name.replace('&', '&&')}".rstrip()
            if text == self[id_].text():  # Qt would lay out menus and tool bars again
                continue
            self[id_].setText(text)
            self[id_].setToolTip(f"{word} {name or 'nothing'} ({_native(self[id_].shortcut())})")

    def fill_recent(self) -> None:
        """List the recent files as they are now."""
        menu = self._menus[file_menu.RECENT.id]
        for action in menu.actions():
            self._window.removeAction(action)
            action.deleteLater()
        menu.clear()
        paths = self._settings.recent_files
        for number, path in enumerate(paths, start=1):
            label = f"&{number % 10} {path.name.replace('&', '&&')}"
            entry = Action(
                f"recent{number}", label, "file_dialogs.open", tip=str(path), argument=path
            )
            menu.addAction(self._qt_action(entry))
        if not paths:
            menu.addAction("No files yet").setEnabled(False)
            return
        menu.addSeparator()
        menu.addAction(
            self._qt_action(Action("clearRecent", "&Clear List", "settings.clear_recent"))
        )

    def _fill(self, menu: QMenu, path: tuple[Submenu, ...]) -> None:
        """Add the declared entries to a menu that leads there by `path`."""
        declared = path[-1]
        menu.setObjectName(declared.id)
        menu.setToolTipsVisible(True)
        set_help(menu, PLACES.get(declared.id, ""))
        self._menus[declared.id] = menu
        group = declared.entries[0].group if declared.entries else 0
        for entry in declared.entries:
            if entry.group != group:
                menu.addSeparator()
                group = entry.group
            if isinstance(entry, Submenu):
                self._fill(menu.addMenu(entry.title), (*path, entry))
            else:
                self._add(menu, menus.place(path), entry)

    def _fill_samples(self) -> None:
        place = menus.place((menus.MENUS[0], file_menu.SAMPLES))
        for sample in files.SAMPLES:
            self._add(
                self._menus[file_menu.SAMPLES.id],
                place,
                Action(
                    f"sample{sample.path.stem}",
                    sample.caption,
                    "file_dialogs.open",
                    argument=sample.path,
                ),
            )

    def _fill_recorded(self) -> None:
        """List the recorded results of the project's cards; an installation may lack them."""
        menu = self._menus[file_menu.RECORDED.id]
        place = menus.place((menus.MENUS[0], file_menu.RECORDED))
        for entry in recorded.entries():
            self._add(
                menu,
                place,
                Action(
                    f"recorded{entry.path.stem}",
                    entry.title.replace("&", "&&"),
                    "companions.show_recorded",
                    tip=f"Open {entry.path.name} in the benchmark",
                    argument=entry.path,
                ),
            )
        menu.menuAction().setVisible(not menu.isEmpty())

    def _fill_filters(self) -> None:
        for category, specs in by_category(Kind.VOLUME).items():
            need = commands.VOLUMES if category == VOLUMES else commands.NOTHING
            entries = tuple(
                Action(
                    f"filter{spec.id}",
                    spec.name,
                    "panel.set_filter",
                    tip=spec.summary,
                    need=need,
                    argument=spec.id,
                    choice="filter",
                    synonyms=(spec.short, *spec.synonyms),
                )
                for spec in specs
            )
            submenu = Submenu(_filters_menu(category), category, entries)
            menu = self._menus[menus.FILTERS.id].addMenu(category)
            self._fill(menu, (menus.FILTERS, submenu))
            for spec in specs:
                set_help(self[f"filter{spec.id}"], filter_page(spec))

    def _add(self, menu: QMenu, place: str, action: Action) -> None:
        """Make an action, add it to a menu and know it by its id."""
        if action.id in menus.TOGGLES and menus.TOGGLES[action.id] not in self._docks:
            return
        made = self._toggle(action) if action.id in menus.TOGGLES else self._qt_action(action)
        self._made[action.id] = place, action, made
        set_help(made, PLACES.get(action.id, ""))
        menu.addAction(made)

    def _toggle(self, action: Action) -> QAction:
        """Return the action of a dock that shows or hides it."""
        dock = self._docks[menus.TOGGLES[action.id]]
        toggle = dock.toggleViewAction()
        toggle.setObjectName(action.id)
        toggle.setText(action.title)
        toggle.setShortcuts([QKeySequence(key) for key in action.keys])
        toggle.triggered.connect(dock.raise_)  # may lie behind another tab
        return toggle

    def _qt_action(self, action: Action) -> QAction:
        made = QAction(action.title, self._window)
        made.setObjectName(action.id)
        made.triggered.connect(lambda: self._call(action))
        made.setShortcuts([QKeySequence(key) for key in action.keys])
        if action.everywhere:
            made.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)
        if action.tip:
            keys = " ".join(f"({_native(key)})" for key in made.shortcuts()[:1])
            made.setToolTip(f"{action.tip} {keys}".rstrip())
            made.setStatusTip(made.toolTip())
        if action.icon:
            made.setIcon(icon(action.icon))
            # A menu ticks actions that are on; the colours of a switch would not be seen there.
            made.setIconVisibleInMenu(not (action.checkable or action.choice))
        if action.label:
            made.setIconText(action.label)
        made.setCheckable(action.checkable or bool(action.choice))
        if action.choice:
            if action.choice not in self._choices:
                self._choices[action.choice] = QActionGroup(self._window)
            self._choices[action.choice].addAction(made)
        self._window.addAction(made)
        return made

    def _call(self, action: Action) -> None:
        """Call the command of an action on the window or the part of it that is shown now."""
        arguments = () if action.argument is None else (action.argument,)
        attrgetter(action.command)(self._window)(*arguments)

    def _problem(self, action: Action) -> str:
        """Return why an action is disabled; empty if it is not."""
        return "" if action.need.met(self.state) else action.need.why


def _filters_menu(category: str) -> str:
    return f"filters{category}Menu"


def _native(key: QKeySequence) -> str:
    """Return a shortcut as the desktop writes it."""
    return key.toString(QKeySequence.SequenceFormat.NativeText)
