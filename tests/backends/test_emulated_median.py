"""The networks of the tuned median up to their largest masks, and the planes behind them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.ndimage import median_filter

from kernelscope.backends.emulator.backend import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.spec import launch
from kernelscope.spec.borders import Border
from kernelscope.spec.levels import TUNED

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def backend() -> Iterator[EmulatorBackend]:
    backend = EmulatorBackend(threads=1)
    assert backend.availability().available
    yield backend
    backend.close()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("size", [11, 13, 15, 17])
def test_large_masks_equal_scipy(
    backend: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, dtype: str, size: int
) -> None:
    """300 columns: whole quads inside the picture, and tiles at all four sides."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    random = np.random.default_rng(size)
    white = 1.0 if dtype == "float32" else float(np.iinfo(dtype).max)
    values = random.random((44, 300))
    values[random.random(values.shape) < 0.2] = 0
    values[random.random(values.shape) < 0.2] = 1
    pixels = (values * white).astype(dtype)
    request = Request.create(
        Image.from_array(pixels), "median", {"size": size}, border=Border.MIRROR
    )
    actual = backend.run(request, TUNED, RunContext()).planes[:, :, 0]
    np.testing.assert_array_equal(actual, median_filter(pixels, size, mode="mirror"))
