"""NVIDIA's NPP, on the GPU: a C library, called through ctypes on CuPy's arrays and stream."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelscope.base.errors import AppError
from kernelscope.bench.peers.library import (
    Library,
    Made,
    Parameters,
    cupy,
    laplace_mask,
    magnitudes,
    mask_and_divisor,
    saturate,
    stream,
    unchanged,
)
from kernelscope.filters.shared.correlation import binomial
from kernelscope.schema.borders import Border

_REPLICATE = 2  # the only border that all of NPP's filters support; the bench compares inside it

_MASK_3X3 = 200


class _Size(ctypes.Structure):
    _fields_ = (("width", ctypes.c_int), ("height", ctypes.c_int))


class _Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))


class _Context(ctypes.Structure):
    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("threads_per_multiprocessor", ctypes.c_int),
        ("threads_per_block", ctypes.c_int),
        ("shared_bytes_per_block", ctypes.c_size_t),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("stream_flags", ctypes.c_uint),
        ("reserved", ctypes.c_int),
    )


@functools.cache
def _part(part: str) -> Any:
    """Return one of NPP's shared libraries, or None if it is not installed."""
    if part != "c":
        _part("c")  # the others need it, but search fewer places for it
    name = f"npp{part}64_13.dll" if sys.platform == "win32" else f"libnpp{part}.so.13"
    for path in (name, f"/usr/local/cuda/lib64/{name}"):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


@functools.cache
def _context() -> _Context:
    attributes = cupy().cuda.Device().attributes
    capability = cupy().cuda.Device().compute_capability
    return _Context(
        stream=stream().ptr,
        device=cupy().cuda.Device().id,
        multiprocessors=attributes["MultiProcessorCount"],
        threads_per_multiprocessor=attributes["MaxThreadsPerMultiProcessor"],
        threads_per_block=attributes["MaxThreadsPerBlock"],
        shared_bytes_per_block=attributes["MaxSharedMemoryPerBlock"],
        major=int(capability[:-1]),
        minor=int(capability[-1]),
        stream_flags=1,  # non-blocking
    )


def _image(array: Any) -> tuple[ctypes.c_void_p, int]:
    """Return the two arguments that describe an image: address and pitch in bytes."""
    return ctypes.c_void_p(array.data.ptr), array.strides[0]


def _call(part: str, function: str, output: Any, *arguments: Any) -> Callable[[], Any]:
    compute = getattr(_part(part), f"{function}_Ctx")

    def call() -> Any:
        status = compute(*arguments, _context())
        if status < 0:
            raise AppError(f"NPP's {function} failed with status {status}.")
        return output

    return call


def _filter(function: str, source: Any, output: Any, *rest: Any) -> Callable[[], Any]:
    size = _Size(source.shape[1], source.shape[0])
    image = (*_image(source), size, _Point(0, 0), *_image(output), size)
    return _call("if", function, output, *image, *rest)


