"""Runs the program's own filters on the processor, for pages that show results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border


def filtered(
    pixels: NDArray[np.uint8],
    filter_id: str,
    parameters: Mapping[str, Any],
    border: Border | None = None,
) -> NDArray[np.uint8]:
    """Return the result of a filter on grey bytes; the first call may compile the filter.

    Raises `AppError` if the filter cannot run on this picture, for example if it is smaller than
    the mask.
    """
    level = filters.get(filter_id).levels(Device.CPU)[-1].id
    source = Image.from_array(np.ascontiguousarray(pixels))
    step = Step.of_numbers(filter_id, parameters, border=border)
    options = RunOptions(device=Device.CPU, level=level)
    request = Request(source, step, options, live=True)  # neither logged nor learnt from
    backend = CpuBackend()
    try:
        result = execute(request, {backend.id: backend}, learn=False)
    finally:
        backend.close()
    return result.output.planes[..., 0]
