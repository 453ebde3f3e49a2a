"""The probe names what is missing for CUDA, whatever this machine has."""

from __future__ import annotations

import ctypes
import importlib.util
from typing import Any

import pytest

from app.backends import create_backends
from app.backends.cuda import probe as module
from app.backends.cuda.backend import CudaBackend
from app.backends.cuda.probe import probe
from app.engine.control import CancelToken, no_progress
from app.engine.timing import Stopwatch
from app.errors import DeviceUnavailable
from app.filters.spec import GPU_LEVELS
from tests.engine.fakes import request


class Driver:
    """Stands in for libcuda."""

    def __init__(self, status: int = 0, devices: int = 1) -> None:
        self.status = status
        self.devices = devices

    def cuInit(self, flags: int) -> int:  # noqa: N802 (CUDA's name)
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.devices
        return 0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Return a function that pretends a machine."""

    def pretend(driver: Driver | None, pycuda: bool = True) -> None:
        def load(name: str) -> Driver:
            assert name == module._DRIVER
            if driver is None:
                raise OSError(name)
            return driver

        monkeypatch.setattr(ctypes, "CDLL", load)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: pycuda or None)

    return pretend


@pytest.mark.parametrize(
    ("driver", "pycuda", "reason", "step"),
    [
        (None, True, "No NVIDIA driver", "nvidia-driver"),
        (Driver(status=100), True, "finds no supported GPU", "nvidia-smi"),
        (Driver(devices=0), True, "finds no supported GPU", "nvidia-smi"),
        (Driver(), False, "PyCUDA is not installed", "pip install"),
    ],
)
def test_names_the_first_thing_that_is_missing(machine, driver, pycuda, reason, step) -> None:
    machine(driver, pycuda)
    state = probe()
    assert not state.available
    assert reason in state.summary
    assert any(step in text for text in state.steps)


def test_says_that_this_version_runs_no_gpu_filters(machine) -> None:
    machine(Driver())
    state = probe()
    assert not state.available
    assert "CPU only" in state.summary


def test_the_backend_asks_once_and_refuses_to_run(machine) -> None:
    machine(None)
    backend = CudaBackend()
    state = backend.availability()
    machine(Driver())
    assert backend.availability() is state
    wanted = request()
    with pytest.raises(DeviceUnavailable, match="No NVIDIA driver"):
        backend.run(wanted, GPU_LEVELS[0], Stopwatch(), CancelToken(), no_progress)
    assert backend.levels(wanted.filter) == GPU_LEVELS
    backend.close()


def test_the_program_has_a_gpu_and_a_cpu() -> None:
    backends = create_backends()
    assert list(backends) == ["gpu", "cpu"]
    assert backends["cpu"].availability().available
    for backend in backends.values():
        backend.close()
