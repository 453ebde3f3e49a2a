"""CuPy, on the GPU: it has the functions of ``scipy.ndimage``."""

from __future__ import annotations

from typing import Any

from kernelscope.bench.peers import card
from kernelscope.bench.peers.library import Library
from kernelscope.bench.peers.ndimage import NdImage


def _ndimage() -> Any:
    import cupyx.scipy.ndimage

    return cupyx.scipy.ndimage


LIBRARY = Library(
    name="CuPy",
    module="cupy",
    makers=NdImage(card.cupy, _ndimage).makers(),
    rank=5,
    on_card=True,
)
