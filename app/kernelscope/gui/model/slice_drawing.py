"""How slices of volumes are drawn: steps of a colour map, and differences laid over anatomy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelscope.gui.model.colour_maps import ColourMap, table
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.projection import Projection
from kernelscope.images.image import Image
from kernelscope.images.planes import Plane
from kernelscope.images.volume import Volume

_FAINTEST = 64
"""Steps from the middle of the diverging map at which differences over anatomy begin: nearer to it
the colours are too dark to be distinguished."""


@dataclass(frozen=True)
class Look:
    """The choices of the user on how slices are made of volumes, and differences are drawn."""

    projection: Projection = Projection.SLICE
    slices: int = 0
    """Thickness of the slab that is projected; 0 for all slices."""
    overlaid: bool = False
    """Whether differences are drawn over the volume that was subtracted."""
    opacity: float = 0.8
    """Of the strongest differences over the picture or anatomy, 0 to 1."""
    threshold: float = 0.0
    """Smaller differences are not drawn there, in units of the values."""

    def layer(self, change: NDArray[np.float32], width: float, gain: int) -> NDArray[np.uint8]:
        """Return differences as colours to be drawn over anatomy.

        The size of a difference decides on its opacity, so that the anatomy shows through where
        little changed; `opacity` is reached where the difference alone would saturate. `width`:
        from black to white, in the anatomy.

        Returns
        -------
        ndarray of uint8, shape (rows, columns, 4)
            Red, green, blue and opacity; not premultiplied.
        """
        share = np.clip(change * np.float32(2 * gain / width), -1, 1)
        size = np.abs(share)
        middle = np.where(share < 0, 128 - _FAINTEST, 127 + _FAINTEST)
        steps = middle + np.rint(share * (127 - _FAINTEST)).astype(int)
        result = np.empty((*change.shape, 4), np.uint8)
        result[..., :3] = table(ColourMap.DIVERGING)[steps]
        seen = (np.abs(change) >= self.threshold) & (change != 0)
        result[..., 3] = np.rint(255 * self.opacity * size * seen)
        return result


def drawn_slice(volume: Volume, plane: Plane, index: int, display: Display) -> Image:
    """Return a slice as it is drawn, for the filters for pictures.

    Bytes stay as they are; other values become floats from 0, drawn black, to 1, drawn white.
    """
    title = f"{volume.title}, {plane.name.lower()} {index + 1}"
    cut = plane.cut(volume.voxels, index)
    if cut.dtype == np.uint8:
        return Image.from_array(cut.copy(), title)
    notice = f"Values from {display.low:.4g} to {display.high:.4g} became 0 to 1."
    share = np.multiply(cut, np.float32(1 / display.width), dtype=np.float32, order="C")
    share -= np.float32(display.low / display.width)
    return Image.from_array(share, title, notices=(notice,))
