"""The console: log of the program's steps, their times, and errors."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

from PySide6.QtCore import QCoreApplication, QEvent, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QGuiApplication,
    QPalette,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QWidget

from kernelscope.base.text import PrintableFormatter
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.messages import save_text
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, push_button
from kernelscope.gui.work.background import Relay

MAX_LINES = 10_000

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


class ConsoleHandler(logging.Handler):
    """Hands the level and text of log records from any thread to a slot on the GUI thread."""

    def __init__(self, slot: Callable[[tuple[int, str]], None]) -> None:
        super().__init__()
        self._relay = Relay(slot)
        self.setFormatter(
            PrintableFormatter(
                "%(asctime)s.%(msecs)03d  %(levelname)-7s  %(message)s", datefmt="%H:%M:%S"
            )
        )

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
        else:
            self._relay.send((record.levelno, text))

    def close(self) -> None:
        self._relay.close()
        super().close()


class Console(QWidget):
    """Shows the records of the logger ``kernelscope`` as they come, also while it is hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("console")
        self._lines: deque[tuple[int, str]] = deque(maxlen=MAX_LINES)
        self._level = logging.DEBUG
        self._build()

        handler = ConsoleHandler(self._append)
        logger = logging.getLogger("kernelscope")
        logger_level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)

        def detach() -> None:
            if handler in logger.handlers:
                logger.removeHandler(handler)
                logger.setLevel(logger_level)
                handler.close()

        self._detach = detach
        self.destroyed.connect(detach)

    def _build(self) -> None:
        levels = ((logging.getLevelName(each).capitalize(), each) for each in _LEVELS)
        tip = "Show messages of this level and above."
        level = choice_box("consoleLevel", "Least level shown", levels, tip=tip)
        level.currentIndexChanged.connect(lambda: self._filter(level.currentData()))
        label = dressed(QLabel("&Show from"), "consoleLevelLabel")
        label.setBuddy(level)

        self._view = dressed(QPlainTextEdit(), "consoleText", "Log")
        self._view.setReadOnly(True)
        self._view.setTabChangesFocus(True)
        self._view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._view.setFont(theme.fixed_font())
        self._view.setMaximumBlockCount(MAX_LINES)
        self._view.setPlaceholderText("The log is empty.")

        buttons = (
            push_button("Copy all", "consoleCopy", self.copy, "Copy all lines shown"),
            push_button("Save…", "consoleSave", self.save, "Save all lines shown to a file"),
            push_button("Clear", "consoleClear", self.clear, "Forget all lines"),
        )
        for button in buttons:
            button.setToolTip(button.accessibleName())
        in_column(in_row(label, level, 1, *buttons), (self._view, 1), of=self)
        stylist().restyled.connect(self._show_all)

    def text(self) -> str:
        """Return every line kept, whatever level is shown, for a report."""
        # Records that were logged a moment ago are still on their way.
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall)
        return "\n".join(line for _, line in self._lines)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self._view.toPlainText())

    def save(self) -> None:
        save_text(self, "Save the log", "kernelscope-log.txt", self._view.toPlainText() + "\n")

    def clear(self) -> None:
        self._lines.clear()
        self._view.clear()

    @Slot(object)
    def _append(self, record: tuple[int, str]) -> None:
        level, text = record
        bar = self._view.verticalScrollBar()
        follow = bar.value() == bar.maximum()
        lines = [(level, line) for line in text.splitlines()]
        self._lines.extend(lines)
        self._show(lines)
        if follow:
            bar.setValue(bar.maximum())

    def _show(self, lines: Iterable[tuple[int, str]]) -> None:
        cursor = QTextCursor(self._view.document())
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.End)
        style = QTextCharFormat()
        for level, line in lines:
            if level >= self._level:
                if not cursor.atStart():
                    cursor.insertBlock()
                style.setForeground(self._colour(level))
                cursor.insertText(line, style)
        cursor.endEditBlock()

    def _colour(self, level: int) -> QColor:
        palette = self.palette()
        if level >= logging.ERROR:
            return theme.error_text(palette)
        if level >= logging.WARNING:
            return theme.warning_text(palette)
        if level >= logging.INFO:
            return palette.color(QPalette.ColorRole.Text)
        return theme.quiet_text(palette)

    def _filter(self, level: int) -> None:
        self._level = level
        self._show_all()

    def _show_all(self) -> None:
        self._view.clear()
        self._show(self._lines)
        bar = self._view.verticalScrollBar()
        bar.setValue(bar.maximum())

    def closeEvent(self, event: QCloseEvent) -> None:
        self._detach()
        super().closeEvent(event)
