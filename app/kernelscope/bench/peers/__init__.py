"""The libraries that the bench compares with, if they are installed.

Those in ``LIBRARIES`` of the modules of this package: OpenCV, SciPy, scikit-image and plain
loops in C on the CPU; CuPy and NVIDIA's NPP on the GPU. A counterpart computes the same filter on
the same pixels; if a library's borders or rounding differ, the bench reports the differences.
See `library` for how to add one.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from kernelscope.bench.peers.library import Counterpart, Library, Parameters
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Pixels

__all__ = [
    "Counterpart",
    "Library",
    "counterpart",
    "discover",
    "libraries",
    "names",
    "versions",
]


@functools.cache
def discover() -> Mapping[str, Library]:
    """Return every known library, installed or not, by name in the order of tables."""
    modules = (
        importlib.import_module(f"{__name__}.{each.name}")
        for each in pkgutil.iter_modules(__path__)
    )
    found = [each for module in modules for each in getattr(module, "LIBRARIES", ())]
    found.sort(key=lambda library: library.rank)
    return MappingProxyType({library.name: library for library in found})


def names() -> tuple[str, ...]:
    return tuple(discover())


def libraries(device: str, filter_id: str) -> tuple[Library, ...]:
    return tuple(
        library
        for library in discover().values()
        if library.on_card == (device == Device.GPU) and filter_id in library.makers
    )


def counterpart(
    name: str, filter_id: str, pixels: Pixels, parameters: Parameters, border: Border
) -> Counterpart | None:
    """Return an installed library's counterpart for a filter of `pixels`.

    None if it has none that computes the same with these parameters and this border, or for these
    pixels: only 8-bit pictures are compared, grey ones unless the filter is greyscale.
    """
    channels = 3 if filter_id == "greyscale" else 1
    if pixels.dtype != np.uint8 or pixels.shape[2:] != ((channels,) if channels > 1 else ()):
        return None
    return discover()[name].counterpart(filter_id, pixels, parameters, border)


def versions() -> dict[str, str]:
    return {
        name: library.find_version()
        for name, library in discover().items()
        if not library.missing()
    }
