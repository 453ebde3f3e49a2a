"""A bar that finds text in a source."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QTextCursor, QTextDocument
from PySide6.QtWidgets import QLabel, QLineEdit, QPlainTextEdit, QWidget

from kernelscope.gui.widgets.parts import dressed, in_row, push_button


class FindBar(QWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("findBar")
        self._editor: QPlainTextEdit | None = None
        self._text = dressed(QLineEdit(), "findText", "Find in the source")
        self._text.setPlaceholderText("Find in the source")
        self._text.setClearButtonEnabled(True)
        self._text.textChanged.connect(self._on_text)
        self._text.installEventFilter(self)
        self._count = dressed(QLabel(), "findCount")
        row = in_row((self._text, 1), self._count, of=self, margins=0)
        for name, text, tip, action in (
            ("findPrevious", "Previous", "Previous place (Shift+F3)", self.find_previous),
            ("findNext", "Next", "Next place (F3)", self.find_next),
            ("findClose", "Close", "Close the bar (Escape)", self.leave),
        ):
            button = push_button(text, name, action, tip, tip=tip)
            row.addWidget(button)
        self.hide()

    def open_for(self, editor: QPlainTextEdit) -> None:
        """Find in `editor`, beginning with the word that is selected there."""
        self._editor = editor
        chosen = editor.textCursor().selectedText()
        if chosen and "\u2029" not in chosen:
            self._text.setText(chosen)
        self.show()
        self._text.setFocus()
        self._text.selectAll()
        self._show_count()

    def find_next(self) -> None:
        self._find(QTextDocument.FindFlag(0))

    def find_previous(self) -> None:
        self._find(QTextDocument.FindFlag.FindBackward)

    def leave(self) -> None:
        self.hide()
        if self._editor is not None:
            self._editor.setFocus()

    def forget(self) -> None:
        """Close the bar: the editor is about to go."""
        self._editor = None
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape:
                self.leave()
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not (
                event.modifiers() & Qt.KeyboardModifier.ControlModifier
            ):
                back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                (self.find_previous if back else self.find_next)()
                return True
        return super().eventFilter(watched, event)

    def _on_text(self) -> None:
        if self._editor is None:
            return
        cursor = self._editor.textCursor()
        cursor.setPosition(cursor.selectionStart())
        self._editor.setTextCursor(cursor)
        self.find_next()
        self._show_count()

    def _find(self, flags: QTextDocument.FindFlag) -> None:
        editor, text = self._editor, self._text.text()
        if editor is None or not text or editor.find(text, flags):
            return
        before = editor.textCursor()
        back = flags & QTextDocument.FindFlag.FindBackward
        end = QTextCursor.MoveOperation.End if back else QTextCursor.MoveOperation.Start
        editor.moveCursor(end)
        if not editor.find(text, flags):
            editor.setTextCursor(before)

    def _show_count(self) -> None:
        if self._editor is None:
            return
        text = self._text.text()
        found = self._editor.toPlainText().casefold().count(text.casefold()) if text else 0
        self._count.setText("" if not text else f"{found:,} found" if found else "not found")
