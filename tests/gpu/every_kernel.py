"""Runs every kernel once or more on small images: the program that `sanitize.py` watches."""

from __future__ import annotations

import itertools
import sys

import numpy as np

from app import filters
from app.backends.cpu import CpuBackend
from app.backends.cuda import CudaBackend
from app.backends.cuda.compiler import Nvrtc
from app.engine.image import DTYPES, Image
from app.engine.request import Device, Request
from app.engine.run import execute
from app.filters.spec import TUNED, Border
from tests.test_contract import make, parameters_of, test_module

SHAPE = (37, 141)
"""More than a block of any level both ways, and a multiple of nothing."""

ROOMY = (100, 640)
"""Has whole tiles of the tuned kernels away from the edges: their shorter ways are taken there."""

BORDERS = (Border.REFLECT, Border.REDUCE, Border.VALID)
"""One that textures treat, one that counts cells, one with a smaller result."""


def main(wanted: list[str]) -> None:
    backend = CudaBackend(compiler=Nvrtc())
    runs = 0
    for filter_id in wanted or filters.discover():
        spec = filters.get(filter_id)
        cases = getattr(test_module(spec.id), "CASES", ())
        for case, dtype, border, level, shape in itertools.product(
            range(len(cases)), DTYPES, BORDERS, spec.gpu_levels, (SHAPE, ROOMY)
        ):
            if shape == ROOMY and level is not TUNED:
                continue
            parameters = parameters_of(spec.id, case)
            if border not in spec.borders:
                continue
            channels = (1, 1, 3, 4)[runs % 4]
            pixels = np.ascontiguousarray(make(dtype, "random", shape)[:, :, :channels])
            request = Request.create(
                Image.from_array(pixels),
                spec.id,
                parameters,
                border=border,
                device=Device.GPU,
                level=level.id,
            )
            execute(request, {"gpu": backend, "cpu": CpuBackend()})
            runs += 1
    backend.close()
    print(f"{runs} runs")


if __name__ == "__main__":
    main(sys.argv[1:])
