"""The probe names the missing parts of CUDA, independently of this machine."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kernelscope.backends.cuda import probe as module
from kernelscope.backends.cuda.backend import CudaBackend
from kernelscope.backends.cuda.probe import probe
from kernelscope.base.errors import AppError
from kernelscope.base.installed import install_command
from kernelscope.engine.backend import Availability


class Driver:
    """Stands in for libcuda."""

    def __init__(
        self,
        status: int = 0,
        names: tuple[str, ...] = ("Fake RTX",),
        capability: tuple[int, int] = (8, 9),
        version: int = 13000,
    ) -> None:
        self.status, self.names, self.capability, self.version = status, names, capability, version

    def cuInit(self, flags: int) -> int:  # noqa: N802 (CUDA's names)
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.names)
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> None:  # noqa: N802
        device._obj.value = ordinal

    def cuDeviceGetName(self, text: Any, size: int, device: Any) -> None:  # noqa: N802
        text.value = self.names[device.value].encode()

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> None:  # noqa: N802
        value._obj.value = self.capability[{75: 0, 76: 1}[attribute]]

    def cuDriverGetVersion(self, version: Any) -> None:  # noqa: N802
        version._obj.value = self.version


class Compiler:
    name = "NVRTC"

    def version(self) -> str:
        return "nvrtc 13.5 13.5.37"


Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that pretends a machine; all that is not said is in order."""

    def pretend(
        driver: Driver | None,
        pycuda: str | None = "fine",
        compiler: bool = True,
        system: str = "ubuntu",
        visible: str | None = None,
        programs: tuple[str, ...] = (),
    ) -> None:
        def load(name: str) -> Driver:
            assert name in ("libcuda.so.1", "nvcuda.dll")
            if driver is None:
                raise OSError(name)
            return driver

        def load_pycuda(name: str) -> None:
            assert name == "pycuda.driver"
            if pycuda != "fine":
                raise ImportError(pycuda)

        def choose() -> Compiler:
            if not compiler:
                raise AppError("There is no CUDA compiler on this computer.")
            return Compiler()

        platforms = {"windows": "win32", "macos": "darwin"}
        monkeypatch.setattr(sys, "platform", platforms.get(system, "linux"))
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": system})
        monkeypatch.setattr(ctypes, "CDLL", load)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: pycuda)
        monkeypatch.setattr(importlib, "import_module", load_pycuda)
        monkeypatch.setattr(module, "choose_compiler", choose)
        monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)
        if visible is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    return pretend


@pytest.mark.parametrize(
    ("options", "reason", "step"),
    [
        ({"driver": None, "system": "macos"}, "no CUDA for macOS", "Linux or Windows"),
        ({"driver": None}, "No NVIDIA driver", "ubuntu-drivers install"),
        ({"driver": None, "system": "debian"}, "No NVIDIA driver", "apt install nvidia-driver"),
        ({"driver": None, "system": "fedora"}, "No NVIDIA driver", "dnf install akmod-nvidia"),
        ({"driver": None, "system": "windows"}, "No NVIDIA driver", "nvidia.com/drivers"),
        ({"driver": None, "system": "arch"}, "No NVIDIA driver", "your system's packages"),
        ({"driver": Driver(status=803)}, "CUDA error 803", "`nvidia-smi`"),
        ({"driver": Driver(names=())}, "finds no GPU that it can use.", "`nvidia-smi`"),
        ({"driver": Driver(100), "visible": ""}, "DEVICES is “”, which hides", "`unset CUDA_VIS"),
        (
            {"driver": Driver(names=()), "visible": "-1", "system": "windows"},
            "“-1”, which hides",
            "`set CUDA_VIS",
        ),
        ({"driver": Driver(capability=(7, 0))}, "Fake RTX has compute capability 7.0", "Turing"),
        ({"driver": Driver(names=("A", "B"), capability=(6, 1))}, "A has compute", "--gpu"),
        ({"driver": Driver(), "pycuda": None}, "PyCUDA is not installed", "pip install"),
        (
            {"driver": Driver(), "pycuda": "libboost.so.1: not found"},
            "cannot be loaded: libboost.so.1: not found.",
            "--no-binary pycuda",
        ),
        ({"driver": Driver(), "compiler": False}, "no CUDA compiler", install_command("cuda")),
        (
            {"driver": Driver(version=12080)},
            "driver knows CUDA 12, but NVRTC makes kernels for CUDA 13.5",
            "version 580",
        ),
    ],
)
def test_names_the_first_thing_that_is_missing(
    machine: Machine, options: dict[str, Any], reason: str, step: str
) -> None:
    machine(**options)
    state = probe()
    assert not state.available
    assert reason in state.summary
    assert any(step in text for text in state.steps)
    assert all(text.count("`") in (0, 2) for text in state.steps)


