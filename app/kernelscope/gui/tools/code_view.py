"""CUDA source to read and to write: highlighted, with line numbers and the compiler's messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPolygonF,
    QResizeEvent,
    QShowEvent,
    QSyntaxHighlighter,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QTabWidget,
    QTextEdit,
    QToolButton,
    QToolTip,
    QWidget,
)

from kernelscope.backends.trial.protocol import ERROR, CompilerMessage
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed, in_row, push_button

_KEYWORDS = (
    "alignas auto break case class const constexpr continue default do else enum explicit extern "
    "false for if inline namespace new operator private public return sizeof static static_assert "
    "struct switch template this true typedef typename union using volatile while"
)
_TYPES = (
    "bool char double float int int2 int4 long short signed size_t uchar2 uchar4 uint2 uint4 "
    r"unsigned void cudaTextureObject_t u?int(?:8|16|32|64)_t [A-Z][A-Z0-9]*[a-z][A-Za-z0-9]*"
)
"""The last one is the kernels' own: they write types, and nothing else, like ``ColumnSums``."""
_CUDA = (
    "__global__ __device__ __host__ __shared__ __constant__ __restrict__ __forceinline__ "
    r"__align__ __launch_bounds__ blockIdx blockDim gridDim threadIdx warpSize __\w+_sync "
    r"__syncthreads __syncwarp __ldg tex[123]D(?:Lod)? __v\w+ __byte_perm atomic\w+"
)
_RULES = {
    "comment": r"//.*",
    "preprocessor": r"^\s*#\s*\w+",
    "string": r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])+'",
    "cuda": rf"\b(?:{'|'.join(_CUDA.split())})\b",
    "keyword": rf"\b(?:{'|'.join(_KEYWORDS.split())})\b",
    "type": rf"\b(?:{'|'.join(_TYPES.split())})\b",
    "number": r"\b(?:0[xX][0-9a-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*\b|\B\.\d+[fF]?",
}
_TOKEN = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in _RULES.items()))
"""One pass over a line: the match that begins first wins, so that a string may contain ``//``."""

_COLOURS = {  # on a light ground, on a dark one; 4.5 : 1 or more against white, black
    "comment": ("#5a6b5a", "#9ab59a"),
    "preprocessor": ("#8a3c00", "#e5a56b"),
    "string": ("#a31515", "#e6a08c"),
    "cuda": ("#7a1fa2", "#d9a3f0"),
    "keyword": ("#0033b3", "#8ab4ff"),
    "type": ("#00627a", "#6fd0c5"),
    "number": ("#1750a0", "#b5d08f"),
}


class CudaHighlighter(QSyntaxHighlighter):
    def __init__(self, document: QTextDocument, palette: QPalette) -> None:
        super().__init__(document)
        self.formats: dict[str, QTextCharFormat] = {}
        self.set_palette(palette)

    def set_palette(self, palette: QPalette) -> None:
        dark = theme.is_dark(palette)
        for kind, colours in _COLOURS.items():
            style = self.formats[kind] = QTextCharFormat()
            style.setForeground(QColor(colours[dark]))
            style.setFontItalic(kind == "comment")
            if kind == "cuda":
                style.setFontWeight(QFont.Weight.Bold)
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        """Colour one line; state 1 is inside a ``/* */`` comment."""
        position = 0
        self.setCurrentBlockState(0)
        if self.previousBlockState() == 1:
            position = self._comment(text, 0, 0)
        while (match := _next_token(text, position)) is not None:
            if match.group().startswith("/*"):
                position = self._comment(text, match.start(), match.start() + 2)
                continue
            kind = match.lastgroup
            assert kind is not None
            self._colour(match.start(), match.end(), kind)
            position = match.end()

    def _comment(self, text: str, start: int, search: int) -> int:
        end = text.find("*/", search)
        if end < 0:
            self.setCurrentBlockState(1)
        stop = len(text) if end < 0 else end + 2
        self._colour(start, stop, "comment")
        return stop

    def _colour(self, start: int, stop: int, kind: str) -> None:
        # Qt counts UTF-16 units, of which a character beyond the basic plane has two.
        self.setFormat(start, stop - start, self.formats[kind])


_OPENING = re.compile(r"/\*")


