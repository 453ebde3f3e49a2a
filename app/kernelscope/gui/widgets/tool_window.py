"""The base of tools' windows: name, title, help, size, and an end to their work."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QDialog, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from kernelscope.base.errors import AppError
from kernelscope.gui.widgets.messages import show_error
from kernelscope.gui.widgets.parts import RIGHT, dressed, set_help

_FRAME = QSize(16, 48)  # of a window, which Qt does not know before it is shown

_SHARE = 0.85  # of a large screen that a window may take, each way


class ToolWindow(QDialog):
    """A window of its own that does not block the main window; F1 opens its page of the manual."""

    def __init__(
        self,
        name: str,
        title: str,
        parent: QWidget | None,
        *,
        help_page: str = "",
        flags: Qt.WindowType = Qt.WindowType.Dialog,
    ) -> None:
        super().__init__(parent, flags)
        self.setObjectName(name)
        self.setWindowTitle(title)
        if help_page:
            set_help(self, help_page)
        self.finished.connect(self.leave)  # also by Esc, which sends no close event

    def leave(self) -> None:
        """Stop the work of the window, which is closed."""

    def show_in_front(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()

    def take_size(self, width: int, height: int) -> None:
        """Open in this size, or as much of it as the screen lets the main window be seen beside."""
        screen = self.screen().availableSize()
        most = QSize(1280, 720).expandedTo(screen * _SHARE).boundedTo(screen)
        self.resize(QSize(width, height).boundedTo(most - _FRAME))

    def take_room(self, characters: int, lines: int, most: QSize) -> None:
        """Take room for text of this size, at most this many pixels; see `take_size`."""
        metrics = self.fontMetrics()
        wanted = QSize(characters * metrics.averageCharWidth(), lines * metrics.height())
        wanted = wanted.boundedTo(most)
        self.take_size(wanted.width(), wanted.height())

    def report(self, error: Exception) -> None:
        """Show a failure that the user can put right; anything else is a bug."""
        if not isinstance(error, AppError):
            raise error
        show_error(self, error)


class FigureTable(QTableWidget):
    """Rows of figures under a head, right-aligned but for their names; a single cell is a title."""

    def __init__(self, name: str, accessible: str) -> None:
        super().__init__(0, 0)
        dressed(self, name, accessible)
        self.verticalHeader().hide()
        self._space_rows()
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)

    def _space_rows(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._space_rows()

    def minimumSizeHint(self) -> QSize:
        """Return a width in which no column is cut."""
        header, bar = self.horizontalHeader(), self.verticalScrollBar().sizeHint().width()
        columns = sum(
            max(self.sizeHintForColumn(number), header.sectionSizeHint(number))
            for number in range(self.columnCount())
        )
        return QSize(columns + bar + 2 * self.frameWidth(), super().minimumSizeHint().height())

    def fill(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], strong: Sequence[str] = ()
    ) -> None:
        """Show these rows; titles, and rows with a name in `strong`, are bold."""
        self.clearSpans()
        self.setRowCount(len(rows))
        self.setColumnCount(len(head))
        self.setHorizontalHeaderLabels(list(head))
        for number, row in enumerate(rows):
            is_title = len(row) == 1 and len(head) > 1
            if is_title:
                self.setSpan(number, 0, 1, len(head))
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                font = item.font()
                font.setBold(is_title or row[0] in strong)
                item.setFont(font)
                if column:
                    item.setTextAlignment(RIGHT)
                self.setItem(number, column, item)
        self.updateGeometry()
