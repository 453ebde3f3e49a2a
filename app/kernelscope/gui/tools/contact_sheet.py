"""Run > Contact Sheet: nine values of a parameter, or filters, with their results side by side.

    settings, view or input change -> a short rest -> one job: nine results, then their scores
    click or Return: adopt the value, again: have it in the middle
    Shift+click or P: pin, two of them to compare

A tile that is adopted stays where it is, as all others do. Only the middle of the visible part is
computed, so that the sheet follows the settings. Runs and benchmarks come first: the sheet waits
until they end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QDialog, QGridLayout, QSizePolicy, QWidget

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.engine.sweep import (
    Cell,
    Score,
    Variant,
    filter_variants,
    moved,
    sweep,
    sweepable,
    variants,
    with_pins,
)
from kernelscope.engine.worker import Job
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.times import EMULATED, Timing, duration
from kernelscope.gui.tools.picture_pair import BlindDialog, Half, PicturePair
from kernelscope.gui.viewer.layer import as_qimage
from kernelscope.gui.viewer.rendering import draw_still, place
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.messages import close_box
from kernelscope.gui.widgets.parts import in_column, in_row, label_of, push_button, text_label
from kernelscope.gui.widgets.tiles import TileLine, draw_badge, draw_lines, draw_note
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.images.image import Image
from kernelscope.schema.parameters import Parameter

_DELTA = "Δ: RMS difference from the result of the current value, in percent of white"
_MARKS = {"best": "★", "current": "●", "pinned": "◆"}


class SheetTile(QWidget):
    """A picture with a caption, which can be clicked, pinned and reached by Tab.

    `image`: `picture` as it is drawn. `same`: another tile with the same result, in words.
    `marks`: “current” if the settings have its value, “best” and “pinned”.
    `is_waiting`: whether neither a result nor a problem is there.
    """

    chosen = Signal(object)
    pinned = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.image = QImage()

    def sizeHint(self) -> QSize:
        return QSize(330, 280)

    def minimumSizeHint(self) -> QSize:
        return QSize(170, 130)

    @property
    def text(self) -> str:
        """All that the tile says, for readers of the screen as well."""
        marks = [name for name in _MARKS if name in self.marks]
        figures = self._line or self._problem
        return ", ".join(filter(None, (self.caption, figures, self.part, *marks)))

    @property
    def part(self) -> str:
        """The pixels that are drawn, and their magnification; empty for all of them one to one."""
        if self.image.isNull():
            return ""
        drawn = self._drawn
        scale = place(self.image.copy(drawn), QRectF(self._frame)).width() / drawn.width()
        left, top = self._region.left + drawn.left(), self._region.top + drawn.top()
        part = f"{drawn.width()}×{drawn.height()} at {left}, {top}"
        is_whole = (drawn.height(), drawn.width()) == self._whole
        return ", ".join([part] * (not is_whole) + [f"{scale:.3g}×"] * (scale != 1))

    @property
    def _line(self) -> str:
        return " · ".join(filter(None, (self._distance, self._figures)))

    @property
    def _frame(self) -> QRect:
        return self.rect().adjusted(4, 4, -4, -2 * self.fontMetrics().height() - 12)

    @property
    def _drawn(self) -> QRect:
        part = QRect(QPoint(), self.image.size().boundedTo(self._frame.size()))
        part.moveCenter(self.image.rect().center())  # reduced, it would show less noise
        return part

    def begin(self, variant: Variant) -> None:
        """Have a caption, and wait for the result; before anything else."""
        self.caption, self.value = variant.caption, variant.value
        self.marks: set[str] = set()
        self.picture: Image | None = None
        self.display: Display | None = None
        self.image = QImage()
        self.psnr: float | None = None
        self.same = self._figures = self._distance = ""
        self.is_waiting = True
        self.wait_for("waiting…")

    def wait_for(self, reason: str) -> None:
        self._problem = reason
        self._refresh()

    def give_up(self) -> None:
        if self.is_waiting:
            self.wait_for("not computed")

    def show_cell(self, cell: Cell, display: Display) -> None:
        self._problem, self.is_waiting = cell.problem, False
        if cell.result is not None:
            if self.image.isNull():
                self.picture = cell.result.image
                planes = self.picture.planes
                fits = display if planes.dtype == cell.result.request.image.planes.dtype else None
                self.display = fits or Display.automatic(planes)
                self.image = as_qimage(planes, self.display)
            request = cell.result.request
            self._whole = request.whole_shape[:2]
            whole = Region.all_of(request.whole_shape)
            self._region = request.region if isinstance(request.region, Region) else whole
            self.psnr = cell.score.psnr if cell.score is not None else None
            seconds = Timing.of(cell.result).seconds
            # A first run also loads code, starts threads and makes plans that are kept.
            kind = "first run" if cell.result.first else "one run"
            part = "" if self._region == whole else " for this part"
            time = f"{duration(seconds)}{part}, {kind}" if seconds is not None else EMULATED
            self.same = f"same as {cell.same.caption}" if cell.same is not None else ""
            parts = self.same, _score_text(cell.score), time  # the last one is cut first
            self._figures = " · ".join(filter(None, parts))
        self._refresh()

    def show_distance(self, current: SheetTile, span: float) -> None:
        """Write the distance to the result of the current value, as a part of `span`."""
        self._distance = ""
        if self.picture is not None and current.picture is not None:
            planes, other = self.picture.planes, current.picture.planes
            if planes.shape == other.shape:
                rms = float(np.sqrt(np.mean((planes.astype(float) - other) ** 2))) / span
                self._distance = f"Δ {100 * rms:.2g} %" if rms else ""
        self._refresh()

    def mark(self, name: str, on: bool) -> None:
        (self.marks.add if on else self.marks.discard)(name)
        self._refresh()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            (self.pinned if shift else self.chosen).emit(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self.image.isNull():
            self._refresh()  # another part is drawn

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self)
        elif event.key() == Qt.Key.Key_P:
            self.pinned.emit(self)
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Down):
            self.focusNextChild()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self.focusPreviousChild()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        below, frame = 2 * painter.fontMetrics().height(), self._frame
        if self.image.isNull():
            draw_note(painter, frame, self._problem)
        else:
            draw_still(painter, self.image.copy(self._drawn), QRectF(frame))
            if part := self.part:
                draw_badge(painter, frame, part)
        marks = " ".join(f"{_MARKS[name]} {name}" for name in _MARKS if name in self.marks)
        lines = TileLine(self.caption, aside=marks), TileLine(self._line, quiet=True)
        room = QRect(8, self.height() - below - 8, self.width() - 16, below)
        draw_lines(
            painter, lines, room, QColor(theme.CANVAS_TEXT), theme.canvas_quiet(self.palette())
        )
        self._draw_frame(painter)

    def _draw_frame(self, painter: QPainter) -> None:
        accent = self.palette().highlight().color()
        if self.hasFocus() or "pinned" in self.marks:
            style = Qt.PenStyle.SolidLine if self.hasFocus() else Qt.PenStyle.DashLine
            painter.setPen(QPen(accent, 2, style))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def _refresh(self) -> None:
        self.setAccessibleName(self.text)
        self.setToolTip("\n".join([self.text] + [_DELTA] * bool(self._distance)))
        self.update()


def _score_text(score: Score | None) -> str:
    if score is None:
        return ""
    return f"about {score.psnr:.1f} dB by SURE" if score.estimated else f"{score.psnr:.2f} dB"


_COLUMNS = 3
_SIDE = 320, 240  # width and height of the part that is computed, in pixels
_BLOCK = 16  # side in pixels of the blocks whose means show where detail is
_SAMPLES = 1 << 20  # samples that are looked at for it, in a large view at most
_RICHER = 1.25  # times as much detail as in the middle, to be taken in its place
_REST_MS = 250  # without a change for so long, the sheet is computed

_COMPILING_MS = 1000
"""Compiling that is worth a word: kernels in the cache on the disk are loaded in less."""

_NOTHING = (
    "The sheet shows a picture or a slice: open one, and choose a filter for pictures and valid "
    "settings."
)
_NO_SCORES = "No estimate of dB: {}. Edit > Reference > Choose Reference sets one to compare with."
_UNSCORED = "results have another size, or errors that are too small beside the noise"
_SWIPE = "Compare the two pinned results in one view, with a divider"
_BLIND = "Test whether you see which of the two pinned results is better"
_UNPINNED = "First pin two results: Shift+click, or P"
_UNLIKE = "Both pinned results have to be computed, and of one size"
_SOME_SCORES = f"No best one: some have no figure, as {_UNSCORED}."


class ContactSheet(ToolWindow):
    """A grid of results that follows the window's input, view and settings.

    `request`: of the settings with its reference, and the region that is in view; None without a
    picture or valid settings. It may have numbers that are being estimated, and raise `AppError`.
    `alternatives`: the filters that its own is compared with.
    """

    adopted = Signal(object)  # the `Step` of the tile that was clicked

    def __init__(
        self,
        tasks: Tasks,
        request: Callable[[], tuple[Request, Region | None] | None],
        alternatives: Callable[[], Iterable[Step]],
        display: Callable[[Request], Display],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("contactSheet", "Contact sheet", parent, help_page="window#contact-sheet")
        self.take_size(1080, 820)
        self._tasks, self._request, self._display = tasks, request, display
        self._alternatives = alternatives
        self._shown: Request | None = None
        self._cells: list[Variant] = []  # those of the tiles
        self._known: dict[Hashable, Cell] = {}
        """Cells with results: those whose values move with the current one keep them."""
        self._pinned: list[Variant] = []
        self._varied = ""  # the name of the parameter; empty for the filter
        self._estimated: dict[Hashable, Step] = {}  # with numbers, by `work` before they were there
        self.parameters = choice_box("sheetParameter", "Parameter that varies")
        self.note = text_label("", "", "note", parent=self)
        self.tiles: list[SheetTile] = []
        self.swipe_button = push_button("S&wipe", "", self.swipe)
        self.blind_button = push_button("&Blind test", "", self.blind_test)
        self._lay_out()
        self._timer = QTimer(self, singleShot=True, interval=_REST_MS)
        self._timer.timeout.connect(self.compute)
        self._running = 0
        self._compiling = QTimer(self, singleShot=True)
        self._compiling.timeout.connect(
            lambda: self.tiles[self._running].wait_for("compiling (first use only)…")
        )
        self._task: Task | None = None
        self._unscored = ""
        self.parameters.activated.connect(lambda _: self.compute())
        self._show_pins()

    def _lay_out(self) -> None:
        varies = label_of("&Vary", self.parameters), self.parameters
        top = in_row(*varies, (self.note, 1), self.swipe_button, self.blind_button)
        sheet = QWidget(self)  # keeps its room without tiles, which a layout does not
        self._grid = QGridLayout(sheet)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(6)
        in_column(top, (sheet, 1), close_box(self), of=self)

    # --- following the window ---

    def touch(self) -> None:
        """Compute again soon: something that the sheet depends on has changed."""
        if self.isVisible():
            self._timer.start()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.compute(anew=True)
        for tile in self.tiles:
            if "current" in tile.marks and not tile.isHidden():
                tile.setFocus()

    def leave(self) -> None:
        """End the work, and close the windows that compare results of this sheet."""
        self._timer.stop()
        self._stop()
        for dialog in self.findChildren(QDialog):
            dialog.close()

    def compute(self, *, anew: bool = False) -> None:
        """Compute the sheet around the current settings; `anew`: even if a tile has them."""
        asked = self._asked()
        if asked is None:
            return
        whole, visible = asked
        offered, others = sweepable(whole), list(self._alternatives())
        if not offered and not others:
            self._clear(f"{whole.step.filter.name} has no parameter that can vary.")
            return
        if reason := whole.step.filter.uncroppable(whole.step.parameters):
            self._clear(
                f"{whole.step.filter.name} cannot be compared here: the sheet computes the part "
                f"in view, and {reason}."
            )
            return
        name = self._offer(offered, filters=bool(others))
        seen = visible or Region.all_of(whole.output_shape)
        request = replace(whole, region=detail(whole.image.planes, seen))
        if not anew and self._has(request, name):
            self._shown = request
            self._mark_current()
            self._compare()
            return
        self._compiling.stop()
        self._shown, self._varied = request, name
        pins = len(self._pinned)
        cells = variants(request, name) if name else filter_variants(request, others)
        cells = self._cells = with_pins(self._numbered(cells), self._keep_pins(request), request)
        released = " Pins of another picture, slice or size are released." * (
            len(self._pinned) < pins
        )
        known = {  # the one with the same result may not be among these tiles
            index: replace(self._known[each.key], same=None, variant=each)
            for index, each in enumerate(cells)
            if each.key in self._known
        }
        self._known = {each.variant.key: each for each in known.values()}
        self._show_tiles(cells, known)
        current = self._tasks.current
        if current is not self._task and not self._tasks.is_free(Priority.ERRAND):
            self._tasks.when_free(Priority.ERRAND, self.touch)
            self.note.setText("Waits until the run in progress ends.")
            return
        region = request.region
        part = ""
        if isinstance(region, Region) and region != Region.all_of(whole.whole_shape):
            height, width = whole.whole_shape[:2]
            part = (
                f"{region.width}×{region.height} of {width}×{height} pixels are computed and timed"
            )
        note = f"{part}. Click or Return adopts, again centres; Shift+click or P pins.{released}"
        self.note.setText(note.lstrip(". "))

        first = [each.key for each in cells].index(_current(request))

        def work(
            backends: Mapping[str, Backend], token: CancelToken, report: Callable[[Any], None]
        ) -> None:
            def begun(index: int, stage: str) -> None:
                report((index, stage))

            report(sweep(cells, backends, token, report, begun, known=known, first=first))

        if self._task is not None:
            self._task.mute()
        task = self._task = self._tasks.submit(Job(work), Priority.ASIDE)
        task.reported.connect(self._on_reported)
        task.finished.connect(lambda _: self._on_finished())
        task.failed.connect(self._on_failed)
        task.stopped.connect(self._on_stopped)

    def _asked(self) -> tuple[Request, Region | None] | None:
        """Return the request and the region in view, or None and show why not."""
        try:
            asked = self._request()
        except AppError as error:
            self._clear(str(error))
            return None
        if asked is None:
            self._clear(_NOTHING)
            return None
        if not asked[0].needs_estimates:
            return asked
        # A tile that was adopted has the numbers that are estimated once more.
        if asked[0].work not in {_open(each) for each in self._cells}:
            self._clear("Estimating the settings from the picture…")
        return None

    def _has(self, request: Request, name: str) -> bool:
        """Return whether a tile has the result of these settings, or is about to."""
        shown = [tile for tile in self.tiles if not tile.isHidden()]
        complete = self._task is not None or not any(tile.is_waiting for tile in shown)
        same = self._shown is not None and self._varied == name
        if name:  # around a pin with other values there are other tiles
            same &= sum(_differs_in(name, each, request.step) for each in self._cells) > 1
        return complete and same and _current(request) in {each.key for each in self._cells}

    def _numbered(self, cells: list[Variant]) -> list[Variant]:
        """Return variants with the numbers that were estimated for an earlier view."""
        found = []
        for each in cells:
            step = self._estimated.get(each.request.work) if each.request is not None else None
            if each.request is not None and step is not None:
                each = replace(each, request=replace(each.request, step=step, estimated=True))
            found.append(each)
        return found

    def _keep_pins(self, request: Request) -> list[Variant]:
        """Return the pinned variants in the part of `request`; none of another source."""
        pins = [
            moved(each, request)
            for each in self._pinned
            if each.request is not None
            and each.request.source.fingerprint == request.source.fingerprint
        ]
        self._pinned = [each for each in pins if each.request is not None]
        return self._pinned

    def _offer(self, offered: tuple[Parameter, ...], *, filters: bool) -> str:
        """Return the name of the parameter to vary; empty for the filter."""
        choices = {each.name: each.label for each in offered} | ({"": "Filter"} if filters else {})
        names, chosen = list(choices), self.parameters.currentData()
        if [self.parameters.itemData(k) for k in range(self.parameters.count())] != names:
            self.parameters.clear()
            for name, label in choices.items():
                self.parameters.addItem(label, name)
        index = names.index(chosen) if chosen in names else 0
        self.parameters.setCurrentIndex(index)
        return names[index]

    def _mark_current(self) -> None:
        assert self._shown is not None
        current = _current(self._shown)
        for tile, each in zip(self.tiles, self._cells, strict=False):
            tile.mark("current", each.key == current)

    def _show_tiles(self, cells: list[Variant], known: Mapping[int, Cell]) -> None:
        while len(self.tiles) < len(cells):
            tile = SheetTile(self)
            tile.chosen.connect(self._adopt)
            tile.pinned.connect(self._pin)
            index = len(self.tiles)
            self.tiles.append(tile)
            self._grid.addWidget(tile, index // _COLUMNS, index % _COLUMNS)
        focused = next((each.value for each in self.tiles if each.hasFocus()), None)
        for index, tile in enumerate(self.tiles):
            tile.setVisible(index < len(cells))
            if index < len(cells):
                tile.begin(cells[index])
                if index in known:
                    self._show_cell(tile, known[index])
                if focused is not None and tile.value == focused:
                    tile.setFocus()
        self._mark_current()
        self._show_pins()

    def _show_cell(self, tile: SheetTile, cell: Cell) -> None:
        request = cell.variant.request or self._shown
        assert request is not None
        tile.show_cell(cell, self._display(request))

    def _clear(self, text: str) -> None:
        self._stop()
        self._shown = None
        self.note.setText(text)
        for tile in self.tiles:
            tile.hide()
        self._show_pins()

    def _stop(self) -> None:
        self._compiling.stop()
        task, self._task = self._task, None
        if task is not None:
            task.mute()
            task.cancel()

    def _on_reported(self, value: Cell | tuple[int, str] | str) -> None:
        """Show a cell, or the stage that the cell with a number begins; empty before the first.

        Text at the end: why results without a reference have no figure.
        """
        self._compiling.stop()
        if isinstance(value, str):
            self._unscored = value
            return
        if not isinstance(value, Cell):
            self._running, stage = value
            self.tiles[self._running].wait_for("computing…")
            if stage == "compile":
                self._compiling.start(_COMPILING_MS)
            return
        before = self._cells[value.index]
        self._cells[value.index] = value.variant
        self._pinned = [value.variant if each is before else each for each in self._pinned]
        if before.request is not None and before.request.needs_estimates and value.variant.request:
            self._estimated[before.request.work] = value.variant.request.step
        if value.result is not None:
            self._known[value.variant.key] = value
        self._show_cell(self.tiles[value.index], value)
        self._show_pins()

    def _on_finished(self) -> None:
        self._end()
        self._compare()
        shown = [tile for tile in self.tiles if not tile.isHidden() and tile.picture is not None]
        scores = [tile.psnr for tile in shown if tile.psnr is not None]
        if len(scores) == len(shown) > 1:  # one without an estimate may be better than all others
            for tile in shown:
                tile.mark("best", tile.psnr == max(scores))
        if len(shown) > 1 and sum(bool(tile.same) for tile in shown) == len(shown) - 1:
            varied = self.parameters.currentText()
            self.note.setText(f"{varied} makes no difference in this part and these settings.")
        elif not scores:
            reason = _NO_SCORES.format(self._unscored or _UNSCORED)
            self.note.setText(f"{self.note.text()} {reason}")
        elif len(scores) < len(shown):
            self.note.setText(f"{self.note.text()} {_SOME_SCORES}")

    def _compare(self) -> None:
        shown = [tile for tile in self.tiles if not tile.isHidden() and tile.picture is not None]
        for current in (each for each in shown if "current" in each.marks):
            for tile in shown:
                assert self._shown is not None
                tile.show_distance(current, self._shown.image.levels.span)

    def _on_failed(self, error: Exception) -> None:
        self._end()
        self.note.setText(str(error))
        for tile in self.tiles:
            tile.give_up()

    def _on_stopped(self) -> None:
        self._end()
        self.touch()

    def _end(self) -> None:
        self._task = None
        self._compiling.stop()

    # --- choosing ---

    def _adopt(self, tile: SheetTile) -> None:
        if "current" in tile.marks:
            self.compute(anew=True)
        elif (request := self._cells[self.tiles.index(tile)].request) is not None:
            self.adopted.emit(request.step)

    def _pin(self, tile: SheetTile) -> None:
        """Pin or release a tile; a third one takes the place of the first."""
        variant = self._cells[self.tiles.index(tile)]
        if variant.key in (pinned := [each.key for each in self._pinned]):
            del self._pinned[pinned.index(variant.key)]
        elif variant.request is not None:
            self._pinned = [*self._pinned[-1:], variant]
        self._show_pins()

    def _tiles_of_pins(self) -> list[SheetTile]:
        found = {
            each.key: tile
            for tile, each in zip(self.tiles, self._cells, strict=False)
            if not tile.isHidden()
        }
        return [found[each.key] for each in self._pinned if each.key in found]

    def _show_pins(self) -> None:
        pinned = self._tiles_of_pins()
        for tile in self.tiles:
            tile.mark("pinned", tile in pinned)
        pair, why = self._pair(), ""
        if pair is None:
            why = _UNLIKE if len(self._pinned) == 2 else _UNPINNED
        for button, tip in ((self.swipe_button, _SWIPE), (self.blind_button, _BLIND)):
            button.setEnabled(pair is not None)
            button.setToolTip(". ".join(filter(None, (tip, why))))

    def _pair(self) -> tuple[SheetTile, SheetTile] | None:
        if len(pinned := self._tiles_of_pins()) != 2:
            return None
        first, second = pinned
        sizes = first.image.size(), second.image.size()
        return (first, second) if sizes[0] == sizes[1] and not first.image.isNull() else None

    def swipe(self) -> None:
        pair = self._pair()
        if pair is None:
            return
        dialog = ToolWindow("sheetSwipe", f"{pair[0].caption} and {pair[1].caption}", self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.take_size(800, 620)
        first, second = pair
        assert first.picture is not None
        assert second.picture is not None
        assert first.display is not None
        view = PicturePair(
            Half(first.picture, first.caption, first.caption),
            Half(second.picture, second.caption, second.caption),
            (first.display, first.display),
            dialog,
        )
        in_column((view, 1), close_box(dialog), of=dialog)
        view.setFocus()
        dialog.show()

    def blind_test(self) -> None:
        """Ask which of the pinned results is better, in rounds that hide their names."""
        pair = self._pair()
        if pair is not None:
            images, names = (pair[0].image, pair[1].image), (pair[0].caption, pair[1].caption)
            BlindDialog(images, names, self).show()


def _current(request: Request) -> Hashable:
    return Variant("", None, request).key


def _open(variant: Variant) -> Hashable:
    """Return the settings with numbers that are still to be estimated."""
    return replace(variant.request, estimated=False).work if variant.request is not None else None


def _differs_in(name: str, variant: Variant, step: Step) -> bool:
    """Return whether nothing differs but the value of the parameter `name`, if at all."""
    if variant.request is None or variant.request.step.filter is not step.filter:
        return False
    others = variant.request.step.parameters
    return {**step.parameters, name: None} == {**others, name: None}


def detail(planes: NDArray[Any], seen: Region) -> Region:
    """Return the middle of the part in view, or one with clearly more detail in a large view."""
    width, height = min(seen.width, _SIDE[0]), min(seen.height, _SIDE[1])
    down, across = (seen.height - height) // 2, (seen.width - width) // 2
    if width <= seen.width // 2 and height <= seen.height // 2:
        # Means of blocks have little noise; roots keep one hard edge from outweighing all others.
        step = next((each for each in (1, 2, 4) if seen.pixels <= each * each * _SAMPLES), 8)
        samples = seen.of(planes)[::step, ::step, min(1, planes.shape[2] - 1)]
        side = _BLOCK // step
        rows, columns = (length // side for length in samples.shape)
        blocks = samples[: rows * side, : columns * side].reshape(rows, side, columns, side)
        means = blocks.mean((1, 3), dtype=np.float32)
        edges = np.abs(np.diff(means, axis=0))[:, :-1] + np.abs(np.diff(means, axis=1))[:-1]
        totals = np.pad(np.sqrt(edges).cumsum(0, dtype=float).cumsum(1), ((1, 0), (1, 0)))
        high, wide = height // _BLOCK, width // _BLOCK
        scores = totals[high:, wide:] - totals[:-high, wide:]
        scores += totals[:-high, :-wide] - totals[high:, :-wide]
        row, column = np.unravel_index(scores.argmax(), scores.shape)
        if scores[row, column] > _RICHER * scores[down // _BLOCK, across // _BLOCK]:
            down, across = int(row) * _BLOCK, int(column) * _BLOCK
    return Region(seen.top + down, seen.left + across, height, width)
