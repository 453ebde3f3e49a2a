"""Runs the steps of a request, each on the output of the one before it.

    request  step, then = (B, C)      done = (result of step,)
             step (done)  --> B --> C            only B and C are computed

One step, several, and a recipe are a `Request` each, and `run_steps` is the loop for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernelscope.base.errors import naming
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.measuring import measure
from kernelscope.engine.options import DEFAULT_OPTIONS, Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result, estimate_notices
from kernelscope.engine.run import automatic, execute, shortage_explained, usable
from kernelscope.engine.scaling import factors_of, measurement, scaled
from kernelscope.engine.slices import picture_of
from kernelscope.engine.stabilising import stabilised, with_noise
from kernelscope.engine.step import Step
from kernelscope.engine.timing import Stage
from kernelscope.engine.transparency import to_grey, visible
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind, Pixels


def run_steps(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
    *,
    report: Callable[[int], Progress] | None = None,
    refer: Callable[[Request], Request] | None = None,
) -> Iterator[Result]:
    """Yield the result of each step of `request` as soon as it is there, beginning with `done`.

    - `progress`: called with the step and its stage, and the fraction of all steps.
    - `report`: returns the `Progress` of a step, counted from 1, in place of `progress`.
    - `refer`: returns the request for a step of a recipe with its reference; by default that of
      `request`, which turns grey with the picture.

    Raises `AppError` as `execute`; the message names the step, see `Request.prefix`; `Cancelled` if
    `token` was set meanwhile.
    """
    token = token or CancelToken()
    costs = costs or Costs()
    steps = (request.step, *(follower.step for follower in request.then))
    report = report or over_all(progress, len(steps))
    refer = refer or _turning_grey(request.reference)
    if request.recipe and request.options.device is not Device.AUTO:
        usable(request.options.device, backends)
    source, done = request.source, request.done
    for number in range(1, len(steps) + 1):
        if number <= len(done):
            result = done[number - 1]
        else:
            with naming(request.prefix(number)):
                token.check()
                each = request.alone(number, source)
                notices: tuple[str, ...] = ()
                if request.recipe:
                    each, notices = placed(refer(each), steps, backends)
                if each.needs_estimates:
                    report(number)("estimate", 0.0)
                each, estimated = prepared(each)
                token.check()
                run = measure if each.timed else execute
                result = run(each, backends, token, report(number), costs)
            if notices or estimated:
                result = replace(result, notices=(*notices, *estimated, *result.notices))
        yield result
        source = result.output


def execute_all(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
) -> Result:
    """Return the result of all steps of `request`, as one; see `run_steps`."""
    parts = list(run_steps(request, backends, token, progress, costs))
    return joined(request, parts) if request.then else parts[0]


def joined(request: Request, parts: Sequence[Result]) -> Result:
    """Return the result of `request` with further steps, from the result of each.

    Its stages are those of all steps, one after the other. It is not compared with a reference.
    """
    first, last = parts[0], parts[-1]
    step = first.request.step if request.needs_estimates else request.step
    stand_in = next((part.request.stand_in for part in parts if part.request.stand_in), None)
    return Result(
        replace(request, step=step, estimated=True, done=(), stand_in=stand_in),
        last.output,
        last.device,
        last.level,
        _in_turn(parts),
        tuple(dict.fromkeys(notice for part in parts for notice in part.notices)),
        estimates=first.estimates,
        first=any(part.first for part in parts),
        correlation=last.correlation,
        parts=tuple(parts),
        uncompiled=any(part.uncompiled for part in parts),
    )


def recipe_request(
    recipe: Recipe,
    source: Source,
    options: RunOptions = DEFAULT_OPTIONS,
    reference: Image | Volume | None = None,
) -> Request:
    """Return the request for the steps of a recipe.

    - `options`: device and level hold for every step that has them. A step that does not, where
      another does, runs as if nothing had been chosen, and a notice says so.
    - `reference`: every result is compared with it; it is converted to greyscale from the first
      such step on.

    Raises `InvalidParameter` if a step cannot work on the output of the previous one.
    """
    first, *others = recipe.steps
    then = tuple(RunSettings(step, options) for step in others)
    return Request(source, first, options, reference, then=then, recipe=True)


def execute_recipe(
    recipe: Recipe,
    source: Source,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
    *,
    options: RunOptions = DEFAULT_OPTIONS,
    reference: Image | Volume | None = None,
) -> Iterator[Result]:
    """Return the results of `run_steps` for a `recipe_request`; the last is the recipe's."""
    request = recipe_request(recipe, source, options, reference)
    return run_steps(request, backends, token, progress, costs)