def _next_token(text: str, position: int) -> re.Match[str] | None:
    token, opening = _TOKEN.search(text, position), _OPENING.search(text, position)
    if opening is not None and (token is None or opening.start() < token.start()):
        return opening
    return token


class CodeView(QPlainTextEdit):
    """A source file, read-only, with line numbers and one marked stretch; made when first seen."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__()
        dressed(self, f"code_{name}", f"Source of {name}")
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.fixed_font())
        self._marked = (0, 0)
        self._lines: dict[int, QColor] = {}
        self._active: tuple[bool, ...] = ()
        self.numbers = _LineNumbers(self)
        self._highlighter: CudaHighlighter | None = None
        self._text: str | None = text  # None: in the document
        self._place: tuple[int, int] | None = None
        self._is_marked = self._is_coloured = True
        self.blockCountChanged.connect(self._make_room)
        self.updateRequest.connect(self._on_update)
        self._make_room()

    def document(self) -> QTextDocument:
        document = super().document()
        if self._text is not None:
            self.setPlainText(self._text)
        return document

    def setPlainText(self, text: str) -> None:
        self._text = None
        super().setPlainText(text)

    def toPlainText(self) -> str:
        return self._text if self._text is not None else super().toPlainText()

    def show_place(self, place: tuple[int, int] | None, active: Sequence[bool] = ()) -> None:
        """Mark the lines from `place[0]` to before `place[1]`; dim those that are not `active`."""
        self._active, self._place = tuple(active), place
        self._marked = place or (0, 0)
        self._is_marked = False
        if self.isVisible():
            self._catch_up()

    def show_lines(self, lines: Mapping[int, QColor]) -> None:
        """Give single lines a ground of their own; nothing moves."""
        if lines == self._lines:
            return
        self._lines, self._is_marked = dict(lines), False
        if self.isVisible():
            self._catch_up()

    def _catch_up(self) -> None:
        """Mark, scroll and colour as was asked for while the view was hidden."""
        document = self.document()
        if not self._is_marked:
            self._is_marked = True
            self._mark(*self._marked)
        place, self._place = self._place, None
        if place is not None:
            self.setTextCursor(QTextCursor(document.findBlockByNumber(place[0])))
            self.verticalScrollBar().setValue(max(0, place[0] - 2))
        if self._highlighter is None:
            self._highlighter = CudaHighlighter(document, self.palette())
        elif not self._is_coloured:
            self._highlighter.set_palette(self.palette())
        self._is_coloured = True

    def go_to_line(self, line: int) -> None:
        """Put the cursor at a line, from 0 on, in the middle of the view."""
        self._place = None  # also of a view that has not been seen
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(line)))
        self.centerCursor()
        self.setFocus()

    def show_line(self, line: int) -> None:
        """Scroll a line, from 0 on, into view; the cursor stays where somebody types."""
        first = self.firstVisibleBlock().blockNumber()
        room = max(1, self.viewport().height() // self.fontMetrics().lineSpacing() - 1)
        if not first <= line < first + room:
            self.verticalScrollBar().setValue(line - room // 2)

    @property
    def dimmed_lines(self) -> tuple[int, ...]:
        """Numbers of the lines that are not compiled, from 0 on."""
        return tuple(line for line, active in enumerate(self._active) if not active)

    def _mark(self, start: int, stop: int) -> None:
        self._marked = (start, stop)
        colour = self.palette().color(QPalette.ColorRole.Highlight)
        colour.setAlpha(40)
        selections = [self.selection(line, colour) for line in range(start, stop)]
        selections += [self.selection(line, fill) for line, fill in self._lines.items()]
        dimmed = QTextCharFormat()
        dimmed.setForeground(theme.quiet_text(self.palette()))
        dimmed.setFontWeight(QFont.Weight.Normal)
        selections += [self.selection(line, dimmed) for line in self.dimmed_lines]
        self.setExtraSelections(selections)

    def selection(
        self, line: int, style: QColor | QTextCharFormat, span: tuple[int, int] | None = None
    ) -> QTextEdit.ExtraSelection:
        """Return a ground for all the width of a line, or a style for some of its characters."""
        block = self.document().findBlockByNumber(line)
        # LineUnderCursor would lay out each line of each file.
        start, stop = span or (0, max(0, block.length() - 1))
        cursor, selection = QTextCursor(block), QTextEdit.ExtraSelection()
        if isinstance(style, QTextCharFormat):
            selection.format = style
        else:
            selection.format.setBackground(style)
            whole = span is None
            selection.format.setProperty(QTextCharFormat.Property.FullWidthSelection, whole)
        if span is not None or isinstance(style, QTextCharFormat):
            cursor.setPosition(block.position() + start)
            cursor.setPosition(block.position() + stop, QTextCursor.MoveMode.KeepAnchor)
        selection.cursor = cursor
        return selection

    def number_width(self) -> int:
        digits = len(str(self.blockCount()))
        return self.fontMetrics().horizontalAdvance("9") * digits + 14

    def paint_numbers(self, event: QPaintEvent) -> None:
        painter = QPainter(self.numbers)
        painter.fillRect(event.rect(), self.palette().color(QPalette.ColorRole.AlternateBase))
        painter.setFont(self.font())
        painter.setPen(theme.quiet_text(self.palette()))
        for block, area in self.lines_in_view(event.rect().bottom()):
            place = QRect(0, area.top(), self.numbers.width() - 7, area.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight, str(block.blockNumber() + 1))

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

    def _make_room(self) -> None:
        self.setViewportMargins(self.number_width(), 0, 0, 0)

    def _on_update(self, area: QRect, scrolled: int) -> None:
        if scrolled:
            self.numbers.scroll(0, scrolled)
        else:
            self.numbers.update(0, area.y(), self.numbers.width(), area.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        area = self.contentsRect()
        self.numbers.setGeometry(area.left(), area.top(), self.number_width(), area.height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._catch_up()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "numbers"):
            self._make_room()
        if event.type() == QEvent.Type.PaletteChange:
            self._is_marked = self._is_coloured = False
            if self.isVisible():
                self._catch_up()


class _LineNumbers(QWidget):
    """The column left of the text."""

    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.number_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_numbers(event)


class FindBar(QWidget):
    def __init__(self) -> None:
        super().__init__()
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


class SourceTabs(QTabWidget):
    """The files of a kernel; those that a launch leaves out are in a menu at the right."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setDocumentMode(True)
        self._others = dressed(
            QToolButton(),
            "kernelOtherFiles",
            "Files left out",
            tip="Headers of which the macros of the launch leave nothing",
        )
        self._others.setAutoRaise(True)
        self._others.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._others.setMenu(QMenu(self._others))
        self._others.hide()
        self.setCornerWidget(self._others, Qt.Corner.TopRightCorner)

    def add(self, name: str, text: str) -> CodeView:
        view = CodeView(name, text)
        self.addTab(view, name)
        return view

    def empty(self) -> None:
        while self.count():
            place = self.count() - 1 if self.currentIndex() == 0 else 0
            page = self.widget(place)
            assert page is not None
            self.removeTab(place)  # never the one in view: the next would be shown, and coloured
            page.deleteLater()

    def leave_out(self, unused: Collection[int]) -> None:
        """Put the files at these places into the menu, and all others side by side."""
        for place in range(self.count()):
            self.setTabVisible(place, place not in unused)
        menu = self._others.menu()
        menu.clear()
        for place in unused:
            name = self.tabText(place)
            menu.addAction(name).triggered.connect(partial(self._show_file, name))
        self._others.setText(f"{len(unused)} left out")
        self._others.setVisible(bool(unused))

    def show_place(self, place: int) -> None:
        self.setTabVisible(place, True)
        self.setCurrentIndex(place)

    def _show_file(self, name: str) -> None:
        """Show a file, whose place may have changed since the menu was made."""
        for place in range(self.count()):
            if self.tabText(place) == name:
                self.show_place(place)
                return


_INDENT = 4
_GAP = 3  # characters between the end of a line and the message about it


class _Mark(NamedTuple):
    """A message, at a line that moves as lines are added above it."""

    cursor: QTextCursor
    message: CompilerMessage


class CodeEditor(CodeView):
    reached = Signal(object)
    """`CompilerMessage`: `next_message` or `previous_message` has gone to it."""

    def __init__(self, name: str, text: str) -> None:
        self._marks: list[_Mark] = []
        super().__init__(name, text)
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

    def go_to_message(self, way: int) -> None:
        """Go to the next message, or for -1 to the one before, from the last to the first."""
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
