"""What volumes are judged by, how good they are beside that, and how their values spread."""

from __future__ import annotations

import numpy as np

from kernelscope.gui.model.comparison import NOISE, Judged
from kernelscope.gui.model.history import Moment, Origin, Reference
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.judging.histogram import Histogram
from kernelscope.judging.volumes import judge_volume


def following(moment: Moment[Scan]) -> Moment[Scan]:
    """Return the moment whose input is the output of `moment`.

    A volume keeps its reference. What it was before noise was added becomes the reference by
    itself, unless there is one already for this volume.
    """
    result = moment.result
    assert result is not None
    noise = result.request.step.filter.category == NOISE
    references = {}
    for old, new in zip(moment.source.volumes, result.scan.volumes, strict=True):
        reference = moment.references.get(old)
        if noise and (reference is None or reference.origin is Origin.KEPT):
            reference = Reference(old, Origin.NOISE)
        if reference is not None:
            references[new] = reference
    steps = (*moment.steps, result.request)
    return Moment(result.scan, result.request.step.filter.name, steps, references=references)


def judge_volumes(
    before: Volume, after: Volume | None, reference: Volume | None
) -> tuple[Judged, dict[str, Histogram]]:
    """Return the figures of input and output, and their histograms by name.

    Takes a while: call it off the GUI thread.
    """
    volumes = {"input": before} | ({"output": after} if after is not None else {})
    histograms = {name: _histogram(volume) for name, volume in volumes.items()}
    if reference is None:
        return Judged(), histograms
    figures = {
        name: judge_volume(volume.voxels, reference.voxels) for name, volume in volumes.items()
    }
    return Judged(figures["input"], figures.get("output")), histograms


def _histogram(volume: Volume) -> Histogram:
    voxels = volume.voxels
    if voxels.dtype == np.int16:
        voxels = voxels.astype(np.float32)
    return Histogram.of(voxels.reshape(-1, volume.width, 1))
