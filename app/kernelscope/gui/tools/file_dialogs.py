"""Opening and saving pictures, volumes and recipes: files, dropped files, the clipboard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QLocale,
    QMimeData,
    QObject,
    QSignalBlocker,
    QStandardPaths,
    Qt,
    Signal,
)
from PySide6.QtGui import QGuiApplication, QImage, QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialogButtonBox,
    QFileDialog,
    QInputDialog,
    QListWidget,
    QListWidgetItem,
    QMessageBox,
    QPushButton,
    QWidget,
)

from kernelscope.base.errors import (
    AppError,
    ImageWriteError,
    LossyFormat,
    NotANumber,
    SeveralVolumes,
)
from kernelscope.base.text import printable
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import (
    READABLE,
    RECIPE_SUFFIX,
    SAMPLES,
    WRITABLE,
    Format,
    check_write,
    encoded,
    read_image,
    read_recipe,
    write_image,
    write_recipe,
)
from kernelscope.files.names import stem, with_suffix
from kernelscope.files.pictures.pillow import jpeg_coding
from kernelscope.files.volumes import (
    READABLE_VOLUMES,
    SEVERAL_VOLUMES,
    WRITABLE_VOLUMES,
    check_write_volume,
    check_write_volumes,
    read_volume,
    write_volume,
    write_volumes,
)
from kernelscope.files.volumes.writing import record_of
from kernelscope.gui.model.volume_files import (
    FoundFile,
    VolumeSeries,
    misfit,
    read_file,
    read_together,
)
from kernelscope.gui.session.subject import Savable
from kernelscope.gui.tools.preferences import jpeg_quality
from kernelscope.gui.viewer.rendering import from_clipboard, to_clipboard
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.messages import (
    add_button,
    choose_paths,
    choose_text_to_open,
    choose_text_to_save,
    errors_shown,
    open_dialog,
    show_error,
    show_notice,
)
from kernelscope.gui.widgets.parts import (
    dressed,
    in_column,
    in_row,
    plain_tip,
    push_button,
    text_label,
)
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.scan import MAX_COMPONENTS
from kernelscope.images.volume import Volume
from kernelscope.schema.parameters import read_number
from kernelscope.schema.samples import Kind

_FOUND = Qt.ItemDataRole.UserRole

_ROWS = 8  # volumes that are seen without scrolling


class _VolumeList(QListWidget):
    """Rows change places by dragging, and by Alt+Up and Alt+Down."""

    moved = Signal()
    stepped = Signal(int)  # the current row is to go this many places down

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setSpacing(2)
        self.setWordWrap(True)
        self.model().rowsMoved.connect(lambda: self.moved.emit())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if event.modifiers() & Qt.KeyboardModifier.AltModifier and event.key() in steps:
            self.stepped.emit(steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)


class TogetherDialog(ToolWindow):
    """Lists volumes that were opened together, and those files that hold none."""

    together = Signal(object)
    """`list of Volume`: Open these as the components of one scan, in this order."""
    each = Signal(object)  # `list of Volume`: Open each of these as a scan of its own

    def __init__(self, found: Sequence[FoundFile], parent: QWidget | None = None) -> None:
        page = "volumes#several-volumes"
        super().__init__("togetherDialog", "Open volumes", parent, help_page=page)
        volumes = [each.volume for each in found if each.volume is not None]
        count, microscope = len(volumes), any(each.microscope for each in volumes)
        example = "" if microscope else ", such as T1w and T2w of a head,"
        about = text_label(
            f"{count} volumes were opened together. Those of one object{example} are filtered best "
            "together: MRI NLM compares all of them."
        )
        self.list = dressed(_VolumeList(self), "volumeList", "Volumes in their order")
        for each in found:
            self._add(each)
        self.state = text_label("", "fit")
        self._up = self._mover("moveUp", "Move &Up", -1)
        self._down = self._mover("moveDown", "Move &Down", 1)
        side = in_column(self._up, self._down, 1)
        middle = in_row((self.list, 1), side)
        in_column(about, (middle, 1), self.state, self._buttons(), of=self)
        self.list.itemChanged.connect(self._follow)
        self.list.moved.connect(self._follow)
        self.list.currentRowChanged.connect(self._follow)
        self.list.stepped.connect(self._move)
        self._check_those_that_fit()
        self.list.setCurrentRow(0)
        rows = min(_ROWS, max(3, len(found)))
        # Two lines for each: a volume that does not fit says why.
        self.list.setMinimumHeight(rows * (2 * self.fontMetrics().height() + 8))
        self.list.setMinimumWidth(76 * self.fontMetrics().averageCharWidth())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.list.setFocus()

    # --- building ---

    def _add(self, found: FoundFile) -> None:
        item = QListWidgetItem()
        item.setData(_FOUND, found)
        flags = item.flags() & ~Qt.ItemFlag.ItemIsDropEnabled
        if found.volume is None:
            flags &= ~(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable)
            item.setText(printable(f"{found.path.name}\n{found.problem}"))
            item.setToolTip(plain_tip(found.problem))
        else:
            item.setCheckState(Qt.CheckState.Unchecked)
            item.setToolTip("\n".join((found.volume.describe(), *found.volume.notices)))
        item.setFlags(flags)
        self.list.addItem(item)

    def _mover(self, name: str, text: str, steps: int) -> QPushButton:
        return push_button(
            text,
            name,
            lambda: self._move(steps),
            f"Move the selected volume {'up' if steps < 0 else 'down'}",
            tip=f"Alt+{'Up' if steps < 0 else 'Down'}",
        )

    def _buttons(self) -> QDialogButtonBox:
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, parent=self)
        cancel = box.button(QDialogButtonBox.StandardButton.Cancel)
        dressed(cancel, "openNone", "Open none of the volumes")
        self._together = add_button(
            box,
            "openTogether",
            "Open &together",
            "Open the checked volumes as one scan, to be filtered together",
            lambda: self._open(self.together, self.chosen),
        )
        self._together.setDefault(True)
        self._only = add_button(
            box,
            "openOnly",
            "Open only the &selected",
            "Open the volume that is selected in the list, and no other",
            lambda: self._open(self.each, self._current()),
        )
        add_button(
            box,
            "openEach",
            "Open &each alone",
            "Open all of them, each with a tile in the film strip",
            lambda: self._open(self.each, [volume for _, volume in self._items()]),
        )
        box.rejected.connect(self.reject)
        return box

    # --- choices ---

    @property
    def chosen(self) -> list[Volume]:
        return [volume for item, volume in self._items() if _is_checked(item)]

    def _items(self) -> list[tuple[QListWidgetItem, Volume]]:
        items = [self.list.item(row) for row in range(self.list.count())]
        return [(item, item.data(_FOUND).volume) for item in items if item.data(_FOUND).volume]

    def _current(self) -> list[Volume]:
        item = self.list.currentItem()
        volume = item.data(_FOUND).volume if item is not None else None
        return [volume] if volume is not None else []

    def _open(self, signal: object, volumes: list[Volume]) -> None:
        assert hasattr(signal, "emit")
        self.accept()
        signal.emit(volumes)

    def _move(self, steps: int) -> None:
        row = self.list.currentRow()
        new = row + steps
        if row < 0 or not 0 <= new < self.list.count():
            return
        with QSignalBlocker(self.list):
            self.list.insertItem(new, self.list.takeItem(row))
            self.list.setCurrentRow(new)
        self._follow()

    def _check_those_that_fit(self) -> None:
        volumes = self._items()
        fitting = [item for item, volume in volumes if not misfit(volumes[0][1], volume)]
        with QSignalBlocker(self.list):
            for item in fitting[:MAX_COMPONENTS]:
                item.setCheckState(Qt.CheckState.Checked)

    def _follow(self) -> None:
        """Show for each volume whether it fits the first checked one, and enable the answers."""
        chosen = self.chosen
        first = chosen[0] if chosen else None
        misfits = []
        with QSignalBlocker(self.list):
            for item, volume in self._items():
                why = misfit(first, volume) if first is not None else ""
                item.setText("\n".join(filter(None, (volume.describe(), why and f"⚠ {why}"))))
                if why and _is_checked(item):
                    misfits.append(volume.title)
        self.state.setText(_state(len(chosen), misfits))
        self._together.setEnabled(2 <= len(chosen) <= MAX_COMPONENTS and not misfits)
        self._only.setEnabled(bool(self._current()))
        row = self.list.currentRow()
        self._up.setEnabled(row > 0)
        self._down.setEnabled(0 <= row < self.list.count() - 1)


def _is_checked(item: QListWidgetItem) -> bool:
    return item.checkState() is Qt.CheckState.Checked


def _state(count: int, misfits: Sequence[str]) -> str:
    if misfits:
        return f"Uncheck {', '.join(misfits)}, or open each alone: the sizes or places differ."
    if count > MAX_COMPONENTS:
        return f"Up to {MAX_COMPONENTS} volumes are filtered together; {count} are checked."
    if count < 2:
        return "Check two or more volumes to open them together."
    return f"The {count} checked volumes fit together: they become one scan, in this order."


def folder_for(settings: Settings, purpose: str) -> str:
    """Return where to “open” or “save”: in the last folder, that of the last file, or pictures."""
    places = QStandardPaths.StandardLocation
    candidates = (
        settings.folder(purpose),
        *(str(path.parent) for path in settings.recent_files[:1]),
        settings.folder("open"),
        QStandardPaths.writableLocation(places.PicturesLocation),
        QStandardPaths.writableLocation(places.HomeLocation),
    )
    return next((each for each in candidates if each and Path(each).is_dir()), "")


def name_filter(kind: Format) -> str:
    """Return the line of a file dialog for a format: “PNG (*.png)”."""
    return f"{kind.name} ({' '.join(f'*{suffix}' for suffix in kind.suffixes)})"


_RUN = "Run and Save…"

_JPEG = (".jpg", ".jpeg")
_MOST_PROBLEMS = 12  # files that a message explains


def _check(images: Sequence[Image | Volume], path: Path, *, lossy: bool) -> None:
    """Refuse images that the format cannot keep, before a long run or a further question."""
    first, *others = images
    if isinstance(first, Image):
        check_write(path, first.planes.shape, first.dtype, lossy=lossy)
    elif others:
        check_write_volumes([each for each in images if isinstance(each, Volume)], path)
    else:
        check_write_volume(first, path, lossy=lossy)


def _type_of(image: Image | Volume, writable: Sequence[Format]) -> str:
    """Return the line of the dialog for the file of `image`, whose title has its name."""
    title = image.title.lower()
    return next((name_filter(kind) for kind in writable if title.endswith(kind.suffixes)), "")


_RECIPES = "Recipes (*.json);;All files (*)"


class Recipes(QObject):
    loaded = Signal(object)  # `Recipe`: The user chose a recipe to run
    saved = Signal(Path)  # a recipe was written there

    def __init__(self, window: QWidget, background: Background) -> None:
        super().__init__(window)
        self._window = window
        self._background = background

    @Action("runRecipe", "Run R&ecipe…", "Ctrl+Shift+R", help="window#recipes")
    def choose(self) -> None:
        """Run several filters from a file, one after the other."""
        dialog = choose_text_to_open(self._window, "Run Recipe", self.load, _RECIPES)
        dialog.setObjectName("recipeDialog")

    def save(self, steps: Iterable[Step]) -> None:
        recipe = Recipe(tuple(steps))

        def write(path: Path) -> None:
            write_recipe(recipe, path)
            self.saved.emit(path)

        dialog = choose_text_to_save(
            self._window, "Save Recipe", f"steps{RECIPE_SUFFIX}", write, _RECIPES
        )
        dialog.setDefaultSuffix(RECIPE_SUFFIX.removeprefix("."))
        dialog.setObjectName("saveRecipeDialog")

    def load(self, path: Path) -> None:
        """Read a recipe; `loaded` comes when it is there."""
        self._background.start("recipe file", lambda: read_recipe(path), self.loaded.emit)


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


_UNDECIDED = _Choice()


def _picture(path: Path, choice: _Choice) -> Image:
    return read_image(path, nan=choice.nan)


def _volume(path: Path, choice: _Choice) -> Volume:
    return read_volume(path, choice.number, nan=choice.nan)


def _whole(path: Path, choice: _Choice) -> _Read:
    with blocks_mentioned(path, _IN_BLOCKS.format(path.name)):
        return read_file(path, choice.number, choice.nan)


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
    saved = Signal(object, object)  # `Savable, Path`: This is on the disk now
    announced = Signal(str)  # one line for the status bar

    def __init__(self, window: QWidget, settings: Settings, background: Background) -> None:
        super().__init__(window)
        self._window = window
        self.settings = settings
        self._background = background

    @Action("open", "&Open…", "Ctrl+O", icon="load", label="Open")
    def choose(self) -> None:
        """Open pictures or a volume."""
        everything = ("All pictures and volumes", (*READABLE, *READABLE_VOLUMES))
        self._choose("Open Pictures or Volumes", "openDialog", self.open, *everything, many=True)

    @Action("openFolder", "Open &Folder as Volume…", "Ctrl+Shift+O")
    def choose_folder(self) -> None:
        """Open a folder of slices, pictures or a DICOM series, or an OME-Zarr."""
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
        """Let the user choose a file, or `many`; `together` names the filter for all `formats`."""
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
        self._read("reference", path.name, partial(_picture, path), self.reference_loaded.emit)

    def open_reference_volume(self, path: Path) -> None:
        self._read("reference", path.name, partial(_volume, path), self.reference_loaded.emit)

    def open_component(self, path: Path) -> None:
        read, then = partial(_volume, path), self.component_loaded.emit
        self._read(f"component {path}", path.name, read, then)

    def open(self, path: Path, number: int | None = None) -> None:
        """Read `path`, or one of its volumes; the open picture stays until then."""

        def show(read: _Read) -> None:
            image, series = read
            if isinstance(image, Volume) and series is not None:
                self.series_found.emit(image, series)
            if image.path is not None and image.path not in _SAMPLE_PATHS:
                self.settings.add_recent(image.path)
            self.loaded.emit(image)

        self._read("open", path.name, partial(_whole, path), show, _Choice(number))

    def open_all(self, paths: Sequence[Path]) -> None:
        self.several.emit(list(paths))

    def open_volumes(self, paths: Sequence[Path]) -> None:
        if len(paths) == 1:
            self.open(paths[0])
        else:
            self._open_together(paths)

    def _open_together(self, paths: Sequence[Path]) -> None:
        def read(choice: _Choice) -> list[FoundFile]:
            return read_together(paths, choice.nan)

        self._read("together", f"{len(paths)} volumes", read, self._show_together)

    def _show_together(self, found: list[FoundFile]) -> None:
        self.announced.emit("")
        volumes = [each.volume for each in found if each.volume is not None]
        several = [(each.volume, each.series) for each in found if each.volume and each.series]
        if len(volumes) < 2 or several:  # files of several are no components of one scan
            self._explain(found)
            for first in several:
                self.series_found.emit(*first)
            if volumes:
                self._load(volumes, self.each_loaded.emit)
            return
        dialog = TogetherDialog(found, self._window)
        dialog.together.connect(lambda chosen: self._load(chosen, self.scan_loaded.emit))
        dialog.each.connect(lambda chosen: self._load(chosen, self.each_loaded.emit))
        open_dialog(dialog)

    def _load(self, volumes: Sequence[Volume], show: Callable[[list[Volume]], None]) -> None:
        for volume in volumes:
            if volume.path is not None:
                self.settings.add_recent(volume.path)
        show(list(volumes))

    def _explain(self, found: Sequence[FoundFile]) -> None:
        problems = [f"{each.path.name}: {each.problem}" for each in found if each.problem]
        if not problems:
            return
        more = len(problems) - _MOST_PROBLEMS
        text = "\n".join(problems[:_MOST_PROBLEMS] + [f"… and {more} others."] * (more > 0))
        if len(problems) == len(found):
            show_error(self._window, AppError("None of the volumes could be opened.", text))
            return
        files = "1 file adds" if len(problems) == 1 else f"{len(problems)} files add"
        show_notice(self._window, f"{files} nothing to the volume that is open.", text)

    def _read(
        self,
        topic: str,
        name: str,
        read: Callable[[_Choice], Any],
        then: Callable[[Any], None],
        choice: _Choice = _UNDECIDED,
    ) -> None:
        """Read files in the background, and ask the questions that only the user can answer."""

        def failed(error: Exception) -> None:
            if isinstance(error, SeveralVolumes):
                self._ask_number(error, lambda number: again(number=number))
            elif isinstance(error, NotANumber):
                self.ask_nan(error, lambda nan: again(nan=nan))
            else:
                self._background.report(error)

        def again(**decided: Any) -> None:
            self._read(topic, name, read, then, replace(choice, **decided))

        self.announced.emit(f"Opening {name}…")
        self._background.start(topic, lambda: read(choice), then, failed)

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

        how = "Number to filter in their place (saved files have NaN there again):"
        dialog = self._question("nan", f"{error.message}\n{how}")
        dialog.textValueSelected.connect(chosen)
        dialog.setTextValue("0")
        open_dialog(dialog)  # now: what stands in it is selected, so that typing replaces it

    def _ask_number(self, error: SeveralVolumes, again: Callable[[int], None]) -> None:
        names = [f"{number}: {name}" for number, name in enumerate(error.names, 1)]
        text = f"{error.message}\nWhich one?"
        dialog = self._question("volumeNumber", text)
        dialog.textValueSelected.connect(lambda name: again(1 + names.index(name)))
        dialog.setComboBoxItems(names)
        open_dialog(dialog)

    def _question(self, name: str, text: str) -> QInputDialog:
        self.announced.emit("")
        dialog = dressed(QInputDialog(self._window), name)
        dialog.setWindowTitle("Kernelscope")
        dialog.setLabelText(text)
        return dialog

    @Action("paste", "&Paste Picture", "Ctrl+V")
    def paste(self) -> None:
        """Open the picture on the clipboard."""
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
        with errors_shown(self._window):
            self.loaded.emit(Image.from_array(from_clipboard(image), "pasted picture"))
        return True

    @staticmethod
    def can_take(mime: QMimeData) -> bool:
        return mime.hasImage() or any(url.isLocalFile() for url in mime.urls())

    def copy(self, image: Image, older: str = "") -> None:
        QGuiApplication.clipboard().setImage(to_clipboard(image))
        earlier = f"  It is the result of earlier settings: {older}." if older else ""
        self.announced.emit(f"Copied {image.describe()}.{earlier}")

    # --- saving ---

    def save(
        self,
        savable: Savable,
        older: str = "",
        run: Callable[[], None] | None = None,
    ) -> None:
        """Ask where to save a picture or volumes; before that whether, if the result is `older`.

        ``run()`` saves that of the present settings in its place.
        """
        if older:
            self.ask(
                "olderResult",
                "The settings have changed since this result was computed.",
                f"It is that of: {printable(older)}.",
                [*([_RUN] if run else []), "Save This Result…"],
                lambda answer: run() if run and answer == _RUN else self.save(savable),
                usual=_RUN if run else "",
            )
            return
        first, count = savable.images[0], len(savable.images)
        if isinstance(first, Image):
            what, setting, writable = "Picture", "saveFormat", WRITABLE
        else:
            what = f"{count} Volumes" if count > 1 else "Volume"
            if savable.whole:
                named = f": {first.place}" if count == 1 and first.place else ""
                what = f"{count} of {savable.whole.title()}{named}"
            setting = "saveVolumeFormat"
            writable = SEVERAL_VOLUMES if savable.together else WRITABLE_VOLUMES
        dialog = dressed(
            QFileDialog(self._window, f"Save {what}", folder_for(self.settings, "save")),
            "saveDialog",
        )
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        kinds = {name_filter(kind): kind for kind in writable}
        dialog.setNameFilters(list(kinds))
        preferred = _type_of(first, writable) or self.settings.text(setting)
        if preferred in kinds:
            dialog.selectNameFilter(preferred)
        dialog.selectFile(savable.name)

        def chosen(text: str) -> None:
            selected = dialog.selectedNameFilter()
            self.settings.set_text(setting, selected)
            with errors_shown(self._window):
                path = with_suffix(Path(text), kinds[selected], writable)
                self.settings.set_folder("save", path.parent)
                # The dialog asked about the name that was typed only.
                there = [each for _, each in savable.files(path) if each.exists()]
                there = [each for each in there if each != Path(text)]
                if there:
                    self._ask_overwrite(savable, path, there)
                else:
                    self._ask_quality(savable, path)

        dialog.fileSelected.connect(chosen)
        open_dialog(dialog)

    def _ask_quality(self, savable: Savable, path: Path, *, lossy: bool = False) -> None:
        """Write the files; of a JPEG ask for its quality before, and for any other loss first."""
        first = savable.images[0]
        has_quality = isinstance(first, Image) and path.suffix.lower() in _JPEG
        if has_quality or savable.compute is not None:
            try:
                for images, target in savable.files(path):
                    _check(images, target, lossy=lossy)
            except AppError as error:
                self._on_unwritten(savable, path, None, error)
                return
        if not has_quality:
            self._write(savable, path, lossy=lossy)
            return
        assert isinstance(first, Image)
        own = jpeg_quality(self.settings)
        source = "Usual" if own is None else "As set in Edit > Preferences"
        usual, read = own or jpeg_coding(first.pixels, first.metadata).quality, first.metadata.jpeg
        text = f"Quality of {path.name}, 1 to 100\n{source}: {usual}"
        if read is not None:
            text = f"{text}, that of the original: {read.quality}"
        dialog = self._question("saveQuality", text)
        dialog.setIntRange(1, 100)
        dialog.setIntValue(usual)
        dialog.setOkButtonText("Save")
        dialog.intValueSelected.connect(
            lambda quality: self._write(savable, path, quality, lossy=lossy)
        )
        open_dialog(dialog)
        # A digit that was typed before this was there would replace the number.
        for box in dialog.findChildren(QDialogButtonBox):
            box.button(QDialogButtonBox.StandardButton.Ok).setFocus()
        if savable.compute is None:
            self._measure(dialog, first, path, text)

    def _measure(self, dialog: QInputDialog, image: Image, path: Path, text: str) -> None:
        """Write below `text` how large the file becomes at the quality that is chosen."""
        busy = False

        def follow() -> None:
            nonlocal busy
            dialog.setLabelText(f"{text}\nFile: …")
            if busy:
                return
            busy, quality = True, dialog.intValue()

            def show(size: int) -> None:
                nonlocal busy
                busy = False
                if dialog.intValue() != quality:
                    follow()
                    return
                unit = QLocale.DataSizeFormat.DataSizeSIFormat
                size_text = QLocale.c().formattedDataSize(size, 2, unit)
                dialog.setLabelText(f"{text}\nFile: {size_text}")

            self._background.start(
                "file size",
                lambda: len(encoded(image, path, quality)),
                show,
                lambda _: dialog.setLabelText(text),
            )

        dialog.intValueChanged.connect(follow)
        dialog.finished.connect(lambda: self._background.forget("file size"))
        follow()

    def _write(
        self, savable: Savable, path: Path, quality: int | None = None, *, lossy: bool = False
    ) -> None:
        if savable.compute is not None:
            savable.compute(path, lambda made: self._write(made, path, quality, lossy=lossy))
            return
        files = savable.files(path)
        names = ", ".join(target.name for _, target in files)
        self.announced.emit(f"Saving {names}…")

        def write() -> None:
            for images, target in files:
                first, *others = images
                if isinstance(first, Image):
                    write_image(first, target, lossy=lossy, quality=quality)
                elif others:
                    write_volumes([each for each in images if isinstance(each, Volume)], target)
                else:
                    write_volume(first, target, lossy=lossy)

        def written(_: None) -> None:
            notices = [
                notice for images, target in files for notice in record_of(target, *images).losses
            ]
            first, *others = savable.images
            if savable.whole:
                part = f"They are {len(savable.images)}" if others else "It is one"
                notices.append(
                    f"{part} of the {savable.whole} of the input; "
                    "File > Save All Volumes saves all of them."
                )
            if quality is not None and isinstance(first, Image):
                chroma = jpeg_coding(first.pixels, first.metadata).chroma
                notices.append(f"JPEG quality {quality}{chroma and f', chroma {chroma}'}.")
            self.announced.emit(
                "  ".join((f"Saved {path if len(files) == 1 else names}.", *notices))
            )
            for each in files:
                self.saved.emit(savable, each[1])

        self._background.start(
            "save",
            write,
            written,
            lambda error: self._on_unwritten(savable, path, quality, error),
            must_finish=True,
        )

    def _on_unwritten(
        self, savable: Savable, path: Path, quality: int | None, error: Exception
    ) -> None:
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
                self._ask_quality(savable, path, lossy=True)
            else:
                self.save(savable._replace(name=stem(path)))

        self.ask("saveProblem", error.message, error.hint, answers, answered)

    def _ask_overwrite(self, savable: Savable, path: Path, there: Sequence[Path]) -> None:
        names = " and ".join(f"“{each.name}”" for each in there)
        self.ask(
            "overwrite",
            f"{names} already exist{'s' * (len(there) == 1)}.",
            "Replace it?" if len(there) == 1 else "Replace them?",
            ["Replace", "Choose Another Name…"],
            lambda answer: (
                self._ask_quality(savable, path)
                if answer == "Replace"
                else self.save(savable._replace(name=stem(path)))
            ),
        )

    def ask(
        self,
        name: str,
        text: str,
        details: str,
        answers: list[str],
        then: Callable[[str], None],
        usual: str = "",
    ) -> None:
        """Ask a question with buttons for `answers` and Cancel; call ``then(answer)``.

        Return chooses Cancel, or the `usual` answer.
        """
        box = dressed(QMessageBox(self._window), name)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("Kernelscope")
        box.setTextFormat(Qt.TextFormat.PlainText)  # a name may look like HTML
        box.setText(printable(text))
        box.setInformativeText(details)
        buttons = {box.addButton(a, QMessageBox.ButtonRole.AcceptRole): a for a in answers}
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(next((each for each in buttons if buttons[each] == usual), cancel))
        box.buttonClicked.connect(
            lambda button: then(buttons[button]) if button in buttons else None
        )
        open_dialog(box)
