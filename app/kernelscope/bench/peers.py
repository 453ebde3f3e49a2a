"""The libraries that the bench compares with, where they are installed.

OpenCV, SciPy, scikit-image and plain loops in C on the CPU; CuPy and NVIDIA's NPP on the GPU,
both of which run through CuPy's memory and streams, NPP by way of ctypes. A counterpart computes
what the filter does on the same pixels; where a library's borders or rounding differ, the bench
says by how much. This module is data and glue for the bench; nothing else uses it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.bench import plain
from kernelscope.errors import AppError
from kernelscope.paths import KERNELS
from kernelscope.spec.filter import Border, Pixels

Parameters = Mapping[str, Any]

_MODULES = {
    "OpenCV": "cv2",
    "SciPy": "scipy",
    "scikit-image": "skimage",
    "CuPy": "cupy",
    "NPP": "cupy",
}

_HOLD_SECONDS = 2e-3
"""How long the card is kept busy first, so that the host's way to a call is not timed."""

_SPARE_BYTES = 512 * 2**20
"""What is rewritten to empty the card's cache: more than any has."""


@dataclass(frozen=True)
class Counterpart:
    """A library's call, ready to be repeated on its data.

    Attributes
    ----------
    library : str
    call : callable
        Does the work and returns the result; on a GPU queues it on the current CuPy stream.
    finish : callable
        Turns the result, on the host, into what the filter gives.
    """

    library: str
    call: Callable[[], Any]
    finish: Callable[[Any], Pixels]

    @property
    def on_card(self) -> bool:
        return self.library in _ON_CARD

    def result(self) -> Pixels:
        """Return what the library computes, as the filter's type."""
        if not self.on_card:
            return self.finish(self.call())
        with _stream():
            return self.finish(self.call().get())

    def seconds(self, cold: bool) -> float:
        """Return the time of a call: on a GPU by events, on an emptied cache if `cold`."""
        if not self.on_card:
            start = time.perf_counter()
            self.call()
            return time.perf_counter() - start
        cupy = _cupy()
        with _stream() as stream:
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            if cold:
                _spare().fill(0)
            else:
                self.call()
            _hold()
            begin.record(stream)
            self.call()
            end.record(stream)
            end.synchronize()
            return float(cupy.cuda.get_elapsed_time(begin, end)) * 1e-3


def libraries(device: str, filter_id: str) -> tuple[str, ...]:
    """Return the libraries that have something like a filter, installed or not."""
    tables = _ON_CARD if device == "gpu" else _ON_HOST
    return tuple(library for library, table in tables.items() if filter_id in table)


def names() -> tuple[str, ...]:
    """Return every library that is known, installed or not."""
    return tuple(dict.fromkeys((*_ON_HOST, *_ON_CARD)))


def missing(library: str) -> str:
    """Return why a library cannot be used here; empty if it can."""
    if library == plain.NAME:
        return "" if plain.compiler() else "No C compiler (cc, gcc or clang) is installed."
    if importlib.util.find_spec(_MODULES[library]) is None:
        needs = "CuPy, through which NPP runs," if library == "NPP" else library
        return f"{needs} is not installed."
    if library == "NPP" and _npp("if") is None:
        return "NPP is not installed."
    return ""


