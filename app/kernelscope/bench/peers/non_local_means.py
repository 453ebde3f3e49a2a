"""Conversion of our non-local means strength to that of OpenCV and scikit-image."""

from __future__ import annotations

import math

from kernelscope.bench.peers.library import Parameters
from kernelscope.filters.shared.non_local import falloff
from kernelscope.schema.borders import Border


def distance(parameters: Parameters, border: Border) -> float | None:
    """Return the root of the mean squared difference of patches at which a weight is 1 / e.

    None unless the libraries have such non-local means too: uniform patches, a search window, and
    a mirrored border.
    """
    shared = parameters["weights"] == "uniform" and parameters["search"] == "window"
    if not shared or border is not Border.MIRROR:
        return None
    return float(math.sqrt(falloff(parameters)) / parameters["patch"])
