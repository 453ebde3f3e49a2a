"""The Gaussian and the unsharp mask: every level has the bits of the processor, also in strips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from tests.contract.test_pictures import make, without_alpha
from tests.filters import apply

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("filter_id", ["gaussian", "unsharp"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("colours", [1, 3])
@pytest.mark.parametrize("border", [Border.MIRROR, Border.WRAP, Border.VALID, Border.REDUCE])
@pytest.mark.parametrize("width", [604, 605], ids=["aligned", "unaligned"])
def test_levels_have_the_bits_of_the_processor(
    filter_id: str,
    dtype: type[Any],
    colours: int,
    border: Border,
    width: int,
    gpu: CudaBackend,
) -> None:
    spec = filters.get(filter_id)
    pixels = without_alpha(make(np.dtype(dtype), "random", (205, width)), colours)
    # Level tuned: in one launch, and in two, as always where the axes differ.
    several = ((0.8, 2.9), (6.0, 0.0)) if filter_id == "gaussian" else ()
    for sigma in (0.1, 1.0, 5.3, 14.0, *several):
        wanted = apply(spec, pixels, {"sigma": sigma}, border)
        for level in spec.levels("gpu"):
            request = Request.create(
                Image.from_array(pixels),
                filter_id,
                {"sigma": sigma},
                border=border,
                device=Device.GPU,
                level=level.id,
            )
            # The second leaves strips of about 40 rows: two buffers each for them and their halo.
            radius = spec.radius(request.step.parameters)
            for limit in (None, pixels.nbytes // 205 * (4 * radius + 4 * 40) * 6):
                gpu.memory_limit = limit
                actual = execute(request, {"gpu": gpu}).image.planes
                label = f"{level.id}, sigma {sigma}, limit {limit}"
                np.testing.assert_array_equal(actual, wanted, label)
