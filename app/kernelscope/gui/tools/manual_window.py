"""The manual inside the program: the pages of the site, by section, with a search over all.

Titles are on the left, the page on the right. Links between pages and to headings are followed
here; Qt's Markdown has no anchors, so a heading is found by its text. Formulas and levels are drawn
when a page asks for them. Worked examples run their filter, which may have to be compiled: they are
made in the background, and a gap stands in their place.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QEvent, QRectF, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QImage,
    QPainter,
    QPalette,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QPushButton,
    QSplitter,
    QTextBrowser,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import dressed, in_column, in_row
from kernelscope.gui.widgets.theme import show_markdown
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.teach import handbook, manual
from kernelscope.teach.handbook import pictures

PICTURE_WIDTH = 840  # pixels; wider pictures would make every page scroll sideways
_GAP = QSize(520, 260)  # size of the gap for a picture that is still being made


class PageView(QTextBrowser):
    """Shows a page of Markdown, with its pictures as wide as the text at most."""

    completed = Signal()  # the pictures of the page that needed time are there

    def __init__(self, background: Background) -> None:
        super().__init__()
        self._background = background
        self._made: dict[str, bytes] = {}
        self._name = ""
        self._wanted: list[str] = []

    def show_page(self, name: str) -> None:
        self._name, self._wanted = name, []
        show_markdown(self, handbook.page(name, computed=self._is_made(name)))
        if self._wanted:
            self._make()

    def _show_again(self) -> None:
        place = self.verticalScrollBar().value()
        self.show_page(self._name)
        self.verticalScrollBar().setValue(place)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange and self._name:
            # Links and drawings keep their colours. Not now: Qt goes through all widgets meanwhile.
            QTimer.singleShot(0, self, self._show_again)

    def _is_made(self, name: str) -> bool:
        spec = handbook.FILTERS.get(name)
        return spec is not None and f"mask/{spec.id}" in self._made

    def _make(self) -> None:
        name, (picture, *others) = self._name, self._wanted

        def work() -> bytes:
            made = pictures.render(picture)
            handbook.page(name)  # with its numbers; kept, so that it is there at once
            return made

        def then(made: bytes) -> None:
            self._made[picture] = made
            if self._name == name:
                self._show_again()
            if not others or self._name != name:
                self.completed.emit()

        def failed(error: Exception) -> None:
            raise error

        self._background.start("pictures of a page", work, then, failed)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Return the picture that a page names; nothing else is loaded."""
        if kind != QTextDocument.ResourceType.ImageResource.value:
            return None
        url = QUrl(name)
        if url.scheme() == pictures.SCHEME:
            return self._drawn(url.path())
        picture = QImage(str(manual.FOLDER / url.path()))
        if picture.width() > PICTURE_WIDTH:
            smooth = Qt.TransformationMode.SmoothTransformation
            return picture.scaledToWidth(PICTURE_WIDTH, smooth)
        return picture

    def _drawn(self, name: str) -> QImage:
        if pictures.is_quick(name):
            content = pictures.render(name)
        elif name in self._made:
            content = self._made[name]
        else:
            if name not in self._wanted:
                self._wanted.append(name)
            gap = QImage(_GAP, QImage.Format.Format_ARGB32_Premultiplied)
            gap.fill(Qt.GlobalColor.transparent)
            return gap
        ink = self.palette().color(QPalette.ColorRole.Text)
        return drawn(content, ink, self.devicePixelRatioF())

    def go_to_heading(self, anchor: str) -> bool:
        """Scroll to the heading that the site would call `anchor`; return whether there is one."""
        block = self.document().begin()
        while block.isValid():
            is_heading = block.blockFormat().headingLevel()
            if is_heading and manual.anchor_of(block.text()) == anchor:
                # From the end upwards, so that the heading is at the top.
                self.moveCursor(QTextCursor.MoveOperation.End)
                self.setTextCursor(QTextCursor(block))
                return True
            block = block.next()
        return False


def drawn(content: bytes, ink: QColor, ratio: float, scale: float = 1) -> QImage:
    """Return a picture of the handbook, SVG or PNG, drawn in the colour of the text around it."""
    if not content.startswith(b"<svg"):
        return QImage.fromData(content)
    text = content.decode().replace("currentColor", ink.name())
    renderer = QSvgRenderer(QByteArray(text.encode()))
    size = renderer.defaultSize()
    width = round(scale * min(size.width(), PICTURE_WIDTH))
    size = QSize(width, round(size.height() * width / size.width()))
    image = QImage(size * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    image.setDevicePixelRatio(ratio)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()
    return image


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
