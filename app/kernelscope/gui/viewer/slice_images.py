"""Slices of volumes as pictures to paint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage, qRgb

from kernelscope.gui.model.colour_maps import ColourMap, table


class Drawn(NamedTuple):
    """A slice as it is painted.

    `steps` (shape (rows, columns)): steps of the colour map, C-ordered; None for no slice. `layer`
    (shape (rows, columns, 4)): colours with opacity, painted over it.
    """

    steps: NDArray[np.uint8] | None = None
    colour_map: ColourMap = ColourMap.GREY
    layer: NDArray[np.uint8] | None = None


def picture_of(drawn: Drawn) -> QImage | None:
    """Return a slice without its layer; None without a slice."""
    if drawn.steps is None:
        return None
    rows, columns = drawn.steps.shape
    grey = drawn.colour_map is ColourMap.GREY
    layout = QImage.Format.Format_Grayscale8 if grey else QImage.Format.Format_Indexed8
    # A copy: Qt does not keep the array alive.
    image = QImage(drawn.steps.data, columns, rows, columns, layout).copy()
    if not grey:
        image.setColorTable([qRgb(*colour) for colour in table(drawn.colour_map).tolist()])
    return image


def layer_of(drawn: Drawn) -> QImage | None:
    """Return the layer over a slice; None without one."""
    if drawn.layer is None:
        return None
    rows, columns = drawn.layer.shape[:2]
    layout = QImage.Format.Format_RGBA8888
    return QImage(drawn.layer.data, columns, rows, 4 * columns, layout).copy()