def counterpart(
    library: str, filter_id: str, pixels: Pixels, parameters: Parameters, border: Border
) -> Counterpart | None:
    """Return what an installed library has for a filter of `pixels`.

    None if it has nothing that computes the same with these parameters and this border, or
    of such pixels: only 8-bit pictures are compared, grey ones unless the filter is greyscale.
    """
    channels = 3 if filter_id == "greyscale" else 1
    if pixels.dtype != np.uint8 or pixels.shape[2:] != ((channels,) if channels > 1 else ()):
        return None
    if library in _ON_HOST:
        made = _ON_HOST[library][filter_id](pixels, parameters, border)
    else:
        with _stream():
            source = _cupy().asarray(pixels)
            made = _ON_CARD[library][filter_id](source, parameters, border)
    return None if made is None else Counterpart(library, *made)


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed."""
    found = {
        library: str(importlib.import_module(module).__version__)
        for library, module in _MODULES.items()
        if library != "NPP" and not missing(library)
    }
    if not missing(plain.NAME):
        found[plain.NAME] = plain.version()
    if not missing("NPP"):
        core = _npp("c")
        core.nppGetLibVersion.restype = ctypes.POINTER(ctypes.c_int * 3)
        found["NPP"] = ".".join(str(number) for number in core.nppGetLibVersion().contents)
    return found


_Made = tuple[Callable[[], Any], Callable[[Any], Pixels]]
_Maker = Callable[[Any, Parameters, Border], _Made | None]


def _binomial(side: int) -> Any:
    return np.array([math.comb(side - 1, k) for k in range(side)])


def _mask(parameters: Parameters) -> tuple[Any, int]:
    """Return the weights, whole ones as integers, and what their sum is divided by."""
    mask = np.array(parameters["mask"])
    divisor = {"one": 1, "count": mask.size, "sum": mask.sum()}[parameters["divisor"]]
    return mask, divisor or 1


def _to_bytes(values: Any) -> Pixels:
    """Saturate signed sums."""
    return np.asarray(np.clip(values, 0, 255).astype(np.uint8))


def _round_to_bytes(values: Any) -> Pixels:
    return _to_bytes(np.rint(values))


def _magnitudes(values: Any) -> Pixels:
    return _to_bytes(np.abs(values.astype(np.int32)))


def _same(values: Any) -> Pixels:
    return np.asarray(values)


_LAPLACE_MASKS = {
    "4": [[0.0, 1, 0], [1, -4, 1], [0, 1, 0]],
    "8": [[1.0, 1, 1], [1, -8, 1], [1, 1, 1]],
    "5x5": [
        [0.0, 0, 1, 0, 0],
        [0, 1, 2, 1, 0],
        [1, 2, -16, 2, 1],
        [0, 1, 2, 1, 0],
        [0, 0, 1, 0, 0],
    ],
}

_SOBEL_DIRECTIONS = (
    [[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]],
    [[-1.0, -2, -1], [0, 0, 0], [1, 2, 1]],
    [[0.0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
    [[-2.0, -1, 0], [-1, 0, 1], [0, 1, 2]],
)
"""Four of the eight masks; the others are these with the sign reversed."""


# OpenCV ------------------------------------------------------------------------------


def _cv() -> Any:
    return importlib.import_module("cv2")


def _with_border(make: Callable[[Any, Parameters, int], _Made | None]) -> _Maker:
    """Pass on OpenCV's number of the border; OpenCV's filters lack some of ours."""

    def with_code(pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
        names = {
            Border.REFLECT: "BORDER_REFLECT",
            Border.MIRROR: "BORDER_REFLECT_101",
            Border.NEAREST: "BORDER_REPLICATE",
            Border.CONSTANT: "BORDER_CONSTANT",
        }
        if border not in names:
            return None
        return make(pixels, parameters, getattr(_cv(), names[border]))

    return with_code


def _cv_mean(pixels: Any, parameters: Parameters, border: int) -> _Made:
    side = parameters["size"]
    return lambda: _cv().blur(pixels, (side, side), borderType=border), _same


def _cv_weighted_mean(pixels: Any, parameters: Parameters, border: int) -> _Made:
    row = _binomial(parameters["size"]) / 2.0 ** (parameters["size"] - 1)
    return lambda: _cv().sepFilter2D(pixels, -1, row, row, borderType=border), _same


def _cv_mask(pixels: Any, parameters: Parameters, border: int) -> _Made | None:
    if parameters["negative"] != "clip":
        return None
    mask, divisor = _mask(parameters)
    scaled = (mask / divisor).astype(np.float32)
    return lambda: _cv().filter2D(pixels, -1, scaled, borderType=border), _same


def _cv_median(pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
    if border is not Border.NEAREST:
        return None
    return lambda: _cv().medianBlur(pixels, parameters["size"]), _same


def _cv_laplace(pixels: Any, parameters: Parameters, border: int) -> _Made | None:
    """The two steps that OpenCV's manual shows: signed sums, then their absolute values."""
    if parameters["negative"] != "absolute":
        return None
    cv, mask = _cv(), np.array(_LAPLACE_MASKS[parameters["form"]])

    def call() -> Any:
        if parameters["form"] == "4":
            sums = cv.Laplacian(pixels, cv.CV_16S, ksize=1, borderType=border)
        else:
            sums = cv.filter2D(pixels, cv.CV_16S, mask, borderType=border)
        return cv.convertScaleAbs(sums)

    return call, _same


