"""The small dialogs: about, an error, a bug, choosing a text file. None of them blocks."""

from __future__ import annotations

import html
import platform
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from kernelscope import __version__
from kernelscope.base.errors import AppError
from kernelscope.base.text import printable
from kernelscope.files.write_errors import replace_file
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed, in_column, text_label

_SOURCES = (
    ("R. Korčuška, bachelor’s thesis, Brno 2013", "the window, its filters and memory levels"),
    ("Parallel computing report no. 5", "the mean filter in four memory variants"),
    ("P. Kasparidis, report, Thessaloniki", "non-local means over the whole image"),
    ("M. Salari, master’s thesis, Kerman 2019", "non-local means for MRI volumes"),
)

TEXT_FILES = "Text files (*.txt);;All files (*)"

AnyDialog = TypeVar("AnyDialog", bound=QDialog)

open_dialogs: set[QDialog] = set()  # keeps dialogs without a parent alive until they are closed


def show_about(parent: QWidget | None, memory: str = "") -> AboutDialog:
    """Open the about box, with a line about the memory of the program."""
    return open_dialog(AboutDialog(parent, memory))


def show_error(parent: QWidget | None, error: AppError) -> ErrorDialog:
    """Report a failure that the user can put right."""
    return open_dialog(ErrorDialog(error.message, error.hint, parent))


@contextmanager
def errors_shown(parent: QWidget | None) -> Iterator[None]:
    """Show a failure that the user can put right; it ends the block."""
    try:
        yield
    except AppError as error:
        show_error(parent, error)


def show_notice(parent: QWidget | None, text: str, details: str) -> NoticeDialog:
    """Report that something was done differently than expected, and why."""
    return open_dialog(NoticeDialog(text, details, parent))


def show_bug(parent: QWidget | None, exception: BaseException, log_text: str) -> ReportDialog:
    """Report a bug, one at a time: one that repeats itself in painting would bury the window."""
    for dialog in open_dialogs:
        if isinstance(dialog, ReportDialog) and dialog.objectName() == "bugDialog":
            return dialog
    return open_dialog(bug_dialog(exception, log_text, parent))


def show_crash(parent: QWidget | None, crashes: str) -> ReportDialog:
    return open_dialog(crash_dialog(crashes, parent))


def open_dialog(dialog: AnyDialog) -> AnyDialog:
    open_dialogs.add(dialog)
    dialog.finished.connect(lambda: open_dialogs.discard(dialog))
    # Destroyed with its parent, it never finishes.
    dialog.destroyed.connect(lambda: open_dialogs.discard(dialog))
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    offer_help(dialog)
    dialog.open()
    return dialog


def offer_help(dialog: QDialog) -> None:
    """Let F1 work in `dialog`, which keeps the shortcuts of the window behind it from working."""
    behind = dialog.parentWidget()
    while behind is not None:
        action = behind.window().findChild(QAction, "help")
        if isinstance(action, QAction):
            dialog.addAction(action)
            return
        behind = behind.window().parentWidget()


class _FileDialog(QFileDialog):
    """Takes an OME-Zarr, which is a folder, for a file, and does not go into it."""

    def __init__(self, parent: QWidget, title: str, folder: str) -> None:
        super().__init__(parent, title, folder)
        self.directoryEntered.connect(self._take)

    def accept(self) -> None:
        chosen = self.selectedFiles()
        if len(chosen) != 1 or not self._take(chosen[0]):
            super().accept()

    def _take(self, path: str) -> bool:
        from kernelscope.files.volumes.zarr_source import is_zarr

        if self.fileMode() is QFileDialog.FileMode.Directory or not is_zarr(Path(path)):
            return False
        self.filesSelected.emit([path])
        self.done(QDialog.DialogCode.Accepted)
        return True


