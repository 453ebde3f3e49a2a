"""File > Batch: a recipe on many files, with a queue that can be paused, stopped and resumed.

    files dropped or added -> [background: find_items] -> queue
    Start -> [background: BatchRun] -> news, taken ten times a second -> queue

The work is that of ``kernelscope.big.batch``, as on the command line, with the same journal: a
batch that was stopped goes on where it was, also after the program was closed.
"""

from __future__ import annotations

import html
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QSize,
    Qt,
    QTimer,
    QUrl,
    Signal,
)
from PySide6.QtGui import (
    QBrush,
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPalette,
    QPixmap,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QHeaderView,
    QLabel,
    QProgressBar,
    QPushButton,
    QStackedLayout,
    QTableView,
    QWidget,
)

from kernelscope.base.errors import AppError
from kernelscope.base.text import one_line
from kernelscope.big.batch.item import FileState, Handling
from kernelscope.big.batch.listing import FoundFiles, find_items
from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs
from kernelscope.engine.recipe import Recipe
from kernelscope.files import READABLE, WRITABLE, read_image, read_recipe
from kernelscope.files.volumes import (
    READABLE_VOLUMES,
    WRITABLE_VOLUMES,
    is_dicom,
    is_volume,
    read_volume,
)
from kernelscope.gui.model.batch_run import (
    AS_INPUT,
    KEEP,
    REPLACE,
    BatchOrder,
    BatchQueue,
    BatchRun,
    BatchSettings,
    FileRow,
    default_out,
    described,
    refused,
)
from kernelscope.gui.model.gallery import thumbnail
from kernelscope.gui.tools.file_dialogs import folder_for, name_filter
from kernelscope.gui.tools.preferences import QUALITY_OPTION, USUAL, jpeg_quality
from kernelscope.gui.widgets import messages, theme
from kernelscope.gui.widgets.form import Form, Listed, Text, Tick
from kernelscope.gui.widgets.parts import (
    ElidedLabel,
    Index,
    dressed,
    in_column,
    in_row,
    plain_tip,
    push_button,
)
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tiles import draw_thumbnail
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.scan import Scan
from kernelscope.schema.devices import Device

_RECIPES = "Recipes (*.json);;All files (*)"
_STEPS = (("Steps of the picture in front", None),)
_AS_BEGUN = "Steps as the batch began"
_DEVICES = {Device.AUTO: "Automatic", Device.CPU: "CPU", Device.GPU: "GPU"}
_WRITABLE = (*WRITABLE, *WRITABLE_VOLUMES)
_FORMATS = tuple(
    (f"{kind.name} ({kind.suffixes[0]})", kind.suffixes[0])
    for number, kind in enumerate(_WRITABLE)
    if kind.suffixes[0] not in {each.suffixes[0] for each in _WRITABLE[:number]}
)

_OPTIONS = (
    Listed("batchRecipe", "Rec&ipe", None, "The steps that each file goes through", _STEPS),
    Listed(
        "batchFormat",
        "For&mat",
        "",
        "The format of the results",
        entries=((AS_INPUT[0].upper() + AS_INPUT[1:], ""), *_FORMATS),
    ),
    Text("batchOut", "Output &folder", help="Files of folders keep their places below it"),
    Listed(
        "batchThere",
        "Exis&ting results",
        False,
        "Files in the output folder that have the names of results",
        entries=((KEEP, False), (REPLACE, True)),
    ),
    Listed("batchDevice", "De&vice", Device.AUTO, "Where to compute"),  # see `set_devices`
    Tick(
        "batchLossy",
        "Allo&w losses of the format",
        help="Round, or drop transparency and colour, where a format cannot keep them",
    ),
    replace(QUALITY_OPTION, name="batchQuality", label="JPEG &quality"),
)


