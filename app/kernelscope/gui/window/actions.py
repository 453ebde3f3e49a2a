"""Qt's actions and menus, from the declarations (`gui.widgets.commands`, `gui.window.menus`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QDockWidget, QLineEdit, QMenu, QWidget

from kernelscope import files
from kernelscope.base.text import one_line
from kernelscope.bench import recorded
from kernelscope.gui.model.filter_groups import VOLUMES, by_category
from kernelscope.gui.tools.command_palette import Command
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action, WindowState, declared_by
from kernelscope.gui.widgets.parts import plain_tip, set_help
from kernelscope.gui.widgets.theme import icon
from kernelscope.gui.window import menus
from kernelscope.gui.window.dock_list import DOCKS, DockName
from kernelscope.gui.window.menus import Menu
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_page

if TYPE_CHECKING:
    from kernelscope.gui.window.frame import Frame


@dataclass(frozen=True)
class _Made:
    place: str
    action: Action
    qt: QAction


class Actions(Mapping[str, QAction]):
    """The window's actions by id, in its menu bar; `bind` takes the objects that declare them."""

    def __init__(self, window: Frame, docks: Mapping[DockName, QDockWidget]) -> None:
        self._window, self._docks = window, docks
        self.state = WindowState()
        self.follow: Callable[[WindowState], None] = lambda state: None
        """Called with each new state."""
        self._made: dict[str, _Made] = {}
        self._choices: dict[str, QActionGroup] = {}
        self._menus: dict[str, QMenu] = {}
        window.menuBar().setObjectName("menuBar")
        for menu in menus.MENUS:
            self._fill(window.menuBar().addMenu(menu.title), (menu,))
        self._fill_samples()
        self._fill_recorded()
        self._fill_filters()
        self._menus[menus.RECENT.id].aboutToShow.connect(self.fill_recent)
        self._enable()

    def bind(self, *owners: object) -> None:
        """Let the actions call the methods of those of `owners` that declare some."""
        for owner in {id(each): each for each in owners}.values():
            for name, action in declared_by(type(owner)):
                self._bind(action, owner, getattr(owner, name))
            self.tick(owner)

    def _bind(self, action: Action, owner: object, method: Callable[..., object]) -> None:
        _connect(self[action.id], action, method)
        if action.ticked is not None:  # Qt ticks it by itself, rightly or not
            self[action.id].triggered.connect(lambda: self.tick(owner))

    def tick(self, owner: object) -> None:
        for _, action in declared_by(type(owner)):
            if action.ticked is not None:
                self[action.id].setChecked(action.is_on(owner))

    def __getitem__(self, id_: str) -> QAction:
        return self._made[id_].qt

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    @property
    def tools(self) -> tuple[list[list[QAction | QMenu]], list[list[QAction | QMenu]]]:
        """The actions and menus of the tool bar in groups: on the left, and at the far right."""

        def of(id_: str) -> QAction | QMenu:
            return self._menus[id_] if id_ in self._menus else self[id_]

        left, right = menus.TOOL_BAR
        return [[*map(of, group)] for group in left], [[*map(of, group)] for group in right]

    def of_choice(self, choice: str) -> tuple[QAction, ...]:
        """Return the actions of which one is ticked at a time."""
        return tuple(made.qt for made in self._made.values() if made.action.choice == choice)

    def menu(self, declared: Menu) -> QMenu:
        return self._menus[declared.id]

    def shortcuts(self) -> list[tuple[str, str, list[str]]]:
        return [
            (made.place, made.action.name, made.action.shortcuts)
            for made in self._made.values()
            if made.action.keys
        ]

    def commands(self) -> list[Command]:
        return [
            Command(
                title=commands.plain(made.qt.text()),
                place=made.place,
                keys=_native(made.qt.shortcut()),
                help=made.action.tip,
                problem="" if made.action.need.met(self.state) else made.action.need.why,
                run=made.qt.trigger,
                synonyms=" ".join(made.action.synonyms),
            )
            for made in self._made.values()
        ]

    def refresh(self, state: WindowState) -> None:
        """Enable the actions that this state allows, and name the steps of Undo and Redo."""
        self.apply(state)
        if self["run"].iconText() != (word := "Restart" if state.busy else "Run"):
            self["run"].setIconText(word)
        self._name_steps(state.undo, state.redo)

    def apply(self, state: WindowState) -> None:
        if state != self.state:
            self.state = state
            self._enable()
            self.follow(state)

    def _enable(self) -> None:
        for made in self._made.values():
            need = made.action.need
            if need is not commands.NOTHING and made.qt.isEnabled() is not need.met(self.state):
                made.qt.setEnabled(not made.qt.isEnabled())
                why = "" if made.qt.isEnabled() else need.why  # it is grey
                made.qt.setToolTip("\n".join(filter(None, (why, made.qt.statusTip()))))
        self._menus[_filters_menu(VOLUMES)].setEnabled(self.state.volumes)

    def name_comparison(self, where: str, problem: str) -> None:
        """Name the level that other runs would be compared with, or why they cannot be."""
        made = self._made["compareRuns"]
        made.qt.setToolTip(problem or made.action.tip)
        made.qt.setText(f"&Compare with {where}" if where else made.action.title)
        made.qt.setIconText(f"Compare with {where}" if where else made.action.label)

    def mark_filter(self, filter_id: str) -> None:
        self[f"filter{filter_id}"].setChecked(True)

    def _name_steps(self, undo: str, redo: str) -> None:
        """Name the steps that undo and redo would take; empty for none."""
        for id_, word, name in (("undo", "Undo", undo), ("redo", "Redo", redo)):
            text = f"&{word} {name.replace('&', '&&')}".rstrip()
            if text == self[id_].text():  # Qt would lay out menus and tool bars again
                continue
            self[id_].setText(text)
            self[id_].setToolTip(f"{word} {name or 'nothing'} ({_native(self[id_].shortcut())})")

    def fill_recent(self) -> None:
        menu, settings = self._menus[menus.RECENT.id], self._window.settings
        for action in menu.actions():
            self._window.removeAction(action)
            action.deleteLater()
        menu.clear()
        for number, path in enumerate(settings.recent_files, start=1):
            label = f"&{number % 10} {one_line(path.name).replace('&', '&&')}"
            tip = plain_tip(one_line(str(path)))
            entry = Action(f"recent{number}", label, tip=tip, argument=path)
            made = self._qt_action(entry)
            _connect(made, entry, self._window.file_dialogs.open)
            menu.addAction(made)
        if not settings.recent_files:
            menu.addAction("No files yet").setEnabled(False)
            return
        menu.addSeparator()
        clear = Action("clearRecent", "&Clear List")
        made = self._qt_action(clear)
        _connect(made, clear, settings.clear_recent)
        menu.addAction(made)

    def _fill(self, menu: QMenu, path: tuple[Menu, ...]) -> None:
        """Add the entries to a menu that leads there by `path`."""
        declared = path[-1]
        self._name(menu, declared)
        toggles = {dock.toggle.id: dock for dock in DOCKS if dock.entry}
        for number, group in enumerate(declared.groups):
            if number:
                menu.addSeparator()
            for entry in group:
                if isinstance(entry, Menu):
                    self._fill(menu.addMenu(entry.title), (*path, entry))
                elif entry not in toggles:
                    action = commands.declared[entry]
                    self._add(menu, path, action, self._qt_action(action))
                elif toggles[entry].name in self._docks:
                    toggle, dock = toggles[entry].toggle, self._docks[toggles[entry].name]
                    self._add(menu, path, toggle, _toggle(dock, toggle))

    def _name(self, menu: QMenu, declared: Menu) -> None:
        menu.setObjectName(declared.id)
        menu.setToolTipsVisible(True)
        set_help(menu, declared.help)
        self._menus[declared.id] = menu

    def _fill_samples(self) -> None:
        self._list(
            (menus.MENUS[0], menus.SAMPLES),
            [
                Action(f"sample{each.path.stem}", each.caption, argument=each.path)
                for each in files.SAMPLES
            ],
            lambda path: self._window.file_dialogs.open(path),
        )

    def _fill_recorded(self) -> None:
        """List the recorded results of the project's cards; an installation may lack them."""
        self._list(
            (menus.MENUS[0], menus.RECORDED),
            [
                Action(
                    f"recorded{each.path.stem}",
                    each.title.replace("&", "&&"),
                    tip=f"Open {each.path.name} in the benchmark",
                    argument=each.path,
                )
                for each in recorded.entries()
            ],
            lambda path: self._window.companions.show_recorded(path),
        )
        menu = self._menus[menus.RECORDED.id]
        menu.menuAction().setVisible(not menu.isEmpty())

    def _fill_filters(self) -> None:
        for category, specs in by_category(Kind.VOLUME).items():
            submenu = Menu(_filters_menu(category), category)
            self._name(self._menus[menus.FILTERS.id].addMenu(category), submenu)
            self._list(
                (menus.FILTERS, submenu),
                [
                    Action(
                        f"filter{spec.id}",
                        spec.name,
                        tip=spec.summary,
                        need=commands.VOLUMES if category == VOLUMES else commands.NOTHING,
                        argument=spec.id,
                        choice="filter",
                        synonyms=(spec.short, *spec.synonyms),
                        help=filter_page(spec),
                    )
                    for spec in specs
                ],
                lambda filter_id: self._window.session.set_filter(filter_id),
            )

    def _list(
        self, path: tuple[Menu, ...], actions: Sequence[Action], call: Callable[..., object]
    ) -> None:
        """Fill a menu with actions that all call one function, each with its argument."""
        for action in actions:
            made = self._qt_action(action)
            _connect(made, action, call)
            self._add(self._menus[path[-1].id], path, action, made)

    def _add(self, menu: QMenu, path: tuple[Menu, ...], action: Action, made: QAction) -> None:
        self._made[action.id] = _Made(menus.place(path), action, made)
        set_help(made, action.help)
        menu.addAction(made)

    def _qt_action(self, action: Action) -> QAction:
        made = QAction(action.title, self._window)
        made.setObjectName(action.id)
        made.setShortcuts([QKeySequence(key) for key in action.shortcuts])
        if action.everywhere:
            made.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)
        if action.tip:
            keys = " ".join(f"({_native(key)})" for key in made.shortcuts()[:1])
            made.setToolTip(f"{action.tip} {keys}".rstrip())
            made.setStatusTip(made.toolTip())
        if action.icon:
            made.setIcon(icon(action.icon))
            # A menu ticks actions that are on; the colours of a switch would not be seen there.
            made.setIconVisibleInMenu(not action.is_checkable)
        if action.label:
            made.setIconText(action.label)
        made.setCheckable(action.is_checkable)
        if action.choice:
            if action.choice not in self._choices:
                self._choices[action.choice] = group = QActionGroup(self._window)
                if action.ticked is not None:  # `tick` does it: maybe none
                    group.setExclusionPolicy(QActionGroup.ExclusionPolicy.ExclusiveOptional)
            self._choices[action.choice].addAction(made)
        self._window.addAction(made)
        return made


