"""The reduction kernel compiles, and images on the card follow those on the host."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from app.backends.cuda.compiler import Nvrtc, resources
from app.backends.cuda.memory import Resident
from app.backends.cuda.reduction import THREADS
from app.backends.cuda.sources import read_source


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("macros", [{}, *({"SAMPLE_BITS": str(bits)} for bits in (8, 16, 32))])
def test_compiles(macros: dict[str, str], architecture: str) -> None:
    if macros:
        macros = {**macros, "THREADS": str(THREADS)}
    cubin = Nvrtc().compile("squared_error", read_source("squared_error"), architecture, macros)
    assert "warning" not in cubin.log, cubin.log
    report = resources(cubin.log, "squared_error")
    assert report is not None
    assert report.spill_bytes == 0
    assert report.shared_bytes == 8 * THREADS


class Allocation:
    """Notes whether it was freed, and that at most once."""

    def __init__(self) -> None:
        self.freed = False

    def free(self) -> None:
        assert not self.freed
        self.freed = True


@pytest.fixture
def resident() -> Resident:
    return Resident()


def test_a_copy_follows_its_new_name(resident: Resident) -> None:
    allocation, pixels = Allocation(), np.zeros(10, np.uint8)
    resident.put(pixels, allocation)
    view = pixels.view()
    resident.rename(pixels, view)
    assert resident.get(pixels) is None
    assert resident.get(view) is allocation
    assert resident.size == 10
    del pixels
    gc.collect()
    assert resident.get(view) is allocation
    del view
    gc.collect()
    resident.get(np.zeros(1))
    assert allocation.freed
    assert resident.size == 0


def test_a_copy_without_a_new_name_is_freed(resident: Resident) -> None:
    allocation, pixels = Allocation(), np.zeros(10, np.uint8)
    resident.put(pixels, allocation)
    resident.rename(pixels, None)
    assert allocation.freed
    resident.rename(pixels, None)
    assert resident.size == 0
