"""Calls with three axes: the mask goes through the slices of volumes.

::

    ks.median(stack, size=3, axes=(0, 1, 2))             shape (depth, height, width)
    ks.mean(series, size=(1, 5, 5), axes=(1, 2, 3))      a volume for each time

uint8, uint16, int16 and float32 are filtered as they are, on any device. Other types are computed
in 64-bit floats on the processor, and rounded to the type that they came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.engine.control import no_progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.scaling import facts_of_whole, keeping_sign
from kernelscope.engine.step import Step
from kernelscope.engine.steps import over_all
from kernelscope.images.image import fill_nan
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import DTYPES, Volume
from kernelscope.library import arrays
from kernelscope.library.arguments import check_held, cval_of, flag
from kernelscope.library.arrays import device_array
from kernelscope.library.containers import in_chunks, is_lazy
from kernelscope.library.layout import axes_of
from kernelscope.library.session import run_steps, session
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import SIGN

_WHOLE = 2**53
"""Up to here 64-bit floats hold every integer."""


def filtered(recipe: Recipe, values: Any, given: Mapping[str, Any]) -> Any:
    """Return the result of a recipe whose masks go through the slices of volumes."""
    for name in ("alpha", "grey"):
        if given.get(name) and flag(name, given[name]):
            raise InvalidParameter(f"{name}: volumes have no colours.", "Leave it out.")
    if given.get("within") is not None:
        raise InvalidParameter("within: it is an area of pictures.", "Filter the whole volume.")
    recipe = Recipe(tuple(step.in_3d for step in recipe.steps))
    there = device_array(values, "image")
    if is_lazy(values):
        return _lazily(recipe, values, axes_of(given["axes"], len(values.shape), 3), given)
    if there is None:
        array = arrays.host_array(values, "image")
        return _on_host(recipe, array, axes_of(given["axes"], array.ndim, 3), given)
    from kernelscope.library import on_device

    array = on_device.fetched(there)
    made = _on_host(recipe, array, axes_of(given["axes"], array.ndim, 3), given)
    return on_device.stored([made], there)[0]


def _on_host(
    recipe: Recipe, array: NDArray[Any], axes: list[int], given: Mapping[str, Any]
) -> NDArray[Any]:
    if not array.size:
        raise InvalidImage("image: the volume has no voxels.")
    others = [axis for axis in range(array.ndim) if axis not in axes]
    moved = np.transpose(array, (*others, *axes))
    made = np.empty(moved.shape, array.dtype)
    count = moved[..., 0, 0, 0].size
    parts, progress = over_all(given["progress"] or no_progress, count), given["progress"]
    for number, index in enumerate(np.ndindex(moved.shape[:-3]), 1):
        inner = {**given, "progress": progress and parts(number)}
        made[index] = _of_volume(recipe, np.ascontiguousarray(moved[index]), inner)
    places = np.argsort((*others, *axes)).tolist()
    return np.ascontiguousarray(np.transpose(made, places))


def _of_volume(recipe: Recipe, volume: NDArray[Any], given: Mapping[str, Any]) -> NDArray[Any]:
    if "cval" in given and (cval := cval_of(given, recipe.steps[0].border)):
        return _surrounded(recipe.steps[0], volume, cval, given)
    if volume.dtype not in DTYPES and all(_is_wide(step, given) for step in recipe.steps):
        return _in_wide_floats(recipe, volume, given)
    return np.asarray(run_steps(recipe, [("image", volume)], given, as_volumes=True)[0])


def _surrounded(
    step: Step, volume: NDArray[Any], cval: float, given: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the result with cells of this value around the volume."""
    check_held("cval", cval, volume.dtype)
    radii = step.filter.radii(step.parameters)
    padded = np.pad(
        volume, [(each, each) for each in radii], constant_values=volume.dtype.type(cval)
    )
    inner = Recipe((replace(step, border=Border.NEAREST),))
    made = _of_volume(inner, padded, {**given, "cval": 0.0})
    return made[
        tuple(slice(each, side - each) for each, side in zip(radii, made.shape, strict=True))
    ]


