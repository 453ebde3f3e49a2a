"""The devices that the bench's tests measure on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.backend import Backend
from tests.bench.stand_in import StandIn


@pytest.fixture
def gpu() -> StandIn:
    return StandIn()


@pytest.fixture
def backends(gpu: StandIn, small_cache: None) -> Iterator[dict[str, Backend]]:
    backends: dict[str, Backend] = {"gpu": gpu, "cpu": CpuBackend()}
    yield backends
    for backend in backends.values():
        backend.close()
