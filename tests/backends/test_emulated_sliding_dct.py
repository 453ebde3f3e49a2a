"""The sliding DCT with a sigma for each frequency, which small pictures do not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.shared.noise_model import NoiseKind, NoiseModel
from kernelscope.filters.sliding_dct import SPEC
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import quick_compiler
from tests.filters.test_sliding_dct import oracle

pytestmark = pytest.mark.slow


@needs_compiler
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("border", [Border.REFLECT, Border.VALID])
def test_every_frequency_has_its_own_sigma(channels: int, dtype: Any, border: Border) -> None:
    """On all levels of the CPU and of the emulated GPU, to the last bit."""
    random = np.random.default_rng(channels)
    source = random.uniform(0, 1, (41, 57, channels))
    source = np.rint(source * 255).astype(dtype) if dtype is np.uint8 else source.astype(dtype)
    spectra = random.uniform(0.01, 2, (channels, 8, 8))
    model = NoiseModel(NoiseKind.CORRELATED, (0.1,) * channels, spectra=spectra)
    values = SPEC.validate({"sigma": 12.0, "noise": "correlated"})
    wanted = oracle(source, values, border, spectra)
    if dtype is np.uint8:
        wanted = np.clip(np.rint(wanted), 0, 255).astype(np.uint8)
    request = Request.create(Image.from_array(source), "sliding_dct", values, border=border)
    request = replace(request, noise=model)
    for backend in (CpuBackend(threads=1), EmulatorBackend(quick_compiler(), threads=1)):
        for level in backend.levels(SPEC):
            made = backend.run(request, level, RunContext())
            np.testing.assert_array_equal(made.planes, wanted, err_msg=level.id)
        backend.close()
