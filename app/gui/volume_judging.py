"""How good volumes are beside the truth, where that is known, and how their values spread."""

from __future__ import annotations

import numpy as np

from app.engine.volume import Volume
from app.gui.comparison import Judged
from app.gui.histogram_view import Histogram
from app.judging.pictures import histogram
from app.judging.volumes import judge_volume


def judge_volumes(
    before: Volume, after: Volume | None, truth: Volume | None
) -> tuple[Judged, dict[str, Histogram]]:
    """Return the figures of input and output, and their histograms by name.

    Takes a while: call it off the GUI thread.
    """
    volumes = {"input": before} | ({"output": after} if after is not None else {})
    histograms = {name: _histogram(volume) for name, volume in volumes.items()}
    if truth is None:
        return Judged(), histograms
    figures = {
        name: judge_volume(volume.voxels, truth.voxels).quality for name, volume in volumes.items()
    }
    return Judged(figures["input"], figures.get("output")), histograms


def _histogram(volume: Volume) -> Histogram:
    voxels = volume.voxels
    if voxels.dtype == np.int16:
        voxels = voxels.astype(np.float32)
    return Histogram(*histogram(voxels.reshape(-1, volume.width, 1)))
