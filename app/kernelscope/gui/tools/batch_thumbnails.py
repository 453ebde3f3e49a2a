"""Thumbnails of the queue of a batch, made for the files that are looked at."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QPainter, QPixmap

from kernelscope.base.errors import AppError
from kernelscope.files import read_image
from kernelscope.files.volumes import is_dicom, is_volume, read_volume
from kernelscope.gui.model.gallery import thumbnail
from kernelscope.gui.widgets.tiles import draw_thumbnail
from kernelscope.gui.work.background import Background
from kernelscope.images.scan import Scan

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
        self._closed = False
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

    def close(self) -> None:
        """Make no more."""
        self._wanted.clear()
        self._closed = True

    def open(self) -> None:
        """Make thumbnails again after `close`."""
        self._closed = False

    def _next(self) -> None:
        if self._busy or self._closed or not self._wanted:
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
    """Return the thumbnail of a picture or of the middle slice of a volume; None for none."""
    try:
        if path.is_dir() or path.stat().st_size > _MOST_BYTES:
            return None
        if is_volume(path):
            alone = (path,) if is_dicom(path) else ()  # one slice, and not its whole series
            return thumbnail(Scan((read_volume(path, nan=0.0, slices=alone),)), _SIDE)
        return thumbnail(read_image(path, nan=0.0), _SIDE)
    except (AppError, OSError):
        return None


def _framed(pixels: NDArray[np.uint8] | None) -> QPixmap:
    """Return a picture on the dark ground of pictures, all of one size."""
    frame = QPixmap(SIZE * 2)
    painter = QPainter(frame)
    draw_thumbnail(painter, frame.rect(), pixels)
    painter.end()
    frame.setDevicePixelRatio(2)
    return frame
