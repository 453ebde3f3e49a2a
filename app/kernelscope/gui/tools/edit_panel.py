"""The versions of a kernel: choosing, keeping and compiling them; messages and wrong pixels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QImage,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QShortcut,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QLabel,
    QPushButton,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.backends.trial.exercises import Comparison, grade_of
from kernelscope.backends.trial.protocol import (
    COMPILE_ONLY,
    ERROR,
    CompilerMessage,
    Ending,
    TrialJob,
)
from kernelscope.base import sandbox
from kernelscope.base.errors import AppError
from kernelscope.engine.control import CancelToken
from kernelscope.gui.model.kernel_edits import FIRST, Edit, Edits, checked_name, digest, files_for
from kernelscope.gui.model.trials import TrialSubject, Tried, Version, times_of, try_subject
from kernelscope.gui.tools.code_view import CodeEditor, CodeView, FindBar, SourceTabs
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.messages import choose_text_to_save, open_dialog, write_text
from kernelscope.gui.widgets.parts import (
    SELECTABLE,
    dressed,
    in_column,
    in_row,
    push_button,
    refill,
    text_label,
)
from kernelscope.gui.widgets.tables import CopyableTree
from kernelscope.gui.widgets.tiles import image_of
from kernelscope.gui.work.background import Background

_STEPS = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}
_RING = 7.0  # radius of the ring around the chosen pixel, on the screen


class WrongPixels(QWidget):
    """The grey output, wrong pixels red and hatched; a click or arrow key chooses one."""

    wrong_pixel_chosen = Signal(int, int)
    """Column and row of a pixel of the part of the picture that was tried."""

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "wrongPixels", "Map of wrong pixels")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._comparison: Comparison | None = None
        self.chosen: tuple[int, int] | None = None
        self._ground = QImage()
        self._mask = QImage()

    def show_comparison(self, comparison: Comparison | None) -> None:
        self._comparison, self.chosen = comparison, None
        if comparison is not None:
            self._ground = _grey(comparison)
            self._mask = _mask(comparison)
            self._choose(comparison.step(-1, 0, 1))
        self.update()

    def sizeHint(self) -> QSize:
        side = 9 * self.fontMetrics().lineSpacing()
        return QSize(side, side)

    def _choose(self, place: tuple[int, int] | None) -> None:
        if place is None or self._comparison is None:
            return
        self.chosen = place
        pixel = self._comparison.pixel(*place)
        self.setAccessibleDescription(
            f"{self._comparison.count} wrong; chosen: column {pixel.x}, row {pixel.y}"
        )
        self.update()
        self.wrong_pixel_chosen.emit(*place)

    def area(self) -> QRectF:
        width, height = self._ground.width(), self._ground.height()
        scale = min(self.width() / width, self.height() / height)
        area = QRectF(0, 0, scale * width, scale * height)
        area.moveCenter(QRectF(self.rect()).center())
        return area

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if self._comparison is None:
            return
        area = self.area()
        painter.drawImage(area, self._ground)
        painter.drawImage(area, self._hatched(area))
        scale = area.width() / self._ground.width()
        if self.chosen is not None:
            x, y = self.chosen
            centre = QPointF(area.left() + scale * (x + 0.5), area.top() + scale * (y + 0.5))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for colour, width in (("black", 4.0), ("white", 2.0)):
                painter.setPen(QPen(QColor(colour), width))
                painter.drawEllipse(centre, _RING, _RING)
        if self.hasFocus():
            painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Highlight), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def _hatched(self, area: QRectF) -> QImage:
        """Return the wrong pixels as large as on the screen: red, with white stripes."""
        mask = self._mask.scaled(area.size().toSize().expandedTo(QSize(1, 1)))
        layer = mask.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
        painter = QPainter(layer)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceAtop)
        painter.fillRect(layer.rect(), QColor("#e0241b"))
        painter.fillRect(layer.rect(), QBrush(QColor("white"), Qt.BrushStyle.BDiagPattern))
        painter.end()
        return layer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._comparison is None:
            return
        area = self.area()
        at = (event.position() - area.topLeft()) * (self._ground.width() / area.width())
        self._choose(self._comparison.nearest(at.x() - 0.5, at.y() - 0.5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = _STEPS.get(Qt.Key(event.key()))
        if way is None or self._comparison is None or self.chosen is None:
            super().keyPressEvent(event)
            return
        self._choose(self._comparison.step(*self.chosen, way))


def _grey(comparison: Comparison) -> QImage:
    values = np.nan_to_num(comparison.output.astype(np.float64).mean(axis=-1))
    low, high = float(values.min()), float(values.max())
    if comparison.output.dtype.kind == "u":
        low, high = 0.0, float(np.iinfo(comparison.output.dtype).max)
    scaled = (values - low) * (255 / max(high - low, 1e-30))
    return image_of(scaled.astype(np.uint8), QImage.Format.Format_Grayscale8)


def _mask(comparison: Comparison) -> QImage:
    """Return an image that is opaque at wrong pixels and around them, so that one is seen."""
    wrong = np.pad(comparison.wrong, 1)
    grown = wrong.copy()
    for axis in (0, 1):
        for way in (-1, 1):
            grown |= np.roll(wrong, way, axis)
    return image_of(
        np.where(grown[1:-1, 1:-1], 255, 0).astype(np.uint8), QImage.Format.Format_Alpha8
    )


class WrongPixelsBox(QWidget):
    """The map, and beside it the chosen pixel in figures; hidden while no pixel is wrong."""

    xray_wanted = Signal(int, int)  # the user wants to see how the chosen pixel came about

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.map = WrongPixels()
        self.map.setFixedHeight(lines * self.fontMetrics().lineSpacing())
        self.map.setMinimumWidth(self.map.sizeHint().width())
        self.map.wrong_pixel_chosen.connect(self._show_pixel)
        self._comparison: Comparison | None = None
        self._pixel = dressed(QLabel(), "wrongPixel")
        self._pixel.setTextInteractionFlags(SELECTABLE)
        self._pixel.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pixel.setMinimumWidth(30 * self.fontMetrics().averageCharWidth())
        self.xray_button = push_button(
            "&X-ray of this pixel",
            "wrongPixelXray",
            self._on_xray,
            tip="Show which cells your kernel reads for it, step by step (X)",
        )
        side = in_column((self._pixel, 1), self.xray_button)
        in_row(self.map, side, of=self, margins=0)
        self.show_comparison(None)

    def show_comparison(self, comparison: Comparison | None) -> None:
        shown = comparison is not None and comparison.count > 0
        self._comparison = comparison if shown else None
        self.setVisible(shown)
        self.map.show_comparison(self._comparison)

    def _on_xray(self) -> None:
        if self.map.chosen is not None:
            self.xray_wanted.emit(*self.map.chosen)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_X:
            self._on_xray()
        else:
            super().keyPressEvent(event)

    def _show_pixel(self, x: int, y: int) -> None:
        if self._comparison is None:
            return
        pixel = self._comparison.pixel(x, y)
        channels = self._comparison.output.shape[-1]
        channel = f", channel {pixel.channel}" if channels > 1 else ""
        self._pixel.setText(
            f"Wrong pixel\nColumn {x}, row {y}{channel}\n"
            f"Expected {pixel.expected:g}, got {pixel.got:g}\n"
            "Arrow keys or a click choose\nanother one."
        )


ORIGINAL = "Original"

CUDA_FILES = "CUDA sources (*.cu);;All files (*)"

_TOPIC = "kernel-trial"
_KEEP_AFTER = 500  # milliseconds after the first change until it is written
_ROWS = 9  # height of the messages and of the result, in lines


class EditPanel(QWidget):
    """Keeps the version in the editor, compiles it, and lists the messages."""

    chosen = Signal(str)  # another version is in view: its name, empty for the original
    edited = Signal()  # the text has changed, some time after the last key
    compiled = Signal(object)  # `TrialReport`: The compiler has reported on the text in the editor
    graded = Signal(object)  # `Grade`: The text in the editor ran to its end, and was compared
    message_wanted = Signal(object)
    """`CompilerMessage`: The user chose a message that is not about the source in the editor."""
    wrong_pixel_chosen = Signal(int, int)  # column and row of a wrong pixel of the last run
    xray_wanted = Signal(object, int, int)
    """`Version, int, int`: The user wants to see how a wrong pixel, in this column and row, came
    about."""
    _case = Signal(int, int)

    def __init__(self, background: Background, edits: Edits, tabs: SourceTabs) -> None:
        super().__init__()
        self.setObjectName("editPanel")
        self._background, self._edits, self._tabs = background, edits, tabs
        self.view: CodeView | None = None
        self.find_bar = FindBar()
        self._subject: TrialSubject | None = None
        self._editor: CodeEditor | None = None
        self._token: CancelToken | None = None
        self._changed = False
        self._wrong: Version | None = None  # the version whose wrong pixels the map shows
        self._name = ""  # of the version in the editor, which the box may be about to leave
        name, tip = "Version of the source", "The program's own source, or a version of yours"
        tip += ", which you can edit"
        self.version_box = choice_box("kernelVersion", name, (), self._on_version, tip=tip)
        self._case.connect(self._show_case)
        self._timer = QTimer(self, singleShot=True, interval=_KEEP_AFTER)
        self._timer.timeout.connect(self._on_pause)
        self._result = WrongPixelsBox(_ROWS)
        self._result.map.wrong_pixel_chosen.connect(self.wrong_pixel_chosen)
        self._result.xray_wanted.connect(self._on_xray)
        buttons, below = self._make_buttons(), in_row((self._make_list(), 99), self._result, 1)
        in_column(buttons, self._state, below, of=self, margins=0)
        self.hide()

    def _make_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        self._buttons: dict[str, QPushButton] = {}
        for name, text, tip, action in (
            ("compileEdit", "&Try it", "Compile your version, run it and compare (Ctrl+Return)",
             self.compile),
            ("gradeEdit", "&Grade", "Compare in every case of the filter's contract: types, "
             "borders, channels and odd sizes (Ctrl+Shift+Return)", self.grade),
            ("stopTrial", "&Stop", "Stop compiling or running", self.stop),
            ("revertEdit", "Re&vert", "Restore the original; undo brings your text back",
             self.revert),
            ("templateEdit", "&Template", "Replace the text by a kernel of this level to fill in; "
             "undo brings your text back", self.begin),
            ("copyEdit", "Save a co&py…", "Save this text as a version with another name",
             self.ask_copy),
            ("filesEdit", "Save as &files…", "Save the kernel and a test of it under the name of a "
             "new filter", self.ask_files),
            ("removeEdit", "&Delete version", "Delete the file of this version", self.remove),
        ):  # fmt: skip
            self._buttons[name] = push_button(text, name, action, tip, tip=tip)
            row.addWidget(self._buttons[name])
        self._buttons["stopTrial"].setEnabled(False)
        self._state = text_label("", "editState", plain=True)
        row.addStretch(1)
        return row

    def _make_list(self) -> CopyableTree:
        self._list = dressed(CopyableTree(), "compilerMessages", "Messages of the compiler")
        self._list.setHeaderLabels(["Place", "Kind", "Message"])
        self._list.setRootIsDecorated(False)
        self._list.setUniformRowHeights(True)
        self._list.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self._list.setMaximumHeight(_ROWS * self.fontMetrics().lineSpacing())
        for column in (0, 1):
            mode = QHeaderView.ResizeMode.ResizeToContents
            self._list.header().setSectionResizeMode(column, mode)
        self._list.hide()  # until there is a message
        self._list.itemActivated.connect(self._on_message)
        self._list.itemClicked.connect(self._on_message)
        return self._list

    def sizeHint(self) -> QSize:
        return QSize(0, super().sizeHint().height())

    # --- versions ---

    @property
    def version(self) -> str:
        return str(self.version_box.currentData() or "")

    def show_subject(self, subject: TrialSubject | None, version: str = "") -> None:
        self._close_version()
        self._subject = subject
        self._fill(version)
        self.version_box.setEnabled(subject is not None)
        if subject is not None:
            self._on_version()

    def _fill(self, version: str) -> None:
        box, entries = self.version_box, [(ORIGINAL, "")]
        if self._subject is not None:
            names = self._edits.names(self._subject.filter_id, self._subject.level_id)
            if FIRST not in names:
                entries.append((f"{FIRST} (new)", FIRST))
            entries += [(name, name) for name in names]
        refill(box, entries, version)

    def _on_version(self) -> None:
        subject = self._subject
        if subject is None:
            return
        self._close_version()
        name, text, problem = self.version, subject.text, ""
        self._name = name
        if name:
            try:
                edit = self._edits.read(subject.filter_id, subject.level_id, name)
            except AppError as error:
                edit, problem = None, str(error)
            if edit is not None:
                text = edit.text
                if edit.original != digest(subject.text):
                    problem = (
                        "The program's own source has changed since this version was begun: "
                        "compare the two."
                    )
        elif damaged := self._edits.damaged(subject.filter_id, subject.level_id):
            problem = f"A version of yours cannot be read: {damaged[0]}"
        self.setVisible(bool(name))
        self._buttons["gradeEdit"].setVisible(subject.cases is not None)
        self._buttons["filesEdit"].setVisible(subject.cases is not None)
        self._buttons["templateEdit"].setVisible(bool(subject.template))
        # An open version may be somebody else's.
        self._show_state(problem or sandbox.described(), problem=bool(problem))
        self._put_into_view(subject.file, text, editable=bool(name))
        self.chosen.emit(name)

    def _put_into_view(self, file: str, text: str, *, editable: bool) -> None:
        old, tabs = self.view, self._tabs
        assert old is not None
        view = self.view = CodeEditor(file, text) if editable else CodeView(file, text)
        place = tabs.indexOf(old)
        in_front = tabs.currentIndex() == place
        self.find_bar.forget()
        tabs.insertTab(place, view, file)
        if in_front:  # before the old one goes, as the next file would be shown in its place
            tabs.setCurrentIndex(place)
        tabs.removeTab(place + 1)
        old.deleteLater()
        self._changed = False
        self._list.clear()
        self._result.show_comparison(None)
        if isinstance(view, CodeEditor):
            self._editor = view
            view.textChanged.connect(self._on_typed)

    def _close_version(self) -> None:
        self.stop()
        self.keep()
        self._editor = None

    def _on_typed(self) -> None:
        # Highlighting changes formats, which Qt reports as changes of the text as well.
        if self._editor is None or not self._editor.document().isModified():
            return
        self._changed = True
        if self._token is None:
            self._show_state("Changed: Ctrl+Return tries it.")
            self._result.show_comparison(None)
        if not self._timer.isActive():  # while somebody types without a pause, too
            self._timer.start()

    def _on_pause(self) -> None:
        self.keep()
        self.edited.emit()

    def keep(self) -> None:
        """Write the version in view now, if it has changed."""
        self._timer.stop()
        subject, editor = self._subject, self._editor
        if not self._changed or subject is None or editor is None:
            return
        with self._refusals():
            self._edits.write(self._edit(subject, editor, self._name))
            self._changed = False
            editor.document().setModified(False)
            box = self.version_box
            box.setItemText(box.findData(self._name), self._name)  # no longer new

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say why something in this block was refused."""
        try:
            yield
        except AppError as error:
            self._show_state(str(error), problem=True)

    def _edit(self, subject: TrialSubject, editor: CodeEditor, name: str) -> Edit:
        text = editor.toPlainText()
        return Edit(subject.filter_id, subject.level_id, name, digest(subject.text), text)

    def revert(self) -> None:
        """Put the program's own source into the editor, as one step that undo takes back."""
        if self._subject is not None and self._editor is not None:
            line = self._editor.textCursor().blockNumber()
            self._put(self._subject.text, "Reverted; undo (Ctrl+Z) brings your text back.", line)

    def _put(self, text: str, state: str, line: int = 0) -> None:
        if self._editor is None:
            return
        cursor = self._editor.textCursor()
        cursor.select(cursor.SelectionType.Document)
        cursor.insertText(text)
        self._editor.show_messages([])
        self._list.clear()
        self._list.hide()
        self._editor.go_to_line(min(line, self._editor.blockCount() - 1))
        self._show_state(state)

    def begin(self) -> None:
        """Put the template of the level into the editor, as one step that undo takes back."""
        if self._subject is not None and self._subject.template:
            self._put(self._subject.template, "A template; undo (Ctrl+Z) brings your text back.")

    def ask_files(self) -> None:
        if self._subject is not None:
            name = f"own_{self._subject.filter_id}.cu"
            choose_text_to_save(self, "Save Kernel and Test", name, self.save_files, CUDA_FILES)

    def save_files(self, path: Path) -> None:
        if self._editor is None or self._subject is None:
            return
        subject, text = self._subject, self._editor.toPlainText()
        with self._refusals():
            files = files_for(path.stem, text, subject.filter_id, subject.parameters)
            for name, content in files.items():
                write_text(path.with_name(name), content)
            saved = " and ".join(files)
            self._show_state(f"Saved {saved}. The page “Add a filter” names the rest.")

    def ask_copy(self) -> None:
        dialog = dressed(QInputDialog(self), "copyDialog")
        dialog.setWindowTitle("Save a copy")
        dialog.setLabelText("Name of the copy")
        dialog.setTextValue(f"{self.version} 2")
        dialog.textValueSelected.connect(self.save_copy)
        open_dialog(dialog)

    def save_copy(self, name: str) -> None:
        subject, editor = self._subject, self._editor
        if editor is None or subject is None:
            return
        with self._refusals():
            name = checked_name(name)
            if name in self._edits.names(subject.filter_id, subject.level_id):
                raise AppError(f"There is a version “{name}” already.", "Choose another name.")
            self.keep()
            self._edits.write(self._edit(subject, editor, name))
            self.show_subject(subject, name)

    def remove(self) -> None:
        if self._subject is None or not self.version:
            return
        self._changed = False
        with self._refusals():
            self._edits.remove(self._subject.filter_id, self._subject.level_id, self.version)
            self.show_subject(self._subject)

    # --- compiling ---

    def compile(self) -> None:
        """Compile the text in the editor, run it and compare, in a process of its own."""
        self._try(graded=False)

    def grade(self) -> None:
        self._try(graded=True)

    def _try(self, *, graded: bool) -> None:
        subject, editor = self._subject, self._editor
        if subject is None or editor is None or (graded and subject.cases is None):
            return
        self.stop()
        self.keep()
        self._token = token = CancelToken()
        job = TrialJob(
            COMPILE_ONLY, subject.file, editor.toPlainText(), subject.kernel, subject.defines
        )
        self._buttons["stopTrial"].setEnabled(True)
        self._show_state("Compiling and running…" if subject.works else "Compiling…")
        self._result.show_comparison(None)
        self._background.start(
            _TOPIC,
            partial(try_subject, subject, job, token, self._case.emit, graded=graded),
            partial(self._on_outcome, job),
            self._on_failed,
        )

    def stop(self) -> None:
        if self._token is None:
            return
        self._token.cancel()
        self._background.forget(_TOPIC)
        self._end_trial("Stopped.")

    def _show_case(self, number: int, cases: int) -> None:
        """Show how far a trial is; it may have been stopped since."""
        if self._token is not None and cases > 1:
            self._show_state(f"Case {number} of {cases}…")

    def _on_xray(self, x: int, y: int) -> None:
        if self._wrong is not None:
            self.xray_wanted.emit(self._wrong, x, y)

    def _end_trial(self, text: str, *, problem: bool = False) -> None:
        self._token = None
        self._buttons["stopTrial"].setEnabled(False)
        self._show_state(text, problem=problem)

    def _on_outcome(self, job: TrialJob, tried: Tried) -> None:
        outcome, obstacle = tried.outcome, tried.obstacle
        report = outcome.report
        errors = sum(each.kind == ERROR for each in report.messages)
        warnings = len(report.messages) - errors
        counts = " and ".join(
            f"{count} {word}{'s' if count > 1 else ''}"
            for count, word in ((errors, "error"), (warnings, "warning"))
            if count
        )
        goal, tolerance = None, 0
        if self._subject is not None:
            goal, tolerance = self._subject.goal, self._subject.tolerance
        grade = grade_of(outcome, goal, tried.titles, tried.memory, tolerance, tried.loads)
        comparison = grade.worst if grade is not None else None
        if grade is not None:
            text = str(grade) + (f" {counts.capitalize()}." if counts else "")
        elif report.ending is Ending.DONE:
            text = f"Compiled by {report.compiler}" + (f", {counts}." if counts else ".")
            text = " ".join(filter(None, (text, obstacle)))
        elif report.ending is Ending.NOT_COMPILED:
            text = f"Not compiled: {counts}."
        else:
            text = " ".join(filter(None, (tried.place, report.text, tried.memory or report.hint)))
        text = " ".join(filter(None, (text, times_of(report), tried.unchecked)))
        missed = grade is not None and not grade.passed
        self._end_trial(text, problem=missed or report.ending is not Ending.DONE)
        editor = self._editor
        if editor is None:
            return
        if editor.toPlainText() != job.text:
            report, comparison = replace(report, resources={}), None
            self._show_state(f"{text} The source has changed since.")
        self._show_messages(editor, job, (*tried.findings, *report.messages))
        self._wrong = None
        if grade is not None and tried.versions:
            self._wrong = tried.versions[grade.worst_case]
        self._result.xray_button.setEnabled(self._wrong is not None)
        self._result.show_comparison(comparison)
        if comparison is not None and grade is not None:
            self.graded.emit(grade)
        self.compiled.emit(report)

    def _show_messages(
        self, editor: CodeEditor, job: TrialJob, messages: tuple[CompilerMessage, ...]
    ) -> None:
        editor.show_messages([each for each in messages if each.file == job.name])
        self._list.clear()
        for each in messages:
            place = f"{each.file}:{each.line}" if each.line else ""
            item = QTreeWidgetItem([place, each.kind, each.text])
            item.setData(0, Qt.ItemDataRole.UserRole, each)
            item.setToolTip(2, each.text)
            colour = theme.error_text if each.kind == ERROR else theme.warning_text
            item.setForeground(1, colour(self.palette()))
            self._list.addTopLevelItem(item)
        self._list.setVisible(bool(messages))
        first = min((line for line, each in editor.messages if each.kind == ERROR), default=None)
        if first is not None:
            QTimer.singleShot(0, editor, lambda: editor.show_line(first))  # the list takes room

    def _on_failed(self, error: Exception) -> None:
        self._end_trial(str(error), problem=True)
        if not isinstance(error, AppError):
            raise error  # a bug: the window's hook reports it

    def _on_message(self, item: QTreeWidgetItem) -> None:
        message = item.data(0, Qt.ItemDataRole.UserRole)
        if self._editor is not None and any(message == each for _, each in self._editor.messages):
            self._editor.go_to(message)
        elif message.line:
            self.message_wanted.emit(message)

    def _show_state(self, text: str, *, problem: bool = False) -> None:
        theme.set_role(self._state, "problem" if problem else "")
        self._state.setText(text)

    def make_keys(self, window: QDialog) -> None:
        """Make the keys, which work everywhere in `window`."""

        def go_to_message(way: int) -> None:
            if self._editor is not None:
                self._tabs.setCurrentWidget(self._editor)
                self._editor.go_to_message(way)

        def open_find() -> None:
            view = self._tabs.currentWidget()
            if isinstance(view, CodeView):
                self.find_bar.open_for(view)

        for keys, action in (
            ("Ctrl+Return", self.compile),
            ("Ctrl+Enter", self.compile),
            ("Ctrl+Shift+Return", self.grade),
            ("Ctrl+Shift+Enter", self.grade),
            ("F8", lambda: go_to_message(1)),
            ("Shift+F8", lambda: go_to_message(-1)),
            ("Ctrl+F", open_find),
            ("F3", self.find_bar.find_next),
            ("Shift+F3", self.find_bar.find_previous),
            ("F6", window.focusNextChild),
        ):
            QShortcut(QKeySequence(keys), window, action)
