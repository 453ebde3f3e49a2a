"""Two pictures or volumes in a viewer of their own: the outputs of two runs, a blind test."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QAction, QActionGroup, QImage, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QPushButton, QToolBar, QWidget

from kernelscope.gui.model.comparison import offset_of
from kernelscope.gui.model.display import Arrangement, Display, Viewed, automatic_of
from kernelscope.gui.model.drawn_view import DrawnView, Pyramid
from kernelscope.gui.model.runs import Run
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.viewer.rendering import draw_still
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import in_column, in_row
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan

ROUNDS = 8  # with fewer than six rounds no result could be below `CONVINCING`

CONVINCING = 0.05  # the usual bar, below which chance is no good explanation


@dataclass
class BlindTest:
    """Which of two pictures is better, when nobody knows which is which?

    They lie left and right in an order drawn at random. If there were no visible difference, the
    number of times that the first one is chosen would have a binomial distribution. The p value is
    the probability of a count at least as unlikely: 7 of 8 has p = 2 (8 + 1) / 256 = 0.070.
    """

    rounds: int = ROUNDS
    seed: int | None = None
    order: list[bool] = field(init=False)
    """For each round whether the first picture lies on the left."""
    chosen_first: int = 0  # how often the first picture was chosen so far
    done: int = 0  # rounds that were answered

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        self.order = [draw.random() < 0.5 for _ in range(self.rounds)]

    @property
    def over(self) -> bool:
        return self.done == self.rounds

    @property
    def first_is_left(self) -> bool:
        """Whether the first picture lies on the left in the round to be answered."""
        return self.order[self.done]

    def choose(self, *, left: bool) -> None:
        self.chosen_first += left == self.first_is_left
        self.done += 1

    @property
    def p_value(self) -> float:
        """Probability of a count as uneven or more, if there were no visible difference."""
        return two_sided(self.chosen_first, self.done)

    def conclude(self, first: str, second: str) -> str:
        count = self.chosen_first
        more, name = max((count, first), (self.done - count, second), key=lambda pair: pair[0])
        if 2 * more == self.done:
            return f"Each was chosen {more} times of {self.done}: no difference was seen."
        verdict = (
            "this is unlikely to be chance" if self.p_value < CONVINCING else "this may be chance"
        )
        return (
            f"{name} was chosen in {more} of {self.done} rounds: p = {self.p_value:.3f}, {verdict}."
        )


def two_sided(count: int, rounds: int) -> float:
    """Return the p value of `count` of `rounds`, each with probability 1/2."""
    likely = math.comb(rounds, count)
    as_unlikely = (math.comb(rounds, k) for k in range(rounds + 1))
    return sum(each for each in as_unlikely if each <= likely) / 2.0**rounds


_ARRANGEMENTS = (Arrangement.SWIPE, Arrangement.SPLIT, Arrangement.SIDE_BY_SIDE)


class Half(NamedTuple):
    image: Viewed
    name: str  # written at the divide
    # Above it, where both are side by side.
    title: str
    details: str = ""
    offset: int = 0  # coordinate of its first row and column, beside the other picture

    def drawn(self, display: Display) -> DrawnView:
        pyramid = Pyramid(self.image.planes) if isinstance(self.image, Image) else None
        return DrawnView(self.image, pyramid, self.offset, display)


class PicturePair(QWidget):
    """A viewer of two, with buttons for their arrangement."""

    def __init__(self, first: Half, second: Half, display: Display, parent: QWidget) -> None:
        super().__init__(parent)
        images = PairView(CanvasView(1 if isinstance(first.image, Image) else 3))
        self.images = images
        images.names = first.name, second.name
        images.wanted.connect(lambda work: images.take(work()))
        images.show_input(first.drawn(display), first.title, first.details)
        images.show_output(second.drawn(display), second.title, second.details)
        in_column(self._tools(), (images, 1), of=self, margins=0)
        images.view.arrange(arrangement=Arrangement.SWIPE)
        images.fit()
        self.setFocusProxy(images.output.views[0])  # Space and the brackets work at once

    def _tools(self) -> QToolBar:
        """Return buttons for the arrangements; one is down at a time."""
        bar = QToolBar("Arrangement", self)
        group = QActionGroup(self)
        for arrangement in _ARRANGEMENTS:
            action = QAction(arrangement.value.capitalize(), self)
            action.setObjectName(f"pair{arrangement.name.title()}")
            action.setCheckable(True)
            action.setChecked(arrangement is Arrangement.SWIPE)
            action.triggered.connect(
                lambda _, chosen=arrangement: self.images.view.arrange(arrangement=chosen)
            )
            group.addAction(action)
            bar.addAction(action)
        return bar


class RunPair(ToolWindow):
    """The outputs of two runs that are in memory; of volumes, their first component."""

    def __init__(self, first: Run, second: Run, parent: QWidget | None = None) -> None:
        title = f"Runs {first.number} and {second.number}"
        super().__init__("runPair", title, parent, help_page="window#the-list-of-runs")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.take_size(960, 680)
        left, right = _half(first), _half(second)
        pair = PicturePair(left, right, automatic_of(left.image), self)
        in_column((pair, 1), close_box(self), of=self)
        pair.setFocus()


def _half(run: Run) -> Half:
    assert run.result is not None
    output, offset = run.result.output, offset_of(run.result.request)
    if isinstance(output, Scan):
        return Half(output.volumes[0], f"Run {run.number}", describe(run))
    assert isinstance(output, Image)
    return Half(output, f"Run {run.number}", run.title, describe(run), offset)


def describe(run: Run) -> str:
    unusual = [chip.text for chip in run.chips if not chip.usual]
    parts = [f"{run.number}: {run.title}", *unusual, run.where]
    if run.psnr is not None:
        parts.append(f"{run.psnr:.2f} dB")
    return " · ".join(parts)


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
    """Asks for the better of two pictures in several rounds, then says how sure that is."""

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
