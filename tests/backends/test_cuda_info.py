"""The facts of a GPU, from a PyCUDA and an NVML that the test makes up."""

from __future__ import annotations

import sys
from importlib import metadata
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernelscope.backends.cuda import info
from kernelscope.engine.backend import Fact
from tests.pairs import together

H100 = {
    "MULTIPROCESSOR_COUNT": 132,
    "WARP_SIZE": 32,
    "CLOCK_RATE": 1_980_000,
    "MEMORY_CLOCK_RATE": 2_619_000,
    "GLOBAL_MEMORY_BUS_WIDTH": 5120,
    "TOTAL_CONSTANT_MEMORY": 65536,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
    "L2_CACHE_SIZE": 50 << 20,
    "MAX_GRID_DIM_X": 2_147_483_647,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "ECC_ENABLED": 1,
    "INTEGRATED": 0,
}


class Error(Exception):
    """Stands in for pycuda.driver.Error."""


class Handle:
    def name(self) -> str:
        return "Fake H100"

    def compute_capability(self) -> tuple[int, int]:
        return (9, 0)

    def total_memory(self) -> int:
        return 80 << 30

    def pci_bus_id(self) -> str:
        return "0000:41:00.0"

    def get_attribute(self, name: str) -> int:
        if name == "MANAGED_MEMORY":
            raise Error("the driver does not know it")
        return H100[name]


@pytest.fixture
def cuda() -> Any:
    names = {name: name for name in (*H100, "MANAGED_MEMORY")}
    return SimpleNamespace(
        init=lambda: None,
        Device=lambda ordinal: Handle(),
        Error=Error,
        device_attribute=SimpleNamespace(**names),
        get_driver_version=lambda: 13020,
        get_version=lambda: (12, 8, 0),
    )


def test_what_a_student_wants_to_know(cuda: Any) -> None:
    groups = {group.title: group.facts for group in info.device_groups(cuda, 0)}
    facts = {fact.name: fact for group in groups.values() for fact in group}
    expected = (
        Fact("Name", "Fake H100"),
        Fact("Architecture", "Hopper"),
        Fact("Compute capability", "9.0"),
        Fact("CUDA cores", "16,896 (128 per multiprocessor)"),
        Fact("Highest clock", "1,980", "MHz"),
        Fact("Global memory", "80", "GiB"),
        Fact("Constant memory", "64", "KiB"),
        Fact("Shared memory per block, on request", "227", "KiB"),
        Fact("L2 cache", "50", "MiB"),
        Fact("Theoretical bandwidth", "3,352", "GB/s"),
        Fact("Grid size", "2,147,483,647 × 65,535 × 65,535", "blocks"),
        Fact("Error correction (ECC)", "on"),
        Fact("Shares the computer's memory", "no"),
    )
    assert [facts[fact.name] for fact in expected] == list(expected)


def test_what_the_driver_does_not_tell_is_left_out(cuda: Any) -> None:
    names = {fact.name for group in info.device_groups(cuda, 0) for fact in group.facts}
    assert not names & {"Managed memory", "Copy engines", "Block size", "Texture, 2D"}


@together(
    ("capability", "name", "each"),
    [
        ((7, 0), "older than Turing", None),
        ((7, 5), "Turing", 64),
        ((8, 0), "Ampere", 64),
        ((8, 6), "Ampere", 128),
        ((8, 9), "Ada Lovelace", 128),
        ((9, 0), "Hopper", 128),
        ((10, 3), "Blackwell", 128),
        ((12, 1), "Blackwell", 128),
        ((14, 0), "newer than Blackwell", None),
    ],
)
def test_generations(capability: tuple[int, int], name: str, each: int | None) -> None:
    assert info.architecture(capability) == name
    assert info.cores(capability) == each


def test_peak_rate(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """132 multiprocessors of 128 cores, two operations a clock at 1.98 GHz."""
    assert info.peak_rate(cuda, 0) == pytest.approx(66.9e12, rel=1e-3)
    monkeypatch.setattr(Handle, "compute_capability", lambda self: (15, 0))
    assert info.peak_rate(cuda, 0) is None


def test_measured_bandwidth_beside_the_theoretical(cuda: Any) -> None:
    group = info.measured_group(2.873e12, info.theoretical_bandwidth(cuda, 0))
    assert [(fact.value, fact.unit) for fact in group.facts] == [("2,873", "GB/s"), ("86 %", "")]
    assert "too little" in info.measured_group(None, None).facts[0].value


class Nvml:
    """Stands in for pynvml; has no sensor for the temperature."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's names)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByPciBusId(self, address: bytes) -> bytes:  # noqa: N802
        return address

    def nvmlDeviceGetMemoryInfo(self, device: bytes) -> Any:  # noqa: N802
        assert device == b"0000:41:00.0"
        return SimpleNamespace(used=3 << 29, free=78 << 30)

    def nvmlDeviceGetUtilizationRates(self, device: bytes) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=37, memory=0)

    def nvmlDeviceGetTemperature(self, device: bytes, sensor: int) -> int:  # noqa: N802
        raise self.NVMLError

    def nvmlDeviceGetPowerUsage(self, device: bytes) -> int:  # noqa: N802
        return 123_400

    def nvmlDeviceGetClockInfo(self, device: bytes, kind: int) -> int:  # noqa: N802
        return {1: 1980, 2: 2619}[kind]

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.65.06"


def test_load_by_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert info.load("0000:41:00.0") == (
        Fact("Memory in use", "1.5", "GiB"),
        Fact("Free memory", "78", "GiB"),
        Fact("GPU load", "37", "%"),
        Fact("Memory load", "0", "%"),
        Fact("Power", "123", "W"),
        Fact("Clock", "1,980", "MHz"),
        Fact("Memory clock", "2,619", "MHz"),
    )
    assert nvml.open == 0


def test_without_nvml_there_is_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert info.load("0000:41:00.0") == ()


def test_versions(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiler:
        name, through = "nvcc", "PyCUDA"

        def version(self) -> str:
            return (
                "nvcc: NVIDIA\nBuilt on a day\nCuda compilation tools, release 13.0, V13\nBuild x\n"
            )

    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    monkeypatch.setattr(metadata, "version", lambda package: "2026.1")
    facts = {
        fact.name: fact.value for fact in info.software_group(cuda, cast(Any, Compiler())).facts
    }
    assert facts == {
        "Driver": "580.65.06",
        "CUDA version of the driver": "13.2",
        "CUDA version of PyCUDA": "12.8",
        "PyCUDA": "2026.1",
        "Compiler": "nvcc 13.0 through PyCUDA",
    }
