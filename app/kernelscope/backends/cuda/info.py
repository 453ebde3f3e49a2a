"""Facts about a GPU, in words: from PyCUDA's attributes and from NVML."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import metadata
from types import ModuleType
from typing import Any

from kernelscope.backends.cuda.compiler import Compiler, title
from kernelscope.engine.backend import Fact, FactGroup

_ARCHITECTURES = (
    ((7, 5), "Turing"),
    ((8, 0), "Ampere"),
    ((8, 9), "Ada Lovelace"),
    ((9, 0), "Hopper"),
    ((10, 0), "Blackwell"),
    ((13, 0), "newer than Blackwell"),
)

_CORES = {(7, 5): 64, (8, 0): 64}
"""Single-precision cores of a multiprocessor; 128 from capability 8.6 on.

CUDA C++ Programming Guide, "Compute Capabilities", and ``_ConvertSMVer2Cores`` of the CUDA
samples' ``helper_cuda.h``.
"""


def architecture(capability: tuple[int, int]) -> str:
    """Return the name of the generation that a compute capability belongs to."""
    names = [name for first, name in _ARCHITECTURES if first <= capability]
    return names[-1] if names else "older than Turing"


def cores(capability: tuple[int, int]) -> int | None:
    """Return the single-precision cores of a multiprocessor; None for unknown generations."""
    if (7, 5) <= capability < (13, 0):
        return _CORES.get(capability, 128)
    return None


def peak_rate(cuda: Any, ordinal: int) -> float | None:
    """Return the most operations per second in single precision, a multiply-add being two.

    None for unknown generations, or where the driver does not say.
    """
    attributes = Attributes(cuda, ordinal)
    each = cores(attributes.handle.compute_capability())
    multiprocessors, kilohertz = attributes["MULTIPROCESSOR_COUNT"], attributes["CLOCK_RATE"]
    if each is None or not multiprocessors or not kilohertz:
        return None
    return 2e3 * multiprocessors * each * kilohertz


class Attributes:
    """A device's attributes by name, None for those that this PyCUDA does not know.

    `cuda` is ``pycuda.driver``; no context is needed.
    """

    def __init__(self, cuda: Any, ordinal: int) -> None:
        cuda.init()
        self._cuda = cuda
        self.handle = cuda.Device(ordinal)

    def __getitem__(self, name: str) -> int | None:
        attribute = getattr(self._cuda.device_attribute, name, None)
        if attribute is None:
            return None
        try:
            return int(self.handle.get_attribute(attribute))
        except self._cuda.Error:  # known here, but not to the driver
            return None


def device_groups(cuda: Any, ordinal: int) -> Iterator[FactGroup]:
    """Yield the facts that the driver has about a device without opening it."""
    attributes = Attributes(cuda, ordinal)
    capability = attributes.handle.compute_capability()
    multiprocessors = attributes["MULTIPROCESSOR_COUNT"] or 0
    each = cores(capability)
    yield _group(
        "Device",
        ("Name", attributes.handle.name()),
        ("Number", str(ordinal)),
        ("Architecture", architecture(capability)),
        ("Compute capability", ".".join(map(str, capability))),
        ("Multiprocessors", _number(multiprocessors)),
        ("CUDA cores", f"{multiprocessors * each:,} ({each} per multiprocessor)" if each else None),
        ("Warp size", _number(attributes["WARP_SIZE"]), "threads"),
        ("Highest clock", _hertz(attributes["CLOCK_RATE"]), "MHz"),
        ("PCI address", attributes.handle.pci_bus_id()),
    )
    yield _memory_group(attributes)
    yield _limits_group(attributes)
    yield _group(
        "Abilities",
        ("Copy engines", _number(attributes["ASYNC_ENGINE_COUNT"])),
        ("Several kernels at once", _yes(attributes["CONCURRENT_KERNELS"])),
        ("Unified addressing", _yes(attributes["UNIFIED_ADDRESSING"])),
        ("Managed memory", _yes(attributes["MANAGED_MEMORY"])),
        ("Shares the computer's memory", _yes(attributes["INTEGRATED"])),
        ("Stops long kernels (watchdog)", _yes(attributes["KERNEL_EXEC_TIMEOUT"])),
    )


def _memory_group(attributes: Attributes) -> FactGroup:
    return _group(
        "Memory",
        ("Global memory", *_bytes(attributes.handle.total_memory())),
        ("L2 cache", *_bytes(attributes["L2_CACHE_SIZE"])),
        ("Constant memory", *_bytes(attributes["TOTAL_CONSTANT_MEMORY"])),
        ("Shared memory per block", *_bytes(attributes["MAX_SHARED_MEMORY_PER_BLOCK"])),
        (
            "Shared memory per block, on request",
            *_bytes(attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]),
        ),
        (
            "Shared memory per multiprocessor",
            *_bytes(attributes["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"]),
        ),
        ("Registers per block", _number(attributes["MAX_REGISTERS_PER_BLOCK"]), "of 32 bits"),
        (
            "Registers per multiprocessor",
            _number(attributes["MAX_REGISTERS_PER_MULTIPROCESSOR"]),
            "of 32 bits",
        ),
        ("Memory bus", _number(attributes["GLOBAL_MEMORY_BUS_WIDTH"]), "bits"),
        ("Highest memory clock", _hertz(attributes["MEMORY_CLOCK_RATE"]), "MHz"),
        ("Theoretical bandwidth", _bandwidth(attributes), "GB/s"),
        ("Error correction (ECC)", _switch(attributes["ECC_ENABLED"])),
    )


def _limits_group(attributes: Attributes) -> FactGroup:
    return _group(
        "Limits",
        ("Threads per block", _number(attributes["MAX_THREADS_PER_BLOCK"])),
        ("Threads per multiprocessor", _number(attributes["MAX_THREADS_PER_MULTIPROCESSOR"])),
        ("Blocks per multiprocessor", _number(attributes["MAX_BLOCKS_PER_MULTIPROCESSOR"])),
        ("Block size", _sizes(attributes, "MAX_BLOCK_DIM_{}", "XYZ"), "threads"),
        ("Grid size", _sizes(attributes, "MAX_GRID_DIM_{}", "XYZ"), "blocks"),
        ("Texture, 1D", _number(attributes["MAXIMUM_TEXTURE1D_WIDTH"]), "texels"),
        (
            "Texture, 2D",
            _sizes(attributes, "MAXIMUM_TEXTURE2D_{}", ("WIDTH", "HEIGHT")),
            "texels",
        ),
        (
            "Texture, 3D",
            _sizes(attributes, "MAXIMUM_TEXTURE3D_{}", ("WIDTH", "HEIGHT", "DEPTH")),
            "texels",
        ),
    )


def software_group(cuda: Any, compiler: Compiler) -> FactGroup:
    """Return the versions of the software between Kernelscope and the device."""
    with _nvml() as nvml:
        driver = nvml.nvmlSystemGetDriverVersion() if nvml else None
    return _group(
        "Software",
        ("Driver", driver),
        ("CUDA version of the driver", cuda_version(cuda.get_driver_version())),
        ("CUDA version of PyCUDA", ".".join(map(str, cuda.get_version()[:2]))),
        ("PyCUDA", metadata.version("pycuda")),
        ("Compiler", title(compiler)),
    )


def measured_group(copy_rate: float | None, theoretical: str | None) -> FactGroup:
    """Return the measured facts: the bandwidth of a copy on the card, in bytes per second."""
    if copy_rate is None:
        return _group("Measured", ("Copy on the card", "too little free memory to measure"))
    gigabytes = copy_rate / 1e9
    share = theoretical and f"{100 * gigabytes / float(theoretical.replace(',', '')):.0f} %"
    return _group(
        "Measured",
        ("Copy on the card, read + written", f"{gigabytes:,.0f}", "GB/s"),
        ("of the theoretical bandwidth", share),
    )


def theoretical_bandwidth(cuda: Any, ordinal: int) -> str | None:
    """Return bus width times clock, in GB/s; None where the driver does not say."""
    return _bandwidth(Attributes(cuda, ordinal))


def load(pci_address: str) -> tuple[Fact, ...]:
    """Return how busy a device is now, by NVML; empty where that is not installed."""
    with _nvml() as nvml:
        if nvml is None:
            return ()
        # By its address: CUDA_VISIBLE_DEVICES changes CUDA's numbers, not NVML's.
        device = nvml.nvmlDeviceGetHandleByPciBusId(pci_address.encode())

        def ask(function: str, *arguments: Any) -> Any:
            try:
                return getattr(nvml, function)(device, *arguments)
            except nvml.NVMLError:  # not every device has every sensor
                return None

        memory = ask("nvmlDeviceGetMemoryInfo")
        use = ask("nvmlDeviceGetUtilizationRates")
        watts = ask("nvmlDeviceGetPowerUsage")
        return _group(
            "Now",
            ("Memory in use", *_bytes(memory and memory.used)),
            ("Free memory", *_bytes(memory and memory.free)),
            ("GPU load", _number(use and use.gpu), "%"),
            ("Memory load", _number(use and use.memory), "%"),
            ("Temperature", _number(ask("nvmlDeviceGetTemperature", 0)), "°C"),
            ("Power", watts and f"{watts / 1e3:.0f}", "W"),
            ("Clock", _number(ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)), "MHz"),
            ("Memory clock", _number(ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM)), "MHz"),
        ).facts


@contextlib.contextmanager
def _nvml() -> Iterator[ModuleType | None]:
    """Give NVML, ready to be asked, or None where it is missing."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no module, no library, no permission: all the same here
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def cuda_version(number: int) -> str:
    """Return ``13.0`` for 13000."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _group(title: str, *rows: tuple[str | None, ...]) -> FactGroup:
    return FactGroup(
        title,
        tuple(
            Fact(str(name), value, (rest[0] or "") if rest else "")
            for name, value, *rest in rows
            if value is not None
        ),
    )


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _hertz(kilohertz: int | None) -> str | None:
    return f"{kilohertz / 1e3:,.0f}" if kilohertz else None


def _yes(value: int | None) -> str | None:
    return None if value is None else ("yes" if value else "no")


def _switch(value: int | None) -> str | None:
    return None if value is None else ("on" if value else "off")


def _bytes(size: int | None) -> tuple[str | None, str | None]:
    """Return a size and its unit: the largest that leaves a number of at least 1."""
    if size is None:
        return None, None
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if number >= 1024:
            number, unit = number / 1024, larger
    return f"{number:,.1f}".removesuffix(".0"), unit


def _sizes(attributes: Attributes, pattern: str, parts: tuple[str, ...] | str) -> str | None:
    values = [attributes[pattern.format(part)] for part in parts]
    return None if None in values else " × ".join(f"{value:,}" for value in values)


def _bandwidth(attributes: Attributes) -> str | None:
    """Return the theoretical bandwidth in GB/s: bus width × clock, two transfers a clock."""
    clock, width = attributes["MEMORY_CLOCK_RATE"], attributes["GLOBAL_MEMORY_BUS_WIDTH"]
    return f"{2 * clock * 1e3 * width / 8 / 1e9:,.0f}" if clock and width else None
