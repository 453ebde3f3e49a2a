"""What a run did to a picture: differences, figures, and the reference for the next run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.errors import Incomparable
from kernelscope.files.depth import to_grey
from kernelscope.gui.model.history import Moment, Origin, Reference
from kernelscope.images.image import Image
from kernelscope.judging import colours
from kernelscope.judging.metrics import Quality, judge
from kernelscope.spec.borders import Border
from kernelscope.spec.samples import colour_count

NOISE = "Noise"
"""The category of filters that spoil a picture, so that others can be judged by mending it."""

NO_REFERENCE = "Choose a reference (menu Edit, Reference)"


class View(StrEnum):
    """What can be shown of a result."""

    OUTPUT = "output"
    RESIDUAL = "residual"
    DIFFERENCE = "difference"


@dataclass(frozen=True)
class Judged:
    """How input and output compare with the reference; None where they do not.

    `problem` says why the output, or without one the input, does not compare.
    """

    before: Quality | None = None
    after: Quality | None = None
    problem: str = ""


def offset_of(request: Request) -> int:
    """Return where the result begins in the input: border “valid” cuts off the rim."""
    valid = request.step.border is Border.VALID
    return request.step.filter.radius(request.step.parameters) if valid else 0


def like_output(image: Image, result: Result) -> Image:
    """Return a picture of the input's size as the output shows it: without the rim, in grey."""
    source, output = result.request.image, result.image
    planes = image.planes
    if (image.height, image.width) == (source.height, source.width):
        start = offset_of(result.request)
        planes = planes[start : start + output.height, start : start + output.width]
    if output.is_grey and not image.is_grey:
        planes = np.concatenate([to_grey(planes[:, :, :3]), planes[:, :, 3:]], axis=2)
    if planes.shape == image.planes.shape:
        return image
    return Image.from_array(planes, image.title, image.path)


def following(moment: Moment[Image]) -> Moment[Image]:
    """Return the moment whose input is the output of `moment`.

    What the picture was before noise was added becomes the reference by itself, unless there
    is one already for this picture.
    """
    result = moment.result
    assert result is not None
    reference = moment.reference
    noise = result.request.step.filter.category == NOISE
    if noise and (reference is None or reference.origin is Origin.KEPT):
        reference = Reference(moment.source, Origin.NOISE)
    if reference is not None:
        reference = replace(reference, image=like_output(reference.image, result))
    steps = (*moment.steps, result.request)
    return Moment(result.image, result.request.step.filter.name, steps, reference)


def judging(request: Request, reference: Reference[Image] | None) -> Request:
    """Return `request` with the reference, if its result will compare with that."""
    if reference is None:
        return request
    height, width, channels = request.output_shape
    same_type = request.image.pixels.dtype == reference.image.pixels.dtype
    if same_type and colours(reference.image.planes).shape == (
        height,
        width,
        colour_count(channels),
    ):
        return replace(request, reference=reference.image)
    return request


def judge_both(image: Image, result: Result | None, reference: Image) -> Judged:
    """Compare input and output with the reference, where the run has not done so already.

    Takes a while for large images: call it off the GUI thread.
    """
    if result is None:
        before = _judge(image, reference)
        return Judged(before) if isinstance(before, Quality) else Judged(problem=before)
    known = result.quality if result.request.reference is reference else None
    if known is not None and known.before is not None:
        return Judged(known.before, known.after)
    reference = like_output(reference, result)
    before = _judge(like_output(image, result), reference)
    after = _judge(result.image, reference)
    return Judged(
        before if isinstance(before, Quality) else None,
        after if isinstance(after, Quality) else None,
        after if isinstance(after, str) else "",
    )


def _judge(image: Image, reference: Image) -> Quality | str:
    """Return the quality, or why there is none."""
    try:
        return judge(colours(image.planes), colours(reference.planes))
    except Incomparable as error:
        return str(error)
