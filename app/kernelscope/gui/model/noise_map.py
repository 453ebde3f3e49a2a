"""A map of the noise around each voxel, and its figures in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.files.names import stem_of
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import Diagnostic


def noise_map(volume: Volume, diagnostic: Diagnostic, settings: tuple[Any, ...]) -> Volume:
    shown = volume.with_voxels(diagnostic.compute(volume.voxels, settings), as_float=True)
    return replace(shown, title=f"{stem_of(volume)}-{diagnostic.name.lower()}")


def figures_of(shown: Volume) -> str:
    """Return ``median 12.1, mostly 10.2 to 15``."""
    low, middle, high = np.percentile(shown.voxels[::2, ::2, ::2], (5, 50, 95)).tolist()
    return f"median {middle:.4g}, mostly {low:.4g} to {high:.4g}"
