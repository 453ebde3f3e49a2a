"""Calls of filters for pictures: the axes, the types and the borders of other libraries.

uint8, uint16 and float32 are filtered as they are, on any device. Other types have kernels on the
processor only: averages, ranks and differences are computed in 64-bit floats, which hold every
integer up to 2⁵³, and rounded to the type that they came in. Filters that know white, such as
denoisers, compute in 32-bit floats.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter, naming
from kernelscope.engine.control import no_progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.engine.steps import over_all, recipe_request
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.volume import AXES
from kernelscope.library import arrays, cubes
from kernelscope.library.arguments import are_three, check_common, check_held, cval_of, flag
from kernelscope.library.arrays import device_array
from kernelscope.library.containers import is_lazy, lazily, named_axis, unwrapped
from kernelscope.library.cubes import as_wide_floats, by_wide_kernels, check_whole, rounded
from kernelscope.library.layout import Layout
from kernelscope.library.quick import is_plain
from kernelscope.library.session import run_steps
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Unit

_logger = logging.getLogger(__name__)

_SMALLEST = 2.0**-500
"""From here on, and up to its inverse, 64-bit floats hold squares and sums of them."""


def filtered(recipe: Recipe, given: Mapping[str, Any]) -> Any:
    """Return the result of a recipe for pictures, for the array `image` and other arguments."""
    check_common(given)
    values, wrap = unwrapped(given["image"], "image", given["nan"])
    if given["axis"] is not None:
        if given["axes"] is not None:
            raise InvalidParameter(
                "axis: beside axes it has no place.",
                "Use axes alone: those of pictures, or three for a mask through the slices.",
            )
        if given["out"] is not None:
            there = device_array(values, "image")
            of = arrays.host_array(values, "image") if there is None else there
            rows, columns = (each for each in range(3) if each != AXES.index(given["axis"]))
            _check_out(given, of, recipe, Layout(3, rows, columns))
        made = run_steps(recipe, [("image", values)], given, as_volumes=True)[0]
        return _written(wrap(made), given["out"])
    named = {name: named_axis(given["image"], given[name]) for name in ("channel_axis", "axes")}
    if are_three(named["axes"]):
        made = cubes.filtered(recipe, values, {**given, **named})
        return _written(wrap(made), given["out"])
    alpha = flag("alpha", given["alpha"]) or arrays.declares_alpha(values)
    given = {**given, "alpha": alpha}
    there = device_array(values, "image")
    if there is None and not is_lazy(values):
        values = arrays.host_array(values, "image")
    of = values if there is None else there
    layout = Layout.of(tuple(of.shape), of.dtype, "image", **named, alpha=alpha)
    _check_out(given, of, recipe, layout)
    if is_lazy(values):
        made = _lazily(values, recipe, layout, {**given, **named, "out": None})
    elif there is None:
        made = _on_host(values, recipe, layout, given)
    elif there.dtype in DTYPES and layout.is_plain(there.shape) and not given.get("cval"):
        made = run_steps(recipe, [("image", values)], given, as_volumes=False)[0]
    else:
        from kernelscope.library import on_device

        copy = on_device.fetched(there)
        made = on_device.stored([_on_host(copy, recipe, layout, given)], there)[0]
    return _written(wrap(made), given["out"])


def sample_picture(given: Mapping[str, Any]) -> Image:
    """Return the first picture of an array, to find the filter that suits it."""
    check_common(given)
    values, _ = unwrapped(given["image"], "image", given["nan"])
    if is_lazy(values):
        raise InvalidParameter(
            "image: noise is found in the whole picture, and a Dask array is not computed yet.",
            "Compute the array first, or call the function of a filter.",
        )
    array = arrays.host_array(values, "image")
    named = {name: named_axis(given["image"], given[name]) for name in ("channel_axis", "axes")}
    if given["axis"] is not None and array.ndim == 3:
        number = AXES.index(given["axis"])
        picture = array.take(array.shape[number] // 2, number)
    else:
        alpha = flag("alpha", given["alpha"]) or arrays.declares_alpha(values)
        picture = Layout.of(array.shape, array.dtype, "image", **named, alpha=alpha).first(array)
    if picture.dtype not in DTYPES and picture.dtype.kind != "f":
        picture = picture.astype(np.float32)
    return arrays.picture(picture, "image", given["nan"])


def _lazily(values: Any, recipe: Recipe, layout: Layout, given: Mapping[str, Any]) -> Any:
    for step in recipe.steps:

        def part(chunk: NDArray[Any], step: Step = step) -> Any:
            return filtered(Recipe((step,)), {**given, "image": chunk})

        values = lazily(values, step, layout, part)
    return values


def _check_out(given: Mapping[str, Any], values: Any, recipe: Recipe, layout: Layout) -> None:
    """Raise `InvalidParameter` if the result cannot be written to `out`, before it is computed."""
    out = given["out"]
    if out is None:
        return
    shape = tuple(values.shape)
    stand_in = Image(np.broadcast_to(np.uint8(0), layout.sides_of(shape)), "image")
    *_, channels = made = recipe_request(recipe, stand_in, RunOptions()).output_shape
    wanted = layout.result_shape(shape, made[:2], channels)
    dtype = getattr(given["image"], "dtype", values.dtype)  # of the library that it is of
    if getattr(out, "shape", None) != wanted or getattr(out, "dtype", None) != dtype:
        found = f"an object of type {type(out).__name__}"
        if hasattr(out, "shape") and hasattr(out, "dtype"):
            found = f"an array of shape {out.shape} and type {out.dtype}"
        raise InvalidParameter(
            f"out: {found} cannot hold the result.",
            f"Give one of shape {wanted} and type {dtype}.",
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise InvalidParameter("out: the array is read-only.", "Give one that can be written to.")


def _written(made: Any, out: Any) -> Any:
    """Return the result, or the array that it was written to."""
    if out is None:
        return made
    out[...] = made
    return out


def _on_host(
    array: NDArray[Any], recipe: Recipe, layout: Layout, given: Mapping[str, Any]
) -> NDArray[Any]:
    count, progress = layout.count(array.shape), given["progress"]
    if not array.size:
        raise InvalidImage("image: the image has no pixels.")
    parts = over_all(progress or no_progress, count)

    def run(picture: NDArray[Any], number: int) -> NDArray[Any]:
        steps = tuple(_numbered(step, number) for step in recipe.steps)
        inner = {**given, "progress": progress and parts(number + 1)}
        if picture.dtype in DTYPES and not given.get("cval"):
            return _as_it_is(picture, Recipe(steps), inner)
        each = over_all(inner["progress"] or no_progress, len(steps))
        for place, step in enumerate(steps, 1):
            with naming(f"Step {place}, {step.filter.name}: " if len(steps) > 1 else ""):
                picture = _one(picture, step, {**inner, "progress": progress and each(place)})
        return picture

    return layout.filtered(array, run)


def _numbered(step: Step, number: int) -> Step:
    """Return the step for a picture of several: noise differs from each to the next."""
    if number == 0:
        return step
    changed = {
        each.name: each.for_slice(step.parameters[each.name], number)
        for each in step.filter.parameters
        if each.name not in step.estimates
    }
    return replace(step, parameters=MappingProxyType({**step.parameters, **changed}))


def _one(picture: NDArray[Any], step: Step, given: Mapping[str, Any]) -> NDArray[Any]:
    """Return the result of a picture, in its type."""
    cval = cval_of(given, step.border) if "cval" in given else 0.0
    if cval:
        picture, step = _surrounded(picture, step, cval, given)
    recipe, dtype = Recipe((step,)), picture.dtype
    if dtype in DTYPES:
        return _as_it_is(picture, recipe, given)
    if dtype != np.float16 and _has_wide_kernels(step, given, picture):
        return _in_wide_floats(picture, step, given)
    if dtype == np.float64:
        _logger.info("image: %s filters 64-bit floats in 32 bits.", step.filter.name)
    is_grey = picture.ndim == 2 or picture.shape[2] == 1
    if not (dtype.kind == "f" or is_grey):
        check_whole(picture, 32)
        picture = picture.astype(np.float32)
    made = _as_it_is(picture, recipe, given)
    return made if made.dtype == dtype else rounded(made, dtype)


def _as_it_is(picture: NDArray[Any], recipe: Recipe, given: Mapping[str, Any]) -> NDArray[Any]:
    made = run_steps(recipe, [("image", picture)], given, as_volumes=False)
    return np.asarray(made[0])


def _surrounded(
    picture: NDArray[Any], step: Step, cval: float, given: Mapping[str, Any]
) -> tuple[NDArray[Any], Step]:
    """Return a picture with constant cells around it, and the step that computes its inside."""
    several = step.filter.passes(step.parameters) > 1  # which would see results around the picture
    is_whole = not (given["alpha"] or step.within is not None or several)
    if Border.VALID not in step.filter.borders or not is_whole:
        raise InvalidParameter(
            f"cval: {step.filter.name} has no value but 0 outside a picture, nor has any filter "
            "with alpha or within.",
            "Use another border.",
        )
    check_held("cval", cval, picture.dtype)
    radius = step.filter.radius(step.parameters)
    rims = ((radius, radius), (radius, radius), (0, 0))[: picture.ndim]
    padded = np.pad(picture, rims, constant_values=picture.dtype.type(cval))
    return padded, replace(step, border=Border.VALID)


def _has_wide_kernels(step: Step, given: Mapping[str, Any], picture: NDArray[Any]) -> bool:
    """Return whether the kernels of the processor compute a step in 64-bit floats."""
    on_cpu = given["device"] in (Device.AUTO, Device.CPU)
    levels = [each.id for each in step.filter.levels(Device.CPU)]
    level = given["level"]
    colour = picture.ndim > 2 and picture.shape[2] != 1
    plain = is_plain(step, floats=False) and _is_of_any_unit(step, picture)
    has_white = given.get("white") is not None or given.get("black") is not None
    simple = step.within is None and not (step.grey and colour) and not given["alpha"]
    return plain and on_cpu and level in (None, *levels) and simple and not has_white


def _is_of_any_unit(step: Step, picture: NDArray[Any]) -> bool:
    """Return whether 64-bit floats hold the values that a filter computes from samples."""
    unit = step.filter.unit_for(step.parameters)
    if unit is Unit.SQUARES and picture.dtype.kind == "f":
        peak = float(np.abs(picture).max())
        return peak == 0 or _SMALLEST <= peak <= 1 / _SMALLEST
    return unit in (Unit.ANY, Unit.SQUARES)


def _in_wide_floats(picture: NDArray[Any], step: Step, given: Mapping[str, Any]) -> NDArray[Any]:
    """Return the result of kernels for 64-bit floats, rounded to the type of the picture."""
    values, holes = as_wide_floats(picture, "samples", given["nan"])
    planes = values.reshape((*values.shape, 1)[:3])
    stand_in = Image(np.broadcast_to(np.float32(0), planes.shape), "image")
    made = by_wide_kernels(stand_in, planes, step, given)
    if values.ndim == 2 and made.shape[2] == 1:
        made = made[:, :, 0]
    if holes is not None and made.shape == holes.shape:
        made[holes] = np.nan
    return made if made.dtype == picture.dtype else rounded(made, picture.dtype)
