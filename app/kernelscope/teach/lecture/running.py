"""Runs the program's own filters on the processor, for pages that show results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.teach.handbook import examples


def filtered(
    pixels: NDArray[np.uint8],
    filter_id: str,
    parameters: Mapping[str, Any],
    border: Border | None = None,
) -> NDArray[np.uint8]:
    """Return the result of a filter on grey bytes, as `examples.filtered` does."""
    source = Image.from_array(np.ascontiguousarray(pixels))
    return examples.filtered(source, Step.of_numbers(filter_id, parameters, border=border))