def choose_paths(
    parent: QWidget,
    title: str,
    name: str,
    use: Callable[[list[Path]], object],
    *,
    folder: str = "",
    kinds: Iterable[str] = (),
    mode: QFileDialog.FileMode = QFileDialog.FileMode.ExistingFile,
) -> QFileDialog:
    dialog = dressed(_FileDialog(parent, title, folder), name)
    dialog.setOption(QFileDialog.Option.HideNameFilterDetails)  # dozens of suffixes
    dialog.setFileMode(mode)
    if filters := list(kinds):
        dialog.setNameFilters(filters)
    dialog.filesSelected.connect(lambda texts: use([Path(text) for text in texts]))
    return open_dialog(dialog)


def choose_text_to_open(
    parent: QWidget, title: str, use: Callable[[Path], object], kinds: str = TEXT_FILES
) -> QFileDialog:
    return _choose(QFileDialog(parent, title, filter=kinds), use)


def choose_text_to_save(
    parent: QWidget,
    title: str,
    name: str,
    use: Callable[[Path], object],
    kinds: str = TEXT_FILES,
) -> QFileDialog:
    """Let the user choose where to save a text, `name` offered, and call `use` with the path.

    It begins in the folder that was used last.
    """
    dialog = QFileDialog(parent, title, "", kinds)
    dialog.selectFile(name)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(Path(name).suffix.removeprefix(".") or "txt")
    return _choose(dialog, use)


def _choose(dialog: QFileDialog, use: Callable[[Path], object]) -> QFileDialog:
    """Open a dialog; a failure of `use` that the user can put right is shown."""
    parent = dialog.parentWidget()

    def chosen(text: str) -> None:
        with errors_shown(parent):
            use(Path(text))

    dialog.fileSelected.connect(chosen)
    return open_dialog(dialog)


def write_text(path: Path, text: str) -> None:
    replace_file(path, text.encode())


def save_text(
    parent: QWidget, title: str, name: str, text: str, kinds: str = TEXT_FILES
) -> QFileDialog:
    return choose_text_to_save(parent, title, name, lambda path: write_text(path, text), kinds)


def close_box(dialog: QDialog) -> QDialogButtonBox:
    # Without the parent, Tab would go to a default button first and pass over those before it.
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, dialog)
    box.setObjectName("buttons")
    dressed(box.button(QDialogButtonBox.StandardButton.Close), "closeButton", "Close")
    box.rejected.connect(dialog.reject)
    return box


def add_button(
    box: QDialogButtonBox, name: str, text: str, tip: str, action: Callable[[], object]
) -> QPushButton:
    button = box.addButton(text, QDialogButtonBox.ButtonRole.ActionRole)
    dressed(button, name, tip, tip=tip)
    button.setAutoDefault(False)
    button.clicked.connect(lambda: action())
    return button


def headline(text: str) -> QLabel:
    return text_label(text, "headline", "heading", plain=True)


class AboutDialog(QDialog):
    def __init__(self, parent: QWidget | None = None, memory: str = "") -> None:
        super().__init__(parent)
        self.setObjectName("aboutDialog")
        self.setWindowTitle("About Kernelscope")

        icon = dressed(QLabel(), "icon")
        size = 2 * self.fontMetrics().height() + 16
        icon.setPixmap(theme.app_icon().pixmap(size, size))
        titles = in_column(
            headline("Kernelscope"), text_label(f"Version {__version__}", "version", plain=True)
        )
        top = QHBoxLayout()
        if not icon.pixmap().isNull():
            top.addWidget(icon)
        top.addLayout(titles, 1)

        sources = "".join(
            f"<li style='margin-bottom: 3px'>{html.escape(who)}: {html.escape(what)}</li>"
            for who, what in _SOURCES
        )
        text = text_label(
            "<p>Filters and denoises images on the CPU and with CUDA, side by side, with honest "
            "timings.</p>"
            f"<p>It brings together four published systems and extends them:</p>"
            f"<ul style='margin: 0 0 0 16px; -qt-list-indent: 0'>{sources}</ul>"
            "<p>Free software under the MIT licence.</p>",
            "aboutText",
            selectable=True,
        )
        text.setMinimumWidth(_characters(self, 60))
        self._versions = ", ".join(f"{name} {number}" for name, number in _versions())
        versions = text_label(self._versions, "versions", plain=True, selectable=True)

        kept = text_label(memory, "memory", plain=True, selectable=True)
        kept.setVisible(bool(memory))

        box = close_box(self)
        add_button(box, "copyButton", "&Copy versions", "Copy the versions", self.copy)
        in_column(top, text, versions, kept, box, of=self)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(f"Kernelscope {__version__}; {self._versions}")


