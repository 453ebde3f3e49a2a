"""Runs the steps of a recipe one after the other, on the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from app import filters
from app.engine.backend import Backend
from app.engine.control import CancelToken, Progress, no_progress
from app.engine.costs import Costs
from app.engine.image import Image
from app.engine.recipe import Recipe, Step
from app.engine.request import Device, Request, Result
from app.engine.run import execute, usable
from app.errors import AppError
from app.filters.spec import PARALLEL, Border, FilterTask, FloatParameter
from app.judging import colours


def shapes(recipe: Recipe, image: Image) -> list[tuple[int, ...]]:
    """Return the shape (height, width, channels) of each step's result, without computing any.

    Raises
    ------
    InvalidParameter
        If a step cannot work on what it would get.
    """
    found: list[tuple[int, ...]] = []
    picture = image
    for number, step in enumerate(recipe.steps, 1):
        with naming(recipe, number):
            found.append(step.request(picture).output_shape)
        # Takes no memory: it is there for its shape only.
        picture = Image(np.broadcast_to(image.pixels.dtype.type(0), found[-1]), image.title)
    return found


def execute_recipe(
    recipe: Recipe,
    image: Image,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
    *,
    device: Device = Device.AUTO,
    level: str | None = None,
    reference: Image | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Yield the result of each step as soon as it is there; the last one is the recipe's.

    Parameters
    ----------
    progress : callable
        Called with the step and its stage, and the fraction of the whole recipe.
    device, level
        Hold for every step that has them. A step that does not, where another does, is run as
        if nothing was chosen, and a notice says so.
    reference : Image, optional
        Judges every result; turned to grey where a step turned the picture to grey.
    **options
        `repeat` and `memory_limit` of `Request.create`.

    Raises
    ------
    AppError
        As `execute`; the message names the step if there are several.
    Cancelled
        If `token` was set meanwhile.
    """
    token = token or CancelToken()
    costs = costs or Costs()
    if device is not Device.AUTO:
        usable(device, backends)
    results = shapes(recipe, image)
    report = _over_all(progress, len(recipe.steps))
    for number, step in enumerate(recipe.steps, 1):
        with naming(recipe, number):
            if reference and not reference.is_grey and results[number - 1][2] <= 2:
                reference = to_grey(reference)
            names = step.estimates
            estimates = estimate(step.request(image), names) if names else {}
            where, notices = _where(recipe, step, backends, device, level)
            result = execute(
                step.request(image, estimates, reference=reference, **where, **options),
                backends,
                token,
                report(number),
                costs,
            )
        yield replace(result, notices=(*notices, *_told(step, estimates), *result.notices))
        image = result.image


def to_grey(image: Image) -> Image:
    """Return `image` as a step with `grey` sees it."""
    if image.is_grey:
        return image
    spec = filters.get("greyscale")
    settings = spec.defaults(), Border.REFLECT
    output = np.empty(spec.output_shape(image.planes.shape, *settings), image.pixels.dtype)
    for sweep in spec.plan_cpu(FilterTask(image.planes, output, *settings, PARALLEL.id)):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    spec.carry_alpha(image.planes, output, *settings)
    return Image.from_array(output, image.title)


def estimate(request: Request, names: Iterable[str]) -> dict[str, float]:
    """Return numbers for the parameters of these names, estimated from the picture.

    They are rounded to four digits, so that the number that is shown is the one that is used,
    and lie within the parameter's range. This takes a while for large pictures.

    Parameters
    ----------
    request : Request
        The picture, and the other parameters.
    names : iterable of str
        Parameters that have an estimate.
    """
    image = to_grey(request.image) if request.grey else request.image
    numbers = {}
    for name in names:
        parameter = request.filter.parameter(name)
        assert isinstance(parameter, FloatParameter)
        assert parameter.estimate is not None
        number = float(f"{parameter.estimate(colours(image.planes), request.parameters):.4g}")
        numbers[name] = min(max(number, parameter.minimum), parameter.maximum)
    return numbers


@contextmanager
def naming(recipe: Recipe, number: int) -> Iterator[None]:
    """Name step `number` in errors, where there are others."""
    try:
        yield
    except AppError as error:
        if len(recipe.steps) == 1:
            raise
        name = recipe.steps[number - 1].filter.name
        raise type(error)(f"Step {number}, {name}: {error.message}", error.hint) from error


def _over_all(progress: Progress, steps: int) -> Callable[[int], Progress]:
    """Return what makes the `Progress` of one step part of that of all, which never falls."""
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


def _told(step: Step, estimates: Mapping[str, float]) -> tuple[str, ...]:
    labels = {name: step.filter.parameter(name).label for name in estimates}
    return tuple(
        f"{step.filter.name}: {labels[name].lower()} was estimated: {number:.4g}."
        for name, number in estimates.items()
    )


def _where(
    recipe: Recipe,
    step: Step,
    backends: Mapping[str, Backend],
    device: Device,
    level: str | None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return device and level for `step`, and a notice if they are not what was chosen."""
    chosen = [
        backend
        for backend in backends.values()
        if backend.availability().available and device in (Device.AUTO, backend.id)
    ]

    def has(step: Step) -> bool:
        levels = [each.id for backend in chosen for each in backend.levels(step.filter)]
        return bool(levels) if level is None else level in levels

    if has(step) or not any(has(other) for other in recipe.steps):
        return {"device": device, "level": level}, ()
    lacks = f"has no level “{level}”" if level else f"does not run on the {chosen[0].name}"
    return {}, (f"{step.filter.name} {lacks}: it runs where it is fastest.",)
