"""Measures how long a picture takes from its samples to the pixels of a view.

    PYTHONPATH=app .venv/bin/python resources/bench/rendering.py

Each row is processor time of all threads, in milliseconds: the least of several repeats, after one
that compiles. A view of 900×900 pixels is painted into memory, as on a platform without a screen.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QPointF, QRect, QSizeF
from PySide6.QtGui import QGuiApplication, QImage, QPainter

from kernelscope.gui.model.display import Display
from kernelscope.gui.model.drawn_view import Pyramid
from kernelscope.gui.viewer.layer import Layer
from kernelscope.images.image import Image

SIDE, VIEW, REPEATS = 4096, 900, 7
SCALES = {"fitted": VIEW / SIDE, "60 %": 0.6, "100 %": 1.0, "250 %": 2.5, "800 %": 8.0}


def pictures() -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield a picture of each type."""
    random = np.random.default_rng(1)
    yield "grey, 8 bit", random.integers(0, 256, (SIDE, SIDE), np.uint8)
    yield "RGB, 8 bit", random.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    yield "grey, 12 in 16 bit", random.integers(0, 4096, (SIDE, SIDE), np.uint16)
    yield "grey, float", random.random((SIDE, SIDE), np.float32) * 85 - 20


def least(work: Callable[[], object]) -> float:
    """Return the least processor time of `work`, in milliseconds."""
    times = []
    for _ in range(REPEATS + 1):
        begun = time.process_time()
        work()
        times.append(1000 * (time.process_time() - begun))
    return min(times[1:])


def measured(image: Image, scale: float) -> tuple[float, float, float]:
    """Return the times to reduce, to paint, and to paint with another level."""
    automatic = Display.automatic(image.planes)
    room = QImage(VIEW, VIEW, QImage.Format.Format_RGB32)
    pyramid, cell = Pyramid(image.planes).prepare(scale), QSizeF(scale, scale)

    def paint(display: Display) -> None:
        layer = Layer(image.planes, pyramid, 0, display)
        painter = QPainter(room)
        layer.paint(painter, QPointF(), cell, QRect(0, 0, VIEW, VIEW), lambda *_: None)
        painter.end()

    reducing = least(lambda: Pyramid(image.planes).prepare(scale))
    other = Display(automatic.low, automatic.level, 0.8)
    return reducing, least(lambda: paint(automatic)), least(lambda: paint(other))


def main() -> None:
    application = QGuiApplication([])
    print(f"{SIDE}×{SIDE} into {VIEW}×{VIEW}, processor ms, {platform.machine()}, ", end="")
    print(f"{os.cpu_count()} cores")
    print(f"{'':20}{'':10}{'reduce':>9}{'paint':>9}{'sum':>9}{'other level':>14}")
    for name, pixels in pictures():
        image = Image.from_array(pixels)
        for zoom, scale in SCALES.items():
            reducing, painting, other = measured(image, scale)
            total = reducing + painting
            print(f"{name:20}{zoom:10}{reducing:9.1f}{painting:9.1f}{total:9.1f}{other:14.1f}")
    application.quit()


if __name__ == "__main__":
    main()
