"""The volumes that are filtered together, and the bar that steps through those of a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QIcon,
    QKeyEvent,
    QPainter,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QToolButton,
    QWidget,
)

from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.parts import (
    action_button,
    dressed,
    in_column,
    in_row,
    label_of,
    plain_tip,
    set_help,
    swatch,
    tool_button,
    tool_row,
)
from kernelscope.images.scan import MAX_COMPONENTS
from kernelscope.images.volume import Volume

_VOLUME = Qt.ItemDataRole.UserRole


class _ComponentList(QListWidget):
    """Rows change places by dragging; files can be dropped between them."""

    moved = Signal()
    dropped = Signal(object)
    delete_pressed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setAcceptDrops(True)
        self.setUniformItemSizes(True)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.model().rowsMoved.connect(lambda: self.moved.emit())
        stylist().restyled.connect(self._restyle)

    def fit(self) -> None:
        row = max(self.sizeHintForRow(0), self.fontMetrics().height())
        self.setFixedHeight(max(1, self.count()) * row + 6)

    def _restyle(self) -> None:
        self.doItemsLayout()
        self.fit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
        else:
            super().dragEnterEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
        else:
            super().dragMoveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if event.mimeData().hasUrls():
            urls = event.mimeData().urls()
            self.dropped.emit([Path(url.toLocalFile()) for url in urls if url.isLocalFile()])
            event.acceptProposedAction()
        else:
            super().dropEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)


class ComponentsPanel(QWidget):
    """One to four volumes in the order of the filter's components; one of them is shown."""

    chosen = Signal(int)  # the component in this place shall be shown
    reordered = Signal(object)
    """`list of Volume`: The user put the volumes into this order, or took one away."""
    add_wanted = Signal(object)  # `list of Path`: Files to add; empty to let the user choose

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("components")
        set_help(self, "volumes")
        self._list = dressed(
            _ComponentList(self),
            "componentList",
            "Volumes",
            tip="Volumes of one object that are filtered together, such as T1w, T2w and PDw of a "
            "head (multispectral MRI). Drag them into another order, "
            "drop files to add them, choose the one to look at.",
        )
        self._add = tool_button(
            "Add…",
            "addComponent",
            lambda: self.add_wanted.emit([]),
            "Add a volume of the same object, such as another contrast of a head",
        )
        self._remove = tool_button(
            "Remove", "removeComponent", self._remove_current, "Remove the selected volume"
        )
        row = in_row(label_of("V&olumes", self._list), 1, self._add, self._remove)
        in_column(row, self._list, of=self, margins=(9, 6, 9, 0), spacing=4)
        self._list.currentRowChanged.connect(self._on_row)
        self._list.moved.connect(lambda: self.reordered.emit(self._volumes()))
        self._list.dropped.connect(self.add_wanted)
        self._list.delete_pressed.connect(self._remove_current)

    def choose(self, index: int) -> None:
        self._list.setCurrentRow(index)

    def show_volumes(self, volumes: Sequence[Volume], current: int) -> None:
        with QSignalBlocker(self._list):
            self._list.clear()
            for volume in volumes:
                item = QListWidgetItem(volume.title)
                item.setData(_VOLUME, volume)
                item.setToolTip("\n".join((volume.describe(), *volume.notices)))
                self._list.addItem(item)
            self._list.setCurrentRow(current)
        self._list.fit()
        self._add.setEnabled(len(volumes) < MAX_COMPONENTS)
        self._remove.setEnabled(len(volumes) > 1)

    def _volumes(self) -> list[Volume]:
        return [self._list.item(row).data(_VOLUME) for row in range(self._list.count())]

    def _on_row(self, row: int) -> None:
        if row >= 0:
            self.chosen.emit(row)

    def _remove_current(self) -> None:
        volumes = self._volumes()
        if len(volumes) > 1:
            del volumes[max(0, self._list.currentRow())]
            self.reordered.emit(volumes)


_KEYS = 9  # channels that have a key

_NOTE = 18  # most room for a name, in heights of a line


def _eye(colour: str) -> QIcon:
    """Return a square of a colour, and its outline for a channel that is hidden."""
    hidden = swatch(colour)
    hidden.fill(Qt.GlobalColor.transparent)
    painter = QPainter(hidden)
    painter.setPen(QColor(colour))
    painter.drawRect(hidden.rect().adjusted(0, 0, -1, -1))
    painter.end()
    icon = QIcon(hidden)
    icon.addPixmap(swatch(colour), QIcon.Mode.Normal, QIcon.State.On)
    return icon