class BatchForm(Form):
    """Edits a `BatchSettings` and chooses a recipe: a file, or the `steps` of the main window.

    A batch holds the steps with which it began, also when others are in the main window.
    """

    places_changed = Signal()  # results go to other places, or can be written there or not

    def __init__(self, steps: Callable[[], Recipe], parent: QWidget | None = None) -> None:
        super().__init__("batchForm", _OPTIONS, parent, by_hand=True)
        self._steps = steps
        self._file: tuple[str, Recipe] | None = (
            None  # the recipe file that was opened last, by name
        )
        self._held: Recipe | None = None  # steps of a batch that is not over
        self._chosen_out = self._out_text = ""
        self._usable: Collection[str] = ()
        self.description = ElidedLabel(self)
        theme.set_role(self.description, "note")
        self.refusals = dressed(ElidedLabel(self), "batchRefusals")
        theme.set_role(self.refusals, "problem")
        self._lay_out()
        self.set_devices(())
        self.editors["batchOut"].editingFinished.connect(self.take_out)
        self.changed.connect(self._on_option)
        self.show_recipe()

    def _on_option(self, name: str) -> None:
        if name == "batchRecipe":
            self.show_recipe()
        elif name == "batchFormat":
            self._show_quality()
        if name in ("batchRecipe", "batchFormat", "batchLossy"):
            self.places_changed.emit()

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(4, 2)
        for row, column, name in (
            (0, 0, "batchRecipe"),
            (2, 0, "batchOut"),
            (3, 0, "batchThere"),
            (0, 3, "batchFormat"),
            (2, 3, "batchDevice"),
            (4, 3, "batchQuality"),
        ):
            grid.addWidget(self.labels[name], row, column)
            grid.addWidget(self.editors[name], row, column + 1)
        tip = "Take the steps from a recipe file"
        recipe = push_button(
            "O&pen recipe…", "batchOpenRecipe", self._choose_recipe, "Open recipe", tip=tip
        )
        tip = "Choose the output folder"
        choose = push_button("C&hoose…", "batchChooseOut", self._choose_out, tip, tip=tip)
        grid.addWidget(recipe, 0, 2)
        grid.addWidget(choose, 2, 2)
        grid.addWidget(self.editors["batchLossy"], 3, 4)
        grid.addWidget(self.description, 1, 1, 1, 2)
        grid.addWidget(self.refusals, 1, 3, 1, 2)

    # --- settings ---

    def settings(self) -> BatchSettings:
        value = self.values
        return BatchSettings(
            *(self._chosen_out, value["batchFormat"], value["batchDevice"]),
            *(value["batchThere"], value["batchLossy"], value["batchQuality"]),
        )

    def show_settings(self, settings: BatchSettings) -> None:
        """Show settings that were kept; a choice that is not offered any more is left out."""
        suffix = settings.suffix if settings.suffix in dict(_FORMATS).values() else ""
        self._chosen_out = self._out_text = settings.out
        self.show_values(
            batchOut=settings.out,
            batchFormat=suffix,
            batchDevice=settings.device,
            batchThere=settings.replaces,
            batchLossy=settings.lossy,
            batchQuality=settings.quality,
        )
        self._show_quality()

    def _show_quality(self) -> None:
        """Show the quality where some results may be JPEGs."""
        shown = self.suffix in (None, ".jpg")
        for widget in (self.labels["batchQuality"], self.editors["batchQuality"]):
            widget.setVisible(shown)

    def set_usual_quality(self, own: int | None) -> None:
        """Name the quality of results where none is chosen: the user's own, or the usual one."""
        text = USUAL if own is None else f"{own}, as in Preferences"
        self.editors["batchQuality"].setSpecialValueText(text)

    def set_devices(self, available: Collection[str]) -> None:
        self._usable = available
        self.offer(
            "batchDevice",
            ((name, each) for each, name in _DEVICES.items() if self._is_usable(each)),
        )

    def _is_usable(self, device: Device) -> bool:
        return device is not Device.GPU or device in self._usable

    @property
    def device(self) -> Device:
        chosen: Device = self.values["batchDevice"]
        return chosen if self._is_usable(chosen) else Device.AUTO

    @property
    def folder(self) -> Path | None:
        text = self.values["batchOut"].strip()
        return Path(text).expanduser().absolute() if text else None

    @property
    def suffix(self) -> str | None:
        return self.values["batchFormat"] or None

    def offer_out(self, folder: Path) -> None:
        if not self._chosen_out:
            self._out_text = str(folder)
            self.show_values(batchOut=self._out_text)

    def take_out(self) -> None:
        text = self.values["batchOut"]
        if text != self._out_text:
            text = str(self.folder or "")  # so that a relative one shows where it is
            self.show_values(batchOut=text)
            self._out_text = self._chosen_out = text
            self.places_changed.emit()
            self.changed.emit("batchOut")

    def _choose_out(self) -> None:
        def use(paths: list[Path]) -> None:
            self.editors["batchOut"].setText(str(paths[0]))
            self.take_out()

        messages.choose_paths(
            *(self, "Output Folder", "batchOutDialog", use),
            folder=self.values["batchOut"],
            mode=QFileDialog.FileMode.Directory,
        )

    # --- recipe ---

    def recipe(self) -> Recipe:
        return self.values["batchRecipe"] or self._steps()

    def valid_recipe(self) -> Recipe | None:
        with suppress(AppError):  # `show_recipe` shows it
            return self.recipe()
        return None

    def show_recipe(self) -> None:
        try:
            text = described(self.recipe())
        except AppError as error:
            theme.set_role(self.description, "problem")
            self.description.set_full_text(str(error))
        else:
            theme.set_role(self.description, "note")
            self.description.set_full_text(text)

    def _choose_recipe(self) -> None:
        dialog = messages.choose_text_to_open(self, "Recipe", self.read_recipe, _RECIPES)
        dialog.setObjectName("batchRecipeDialog")

    def read_recipe(self, path: Path) -> None:
        recipe = read_recipe(path)
        self._file = one_line(path.name), recipe
        self._offer_recipes(recipe)
        self.editors["batchRecipe"].setItemData(
            1, plain_tip(str(path)), Qt.ItemDataRole.ToolTipRole
        )

    def hold(self, recipe: Recipe) -> None:
        """Keep the steps with which a batch begins, unless a file has them."""
        self._held = None if self._file is not None and self._file[1] is recipe else recipe
        self._offer_recipes(recipe)

    def let_go(self) -> None:
        """Follow the main window again: the batch is over."""
        held, self._held = self._held, None
        chosen = self.values["batchRecipe"]
        self._offer_recipes(None if chosen is held else chosen)

    def _offer_recipes(self, chosen: Recipe | None) -> None:
        held = [(_AS_BEGUN, self._held)] if self._held is not None else []
        file = [self._file] if self._file is not None else []
        self.offer("batchRecipe", (*_STEPS, *file, *held))
        self.show_values(batchRecipe=chosen)
        self.show_recipe()


