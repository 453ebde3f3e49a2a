"""The GPU libraries that the bench compares with: NVIDIA's NPP and CuPy.

Both run through CuPy's memory and streams, NPP by way of ctypes. A counterpart computes what
the filter does on the same pixels; where a library's borders or rounding differ, the bench
says by how much. This module is data and glue for the bench; nothing else uses it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.bench_subjects import LAPLACE_MASKS
from app.errors import AppError
from app.filters.spec import Border, Pixels
from app.paths import KERNELS

Parameters = Mapping[str, Any]

_BATCH = 5
"""Calls between two events."""

_HOLD_SECONDS = 2e-3
"""How long the card is kept busy first, so that the host's way to a call is not timed."""


@dataclass(frozen=True)
class Counterpart:
    """A library's call, ready to be repeated on its data.

    Attributes
    ----------
    library : str
    call : callable
        Queues the work on the current CuPy stream and returns the result on the card.
    finish : callable
        Turns the result, copied to the host, into what the filter gives.
    """

    library: str
    call: Callable[[], Any]
    finish: Callable[[Any], Pixels]

    def result(self) -> Pixels:
        """Return what the library computes, as the filter's type."""
        with _stream():
            return self.finish(self.call().get())

    def seconds(self, repeat: int) -> tuple[float, ...]:
        """Return the time of a call on the card, by events, `repeat` times."""
        cupy = _cupy()
        times = []
        with _stream() as stream:
            self.call()
            for _ in range(repeat):
                begin, end = cupy.cuda.Event(), cupy.cuda.Event()
                _hold()
                begin.record(stream)
                for _ in range(_BATCH):
                    self.call()
                end.record(stream)
                end.synchronize()
                times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3 / _BATCH)
        return tuple(times)


def counterparts(
    filter_id: str, pixels: Pixels, parameters: Parameters, border: Border
) -> Iterator[Counterpart]:
    """Yield what the libraries have for a filter of 8-bit `pixels`.

    Raises
    ------
    AppError
        If CuPy is not installed.
    """
    cupy = _cupy()
    with _stream():
        source = cupy.asarray(pixels)
        for library, table in (("NPP", _NPP), ("CuPy", _CUPY)):
            make = table.get(filter_id)
            if make is None or (library == "NPP" and _npp("if") is None):
                continue
            made = make(source, parameters, border)
            if made is not None:
                yield Counterpart(library, *made)


def versions() -> dict[str, str]:
    """Return the libraries' versions."""
    found = {"CuPy": str(_cupy().__version__)}
    core = _npp("c")
    if core is not None:
        core.nppGetLibVersion.restype = ctypes.POINTER(ctypes.c_int * 3)
        found["NPP"] = ".".join(str(number) for number in core.nppGetLibVersion().contents)
    return found


@functools.cache
def _cupy() -> Any:
    if importlib.util.find_spec("cupy") is None:
        raise AppError(
            "The GPU libraries to compare with need CuPy, which is not installed.",
            "Install it with: pip install cupy-cuda13x",
        )
    return importlib.import_module("cupy")


@functools.cache
def _stream() -> Any:
    return _cupy().cuda.Stream(non_blocking=True)


@functools.cache
def _holder() -> Any:
    source = (KERNELS / "hold.cu").read_text(encoding="utf-8")
    return _cupy().RawModule(code=source).get_function("hold")


def _hold() -> None:
    kilohertz = _cupy().cuda.Device().attributes["ClockRate"]
    _holder()((1,), (1,), (np.int64(_HOLD_SECONDS * kilohertz * 1e3),))


def _binomial(side: int) -> Any:
    return np.array([math.comb(side - 1, k) for k in range(side)])


def _to_bytes(values: Any) -> Pixels:
    """Saturate signed sums."""
    return np.asarray(np.clip(values, 0, 255).astype(np.uint8))


def _magnitudes(values: Any) -> Pixels:
    return _to_bytes(np.abs(values.astype(np.int32)))


def _same(values: Any) -> Pixels:
    return np.asarray(values)


_Made = tuple[Callable[[], Any], Callable[[Any], Pixels]]
_Maker = Callable[[Any, Parameters, Border], _Made | None]


# CuPy ---------------------------------------------------------------------------------


def _ndimage() -> Any:
    return importlib.import_module("cupyx.scipy.ndimage")


def _cupy_mean(source: Any, parameters: Parameters, border: Border) -> _Made:
    output, size, mode = _cupy().empty_like(source), parameters["size"], str(border)
    return lambda: _ndimage().uniform_filter(source, size, output=output, mode=mode), _same


