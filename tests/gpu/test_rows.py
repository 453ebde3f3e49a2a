"""Level *tuned* of 3x3 grey bytes: down the rows, with one, two and four words of a thread."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema import launch
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import TUNED
from tests.filters import apply

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("filter_id", ["mean", "median"])
@pytest.mark.parametrize("border", [Border.MIRROR, Border.VALID, Border.REDUCE, Border.WRAP])
@pytest.mark.parametrize("width", [2064, 2056, 2060])
def test_rows_equal_the_cpu(
    filter_id: str, border: Border, width: int, gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under `valid` rows of results are no whole words, which a card must not write at once."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    spec, parameters = filters.get(filter_id), {"size": 3}
    pixels = np.random.default_rng(width).integers(0, 256, (205, width, 1)).astype(np.uint8)
    wanted = apply(spec, pixels, parameters, border)
    request = Request.create(
        Image.from_array(pixels),
        filter_id,
        parameters,
        border=border,
        device=Device.GPU,
        level=TUNED.id,
    )
    for limit in (None, width * 164):  # strips of about 40 rows, as in test_box.py
        gpu.memory_limit = limit
        actual = execute(request, {"gpu": gpu}).image.planes
        np.testing.assert_array_equal(actual, wanted, f"limit {limit}")
