"""Two pictures or volumes in a viewer of their own: the outputs of two runs, a blind test."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QAction, QActionGroup, QImage, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QPushButton, QToolBar, QWidget

from kernelscope.gui.model.comparison import offset_of
from kernelscope.gui.model.display import (
    Arrangement,
    Display,
    PaneSide,
    Viewed,
    are_alike,
    automatic_of,
)
from kernelscope.gui.model.drawn_view import DrawnView, Pyramid
from kernelscope.gui.model.regions import Regions
from kernelscope.gui.model.runs import Run
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.session.canvas_view import PANES, CanvasView
from kernelscope.gui.session.subject import Subject
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.viewer.region_tool import RegionTool
from kernelscope.gui.viewer.rendering import draw_still
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import in_column, in_row
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume

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
    """A viewer of two, with buttons for their arrangement; `displays`: how each is drawn."""

    def __init__(
        self, first: Half, second: Half, displays: tuple[Display, Display], parent: QWidget
    ) -> None:
        super().__init__(parent)
        images = PairView(CanvasView(1 if isinstance(first.image, Image) else 3))
        self.images, self._halves = images, (first, second)
        images.names = first.name, second.name
        images.wanted.connect(lambda work: images.take(work()))
        images.show_input(first.drawn(displays[0]), first.title, first.details)
        images.show_output(second.drawn(displays[1]), second.title, second.details)
        in_column(self._tools(), (images, 1), of=self, margins=0)
        images.view.when({PANES}, self._name)
        images.view.arrange(arrangement=Arrangement.SWIPE)
        images.fit()
        self.setFocusProxy(images.output.views[0])  # Space and the brackets work at once

    def _name(self) -> None:
        """Name both over a view that has both."""
        first, second = self._halves
        title, details = second.title, second.details
        if self.images.view.panes.arrangement.is_divided:
            title = " | ".join(dict.fromkeys((first.title, title)))
            details = " | ".join(filter(None, (first.details, details)))
        self.images.output.show_details(title, details)

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
    """The outputs of two runs that are in memory, looked at as those of `subject` are.

    Of volumes, it has the component in front, or else the first one. The other channels of a
    composite are no part of a run: the one that is drawn is named.
    """

    def __init__(
        self, first: Run, second: Run, subject: Subject[Any, Any], parent: QWidget | None = None
    ) -> None:
        title = f"Runs {first.number} and {second.number}"
        super().__init__("runPair", title, parent, help_page="window#the-list-of-runs")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.take_size(960, 680)
        halves = left, right = _half(first, subject), _half(second, subject)
        displays = _display(left.image, subject), _display(right.image, subject)
        pair = PicturePair(left, right, displays, self)
        view, look, images = subject.view, subject.view.look, pair.images
        if isinstance(left.image, Volume):
            images.view.arrange(enlarged=view.panes.enlarged)
            images.view.choose_look(Look(look.projection, look.slices))
            images.choose_plane(view.chosen_plane)
            images.go_to(view.position)
        files = {each.image.path or each.image for each in halves}
        if subject.source is not None and files <= subject.moment.files:
            kept = subject.regions.all
            regions = Regions(lambda: kept, lambda *_: None, lambda: None)
            images.add_regions(
                RegionTool(regions, images.update_regions, lambda: None, images.in_view)
            )
        in_column((pair, 1), close_box(self), of=self)
        pair.setFocus()


def _half(run: Run, subject: Subject[Any, Any]) -> Half:
    assert run.result is not None
    request, output = run.result.request, run.result.output
    name, offset = f"Run {run.number}", offset_of(request)
    if isinstance(output, Scan):
        parts, front = request.scan.volumes, subject.part if subject.source is not None else None
        volume = output.volumes[parts.index(front) if front in parts else 0]
        several = len(parts) > 1
        part = volume.title if several else volume.place
        return Half(volume, name, ", ".join(filter(None, (name, part))), describe(run))
    assert isinstance(output, Image)
    return Half(output, name, run.title, describe(run), offset)


def _display(image: Viewed, subject: Subject[Any, Any]) -> Display:
    """Return how the main window draws an output of this kind, or the automatic display."""
    displays = subject.view.displays
    display, front = displays.of(PaneSide.OUTPUT), displays.image(PaneSide.OUTPUT)
    if display is None:
        display, front = displays.of(PaneSide.INPUT), displays.image(PaneSide.INPUT)
    known = display is not None and front is not None and are_alike(front, image)
    return display if known and display is not None else automatic_of(image)


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
