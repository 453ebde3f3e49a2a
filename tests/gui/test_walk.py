"""A live change of a parameter, from the signal of its editor to the paint: the files on the way.

The walk in *Architecture* is what calls what: the stacks of calls at the four places where the
change is handed over, to the worker, to the backend, to the canvas and to the screen. The modules
of the window and of the engine in them are counted. Not counted are functions that a module of the
walk calls and that return to it: values, checks, and the followers that are told of the output.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

import kernelscope
from kernelscope.gui.widgets.controls import WholeBox
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child, load

MOST_FILES = 15

HANDED_OVER = {
    ("engine/worker.py", "submit"),
    ("backends/cpu.py", "run"),
    ("gui/viewer/plane_canvas.py", "redraw"),
    ("gui/viewer/layer.py", "paint"),
}
"""The last call of each stack, which the walk has."""

SIGNAL = ("gui/widgets/form.py", "_on_changed")
"""Where the walk begins."""

_FOLDER = Path(kernelscope.__file__).parent


class Walk:
    """Notes the modules in the stacks at the places of `HANDED_OVER`, while `on`."""

    def __init__(self) -> None:
        self.on = False
        self.files: dict[str, None] = {}
        self.places: set[tuple[str, str]] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.on:
            return
        place = (_name(frame), frame.f_code.co_name)
        if place not in HANDED_OVER:
            return
        self.places.add(place)
        stack: list[str] = []
        caller: FrameType | None = frame
        while caller is not None:
            if caller.f_code.co_name == "use_compiled":
                return  # code has become ready meanwhile, which no change asked for
            stack.append(_name(caller))
            at_signal = (stack[-1], caller.f_code.co_name) == SIGNAL
            caller = None if at_signal else caller.f_back
        self.files.update(dict.fromkeys(reversed(stack)))

    @property
    def counted(self) -> list[str]:
        return [name for name in self.files if name.startswith(("gui/", "engine/"))]


def _name(frame: FrameType) -> str:
    path = frame.f_code.co_filename
    inside = path.startswith(f"{_FOLDER}/")
    return Path(path).relative_to(_FOLDER).as_posix() if inside else ""


@pytest.fixture
def walk() -> Iterator[Walk]:
    """Yield a walk that follows this thread and those that begin."""
    made, before = Walk(), sys.getprofile()
    note: Any = made.note
    threading.setprofile(note)
    sys.setprofile(note)
    yield made
    sys.setprofile(before)
    threading.setprofile(None)


@pytest.mark.slow
def test_a_live_change_is_followed_in_few_files(
    walk: Walk, qtbot: QtBot, real_window: MainWindow, picture: Path
) -> None:
    window = real_window
    load(qtbot, window, picture)
    window.session.set_filter("mean")
    box = child(window, WholeBox, "sizeBox")

    def is_shown() -> bool:
        result = window.session.subject.result
        same = result is not None and result.request.step == window.session.require().step
        return same and result is not None and not result.uncompiled

    for size in (5, 7):  # the first ones load code, and learn what a run costs
        walk.on = size == 7
        box.setValue(size)
        qtbot.waitUntil(lambda: is_shown() and window.live.resting)
    window.pictures.canvas.output.views[0].repaint()
    walk.on = False
    assert walk.places == HANDED_OVER
    assert len(walk.counted) <= MOST_FILES, "\n".join(walk.counted)
