"""Reads saved results of the bench while the window stays usable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from kernelscope.bench import Report, load, merge
from kernelscope.gui.work.background import Background

_TOPIC = "bench-results"

SHOWN_AFTER = 150
"""Milliseconds after which reading is shown; a state for a shorter time would only flicker."""


class ReportReader(QObject):
    """Reads reports on a thread; of several requests the latest is answered.

    `then` takes the paths and their reports, merged. `failed` takes the error of files that cannot
    be read.
    """

    slow = Signal(str)  # reading takes long enough to be shown: the names of the files
    ended = Signal()  # the latest request was answered or given up

    def __init__(
        self,
        background: Background,
        then: Callable[[list[Path], Report], None],
        failed: Callable[[Exception], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._background, self._then, self._failed = background, then, failed
        self._paths: list[Path] = []
        self._is_reading = False
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_AFTER)
        self._timer.timeout.connect(lambda: self.slow.emit(names(self._paths)))

    def read(self, paths: Sequence[Path]) -> None:
        self._paths = wanted = list(paths)
        self._is_reading = True
        self._timer.start()
        self._background.start(
            _TOPIC, lambda: merge([load(path) for path in wanted]), self._on_read, self._on_failed
        )

    def forget(self) -> bool:
        """Leave the files that are being read; return whether there were any."""
        was_reading = self._is_reading
        self._background.forget(_TOPIC)
        self._end()
        return was_reading

    def _on_read(self, report: Report) -> None:
        self._end()
        self._then(self._paths, report)

    def _on_failed(self, error: Exception) -> None:
        self._end()
        self._failed(error)

    def _end(self) -> None:
        self._is_reading = False
        self._timer.stop()
        self.ended.emit()


def names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)
