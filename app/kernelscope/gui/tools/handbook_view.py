"""Shows a page of the handbook, with its pictures: those of the site, drawn by Qt.

Formulas and levels are drawn when a page asks for them. Worked examples run their filter, which
may have to be compiled: they are made in the background, and a gap stands in their place.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPalette, QTextCursor, QTextDocument
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QTextBrowser

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
        self.setMarkdown(handbook.page(name, computed=self._is_made(name)))
        if self._wanted:
            self._make()

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
                place = self.verticalScrollBar().value()
                self.show_page(name)
                self.verticalScrollBar().setValue(place)
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


def drawn(content: bytes, ink: QColor, ratio: float, width: int = PICTURE_WIDTH) -> QImage:
    """Return a picture of the handbook, drawn in the colour of the text around it.

    `content`: SVG or PNG, as `pictures.render` returns it. `ratio`: pixels of the screen for each
    of Qt's. `width`: the most that it may be wide; a wider one is made smaller.
    """
    if not content.startswith(b"<svg"):
        return QImage.fromData(content)
    text = content.decode().replace("currentColor", ink.name())
    renderer = QSvgRenderer(QByteArray(text.encode()))
    size = renderer.defaultSize()
    if size.width() > width:
        size = QSize(width, round(size.height() * width / size.width()))
    image = QImage(size * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    image.setDevicePixelRatio(ratio)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()
    return image
