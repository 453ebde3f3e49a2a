"""Finds out whether CUDA can be used here, and if not, the missing part."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from kernelscope.backends.cuda.compiler import Compiler, choose_compiler, release
from kernelscope.base.errors import AppError
from kernelscope.base.installed import install_command, pip_command
from kernelscope.engine.backend import Availability

OLDEST = (7, 5)  # compute capability of the first generation that the kernels are made for: Turing
_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR

_REBUILD = ("--force-reinstall", "--no-cache-dir", "--no-binary", "pycuda", "pycuda")


def probe(ordinals: Sequence[int] = (0,), compiler: Compiler | None = None) -> Availability:
    """Look for the driver, the devices, a compiler and PyCUDA, in this order.

    The first that is missing is named, with the steps from there on: commands for this system.
    """
    if sys.platform == "darwin":
        return _missing("There is no CUDA for macOS.", _OTHER_COMPUTER)
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return _missing(
            "No NVIDIA driver was found on this computer.",
            _CARD,
            *_driver_steps(),
            *_software_steps(),
        )
    count = ctypes.c_int()
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return _no_device(status)
    devices = tuple(_name(driver, number) for number in range(count.value))
    for ordinal in ordinals:
        if not 0 <= ordinal < len(devices):
            return Availability(
                False,
                f"There is no GPU number {ordinal} on this computer.",
                (f"Choose a number from 0 to {len(devices) - 1} with --gpu or KERNELSCOPE_GPU.",),
                devices,
            )
        if obstacle := _device(driver, ordinal, devices):
            return obstacle
    return _software(driver, ordinals, devices, compiler)


def _no_device(status: int) -> Availability:
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return _missing(
            f"The variable CUDA_VISIBLE_DEVICES is “{hidden}”, which hides every GPU.",
            f"Start Kernelscope without it: {_unset('CUDA_VISIBLE_DEVICES')}",
        )
    error = f" (CUDA error {status})" if status else ""
    return _missing(
        f"The NVIDIA driver is installed, but it finds no GPU that it can use{error}.",
        _CARD,
        "See the cards that the driver finds: `nvidia-smi`",
        "After an update of the driver, restart the computer.",
        *_software_steps(),
    )


def _device(driver: Any, ordinal: int, devices: tuple[str, ...]) -> Availability | None:
    """Return the fault of the device, or None."""
    device = _handle(driver, ordinal)
    parts = []
    for attribute in _CAPABILITY:
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        parts.append(value.value)
    if tuple(parts) >= OLDEST:
        return None
    return _missing(
        f"{devices[ordinal]} has compute capability {parts[0]}.{parts[1]}; Kernelscope needs "
        f"{OLDEST[0]}.{OLDEST[1]} or newer.",
        _CARD,
        *(
            ("Choose another of this computer's GPUs with --gpu or KERNELSCOPE_GPU.",)
            if len(devices) > 1
            else ()
        ),
    )


def _software(
    driver: Any, ordinals: Sequence[int], devices: tuple[str, ...], compiler: Compiler | None
) -> Availability:
    try:
        if importlib.util.find_spec("pycuda") is None:
            return _missing("PyCUDA is not installed.", *_software_steps())
        importlib.import_module("pycuda.driver")
    except Exception as error:  # whatever a broken installation raises
        return _missing(
            f"PyCUDA is installed, but it cannot be loaded: {error}.",
            f"Rebuild it for this Python and this CUDA: `{pip_command(*_REBUILD)}`",
        )
    try:
        compiler = compiler or choose_compiler()
    except AppError as error:
        return _missing(error.message, *_compiler_steps())
    newest = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(newest))
    made_for = release(compiler)
    if newest.value // 1000 < int(made_for.partition(".")[0]):
        return _missing(
            f"The driver knows CUDA {newest.value // 1000}, but {compiler.name} makes kernels for "
            f"CUDA {made_for}.",
            *_driver_steps(),
        )
    names = " + ".join(devices[each] for each in ordinals)
    return Availability(True, names, devices=devices, chosen=len(ordinals))


def _handle(driver: Any, ordinal: int) -> ctypes.c_int:
    device = ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    return device


def _name(driver: Any, ordinal: int) -> str:
    text = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(text, len(text), _handle(driver, ordinal))
    return text.value.decode(errors="replace")


# Ways to solve it ---------------------------------------------------------------------

_CARD = "You need an NVIDIA GPU of the Turing generation (GeForce RTX 20, GTX 16) or newer."
_OTHER_COMPUTER = "Use a computer with Linux or Windows and an NVIDIA GPU."


def _missing(summary: str, *steps: str) -> Availability:
    return Availability(False, summary, steps)


def _system() -> str:
    """Return ``windows``, or the family of this Linux: ``ubuntu``, ``debian``, ``fedora``."""
    if sys.platform == "win32":
        return "windows"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    names = (release.get("ID", ""), *release.get("ID_LIKE", "").split())
    return next((name for name in names if name in _DRIVERS), "")


_DRIVERS = {
    "ubuntu": "`sudo ubuntu-drivers install`",
    "debian": "`sudo apt install nvidia-driver` (from the component non-free)",
    "fedora": "`sudo dnf install akmod-nvidia` (from RPM Fusion)",
    "windows": "from nvidia.com/drivers",
}
_TOOLKITS = {
    "ubuntu": "`sudo apt install g++ nvidia-cuda-toolkit`",
    "debian": "`sudo apt install g++ nvidia-cuda-toolkit` (from the component non-free)",
    "fedora": "`sudo dnf install gcc-c++ cuda-toolkit` (from NVIDIA's repository)",
    "windows": "Visual Studio's C++ tools, then developer.nvidia.com/cuda-downloads",
}


def _driver_steps() -> tuple[str, ...]:
    return (
        "Install NVIDIA's driver, version 580 or newer: "
        + _DRIVERS.get(_system(), "from your system's packages or nvidia.com/drivers"),
        "Restart the computer and check with: `nvidia-smi`",
    )


def _software_steps() -> tuple[str, ...]:
    """Return the commands for the software that is missing; none if all of it is there."""
    if importlib.util.find_spec("pycuda") is not None:
        return () if _has_compiler() else _compiler_steps()
    host = "cl" if sys.platform == "win32" else "g++"
    can_build = shutil.which("nvcc") is not None and shutil.which(host) is not None
    return (
        *(
            ()
            if can_build
            else (f"Install the CUDA toolkit, with which pip builds PyCUDA: {_toolkit()}",)
        ),
        f"Install PyCUDA and a CUDA compiler beside Kernelscope: `{install_command('cuda')}`",
    )


def _has_compiler() -> bool:
    try:
        choose_compiler()
    except AppError:
        return False
    return True


def _compiler_steps() -> tuple[str, ...]:
    return (
        f"Install NVRTC, which needs nothing else: `{install_command('cuda')}`",
        f"Or the CUDA toolkit with a C++ compiler: {_toolkit()}",
    )


def _toolkit() -> str:
    return _TOOLKITS.get(_system(), "from developer.nvidia.com/cuda-downloads")


def _unset(variable: str) -> str:
    return f"`set {variable}=`" if _system() == "windows" else f"`unset {variable}`"
