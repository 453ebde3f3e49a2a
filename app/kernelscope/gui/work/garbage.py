"""Cyclic garbage is collected on the window's thread, and nowhere else.

Python collects on whichever thread happens to allocate the object that exceeds a threshold. In
this program that is nearly always a worker, which may then destroy widgets of a closed dialog
while Qt paints them or walks through its list of windows: a crash that depends on timing alone.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

from kernelscope.base import memory

INTERVAL = 1000  # milliseconds between two looks at the number of new objects

FULL_EVERY = 30
"""Collections of young objects for each of all objects, which also returns memory to the system."""


class GarbageCollector(QObject):
    """Takes the place of Python's automatic collection while the window is open.

    Modules and the main window, about 250,000 objects, live as long as the program. They are
    set aside once: going through them would hold the window for 0.2 seconds each time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._collections = 0
        self._was_enabled = gc.isenabled()
        self._timer = QTimer(self, interval=INTERVAL)
        self._timer.timeout.connect(self.collect)

    def start(self) -> None:
        """End automatic collection; collect on this thread, which must be the window's."""
        self._was_enabled = gc.isenabled()
        gc.disable()
        gc.collect()
        gc.freeze()
        self._timer.start()

    def stop(self) -> None:
        """Return to automatic collection if it was on before."""
        self._timer.stop()
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()

    def collect(self) -> None:
        """Collect if as many objects are new as would have started Python's own collection."""
        if gc.get_count()[0] < gc.get_threshold()[0]:
            return
        self._collections += 1
        if self._collections % FULL_EVERY:
            gc.collect(1)
            return
        gc.collect()
        memory.give_back()
