"""Runs every kernel once or more on small images and volumes, for `sanitize.py`."""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.backends.cuda.compiler import Nvrtc
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import TUNED
from kernelscope.schema.samples import Kind
from tests.backends.specialisations import tuned_at_any_size
from tests.contract.test_pictures import make, of_bands, parameters_of, test_module

SHAPE = (37, 141)
"""More than a block of any level both ways, and a multiple of nothing."""

ROOMY = (100, 640)
"""Has whole tiles of the tuned kernels away from the edges: their shorter ways are taken there.

A filter whose work is the square of the pixels has two smaller shapes, ``WATCHED`` of its test.
"""

VOLUME = (5, 19, 45)
"""More than a block of any level along each axis, for volumes."""


def pictures(spec: FilterSpec) -> Iterator[Request]:
    """Yield requests that together reach every kernel of a filter of pictures."""
    module = test_module(spec.id)
    cases = range(len(getattr(module, "CASES", ())))
    small, roomy = getattr(module, "WATCHED", (SHAPE, ROOMY))
    combinations = [
        *itertools.product(cases, DTYPES, of_bands(spec), spec.levels("gpu"), (small, roomy)),
        *itertools.product(cases[:1], DTYPES, (Border.KEEP,), spec.levels("gpu")[-1:], (small,)),
    ]
    chance = random.Random(0)
    for case, dtype, border, level, shape in combinations:
        if border not in spec.borders or (shape == roomy and level is not TUNED):
            continue
        if not level.exact:  # it has the fault that the sanitizers look for
            continue
        channels = chance.choice((1, 1, 3, 4))
        pixels = np.ascontiguousarray(make(dtype, "random", shape)[:, :, :channels])
        yield Request.create(
            Image.from_array(pixels),
            spec.id,
            parameters_of(spec.id, case),
            border=border,
            device=Device.GPU,
            level=level.id,
        )


def volumes(spec: FilterSpec) -> Iterator[Request]:
    """Yield requests that together reach every kernel of a filter of volumes."""
    # Only here: tests of volumes need packages that a computer with a card may lack.
    from tests.contract.test_volumes import make as make_volumes

    cases = getattr(test_module(spec.id), "CASES", ())
    for number, (case, level) in enumerate(itertools.product(cases, spec.levels("gpu"))):
        components = 1 + number // len(spec.levels("gpu")) % 4
        planes = make_volumes(VOLUME, components)
        scan = Scan(tuple(Volume.from_array(planes[..., c].copy()) for c in range(components)))
        yield Request.create(scan, spec.id, case, device=Device.GPU, level=level.id)


def requests(wanted: Sequence[str]) -> Iterator[Request]:
    """Yield those of all filters, or of the wanted ones."""
    for kind, of in ((Kind.PICTURE, pictures), (Kind.VOLUME, volumes)):
        for spec in filters.discover(kind).values():
            if not wanted or spec.id in wanted:
                yield from of(spec)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("filters", nargs="*")
    parser.add_argument("--part", type=int, nargs=2, metavar=("K", "N"), default=(0, 1))
    options = parser.parse_args(arguments)
    part, parts = options.part
    backend = CudaBackend(compiler=Nvrtc())
    backends: dict[str, Backend] = {"gpu": backend, "cpu": CpuBackend()}
    runs = 0
    for request in itertools.islice(requests(options.filters), part, None, parts):
        with tuned_at_any_size():
            execute(request, backends)
        runs += 1
        if request.options.level == TUNED.id:  # the shapes for small pictures
            execute(request, backends)
            runs += 1
    backend.close()
    print(f"{runs} runs")


if __name__ == "__main__":
    main(sys.argv[1:])