def _connect(made: QAction, action: Action, method: Callable[..., object]) -> None:
    """Let a Qt action call a method, with the argument of the declared one."""
    call = method if action.argument is None else partial(method, action.argument)
    made.triggered.connect(lambda: call())  # without Qt's argument


def _toggle(dock: QDockWidget, action: Action) -> QAction:
    """Return the action of a dock that shows or hides it."""
    toggle = dock.toggleViewAction()
    toggle.setObjectName(action.id)
    toggle.setText(action.title)
    toggle.setShortcuts([QKeySequence(key) for key in action.shortcuts])
    toggle.triggered.connect(dock.raise_)  # may lie behind another tab
    return toggle


def _filters_menu(category: str) -> str:
    return f"filters{category}Menu"


def _native(key: QKeySequence) -> str:
    return key.toString(QKeySequence.SequenceFormat.NativeText)


_Key = QKeySequence.StandardKey
_EDITING = (_Key.Cut, _Key.Copy, _Key.Paste, _Key.SelectAll)


class MenuKeys(QObject):
    """Gives the keys of `actions` back to them where a line edit of the window has the focus."""

    def __init__(self, window: QWidget, actions: Iterable[QAction]) -> None:
        super().__init__(window)
        self._window, self._actions = window, tuple(actions)
        self._watched: QWidget | None = None
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        """Watch the widget in focus alone: an event that passes through Python takes its time."""
        if self._watched is not None:
            self._watched.removeEventFilter(self)
        ours = new is not None and new.window() is self._window and _field(new) is not None
        self._watched = new if ours else None
        if self._watched is not None:
            self._watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            field = _field(watched)
            if field is not None and not _edits(field, event) and self._is_ours(event):
                event.ignore()
                return True
        return super().eventFilter(watched, event)

    def _is_ours(self, event: QKeyEvent) -> bool:
        key = QKeySequence(event.keyCombination())
        return any(action.isEnabled() and key in action.shortcuts() for action in self._actions)


def _field(widget: QObject | None) -> QLineEdit | None:
    """Return the line edit that a widget is, or in which its text is edited."""
    if isinstance(widget, QLineEdit):
        return widget
    return widget.findChild(QLineEdit) if isinstance(widget, QWidget) else None


def _edits(field: QLineEdit, event: QKeyEvent) -> bool:
    """Return whether a key edits the text of a field on every platform."""
    if event.matches(_Key.Undo):
        return field.isUndoAvailable()
    if event.matches(_Key.Redo):
        return field.isRedoAvailable()
    return any(map(event.matches, _EDITING))
