"""From arrays to the sources of the engine, and from its results to arrays.

Samples keep their type. Floats of 16 and 64 bits are filtered as 32-bit floats, as they are from
files. A result is a new array that the caller may write to.

Arrays in the memory of a GPU come by the protocols of other libraries. Those of CuPy and PyTorch
are taken as they are. Others offer ``__cuda_array_interface__``, as Numba's do, or DLPack: CuPy or
PyTorch, whichever is there, wraps them without a copy. They are recognised before NumPy could copy
them or fail in its own words.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelscope.base.errors import DeviceUnavailable, InvalidImage
from kernelscope.images.image import Image, as_single
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume

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
    if isinstance(values, np.ndarray):
        return None
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


_logger = logging.getLogger(__name__)

_KINDS = "biuf"  # booleans, integers and floats

MOST_CHANNELS = 4
"""Of a last axis that nobody declared and that is no side of a picture."""

_PLAIN_MODES = ("L", "LA", "RGB", "RGBA", "I", "I;16", "I;16L", "I;16B", "I;16N", "F")
"""Modes of Pillow images whose numbers are those to filter."""

_GREY_MODES = {"1": "L", "La": "LA"}


def host_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array-like object as a NumPy array, without a copy where possible.

    One that lies on a GPU is copied from there. `name`: the argument, for messages.
    """
    if type(values) is np.ndarray and values.dtype.kind in _KINDS:
        return values
    there = device_array(values, name)
    if there is not None:
        from kernelscope.library.on_device import fetched

        values = fetched(there)
    values = _without_palette(values, name)
    if np.ma.is_masked(values):
        raise InvalidImage(
            f"{name}: some elements of the array are masked.",
            f"Replace them: {name}.filled(0).",
        )
    try:
        array = _converted(values)
    except (TypeError, ValueError) as error:  # a table, or rows of different lengths
        raise InvalidImage(f"{name}: this is no array ({error}).") from error
    if array.dtype.kind not in _KINDS:
        raise InvalidImage(
            f"{name}: {_kind_of(values)} does not hold real numbers.",
            "Give an array of integers, booleans or floats.",
        )
    return array


def _kind_of(values: Any) -> str:
    if isinstance(values, np.ndarray):
        return f"an array of type {values.dtype}"
    return f"an object of type {type(values).__name__}"


def _without_palette(values: Any, name: str) -> Any:
    """Return a Pillow image whose numbers are no intensities as one whose numbers are.

    Those of a palette are indices, those of CMYK inks. They are converted as from files, and the
    log has it, as it has all notices of the library.
    """
    mode, convert = getattr(values, "mode", None), getattr(values, "convert", None)
    if not isinstance(mode, str) or convert is None or not hasattr(values, "getbands"):
        return values
    if mode in _PLAIN_MODES:
        return values
    transparent = getattr(values, "has_transparency_data", mode in ("PA", "RGBa"))
    wanted = _GREY_MODES.get(mode, "RGBA" if transparent else "RGB")
    try:
        converted = convert(wanted)
    except ValueError as error:
        raise InvalidImage(
            f"{name}: Pillow does not convert an image of mode {mode} to {wanted} ({error}).",
            "Give an image of grey levels or of RGB.",
        ) from error
    from kernelscope.files import formats  # with all readers

    notices = {
        "P": formats.PALETTE.format(wanted),
        "CMYK": formats.CMYK,
        "1": formats.ONE_BIT,
    }
    notice = notices.get(mode, f"{mode} converted to {wanted}.")
    _logger.info("%s: %s", name, notice)
    return converted


def declares_alpha(values: Any) -> bool:
    """Return whether this is a Pillow image whose last channel is alpha."""
    if not isinstance(getattr(values, "mode", None), str) or not hasattr(values, "getbands"):
        return False
    mode = values.mode
    return mode in ("LA", "RGBA", "PA", "RGBa", "La") or (
        mode not in _PLAIN_MODES and bool(getattr(values, "has_transparency_data", False))
    )