def test_the_steps_lead_from_the_driver_to_the_compiler(machine: Machine) -> None:
    machine(None, pycuda=None, system="debian")
    text = "\n".join(probe().steps)
    order = [
        text.index(part) for part in ("Turing", "nvidia-driver", "nvidia-smi", "g++", "pip install")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("driver", [None, Driver(names=()), Driver(capability=(6, 1))])
def test_software_that_is_there_is_not_to_be_installed(
    machine: Machine, driver: Driver | None
) -> None:
    machine(driver)
    text = "\n".join(probe().steps)
    assert "Turing" in text
    assert "PyCUDA" not in text
    assert "toolkit" not in text
    assert install_command("cuda") not in text


def test_only_the_compiler_is_missing_beside_the_driver(machine: Machine) -> None:
    machine(None, compiler=False)
    *_, first, second = probe().steps
    assert first == f"Install NVRTC, which needs nothing else: `{install_command('cuda')}`"
    assert second.startswith("Or the CUDA toolkit")


@pytest.mark.parametrize(
    ("programs", "system", "can_build"),
    [
        (("nvcc", "g++"), "ubuntu", True),
        (("nvcc", "cl"), "windows", True),
        (("nvcc",), "ubuntu", False),
        (("nvcc", "g++"), "windows", False),
        (("g++",), "ubuntu", False),
        ((), "ubuntu", False),
    ],
)
def test_the_toolkit_is_needed_only_to_build_pycuda(
    machine: Machine, programs: tuple[str, ...], system: str, can_build: bool
) -> None:
    machine(Driver(), pycuda=None, system=system, programs=programs)
    steps = probe().steps
    assert steps[-1].startswith("Install PyCUDA and a CUDA compiler beside Kernelscope: `")
    assert len(steps) == (1 if can_build else 2)
    assert can_build or steps[0].startswith("Install the CUDA toolkit, with which pip builds")


def test_a_complete_machine_lists_its_devices(machine: Machine) -> None:
    machine(Driver(names=("First", "Second")))
    assert probe() == Availability(True, "First", devices=("First", "Second"))
    assert probe([1]).summary == "Second"
    for number in (2, -1):
        assert f"no GPU number {number}" in probe([0, number]).summary


def test_devices_that_share_the_work_are_counted(machine: Machine) -> None:
    machine(Driver(names=("First", "Second")))
    assert probe((1, 0)) == Availability(True, "Second + First", (), ("First", "Second"), 2)


def test_a_variable_that_hides_nothing_is_not_blamed(machine: Machine) -> None:
    machine(Driver(), visible="0")
    assert probe().available


def test_a_system_without_a_name_still_gets_steps(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(None)

    def nameless() -> dict[str, str]:
        raise OSError

    monkeypatch.setattr(platform, "freedesktop_os_release", nameless)
    assert any("your system's packages" in step for step in probe().steps)


def test_the_backend_asks_once_and_for_its_own_device(machine: Machine) -> None:
    machine(Driver(names=("First", "Second")))
    backend = CudaBackend([1])
    state = backend.availability()
    assert state.summary == "Second"
    machine(None)
    assert backend.availability() is state
    absent = CudaBackend()
    assert list(absent.facts()) == []
    assert absent.load() == ()
