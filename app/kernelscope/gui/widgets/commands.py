"""The commands of the window: each is declared at the method that carries it out, by `Action`.

Title, key, condition, tick, icon and page of the manual stand together there; the docstring of the
method is the tip. `gui.window.menus`
orders them by their ids; the menus, the tool bar, the command palette and the list of shortcuts
read the same declarations. Nothing here needs Qt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kernelscope.base.once import once

_Method = TypeVar("_Method", bound=Callable[..., object])


@dataclass(frozen=True)
class WindowState:
    """The facts about the window on which it depends which actions are enabled."""

    source: bool = False  # a picture or a volume is open
    volumes: bool = False  # volumes are shown, not a picture
    scale: bool = False  # the size of their pixels is known
    deep: bool = False  # they have several slices
    of_volumes: bool = False  # the filter in front works on volumes, not on pictures
    output: bool = False
    members: int = 0  # number of components, or of volumes in a file, to step through
    other: bool = False  # a picture is open behind the volumes, or volumes behind the picture
    pictures: int = 0  # number of open pictures
    earlier: bool = False  # files were open in the session before
    closed: int = 0  # number of closed pictures that can be opened again
    busy: bool = False  # a run is in progress
    reference: bool = False  # the picture in front has one
    difference: bool = False  # a residual or a difference is shown that can be saved
    plain: bool = False  # levels, times and lessons are hidden
    runs: int = 0  # number of runs in the list
    chosen: int = 0  # number of those that are chosen
    kept: bool = False  # the pictures of all chosen runs are in memory
    baseline: bool = False  # the level of the selected run may become the baseline of others
    steps: int = 0  # number of steps to the output, those that are off included
    later: bool = False  # steps follow the one that is edited
    regions: int = 0  # number of regions in the picture
    region: bool = False  # one of them is selected
    area: bool = False  # filters of pictures can be limited to one, or are
    undo: str = ""  # name of the step that Undo would take back; empty if there is none
    redo: str = ""


@dataclass(frozen=True)
class Need:
    """A condition under which an action is enabled, and the sentence to show if it is not met."""

    met: Callable[[WindowState], bool]
    why: str


NOTHING = Need(lambda state: True, "")
NEVER = Need(lambda state: False, "")
SOURCE = Need(lambda state: state.source, "Open a picture or a volume first.")
PIXELS = Need(
    lambda state: state.source and not state.of_volumes,
    "Open a picture or a volume first, and choose a filter of pictures. The command "
    "“kernelscope trace” counts the reads and writes of filters of volumes too.",
)
OUTPUT = Need(lambda state: state.output, "There is no output yet: run a filter first.")
REFERENCE = Need(
    lambda state: state.reference,
    "There is no reference: Edit > Reference > Choose Reference sets one.",
)
DIFFERENCE = Need(lambda state: state.difference, "Show the residual or the difference first.")
PICTURE = Need(lambda state: state.source and not state.volumes, "Open a picture first.")
VOLUMES = Need(lambda state: state.volumes, "Open a volume first.")
SCALE = Need(
    lambda state: state.volumes or state.scale,
    "Open a volume first, or a picture whose file states the size of its pixels.",
)
DEEP = Need(lambda state: state.volumes and state.deep, "Open a volume of several slices first.")
MEMBERS = Need(
    lambda state: state.volumes and state.members > 1,
    "There is one volume only: open several together, or a file of several volumes.",
)
OTHER = Need(lambda state: state.other, "Open both a picture and a volume first.")
SEVERAL = Need(lambda state: state.pictures > 1, "Only one picture is open.")
EARLIER = Need(lambda state: state.earlier, "No file was open in the session before.")
CLOSED = Need(lambda state: state.closed > 0, "No picture was closed.")
BUSY = Need(lambda state: state.busy, "No run is in progress.")
RUNS = Need(lambda state: state.runs > 0, "There is no run yet: press Run (F5).")
TIMED_RUNS = Need(lambda state: state.runs > 0 and not state.plain, RUNS.why)
REGIONS = Need(lambda state: state.regions > 0, "Draw a region first (Ctrl+Alt+R).")
REGION = Need(lambda state: state.region, "Draw a region first (Ctrl+Alt+R), or click on one.")
AREA = Need(
    lambda state: state.area, "Draw a region into a picture first (Ctrl+Alt+R), or click on one."
)
CHOSEN = Need(lambda state: state.chosen > 0, "Select a run in the panel Runs first.")
KEPT = Need(
    lambda state: state.chosen > 0 and state.kept,
    "Select a run in the panel Runs first, one whose picture is still in memory.",
)
PAIR = Need(
    lambda state: state.chosen == 2 and state.kept,
    "Select two runs in the panel Runs first, whose pictures are still in memory.",
)
BASELINE = Need(
    lambda state: state.baseline,
    "Choose a run first whose work was also done at another level or on another device.",
)
STEPS = Need(
    lambda state: state.steps > 1,
    "There is only one step: Use Output as Input (Ctrl+U) adds another.",
)
LATER_STEPS = Need(lambda state: state.later, "No step follows the one that is edited.")
UNDO = Need(lambda state: bool(state.undo), "There is nothing to undo.")
REDO = Need(lambda state: bool(state.redo), "There is nothing to redo.")


declared: dict[str, Action] = {}
"""The actions by their ids, those of all modules that have been imported."""


@dataclass(frozen=True)
class Action:
    """Something that the user can ask for, declared at the method that carries it out."""

    id: str  # object name of the `QAction`; unique
    title: str  # text in menus, with ``&`` before the access key
    keys: str = ""  # shortcuts, divided by spaces; the first is shown
    tip: str = ""  # without the shortcut, which is added; by default the method's docstring
    need: Need = NOTHING
    argument: object = None  # passed to the method, unless it is None
    choice: str = ""  # of the actions with the same choice one is ticked at a time
    ticked: Callable[[Any], object] | None = None
    """Of the object with the method: whether the action is on, or the argument that is chosen, or
    those that are."""
    icon: str = ""  # icon of the button in a tool bar, and its short text
    label: str = ""
    everywhere: bool = False  # the shortcut works in every window of the program
    synonyms: tuple[str, ...] = ()  # other names by which the command palette finds it
    help: str = ""  # page of the manual, or ``page#heading``; without one, that of the menu counts

    def __call__(self, method: _Method) -> _Method:
        """Mark the method that carries it out (decorator); one method may have several."""
        text = " ".join((method.__doc__ or "").partition("\n\n")[0].split())
        action = replace(self, tip=self.tip or text.removesuffix("."))
        vars(method).setdefault("actions", []).insert(0, action)
        declared[self.id] = action
        return method

    @property
    def shortcuts(self) -> list[str]:
        return self.keys.split()

    @property
    def is_checkable(self) -> bool:
        return bool(self.choice) or self.ticked is not None

    @property
    def name(self) -> str:
        """The title without access key and dots."""
        return plain(self.title)

    def is_on(self, owner: object) -> bool:
        found = self.ticked(owner) if self.ticked is not None else False
        if isinstance(found, frozenset):
            return self.argument in found
        return bool(found) if self.argument is None else found == self.argument


def choice(
    name: str, ticked: Callable[[Any], object], need: Need, *actions: Action
) -> Callable[[_Method], _Method]:
    """Declare actions of which one is ticked; `need`: of those that have none of their own."""

    def mark(method: _Method) -> _Method:
        for each in reversed(actions):
            own = need if each.need is NOTHING else each.need
            replace(each, choice=name, ticked=ticked, need=own)(method)
        return method

    return mark


@once
def declared_by(kind: type) -> tuple[tuple[str, Action], ...]:
    return tuple(
        (name, each)
        for base in kind.__mro__
        for name, member in vars(base).items()
        for each in (getattr(member, "actions", ()) if callable(member) else ())
    )


def plain(title: str) -> str:
    return title.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