class _Message(QMessageBox):
    """A sentence, its consequence, and OK."""

    NAME, KIND = "", QMessageBox.Icon.NoIcon

    def __init__(self, text: str, details: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(self.NAME)
        self.setWindowTitle("Kernelscope")
        self.setIcon(self.KIND)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(printable(text))
        self.setInformativeText(details)
        self.setStandardButtons(QMessageBox.StandardButton.Ok)
        dressed(self.button(QMessageBox.StandardButton.Ok), "okButton", "OK")


class ErrorDialog(_Message):
    NAME, KIND = "errorDialog", QMessageBox.Icon.Warning


class NoticeDialog(_Message):
    """Something that is no failure, but that has to be known."""

    NAME, KIND = "noticeDialog", QMessageBox.Icon.Information


class ReportDialog(QDialog):
    """A text for a bug report, to copy or to save, under a headline and an explanation."""

    def __init__(
        self,
        name: str,
        title: str,
        texts: tuple[str, str],
        details: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setSizeGripEnabled(True)
        self._details = details
        box = close_box(self)
        add_button(box, "copyButton", "&Copy", "Copy the details", self.copy)
        add_button(box, "saveButton", "&Save…", "Save the details to a file", self.save)
        in_column(
            headline(texts[0]),
            text_label(texts[1], "explanation", plain=True),
            (self._view(), 1),
            box,
            of=self,
        )
        self.resize(_characters(self, 110), 28 * self.fontMetrics().height())

    def _view(self) -> QPlainTextEdit:
        view = dressed(QPlainTextEdit(self._details), "details", "Details of the bug")
        view.setReadOnly(True)
        view.setTabChangesFocus(True)
        view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        view.setFont(theme.fixed_font())
        return view

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self._details)

    def save(self) -> None:
        save_text(self, "Save the details", "kernelscope-bug.txt", self._details)


def bug_dialog(
    exception: BaseException, log_text: str, parent: QWidget | None = None
) -> ReportDialog:
    """Return a report of a bug of the program, with everything that the developers need."""
    versions = ", ".join(f"{name} {number}" for name, number in _versions())
    head = f"Kernelscope {__version__}; {versions}; {platform.platform()}"
    trace = "".join(traceback.format_exception(exception)).rstrip()
    details = "\n".join((head, "", trace, "", "Log", log_text.rstrip() or "(empty)", ""))
    texts = (
        "Something went wrong inside Kernelscope",
        "This is a bug in the program; you did nothing wrong. Your pictures are still open and you "
        "can go on working. Please send these details to the developers:",
    )
    return ReportDialog("bugDialog", "A bug in Kernelscope", texts, details, parent)


def crash_dialog(crashes: str, parent: QWidget | None = None) -> ReportDialog:
    """Return a report of the place in the program where an earlier process died."""
    texts = (
        "Kernelscope ended unexpectedly last time",
        "This is a bug in the program or in a library or driver that it uses. Please send these "
        "details to the developers. They are shown only once:",
    )
    return ReportDialog("crashDialog", "Report of a crash", texts, f"{crashes}\n", parent)


def _characters(widget: QWidget, count: int) -> int:
    """Return the width of `count` average characters in the font of `widget`."""
    return count * widget.fontMetrics().averageCharWidth()


def _versions() -> list[tuple[str, str]]:
    """Return names and versions of the libraries, without importing them."""
    packages = (("PySide6", "PySide6_Essentials"), ("NumPy", "numpy"), ("Numba", "numba"))
    found = [("Python", platform.python_version()), ("Qt", qVersion())]
    for name, package in packages:
        try:
            found.append((name, metadata.version(package)))
        except metadata.PackageNotFoundError:
            found.append((name, "unknown"))
    return found