SIZE = QSize(48, 36)

_TOPIC = "batch thumbnail"
_SIDE = 2 * 48  # longer side in pixels: sharp on screens of 200 %

_MOST_KEPT, _MOST_WANTED = 500, 40
"""Thumbnails kept, 14 MB at most; and files that wait for one: more than fit on a screen."""

_MOST_BYTES = 1 << 26  # larger files are not read twice for a thumbnail


class Thumbnails(QObject):
    """Reads one file at a time in the background, the one asked for last first."""

    made = Signal(Path)  # there is a thumbnail of this file now

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self._made: OrderedDict[Path, QPixmap] = OrderedDict()
        self._wanted: list[Path] = []
        self._busy = False
        self.empty = _framed(None)
        """In place of a thumbnail that is not there yet, or cannot be made."""

    def of(self, path: Path) -> QPixmap:
        """Return the thumbnail of a file; the first call begins to make it."""
        if path in self._made:
            self._made.move_to_end(path)
            return self._made[path]
        if path in self._wanted:
            self._wanted.remove(path)
        self._wanted.append(path)
        del self._wanted[:-_MOST_WANTED]  # those have been scrolled out of view
        self._next()
        return self.empty

    def forget(self) -> None:
        """Make none but the one that is being made."""
        self._wanted.clear()

    def _next(self) -> None:
        if self._busy or not self._wanted:
            return
        path, self._busy = self._wanted.pop(), True

        def keep(pixels: NDArray[np.uint8] | None) -> None:
            self._made[path] = _framed(pixels)
            if len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
            self._busy = False
            self.made.emit(path)
            self._next()

        # A bug of a reader is reported when the batch reads the file.
        self._background.start(_TOPIC, lambda: _read(path), keep, lambda _: keep(None))


