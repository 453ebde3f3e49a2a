"""Angles of gradients next to the bounds between two steps, where an arctangent matters most."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from kernelscope.filters.sobel import SPEC
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import Level
from tests.filters.test_sobel import pictures_at_the_bounds
from tests.gpu.test_gpu_contract import apply

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("level", SPEC.levels("gpu"), ids=lambda level: level.id)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_angles_next_to_the_bounds(dtype: type, level: Level, gpu: CudaBackend) -> None:
    source, wanted = pictures_at_the_bounds(np.dtype(dtype))
    image = Image.from_array(source)
    options = {"parameters": {"form": "angle"}, "border": Border.VALID}
    output = apply(gpu, image, "sobel", level, **options).image.planes
    np.testing.assert_array_equal(output[::3, ::3, 0], wanted)
