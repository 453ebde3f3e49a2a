"""Non-local means: every pixel becomes an average of the pixels that look like it.

The patches around two pixels i and j are compared cell by cell, G² times the squared difference
in units of white; the sum D over the patch, averaged over the colours, gives j the weight
exp(-D / filter_sigma) in the average for i. Candidates j are those of a window around i, or
all pixels of the image.

*Extended coordinates* are those of the image after `extend`, which widens it by the filter's
radius on each side; for ``valid`` it is the source itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.filters.borders import REDUCE, REFLECT, VALID, border_index
from app.filters.correlation import Finish, settle
from app.filters.jit import kernel
from app.filters.non_local import colour_count, expected_distance, patch_profile, white_level
from app.filters.spec import (
    SERIAL,
    Border,
    Choice,
    ChoiceParameter,
    CpuPass,
    FilterSpec,
    FilterTask,
    FloatParameter,
    IntParameter,
    OddParameter,
    Pixels,
)


class Search(NamedTuple):
    """Where candidates lie, in extended coordinates.

    Attributes
    ----------
    margin : int
        Row and column of the first pixel of the result.
    reach : int
        Largest distance from the pixel along an axis.
    edge : int
        No candidate is closer than this to the edge of the extended image.
    """

    margin: int
    reach: int
    edge: int


@kernel
def extend(source: Any, extended: Any, margin: Any, border: Any, start: Any, stop: Any) -> None:
    """Write rows `start` to `stop` of `extended` (channels, rows, columns), float32."""
    height, width, _ = source.shape
    shift = 0 if border == VALID else margin
    # What `reduce` leaves out are candidates; cells of patches are reflected.
    border = REFLECT if border == REDUCE else border
    for row in range(start, stop):
        y = border_index(row - shift, height, border)
        for column in range(width + 2 * shift):
            x = border_index(column - shift, width, border)
            for c in range(extended.shape[0]):
                extended[c, row, column] = source[y, x, c] if y >= 0 and x >= 0 else 0


@kernel
def distance(
    extended: Any, first: Any, last: Any, y: Any, x: Any, yy: Any, xx: Any, profile: Any
) -> Any:
    """Return the sum of G² times squared differences around two pixels, channels from `first`."""
    half = profile.size // 2
    total = np.float32(0)
    for c in range(first, last):
        for s in range(-half, half + 1):
            for t in range(-half, half + 1):
                difference = extended[c, y + s, x + t] - extended[c, yy + s, xx + t]
                total += profile[half + s] * profile[half + t] * difference * difference
    return total


@kernel
def nlm_serial(
    extended: Any,
    output: Any,
    group: Any,
    profile: Any,
    scale: Any,
    search: Any,
    finish: Any,
    start: Any,
    stop: Any,
) -> None:
    """Plain loops: for pixels `start` to `stop`, every candidate and every cell of its patch.

    Channels are treated in groups of `group`, each with its own distances; `scale` times a
    distance is the exponent of the weight.
    """
    colours, rows, columns = extended.shape
    totals = np.empty(group)
    for pixel in range(start, stop):
        y = pixel // output.shape[1] + search.margin
        x = pixel % output.shape[1] + search.margin
        for first in range(0, colours, group):
            totals[:] = 0
            weights = 0.0
            for yy in range(
                max(search.edge, y - search.reach), min(rows - search.edge, y + search.reach + 1)
            ):
                for xx in range(
                    max(search.edge, x - search.reach),
                    min(columns - search.edge, x + search.reach + 1),
                ):
                    apart = distance(extended, first, first + group, y, x, yy, xx, profile)
                    weight = np.exp(scale * apart)
                    weights += weight
                    for c in range(group):
                        totals[c] += weight * extended[first + c, yy, xx]
            for c in range(group):
                sample = settle(np.float32(totals[c] / weights), finish)
                output[y - search.margin, x - search.margin, first + c] = sample


def radius(parameters: Mapping[str, Any]) -> int:
    half = int(parameters["patch"]) // 2
    return half if whole(parameters) else half + int(parameters["search_radius"])


def whole(parameters: Mapping[str, Any]) -> bool:
    return bool(parameters["search"] == "image")


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    source, output, parameters = task.source, task.output, task.parameters
    height, width, channels = source.shape
    colours = colour_count(channels)
    group = colours if parameters["colour"] == "joint" else 1
    margin = radius(parameters)
    half = parameters["patch"] // 2
    shift = 0 if task.border is Border.VALID else margin
    extended: NDArray[np.float32] = np.empty(
        (colours, height + 2 * shift, width + 2 * shift), np.float32
    )
    search = Search(
        margin,
        max(height, width) if whole(parameters) else parameters["search_radius"],
        margin if task.border is Border.REDUCE else half,
    )
    white = white_level(source.dtype)
    scale = np.float32(-1 / (group * white * white * parameters["filter_sigma"]))
    profile = patch_profile(parameters).astype(np.float32)
    finish = Finish.of(source.dtype, np.float32)
    widen = CpuPass(extend, (source, extended, margin, task.border.code), extended.shape[1])
    arguments = (extended, output, group, profile, scale, search, finish)
    return [widen, CpuPass(nlm_serial, arguments, output.shape[0] * output.shape[1])]


def estimate_filter_sigma(pixels: Pixels, parameters: Mapping[str, Any]) -> float:
    """Return a ``filter_sigma`` for the noise in `pixels`, within the parameter's range."""
    return min(max(expected_distance(pixels, parameters), _SMALLEST), _LARGEST)