class VolumeStepBar(QWidget):
    """A label, a slider and a button that plays; hidden while there is a single volume."""

    chosen = Signal(int)  # show the volume at this index
    played = Signal(bool)  # show one after the other, or stop doing so
    eyed = Signal(int)  # draw this channel of a composite, or hide it

    def __init__(
        self,
        actions: tuple[QAction, QAction],
        parent: QWidget | None = None,
        *,
        beside_times: bool = False,
    ) -> None:
        """`beside_times`: it is for channels only, and keys and playing are of another bar."""
        super().__init__(parent)
        name = "channel" if beside_times else "volume"
        self.setObjectName(f"{name}Steps")
        set_help(self, "volumes#volumes-of-a-file")
        self._label = dressed(QLabel(self), f"{name}Step")
        tip = "" if beside_times else "Full stop and comma step forwards and backwards"
        self._slider = dressed(Slider(self), f"{name}StepSlider", tip=tip)
        self._label.setBuddy(self._slider)
        self._play = dressed(QToolButton(self), f"play{name.capitalize()}sButton")
        self._play.setCheckable(True)
        self._play.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # For channels, and for files.
        self._composite, self._all = map(action_button, actions)
        self._eyes = tool_row(f"{name}Eyes")
        self._eyes.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._named: list[tuple[str, str]] = []
        chosen = self._composite, self._eyes, self._all
        parts = self._label, (self._slider, 1), self._play, *chosen
        in_row(*parts, of=self, margins=(2, 0, 2, 0), spacing=6)
        self._slider.valueChanged.connect(self.chosen)
        self._play.toggled.connect(self._on_toggled)
        self._on_toggled(False)
        self._play.setVisible(not beside_times)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    @property
    def playing(self) -> bool:
        return self._play.isChecked()

    def set_playing(self, playing: bool) -> None:
        self._play.setChecked(playing)

    def show_place(
        self, kind: str, index: int, count: int, note: str, *, of_file: bool = True
    ) -> None:
        """Show the place in `count` volumes of a `kind`; `note`: a name, or “reading”.

        `of_file`: they are those of one file, and not files that were opened together.
        """
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, count - 1)
            self._slider.setValue(index)
        self._slider.setAccessibleName(kind)
        metrics = self._label.fontMetrics()
        elided = metrics.elidedText(note, Qt.TextElideMode.ElideMiddle, _NOTE * metrics.height())
        text = f"{kind}  {index + 1} / {count}"
        self._label.setText(f"{text}  {elided}" if note else text)
        self._label.setToolTip(plain_tip(note))
        # Or the slider would jump while the number grows by a digit.
        self._label.setMinimumWidth(metrics.horizontalAdvance(f"{kind}  {count} / {count}"))
        self._composite.setVisible(kind == "Channel")
        self._all.setVisible(of_file)
        self.setVisible(count > 1)

    def show_eyes(self, channels: list[tuple[str, str]], drawn: Sequence[bool]) -> None:
        """Offer the channels of a composite, names and colours; none: it is no composite."""
        if channels != self._named:
            self._named = channels
            self._name_eyes()
        for action, on in zip(self._eyes.actions(), drawn, strict=True):
            action.setChecked(on)
        self._eyes.setVisible(bool(channels))

    def _name_eyes(self) -> None:
        actions = self._eyes.actions()
        for number, (name, colour) in enumerate(self._named):
            if number == len(actions):  # the others stay, with the keyboard on one of them
                actions.append(action := self._eyes.addAction(""))
                action.setCheckable(True)
                action.triggered.connect(partial(self.eyed.emit, number))
            action = actions[number]
            action.setIcon(_eye(colour))
            action.setText(name.replace("&", "&&"))
            key = f" (Ctrl+Alt+{number + 1})" if number < _KEYS else ""
            action.setToolTip(plain_tip(f"Draw or hide {name}{key}"))
            button = self._eyes.widgetForAction(action)
            dressed(button, f"{self.objectName()}Eye{number + 1}", name)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        for action in actions[len(self._named) :]:
            self._eyes.removeAction(action)
            action.deleteLater()

    def _on_toggled(self, playing: bool) -> None:
        self._play.setText("Stop" if playing else "Play")
        self._play.setAccessibleName("Stop playing" if playing else "Play the volumes")
        self._play.setToolTip("Show the volumes one after the other, again and again")
        self.played.emit(playing)
