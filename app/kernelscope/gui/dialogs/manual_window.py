"""The manual inside the program: the pages of the site, by title, with a search over all.

Titles are on the left, the page on the right. Links between pages and to headings are followed
here; Qt's Markdown has no anchors, so a heading is found by its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSplitter,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from kernelscope import manual
from kernelscope.gui.widgets.messages import close_box

_NAMES = [name for names in manual.SECTIONS.values() for name in names]
_PICTURE_WIDTH = 860
"""Pixels; wider pictures would make every page scroll sideways."""


class PageView(QTextBrowser):
    """Shows a page of Markdown, with its pictures as wide as the text at most."""

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Return the picture that a page names; nothing else is loaded."""
        if kind != QTextDocument.ResourceType.ImageResource.value:
            return None
        picture = QImage(str(manual.FOLDER / QUrl(name).path()))
        if picture.width() > _PICTURE_WIDTH:
            smooth = Qt.TransformationMode.SmoothTransformation
            return picture.scaledToWidth(_PICTURE_WIDTH, smooth)
        return picture

    def go_to_heading(self, anchor: str) -> bool:
        """Scroll to the heading that the site would call `anchor`; return whether there is one."""
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and anchor_of(block.text()) == anchor:
                # From the end upwards, so that the heading is at the top.
                self.moveCursor(QTextCursor.MoveOperation.End)
                self.setTextCursor(QTextCursor(block))
                return True
            block = block.next()
        return False


class ManualWindow(QDialog):
    """The pages of the manual. It does not block the main window."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("manualWindow")
        self.setWindowTitle("Manual")
        self._titles = QListWidget()
        self._titles.setObjectName("manualPages")
        self._titles.setAccessibleName("Pages of the manual")
        for name in _NAMES:
            self._titles.addItem(QListWidgetItem(manual.title_of(manual.FOLDER / f"{name}.md")))
        self._view = PageView()
        self._view.setObjectName("manualPage")
        self._view.setAccessibleName("Page of the manual")
        self._view.setOpenLinks(False)
        self._view.anchorClicked.connect(self.follow)
        self._wanted = QLineEdit()
        self._wanted.setObjectName("manualSearch")
        self._wanted.setAccessibleName("Search all pages")
        self._wanted.setPlaceholderText("Search all pages")
        self._wanted.setToolTip("Enter finds the next place, on this page or a later one")
        self._wanted.setClearButtonEnabled(True)
        self._wanted.returnPressed.connect(self.find_next)
        self._note = QLabel()
        self._note.setObjectName("manualNote")
        self._note.setTextFormat(Qt.TextFormat.PlainText)

        parts = QSplitter()
        parts.addWidget(self._titles)
        parts.addWidget(self._view)
        parts.setStretchFactor(1, 1)
        parts.setSizes([180, _PICTURE_WIDTH + 60])
        buttons = close_box(self)
        for button in buttons.findChildren(QPushButton):
            button.setAutoDefault(False)  # Enter searches
        below = QHBoxLayout()
        below.addWidget(self._wanted, 1)
        below.addWidget(self._note)
        below.addWidget(buttons)
        layout = QVBoxLayout(self)
        layout.addWidget(parts, 1)
        layout.addLayout(below)
        self.resize(1120, 720)
        self._titles.currentRowChanged.connect(self._show_row)
        self._titles.setCurrentRow(0)

    @property
    def page(self) -> str:
        """Name of the page that is shown."""
        return _NAMES[self._titles.currentRow()]

    def open_page(self, name: str, anchor: str = "") -> None:
        """Show a page, from its top or from a heading."""
        self._titles.setCurrentRow(_NAMES.index(name))
        if not anchor or not self._view.go_to_heading(anchor):
            self._view.moveCursor(QTextCursor.MoveOperation.Start)

    def follow(self, url: QUrl) -> None:
        """Open the target of a link: a page here, a web address in the browser."""
        if url.scheme():
            QDesktopServices.openUrl(url)
            return
        path = Path(posixpath.normpath(url.path() or f"{self.page}.md"))
        if path.suffix == ".md" and path.stem in _NAMES and path.parent == Path():
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
        start = self._titles.currentRow()
        for step in range(1, len(_NAMES) + 1):
            row = (start + step) % len(_NAMES)
            if wanted.casefold() in manual.page(_NAMES[row]).casefold():
                self._titles.setCurrentRow(row)
                self._view.moveCursor(QTextCursor.MoveOperation.Start)
                if self._view.find(wanted):
                    return
        self._titles.setCurrentRow(start)
        self._note.setText("No page has this text.")

    def _show_row(self, row: int) -> None:
        self._note.setText("")
        self._view.setMarkdown(manual.page(_NAMES[row]))


def anchor_of(heading: str) -> str:
    """Return the anchor that the site gives a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
