"""Pictures with many hot samples, of which those of the contract have few."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from kernelscope.filters.hot_pixels import SPEC
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import Level
from tests.filters.test_hot_pixels import KINDS, by_numpy, with_all
from tests.gpu.test_gpu_contract import apply
from tests.noise import white_of

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("level", SPEC.levels("gpu"), ids=lambda level: level.id)
def test_the_bytes_of_numpy(level: Level, gpu: CudaBackend) -> None:
    for dtype, channels in KINDS:
        source = with_all(dtype, channels)
        source = np.nan_to_num(source).clip(0, white_of(source)).astype(dtype)  # white of floats: 1
        source.flags.writeable = False
        output = apply(gpu, Image.from_array(source), SPEC.id, level, border=Border.MIRROR).image
        assert output.planes.tobytes() == by_numpy(source).tobytes(), (dtype, channels)