def _window(side: int) -> tuple[_Size, _Point]:
    return _Size(side, side), _Point(side // 2, side // 2)


def _correlate(source: Any, weights: Any, divisor: int) -> Callable[[], Any]:
    """NPP keeps the weights in GPU memory, in reverse order."""
    output = cupy().empty_like(source)
    on_card = cupy().asarray(np.ascontiguousarray(weights[::-1, ::-1], np.int32))
    call = _filter(
        "nppiFilterBorder_8u_C1R",
        source,
        output,
        ctypes.c_void_p(on_card.data.ptr),
        *_window(len(weights)),
        divisor,
        _REPLICATE,
    )
    return lambda: (on_card, call())[1]  # the weights live as long as the call


def _mean(source: Any, parameters: Parameters, border: Border) -> Made:
    window = _window(parameters["size"])
    output = cupy().empty_like(source)
    return (
        _filter("nppiFilterBoxBorder_8u_C1R", source, output, *window, _REPLICATE),
        unchanged,
    )


def _weighted_mean(source: Any, parameters: Parameters, border: Border) -> Made:
    row = binomial(parameters["size"])  # NPP's own Gaussians have other weights
    return _correlate(source, np.outer(row, row), int(row.sum()) ** 2), unchanged


def _median(source: Any, parameters: Parameters, border: Border) -> Made:
    size = _Size(source.shape[1], source.shape[0])
    window = _window(parameters["size"])
    scratch_size = ctypes.c_uint()
    _call(
        "if",
        "nppiFilterMedianBorderGetBufferSize_8u_C1R",
        None,
        size,
        window[0],
        ctypes.byref(scratch_size),
        _REPLICATE,
    )()
    scratch = cupy().empty(max(scratch_size.value, 1), np.uint8)
    output = cupy().empty_like(source)
    address = ctypes.c_void_p(scratch.data.ptr)
    name = "nppiFilterMedianBorder_8u_C1R"
    call = _filter(name, source, output, *window, address, _REPLICATE)
    return lambda: (scratch, call())[1], unchanged


def _mask(source: Any, parameters: Parameters, border: Border) -> Made | None:
    mask, divisor = mask_and_divisor(parameters)
    if parameters["negative"] != "clip" or mask.dtype.kind != "i":
        return None
    return _correlate(source, mask, int(divisor)), unchanged


def _laplace(source: Any, parameters: Parameters, border: Border) -> Made | None:
    if parameters["negative"] != "absolute" or parameters["form"] == "5x5":
        return None  # NPP 13.0.1 gives other sums: its filter for signed results fails at 5×5
    output = cupy().empty(source.shape, np.int16)
    if parameters["form"] == "8":
        name = "nppiFilterLaplaceBorder_8u16s_C1R"
        return _filter(name, source, output, _MASK_3X3, _REPLICATE), magnitudes
    weights = laplace_mask(parameters).astype(np.float32)
    on_card = cupy().asarray(weights)
    call = _filter(
        "nppiFilterBorder32f_8u16s_C1R",
        source,
        output,
        ctypes.c_void_p(on_card.data.ptr),
        *_window(len(weights)),
        _REPLICATE,
    )
    return lambda: (on_card, call())[1], magnitudes


def _sobel(source: Any, parameters: Parameters, border: Border) -> Made | None:
    norm = {"sum": 1, "magnitude": 2}.get(parameters["form"])
    if norm is None:
        return None
    size = _Size(source.shape[1], source.shape[0])
    output = cupy().empty(source.shape, np.int16)
    nothing = (ctypes.c_void_p(), 0)
    return (
        _call(
            "if",
            "nppiGradientVectorSobelBorder_8u16s_C1R",
            output,
            *_image(source),
            size,
            _Point(0, 0),
            *nothing,
            *nothing,
            *_image(output),
            *nothing,
            size,
            _MASK_3X3,
            norm,
            _REPLICATE,
        ),
        saturate,
    )


def _greyscale(source: Any, parameters: Parameters, border: Border) -> Made | None:
    if _part("icc") is None or parameters["rounding"] != "nearest":
        return None
    output = cupy().empty(source.shape[:2], np.uint8)
    size = _Size(source.shape[1], source.shape[0])
    image = (*_image(source), *_image(output), size)
    return _call("icc", "nppiRGBToGray_8u_C3C1R", output, *image), unchanged


def _obstacle() -> str:
    return "" if _part("if") is not None else "NPP is not installed."


def _version() -> str:
    core = _part("c")
    core.nppGetLibVersion.restype = ctypes.POINTER(ctypes.c_int * 3)
    return ".".join(str(number) for number in core.nppGetLibVersion().contents)


LIBRARIES = (
    Library(
        name="NPP",
        module="cupy",
        makers={
            "greyscale": _greyscale,
            "laplace": _laplace,
            "mask": _mask,
            "mean": _mean,
            "median": _median,
            "sobel": _sobel,
            "weighted_mean": _weighted_mean,
        },
        rank=4,
        on_card=True,
        inside_only=True,
        requirement="CuPy, through which NPP runs,",
        obstacle=_obstacle,
        version=_version,
    ),
)
