"""One request with several values of a parameter, or filters: the cells of a contact sheet.

    request (median 5) -> variants("size", 9) -> median 3, 5, 7 ... 19 -> evaluated results

Each result is judged: against the reference where there is one, or else, if the noise of the
source is white and Gaussian, by an estimate of its error from the noisy picture alone
(`judging.noise`). Of correlated noise, as in a JPEG, it would be several dB too good.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import AppError, Incomparable
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.engine.steps import prepared
from kernelscope.filters.shared.noise_model import NoiseKind, find_noise
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import judge
from kernelscope.images.judging.noise import estimate_risk, gaussian_sigma, is_clipped
from kernelscope.schema.parameters import Parameter
from kernelscope.schema.samples import UNIT, white_level

CELLS = 9  # values on a contact sheet

Execute = Callable[[Request], Result]


@dataclass(frozen=True, eq=False)
class Variant:
    """One value of the parameter, and the request with it; None where it cannot be run."""

    caption: str
    value: Any  # the id of a filter
    request: Request | None
    problem: str = ""

    @property
    def key(self) -> Hashable:
        """The content of its result and its score."""
        request = self.request
        if request is None:
            return None
        return request.work, request.options, request.region, id(request.reference)


@dataclass(frozen=True)
class Score:
    psnr: float  # in dB
    estimated: (
        bool  # whether it was estimated without a reference, which supposes white Gaussian noise
    )


@dataclass(frozen=True, eq=False)
class Cell:
    index: int
    variant: Variant
    result: Result | None = None
    score: Score | None = None  # where there is a reference, or white Gaussian noise
    problem: str = ""
    same: Variant | None = None  # an earlier variant whose result is the same, sample by sample


def sweepable(request: Request) -> tuple[Parameter, ...]:
    """Return the parameters of `request` that have variants, and matter with its settings.

    Strengths come first.
    """
    step = request.step
    found = (
        each
        for each in step.filter.parameters
        if each.acts(step.parameters, grey=request.is_grey)
        and len(each.variants(step.parameters[each.name], CELLS)) > 1
    )
    return tuple(sorted(found, key=lambda each: not each.is_strength))


def variants(request: Request, name: str, count: int = CELLS) -> list[Variant]:
    """Return `request` with up to `count` values of the parameter `name`, its own among them."""
    step = request.step
    parameter = step.filter.parameter(name)
    found = []
    for value in parameter.variants(step.parameters[name], count):
        varied = step
        if value != step.parameters[name]:
            estimates = tuple(each for each in step.estimates if each != name)
            varied = replace(step, parameters={**step.parameters, name: value}, estimates=estimates)
        found.append(_variant(request, varied, parameter.caption(value), value))
    return found


def filter_variants(request: Request, others: Iterable[Step]) -> list[Variant]:
    """Return `request` with its own and with other filters, whose numbers the runs estimate."""
    own, device = request.step, request.options.device
    options = RunOptions(Device.CPU if device is Device.CPU else Device.AUTO)
    found = [_variant(request, own, _caption(own), own.filter.id)]
    for step in others:
        if step.filter is not own.filter:
            at = replace(request, estimated=False, options=options)
            found.append(_variant(at, step, _caption(step), step.filter.id))
    return found


def with_pins(cells: list[Variant], pins: Sequence[Variant], request: Request) -> list[Variant]:
    """Return the cells around `request` with those pins that are not among them, at the end.

    The outermost cells give way to them. All captions name the filter if there are several.

    - `pins`: see `moved`.
    """
    known = {each.key for each in cells}
    pins = [each for each in pins if each.key not in known]
    left = max(0, min(len(cells), CELLS - len(pins)))
    current = [each.key for each in cells].index(Variant("", None, request).key)
    first = min(max(current - left // 2, 0), len(cells) - left)
    found = [*cells[first : first + left], *pins]
    spec = request.step.filter
    filters = [spec if each.request is None else each.request.step.filter for each in found]
    if len(set(map(id, filters))) == 1 or len(set(map(id, filters[:left]))) > 1:
        return found

    def named(caption: str) -> str:
        return f"{request.step.name}: {caption[:1].lower()}{caption[1:]}"  # as `_caption` has them

    return [
        replace(each, caption=named(each.caption)) if of is spec else each
        for each, of in zip(found, filters, strict=True)
    ]


def moved(pin: Variant, request: Request) -> Variant:
    """Return earlier settings on the source and part of `request`; `pin` has a request.

    The caption names the filter if it is another one, or else the values that are others.
    """
    earlier, current = cast(Request, pin.request), request.step
    step, spec = earlier.step, earlier.step.filter
    border = current.border if current.border in spec.borders else step.border
    step = replace(step, border=border, grey=current.grey, within=current.within)
    if spec is not current.filter:
        at = replace(request, options=earlier.options, estimated=earlier.estimated)
        return _variant(at, step, _caption(step), pin.value)
    values = current.parameters
    differ = [each for each in spec.parameters if step.parameters[each.name] != values[each.name]]
    captions = [each.caption(step.parameters[each.name]) for each in differ]
    return _variant(request, step, ", ".join(captions), pin.value)


def _caption(step: Step) -> str:
    """Return ``NLM: strength 84 %``: the filter and the values that the user set."""
    chips = [each.text for each in step.chips if each.name not in step.estimates]
    return ": ".join(filter(None, (step.name, ", ".join(chips))))


def _variant(request: Request, step: Step, caption: str, value: Any) -> Variant:
    try:
        return Variant(caption, value, replace(request, step=step, measured=None))
    except AppError as error:
        return Variant(caption, value, None, error.message)


def sweep(
    cells: Sequence[Variant],
    backends: Mapping[str, Backend],
    token: CancelToken,
    report: Callable[[Cell], None],
    begun: Callable[[int, str], None] = lambda index, stage: None,
    *,
    known: Mapping[int, Cell] | None = None,
    first: int = 0,
) -> str:
    """Run the variants one after the other and report each as it ends, `first` before the others.

    Return why results without a reference have no score; empty if they have.

    Results come first, the scores of all afterwards: an estimate takes two more runs of each.

    - `known`: cells with the results of variants, by index, which are not run again.

    - `begun`: called with the index of a variant and the stage that its run begins; before the
      first stage with an empty one.

    Raises `Cancelled` if `token` is set meanwhile.
    """

    def run(request: Request, progress: Progress = no_progress) -> Result:
        return execute(request, backends, token, progress, learn=False)

    done: list[Cell] = []
    known = known or {}
    for index in sorted(range(len(cells)), key=lambda each: (each not in known, each != first)):
        token.check()
        variant = cells[index]
        if index in known:
            cell = replace(known[index], index=index, variant=variant)
        else:
            begun(index, "")
            cell = _run(index, variant, partial(run, progress=_once(partial(begun, index))))
        cell = replace(cell, same=_same(cell, done))
        report(cell)
        done.append(cell)
    sigma, reason = 0.0, ""
    requests = [each.request for each in cells if each.request is not None]
    if requests and requests[0].reference is None:
        sigma, reason = _white_sigma(requests[0])
    scores: dict[Variant, Score | None] = {}
    for cell in done:
        token.check()
        score = cell.score or (scores[cell.same] if cell.same else _score(cell, sigma, run))
        scores[cell.variant] = score
        if score is not None:
            report(replace(cell, score=score))
    return reason


def _white_sigma(request: Request) -> tuple[float, str]:
    """Return sigma of white Gaussian noise, where white is 1; 0 and the reason if it is not that.

    It is that of the whole picture: one per cent more, as a small part easily has, would be 1 dB
    where the error of a result is a tenth of the noise.
    """
    image, part = request.image, _source_of(request)
    span = image.levels.span
    if image.path is not None and image.metadata.jpeg is not None:
        return 0.0, "noise of a JPEG is correlated"
    if is_clipped(_as_floats(part, span)):
        return 0.0, "noise is clipped at black or white"
    if gaussian_sigma(_as_floats(part, span)) is None:
        return 0.0, "the noise does not look Gaussian"
    planes = colours(image.planes)
    if planes.dtype.kind == "u":  # whose clipped samples are allowed for
        noise = find_noise(planes).in_unit(white_level(planes.dtype) / span)
    else:
        noise = find_noise(_as_floats(planes, span))
    if noise.kind is not NoiseKind.WHITE or not noise.sure or not noise.alike:
        return 0.0, "the noise may be correlated, or stronger in some parts or channels"
    return noise.sigma, ""


def _same(cell: Cell, earlier: Sequence[Cell]) -> Variant | None:
    """Return the first of the earlier variants whose result does not differ."""
    if cell.result is None:
        return None
    planes = cell.result.image.planes
    for each in earlier:
        if each.result is not None and np.array_equal(each.result.image.planes, planes):
            return each.variant
    return None


def _once(begun: Callable[[str], None]) -> Progress:
    """Return a progress that passes on each stage as it begins, and not its fractions."""
    last = ""

    def progress(stage: str, fraction: float) -> None:
        nonlocal last
        if stage != last:
            last = stage
            begun(stage)

    return progress


def _run(index: int, variant: Variant, run: Execute) -> Cell:
    """Return the result; the variant has the numbers then that were to be estimated."""
    if variant.request is None:
        return Cell(index, variant, problem=variant.problem)
    try:
        request = prepared(variant.request)[0]
        return Cell(index, replace(variant, request=request), run(request))
    except AppError as error:
        return Cell(index, variant, problem=error.message)


def _score(cell: Cell, sigma: float, run: Execute) -> Score | None:
    if cell.result is None:
        return None
    request = cell.result.request
    try:
        if request.reference is not None:
            return _compare(cell.result)
        return _estimate(request, sigma, run) if sigma else None
    except Incomparable:
        return None


def _compare(result: Result) -> Score:
    request = result.request
    reference = cast(Image, request.reference).planes
    if request.region is not None:
        if request.region.fits(reference.shape):
            reference = request.region.of(reference)
        else:
            raise Incomparable("The reference is smaller than the region.")
    levels = cast(Image, request.reference).levels
    return Score(judge(colours(result.image.planes), colours(reference), levels=levels).psnr, False)


def _source_of(request: Request) -> NDArray[Any]:
    """Return the part of the source where the region lies, or all of it."""
    planes = colours(request.image.planes)
    region = request.region
    inside = region is not None and region.fits(planes.shape)
    return region.of(planes) if inside and region is not None else planes


def _as_floats(planes: NDArray[Any], white: float) -> NDArray[np.float32]:
    return (planes / np.float32(white)).astype(np.float32)


def _estimate(request: Request, sigma: float, run: Execute) -> Score | None:
    """Estimate the PSNR of this request on its part of the source, as a picture of its own."""
    noisy = _as_floats(_source_of(request), request.image.levels.span)

    def denoise(planes: NDArray[np.float32]) -> NDArray[np.float32]:
        part = replace(Image.from_array(planes, request.source.title), given_levels=UNIT)
        output = run(replace(request, source=part, region=None, measured=None)).image.planes
        if output.shape != planes.shape:
            raise Incomparable("The result differs in size or channels.")
        return cast(NDArray[np.float32], output)

    psnr = estimate_risk(noisy, denoise, sigma).psnr
    return Score(psnr, True) if psnr is not None else None
