"""CUDA source to write: line numbers, indenting, and the compiler's messages at their lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPolygonF,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QTextEdit, QToolTip, QWidget

from kernelscope.backends.trial.protocol import ERROR, CompilerMessage
from kernelscope.gui.tools.code_view import CodeView
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed

_INDENT = 4
_GAP = 3  # characters between the end of a line and the message about it


class _Mark(NamedTuple):
    """A message, at a line that moves as lines are added above it."""

    cursor: QTextCursor
    message: CompilerMessage


class CodeEditor(CodeView):
    reached = Signal(object)
    """`CompilerMessage`: `next_message` or `previous_message` has gone to it."""

    def __init__(self, name: str, text: str, parent: QWidget | None = None) -> None:
        self._marks: list[_Mark] = []
        super().__init__(name, text, parent)
        self.document()  # later its text would look like one that the user typed
        dressed(self, "kernelEditor", f"Your version of {name}")
        self.setAccessibleDescription(
            "Tab indents; F6 leaves the editor; Ctrl+Return compiles; F8 goes to the next message"
        )
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextEditorInteraction)
        self.setReadOnly(False)
        self.setTabChangesFocus(False)
        self.setUndoRedoEnabled(True)
        self.setCursorWidth(max(2, self.fontMetrics().averageCharWidth() // 5))

    # --- messages ---

    @property
    def messages(self) -> list[tuple[int, CompilerMessage]]:
        return [(mark.cursor.blockNumber(), mark.message) for mark in self._marks]

    def show_messages(self, messages: Sequence[CompilerMessage]) -> None:
        self._marks = []
        for message in messages:
            block = self.document().findBlockByNumber(message.line - 1)
            if not block.isValid():
                continue
            cursor = QTextCursor(block)
            if 1 < message.column <= block.length():
                cursor.setPosition(block.position() + message.column - 1)
            self._marks.append(_Mark(cursor, message))
        self._marks.sort(key=lambda mark: mark.cursor.position())
        self._mark(*self._marked)
        self.viewport().update()
        self.numbers.update()

    def next_message(self) -> None:
        self._go(1)

    def previous_message(self) -> None:
        self._go(-1)

    def _go(self, way: int) -> None:
        here = self.textCursor().position()
        beyond = [each for each in self._marks if way * (each.cursor.position() - here) > 0]
        ordered = beyond or self._marks
        if ordered:
            self.go_to(ordered[0 if way > 0 else -1].message)

    def go_to(self, message: CompilerMessage) -> None:
        for mark in self._marks:
            if mark.message == message:
                self.setTextCursor(QTextCursor(mark.cursor))
                self.centerCursor()
                self.setFocus()
                self.reached.emit(message)

    def messages_at(self, line: int) -> list[CompilerMessage]:
        found = [message for where, message in self.messages if where == line]
        return sorted(found, key=lambda each: each.kind != ERROR)

    # --- the text that is compiled ---

    def show_active(self, active: Sequence[bool]) -> None:
        """Dim the lines that are not compiled; the cursor and the view stay."""
        self._active = tuple(active)
        self._mark(*self._marked)

    def _mark(self, start: int, stop: int) -> None:
        super()._mark(start, stop)
        selections = list(self.extraSelections())
        for mark in self._marks:
            selection = QTextEdit.ExtraSelection()
            selection.format.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
            selection.format.setUnderlineColor(self._colour(mark.message))
            selection.cursor = QTextCursor(mark.cursor)
            if mark.message.column > 1:
                selection.cursor.movePosition(
                    QTextCursor.MoveOperation.EndOfWord, QTextCursor.MoveMode.KeepAnchor
                )
            if not selection.cursor.hasSelection():
                selection.cursor.select(QTextCursor.SelectionType.LineUnderCursor)
            selections.append(selection)
        self.setExtraSelections(selections)

    def _colour(self, message: CompilerMessage) -> QColor:
        colour = theme.error_text if message.kind == ERROR else theme.warning_text
        return colour(self.palette())

    # --- painting ---

    def number_width(self) -> int:
        return super().number_width() + self.fontMetrics().height()

    def paint_numbers(self, event: QPaintEvent) -> None:
        super().paint_numbers(event)
        painter = QPainter(self.numbers)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        side = 0.62 * self.fontMetrics().height()
        for block, area in self.lines_in_view(event.rect().bottom()):
            found = self.messages_at(block.blockNumber())
            if not found:
                continue
            place = QRectF(4, area.center().y() - side / 2, side, side)
            painter.setBrush(self._colour(found[0]))
            if found[0].kind == ERROR:
                painter.drawEllipse(place)
                self._draw_cross(painter, place)
            else:
                top = QPointF(place.center().x(), place.top())
                painter.drawPolygon(QPolygonF([top, place.bottomRight(), place.bottomLeft()]))

    def _draw_cross(self, painter: QPainter, place: QRectF) -> None:
        painter.setPen(self.palette().color(QPalette.ColorRole.Base))
        inner = place.adjusted(*(sign * 0.3 * place.width() for sign in (1, 1, -1, -1)))
        painter.drawLine(inner.topLeft(), inner.bottomRight())
        painter.drawLine(inner.topRight(), inner.bottomLeft())
        painter.setPen(Qt.PenStyle.NoPen)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._marks:
            return
        painter = QPainter(self.viewport())
        font = self.font()
        font.setItalic(True)
        painter.setFont(font)
        metrics = painter.fontMetrics()
        for block, area in self.lines_in_view(event.rect().bottom()):
            found = self.messages_at(block.blockNumber())
            if not found:
                continue
            more = f" (+{len(found) - 1})" if len(found) > 1 else ""
            text = f"{found[0].kind}: {found[0].text}{more}"
            left = round(area.left() + metrics.horizontalAdvance(block.text() + " " * _GAP))
            room = QRect(left, round(area.top()), self.viewport().width() - left, area.height())
            painter.setPen(self._colour(found[0]))
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, shown)

    def lines_in_view(self, bottom: int) -> list[tuple[QTextBlock, QRect]]:
        found = []
        block = self.firstVisibleBlock()
        while block.isValid():
            area = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if area.top() > bottom:
                break
            found.append((block, area.toRect()))
            block = block.next()
        return found

    # --- keys and the pointer ---

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, plain = event.key(), event.modifiers() == Qt.KeyboardModifier.NoModifier
        if key == Qt.Key.Key_Tab and plain:
            self._indent(1)
        elif key == Qt.Key.Key_Backtab:
            self._indent(-1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and (
            plain or event.modifiers() == Qt.KeyboardModifier.KeypadModifier
        ):
            self._break_line()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Show the whole of the messages of the line under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            point = self.viewport().mapFromGlobal(event.globalPos())
            line = self.cursorForPosition(point).blockNumber()
            text = "\n".join(f"{each.kind}: {each.text}" for each in self.messages_at(line))
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def _indent(self, way: int) -> None:
        cursor = self.textCursor()
        if way > 0 and not cursor.hasSelection():
            cursor.insertText(" " * (_INDENT - cursor.positionInBlock() % _INDENT))
            return
        document = self.document()
        first = document.findBlock(cursor.selectionStart())
        last = document.findBlock(max(cursor.selectionStart(), cursor.selectionEnd() - 1))
        cursor.beginEditBlock()
        for number in range(first.blockNumber(), last.blockNumber() + 1):
            block = document.findBlockByNumber(number)
            start = QTextCursor(block)
            if way > 0:
                start.insertText(" " * _INDENT)
                continue
            text = block.text()
            for _ in range(min(_INDENT, len(text) - len(text.lstrip(" ")))):
                start.deleteChar()
        cursor.endEditBlock()

    def _break_line(self) -> None:
        """Begin a line as deep as this one, deeper behind an opening brace."""
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        depth = len(before) - len(before.lstrip(" "))
        if before.rstrip().endswith("{"):
            depth += _INDENT
        cursor.insertText("\n" + " " * depth)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()
