"""Runs recipes on arrays that lie on a GPU; the results stay there.

A picture goes from kernel to kernel at its address. Whatever needs the processor as well (alpha,
areas, slices, volumes, filters without kernels, floats that are not finite) is copied to the host,
filtered as any other array, and copied back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda import CudaBackend
from kernelscope.base.errors import naming
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.control import no_progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.scaling import facts_of_whole
from kernelscope.engine.stabilising import needs_steps, with_noise
from kernelscope.engine.steps import over_all, placed, prepared, recipe_request
from kernelscope.images.image import DTYPES, MAX_SAMPLES, Image
from kernelscope.library.arrays import DeviceArray
from kernelscope.library.session import PolledToken, session
from kernelscope.schema.filter import SIGN, Unit
from kernelscope.schema.levels import Level
from kernelscope.schema.samples import UNIT, Kind, levels_between, levels_of

_CHANNELS = (1, 3)  # those of pictures without alpha


def fetched(array: DeviceArray) -> NDArray[Any]:
    """Return a copy of an array on a GPU."""
    with session().card(array.ordinal) as card:
        return card.fetch(array.address, array.shape, array.dtype)


def stored(results: Sequence[NDArray[Any]], like: DeviceArray) -> tuple[Any, ...]:
    """Return copies of arrays on the GPU of another one, of its library."""
    copies = []
    for result in results:
        copy = like.empty(result.shape, result.dtype)
        with session().card(like.ordinal) as card:
            card.store(result, copy.address)
        copies.append(copy.owner)
    return tuple(copies)


def runs_there(recipe: Recipe, array: DeviceArray, given: Mapping[str, Any]) -> bool:
    """Return whether kernels alone can compute a recipe from an array, apart from estimates."""
    height, width, *channels = (*array.shape, 1) if len(array.shape) == 2 else array.shape
    size = height * width * (channels[0] if len(channels) == 1 else 0)
    if not 0 < size < MAX_SAMPLES or channels[0] not in _CHANNELS or array.dtype not in DTYPES:
        return False
    if given["device"] not in (Device.AUTO, Device.GPU) or (
        given.get("white") is not None or given.get("black") is not None
    ):
        return False
    level = given["level"]
    levels = [[each.id for each in step.filter.levels(Device.GPU)] for step in recipe.steps]
    if not all(levels) or (level is not None and not any(level in each for each in levels)):
        return False
    return all(step.filter.kind is Kind.PICTURE and step.within is None for step in recipe.steps)


def run_there(
    recipe: Recipe, name: str, array: DeviceArray, given: Mapping[str, Any]
) -> Any | None:
    """Return the result of a recipe for a picture on a GPU; None if it has to go by the host."""
    token = PolledToken(given["cancel"])
    options = RunOptions(Device.GPU, given["level"])
    try:
        with session().card(array.ordinal, token) as card:
            floats = array.dtype.kind == "f"
            peak = card.peak_at(array.address, _size(array)) if floats else 0.0
            if not np.isfinite(peak):
                return None
            image = _stand_in(name, array)
            whole = recipe_request(recipe, image, options)
            report = over_all(given["progress"] or no_progress, len(recipe.steps))
            for number, step in enumerate(recipe.steps, 1):
                unit = step.filter.unit_for(step.parameters)
                if floats and unit is not Unit.ANY and levels_between(0.0, peak) != UNIT:
                    return None  # the host brings it into the unit that the filter supposes
                # Negative samples may not be black's noise: their sign is kept.
                signed = unit.knows_white or step.parameters.get(SIGN) == "clip"
                if floats and signed and levels_of(_read(image, array, card).planes) != UNIT:
                    return None
                with naming(whole.prefix(number)):
                    looks, _ = facts_of_whole(step)
                    one = whole.alone(number, _read(image, array, card) if looks else image)
                    one, _ = placed(one, recipe.steps, {Device.GPU.value: card})
                    request = with_noise(prepared(one)[0])
                    if needs_steps(request):
                        return None  # the host makes its noise white
                    target = array.empty(_shape(request, array), array.dtype)
                    context = RunContext(RunLog(), token, report(number))
                    level = _level(request, card)
                    card.run_at(request, level, context, array.address, target.address)
                    image, array = _stand_in(name, target), target
                    peak = card.peak_at(array.address, _size(array)) if floats else 0.0
                    if not np.isfinite(peak):
                        _read(image, array, card)  # raises the error of such a result
            return array.owner
    except BaseException:
        token.cancel()
        raise


def _stand_in(name: str, array: DeviceArray) -> Image:
    """Return a picture of the shape and the type of an array, without its samples."""
    shape = array.shape[:2] if array.shape[2:] == (1,) else array.shape
    return Image(np.broadcast_to(array.dtype.type(0), shape), name, given_levels=UNIT)


def _read(image: Image, array: DeviceArray, card: CudaBackend) -> Image:
    """Return the picture itself, for measurements on the host."""
    pixels = card.fetch(array.address, array.shape, array.dtype)
    return replace(Image.from_array(pixels, image.title), given_levels=UNIT)


def _shape(request: Request, array: DeviceArray) -> tuple[int, ...]:
    """Return the shape of a result, as of host arrays: grey has no axis unless it came with one."""
    *sides, channels = request.output_shape
    return (*sides, channels) if channels > 1 or array.shape[2:] == (1,) else tuple(sides)


def _level(request: Request, card: CudaBackend) -> Level:
    """Return the level that was chosen, or the fastest."""
    levels = card.levels(request.step.filter)
    return next((each for each in levels if each.id == request.options.level), levels[-1])


def _size(array: DeviceArray) -> int:
    return int(np.prod(array.shape, dtype=np.int64))
