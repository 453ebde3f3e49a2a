"""Arrays in the memory of a GPU, by the protocols of other libraries.

Those of CuPy and PyTorch are taken as they are. Others offer ``__cuda_array_interface__``, as
Numba's do, or DLPack: CuPy or PyTorch, whichever is there, wraps them without a copy. They are
recognised before NumPy could copy them or fail in its own words.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.base.errors import DeviceUnavailable, InvalidImage

_HOST = (1, 3)
"""Device types of DLPack that the processor can read: its memory, and that which CUDA pinned."""

_CUDA = (2, 13)  # CUDA memory, and CUDA managed memory

_ALIGNED = 256
"""Kernels read several samples at a time: memory begins at a multiple of this, as CUDA gives it."""


@dataclass(frozen=True)
class DeviceArray:
    """A C-contiguous array on a GPU.

    `owner`: the array of the other library, which holds the memory. `ordinal`: number of the GPU.
    `empty` returns a new array of that library, on the same GPU, for a shape and a type.
    """

    owner: Any
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ordinal: int
    empty: Callable[[tuple[int, ...], np.dtype[Any]], DeviceArray]


def device_array(values: Any, name: str) -> DeviceArray | None:
    """Return an array that lies on a GPU; None if the processor can read it.

    `name`: the argument, for messages.
    """
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(values, torch.Tensor):
        return _of_torch(torch, values, name) if values.is_cuda else None
    if cupy is not None and isinstance(values, cupy.ndarray):
        return _of_cupy(cupy, values)
    interface = getattr(values, "__cuda_array_interface__", None) is not None
    device = _CUDA[0] if interface else _device(values)
    if device in _HOST:
        return None
    if device not in _CUDA:
        raise InvalidImage(
            f"{name}: the array lies on a device of another kind (DLPack type {device}).",
            "Copy it to the host first.",
        )
    return _wrapped(values, name, interface=interface)


def _device(values: Any) -> int:
    """Return the type of the device that holds an array, as DLPack numbers them."""
    device = getattr(values, "__dlpack_device__", None)
    return int(device()[0]) if callable(device) else _HOST[0]


def _wrapped(values: Any, name: str, *, interface: bool) -> DeviceArray:
    """Return the array of CuPy or PyTorch over the same memory."""
    if cupy := _library("cupy"):
        return _of_cupy(cupy, (cupy.asarray if interface else cupy.from_dlpack)(values))
    if torch := _library("torch"):
        tensor = torch.as_tensor(values, device="cuda") if interface else torch.from_dlpack(values)
        return _of_torch(torch, tensor, name)
    raise DeviceUnavailable(
        f"{name}: this CUDA array can only be filtered where CuPy or PyTorch is installed.",
        "Install one of them, or copy the array to the host first.",
    )


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _of_cupy(cupy: Any, array: Any) -> DeviceArray:
    whole = cupy.ascontiguousarray(array)
    if whole.data.ptr % _ALIGNED:
        whole = whole.copy()
    ordinal = int(whole.device.id)

    def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        with cupy.cuda.Device(ordinal):
            return _of_cupy(cupy, cupy.empty(shape, dtype))

    return DeviceArray(whole, int(whole.data.ptr), whole.shape, whole.dtype, ordinal, empty)


def check_tensor(torch: Any, tensor: Any, name: str) -> None:
    """Refuse a tensor of PyTorch that no filter takes."""
    if tensor.requires_grad:
        raise InvalidImage(
            f"{name}: the tensor records gradients, and filters have none.",
            f"Give {name}.detach().",
        )
    if tensor.dtype.is_complex or tensor.dtype == torch.bfloat16:
        raise InvalidImage(
            f"{name}: samples of type {tensor.dtype} cannot be filtered.",
            f"Convert them: {name}.float().",
        )


def _of_torch(torch: Any, tensor: Any, name: str) -> DeviceArray:
    check_tensor(torch, tensor, name)
    whole = tensor.contiguous()
    if whole.data_ptr() % _ALIGNED:
        whole = whole.clone()
    device = whole.device

    def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        kind = getattr(torch, "bool" if dtype == np.bool_ else dtype.name)
        return _of_torch(torch, torch.empty(shape, dtype=kind, device=device), name)

    dtype = np.dtype(str(whole.dtype).removeprefix("torch."))
    return DeviceArray(
        whole, int(whole.data_ptr()), tuple(whole.shape), dtype, int(device.index), empty
    )
