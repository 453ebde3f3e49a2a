"""Saving pictures and volumes: the dialog, questions before anything is lost, the writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from kernelscope.base.errors import ImageWriteError, LossyFormat
from kernelscope.base.text import printable
from kernelscope.files import WRITABLE, write_image
from kernelscope.files.formats import Format
from kernelscope.files.names import stem, targets_of, with_suffix
from kernelscope.files.record import record_of
from kernelscope.files.volumes import WRITABLE_VOLUMES, write_volume
from kernelscope.gui.tools.places import folder_for, name_filter
from kernelscope.gui.tools.preferences import jpeg_quality
from kernelscope.gui.widgets.messages import open_dialog
from kernelscope.gui.widgets.parts import dressed
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume

_JPEG = (".jpg", ".jpeg")


def _type_of(image: Image | Volume, writable: Sequence[Format]) -> str:
    """Return the line of the dialog for the type of the file that `image` was made from.

    Empty for those that are not written. A result has the title of its source, which is the name
    of the file.
    """
    title = image.title.lower()
    return next((name_filter(kind) for kind in writable if title.endswith(kind.suffixes)), "")


class Saver(QObject):
    saved = Signal(object, object)  # `Image or Volume, Path`: This is on the disk now
    announced = Signal(str)  # one line for the status bar

    def __init__(self, window: QWidget, settings: Settings, background: Background) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self._background = background

    def save(self, images: Sequence[Image | Volume], name: str, older: str = "") -> None:
        """Let the user choose where to save a picture, or volumes; see `targets_of`.

        `name` is offered, without suffix. With the settings of an `older` result this asks first.
        """
        if older:
            self._ask(
                "olderResult",
                "The settings have changed since this result was computed.",
                f"The file would hold the result of: {printable(older)}.\n"
                "Run (F5) computes that of the settings as they are.",
                ["Save This Result…"],
                lambda _: self.save(images, name),
            )
            return
        what, setting, writable = (
            ("Picture", "saveFormat", WRITABLE)
            if isinstance(images[0], Image)
            else ("Volume" + "s" * (len(images) > 1), "saveVolumeFormat", WRITABLE_VOLUMES)
        )
        dialog = dressed(
            QFileDialog(self._window, f"Save {what}", folder_for(self._settings, "save")),
            "saveDialog",
        )
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        kinds = {name_filter(kind): kind for kind in writable}
        dialog.setNameFilters(list(kinds))
        preferred = _type_of(images[0], writable) or self._settings.text(setting)
        if preferred in kinds:
            dialog.selectNameFilter(preferred)
        dialog.selectFile(name)

        def chosen(text: str) -> None:
            selected = dialog.selectedNameFilter()
            self._settings.set_text(setting, selected)
            path = with_suffix(Path(text), kinds[selected], writable)
            self._settings.set_folder("save", path.parent)
            # The dialog asked about the name that was typed only.
            there = [each for each in targets_of(images, path) if each.exists()]
            there = [each for each in there if each != Path(text)]
            if there:
                self._ask_overwrite(images, path, there)
            else:
                self._write(images, path)

        dialog.fileSelected.connect(chosen)
        open_dialog(dialog)

    def _write(self, images: Sequence[Image | Volume], path: Path, *, lossy: bool = False) -> None:
        targets = targets_of(images, path)
        names = ", ".join(target.name for target in targets)
        jpeg = jpeg_quality(self._settings)
        self.announced.emit(f"Saving {names}…")

        def write() -> None:
            for image, target in zip(images, targets, strict=True):
                if isinstance(image, Image):
                    quality = {"quality": jpeg} if target.suffix.lower() in _JPEG else {}
                    write_image(image, target, lossy=lossy, **quality)
                else:
                    write_volume(image, target, lossy=lossy)

        def written(_: None) -> None:
            notices = (
                notice
                for image, target in zip(images, targets, strict=True)
                for notice in record_of(target, image).losses
            )
            self.announced.emit(
                "  ".join((f"Saved {path if len(targets) == 1 else names}.", *notices))
            )
            for image, target in zip(images, targets, strict=True):
                self.saved.emit(image, target)

        self._background.start(
            "save",
            write,
            written,
            lambda error: self._on_unwritten(images, path, error),
            must_finish=True,
        )

    def _on_unwritten(self, images: Sequence[Image | Volume], path: Path, error: Exception) -> None:
        self.announced.emit("")
        go_on = "Save with Loss"
        if isinstance(error, LossyFormat):
            answers = [go_on, "Choose Another Format…"]
        elif isinstance(error, ImageWriteError):
            answers = ["Choose Another Place…"]
        else:
            self._background.report(error)
            return

        def answered(answer: str) -> None:
            if answer == go_on:
                self._write(images, path, lossy=True)
            else:
                self.save(images, stem(path))

        self._ask("saveProblem", error.message, error.hint, answers, answered)

    def _ask_overwrite(
        self, images: Sequence[Image | Volume], path: Path, there: Sequence[Path]
    ) -> None:
        names = " and ".join(f"“{each.name}”" for each in there)
        self._ask(
            "overwrite",
            f"{names} already exist{'s' * (len(there) == 1)}.",
            "Replace it?" if len(there) == 1 else "Replace them?",
            ["Replace", "Choose Another Name…"],
            lambda answer: (
                self._write(images, path) if answer == "Replace" else self.save(images, stem(path))
            ),
        )

    def _ask(
        self,
        name: str,
        text: str,
        details: str,
        answers: list[str],
        then: Callable[[str], None],
    ) -> None:
        """Ask a question with buttons for `answers` and Cancel; call ``then(answer)``."""
        box = dressed(QMessageBox(self._window), name)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("Kernelscope")
        box.setTextFormat(Qt.TextFormat.PlainText)  # a name may look like HTML
        box.setText(printable(text))
        box.setInformativeText(details)
        buttons = {box.addButton(a, QMessageBox.ButtonRole.AcceptRole): a for a in answers}
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.buttonClicked.connect(
            lambda button: then(buttons[button]) if button in buttons else None
        )
        open_dialog(box)
