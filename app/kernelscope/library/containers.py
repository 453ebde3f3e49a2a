"""Arrays of other libraries on the host: the result is one of the same library.

Masked arrays and those of xarray and PyTorch are recognised by their modules, without an import.
Those of Dask are filtered when they are computed, in chunks with the halo of the filter.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.engine.scaling import facts_of_whole, finds_noise
from kernelscope.engine.step import Step
from kernelscope.library.arguments import check_held
from kernelscope.library.arrays import check_tensor
from kernelscope.library.layout import Layout
from kernelscope.schema.borders import Border

Wrap = Callable[[NDArray[Any]], Any]
"""Maps a result to an array of the library that the input came from."""


def unwrapped(values: Any, name: str, nan: Any) -> tuple[Any, Wrap]:
    """Return an array-like object without its container, and the way back."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor) and not values.is_cuda:
        if getattr(values.device, "type", "cpu") != "cpu":
            raise InvalidImage(
                f"{name}: the tensor lies on {values.device}, where no filter runs.",
                f"Give {name}.cpu().",
            )
        check_tensor(torch, values, name)
        try:
            return values.numpy(), torch.from_numpy
        except (TypeError, RuntimeError) as error:  # a sparse one, or a type that NumPy lacks
            raise InvalidImage(f"{name}: the tensor is no array of NumPy's ({error}).") from error
    if isinstance(values, np.ma.MaskedArray):
        return _of_masked(values, name, nan)
    if isinstance(values, list | tuple) and any(np.ma.is_masked(each) for each in values):
        return _of_masked(np.ma.stack(values), name, nan)
    labels = _labels(values) if is_labelled(values) else None
    if labels is not None:
        values = values.data
    if is_lazy(values) and any(math.isnan(side) for side in values.shape):
        raise InvalidImage(
            f"{name}: the shape of the Dask array is not known yet.",
            f"Call {name}.compute_chunk_sizes() first.",
        )
    return values, labels or (lambda made: made)


def _of_masked(values: Any, name: str, nan: Any) -> tuple[Any, Wrap]:
    """Return a masked array with a number at its masked elements, which the result masks again."""
    if not np.ma.is_masked(values):
        return np.ma.getdata(values), np.ma.array
    if nan is None:
        raise InvalidImage(
            f"{name}: some elements of the array are masked.",
            f"Replace them: {name}.filled(0), or give a number to filter them as: nan=0.",
        )
    check_held("nan", float(nan), values.dtype)
    mask = np.ma.getmaskarray(values)

    def wrap(made: NDArray[Any]) -> Any:
        if made.shape != mask.shape:
            raise InvalidParameter(
                f"{name}: the result has another shape than the mask of the array.",
                "Choose another border than “valid”, or convert to grey and fill the mask first.",
            )
        return np.ma.array(made, mask=mask)

    return values.filled(nan), wrap


def is_labelled(values: Any) -> bool:
    """Return whether this is an array with names of its axes, as xarray has it."""
    return all(hasattr(values, name) for name in ("dims", "coords", "data", "copy"))


def _labels(values: Any) -> Wrap:
    """Return the way back to names of axes; a result of another shape has none."""

    def wrap(made: NDArray[Any]) -> Any:
        return values.copy(data=made) if made.shape == values.shape else made

    return wrap


def named_axis(values: Any, axis: Any) -> Any:
    """Return the numbers of axes that are given by their names."""
    if isinstance(axis, tuple | list):
        return tuple(named_axis(values, each) for each in axis)
    if not isinstance(axis, str) or not is_labelled(values):
        return axis
    if axis not in values.dims:
        listed = ", ".join(map(str, values.dims))
        raise InvalidParameter(f"There is no axis “{axis}”.", f"Use one of {listed}.")
    return values.dims.index(axis)


def is_lazy(values: Any) -> bool:
    """Return whether this is an array of Dask."""
    return type(values).__module__.startswith("dask.array")


def lazily(
    values: Any, step: Step, layout: Layout, function: Callable[[NDArray[Any]], NDArray[Any]]
) -> Any:
    """Return the result as an array of Dask, which computes it in chunks.

    Raises `InvalidParameter` for a filter that needs the whole picture.
    """
    spec, numbers = step.filter, step.parameters
    radius, channels = spec.radius(numbers), layout.channels
    colours = 1 if channels is None else values.shape[channels]
    obstacle, way = spec.uncroppable(numbers), ""
    if not obstacle:
        obstacle, way = _obstacle(step, of_type=values.dtype, colours=colours)
    if channels is not None:
        values = values.rechunk({channels: -1})
    halo = dict.fromkeys((layout.rows, layout.columns), radius)
    return in_chunks(values, step, halo, (obstacle, way), function)


def in_chunks(
    values: Any,
    step: Step,
    halo: dict[int, int],
    hindered: tuple[str, str],
    function: Callable[[NDArray[Any]], NDArray[Any]],
) -> Any:
    """Return the result as an array of Dask whose chunks have a halo along each of some axes.

    `hindered`: why that is not the result of the whole, and the way out; empty if it is.
    """
    obstacle, way = hindered
    if any(values.shape[axis] < radius for axis, radius in halo.items()):
        obstacle, way = "it is smaller than the mask", ""
    if obstacle:
        raise InvalidParameter(
            f"{step.filter.name} cannot filter a Dask array in chunks: {obstacle}.",
            f"{way} Or compute the array first." if way else "Compute the array first.",
        )
    # The edges of the array are those of the filter; opposite sides touch by Dask's own halo.
    around = dict.fromkeys(halo, "periodic" if step.border is Border.WRAP else "none")
    return values.map_overlap(
        function, depth=halo, boundary=around, dtype=values.dtype, meta=values._meta
    )


def _obstacle(step: Step, *, of_type: np.dtype[Any], colours: int) -> tuple[str, str]:
    """Return why chunks with a halo would differ from the whole, and the way out; empty if not."""
    spec = step.filter
    why, way = facts_of_whole(step, levels=of_type not in (np.uint8, np.uint16))
    counts = any(getattr(each, "counts_slices", False) for each in spec.parameters)
    local = not finds_noise(step) and not spec.crop.rows and spec.crop.grid <= 1
    if counts or not (why or local):
        return "a result depends on more than its neighbours", ""
    if why:
        return why, way
    made = spec.output_channels(1 if step.grey else colours, step.parameters)
    if step.border is Border.VALID or step.within is not None or made != colours:
        return "chunks have to keep their shape", ""
    return "", ""
