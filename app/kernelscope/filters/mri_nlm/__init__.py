"""Non-local means of MRI volumes: T1w, T2w, PDw, ... of one head, denoised together.

Every voxel i becomes an average over the voxels j of the search window around it. With the
components u of the volume, the patches around i and j and the standard deviation of the noise,

    D(i, j) = mean over components and cells of (u(i + s) - u(j + s))² / (2 beta sigma²)
    result(i) = sum of w(i, j) u(j) / sum of w(i, j),  w(i, j) = exp(-D(i, j))

Where patches differ by noise alone, their squared difference is 2 sigma² on average: with beta 1
their weight is exp(-1) = 0.37, whatever sigma is. Rician noise adds 2 sigma² to the mean of the
squares: there, squares are averaged and 2 sigma² is subtracted from their mean. With sigma 20, for
example, voxels of 100, 110 and 90 that count alike become
sqrt((10000 + 12100 + 8100) / 3 - 800) = 96.3.

Source: Salari, master's thesis, Kerman 2019; after Coupé et al. 2008 and Manjón et al. 2009.

``strength``    the beta that suits the noise, which ``filters.shared.mri_noise`` describes
``cpu``         the two levels of the CPU
``cuda``        the launches of ``kernels/mri_nlm.cu``
"""

from __future__ import annotations

from kernelscope.filters.mri_nlm.cpu import plan_cpu, radius
from kernelscope.filters.mri_nlm.cuda import GAPS, plan_mri_nlm
from kernelscope.filters.mri_nlm.strength import suggest_beta
from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.mri_noise import NOISE, SIGMA, VolumeSpec, sigma_from
from kernelscope.schema.explanation import Example, Explanation
from kernelscope.schema.filter import Cpu, Disturbance, Remedy
from kernelscope.schema.launch import Cuda
from kernelscope.schema.levels import GLOBAL, SHARED, TUNED
from kernelscope.schema.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    RadiiParameter,
)

_HEAD = (
    (3, 5, 4, 6, 4, 3, 5),
    (5, 98, 104, 101, 99, 103, 4),
    (4, 102, 150, 148, 153, 100, 6),
    (6, 99, 151, 166, 149, 101, 3),
    (4, 101, 147, 152, 150, 97, 5),
    (5, 103, 100, 98, 102, 99, 4),
    (3, 4, 6, 5, 3, 5, 4),
)
"""Layers of a head in small, with a voxel in the middle that noise made brighter."""


SPEC = VolumeSpec(
    id="mri_nlm",
    name="MRI NLM",
    summary="Averages voxels whose surroundings are alike in all volumes, without Rician bias.",
    synonyms=("non-local means", "rician", "brain", "volume"),
    source="Salari, master's thesis, Kerman 2019; after Coupé et al. 2008 and Manjón et al. 2009",
    parameters=(
        ChoiceParameter(
            name="dimensions",
            label="Dimensions",
            help="Where patches and search windows extend.",
            default="3d",
            choices=(
                Choice("3d", "3-D", "Through slices too: finds more that looks alike."),
                Choice("2d", "2-D", "Within each slice: faster, and for thick slices."),
            ),
        ),
        RadiiParameter(
            name="search_radius",
            label="Search radius",
            symbol="r",
            help="How far the search window reaches from the voxel; thick slices want less along "
            "z: 5, 5, 2.",
            default=5,
            minimum=1,
            maximum=7,
            unit="voxels",
        ),
        RadiiParameter(
            name="patch_radius",
            label="Patch radius",
            symbol="patch r",
            help="Radius of the patches that are compared, on each axis.",
            default=1,
            minimum=1,
            maximum=5,
            unit="voxels",
        ),
        NOISE,
        sigma_from(
            Choice(
                "local",
                "Window",
                "Estimated from the 27 or 125 voxels around each: the estimate is noisy.",
            ),
        ),
        SIGMA,
        IntParameter(
            name="window_radius",
            label="Window radius",
            symbol="window r",
            help="Radius of the window in which noise is estimated.",
            default=2,
            minimum=1,
            maximum=2,
            unit="voxels",
            matters=lambda parameters: parameters["sigma_from"] == "local",
        ),
        FloatParameter(
            name="beta",
            label="Beta",
            symbol="β",
            help="Strength: larger values smooth more. In theory it is 1 (Coupé et al.).",
            default=1.0,
            minimum=0.1,
            maximum=4.0,
            step=0.1,
            decimals=4,
            estimate=suggest_beta,
            estimated=True,
            formerly={1: 1.0},
            is_strength=True,
        ),
    ),
    radius=radius,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=34.68),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.volume_dct, stand_in="volume DCT"),
        "gpu": Cuda(plan_mri_nlm, (GLOBAL, SHARED, TUNED), GAPS),
    },
    explanation=Explanation(
        formula=r"g(i) = \sqrt{\max\left( 0,\ \frac{\sum_j w(i, j)\, u(j)^2}{\sum_j w(i, j)} -"
        r" 2 \sigma^2 \right)}, \quad w(i, j) = \exp\big( -D(i, j) \big)" + "\n"
        r"D(i, j) = \frac{1}{CP} \sum_{c,\,s} \frac{\big( u_c(i + s) - u_c(j + s) \big)^2}"
        r"{2 \beta \sigma_c^2}",
        use="For magnitude MRI, above all with several volumes of one head: they share their "
        "weights, so that each is denoised better than alone.",
        avoid="Volumes whose noise was changed by interpolation or by parallel imaging need the "
        "smooth map, and volumes that do not lie over each other must not be combined.",
        example=Example(
            patch=(_HEAD,),
            parameters={"dimensions": "2d", "search_radius": 2, "sigma_from": "given"}
            | {"sigma": (12.0,), "beta": 1.0},
            radius=2,
        ),
        sample="",
    ),
)
