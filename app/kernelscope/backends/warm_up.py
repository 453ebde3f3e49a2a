"""Compiles the usual code of filters into the cache, before it is needed.

    python -m kernelscope.backends.warm_up     reads the ids of filters, the first ones first;
                                               answers with a line for each piece of work

The window runs it as a process of its own, with low priority, until all is compiled once; the
command ``warm-up`` does it at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base import compiled, jit
from kernelscope.engine.context import RunContext
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.engine.steps import prepared
from kernelscope.images.image import Image
from kernelscope.images.reduction import compile_for
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import CpuPass

COMMON = (
    "median",
    "nlm",
    "mean",
    "weighted_mean",
    "sobel",
    "gaussian",
    "mask",
    "laplace",
    "minimum",
    "maximum",
    "greyscale",
    "threshold_mean",
    "rotating_mask",
    "collaborative",
    "sliding_dct",
)
"""Filters that are compiled for everybody, in the order in which they are likely to be tried."""

DTYPES = ("uint8", "uint16", "float32")

_SIDE = 40
_MORE: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "median": ({"size": 5}, {"size": 7}),
    "mean": ({"size": 31},),
}
"""Values beside the defaults that have code of their own."""


class FilterCode(NamedTuple):
    """Code of a filter for a type of samples."""

    filter_id: str
    dtype: str

    @property
    def name(self) -> str:
        bits = {"uint8": "8 bit", "uint16": "16 bit", "float32": "float"}[self.dtype]
        return f"{filters.get(self.filter_id).name}, {bits}"


class Done(NamedTuple):
    """A piece was compiled, as one of all; the next one follows."""

    number: int
    of: int
    next: str


def pieces(first: Sequence[str] = ()) -> list[FilterCode]:
    """Return all pieces, those of the filters in use first, and bytes before other types."""
    order = dict.fromkeys((*(each for each in first if each in COMMON), *COMMON))
    early = [FilterCode(each, dtype) for each in order if each in first for dtype in DTYPES]
    rest = (FilterCode(each, dtype) for dtype in DTYPES for each in order)
    return list(dict.fromkeys((*early, *rest)))


def is_done() -> bool:
    """Return whether all was compiled from these sources."""
    return _mark().exists()


def _mark() -> Path:
    return jit.cache_folder() / "warm-up.json"


def compile_all(work: Sequence[FilterCode]) -> Iterator[Done]:
    """Compile those of the pieces that the cache lacks; yield after each."""
    with contextlib.closing(_Compiling(threads=1)) as backend:
        left = [each for each in work if not _is_kept(each, backend)]
        of = len(left)
        while left:
            yield Done(of - len(left), of, left[0].name)
            _compile(left.pop(0), backend)
            while left and _is_kept(left[0], backend):  # a run had it compiled meanwhile
                del left[0]
        yield Done(of, of, "")
    compiled.try_to_keep(_mark(), json.dumps([list(each) for each in work]).encode())


def _compile(piece: FilterCode, backend: CpuBackend) -> None:
    for request in _requests(piece):
        request, _ = prepared(request)  # estimates have code as well
        backend.run(request, backend.levels(request.step.filter)[-1], RunContext())


class _Missing(Exception):
    """Code is not in the cache."""


def _is_kept(piece: FilterCode, backend: CpuBackend) -> bool:
    """Load the code of a piece, and return whether all of it was there."""

    def refuse(*kernel: Any) -> None:
        raise _Missing

    jit.compile_elsewhere(refuse)
    try:
        _compile(piece, backend)
    except _Missing:
        return False
    finally:
        jit.compile_elsewhere(None)
    return True


def _requests(piece: FilterCode) -> Iterator[Request]:
    """Yield small requests that together need the code of a piece."""
    spec = filters.get(piece.filter_id)
    white = 1 if piece.dtype == "float32" else np.iinfo(piece.dtype).max
    noise = np.random.default_rng(0).random((_SIDE, _SIDE, 3))
    settings = ({}, *_MORE.get(piece.filter_id, ()))
    for channels, values in itertools.product((1, 3), settings):
        pixels = (noise[:, :, :channels] * white).astype(piece.dtype)
        image = Image.from_array(pixels.squeeze())
        yield Request(image, Step.create(spec.id, values), RunOptions(Device.CPU))
    if piece.filter_id == COMMON[0]:  # whose pictures are the first to be shown
        compile_for(np.dtype(piece.dtype))


class _Compiling(CpuBackend):
    """Compiles the passes of a request, and computes nothing."""

    def _sweep(self, sweep: CpuPass, *arguments: Any) -> None:
        for each in sweep.arguments:  # or a result would have no numbers
            if isinstance(each, np.ndarray) and each.flags.writeable:
                each.fill(0)


def serve(lines: Iterable[str]) -> None:
    """Compile with the filters of `lines` first, and print a line for each piece."""
    for done in compile_all(pieces([each.strip() for each in lines])):
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(AttributeError, OSError):  # there is no such thing on Windows
        os.nice(15)
    jit.load_numba()  # decides on the place of the cache
    if jit.can_cache():  # or nobody could use the code
        serve(sys.stdin)