def _read(path: Path) -> NDArray[np.uint8] | None:
    try:
        if path.is_dir() or path.stat().st_size > _MOST_BYTES:
            return None
        if is_volume(path):
            alone = (path,) if is_dicom(path) else ()  # one slice, and not its whole series
            first = read_volume(path, 1, nan=0.0, slices=alone)
            return thumbnail(Scan((first,)), _SIDE)
        return thumbnail(read_image(path, nan=0.0), _SIDE)
    except (AppError, OSError):
        return None


def _framed(pixels: NDArray[np.uint8] | None) -> QPixmap:
    frame = QPixmap(SIZE * 2)
    painter = QPainter(frame)
    draw_thumbnail(painter, frame.rect(), pixels)
    painter.end()
    frame.setDevicePixelRatio(2)
    return frame


_HEADINGS = ("File", "Size", "State", "Result")
_FILE, _SIZE, _STATE, _RESULT = range(4)
_Roles = Qt.ItemDataRole
_ROOT = QModelIndex()

_BUSY = (FileState.READING, FileState.FILTERING, FileState.WRITING)


class BatchRows(QAbstractTableModel):
    """The rows of a queue."""

    def __init__(self, queue: BatchQueue, thumbnails: Thumbnails) -> None:
        super().__init__(thumbnails)
        self._queue, self._thumbnails = queue, thumbnails
        thumbnails.made.connect(self._on_made)

    def reset(self) -> None:
        self.beginResetModel()
        self.endResetModel()

    def refresh(self, places: Iterable[int]) -> None:
        if rows := list(places):
            self.dataChanged.emit(self.index(min(rows), 0), self.index(max(rows), _RESULT))

    def row(self, index: Index) -> FileRow:
        return self._queue.rows[index.row()]

    # --- Qt ---

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._queue)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(_HEADINGS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _Roles.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == _Roles.DisplayRole:
            return _HEADINGS[section]
        return None

    def data(self, index: Index, role: int = _Roles.DisplayRole) -> Any:
        row, column = self.row(index), index.column()
        if role == _Roles.DisplayRole:
            return _text(row, column)
        if role == _Roles.DecorationRole and column == _FILE:
            return self._thumbnails.of(row.item.source)
        if role == _Roles.ToolTipRole:
            return _tip(row, column)
        if role == _Roles.AccessibleTextRole and column == _FILE:
            parts = _name(row), row.state_name, row.size, row.remark
            return one_line(", ".join(filter(None, parts)))
        if role == _Roles.ForegroundRole:
            return _ink(row, column)
        return None

    def _on_made(self, path: Path) -> None:
        place = self._queue.place(path)
        if place is not None:
            index = self.index(place, _FILE)
            self.dataChanged.emit(index, index, [_Roles.DecorationRole])


def _text(row: FileRow, column: int) -> str:
    match column:
        case 0:
            return _name(row)
        case 1:
            return row.size
        case 2:
            return row.state_name.capitalize()
    return one_line(row.remark)


def _name(row: FileRow) -> str:
    name, count = one_line(row.item.source.name), len(row.item.slices)
    return f"{name}, {count} slices" if count > 1 else name


def _ink(row: FileRow, column: int) -> QBrush | None:
    palette = QGuiApplication.palette()
    if column in (_STATE, _RESULT) and row.state is FileState.FAILED:
        return QBrush(theme.error_text(palette))
    if column in (_STATE, _RESULT) and row.is_cut_off:
        return QBrush(theme.warning_text(palette))
    if column == _STATE and row.state in _BUSY:
        return QBrush(palette.color(QPalette.ColorRole.Link))
    if column == _FILE or row.state in _BUSY:
        return None
    return QBrush(theme.quiet_text(palette))


def _tip(row: FileRow, column: int) -> str:
    if column == _RESULT and row.remark:
        text = row.parts or row.remark
    else:
        text = f"{one_line(str(row.item.source))}\nThe result is {one_line(str(row.item.target))}."
    # Qt would take a name with “<b>” in it for HTML.
    return "<br>".join(html.escape(one_line(line)) for line in text.split("\n"))


class BatchTable(QTableView):
    """Shows the files; Delete removes those that are selected."""

    removing = Signal(list)  # places in the queue
    result_wanted = Signal(object)  # `Path`: Return or a double click on a file that is done

    def __init__(self, rows: BatchRows, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        dressed(self, "batchTable", "Files of the batch")
        self.setModel(rows)
        self._shown = rows
        self.setIconSize(SIZE)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        down, across = self.verticalHeader(), self.horizontalHeader()
        down.hide()
        down.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # no row is measured
        down.setDefaultSectionSize(SIZE.height() + 6)
        across.setHighlightSections(False)
        across.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        across.setStretchLastSection(True)
        self._space_columns()
        self.activated.connect(self._open_result)

    def _space_columns(self) -> None:
        unit = self.fontMetrics().averageCharWidth()
        for column, characters in ((_FILE, 44), (_SIZE, 15), (_STATE, 20)):
            self.horizontalHeader().resizeSection(column, characters * unit)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._space_columns()

    def _open_result(self, index: QModelIndex) -> None:
        row = self._shown.row(index)
        if row.state is FileState.DONE:
            self.result_wanted.emit(row.item.target)

    def selected(self) -> list[int]:
        rows = [each.row() for each in self.selectionModel().selectedRows()]
        return [row for row in rows if not self.isRowHidden(row)]  # to select all takes those too

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Delete):
            self.removing.emit(self.selected())
        else:
            super().keyPressEvent(event)


_NEWS_MS = 100
_NO_FILES = "The queue is empty: add files"
_EMPTY = "Drop pictures, volumes or folders here,\nor add them with the buttons above."


class BatchWindow(ToolWindow):
    """Adds files to a queue and applies a recipe to them: a file, or the window's `steps`.

    ``opened()`` returns the files that the main window shows. A batch goes on while the window is
    closed.
    """

    changed = Signal()  # of `progress`
    result_wanted = Signal(object)  # `Path`: the result of a file is to be shown

    def __init__(
        self,
        background: Background,
        backends: Mapping[str, Backend],
        settings: Settings,
        steps: Callable[[], Recipe],
        costs: Costs,
        opened: Callable[[], Sequence[Path]],
        parent: QWidget | None = None,
    ) -> None:
        flags = Qt.WindowType.Window  # the picture can be in front of it
        super().__init__("batchWindow", "Batch", parent, help_page="window#batches", flags=flags)
        self.setSizeGripEnabled(True)
        self.setAcceptDrops(True)
        self._background, self._backends, self._settings = background, backends, settings
        self._costs, self._opened = costs, opened
        self._inputs: list[Path] = []
        self._left_out: set[Path] = set()
        self._listing = self._starts = False
        """Whether files are looked for, and whether the batch starts when they are found."""
        self._checked: Recipe | None = None  # with it, those that will fail are listed
        self._run: BatchRun | None = None
        self._stopped: BatchOrder | None = None
        """The order of a batch that was stopped, which Start resumes."""
        self._then: Callable[[], object] | None = None  # to be called when the batch has ended
        self._unseen = False  # whether it ended while the window was closed
        self.queue = BatchQueue()
        self._thumbnails = Thumbnails(background, self)
        self._rows = BatchRows(self.queue, self._thumbnails)
        self.table = BatchTable(self._rows, self)
        self.form = BatchForm(steps, self)
        self._make_controls()
        self._lay_out()
        self._timer = QTimer(self, interval=_NEWS_MS)
        self._timer.timeout.connect(self._take_news)
        self._connect()
        self.form.show_settings(BatchSettings.of(settings.texts("batch")))
        self.form.set_usual_quality(jpeg_quality(settings))
        self._show_state()

    # --- widgets ---

    def _make_controls(self) -> None:
        self._buttons: dict[str, QPushButton] = {}
        self._tips: dict[str, str] = {}
        below = "Add all pictures and volumes in a folder and below it"
        selected = "Take the selected files out of the queue (Delete)"
        opened = "Add the files that are open"
        finished = "Stop; the files that are being written are finished"
        for id_, text, tip, action in (
            ("Add", "&Add files…", "Add pictures and volumes", self._choose_files),
            ("AddFolder", "Add f&older…", below, self._choose_folder),
            ("AddOpen", "Add ope&n", opened, lambda: self.add(self._opened())),
            ("Remove", "R&emove", selected, lambda: self.remove(self.table.selected())),
            ("Clear", "Clea&r", "Take all files out of the queue", self.clear),
            ("OpenFolder", "Open Fol&der", "Show the results in the desktop", self._open_folder),
            ("Start", "&Start", "Filter the files", self.press_start),
            ("Cancel", "&Cancel", finished, self.cancel),
            ("Close", "Close", "Close this window; a batch goes on", self.reject),
        ):
            self._tips[id_] = tip
            self._buttons[id_] = push_button(text, f"batch{id_}", action, tip=tip)
        theme.set_role(self._buttons["Start"], "primary")
        self.only_failed = dressed(
            QCheckBox("On&ly failed", self),
            "batchOnlyFailed",
            "Only failed",
            tip="Show only the files that failed",
        )
        self._note = dressed(ElidedLabel(self), "batchNote")
        theme.set_role(self._note, "note")
        self._state = dressed(QLabel(self), "batchState")
        self._bar = dressed(QProgressBar(self), "batchProgress", "Progress of the batch")
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)

    def _lay_out(self) -> None:
        queue = [self._buttons[id_] for id_ in ("Add", "AddFolder", "AddOpen", "Remove", "Clear")]
        batch = [self._buttons[id_] for id_ in ("OpenFolder", "Start", "Cancel", "Close")]
        top = in_row(*queue, (self._note, 1), self.only_failed)
        bottom = in_row((self._state, 1), *batch)
        empty = dressed(QLabel(_EMPTY, self), "batchEmpty")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(empty, "drop")
        self._stack = QStackedLayout()
        self._stack.addWidget(empty)
        self._stack.addWidget(self.table)
        in_column(top, (self._stack, 1), self.form, self._bar, bottom, of=self, spacing=10)
        self.take_room(140, 44, QSize(1060, 660))
        unit, line = self.fontMetrics().averageCharWidth(), self.fontMetrics().height()
        # Smaller, the queue would have room for one file, and the lists would be cut off.
        self.setMinimumSize(min(110 * unit, 720), min(30 * line, 420))

    def _connect(self) -> None:
        self.table.removing.connect(self.remove)
        self.table.result_wanted.connect(self.result_wanted)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._show_buttons())
        self.only_failed.toggled.connect(lambda _: self._show_rows())
        self.form.places_changed.connect(self._list)
        self.form.changed.connect(
            lambda _: self._settings.set_texts("batch", self.form.settings().texts())
        )

    # --- files ---

    def _done(self) -> list[Path]:
        rows = self.queue.rows
        return [each.item.target for each in rows if each.state is FileState.DONE]

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._done()[0].parent)))

    def add(self, paths: Sequence[Path]) -> None:
        if self.queue.running or not paths:
            return
        self._left_out.difference_update(paths)
        self._inputs += [path.absolute() for path in paths if path.absolute() not in self._inputs]
        self.form.offer_out(default_out(self._inputs))
        self._list()

    def remove(self, places: Collection[int]) -> None:
        if self.queue.running:
            return
        chosen = set(places)
        self._left_out |= {self.queue.rows[place].item.source for place in chosen}
        self.queue.show(self.queue.without(chosen))
        self._show_rows()

    def clear(self) -> None:
        if not self.queue.running:
            self._inputs.clear()
            self._left_out.clear()
            self._list()

    def _list(self) -> None:
        folder, suffix = self.form.folder, self.form.suffix
        inputs, left_out = list(self._inputs), frozenset(self._left_out)
        if self.queue.running:
            return
        if not inputs or folder is None:
            self._background.forget("batch list")
            self._on_listed((FoundFiles(), ""))
            return

        recipe, handling = self.form.valid_recipe(), Handling(lossy=self.form.settings().lossy)
        self._checked = recipe

        def find() -> tuple[FoundFiles, str]:
            found = find_items(inputs, folder, suffix)
            found.items = [item for item in found.items if item.source not in left_out]
            return found, refused(found.items, recipe, handling) if recipe else ""

        self._listing = True
        self._show_state()
        self._background.start("batch list", find, self._on_listed, self._on_unlisted)

    def _on_listed(self, listed: tuple[FoundFiles, str]) -> None:
        self._listing = False
        found, refusals = listed
        self.form.refusals.set_full_text(refusals)
        notes = [f"{path} cannot be read: {reason}." for path, reason in found.problems]
        notes += found.remarks
        if self._inputs and self.form.folder is None:
            notes.append("Choose an output folder.")
        self._note.set_full_text(" ".join(notes))
        self.queue.show(found.items)
        self._show_rows()
        if self._starts:
            self.start()

    def _on_unlisted(self, error: Exception) -> None:
        self._on_listed((FoundFiles(), ""))
        if isinstance(error, AppError):
            self._inputs.clear()
            self._note.set_full_text(str(error))
            self._show_buttons()
        else:
            self._background.report(error)

    def _choose_files(self) -> None:
        kinds = (*READABLE, *READABLE_VOLUMES)
        suffixes = dict.fromkeys(suffix for kind in kinds for suffix in kind.suffixes)
        every = f"All pictures and volumes ({' '.join(f'*{each}' for each in suffixes)})"
        messages.choose_paths(
            *(self, "Add Files", "batchAddDialog", self.add),
            folder=folder_for(self._settings, "open"),
            kinds=dict.fromkeys((every, *map(name_filter, kinds), "All files (*)")),
            mode=QFileDialog.FileMode.ExistingFiles,
        )

    def _choose_folder(self) -> None:
        messages.choose_paths(
            *(self, "Add Folder", "batchFolderDialog", self.add),
            folder=folder_for(self._settings, "open"),
            mode=QFileDialog.FileMode.Directory,
        )

    # --- the batch ---

    @property
    def running(self) -> bool:
        return self.queue.running

    def press_start(self) -> None:
        if self._run is None:
            self.start()
        elif self.queue.paused:
            self._run.pause.go_on()
            self.queue.go_on(time.monotonic())
        else:
            self._run.pause.pause()
            self.queue.pause(time.monotonic())
        self._show_state()

    def start(self) -> None:
        self.form.take_out()  # what is typed in its field
        self._starts, folder = self._listing, self.form.folder
        if self._run is not None or self._listing or folder is None or not self.queue.rows:
            return
        try:
            recipe = self.form.recipe()
        except AppError as error:
            messages.show_error(self, error)
            return
        settings = replace(self.form.settings(), device=self.form.device)
        items = tuple(row.item for row in self.queue.rows)
        quality = settings.quality or jpeg_quality(self._settings)
        order = BatchOrder(recipe, items, folder, settings, not settings.replaces, quality)
        if order.same_work(self._stopped):
            order = replace(order, resumes=True)
        run = self._run = BatchRun(order, self._backends, self._costs)
        self._stopped = None
        self.form.hold(recipe)
        self.only_failed.setChecked(False)
        self.queue.begin(time.monotonic())
        self._rows.refresh(range(len(items)))
        self._timer.start()
        self._show_state()
        self._background.start(
            "batch", run.work, lambda _: self._on_ended(), self._on_failed, must_finish=True
        )

    def cancel(self) -> None:
        if self._run is not None and not self.queue.stopping:
            self._run.cancel()
            self.queue.stop(time.monotonic())
            self._show_state()

    def _take_news(self) -> None:
        assert self._run is not None
        noted = {self.queue.note(event) for event in self._run.news()}
        self._rows.refresh(place for place in noted if place is not None)
        self._show_state()

    def _on_ended(self) -> None:
        run = self._run
        assert run is not None
        self._take_news()
        self._timer.stop()
        self._run = None
        self.queue.end(time.monotonic())
        self._stopped = run.order if self.queue.left else None
        if self._stopped is None:
            self.form.let_go()
        self._unseen = not self.isVisible()
        self._show_rows()
        then, self._then = self._then, None
        if then is not None:
            then()

    def _on_failed(self, error: Exception) -> None:
        self._then = None
        self._on_ended()
        self._stopped = None
        self.form.let_go()
        self._show_buttons()
        if isinstance(error, AppError):
            messages.show_error(self if self.isVisible() else self.parentWidget(), error)
        else:
            self._background.report(error)

    # --- what is shown ---

    def refresh(self, available: Collection[str] | None = None) -> None:
        """Show the steps of the main window, the devices there are and whether it has files."""
        if available is not None:
            self.form.set_devices(available)
        self._show_buttons()
        self.form.show_recipe()
        self.form.set_usual_quality(jpeg_quality(self._settings))

    def _show_rows(self) -> None:
        self._rows.reset()
        only = self.only_failed.isChecked() and self.queue.failed
        for place, row in enumerate(self.queue.rows):
            self.table.setRowHidden(place, bool(only) and row.state is not FileState.FAILED)
        self._stack.setCurrentIndex(1 if self.queue.rows else 0)
        self._show_state()

    def _show_state(self) -> None:
        queue = self.queue
        text = "Looking for files…" if self._listing else queue.describe(time.monotonic())
        self._state.setText(text)
        self._bar.setMaximum(max(1, len(queue)))
        self._bar.setValue(queue.ended)
        self.only_failed.setVisible(queue.failed > 0)
        self.form.setEnabled(not queue.running)
        self._show_buttons()
        self.changed.emit()

    def _show_buttons(self) -> None:
        queue, buttons, opened = self.queue, self._buttons, self._opened()
        busy = "Not while the batch is on its way" if queue.running else ""
        stopping = "The files that are being written are finished first" if queue.stopping else ""
        left = {each.absolute() for each in opened} - {*self._inputs}
        selected = self.table.selectionModel().hasSelection()
        for id_, problem in (
            ("Add", busy),
            ("AddFolder", busy),
            ("AddOpen", busy or ("" if left else "They are in the queue")),
            ("Remove", busy or ("" if selected else "Select files first")),
            ("Clear", busy or ("" if queue.rows or self._inputs else _NO_FILES)),
            ("Start", stopping or ("" if queue.rows else self._note.full_text or _NO_FILES)),
            ("Cancel", stopping or ("" if queue.running else "No batch is on its way")),
        ):
            buttons[id_].setEnabled(not problem)
            tip = ". ".join(filter(None, (self._tips[id_], problem)))
            buttons[id_].setToolTip(plain_tip(tip))
        buttons["OpenFolder"].setVisible(bool(self._done()))
        buttons["AddOpen"].setVisible(bool(opened))
        stopped = self._stopped
        resumes = stopped is not None and self.form.valid_recipe() == stopped.recipe
        word = "Re&sume" if resumes else "&Start"
        if queue.running:
            word = "Re&sume" if queue.paused and not queue.stopping else "Pau&se"
        if buttons["Start"].text() != word:
            buttons["Start"].setText(word)
            buttons["Start"].setAccessibleName(word.replace("&", ""))

    @property
    def progress(self) -> str:
        """The files of a batch that is on its way, or ended while this was closed; or empty."""
        shown = self.running or self._unseen
        return self.queue.describe(time.monotonic()) if shown else ""

    # --- closing ---

    def stop(self, then: Callable[[], object]) -> None:
        """Stop the batch; ``then()`` is called when it has ended."""
        if self.running:
            self._then = then
            self.cancel()
        else:
            then()

    def leave(self) -> None:
        self._thumbnails.forget()

    # --- Qt ---

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._unseen = False
        self.changed.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.refresh()
            if self._inputs and self.form.valid_recipe() != self._checked:
                self._list()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if not self.running and any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        urls = event.mimeData().urls()
        self.add([Path(url.toLocalFile()) for url in urls if url.isLocalFile()])
        event.acceptProposedAction()
