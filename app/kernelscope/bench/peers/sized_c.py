"""The loops of `plain.c` for one size of mask or patch, which the compiler knows.

The compiler unrolls the loops over the cells of the smallest masks. It is no yardstick for level
*serial*, whose code serves all sizes, but shows how much a program for one size gains.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelscope.bench.peers import plain_c
from kernelscope.bench.peers.plain_c import Parameters
from kernelscope.filters.laplace import MASKS
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Pixels

NAME = "C -O2, size known"

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


def sized(
    filter_id: str, pixels: Pixels, parameters: Parameters, border: Border
) -> plain_c.Call | None:
    loops = plain_c.library(pixels.dtype, SIDES[filter_id](parameters))
    return plain_c.plain(filter_id, pixels, parameters, border, loops)


LIBRARY = plain_c.library_of(NAME, SIDES, sized)
