"""Sliding DCT: every pixel becomes the mean of all blocks around it, noise removed from each.

The 8×8 block at every place of the picture is transformed by the discrete cosine transform. The
noise of sigma is in all 64 coefficients alike, the picture in few. A first pass keeps those above
2.7 sigma, and the mean of the block:

    g = mean of all blocks that cover a pixel, weighted by 1 / the coefficients that were kept

A second pass multiplies each coefficient of the noisy picture by b² / (b² + sigma²), where b is
that of the first result (Wiener's filter), with weights of 1 / the sum of the squares of these
factors. With sigma 10, a coefficient of 26 is noise to the first pass, one of 30 is not; to the
second, one whose b is 30 has the factor 900 / 1000 = 0.9.

Colours are filtered as (R + G + B) / √3, (R - B) / √2 and (R - 2G + B) / √6: the noise in these is
as large as in R, G and B, and hardly any of the picture is in the last two. `chroma` multiplies
sigma in these.

Correlated noise has a sigma for each frequency, and camera noise is made white first
(`shared.noise_model`, `shared.stabilise`).

All levels compute the same floats in the same order, without multiply-adds that round once: blocks
are transformed along x, then along y; those that cover a pixel are added from the top one to the
bottom one, and these sums from left to right. Results are equal to the last bit.

Sources: Yu and Sapiro, "DCT image denoising: a simple and effective image denoising algorithm",
Image Processing On Line 1, 2011; the second pass after Dabov, Foi, Katkovnik and Egiazarian, "Image
denoising by sparse 3-D transform-domain collaborative filtering", IEEE Transactions on Image
Processing 16, 2007.
"""

from __future__ import annotations

from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.sigma_parameters import CHROMA, STRENGTH, sigma_parameter
from kernelscope.filters.shared.stabilise import NOISE, NOISE_STEPS, with_spectra
from kernelscope.filters.sliding_dct.cpu import estimate_sigma, plan_cpu, radius
from kernelscope.filters.sliding_dct.cuda import GAPS, plan_cuda
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import EDGE, Example, Explanation
from kernelscope.schema.filter import Cpu, Disturbance, FilterSpec, Remedy, Unit
from kernelscope.schema.launch import Cuda
from kernelscope.schema.levels import GLOBAL, SHARED

SPEC = FilterSpec(
    id="sliding_dct",
    name="Sliding DCT",
    category="Denoising",
    summary="Keeps the frequencies of all 8×8 blocks that are stronger than the noise.",
    synonyms=("denoise", "cosine", "frequency", "wiener", "shrinkage"),
    source="Yu and Sapiro, DCT image denoising, IPOL 2011; second pass after Dabov et al. 2007",
    parameters=(sigma_parameter(estimate_sigma), NOISE, STRENGTH, CHROMA),
    radius=radius,
    restores=True,
    unit=Unit.WHITE,
    resolve=with_spectra,
    noise=NOISE_STEPS,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=30.42),
    # A block is transformed as a whole: none has fewer cells.
    borders=tuple(border for border in Border if border is not Border.REDUCE),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.sliding_dct),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = \frac{\sum_B w_B\, T^{-1}(\gamma\, T u_B)}{\sum_B w_B}, \quad"
        r" \gamma_1 = [\,|T u_B| > 2.7 \sigma\,], \quad"
        r" \gamma_2 = \frac{b^2}{b^2 + \sigma^2}",
        use="For Gaussian noise: quick enough to be watched, and in most pictures closer to the "
        "one without noise than non-local means. *Estimate* finds sigma.",
        avoid="Specks are no Gaussian noise: use the median. Texture as fine as noise is taken "
        "for it where sigma is estimated: set it, or lower the strength.",
        example=Example(patch=EDGE, parameters={"sigma": 4.0}, radius=3),
        sample="camera-gaussian.png",
    ),
)
