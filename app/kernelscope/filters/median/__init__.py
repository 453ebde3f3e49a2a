"""Median filter: every pixel becomes the middle value of the square around it.

For a window of n cells in ascending order, v(0) <= v(1) <= ... <= v(n - 1), the result is
v((n - 1) / 2), rounded down: an even number of cells, which only `Border.REDUCE` makes, has two
middle values, of which the lower counts. (Of masks that are no squares it is the upper, see
``masked``.) For example:

    10 12 11                                                   a speck of 255 that is
    13 255 12    in order: 10 11 11 12 12 13 13 14 255 -> 12   gone from the result
    11 14 13

Source: Korčuška 2013, chapters 1 and 5. The ways to find the middle value:

``kernels``     Hoare's quickselect, or bubble sort, of each window; a histogram that moves along
                the row; histograms of columns; and networks of minima and maxima of whole rows
``networks``    the plans of these
``masked``      the ways for masks that are no squares
``cuda``        the search bit by bit, and the others, in ``kernels/median.cu``
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelscope.filters.median import cpu, cubes, cuda
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.footprints import FOOTPRINT, radius_of, size_parameter, table_of
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import BenchDefaults, Cpu, Disturbance, FilterSpec, Remedy
from kernelscope.schema.launch import Cuda


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    cells = sorted(window[table_of(parameters)].tolist())
    middle = (len(cells) - 1) // 2
    listed = " ".join(map(number, cells))
    return f"in order: {listed}; value {middle + 1} of {len(cells)} = {number(cells[middle])}"


def _for_impulses(share: float) -> Mapping[str, Any]:
    """Return the size that restored eight pictures of scikit-image best, on average."""
    return {"size": 3 if share <= 0.18 else 5 if share <= 0.4 else 7}


SPEC = FilterSpec(
    id="median",
    name="Median",
    category="Smoothing",
    summary="Takes the middle value around each pixel: removes specks, keeps edges.",
    synonyms=("despeckle", "rank", "impulse", "specks"),
    source="Korčuška 2013, chapters 1 and 5; counting after Huang, Yang and Tang 1979 and "
    "Perreault and Hébert 2007, networks after Batcher 1968 and Adams 2021",
    parameters=(
        size_parameter("Side of the mask whose middle value is taken.", (3, 9)),
        FOOTPRINT,
    ),
    radius=radius_of,
    in_3d=cubes.SPEC,
    remedy=Remedy(disturbance=Disturbance.IMPULSES, values=_for_impulses),
    implementations={
        "cpu": Cpu(
            cpu.plan_cpu, cpu.LEVELS, uncompiled=uncompiled.by_numpy(uncompiled.median_rows)
        ),
        "gpu": Cuda(cuda.plan_cuda, cuda.LEVELS),
    },
    # OpenCV has no other border.
    bench=BenchDefaults(border=Border.NEAREST),
    explanation=Explanation(
        formula=r"g(y, x) = \operatorname{median}\, \{\, u(y + s,\, x + t) \,:\, |s|,\, |t| \le r"
        r" \,\}",
        use="For specks, dead pixels and scratches that are narrower than half of the mask. Edges "
        "stay sharp.",
        avoid="It removes thin lines and rounds corners. For even, Gaussian noise an average of "
        "the same size leaves less of it; non-local means keeps detail as well.",
        example=Example(working=_working),
        sample="camera-salt-pepper.png",
    ),
)
