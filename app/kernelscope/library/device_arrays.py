"""Arrays in the memory of a GPU, by the protocols of other libraries.

CuPy, Numba and PyTorch describe such arrays by ``__cuda_array_interface__``, or by
``__dlpack_device__``. They are recognised before NumPy could copy them or fail in its own words.

They are refused; *Decisions* has the reason, and the way to filter them where they lie.
"""

from __future__ import annotations

from typing import Any

from kernelscope.errors import DeviceUnavailable, InvalidImage

_HOST = (1, 3)
"""Device types of DLPack that the processor can read: its memory, and that which CUDA pinned."""

_CUDA = (2, 13)
"""CUDA memory, and CUDA managed memory."""


def check_on_host(array: Any, name: str) -> None:
    """Refuse an array in the memory of another device.

    Parameters
    ----------
    name : str
        The argument, for messages.

    Raises
    ------
    DeviceUnavailable
        If it lies on a CUDA device.
    InvalidImage
        If it lies on a device of another kind.
    """
    device = _device(array)
    if device in _HOST:
        return
    if device in _CUDA:
        raise DeviceUnavailable(
            f"{name}: a CUDA array cannot be filtered where it lies.",
            f"Copy it to the host first: cupy.asnumpy({name}) of CuPy, {name}.cpu() of PyTorch.",
        )
    raise InvalidImage(
        f"{name}: the array lies on a device of another kind (DLPack type {device}).",
        "Copy it to the host first.",
    )


def _device(array: Any) -> int:
    """Return the type of the device that holds `array`, as DLPack numbers them."""
    if getattr(array, "__cuda_array_interface__", None) is not None:
        return _CUDA[0]
    device = getattr(array, "__dlpack_device__", None)
    return int(device()[0]) if callable(device) else _HOST[0]
