"""Opening and saving pictures and volumes: files, dropped files, the clipboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QMimeData, QObject, Signal
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from kernelscope.base.errors import AppError, NotANumber, SeveralVolumes
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.files import READABLE, SAMPLES, Format, read_image
from kernelscope.files.volumes import READABLE_VOLUMES, is_volume, read_volume
from kernelscope.gui.model.volume_series import VolumeSeries
from kernelscope.gui.tools.places import folder_for, name_filter
from kernelscope.gui.tools.saving import Saver
from kernelscope.gui.tools.together_dialog import VolumesTogether
from kernelscope.gui.viewer.rendering import from_clipboard, to_clipboard
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.messages import choose_paths, open_dialog, show_error
from kernelscope.gui.widgets.parts import dressed
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.schema.parameters import read_number
from kernelscope.schema.samples import Kind

_IN_BLOCKS = "kernelscope apply median {} OUTPUT.tif --memory 2G in a terminal"
"""How a file is filtered that is too large to be shown."""

_SAMPLE_PATHS = {sample.path for sample in SAMPLES}
"""Not listed as recent files: they have a menu of their own."""


_Read = tuple[Image | Volume, VolumeSeries | None]
"""A picture or volume that was opened, and the file of several volumes that it is from."""


@dataclass(frozen=True)
class _Choice:
    """Decisions of the user without which a file cannot be read."""

    number: int | None = None  # which of several volumes, from 1
    nan: float | None = None  # the value in place of NaN


class Pictures(QObject):
    loaded = Signal(object)  # `Image or Volume`: A picture was opened or pasted, or a volume opened
    several = Signal(list)  # several files were chosen, dropped or pasted together
    scan_loaded = Signal(object)
    """`list of Volume`: Volumes were opened together: the components of one scan."""
    each_loaded = Signal(object)
    """`list of Volume`: Volumes were opened together, each as a scan of its own."""
    series_found = Signal(object, object)
    """`Volume, VolumeSeries`: The volume that is loaded next is the first one of a file of
    several."""
    component_loaded = Signal(object)
    """`Volume`: A volume was opened to be filtered together with others."""
    reference_loaded = Signal(object)
    """`Image or Volume`: A picture or a volume was opened to judge others by."""
    saved = Signal(object, object)  # `Image or Volume, Path`: This is on the disk now
    announced = Signal(str)  # one line for the status bar

    def __init__(self, window: QWidget, settings: Settings, background: Background) -> None:
        super().__init__(window)
        self._window = window
        self.settings = settings
        self._background = background
        self._saver = Saver(window, settings, background)
        self._saver.saved.connect(self.saved)
        self._saver.announced.connect(self.announced)
        self._together = VolumesTogether(window, settings, background, self.ask_nan)
        self._together.scan_loaded.connect(self.scan_loaded)
        self._together.each_loaded.connect(self.each_loaded)
        self._together.announced.connect(self.announced)

    @Action(
        "open",
        "&Open…",
        keys=("Ctrl+O",),
        tip="Open pictures or a volume",
        icon="load",
        label="Open",
    )
    def choose(self) -> None:
        everything = ("All pictures and volumes", (*READABLE, *READABLE_VOLUMES))
        self._choose("Open Pictures or Volumes", "openDialog", self.open, *everything, many=True)

    @Action(
        "openFolder",
        "Open &Folder as Volume…",
        keys=("Ctrl+Shift+O",),
        tip="Open a folder of slices: pictures or a DICOM series",
    )
    def choose_folder(self) -> None:
        mode = QFileDialog.FileMode.Directory
        self._show_dialog("Open Folder of Slices", "folderDialog", self.open, mode=mode)

    def choose_component(self) -> None:
        volumes = ("All volumes", READABLE_VOLUMES)
        self._choose("Add Volume", "componentDialog", self.open_component, *volumes)

    def choose_reference(self, kind: Kind) -> None:
        formats = READABLE if kind is Kind.PICTURE else READABLE_VOLUMES
        open_ = self._open_reference if kind is Kind.PICTURE else self.open_reference_volume
        title = f"Reference {kind.capitalize()}"
        self._choose(title, "referenceDialog", open_, f"All {kind}s", formats)

    def _choose(
        self,
        title: str,
        name: str,
        use: Callable[[Path], None],
        together: str,
        formats: tuple[Format, ...],
        *,
        many: bool = False,
    ) -> None:
        """Let the user choose a file; `together` names the filter for all `formats`.

        `many` lets the user choose several, which are opened together.
        """
        mode = QFileDialog.FileMode.ExistingFiles if many else QFileDialog.FileMode.ExistingFile
        suffixes = dict.fromkeys(suffix for kind in formats for suffix in kind.suffixes)
        everything = Format(together, tuple(suffixes))
        names = dict.fromkeys(name_filter(kind) for kind in (everything, *formats))
        self._show_dialog(title, name, use, (*names, "All files (*)"), mode)

    def _show_dialog(
        self,
        title: str,
        name: str,
        use: Callable[[Path], None],
        kinds: Sequence[str] = (),
        mode: QFileDialog.FileMode = QFileDialog.FileMode.ExistingFile,
    ) -> None:
        def chosen(paths: list[Path]) -> None:
            self.settings.set_folder("open", paths[0].parent)
            if len(paths) > 1:
                self.open_all(paths)
            else:
                use(paths[0])

        folder = folder_for(self.settings, "open")
        choose_paths(self._window, title, name, chosen, folder=folder, kinds=kinds, mode=mode)

    def _open_reference(self, path: Path) -> None:
        def read(choice: _Choice) -> Image:
            return read_image(path, nan=choice.nan)

        self._read("reference", path, read, self.reference_loaded.emit)

    def open_reference_volume(self, path: Path) -> None:
        def read(choice: _Choice) -> Volume:
            return read_volume(path, choice.number, nan=choice.nan)

        self._read("reference", path, read, self.reference_loaded.emit)

    def open(self, path: Path, number: int | None = None) -> None:
        """Read `path`; the open picture stays until then, or if reading fails.

        `number` is that of one of several volumes; without it, volumes of one grid are stepped
        through from the first one on.
        """

        def read(choice: _Choice) -> _Read:
            with blocks_mentioned(path, _IN_BLOCKS.format(path.name)):
                return read_whole(choice)

        def read_whole(choice: _Choice) -> _Read:
            if not is_volume(path):
                return read_image(path, nan=choice.nan), None
            try:
                return read_volume(path, choice.number, nan=choice.nan), None
            except SeveralVolumes as error:
                if not error.alike:
                    raise
                series = VolumeSeries(path, len(error.names), choice.nan, error.what, error.names)
            return series.read(0), series

        def show(read: _Read) -> None:
            image, series = read
            if isinstance(image, Volume) and series is not None:
                self.series_found.emit(image, series)
            self._on_read(image)

        self._read("open", path, read, show, _Choice(number))

    def open_all(self, paths: Sequence[Path]) -> None:
        self.several.emit(list(paths))

    def open_volumes(self, paths: Sequence[Path]) -> None:
        if len(paths) == 1:
            self.open(paths[0])
        else:
            self._together.open(paths)

    def open_component(self, path: Path) -> None:
        def read(choice: _Choice) -> Volume:
            return read_volume(path, choice.number, nan=choice.nan)

        self._read(f"component {path}", path, read, self.component_loaded.emit)

    def _read(
        self,
        topic: str,
        path: Path,
        read: Callable[[_Choice], Any],
        then: Callable[[Any], None],
        choice: _Choice | None = None,
    ) -> None:
        """Read a file in the background, and ask the questions that only the user can answer."""
        decided = choice or _Choice()

        def failed(error: Exception) -> None:
            if isinstance(error, SeveralVolumes):
                self._ask_number(error, lambda number: again(replace(decided, number=number)))
            elif isinstance(error, NotANumber):
                self.ask_nan(error, lambda nan: again(replace(decided, nan=nan)))
            else:
                self._background.report(error)

        def again(choice: _Choice) -> None:
            self._read(topic, path, read, then, choice)

        self.announced.emit(f"Opening {path.name}…")
        self._background.start(topic, lambda: read(decided), then, failed)

    def ask_nan(self, error: NotANumber, then: Callable[[float], None]) -> None:
        def chosen(text: str) -> None:
            try:
                number = read_number(text)
            except ValueError:
                show_error(
                    self._window, AppError(f"“{text}” is no number.", "Open the file again.")
                )
            else:
                then(number)

        self.announced.emit("")
        dialog = dressed(QInputDialog(self._window), "nan")
        dialog.setWindowTitle("Kernelscope")
        dialog.setLabelText(
            f"{error.message}\nNumber to filter in their place (saved files have NaN there again):"
        )
        dialog.setTextValue("0")
        dialog.textValueSelected.connect(chosen)
        open_dialog(dialog)

    def _ask_number(self, error: SeveralVolumes, again: Callable[[int], None]) -> None:
        self.announced.emit("")
        names = [f"{number}: {name}" for number, name in enumerate(error.names, 1)]
        dialog = dressed(QInputDialog(self._window), "volumeNumber")
        dialog.setWindowTitle("Kernelscope")
        dialog.setLabelText(f"{error.message}\nWhich one?")
        dialog.setComboBoxItems(names)
        dialog.textValueSelected.connect(lambda name: again(1 + names.index(name)))
        open_dialog(dialog)

    @Action("paste", "&Paste Picture", keys=("Ctrl+V",), tip="Open the picture on the clipboard")
    def paste(self) -> None:
        mime = QGuiApplication.clipboard().mimeData()
        if mime is None or not self.take(mime):  # nothing at all is on it, on some desktops
            self.announced.emit("There is no picture on the clipboard.")

    def take(self, mime: QMimeData) -> bool:
        """Open dropped or pasted data; return whether there was something to open."""
        files = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
        if files:
            if len(files) > 1:
                self.open_all(files)
            else:
                self.open(files[0])
            return True
        image = QImage(mime.imageData()) if mime.hasImage() else QImage()
        if image.isNull():
            return False
        self._background.forget("open")
        try:
            picture = Image.from_array(from_clipboard(image), "pasted picture")
        except AppError as error:
            show_error(self._window, error)
        else:
            self.loaded.emit(picture)
        return True

    @staticmethod
    def can_take(mime: QMimeData) -> bool:
        return mime.hasImage() or any(url.isLocalFile() for url in mime.urls())

    def copy(self, image: Image, older: str = "") -> None:
        QGuiApplication.clipboard().setImage(to_clipboard(image))
        earlier = f"  It is the result of earlier settings: {older}." if older else ""
        self.announced.emit(f"Copied {image.describe()}.{earlier}")

    def save(self, images: Sequence[Image | Volume], name: str, older: str = "") -> None:
        self._saver.save(images, name, older)

    def _on_read(self, image: Image | Volume) -> None:
        if image.path is not None and image.path not in _SAMPLE_PATHS:
            self.settings.add_recent(image.path)
        self.loaded.emit(image)
