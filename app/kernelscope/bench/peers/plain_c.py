"""The plain loops of `plain.c`, the yardstick for level *serial*.

A good serial program takes as long as a C programmer's loops at -O2, without vector
instructions, that take the size of the mask as an argument, as *serial* does; `sized` has the
same loops for one size. If a C compiler is installed, this module compiles them once into the cache
folder and calls them, on grey pictures (greyscale: in colour) of any sample type.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import compiled
from kernelscope.base.errors import AppError
from kernelscope.bench.peers.library import Library, Made, mask_and_divisor, unchanged
from kernelscope.filters.laplace import MASKS
from kernelscope.filters.nlm.pairs import whole
from kernelscope.filters.shared.correlation import binomial
from kernelscope.filters.shared.non_local import falloff, noise_floor, patch_profile
from kernelscope.filters.sobel.cpu import COMPASS
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Pixels, white_level

NAME = "C -O2"  # the name of this peer

SOURCE = Path(__file__).with_name("plain.c")

FLAGS = (
    "-O2",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-math-errno",  # lrint and sqrt become instructions
    "-ffp-contract=off",
    "-falign-functions=64",  # so that a time does not depend on the code of other filters
    "-falign-loops=32",  # at 64, a row of a small mask runs through more padding than that saves
    "-fPIC",
    "-shared",
)

BORDERS = (Border.REFLECT, Border.MIRROR, Border.NEAREST, Border.CONSTANT, Border.WRAP)
"""In the order of the constants in `plain.c`."""

_NEGATIVE = ("keep", "clip", "absolute", "offset")
_FORMS = ("sum", "magnitude", "directions", "single", "winner", "angle")

_TYPES = {"uint8": "uint8_t", "uint16": "uint16_t", "float32": "float"}

_LARGEST = 2**31 - 1  # largest magnitude of a sum of integer samples, so that it fits an int

Call = Callable[[], Pixels]
Parameters = Mapping[str, Any]


class _Image(ctypes.Structure):
    _fields_ = (
        ("samples", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("height", ctypes.c_int),
        ("width", ctypes.c_int),
        ("border", ctypes.c_int),
    )


@functools.cache
def compiler() -> str:
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "")


@functools.cache
def version() -> str:
    if not compiler():
        return ""
    command = [compiler(), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


@functools.cache
def library(dtype: np.dtype[Any], side: int = 0) -> ctypes.CDLL:
    """Return the loops for samples of `dtype`, compiled on the first use.

    `side`: the only side of masks and patches, which the compiler knows; 0 for any.
    """
    if not compiler():
        raise AppError("There is no C compiler (cc, gcc or clang).")
    white = 0 if dtype.kind == "f" else np.iinfo(dtype).max
    known = [f"-DSIDE={side}"] if side else []
    flags = (*FLAGS, f"-DSAMPLE={_TYPES[dtype.name]}", f"-DWHITE={white}", *known)
    digest = hashlib.sha256(repr((SOURCE.read_bytes(), flags, version())).encode()).hexdigest()
    path = compiled.cache_folder("plain") / f"{digest[:16]}.so"
    code = compiled.load(path)
    if code is None:
        code = _compile(flags)
        compiled.try_to_keep(path, code)
    return compiled.load_library(code)


def _compile(flags: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "plain.so")
        command = [compiler(), *flags, str(SOURCE), "-o", str(output), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AppError(f"{compiler()} cannot compile {SOURCE.name}: {done.stderr.strip()}")
        return output.read_bytes()


def plain(
    filter_id: str,
    pixels: Pixels,
    parameters: Parameters,
    border: Border,
    loops: ctypes.CDLL | None = None,
) -> Call | None:
    """Return a call that filters `pixels` and returns the result; None if `plain.c` lacks that.

    `pixels` has the shape (height, width), or (height, width, 3) for greyscale. `loops`: the loops,
    if not compiled as `library` does.
    """
    shape = (3,) if filter_id == "greyscale" else ()
    if filter_id not in _FUNCTIONS or border not in BORDERS or pixels.shape[2:] != shape:
        return None
    source = np.ascontiguousarray(pixels)
    output = np.empty(source.shape[:2], source.dtype)
    image = _Image(
        source.ctypes.data, output.ctypes.data, *output.shape, BORDERS.index(Border(border))
    )
    prepared = _FUNCTIONS[filter_id](source.dtype, parameters)
    if prepared is None:
        return None
    name, arguments = prepared
    function = (loops or library(source.dtype))[name]
    alive = (source, arguments)  # as long as the call

    def call() -> Pixels:
        function(ctypes.byref(image), *map(_as_c, alive[1]))
        return output

    return call


def _as_c(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return value


_Prepared = tuple[str, tuple[Any, ...]]
"""A function of `plain.c`, and its arguments after the image."""


def _correlation(
    dtype: np.dtype[Any], weights: NDArray[Any], divisor: float, negative: str
) -> _Prepared | None:
    if dtype.kind != "f":
        largest = float(np.abs(weights).sum()) * np.iinfo(dtype).max
        if weights.dtype.kind != "i" or largest > _LARGEST:
            return None
    numbers = weights.astype(np.float64 if dtype.kind == "f" else np.int32)
    code = _NEGATIVE.index(negative)
    return "mask", (numbers, len(weights), ctypes.c_double(divisor), code)


def _mask(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared | None:
    weights, divisor = mask_and_divisor(parameters)
    return _correlation(dtype, weights, float(divisor), parameters["negative"])


def _weighted_mean(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared | None:
    row = binomial(parameters["size"])
    weights = np.outer(row, row)
    return _correlation(dtype, weights, float(weights.sum()), "keep")


def _laplace(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared | None:
    weights = np.array(MASKS[parameters["form"]])
    return _correlation(dtype, weights, 1.0, parameters["negative"])


def _threshold_mean(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared:
    threshold = parameters["threshold"] * white_level(dtype) / 255
    return "threshold_mean", (parameters["size"], ctypes.c_double(threshold))


def _sobel(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared | None:
    if parameters["form"] not in _FORMS:
        return None
    form = _FORMS.index(parameters["form"])
    if form < _FORMS.index("single"):
        return "sobel", (form,)
    turn = ctypes.c_double(white_level(dtype) + (dtype.kind != "f"))
    return "sobel_direction", (form, COMPASS.index(parameters["direction"]), turn)


def _greyscale(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared:
    return "greyscale", (ctypes.c_double(499.5 if parameters["rounding"] == "floor" else 0),)


def _nlm(dtype: np.dtype[Any], parameters: Parameters) -> _Prepared | None:
    if noise_floor(parameters):
        return None
    profile = patch_profile(parameters).astype(np.float32)
    scale = -np.log2(np.e) / (white_level(dtype) ** 2 * falloff(parameters))
    everywhere = whole(parameters)
    return "nlm", (
        np.outer(profile, profile),
        parameters["patch"],
        0 if everywhere else parameters["search_radius"],
        int(everywhere),
        ctypes.c_float(scale),
    )


_FUNCTIONS: dict[str, Callable[[np.dtype[Any], Parameters], _Prepared | None]] = {
    "greyscale": _greyscale,
    "laplace": _laplace,
    "mask": _mask,
    "mean": lambda dtype, parameters: ("mean", (parameters["size"],)),
    "median": lambda dtype, parameters: ("median", (parameters["size"],)),
    "nlm": _nlm,
    "rotating_mask": lambda dtype, parameters: ("rotating_mask", ()),
    "sobel": _sobel,
    "threshold_mean": _threshold_mean,
    "weighted_mean": _weighted_mean,
}


def library_of(
    name: str,
    filter_ids: Iterable[str],
    find: Callable[[str, Pixels, Parameters, Border], Call | None],
) -> Library:

    def make(filter_id: str, *given: Any) -> Made | None:
        call = find(filter_id, *given)
        return None if call is None else (call, unchanged)

    return Library(
        name=name,
        module="",
        makers={each: functools.partial(make, each) for each in filter_ids},
        rank=3,
        obstacle=lambda: "" if compiler() else "No C compiler (cc, gcc or clang) is installed.",
        version=version,
    )


def plain_mri_nlm(source: Pixels, extended: NDArray[np.float32], reach: Any, model: Any) -> Call:
    """Return a call of MRI NLM for one component and one sigma; see `filters.mri_nlm.cpu`.

    `source` has the shape (depth, height, width, 1). `extended` (shape (1, slices, rows, columns)):
    `source` mirrored by ``reach.margin``.
    """
    output = np.empty(source.shape, np.float32)
    sigma = np.float32(model.sigmas.ravel()[0])
    tables = [
        np.array(numbers, np.int32)
        for numbers in (source.shape[:3], reach.margin, reach.search, reach.patch)
    ]
    strength = float(-np.log2(np.e) * model.strength / sigma**2)
    function = library(np.dtype(np.float32))["mri_nlm"]

    def call() -> Pixels:
        function(
            _as_c(extended),
            _as_c(output),
            *map(_as_c, tables),
            ctypes.c_double(strength),
            ctypes.c_float(float(sigma)),
            int(model.rician),
        )
        return output

    return call


SIZED_NAME = "C -O2, size known"

SIDES: dict[str, Callable[[Parameters], int]] = {
    "laplace": lambda parameters: len(MASKS[parameters["form"]]),
    "mask": lambda parameters: len(parameters["mask"]),
    "mean": lambda parameters: int(parameters["size"]),
    "median": lambda parameters: int(parameters["size"]),
    "nlm": lambda parameters: int(parameters["patch"]),
    "threshold_mean": lambda parameters: int(parameters["size"]),
    "weighted_mean": lambda parameters: int(parameters["size"]),
}
"""The filters whose loops depend on the size of a mask or patch."""


def sized(filter_id: str, pixels: Pixels, parameters: Parameters, border: Border) -> Call | None:
    """Return a call of the loops for one size of mask or patch, which the compiler knows.

    It unrolls the loops over the cells of the smallest masks. That is no yardstick for level
    *serial*, whose code serves all sizes, but shows how much a program for one size gains.
    """
    loops = library(pixels.dtype, SIDES[filter_id](parameters))
    return plain(filter_id, pixels, parameters, border, loops)


LIBRARIES = (library_of(NAME, _FUNCTIONS, plain), library_of(SIZED_NAME, SIDES, sized))
