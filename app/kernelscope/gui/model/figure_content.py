"""The pictures and the caption of a figure, from a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.region import Region
from kernelscope.engine.result import Judgement, Result
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.comparison import View, like_output
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.figure import Picture, described
from kernelscope.gui.model.times import NOT_TIMED, duration
from kernelscope.gui.model.timing import Timing
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.planes import Plane
from kernelscope.images.volume import Volume

_SHARE = 99.8
"""Percentile of the changes that has the last colour; a few larger ones would hide the rest."""

_NAMES = {View.RESIDUAL: "Residual: output − input", View.DIFFERENCE: "Output − reference"}


def of_pictures(
    result: Result,
    reference: Image | None,
    displays: tuple[Display, Display],
    third: View | None,
    region: Region | None,
) -> tuple[Picture, ...]:
    """Return input, output and the wanted change of a result that is a picture.

    `displays`: of input and output. `third`: `View.RESIDUAL` or, with a reference,
    `View.DIFFERENCE`. `region`: the part of the output to show; by default all of it.

    Raises `Incomparable`: if the reference has another size.
    """
    output = result.image
    source = like_output(result.request.image, result)
    pictures = [
        Picture("Input", _cut(source.planes, region), displays[0], bar=_bar(displays[0])),
        Picture("Output", _cut(output.planes, region), displays[1], bar=_bar(displays[1])),
    ]
    other = source if third is View.RESIDUAL else reference and like_output(reference, result)
    if third in _NAMES and other is not None:
        first, second = (_cut(colours(each.planes), region) for each in (output, other))
        pictures.append(_change(_NAMES[third], first, second))
    return tuple(pictures)


def of_slices(
    volumes: Sequence[tuple[str, Volume]],
    other: Volume | None,
    plane: Plane,
    index: int,
    displays: tuple[Display, Display],
    third: View | None,
    region: Region | None = None,
) -> tuple[Picture, ...]:
    """Return a slice of each volume, as it lies on the screen, and the wanted change of the last.

    `volumes`: input and output with their titles; of one shape. `other`: the volume to subtract
    from the last one. `displays`: of input and output. `region`: the part of the slice to show; by
    default all of it.
    """
    (_, first), *_ = volumes
    pixel = first.spacing[plane.columns], first.spacing[plane.rows]

    def cut(volume: Volume) -> NDArray[Any]:
        return _cut(np.ascontiguousarray(plane.cut(volume.voxels, index))[:, :, np.newaxis], region)

    pictures = [
        Picture(title, cut(each), display, pixel, _bar(display))
        for (title, each), display in zip(volumes, displays, strict=True)
    ]
    if third in _NAMES and other is not None:
        pictures.append(_change(_NAMES[third], cut(volumes[-1][1]), cut(other), pixel))
    return tuple(pictures)


def caption_of(
    result: Result, judgement: Judgement | None, place: str = "", *, in_part: bool = False
) -> str:
    """Return the caption of a figure: input, settings, device, time and quality.

    `place`: which slice, of a volume. `in_part`: whether the figure shows a part of a picture: the
    quality is that of the whole.
    """
    timing = Timing.of(result)
    count = len(timing.repeats.totals) if timing.repeats is not None else 1
    measured = f"median of {count}" if count > 1 else "one run"
    taken = f"{duration(timing.seconds)} ({measured})" if timing.seconds is not None else NOT_TIMED
    title = ", ".join(filter(None, (result.request.source.title, place)))
    text = f"{title}. {result.settings}. {result.where}: {taken}."
    if judgement is None or not np.isfinite(judgement.after.psnr):
        return text
    of_whole = " of the whole volume" if place else " of the whole picture" if in_part else ""
    after = f"{judgement.after.psnr:.2f} dB{of_whole}"
    if judgement.before is None or not np.isfinite(judgement.before.psnr):
        return f"{text} PSNR {after}."
    return f"{text} PSNR {judgement.before.psnr:.2f} → {after}."


def region_in_view(
    seen: tuple[float, float, float, float], height: int, width: int, offset: int = 0
) -> Region | None:
    """Return the part of an output or a slice that is in view; None if nothing, or all of it, is.

    `seen`: left, top, right and bottom in pixels of the input. `offset`: place of the first row and
    column in the input.
    """
    left, top = (max(0, int(np.floor(each - offset))) for each in seen[:2])
    right, bottom = (int(np.ceil(each - offset)) for each in seen[2:])
    right, bottom = min(right, width), min(bottom, height)
    if left >= right or top >= bottom or (right - left, bottom - top) == (width, height):
        return None
    return Region(top, left, bottom - top, right - left)


def _cut(planes: NDArray[Any], region: Region | None) -> NDArray[Any]:
    return planes if region is None else region.of(planes)


def _bar(display: Display) -> tuple[str, str, str] | None:
    """Return the labels of a bar where colours stand for values."""
    return None if display.colour_map.is_grey else described(display.low, display.high)


def _change(
    title: str,
    planes: NDArray[Any],
    other: NDArray[Any],
    pixel: tuple[float, float] = (1.0, 1.0),
) -> Picture:
    """Return ``planes - other`` around the middle of a diverging map; of colours, around grey."""
    change = planes.astype(np.float32) - other
    most = float(np.abs(change).max())
    limit = float(np.percentile(np.abs(change), _SHARE)) or most or 1.0
    grey = change.shape[2] == 1
    display = Display(-limit, limit, 1.0, ColourMap.DIVERGING if grey else ColourMap.GREY)
    low, middle, high = described(-limit, limit)
    if most > limit:  # a few samples lie beyond, and have the colours of the ends
        low, high = f"≤ {low}", f"≥ {high}"
    return Picture(title, change, display, pixel, (low, middle, high))
