"""The manual inside the program: the pages of the site, by section, with a search over all.

Titles are on the left, the page on the right. Links between pages and to headings are followed
here; Qt's Markdown has no anchors, so a heading is found by its text.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QPushButton,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.gui.tools.handbook_view import PICTURE_WIDTH, PageView
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import dressed, in_column, in_row
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.teach import handbook, manual

_NAMES = [name for names in handbook.SECTIONS.values() for name in names]


class ManualWindow(ToolWindow):
    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__("manualWindow", "Manual", parent, help_page="window#help")
        self.page = _NAMES[0]  # name of the page that is shown
        self._titles = dressed(QTreeWidget(), "manualPages", "Pages of the manual")
        self._titles.setHeaderHidden(True)
        self._titles.setRootIsDecorated(False)
        self._items = self._list_pages()
        self._view = dressed(PageView(background), "manualPage", "Page of the manual")
        self._view.setOpenLinks(False)
        self._view.anchorClicked.connect(self.follow)
        self._wanted = dressed(
            QLineEdit(),
            "manualSearch",
            "Search all pages",
            tip="Enter finds the next place, on this page or a later one",
        )
        self._wanted.setPlaceholderText("Search all pages")
        self._wanted.setClearButtonEnabled(True)
        self._wanted.returnPressed.connect(self.find_next)
        self._note = dressed(QLabel(), "manualNote")
        self._note.setTextFormat(Qt.TextFormat.PlainText)

        parts = QSplitter()
        parts.addWidget(self._titles)
        parts.addWidget(self._view)
        parts.setStretchFactor(1, 1)
        parts.setSizes([230, PICTURE_WIDTH + 60])
        buttons = close_box(self)
        for button in buttons.findChildren(QPushButton):
            button.setAutoDefault(False)  # Enter searches
        below = in_row((self._wanted, 1), self._note, buttons)
        in_column((parts, 1), below, of=self)
        self.take_size(1160, 720)
        self._titles.currentItemChanged.connect(self._show_item)
        self._titles.setCurrentItem(self._items[_NAMES[0]])

    def _list_pages(self) -> dict[str, QTreeWidgetItem]:
        items = {}
        for section, names in handbook.SECTIONS.items():
            head = QTreeWidgetItem(self._titles, [section])
            head.setFlags(Qt.ItemFlag.ItemIsEnabled)
            font = head.font(0)
            font.setBold(True)
            head.setFont(0, font)
            for name in names:
                items[name] = QTreeWidgetItem(head, [handbook.title(name)])
                items[name].setData(0, Qt.ItemDataRole.UserRole, name)
            head.setExpanded(True)
        return items

    def open_page(self, name: str, anchor: str = "") -> None:
        self._titles.setCurrentItem(self._items[name])
        if not anchor or not self._view.go_to_heading(anchor):
            self._view.moveCursor(QTextCursor.MoveOperation.Start)

    def follow(self, url: QUrl) -> None:
        if url.scheme():
            QDesktopServices.openUrl(url)
            return
        path = Path(posixpath.normpath(url.path() or f"{self.page}.md"))
        if path.suffix == ".md" and path.stem in self._items and path.parent == Path():
            self.open_page(path.stem, url.fragment())
            return
        target = (manual.FOLDER / path).resolve()
        if target.exists():
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(target)))
        else:
            self._note.setText(f"{path.name} is in the source tree and was not installed.")

    def find_next(self) -> None:
        """Select the next place of the text that is searched, on this page or a later one."""
        wanted = self._wanted.text()
        self._note.setText("")
        if not wanted or self._view.find(wanted):
            return
        start = self.page
        first = _NAMES.index(start) + 1
        for name in (*_NAMES[first:], *_NAMES[:first]):
            if wanted.casefold() in handbook.page(name, computed=False).casefold():
                self._titles.setCurrentItem(self._items[name])
                self._view.moveCursor(QTextCursor.MoveOperation.Start)
                if self._view.find(wanted):
                    return
        self._titles.setCurrentItem(self._items[start])
        self._note.setText("No page has this text.")

    def _show_item(self, item: QTreeWidgetItem | None) -> None:
        name = item.data(0, Qt.ItemDataRole.UserRole) if item is not None else None
        if name:  # the title of a section has no page: the one that is shown stays
            self.page = name
            self._note.setText("")
            self._view.show_page(name)
