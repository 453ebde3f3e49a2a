"""The parts that dialogs for opening and for saving share: where they start, and their filters."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QStandardPaths

from kernelscope.files import Format
from kernelscope.gui.widgets.settings import Settings


def folder_for(settings: Settings, purpose: str) -> str:
    """Return where a dialog opens: the folder used last, or else the user's pictures.

    `purpose` is “open” or “save”. The first save goes to the folder of the last file, which may
    have been dropped.
    """
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