def _cupy_weighted_mean(source: Any, parameters: Parameters, border: Border) -> _Made:
    row = _binomial(parameters["size"])
    weights = _cupy().asarray(row / row.sum())
    between = _cupy().empty(source.shape, np.float32)
    output = _cupy().empty(source.shape, np.float32)

    def call() -> Any:
        correlate = _ndimage().correlate1d
        correlate(source, weights, axis=0, output=between, mode=str(border))
        return correlate(between, weights, axis=1, output=output, mode=str(border))

    return call, lambda values: _to_bytes(np.rint(values))


def _cupy_median(source: Any, parameters: Parameters, border: Border) -> _Made:
    output, size, mode = _cupy().empty_like(source), parameters["size"], str(border)
    return lambda: _ndimage().median_filter(source, size, output=output, mode=mode), _same


def _cupy_mask(source: Any, parameters: Parameters, border: Border) -> _Made:
    return _cupy_correlate(source, np.array(parameters["mask"]), border, np.int32), _to_bytes


def _cupy_laplace(source: Any, parameters: Parameters, border: Border) -> _Made:
    weights = np.array(LAPLACE_MASKS[parameters["form"]])
    return _cupy_correlate(source, weights, border, np.int16), _magnitudes


def _cupy_correlate(source: Any, weights: Any, border: Border, dtype: Any) -> Callable[[], Any]:
    on_card = _cupy().asarray(weights)
    output = _cupy().empty(source.shape, dtype)
    return lambda: _ndimage().correlate(source, on_card, output=output, mode=str(border))


def _cupy_sobel(source: Any, parameters: Parameters, border: Border) -> _Made | None:
    cupy, form, mode = _cupy(), parameters["form"], str(border)
    if form == "directions":
        return None
    across, down = (cupy.empty(source.shape, np.int16) for _ in range(2))

    def call() -> Any:
        _ndimage().sobel(source, axis=1, output=across, mode=mode)
        _ndimage().sobel(source, axis=0, output=down, mode=mode)
        if form == "sum":
            return cupy.abs(across) + cupy.abs(down)
        return cupy.hypot(across.astype(np.float32), down.astype(np.float32))

    return call, lambda values: _to_bytes(np.rint(values))


_CUPY: dict[str, _Maker] = {
    "laplace": _cupy_laplace,
    "mask": _cupy_mask,
    "mean": _cupy_mean,
    "median": _cupy_median,
    "sobel": _cupy_sobel,
    "weighted_mean": _cupy_weighted_mean,
}


# NPP ----------------------------------------------------------------------------------

_REPLICATE = 2
"""The only border that all of NPP's filters have; the bench compares inside of it."""

_MASK_3X3 = 200


class _Size(ctypes.Structure):
    _fields_ = (("width", ctypes.c_int), ("height", ctypes.c_int))


class _Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))


class _Context(ctypes.Structure):
    """NppStreamContext."""

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
def _npp(part: str) -> Any:
    """Return one of NPP's libraries, or None."""
    if part != "c":
        _npp("c")  # which the others need, but look for in fewer places
    name = f"npp{part}64_13.dll" if sys.platform == "win32" else f"libnpp{part}.so.13"
    for path in (name, f"/usr/local/cuda/lib64/{name}"):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


@functools.cache
def _context() -> _Context:
    attributes = _cupy().cuda.Device().attributes
    capability = _cupy().cuda.Device().compute_capability
    return _Context(
        stream=_stream().ptr,
        device=_cupy().cuda.Device().id,
        multiprocessors=attributes["MultiProcessorCount"],
        threads_per_multiprocessor=attributes["MaxThreadsPerMultiProcessor"],
        threads_per_block=attributes["MaxThreadsPerBlock"],
        shared_bytes_per_block=attributes["MaxSharedMemoryPerBlock"],
        major=int(capability[:-1]),
        minor=int(capability[-1]),
        stream_flags=1,  # non-blocking
    )


def _image(array: Any) -> tuple[ctypes.c_void_p, int]:
    """Return an image as NPP takes it: address, bytes of a row."""
    return ctypes.c_void_p(array.data.ptr), array.strides[0]


def _npp_call(part: str, function: str, output: Any, *arguments: Any) -> Callable[[], Any]:
    """Return a call of an NPP function that gives `output`."""
    compute = getattr(_npp(part), f"{function}_Ctx")

    def call() -> Any:
        status = compute(*arguments, _context())
        if status < 0:
            raise AppError(f"NPP's {function} failed with status {status}.")
        return output

    return call


