"""Two results side by side in an order that changes from round to round: which is better?"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from kernelscope.gui.model.blind_test import BlindTest
from kernelscope.gui.viewer.still import draw_still
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import in_column, in_row
from kernelscope.gui.widgets.tool_window import ToolWindow


class _Side(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setMinimumSize(280, 240)
        self.image = QImage()

    def show_image(self, image: QImage) -> None:
        self.image = image
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if not self.image.isNull():
            draw_still(painter, self.image, QRectF(self.rect()))


class BlindDialog(ToolWindow):
    """Asks for the better one of two pictures in several rounds, then says how sure that is.

    `images`: of one size. `names`: only shown with the result.
    """

    def __init__(
        self,
        images: tuple[QImage, QImage],
        names: tuple[str, str],
        parent: QWidget | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__("blindTest", "Blind test", parent, help_page="window#contact-sheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.take_size(960, 600)
        self.test = BlindTest(seed=seed)
        self._images, self._names = images, names
        self.question = QLabel(self)
        theme.set_role(self.question, "title")
        self.sides = _Side(self), _Side(self)
        self.buttons = (
            QPushButton("&1: Left is better", self),
            QPushButton("&2: Right is better", self),
        )
        for button, left in zip(self.buttons, (True, False), strict=True):
            button.setAutoDefault(False)
            button.clicked.connect(lambda _=False, left=left: self.choose(left=left))
        pictures = in_row(*((side, 1) for side in self.sides))
        answers = in_row(*((button, 1) for button in self.buttons))
        in_column(self.question, (pictures, 1), answers, of=self)
        self._ask()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        sides = {Qt.Key.Key_1: True, Qt.Key.Key_2: False}
        sides |= {Qt.Key.Key_Left: True, Qt.Key.Key_Right: False}
        if event.key() in sides and not self.test.over:
            self.choose(left=sides[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def choose(self, *, left: bool) -> None:
        self.test.choose(left=left)
        self._ask()

    def _ask(self) -> None:
        test = self.test
        if test.over:
            self.question.setText(test.conclude(*self._names))
            for button in self.buttons:
                button.setEnabled(False)
            self._order(True)
            return
        self.question.setText(
            f"Round {test.done + 1} of {test.rounds}: which is better? (1 or ←, 2 or →)"
        )
        self._order(test.first_is_left)

    def _order(self, first_is_left: bool) -> None:
        left, right = self._images if first_is_left else self._images[::-1]
        self.sides[0].show_image(left)
        self.sides[1].show_image(right)
