"""Sliding DCT of volumes: every voxel becomes the mean of all 4×4×4 blocks around it, less noise.

The noise is made one of sigma 1 first: voxels are divided by sigma, which may vary over the head,
and Rician noise is made Gaussian. The block at every place is transformed by the discrete cosine
transform. The noise is in all 64 coefficients alike, the volume in few. A first pass keeps those
above 3 sigma, and the mean of the block:

    g = mean of all blocks that cover a voxel, weighted by 1 / the coefficients that were kept

A second pass multiplies each coefficient of the noisy volume by b² / (b² + sigma²), where b is that
of the first result (Wiener's filter), with weights of 1 / the sum of the squares of these factors.
The result gets its sigma back, and its mean as it would be without Rician noise.

Several volumes are filtered one by one.

All levels compute the same floats in the same order, without multiply-adds that round once: blocks
are transformed along x, y and z; those that cover a voxel are added from the first slice to the
last, these sums from top to bottom, and those from left to right. Results are equal to the last
bit.

Sources: Manjón, Coupé, Buades, Collins and Robles, "New methods for MRI denoising based on
sparseness and self-similarity", Medical Image Analysis 16, 2012 (ODCT3D); the second pass after
Dabov, Foi, Katkovnik and Egiazarian, "Image denoising by sparse 3-D transform-domain collaborative
filtering", IEEE Transactions on Image Processing 16, 2007; Rician noise after Foi, "Noise
estimation and removal in MR imaging: the variance-stabilization approach", ISBI 2011.
"""

from __future__ import annotations

from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.volume_noise import RIM, StabilisedSpec
from kernelscope.filters.volume_dct.cpu import plan_cpu
from kernelscope.filters.volume_dct.cuda import GAPS, plan_cuda
from kernelscope.filters.volume_dct.model import radius
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import Cpu, Disturbance, Remedy
from kernelscope.schema.launch import Cuda
from kernelscope.schema.levels import GLOBAL, SHARED

SPEC = StabilisedSpec(
    id="volume_dct",
    name="Volume DCT",
    summary="Removes what is weaker than noise from the frequencies of all 4×4×4 blocks.",
    synonyms=("denoise", "cosine", "frequency", "wiener", "odct3d", "rician", "brain", "volume"),
    source="Manjón et al., MRI denoising by sparseness and self-similarity, 2012 (ODCT3D)",
    radius=radius,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=35.79),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.volume_dct),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = \sigma f^{-1}\left( \frac{\sum_B w_B\, T^{-1}(\gamma\, T v_B)}{\sum_B w_B}"
        r" \right), \quad v = f(u / \sigma), \quad"
        r" \gamma_1 = [\,|T v_B| > 3\,], \quad \gamma_2 = \frac{b^2}{b^2 + 1}",
        use="For scans of one volume, and as a quick preview: in real heads it is nearer to the "
        "one without noise than non-local means. Noise may be Rician and vary over the head.",
        avoid="Noise that interpolation has smoothed is not found by its sigma: set a larger one. "
        "*Volume collaborative* takes longer and keeps more.",
        example=RIM,
        sample="",
    ),
)
