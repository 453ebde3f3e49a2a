"""Runs steps, each on the output of the one before it.

    request  step, then = (B, C)      done = (result of step,)
             step (done)  --> B --> C            only B and C are computed

`execute_all` runs a request: while a setting of its first step changes, only the end is looked at,
and the steps are one run, of which the first is measured if that is wanted. `execute_recipe` runs
steps that wait for a source, and yields the result of each; `RecipeRun` is the part of it that the
window, which shows results between two steps, shares. Both have their requests from `prepared`,
which estimates the parameters that a step leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.measuring import measure
from kernelscope.engine.options import DEFAULT_OPTIONS, Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Follower, Request
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


def execute_all(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
) -> Result:
    """Return the result of all steps of `request`; parameters as those of `execute`.

    Raises
    ------
    AppError
        As `execute`; the message names a further step.
    Cancelled
        If `token` was set meanwhile.
    """
    token = token or CancelToken()
    run = measure if request.timed else execute
    if not request.then:
        return run(request, backends, token, progress, costs)
    parts, report = list(request.done), over_all(progress, 1 + len(request.then))
    if not parts:
        head = replace(request, then=(), reference=None)
        parts.append(run(head, backends, token, report(1), costs))
    for number, follower in enumerate(request.then, 2):
        if number <= len(parts):
            continue
        try:
            token.check()
            following, notices = prepared(follower, parts[-1].output, live=request.live)
            part = execute(following, backends, token, report(number), costs)
        except AppError as error:
            raise error.prefixed(f"{follower.step.filter.name}, a later step: ") from error
        parts.append(replace(part, notices=(*notices, *part.notices)))
    return joined(request, parts)


def joined(request: Request, parts: Sequence[Result]) -> Result:
    """Return the result of `request` with further steps, from the result of each.

    Its stages are those of all steps, one after the other. It is not compared with a reference.
    """
    first, last = parts[0], parts[-1]
    return Result(
        replace(request, done=()),
        last.output,
        last.device,
        last.level,
        _in_turn(parts),
        tuple(dict.fromkeys(notice for part in parts for notice in part.notices)),
        estimates=first.estimates,
        first=any(part.first for part in parts),
        parts=tuple(parts),
    )


def shapes(recipe: Recipe, source: Source) -> list[tuple[int, ...]]:
    """Return the shape of each step's result, as `Request.output_shape`, without computing any.

    Raises
    ------
    InvalidParameter
        If a step cannot work on the output of the previous one.
    """
    found: list[tuple[int, ...]] = []
    for number, step in enumerate(recipe.steps, 1):
        if found:
            source = source.stand_in(found[-1])
        with naming(recipe, number):
            found.append(Request(source, step.with_numbers()).output_shape)
    return found


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
    """Yield the result of each step as soon as it is computed; the last one is the recipe's.

    Parameters
    ----------
    progress : callable
        Called with the step and its stage, and the fraction of the whole recipe.
    options : RunOptions
        Device and level hold for every step that has them. A step that does not, where another
        does, runs as if nothing had been chosen, and a notice says so.
    reference : Image or Volume, optional
        Every result is compared with it; it is converted to greyscale from the first such step on.

    Raises
    ------
    AppError
        As `execute`; the message names the step if there are several.
    Cancelled
        If `token` was set in the meantime.
    """
    token = token or CancelToken()
    costs = costs or Costs()
    if options.device is not Device.AUTO:
        usable(options.device, backends)
    run = RecipeRun(recipe, source, backends, options)
    report = over_all(progress, len(recipe.steps))
    while run.has_more:
        run.advance()
        with naming(recipe, run.number):
            if isinstance(reference, Image) and run.shapes[run.number - 1][2] <= 2:
                reference = to_grey(reference)
            request = run.request(source, reference)
            result = execute(request, backends, token, report(run.number), costs)
        yield run.finish(result)
        source = result.output


class RecipeRun:
    """Conducts a recipe: the next step, its request, its notices, and the name in its errors.

    It computes nothing itself, so that the command line (`execute_recipe`) and the window, which
    shows results between two steps, can share it::

        run = RecipeRun(recipe, source, backends, options)
        while run.has_more:
            run.advance()
            result = run.finish(execute(run.request(source), backends))
            source = result.output

    Attributes
    ----------
    number : int
        The current step, from 1; 0 before the first.
    shapes : list of tuple of int
        Shape of each step's result.

    Raises
    ------
    InvalidParameter
        If a step cannot work on the output of the previous one.
    """

    def __init__(
        self,
        recipe: Recipe,
        source: Source,
        backends: Mapping[str, Backend],
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.shapes = shapes(recipe, source)
        self.number = 0
        self._recipe = recipe
        self._backends = backends
        self._options = options
        self._notices: tuple[str, ...] = ()

    @property
    def has_more(self) -> bool:
        """Whether a step follows the current one."""
        return self.number < len(self._recipe.steps)

    @property
    def step(self) -> Step:
        """The current step."""
        return self._recipe.steps[self.number - 1]

    @property
    def label(self) -> str:
        """Number and name of the step, to put before its stage; empty if there is only one."""
        count = len(self._recipe.steps)
        return f"Step {self.number} of {count}, {self.step.filter.name}: " if count > 1 else ""

    def advance(self) -> None:
        """Begin the next step."""
        self.number += 1
        self._notices = ()

    def request(self, source: Source, reference: Image | Volume | None = None) -> Request:
        """Return the request for the current step; estimating its parameters takes a while."""
        options, notices = _where(self._recipe, self.step, self._backends, self._options)
        request, estimated = prepared(Follower(self.step, options), source, reference)
        self._notices = (*notices, *self.step.without_effect, *estimated)
        return request

    def finish(self, result: Result) -> Result:
        """Return the result of the current step with the notices of that step."""
        if not self._notices:
            return result
        return replace(result, notices=(*self._notices, *result.notices))

    def named(self, error: Exception) -> Exception:
        """Return `error` with the step named, if it is one that the user can correct."""
        try:
            with naming(self._recipe, self.number):
                raise error
        except AppError as named:
            return named
        except Exception:  # a bug is reported as it is
            return error


def prepared(
    asked: Follower,
    source: Source,
    reference: Image | Volume | None = None,
    *,
    live: bool = False,
) -> tuple[Request, tuple[str, ...]]:
    """Return the request for a step on `source`, and notices for the user.

    Parameters that the step leaves open are estimated from the source, which takes a while. Slow
    measurements that the run also needs are stored in the request, so that they are made once.
    """
    step, options = asked
    request = Request(source, step.with_numbers(), options, reference, live=live)
    names = step.estimates
    if not names:
        return request, ()
    with shortage_explained(source):
        measured = measurement(request)
        numbers = estimate(replace(request, measured=measured), names)
    request = replace(request, step=step.with_numbers(numbers), measured=measured, estimated=names)
    return request, estimate_notices(request, numbers)


def estimate(request: Request, names: Iterable[str]) -> dict[str, float]:
    """Return numbers for the parameters of these names, estimated from the picture.

    They are rounded to four digits, so that the number that is shown is the one that is used,
    and lie within the parameter's range. This takes a while for large pictures. Of volumes
    that are filtered slice by slice, the middle slice of the first is used.

    Parameters
    ----------
    request : Request
        The picture, the slices or the volumes, and the other parameters.
    names : iterable of str
        Parameters that have an estimate.
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