def prepared(request: Request) -> tuple[Request, tuple[str, ...]]:
    """Return a request with numbers for those to be estimated, and notices for the user.

    They are estimated from the source, which takes a while. Slow measurements that the run also
    needs are stored in the request, so that they are made once.
    """
    if not request.needs_estimates:
        return request, ()
    step = request.step.unestimated
    with shortage_explained(request.source):
        request = replace(request, step=step, estimated=True)
        # One whose noise is made white first is measured then.
        measured = measurement(request) if with_noise(request).noise is None else None
        numbers = estimate(replace(request, measured=measured), step.estimates)
    request = replace(request, step=step.with_numbers(numbers), measured=measured)
    return request, estimate_notices(request, numbers)


def estimate(request: Request, names: Iterable[str]) -> dict[str, float]:
    """Return numbers for the parameters of these names, estimated from the picture.

    They are rounded to four digits, so that the number that is shown is the one that is used,
    and lie within the parameter's range. This takes a while for large pictures. Of volumes
    that are filtered slice by slice, the middle slice of the first is used.

    - `request`: the picture, the slices or the volumes, and the other parameters.
    - `names`: parameters that have an estimate.
    """
    request, factors = with_noise(request), factors_of(request)
    if factors is not None:
        request = scaled(request, factors)
    pixels, known = stabilised(request, _looked_at(request))
    numbers: dict[str, float] = {}
    wanted = set(names)
    # In the order of the filter: each one knows those before it.
    for parameter in request.step.filter.parameters:
        if parameter.name in wanted:
            numbers[parameter.name] = parameter.estimate_from(pixels, {**known, **numbers})
    return numbers


def _looked_at(request: Request) -> Pixels:
    """Return the picture, without alpha, or the volumes to estimate from."""
    if request.step.filter.kind is Kind.VOLUME:
        return request.scan.planes
    if request.by_slices:
        volume = request.scan.volumes[0]
        image = picture_of(volume, request.step.axis, volume.voxels.shape[request.step.axis] // 2)
    else:
        image = to_grey(visible(request)) if request.step.grey else visible(request)
    return colours(image.planes)


def over_all(progress: Progress, steps: int) -> Callable[[int], Progress]:
    """Return a function that maps a step to its `Progress`: a part of the whole, never falling."""
    if steps == 1:
        return lambda number: progress
    most = 0.0

    def of(number: int) -> Progress:
        def report(stage: str, fraction: float) -> None:
            nonlocal most
            most = max(most, (number - 1 + fraction) / steps)
            progress(f"step {number} of {steps}, {stage}", most)

        return report

    return of


def placed(
    request: Request, steps: Sequence[Step], backends: Mapping[str, Backend]
) -> tuple[Request, tuple[str, ...]]:
    """Return a request of a recipe with options that its step has, and notices for the user."""
    step, options = request.step, request.options
    without_effect = step.without_effect(grey=request.is_grey)
    device, level = options.device, options.level
    if device is Device.AUTO:
        chosen = list(automatic(backends))
    else:
        asked = backends.get(device.value)
        chosen = [asked] if asked is not None and asked.availability().available else []

    def has(step: Step) -> bool:
        levels = [each.id for backend in chosen for each in backend.levels(step.filter)]
        return bool(levels) if level is None else level in levels

    if has(step) or not any(map(has, steps)):
        return request, without_effect
    lacks = f"has no level “{level}”" if level else f"does not run on the {chosen[0].name}"
    notice = f"{step.filter.name} {lacks}: it runs where it is fastest."
    request = request.at(replace(options, device=Device.AUTO, level=None))
    return request, (notice, *without_effect)


def _turning_grey(reference: Image | Volume | None) -> Callable[[Request], Request]:
    """Return a function that gives requests `reference`, in grey from the first grey result on."""

    def refer(request: Request) -> Request:
        nonlocal reference
        if isinstance(reference, Image) and request.output_shape[2] <= 2:
            reference = to_grey(reference)
        return request if reference is None else replace(request, reference=reference)

    return refer


def _in_turn(parts: Sequence[Result]) -> tuple[Stage, ...]:
    """Return the stages of all parts as if each began when the one before had ended."""
    stages: list[Stage] = []
    for part in parts:
        begun = max((stage.start + stage.seconds for stage in stages), default=0.0)
        stages += (
            stage._replace(
                start=stage.start + begun,
                parts=tuple(replace(each, start=each.start + begun) for each in stage.parts),
            )
            for stage in part.stages
        )
    return tuple(stages)