def _is_wide(step: Step, given: Mapping[str, Any]) -> bool:
    """Return whether the kernels of the processor compute a step in 64-bit floats."""
    levels = [each.id for each in step.filter.levels(Device.CPU)]
    here = given["device"] in (Device.AUTO, Device.CPU) and given["level"] in (None, *levels)
    return here and step.filter.is_in_3d and step.parameters.get(SIGN) != "offset"


def _in_wide_floats(recipe: Recipe, volume: NDArray[Any], given: Mapping[str, Any]) -> NDArray[Any]:
    """Return the result of kernels for 64-bit floats, rounded to the type of the volume."""
    dtype = volume.dtype
    values, holes = as_wide_floats(volume, "voxels", given["nan"])
    stand_in = Scan((Volume(np.broadcast_to(np.float32(0), volume.shape), title="image"),))
    for step in recipe.steps:
        values = by_wide_kernels(stand_in, values[..., np.newaxis], step, given)[..., 0]
        if dtype.kind != "f":
            values = rounded(values, dtype).astype(np.float64)
    if holes is not None:
        values = np.where(holes, np.nan, values)
    return rounded(values, dtype)


def as_wide_floats(
    samples: NDArray[Any], what: str, nan: float | None
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return samples as 64-bit floats, and where NaN was; refuse integers that would be others."""
    if samples.dtype.kind != "f":
        check_whole(samples, 64)
    values: NDArray[Any] = np.array(samples, np.float64, order="C")
    if np.isfinite(values).all():
        return values, None
    values, holes, _ = fill_nan(values, "image", what, nan)
    return values, holes


def check_whole(samples: NDArray[Any], bits: int) -> None:
    """Refuse integers that floats of `bits` do not hold; 64 bits may not distinguish them."""
    held = not samples.size or -_WHOLE <= int(samples.min()) <= int(samples.max()) <= _WHOLE
    if held and bits == 32:
        held = np.array_equal(
            samples.astype(np.float32).astype(np.float64), samples.astype(np.float64)
        )
    if not held:
        raise InvalidImage(
            f"image: {bits}-bit floats, in which the filter computes, do not hold these integers.",
            "Divide them, or convert them to floats.",
        )


def by_wide_kernels(
    stand_in: Source, planes: NDArray[Any], step: Step, given: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the result of the processor's kernels for 64-bit floats.

    `stand_in`: a source of the shape of `planes`, whose samples do not count.
    """
    if step.parameters.get(SIGN) == "clip" and (planes < 0).any():
        step = keeping_sign(step)
    planes = np.ascontiguousarray(planes)
    planes.flags.writeable = False
    request = Request(stand_in, step, RunOptions(Device.CPU, given["level"]))
    return session().filtered(request, planes, given["progress"], given["cancel"])


def rounded(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values rounded, ties to even, and saturated to a type."""
    if dtype.kind == "f":
        return values.astype(dtype)
    if dtype.kind == "b":
        return np.asarray(np.rint(values) > 0)
    limits = np.iinfo(dtype)
    whole = np.rint(values)
    made = np.asarray(whole.clip(limits.min, limits.max).astype(dtype))
    if dtype.itemsize == 8:  # the largest is no float: converting it wraps
        made[whole >= limits.max] = limits.max
    return made


def _lazily(recipe: Recipe, values: Any, axes: list[int], given: Mapping[str, Any]) -> Any:
    """Return the result as an array of Dask, which computes it in chunks with a halo."""
    for step in recipe.steps:

        def part(chunk: NDArray[Any], step: Step = step) -> NDArray[Any]:
            return _on_host(Recipe((step,)), chunk, axes, given)

        radii = dict(zip(axes, step.filter.radii(step.parameters), strict=True))
        values = in_chunks(values, step, radii, facts_of_whole(step, levels=True), part)
    return values
