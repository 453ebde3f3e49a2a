"""Non-local means: every pixel becomes an average of the pixels that look like it.

The patches around two pixels i and j are compared cell by cell: with cells s of a patch and
samples u, where white is 1,

    D(i, j) = sum over s of G(s)² (u(i + s) - u(j + s))², averaged over the colours
    result(i) = sum of w(i, j) u(j) / sum of w(i, j),  w(i, j) = exp(-max(D(i, j) - F, 0) / h)

over the candidates j, which are those of a window around i, or all pixels of the image; h is
``filter_sigma``. With h 0.02 and F 0, a candidate at distance 0 has the weight 1, at 0.02 the
weight 0.37, and at 0.2 the weight 0.00005: pixels that look different have no part in the result.

F is the amount that noise of sigma adds to the distance of patches that look alike, 2 sigma² times
the sum of all G(s)²: with ``weights=corrected`` it does not count, G is 1, and the size of the
patch is chosen together with h. Source N has F = 0 and a Gaussian G: ``weights=gaussian``.

Sources: Kasparidis, NLM report, Thessaloniki; after Buades, Coll and Morel, "A non-local algorithm
for image denoising", 2005; F as in their "Non-local means denoising", Image Processing On Line 1,
2011.
"""

from __future__ import annotations

from dataclasses import replace

from kernelscope.filters.nlm.cpu import plan_cpu, uncompiled_passes
from kernelscope.filters.nlm.cuda import GAPS, HOST_PARTITIONS, plan_nlm
from kernelscope.filters.nlm.pairs import radius, whole
from kernelscope.filters.nlm.strength import estimate_patch, estimate_strength
from kernelscope.filters.shared.sigma_parameters import STRENGTH, sigma_parameter
from kernelscope.filters.shared.stabilise import ALL_STEPS, NOISE, estimate_sigma
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Example, Explanation
from kernelscope.schema.filter import BenchDefaults, Cpu, Disturbance, FilterSpec, Remedy, Unit
from kernelscope.schema.launch import Cuda
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, TEXTURE, TUNED
from kernelscope.schema.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    OddParameter,
)

_STRIPES = (
    (22, 81, 19, 80, 21, 78, 20),
    (18, 79, 22, 83, 20, 80, 19),
    (21, 80, 18, 79, 23, 82, 21),
    (20, 78, 21, 92, 19, 80, 22),
    (19, 82, 20, 81, 18, 79, 20),
    (23, 80, 19, 78, 21, 81, 18),
    (20, 79, 21, 80, 20, 77, 21),
)
"""Stripes, which look alike along their direction, and one pixel that noise made brighter."""


SPEC = FilterSpec(
    id="nlm",
    name="Non-local means",
    short="NLM",
    category="Denoising",
    summary="Averages pixels that look alike, however far apart: removes noise, keeps detail.",
    synonyms=("nlm", "denoise", "buades", "patches"),
    source="Kasparidis, NLM report, Thessaloniki; after Buades, Coll and Morel 2005",
    parameters=(
        sigma_parameter(
            estimate_sigma,
            matters=lambda parameters: parameters["weights"] == "corrected",
        ),
        replace(
            NOISE,
            matters=lambda parameters: parameters["weights"] == "corrected",
            formerly={1: "white", 2: "white"},
        ),
        STRENGTH,
        OddParameter(
            name="patch",
            label="Patch size",
            help="Side of the squares by which pixels are compared.",
            default=7,
            minimum=3,
            maximum=11,
            estimate=estimate_patch,
            estimated=True,
            formerly={1: 7, 2: 7},
        ),
        ChoiceParameter(
            name="search",
            label="Search in",
            symbol="search",
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
            symbol="r",
            help="Radius of the search window; the whole image has none.",
            default=10,
            minimum=1,
            maximum=50,
            slider=(1, 20),
            unit="px",
            matters=lambda parameters: parameters["search"] == "window",
        ),
        FloatParameter(
            name="filter_sigma",
            label="Filter sigma",
            symbol="h",
            help="Distance of patches, where white is 1, at which a weight falls to 37 %, at the "
            "strength 100 %. Source N has 0.02, for noise of variance 0.001.",
            default=0.02,
            minimum=1e-14,
            maximum=1e9,
            slider=(1e-7, 1.0),
            geometric=True,
            decimals=14,
            estimate=estimate_strength,
            estimated=True,
            formerly={1: 0.02},
        ),
        FloatParameter(
            name="patch_sigma",
            label="Patch sigma",
            symbol="patch σ",
            help="Standard deviation of the Gaussian over the patch: small values favour the "
            "centre.",
            default=5 / 3,
            minimum=0.1,
            maximum=100.0,
            slider=(0.5, 5.0),
            unit="px",
            matters=lambda parameters: parameters["weights"] == "gaussian",
        ),
        ChoiceParameter(
            name="weights",
            label="Patch weights",
            symbol="weights",
            help="How much the cells of a patch count, and whether their noise does.",
            default="corrected",
            choices=(
                Choice(
                    "corrected",
                    "Less the noise",
                    "All cells count alike; the part of a distance that noise adds does not count.",
                ),
                Choice("gaussian", "Gaussian", "The middle counts most, as published."),
                Choice("uniform", "Uniform", "All cells count alike."),
            ),
            formerly={1: "gaussian", 2: "gaussian"},
        ),
        ChoiceParameter(
            name="colour",
            label="Colours",
            symbol="colours",
            help="Whether the channels of a colour picture share their weights.",
            default="joint",
            choices=(
                Choice("joint", "Together", "One distance over all channels: no false colours."),
                Choice("separate", "Each by itself", "Every channel is a grey picture."),
            ),
            of_colours=True,
        ),
    ),
    radius=radius,
    unit=Unit.WHITE,
    noise=ALL_STEPS,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=30.04),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_passes),
        "gpu": Cuda(plan_nlm, (GLOBAL, CONSTANT, HOST_PARTITIONS, SHARED, TEXTURE, TUNED), GAPS),
    },
    # A patch that does not fit ends no average: the others may compare with it.
    borders=tuple(border for border in Border if border is not Border.KEEP),
    whole=whole,
    # The patches of OpenCV and scikit-image are uniform.
    bench=BenchDefaults(
        variants=({"weights": "gaussian"}, {"weights": "uniform"}, {}), border=Border.MIRROR
    ),
    explanation=Explanation(
        formula=r"g(i) = \frac{\sum_j w(i, j)\, u(j)}{\sum_j w(i, j)}, \quad w(i, j) ="
        r" \exp\left( -\frac{\max(D(i, j) - F,\, 0)}{h} \right)" + "\n"
        r"D(i, j) = \sum_s G(s)^2 \big( u(i + s) - u(j + s) \big)^2,"
        r" \quad F = 2 \sigma^2 \sum_s G(s)^2",
        use="For Gaussian noise in pictures with texture and edges: it averages "
        "only similar surroundings, and so keeps detail that a mask blurs. *Estimate* finds sigma, "
        "the patch and the settings that suit them; the strength changes the outcome from there.",
        avoid="It takes far longer than a mask. Specks look like nothing else and stay: use the "
        "median. Noise that depends on the brightness needs other weights.",
        example=Example(
            patch=_STRIPES,
            parameters={
                "patch": 3,
                "search_radius": 2,
                "filter_sigma": 0.02,
                "weights": "gaussian",
            },
            radius=2,
        ),
        sample="camera-gaussian.png",
    ),
)