def _npp_filter(function: str, source: Any, output: Any, *rest: Any) -> Callable[[], Any]:
    """Return a call of one of the filters that have borders."""
    size = _Size(source.shape[1], source.shape[0])
    image = (*_image(source), size, _Point(0, 0), *_image(output), size)
    return _npp_call("if", function, output, *image, *rest)


def _window(side: int) -> tuple[_Size, _Point]:
    return _Size(side, side), _Point(side // 2, side // 2)


def _npp_correlate(source: Any, weights: Any, divisor: int) -> Callable[[], Any]:
    """NPP keeps the weights on the card, in reverse order."""
    output = _cupy().empty_like(source)
    on_card = _cupy().asarray(np.ascontiguousarray(weights[::-1, ::-1], np.int32))
    call = _npp_filter(
        "nppiFilterBorder_8u_C1R",
        source,
        output,
        ctypes.c_void_p(on_card.data.ptr),
        *_window(len(weights)),
        divisor,
        _REPLICATE,
    )
    return lambda: (on_card, call())[1]  # the weights live as long as the call


def _npp_mean(source: Any, parameters: Parameters, border: Border) -> _Made:
    window = _window(parameters["size"])
    output = _cupy().empty_like(source)
    return (
        _npp_filter("nppiFilterBoxBorder_8u_C1R", source, output, *window, _REPLICATE),
        _same,
    )


def _npp_weighted_mean(source: Any, parameters: Parameters, border: Border) -> _Made:
    row = _binomial(parameters["size"])  # its own Gaussians have other weights
    return _npp_correlate(source, np.outer(row, row), int(row.sum()) ** 2), _same


def _npp_median(source: Any, parameters: Parameters, border: Border) -> _Made:
    size = _Size(source.shape[1], source.shape[0])
    window = _window(parameters["size"])
    scratch_size = ctypes.c_uint()
    _npp_call(
        "if",
        "nppiFilterMedianBorderGetBufferSize_8u_C1R",
        None,
        size,
        window[0],
        ctypes.byref(scratch_size),
        _REPLICATE,
    )()
    scratch = _cupy().empty(max(scratch_size.value, 1), np.uint8)
    output = _cupy().empty_like(source)
    address = ctypes.c_void_p(scratch.data.ptr)
    name = "nppiFilterMedianBorder_8u_C1R"
    call = _npp_filter(name, source, output, *window, address, _REPLICATE)
    return lambda: (scratch, call())[1], _same


def _npp_mask(source: Any, parameters: Parameters, border: Border) -> _Made:
    return _npp_correlate(source, np.array(parameters["mask"]), 1), _same


def _npp_laplace(source: Any, parameters: Parameters, border: Border) -> _Made | None:
    if parameters["form"] == "5x5":
        return None  # NPP 13.0.1 gives other sums: its filter for signed results fails at 5×5
    output = _cupy().empty(source.shape, np.int16)
    if parameters["form"] == "8":
        name = "nppiFilterLaplaceBorder_8u16s_C1R"
        return _npp_filter(name, source, output, _MASK_3X3, _REPLICATE), _magnitudes
    weights = np.array(LAPLACE_MASKS[parameters["form"]], np.float32)
    on_card = _cupy().asarray(weights)
    call = _npp_filter(
        "nppiFilterBorder32f_8u16s_C1R",
        source,
        output,
        ctypes.c_void_p(on_card.data.ptr),
        *_window(len(weights)),
        _REPLICATE,
    )
    return lambda: (on_card, call())[1], _magnitudes


def _npp_sobel(source: Any, parameters: Parameters, border: Border) -> _Made | None:
    norm = {"sum": 1, "magnitude": 2}.get(parameters["form"])
    if norm is None:
        return None
    size = _Size(source.shape[1], source.shape[0])
    output = _cupy().empty(source.shape, np.int16)
    nothing = (ctypes.c_void_p(), 0)
    return (
        _npp_call(
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
        _to_bytes,
    )


def _npp_greyscale(source: Any, parameters: Parameters, border: Border) -> _Made | None:
    if _npp("icc") is None:
        return None
    output = _cupy().empty(source.shape[:2], np.uint8)
    size = _Size(source.shape[1], source.shape[0])
    image = (*_image(source), *_image(output), size)
    return _npp_call("icc", "nppiRGBToGray_8u_C3C1R", output, *image), _same


_NPP: dict[str, _Maker] = {
    "greyscale": _npp_greyscale,
    "laplace": _npp_laplace,
    "mask": _npp_mask,
    "mean": _npp_mean,
    "median": _npp_median,
    "sobel": _npp_sobel,
    "weighted_mean": _npp_weighted_mean,
}