@contextmanager
def naming(recipe: Recipe, number: int) -> Iterator[None]:
    """Name step `number` in errors, if the recipe has several."""
    try:
        yield
    except AppError as error:
        if len(recipe.steps) == 1:
            raise
        name = recipe.steps[number - 1].filter.name
        raise error.prefixed(f"Step {number}, {name}: ") from error


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


def _where(
    recipe: Recipe, step: Step, backends: Mapping[str, Backend], options: RunOptions
) -> tuple[RunOptions, tuple[str, ...]]:
    """Return the options for `step`, and a notice if they are not those that were chosen."""
    device, level = options.device, options.level
    if device is Device.AUTO:
        chosen = list(automatic(backends))
    else:
        asked = backends.get(device.value)
        chosen = [asked] if asked is not None and asked.availability().available else []

    def has(step: Step) -> bool:
        levels = [each.id for backend in chosen for each in backend.levels(step.filter)]
        return bool(levels) if level is None else level in levels

    if has(step) or not any(has(other) for other in recipe.steps):
        return options, ()
    lacks = f"has no level “{level}”" if level else f"does not run on the {chosen[0].name}"
    notice = f"{step.filter.name} {lacks}: it runs where it is fastest."
    return replace(options, device=Device.AUTO, level=None), (notice,)


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