def _converted(values: Any) -> NDArray[Any]:
    """Return the array of an object, by DLPack if that is all that it offers."""
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def is_picture(shape: Sequence[int]) -> bool:
    """Return whether an array of this shape is read as a picture: grey, or with channels last."""
    return len(shape) == 2 or (len(shape) == 3 and shape[2] <= MOST_CHANNELS)


def as_slice(array: NDArray[Any]) -> NDArray[Any] | None:
    """Return a grey picture as the slice of a volume, if its type is one of volumes only.

    These are booleans, signed integers and those of 32 and 64 bits, such as labels.
    """
    wide = array.dtype.kind == "u" and array.dtype.itemsize > 2
    if not (wide or array.dtype.kind in "bi") or not (array.ndim == 2 or array.shape[2:] == (1,)):
        return None
    return array.reshape(1, *array.shape[:2])


def picture(values: ArrayLike, name: str, nan: float | None = None) -> Image:
    """Return an array as a picture.

    `values` (shape (height, width) or (height, width, channels)): uint8, uint16 or floats; up to 4
    channels. `nan` replaces NaN; the result has NaN there again.
    """
    array = host_array(values, name)
    if array.ndim == 3 and not is_picture(array.shape):
        raise InvalidImage(
            f"{name}: an array of shape {array.shape} is not a picture.",
            "Use up to 4 channels. For the slices of a volume, choose an axis: axis='z'.",
        )
    if array.dtype.kind not in "uf" or array.dtype.itemsize > (8 if array.dtype.kind == "f" else 2):
        raise InvalidImage(
            f"{name}: samples of type {array.dtype} cannot be filtered.",
            f"Convert them to floats: {name}.astype('float32').",
        )
    if array.dtype.kind == "f" and array.dtype.itemsize != 4:
        array, small = as_single(array, name, "samples")
        for each in small:
            _logger.warning("%s: %s", name, each)
    return Image.from_array(array, name, nan=nan)


def scan(values: Sequence[tuple[str, ArrayLike]], nan: float | None = None) -> Scan:
    """Return arrays of shape (depth, height, width), each with its name, as volumes of a scan."""
    volumes = []
    for name, each in values:
        array = host_array(each, name)
        if array.dtype == np.float64:
            _logger.info("%s: 64-bit floats of volumes are filtered in 32 bits.", name)
        volumes.append(Volume.from_array(array, name, nan=nan))
    return Scan(tuple(volumes))


def of_picture(image: Image, channels_last: bool = False) -> NDArray[Any]:
    """Return the samples of a result, with NaN where the source had it.

    `channels_last`: give grey an axis of one channel.
    """
    pixels = _own(image.pixels)
    if image.missing is not None and pixels.dtype.kind == "f":
        pixels[image.missing] = np.nan
    return pixels[:, :, np.newaxis] if channels_last and pixels.ndim == 2 else pixels


def of_scan(scan: Scan) -> tuple[NDArray[Any], ...]:
    """Return the voxels of each volume of a result in the type that its source had."""
    return tuple(
        _own(volume.restored(volume.voxels.astype(bool) if volume.is_boolean else volume.unscaled))
        for volume in scan.volumes
    )


def _own(array: NDArray[Any]) -> NDArray[Any]:
    """Return a result as an array to write to; a copy only if its memory cannot be released.

    That of results of a GPU is page-locked and theirs alone while they live.
    """
    owner = array if array.base is None else array.base
    if not isinstance(owner, np.ndarray):
        return array.copy()
    if not owner.flags.owndata:
        from kernelscope.backends.cuda.page_locked import is_page_locked

        if not is_page_locked(owner):
            return array.copy()
    if not owner.flags.writeable:  # NumPy refuses to set it again on page-locked memory
        owner.flags.writeable = True
    view = array.view()
    view.flags.writeable = True
    return view
