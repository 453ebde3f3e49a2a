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

``sigma``, ``sigma_map``    the noise, for all voxels or around each
``noise``                   which of these a run uses; the strength that suits it is in ``strength``
``serial``, ``tiles``       the two levels of the CPU
``cuda``                    the launches of ``kernels/mri_nlm.cu``
"""

from __future__ import annotations

from kernelscope.filters.mri_nlm.cpu import plan_cpu
from kernelscope.filters.mri_nlm.cuda import GAPS, plan_mri_nlm
from kernelscope.filters.mri_nlm.noise import (
    MOST,
    NOISE_MAP,
    check,
    estimates,
    measure,
    resolve,
    suggest_beta,
)
from kernelscope.filters.mri_nlm.reach import radius
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import Cpu, FilterSpec
from kernelscope.spec.launch import Cuda
from kernelscope.spec.levels import GLOBAL, SHARED, TUNED
from kernelscope.spec.parameters import (
    Choice,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    NumbersParameter,
    RadiiParameter,
)
from kernelscope.spec.samples import Kind

SPEC = FilterSpec(
    id="mri_nlm",
    name="MRI NLM",
    category="Denoising",
    kind=Kind.VOLUME,
    summary="Averages voxels that look alike in all volumes of a scan; knows the noise of MRI.",
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
            help="How far the patches that are compared reach from their middle, on each axis.",
            default=1,
            minimum=1,
            maximum=5,
            unit="voxels",
        ),
        ChoiceParameter(
            name="noise",
            label="Noise",
            help="Effect of the noise on the mean.",
            default="rician",
            choices=(
                Choice(
                    "rician",
                    "Rician",
                    "It makes magnitude MRI brighter: that is taken back.",
                    switch="rician",
                ),
                Choice("gaussian", "Gaussian", "None.", switch="gaussian"),
            ),
        ),
        ChoiceParameter(
            name="sigma_from",
            label="Sigma from",
            symbol="σ from",
            help="How much noise there is.",
            default="volume",
            choices=(
                Choice("volume", "Volume", "Estimated, one sigma for each volume."),
                Choice(
                    "adaptive",
                    "Smooth map",
                    "Estimated everywhere from many voxels around: noise may vary over the head.",
                    switch="adaptive",
                ),
                Choice(
                    "local",
                    "Window",
                    "Estimated from 27 or 125 voxels, as source V has it: the estimate is noisy.",
                ),
                Choice("given", "Numbers", "As written."),
            ),
        ),
        NumbersParameter(
            name="sigma",
            label="Sigma",
            symbol="σ",
            help="Standard deviation of the noise in units of the voxels: one for all volumes, "
            "or one for each.",
            minimum=0.0,
            maximum=MOST,
            most=4,
            none="estimated",
            implies={"sigma_from": "given"},
            matters=lambda parameters: parameters["sigma_from"] == "given",
        ),
        IntParameter(
            name="window_radius",
            label="Window radius",
            symbol="window r",
            help="How far the window reaches in which noise is estimated.",
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
            help="Strength: more smooths more. Source V has 1.",
            default=1.0,
            minimum=0.1,
            maximum=4.0,
            step=0.1,
            decimals=4,
            estimate=suggest_beta,
            estimated=True,
            formerly={1: 1.0},
        ),
    ),
    radius=radius,
    implementations={
        "cpu": Cpu(plan_cpu),
        "gpu": Cuda(plan_mri_nlm, (GLOBAL, SHARED, TUNED), GAPS),
    },
    borders=(Border.REFLECT,),
    check=check,
    resolve=resolve,
    estimates=estimates,
    measure=measure,
    diagnostic=NOISE_MAP,
)
