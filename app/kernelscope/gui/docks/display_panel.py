"""Level, window, gamma and colours of pictures and of volumes, in a panel that pops up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import QPoint, QSignalBlocker, Qt
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QFrame, QGridLayout, QWidget

from kernelscope.gui.model.display import (
    GAMMAS,
    Colouring,
    ColourMap,
    Display,
    PaneSide,
    colouring,
    dtype_of,
    map_of,
)
from kernelscope.gui.session.canvas_view import DRAWN, CanvasView
from kernelscope.gui.session.session import KIND, Session
from kernelscope.gui.widgets.controls import ChoiceBox, NumberBox, choice_box
from kernelscope.gui.widgets.parts import (
    dressed,
    in_row,
    label_of,
    push_button,
    refill,
    set_help,
    text_label,
)
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume


def place_below(panel: QWidget, button: QWidget) -> None:
    panel.adjustSize()
    place = button.mapToGlobal(QPoint(button.width() - panel.width(), button.height() + 2))
    room = button.screen().availableGeometry()
    place.setX(min(max(place.x(), room.left()), room.right() - panel.width()))
    place.setY(min(max(place.y(), room.top()), room.bottom() - panel.height()))
    panel.move(place)
    panel.show()


_NOTE = (
    "Only the view changes, never the data. In a picture or slice, drag with the right button: "
    "across for the window, up and down for the level."
)

_LIMIT = 1e12


class DisplayPanel(QFrame):
    """Boxes for the display of input and output; follows the view in front."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        dressed(self, "displayPanel", "Level and colours")
        set_help(self, "window#looking")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._session = session
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 10, 12, 10)
        self._grid.setVerticalSpacing(6)

        self._side = self._choice("displaySide", "&Picture", [each.value for each in PaneSide], 0)
        self._linked = dressed(
            QCheckBox("&Output as input", self),
            "displayLinked",
            tip="Draw the output with the levels of the input",
        )
        self._grid.addWidget(self._linked, 0, 2, 1, 2)
        self._low = self._number("displayLow", "&Black", "The value that is drawn black", 1, 0)
        self._high = self._number("displayHigh", "&White", "The value that is drawn white", 1, 2)
        self._level = self._number("displayLevel", "&Level", "The value in the middle", 2, 0)
        self._width = self._number("displayWindow", "Wi&ndow", "From black to white", 2, 2)
        tip = "Below 1 the middle becomes lighter, above 1 darker"
        self._gamma = self._number("displayGamma", "&Gamma", tip, 3, 0)
        self._gamma.setRange(*GAMMAS)
        self._gamma.setDecimals(2)
        self._gamma.setSingleStep(0.1)
        self._map = self._choice("displayMap", "&Colours", (), 4)
        self._difference = self._choice(
            "displayDifference", "&Differences", [ColourMap.DIVERGING, ColourMap.GREY], 5
        )
        self._difference.setToolTip(
            "Colours of the residual and the difference of grey pictures and volumes"
        )
        self._buttons()
        self._note = text_label(_NOTE, "displayNote", "note")
        self._grid.addWidget(self._note, 7, 0, 1, 4)
        self._connect()
        self.refresh()

    def open_below(self, widget: QWidget) -> None:
        self.refresh()
        place_below(self, widget)
        self._low.setFocus()

    @property
    def _view(self) -> CanvasView:
        return self._session.subject.view

    @property
    def side(self) -> PaneSide:
        return PaneSide.INPUT if self._linked.isChecked() else PaneSide(self._side.currentText())

    def refresh(self) -> None:
        displays = self._view.displays
        with QSignalBlocker(self._linked):
            self._linked.setChecked(displays.linked)
        self._side.setEnabled(not displays.linked)
        if displays.linked:
            with QSignalBlocker(self._side):
                self._side.setCurrentText(PaneSide.INPUT)
        with QSignalBlocker(self._difference):
            self._difference.setCurrentText(self._view.difference_map)
        display = displays.of(self.side)
        for widget in (self._low, self._high, self._level, self._width, self._gamma, self._map):
            widget.setEnabled(display is not None)
        if display is None:
            return
        image = displays.image(self.side)
        of = self._view.look.figures_of(image) if isinstance(image, Volume) else ""
        self._note.setText(f"Of {of}: each channel has its own. {_NOTE}" if of else _NOTE)
        whole = image is not None and dtype_of(image).kind in "iu" and display.width >= 100
        digits = 0 if whole else 2 if display.width >= 10 else 4 if display.width >= 0.1 else 7
        for box, value in (
            (self._low, display.low),
            (self._high, display.high),
            (self._level, display.level),
            (self._width, display.width),
        ):
            with QSignalBlocker(box):
                box.setDecimals(digits + (box is self._level and whole))
                box.setRange(10.0**-digits if box is self._width else -_LIMIT, _LIMIT)
                box.setSingleStep(max(display.width / 50, 10.0**-digits))
                box.setValue(value)
        with QSignalBlocker(self._gamma):
            self._gamma.setValue(display.gamma)
        own = map_of(image.channel.colour) if isinstance(image, Volume) else ColourMap.GREY
        self._show_maps(display, own, grey=not isinstance(image, Image) or image.is_grey)

    def _show_maps(self, display: Display, own: Colouring, *, grey: bool) -> None:
        """Offer the maps that suit the picture: one in colour can only be inverted.

        `own`: of the colour that the file states.
        """
        maps = dict.fromkeys((*ColourMap, own, display.colour_map))
        refill(self._map, ((each.value, None) for each in maps), display.colour_map.value)
        model = self._map.model()
        assert isinstance(model, QStandardItemModel)
        for row, each in enumerate(ColourMap):
            model.item(row).setEnabled(grey or each.is_grey)
        self._map.setToolTip("" if grey else "A picture in colour can only be inverted")

    def _connect(self) -> None:
        self._session.when({DRAWN, KIND}, self._follow)
        self._side.currentTextChanged.connect(self.refresh)
        self._linked.toggled.connect(self._link)
        for box in (self._low, self._high):
            box.valueChanged.connect(lambda: self._span(self._low.value(), self._high.value()))
        for box in (self._level, self._width):
            box.valueChanged.connect(self._on_level)
        self._gamma.valueChanged.connect(lambda gamma: self._choose(gamma=gamma))
        self._map.currentTextChanged.connect(lambda name: self._choose(colour_map=colouring(name)))
        self._difference.currentTextChanged.connect(
            lambda name: self._view.choose_difference_map(ColourMap(name))
        )

    def _follow(self) -> None:
        if self.isVisible():
            self.refresh()

    def _link(self, linked: bool) -> None:
        self._view.link(linked)
        self.refresh()

    def _on_level(self) -> None:
        level, width = self._level.value(), self._width.value()
        self._span(level - width / 2, level + width / 2)

    def _span(self, low: float, high: float) -> None:
        display = self._view.displays.of(self.side)
        if display is not None:
            self._view.choose_display(self.side, display.spanning(low, high))

    def _choose(self, gamma: float | None = None, colour_map: Colouring | None = None) -> None:
        display = self._view.displays.of(self.side)
        if display is not None:
            gamma = display.gamma if gamma is None else gamma
            new = replace(display, gamma=gamma, colour_map=colour_map or display.colour_map)
            self._view.choose_display(self.side, new)

    def _buttons(self) -> None:
        automatic = push_button(
            "&Automatic", "displayAutomatic", lambda: self._view.choose_display(self.side, None)
        )
        full = push_button("&Full range", "displayFull", lambda: self._view.choose_full(self.side))
        self._grid.addLayout(in_row(automatic, full, 1), 6, 0, 1, 4)

    def _number(self, name: str, label: str, tip: str, row: int, column: int) -> NumberBox:
        box = dressed(NumberBox(self), name, label.replace("&", ""), tip=tip)
        box.setKeyboardTracking(False)
        box.setMinimumWidth(104)
        self._place(label, box, row, column)
        return box

    def _choice(self, name: str, label: str, texts: Iterable[str], row: int) -> ChoiceBox:
        box = choice_box(name, label.replace("&", ""), texts)
        self._place(label, box, row, 0)
        return box

    def _place(self, label: str, box: QWidget, row: int, column: int) -> None:
        self._grid.addWidget(label_of(label, box), row, column)
        self._grid.addWidget(box, row, column + 1)
