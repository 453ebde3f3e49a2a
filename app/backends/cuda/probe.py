"""Finds out whether CUDA can be used here, and if not, what is missing."""

from __future__ import annotations

import ctypes
import importlib.util
import sys

from app.engine.backend import Availability

_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def probe() -> Availability:
    """Look for the driver, a device and PyCUDA, in this order.

    Returns
    -------
    Availability
        Never available in this version: filters run on the CPU only, and the summary says
        so when everything else is in place.
    """
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return Availability(
            False,
            "No NVIDIA driver was found on this computer.",
            _DRIVER_STEPS + _PYCUDA_STEPS,
        )
    count = ctypes.c_int()
    if (
        driver.cuInit(0) != 0
        or driver.cuDeviceGetCount(ctypes.byref(count)) != 0
        or not count.value
    ):
        return Availability(
            False,
            "The NVIDIA driver is installed, but it finds no supported GPU.",
            ("Run `nvidia-smi` to see what the driver finds.", *_PYCUDA_STEPS),
        )
    if importlib.util.find_spec("pycuda") is None:
        return Availability(False, "PyCUDA is not installed.", _PYCUDA_STEPS)
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(name, len(name), 0)
    return Availability(True, name.value.decode(errors="replace"))


_DRIVER_STEPS = (
    "You need an NVIDIA GPU of the Turing generation (GeForce RTX 20, GTX 16) or newer.",
    "Install NVIDIA's driver, version 580 or newer. On Debian or Ubuntu: "
    "`sudo apt install nvidia-driver`. On Windows: nvidia.com/drivers.",
    "Restart the computer and check with: `nvidia-smi`",
)
_PYCUDA_STEPS = ("Install PyCUDA beside Kernelscope: `pip install 'kernelscope[cuda]'`",)
