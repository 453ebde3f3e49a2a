"""Level tuned of collaborative filtering: keys of bytes, and stacks of 32 in the first stage."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.collaborative import SPEC
from kernelscope.filters.collaborative.model import numbers
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import planned
from kernelscope.schema.levels import TUNED
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import quick_compiler


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("sigma", "channels"), [(8.0, 3), (20.0, 1)])
def test_tuned_has_the_bytes_of_the_processor(sigma: float, channels: int) -> None:
    """Also where many blocks differ by nothing: of those the upper left ones count."""
    source = np.random.default_rng(channels).integers(0, 256, (26, 37, channels), dtype=np.uint8)
    source[:, :20] = 90
    request = Request.create(
        Image.from_array(source), SPEC.id, SPEC.validate({"sigma": sigma, "setting": "fast"})
    )
    cpu, emulator = CpuBackend(threads=1), EmulatorBackend(quick_compiler(), threads=1)
    wanted = cpu.run(request, cpu.levels(SPEC)[-1], RunContext()).planes
    np.testing.assert_array_equal(emulator.run(request, TUNED, RunContext()).planes, wanted)
    cpu.close()
    emulator.close()


@pytest.mark.parametrize(
    ("dtype", "sigma", "kernel"),
    [
        (np.uint8, 8.0, "tuned"),
        (np.uint8, 39.6, "tuned"),
        (np.uint8, 39.8, "shared"),
        (np.uint16, 8.0, "shared"),
        (np.float32, 8.0, "shared"),
    ],
)
def test_differences_fit_into_the_keys_of_bytes(dtype: type, sigma: float, kernel: str) -> None:
    values = SPEC.validate({"sigma": sigma, "noise": "white"})
    kind = np.dtype(dtype)
    _, plan = planned(SPEC, (64, 64, 1), kind, values, Border.REFLECT, TUNED.id)
    matches = [each.kernel for each in plan.launches if each.kernel.endswith("_match")]
    assert matches == [f"collaborative_{kernel}_match"] * 2
    found = numbers(kind, 1, values)
    assert found is not None
    assert (kernel == "tuned") == (dtype is np.uint8 and max(found.tolerances) < 2**21)
