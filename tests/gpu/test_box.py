"""Level *tuned* of the filters that sum up squares: several tiles, every path of the loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import TUNED
from tests.contract.test_pictures import assert_close, make, without_alpha
from tests.filters import apply, test_mean, test_threshold_mean

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("module", [test_mean, test_threshold_mean], ids=["mean", "threshold"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("colours", [1, 3])
@pytest.mark.parametrize("border", [Border.MIRROR, Border.VALID, Border.REDUCE])
@pytest.mark.parametrize("width", [1404, 1405], ids=["aligned", "unaligned"])
@pytest.mark.parametrize("size", [5, 31, 99])
def test_tiles_equal_the_cpu(
    module: Any,
    dtype: type[Any],
    colours: int,
    border: Border,
    width: int,
    size: int,
    gpu: CudaBackend,
) -> None:
    spec = module.SPEC
    size = min(size, spec.parameters[0].maximum)
    pixels = without_alpha(make(np.dtype(dtype), "random", (205, width)), colours)
    parameters = spec.validate({"size": size})
    wanted = apply(spec, pixels, parameters, border)
    request = Request.create(
        Image.from_array(pixels),
        spec.id,
        parameters,
        border=border,
        device=Device.GPU,
        level=TUNED.id,
    )
    # The second leaves strips of about 40 rows: two buffers each for them and their halo.
    for limit in (None, pixels.nbytes // 205 * (4 * (size // 2) + 4 * 40)):
        gpu.memory_limit = limit
        actual = execute(request, {"gpu": gpu}).image.planes
        tolerance = 1e-5 if dtype is np.float32 else 0
        assert_close(actual, wanted, pixels, tolerance, f"limit {limit}")
