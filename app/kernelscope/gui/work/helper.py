"""A second process of the program that takes lines and answers with lines."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

_logger = logging.getLogger(__name__)


class Helper(QObject):
    """Runs ``python -m module``, which reads lines until its input ends, one process at a time."""

    answered = Signal(str)  # a line of its output
    ended = Signal()  # it has answered all it will; another one may start

    def __init__(self, module: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._module = module
        self._process: QProcess | None = None

    @property
    def busy(self) -> bool:
        return self._process is not None

    def start(self, lines: Iterable[str]) -> None:
        """Give the lines to a new process; only while none is at work."""
        assert self._process is None
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        process = self._process = QProcess(self)
        process.setProcessEnvironment(environment)
        process.readyReadStandardOutput.connect(self._on_output)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        process.start(sys.executable, ["-m", self._module])
        process.write("".join(f"{line}\n" for line in lines).encode())
        process.closeWriteChannel()

    def close(self) -> None:
        """End the process, if one is at work, without an answer."""
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(1000)
            process.deleteLater()

    def _on_output(self) -> None:
        process = self._process
        while process is not None and process.canReadLine():
            self.answered.emit(bytes(process.readLine().data()).decode().strip())
            process = self._process  # an answer may have closed it

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:  # then it does not finish either
            self._end()

    def _on_finished(self, code: int) -> None:
        self._on_output()
        self._end(code)

    def _end(self, code: int = 0) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if code:
            problem = bytes(process.readAllStandardError().data()).decode(errors="replace")
            _logger.warning("%s failed: %s", self._module, problem.strip())
        process.deleteLater()
        self.ended.emit()
