"""Collaborative filtering of volumes: cubes that are alike are filtered together.

The noise is made one of sigma 1 first: voxels are divided by sigma, which may vary over the head,
and Rician noise is made Gaussian. Reference cubes of 4×4×4 voxels lie 3 voxels apart, and around
each one up to 32 that are most alike are found in a window of 11×11×11 places. They become a group:
each is transformed by the discrete cosine transform, and the group by Haar's, so that the parts
that all share are in few coefficients. A first stage keeps those above 3.2 sigma; a second one
finds the groups in the first result, and multiplies the coefficients of the noisy volume by
b² / (b² + sigma²), where b are those of the first result (Wiener's filter):

    g = mean of all cubes that cover a voxel, weighted by 1 / the coefficients that were kept, or
        1 / the sum of the squares of the factors, and by a window that is less at their rims

The result gets its sigma back, and its mean as it would be without Rician noise. Several volumes
are filtered one by one.

Cubes are added up as whole numbers, of 1 / 2^26 sigma, so that their order does not matter: all
levels have the same bytes.

Sources: Maggioni, Katkovnik, Egiazarian and Foi, "Nonlocal transform-domain filter for volumetric
data denoising and reconstruction", IEEE Transactions on Image Processing 22, 2013 (BM4D); Rician
noise after Foi, "Noise estimation and removal in MR imaging: the variance-stabilization approach",
ISBI 2011.
"""

from __future__ import annotations

from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.volume_noise import RIM, StabilisedSpec
from kernelscope.filters.volume_collaborative.cpu import plan_cpu, radius
from kernelscope.filters.volume_collaborative.cuda import GAPS, plan_cuda
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import Cpu, Disturbance, Remedy
from kernelscope.schema.launch import Cuda
from kernelscope.schema.levels import GLOBAL, SHARED, TUNED

SPEC = StabilisedSpec(
    id="volume_collaborative",
    name="Volume collaborative",
    summary="Filters cubes that are alike together: keeps most of real heads, and takes longest.",
    synonyms=("denoise", "block matching", "bm4d", "wiener", "rician", "brain", "volume"),
    source="Maggioni et al., IEEE Transactions on Image Processing 22, 2013 (BM4D)",
    radius=radius,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=36.86),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.volume_dct, stand_in="volume DCT"),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED, TUNED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = \sigma f^{-1}\left( \frac{\sum_G w_G\, T^{-1}(\gamma\, T v_G)}{\sum_G w_G}"
        r" \right), \quad v = f(u / \sigma), \quad"
        r" \gamma_1 = [\,|T v_G| > 3.2\,], \quad \gamma_2 = \frac{b^2}{b^2 + 1}",
        use="For the cleanest result of one volume, where some seconds do not matter. Noise may be "
        "Rician and vary over the head.",
        avoid="Noise that interpolation has smoothed is not found by its sigma: set a larger one. "
        "*Volume DCT* is the quick one.",
        example=RIM,
        sample="",
    ),
)