_SMALLEST, _LARGEST = 1e-8, 1e9

SPEC = FilterSpec(
    id="nlm",
    name="Non-local means",
    category="Denoising",
    summary="Averages pixels that look alike, however far apart: removes noise, keeps detail.",
    source="Kasparidis, NLM report, Thessaloniki; after Buades, Coll and Morel 2005",
    parameters=(
        OddParameter(
            name="patch",
            label="Patch size",
            help="Side of the squares by which pixels are compared.",
            default=7,
            minimum=3,
            maximum=11,
        ),
        ChoiceParameter(
            name="search",
            label="Search in",
            help="Where a pixel looks for others that look like it.",
            default="window",
            choices=(
                Choice("window", "Window", "A square around the pixel."),
                Choice("image", "Whole image", "All pixels: slow, the square of their number."),
            ),
        ),
        IntParameter(
            name="search_radius",
            label="Search radius",
            help="How far the window reaches from the pixel; the whole image has no radius.",
            default=10,
            minimum=1,
            maximum=50,
            slider=(1, 20),
            unit="px",
        ),
        FloatParameter(
            name="filter_sigma",
            label="Filter sigma",
            help="Distance of patches, where white is 1, at which a weight falls to 37 %: "
            "more smooths more.",
            default=0.02,
            minimum=_SMALLEST,
            maximum=_LARGEST,
            slider=(0.001, 0.2),
            step=0.005,
            decimals=8,
            estimate=estimate_filter_sigma,
        ),
        FloatParameter(
            name="patch_sigma",
            label="Patch sigma",
            help="Standard deviation of the Gaussian over the patch: less looks at the middle.",
            default=5 / 3,
            minimum=0.1,
            maximum=100.0,
            slider=(0.5, 5.0),
            unit="px",
        ),
        ChoiceParameter(
            name="weights",
            label="Patch weights",
            help="How much the cells of a patch count.",
            default="gaussian",
            choices=(
                Choice("gaussian", "Gaussian", "The middle counts most."),
                Choice("uniform", "Uniform", "All cells count alike."),
            ),
        ),
        ChoiceParameter(
            name="colour",
            label="Colours",
            help="Whether the channels of a colour picture share their weights.",
            default="joint",
            choices=(
                Choice("joint", "Together", "One distance over all channels: no false colours."),
                Choice("separate", "Each by itself", "Every channel is a grey picture."),
            ),
        ),
    ),
    radius=radius,
    plan_cpu=plan_cpu,
    cpu_levels=(SERIAL,),
    whole=whole,
)