def _cv_sobel(pixels: Any, parameters: Parameters, border: int) -> _Made | None:
    cv = _cv()

    def derivatives(depth: int) -> Any:
        return (cv.Sobel(pixels, depth, dx, 1 - dx, borderType=border) for dx in (1, 0))

    def magnitude() -> Any:
        return cv.convertScaleAbs(cv.magnitude(*derivatives(cv.CV_32F)))

    def total() -> Any:
        return cv.add(*map(cv.convertScaleAbs, derivatives(cv.CV_16S)))

    def directions() -> Any:
        sums = (
            cv.filter2D(pixels, cv.CV_16S, np.array(mask), borderType=border)
            for mask in _SOBEL_DIRECTIONS
        )
        return functools.reduce(cv.max, map(cv.convertScaleAbs, sums))

    forms = {"magnitude": magnitude, "sum": total, "directions": directions}
    call = forms.get(parameters["form"])
    return None if call is None else (call, _same)


def _cv_greyscale(pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
    if parameters["rounding"] != "nearest":
        return None
    return lambda: _cv().cvtColor(pixels, _cv().COLOR_RGB2GRAY), _same


def _mean_distance(parameters: Parameters, border: Border) -> float | None:
    """Return the root of the mean squared difference at which a weight falls to 1 / e.

    Of patches of non-local means that OpenCV and scikit-image have too: uniform, in a window,
    and on a mirrored border; None of any other.
    """
    alike = parameters["weights"] == "uniform" and parameters["search"] == "window"
    if not alike or border is not Border.MIRROR:
        return None
    return float(math.sqrt(parameters["filter_sigma"]) / parameters["patch"])


def _cv_nlm(pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
    distance = _mean_distance(parameters, border)
    if distance is None:
        return None
    patch, window = parameters["patch"], 2 * parameters["search_radius"] + 1
    strength = 255 * distance
    return lambda: _cv().fastNlMeansDenoising(pixels, None, strength, patch, window), _same


_OPENCV: dict[str, _Maker] = {
    "greyscale": _cv_greyscale,
    "laplace": _with_border(_cv_laplace),
    "mask": _with_border(_cv_mask),
    "mean": _with_border(_cv_mean),
    "median": _cv_median,
    "nlm": _cv_nlm,
    "sobel": _with_border(_cv_sobel),
    "weighted_mean": _with_border(_cv_weighted_mean),
}


# scikit-image -------------------------------------------------------------------------


def _sk_median(pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
    if border in _NOT_IN_NDIMAGE:
        return None
    median = importlib.import_module("skimage.filters").median
    square = np.ones((parameters["size"], parameters["size"]), bool)
    return lambda: median(pixels, square, mode=str(border)), _same


def _sk_nlm(pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
    distance = _mean_distance(parameters, border)
    if distance is None:
        return None
    denoise = importlib.import_module("skimage.restoration").denoise_nl_means
    patch, radius = parameters["patch"], parameters["search_radius"]
    return (
        lambda: denoise(pixels, patch, radius, distance, fast_mode=True),
        lambda values: _round_to_bytes(255 * values),
    )


_SKIMAGE: dict[str, _Maker] = {"median": _sk_median, "nlm": _sk_nlm}


# SciPy, and CuPy, which has the same functions -------------------------------------------

_NOT_IN_NDIMAGE = (Border.VALID, Border.REDUCE, Border.KEEP)


@dataclass(frozen=True)
class _NdImage:
    """``scipy.ndimage`` on NumPy's arrays, or ``cupyx.scipy.ndimage`` on CuPy's."""

    arrays: str
    functions: str

    @property
    def xp(self) -> Any:
        return importlib.import_module(self.arrays)

    @property
    def ndimage(self) -> Any:
        return importlib.import_module(self.functions)

    def table(self) -> dict[str, _Maker]:
        """Return what there is, by filter."""
        makers = {
            "laplace": self._laplace,
            "mask": self._mask,
            "mean": self._mean,
            "median": self._median,
            "sobel": self._sobel,
            "weighted_mean": self._weighted_mean,
        }
        return {name: functools.partial(self._make, maker) for name, maker in makers.items()}

    def _make(
        self,
        maker: Callable[[Any, Parameters, str], _Made | None],
        source: Any,
        parameters: Parameters,
        border: Border,
    ) -> _Made | None:
        return None if border in _NOT_IN_NDIMAGE else maker(source, parameters, str(border))

    def _mean(self, source: Any, parameters: Parameters, mode: str) -> _Made:
        output, size = self.xp.empty_like(source), parameters["size"]

        def call() -> Any:
            self.ndimage.uniform_filter(source, size, output=output, mode=mode)
            return output

        return call, _same

    def _weighted_mean(self, source: Any, parameters: Parameters, mode: str) -> _Made:
        row = _binomial(parameters["size"])
        scaled = self.xp.asarray(row / row.sum())
        between, output = (self.xp.empty(source.shape, np.float32) for _ in range(2))

        def call() -> Any:
            self.ndimage.correlate1d(source, scaled, axis=0, output=between, mode=mode)
            self.ndimage.correlate1d(between, scaled, axis=1, output=output, mode=mode)
            return output

        return call, _round_to_bytes

    def _median(self, source: Any, parameters: Parameters, mode: str) -> _Made:
        output, size = self.xp.empty_like(source), parameters["size"]

        def call() -> Any:
            self.ndimage.median_filter(source, size, output=output, mode=mode)
            return output

        return call, _same

    def _mask(self, source: Any, parameters: Parameters, mode: str) -> _Made | None:
        if parameters["negative"] != "clip":
            return None
        mask, divisor = _mask(parameters)
        if divisor == 1 and mask.dtype.kind == "i":
            return self._correlate(source, mask, mode, np.int32), _to_bytes
        return self._correlate(source, mask / divisor, mode, np.float32), _round_to_bytes

    def _laplace(self, source: Any, parameters: Parameters, mode: str) -> _Made | None:
        if parameters["negative"] != "absolute":
            return None
        mask = np.array(_LAPLACE_MASKS[parameters["form"]])
        return self._correlate(source, mask, mode, np.int16), _magnitudes

    def _correlate(self, source: Any, mask: Any, mode: str, dtype: Any) -> Callable[[], Any]:
        mask = self.xp.asarray(mask)
        output = self.xp.empty(source.shape, dtype)

        def call() -> Any:
            self.ndimage.correlate(source, mask, output=output, mode=mode)
            return output

        return call

    def _sobel(self, source: Any, parameters: Parameters, mode: str) -> _Made | None:
        xp, form = self.xp, parameters["form"]
        if form not in ("sum", "magnitude"):
            return None
        across, down = (xp.empty(source.shape, np.int16) for _ in range(2))

        def call() -> Any:
            self.ndimage.sobel(source, axis=1, output=across, mode=mode)
            self.ndimage.sobel(source, axis=0, output=down, mode=mode)
            if form == "sum":
                return xp.abs(across) + xp.abs(down)
            return xp.hypot(across.astype(np.float32), down.astype(np.float32))

        return call, _round_to_bytes


# C, without vector instructions -----------------------------------------------------------


def _plain(filter_id: str, pixels: Any, parameters: Parameters, border: Border) -> _Made | None:
    call = plain.plain(filter_id, pixels, parameters, border)
    return None if call is None else (call, _same)


# The card -------------------------------------------------------------------------------


@functools.cache
def _cupy() -> Any:
    return importlib.import_module("cupy")


@functools.cache
def _stream() -> Any:
    return _cupy().cuda.Stream(non_blocking=True)


@functools.cache
def _spare() -> Any:
    return _cupy().empty(_SPARE_BYTES, np.uint8)


@functools.cache
def _holder() -> Any:
    source = (KERNELS / "hold.cu").read_text(encoding="utf-8")
    return _cupy().RawModule(code=source).get_function("hold")


def _hold() -> None:
    kilohertz = _cupy().cuda.Device().attributes["ClockRate"]
    _holder()((1,), (1,), (np.int64(_HOLD_SECONDS * kilohertz * 1e3),))


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


def _npp_mask(source: Any, parameters: Parameters, border: Border) -> _Made | None:
    mask, divisor = _mask(parameters)
    if parameters["negative"] != "clip" or mask.dtype.kind != "i":
        return None
    return _npp_correlate(source, mask, int(divisor)), _same


def _npp_laplace(source: Any, parameters: Parameters, border: Border) -> _Made | None:
    if parameters["negative"] != "absolute" or parameters["form"] == "5x5":
        return None  # NPP 13.0.1 gives other sums: its filter for signed results fails at 5×5
    output = _cupy().empty(source.shape, np.int16)
    if parameters["form"] == "8":
        name = "nppiFilterLaplaceBorder_8u16s_C1R"
        return _npp_filter(name, source, output, _MASK_3X3, _REPLICATE), _magnitudes
    weights = np.array(_LAPLACE_MASKS[parameters["form"]], np.float32)
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
    if _npp("icc") is None or parameters["rounding"] != "nearest":
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


_ON_HOST: dict[str, dict[str, _Maker]] = {
    "OpenCV": _OPENCV,
    "SciPy": _NdImage("numpy", "scipy.ndimage").table(),
    "scikit-image": _SKIMAGE,
    plain.NAME: {name: functools.partial(_plain, name) for name in plain.filter_ids()},
}
_ON_CARD: dict[str, dict[str, _Maker]] = {
    "NPP": _NPP,
    "CuPy": _NdImage("cupy", "cupyx.scipy.ndimage").table(),
}
