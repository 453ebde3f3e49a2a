"""SciPy, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.bench.peers.library import Library
from kernelscope.bench.peers.ndimage import NdImage


def _ndimage() -> Any:
    import scipy.ndimage

    return scipy.ndimage


LIBRARY = Library(
    name="SciPy", module="scipy", makers=NdImage(lambda: np, _ndimage).makers(), rank=1
)
