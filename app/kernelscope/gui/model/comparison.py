"""Results compared with their input and reference, and the moments that their outputs lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from kernelscope.base.errors import Incomparable
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.steps import run_steps
from kernelscope.files.depth import to_grey
from kernelscope.gui.model.histogram_plot import fine_histogram
from kernelscope.gui.model.history import Moment, Opened, Part, Reference, ReferenceOrigin, parts_of
from kernelscope.gui.model.pipeline import NOISE
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import Quality, judge, judge_volume
from kernelscope.images.judging.pictures import Histogram
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import colour_count

NO_REFERENCE = "Choose a reference (menu Edit, Reference)"


class View(StrEnum):
    OUTPUT = "output"
    RESIDUAL = "residual"
    DIFFERENCE = "difference"


@dataclass(frozen=True)
class Judged:
    """How close input and output are to the reference, or the `problem` of one of them."""

    before: Quality | None = None
    after: Quality | None = None
    problem: str = ""


Evaluation: TypeAlias = tuple[Judged, dict[str, Histogram]]
"""Figures, and the histograms of “input” and “output”."""


def offset_of(request: Request) -> int:
    """Return where the output begins in the input: border “valid” crops it on all sides."""
    steps = [request.step, *(each.step for each in request.then)]
    return sum(step.filter.radius(step.parameters) for step in steps if step.border is Border.VALID)


def like_output(image: Part, result: Result) -> Part:
    """Return a picture of the input's size cropped and converted to grey as the output is.

    Of an output that is a part, one of the size of the whole is cropped as well. No output of a
    volume has another size, or colours.
    """
    if not isinstance(image, Image):
        return image
    source, output, region = result.request.image, result.image, result.request.region
    planes = image.planes
    if (image.height, image.width) == (source.height, source.width):
        start = offset_of(result.request)
        height, width = result.request.whole_shape[:2]
        planes = planes[start : start + height, start : start + width]
    if isinstance(region, Region) and planes.shape[:2] == result.request.whole_shape[:2]:
        planes = region.of(planes)
    if output.is_grey and not image.is_grey:
        planes = np.concatenate([to_grey(planes[:, :, :3]), planes[:, :, 3:]], axis=2)
    if planes.shape == image.planes.shape:
        return image
    return cast(Part, Image.from_array(planes, image.title, image.path))


def following(moment: Moment[Opened, Part]) -> Moment[Opened, Part]:
    """Return the moment whose input is the output of `moment`.

    References are kept, in the form of the output. The input of a noise filter becomes the
    reference by itself, unless the user has chosen one. Takes a while for large pictures.
    """
    result = moment.result
    assert result is not None
    step, output = result.request.step, cast(Opened, result.output)
    references = {}
    for old, new in zip(parts_of(moment.source), parts_of(output), strict=True):
        reference = moment.references.get(cast(Part, old))
        if step.filter.category == NOISE and (
            reference is None or reference.origin is ReferenceOrigin.KEPT
        ):
            reference = Reference(cast(Part, old), ReferenceOrigin.NOISE)
        if reference is not None:
            like = like_output(reference.image, result)
            references[cast(Part, new)] = replace(reference, image=like)
    runs: tuple[Request, ...] = result.requests
    pipeline = moment.pipeline
    if pipeline is not None:
        request = result.request
        pipeline = pipeline.edited(RunSettings(request.step.unestimated, request.options))
        pipeline = pipeline.made(request.then).followed()
    name = runs[-1].step.filter.name
    return Moment(output, name, (*moment.steps, *runs), references, pipeline=pipeline)


def with_reference(request: Request, reference: Reference[Any] | None) -> Request:
    """Return a request for a picture with the reference, if its result compares with that."""
    if reference is None or not isinstance(reference.image, Image):
        return request
    height, width, channels = request.output_shape
    expected = (height, width, colour_count(channels))
    same_type = request.image.pixels.dtype == reference.image.pixels.dtype
    if same_type and colours(reference.image.planes).shape == expected:
        return replace(request, reference=reference.image)
    return request


def quality_of(result: Result | None, reference: Reference[Any] | None) -> Judgement | None:
    """Return the figures that a run has against `reference`: those of another do not hold."""
    if result is None or reference is None or result.request.reference is not reference.image:
        return None
    return result.quality


def output_of(result: Result, part: Image | Volume) -> Image | Volume:
    """Return the output of a part of the source."""
    pairs = zip(parts_of(result.request.source), parts_of(result.output), strict=True)
    return next(after for before, after in pairs if before is part)


def judge_both(part: Image | Volume, result: Result | None, reference: Image | Volume) -> Judged:
    """Evaluate input and output against the reference, unless the run has; takes a while."""
    if result is None:
        before = _judge(part, reference)
        return Judged(problem=before) if isinstance(before, str) else Judged(before)
    known = result.quality if result.request.reference is reference else None
    if known is not None and known.before is not None:
        return Judged(known.before, known.after)
    output, kind = output_of(result, part), result.request.source.kind
    part, reference = like_output(part, result), like_output(reference, result)
    before = _judge(part, reference)
    spec = result.request.step.filter
    after: Quality | str = f"{spec.name} does not restore a {kind}: its result is not compared."
    if spec.restores:
        after = _judge(output, reference)
    return Judged(
        None if isinstance(before, str) else before,
        None if isinstance(after, str) else after,
        after if isinstance(after, str) else "",
    )


def _judge(part: Image | Volume, reference: Image | Volume) -> Quality | str:
    levels = reference.levels
    try:
        if isinstance(part, Volume) and isinstance(reference, Volume):
            return judge_volume(part.voxels, reference.voxels, levels=levels)
        assert isinstance(part, Image)
        assert isinstance(reference, Image)
        return judge(colours(part.planes), colours(reference.planes), levels=levels)
    except Incomparable as error:
        return str(error)


def histogram_of(part: Image | Volume) -> Histogram:
    if isinstance(part, Image):
        return fine_histogram(colours(part.planes))
    voxels = part.voxels
    if voxels.dtype == np.int16:
        voxels = voxels.astype(np.float32)
    return fine_histogram(voxels.reshape(-1, part.width, 1))


class StepProgress(NamedTuple):
    step: str  # its number and name, to put before the stage; empty if there is only one
    stage: str
    fraction: float
    left: str | None = None
    """The time left of the whole job, empty until it is known; None: that of the stage is it."""


class StepDone(NamedTuple):
    result: Result
    next: Moment[Any, Any] | None
    """The moment with its output as the input; None after the last step."""


class RecipeRun:
    """Runs the request of a recipe, see `recipe_request`, from a moment on."""

    def __init__(self, request: Request, moment: Moment[Any, Any], costs: Costs) -> None:
        self._request, self._moment, self._costs = request, moment, costs
        self.left = False  # whether the run ends after the present step: another input is shown

    def run(
        self,
        backends: Mapping[str, Backend],
        token: CancelToken,
        report: Callable[[StepProgress | StepDone], None],
    ) -> None:
        request, moment = self._request, self._moment
        last = 1 + len(request.then)

        def refer(each: Request) -> Request:
            return with_reference(each, moment.references.get(each.source))

        def progress_of(number: int) -> Progress:
            prefix = request.prefix(number)
            step = prefix.replace(",", f" of {last},", 1)
            return lambda stage, fraction: report(StepProgress(step, stage, fraction))

        results = run_steps(
            request, backends, token, costs=self._costs, report=progress_of, refer=refer
        )
        for number, result in enumerate(results, 1):
            if number == last:
                report(StepDone(result, None))
                return
            done = replace(moment, result=result, settings=RunSettings.of(result.request))
            moment = following(done)
            report(StepDone(result, moment))
            if self.left:
                return
