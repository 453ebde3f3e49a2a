"""Cyclic garbage is collected on the window's thread only."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.garbage import FULL_EVERY, GarbageCollector
from tests.gui.helpers import FakeCpu, open_panels


class Knot:
    """An object that only a collection destroys, and that remembers where that happened."""

    def __init__(self, places: list[threading.Thread]) -> None:
        self._itself = self
        self._places = places

    def __del__(self) -> None:
        self._places.append(threading.current_thread())


def make_garbage(places: list[threading.Thread], count: int = 5000) -> None:
    """Make many more cycles than Python takes before it collects."""
    for _ in range(count):
        Knot(places)


@pytest.fixture(autouse=True, scope="module")
def only_new_objects_are_looked_at() -> Iterator[None]:
    """Leave out objects of other tests: to look through them takes half a second each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def collector(qapp: object) -> Iterator[GarbageCollector]:
    gc.enable()
    made = GarbageCollector()
    made.start()
    yield made
    made.stop()
    gc.disable()  # as for all tests


def test_without_it_threads_collect(qapp: object) -> None:
    places: list[threading.Thread] = []
    gc.enable()
    try:
        thread = threading.Thread(target=make_garbage, args=(places,))
        thread.start()
        thread.join()
    finally:
        gc.disable()
    assert thread in places


@pytest.mark.slow
def test_threads_do_not_collect(qtbot: QtBot, collector: GarbageCollector) -> None:
    places: list[threading.Thread] = []
    thread = threading.Thread(target=make_garbage, args=(places,))
    thread.start()
    thread.join()
    assert places == []
    qtbot.waitUntil(lambda: len(places) == 5000)
    assert set(places) == {threading.main_thread()}


def test_few_objects_are_left_alone(collector: GarbageCollector) -> None:
    gc.collect()
    places: list[threading.Thread] = []
    make_garbage(places, 3)
    collector.collect()
    assert places == []


@pytest.mark.slow
def test_old_objects_are_collected_in_time(collector: GarbageCollector) -> None:
    places: list[threading.Thread] = []
    old = Knot(places)
    gone = weakref.ref(old)
    gc.collect()
    del old
    for _ in range(FULL_EVERY):
        make_garbage([])
        collector.collect()
    assert gone() is None


@pytest.mark.slow
def test_the_end_restores_automatic_collection(qapp: object) -> None:
    gc.enable()
    try:
        made = GarbageCollector()
        made.start()
        assert not gc.isenabled()
        made.stop()
        assert gc.isenabled()
        gc.disable()
        made.start()
        made.stop()
        assert not gc.isenabled()
    finally:
        gc.disable()


def test_no_filter_of_events_gets_a_widget_that_is_half_destroyed(
    qtbot: QtBot, cpu: FakeCpu, store: Path, opens_slowly: None
) -> None:
    """Destructors send events, to a `QMenu` that is no more than a `QWidget` by then."""
    window = MainWindow({"cpu": cpu}, Settings(store))
    window.show()
    qtbot.waitExposed(window)
    open_panels(window)
    QApplication.processEvents()
    half = list[QEvent.Type]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        watched = frame.f_locals.get("watched")
        if event == "call" and frame.f_code.co_name == "eventFilter" and type(watched) is QWidget:
            half.append(frame.f_locals["event"].type())

    window.close()
    window.deleteLater()
    sys.setprofile(note)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    sys.setprofile(None)
    assert not isValid(window)
    assert half == []
