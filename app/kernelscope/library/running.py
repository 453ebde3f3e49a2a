"""Runs recipes on arrays: on a GPU where they lie there, else on the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.images.image import Image
from kernelscope.images.levels import given_levels, own_levels_of, with_levels
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.library import arrays
from kernelscope.library.arguments import check_common
from kernelscope.library.device_arrays import device_array
from kernelscope.library.session import session


def run_steps(
    recipe: Recipe,
    listed: Sequence[tuple[str, ArrayLike]],
    given: Mapping[str, Any],
    *,
    as_volumes: bool,
) -> tuple[Any, ...]:
    """Return the results of a recipe for arrays: on a GPU, of the first one that lies there.

    `listed`: the arrays with their names for messages: one picture, or the components of a scan.
    `given`: the arguments that every function has.
    """
    check_common(given)
    there = [array for name, each in listed if (array := device_array(each, name)) is not None]
    if not there:
        return _run_on_host(recipe, listed, given, as_volumes=as_volumes)
    from kernelscope.library import on_device

    if not as_volumes and on_device.runs_there(recipe, there[0], given):
        result = on_device.run_there(recipe, listed[0][0], there[0], given)
        if result is not None:
            return (result,)
    made = _run_on_host(recipe, listed, given, as_volumes=as_volumes)
    return on_device.stored(made, there[0])


def _run_on_host(
    recipe: Recipe,
    listed: Sequence[tuple[str, ArrayLike]],
    given: Mapping[str, Any],
    *,
    as_volumes: bool,
) -> tuple[NDArray[Any], ...]:
    options = RunOptions(Device(given["device"]), given["level"])
    source: Source
    if as_volumes:
        source = Scan(
            tuple(_with_levels(each, given) for each in arrays.scan(listed, given["nan"]).volumes)
        )
    else:
        ((name, array),) = listed
        array = arrays.host_array(array, name)  # once: it may lie on a card
        slice_of = arrays.as_slice(array)
        if slice_of is not None:
            made = _run_on_host(recipe, [(name, slice_of)], given, as_volumes=True)[0]
            return (made.reshape(array.shape),)
        source = _with_levels(arrays.picture(array, name, given["nan"]), given)
    result = session().run(recipe, source, options, given["progress"], given["cancel"])
    if isinstance(result.output, Image):
        channels_last = np.shape(listed[0][1])[2:] == (1,)
        return (arrays.of_picture(result.output, channels_last),)
    return arrays.of_scan(result.scan)


_Any = TypeVar("_Any", bound=Image | Volume)


def _with_levels(source: _Any, given: Mapping[str, Any]) -> _Any:
    """Return a source with the levels that were given.

    Raises
    ------
    InvalidParameter
        If its type has its own.
    """
    levels = given_levels(given.get("white"), given.get("black"))
    if levels is not None and (own := own_levels_of(source)):
        raise InvalidParameter(own, "Leave it out, or give floats.")
    return with_levels(source, levels)


def components_of(name: str, array: ArrayLike, components: Any) -> list[tuple[str, ArrayLike]]:
    """Return a volume and its further components with their names."""
    if isinstance(components, np.ndarray) and components.ndim == 3:
        raise InvalidParameter("components: this is one volume.", "Give a list: [t2, pd].")
    if not isinstance(components, Iterable):
        kind = type(components).__name__
        raise InvalidParameter(f"components: {kind} is no list.", "Give a list: [t2, pd].")
    return [(name, array), *((f"components[{i}]", each) for i, each in enumerate(components))]
