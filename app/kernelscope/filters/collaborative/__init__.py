"""Collaborative filtering: blocks that are alike are filtered together, as a stack.

The picture has many blocks of 8×8 pixels that are nearly alike. For every third block along both
axes, those most like it are searched for up to 19 pixels away and stacked. Each is transformed, and
then the stack along its third axis: the detail that the blocks share, and most of that of each by
itself, is now in few coefficients, while the noise of sigma is in all of them alike.

    g = mean of all blocks that cover a pixel, weighted by 1 / the coefficients that were kept

The first stage compares noisy blocks, stacks up to 16 and keeps the coefficients of wavelets above
about 2.7 sigma. The second compares blocks of the first result, the guide, stacks up to 32 of the
noisy picture, and multiplies the coefficients of the cosine transform by b² / (b² + v), where b is
that of the guide (Wiener's filter) and v about sigma². With sigma 10 and v 100, a coefficient whose
b is 30 has the factor 900 / 1000 = 0.9. Blocks that are alike overlap and share noise: sums of many
have more of it than those of other blocks would have, and differences less, so v is 0.7 to 2
sigma² (`model`). Blocks are weighed by 1 / the sum of the squares of their stack's factors, and by
Kaiser's window, so that the middle of a block counts more than its rim.

Colours are filtered as (R + G + B) / √3, (R - B) / √2 and (R - 2G + B) / √6, in which the noise is
as large as in R, G and B. Blocks are compared in R + G + B alone, where it is least, and all three
have the same stacks. `chroma` multiplies sigma in the last two.

Correlated noise that cannot be made white, as that of demosaiced photos, has a sigma for each
coefficient of a block, from the mean spectrum of the planes. Alike blocks share more of it, so it
grows faster with the sums (`model`). Other correlated noise, and that of cameras, is made
white first (`shared.stabilise`).

Pixels get blocks in any order, so the sums are of integers: 4096 stand for sigma. What is summed is
the noise that the blocks lose, which is small whatever the samples are; the picture less that is
the result. All levels compute the same floats before that, and so the same bytes.

Sources: Dabov, Foi, Katkovnik and Egiazarian, "Image denoising by sparse 3-D transform-domain
collaborative filtering", IEEE Transactions on Image Processing 16, 2007 (the method, BM3D, and for
colours C-BM3D); Lebrun, "An analysis and implementation of the BM3D image denoising method", Image
Processing On Line 2, 2012.
"""

from __future__ import annotations

from kernelscope.filters.collaborative.cpu import plan_cpu
from kernelscope.filters.collaborative.cuda import GAPS, plan_cuda
from kernelscope.filters.collaborative.model import GRID, SETTING, estimate_sigma, radius
from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.sigma_parameters import CHROMA, STRENGTH, sigma_parameter
from kernelscope.filters.shared.stabilise import NOISE, WHITENING_STEPS, with_spectra
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import Cpu, Disturbance, FilterSpec, Remedy, Unit
from kernelscope.schema.launch import Cuda
from kernelscope.schema.levels import GLOBAL, SHARED, TUNED

SPEC = FilterSpec(
    id="collaborative",
    name="Collaborative filtering",
    category="Denoising",
    summary="Filters blocks that are alike together: keeps the detail they share, not noise.",
    synonyms=("denoise", "bm3d", "block matching", "wavelet", "wiener", "shrinkage"),
    source="Dabov, Foi, Katkovnik and Egiazarian, IEEE TIP 16, 2007; Lebrun, IPOL 2012",
    parameters=(sigma_parameter(estimate_sigma), NOISE, STRENGTH, CHROMA, SETTING),
    radius=radius,
    restores=True,
    unit=Unit.WHITE,
    resolve=with_spectra,
    noise=WHITENING_STEPS,
    remedy=Remedy(disturbance=Disturbance.NOISE, decibels=30.84),
    # Blocks are parts of the picture and of eight pixels around it. `valid` and `keep` would leave
    # out the 90 pixels that a result may depend on; a block of `reduce` would have fewer cells; and
    # with `wrap` blocks would have to be compared across both ends.
    borders=(Border.REFLECT, Border.MIRROR, Border.NEAREST, Border.CONSTANT),
    # Planes, guides, and sums and weights of both stages; each thread has sums of its own as well.
    crop=Crop(grid=GRID, floats=12),
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled_blocks.sliding_dct, stand_in="sliding DCT"),
        "gpu": Cuda(plan_cuda, (GLOBAL, SHARED, TUNED), GAPS),
    },
    explanation=Explanation(
        formula=r"g = u - \frac{\sum_G w_G\, T_G^{-1}\bigl((1 - \gamma)\, T_G u\bigr)}"
        r"{\sum_G w_G}, \quad \gamma_1 = [\,|T_G u| > 2.7 \sigma\,], \quad"
        r" \gamma_2 = \frac{b^2}{b^2 + \sigma^2}",
        use="For Gaussian noise: the cleanest result of the filters here on most pictures, above "
        "all where a picture repeats itself, as text, fabric and walls do. On smooth pictures with "
        "strong noise non-local means can be cleaner. *Estimate* finds sigma.",
        avoid="Specks are no Gaussian noise: use the median. Texture as fine as noise is taken "
        "for it where sigma is estimated: set it, or lower the strength. The sliding DCT is "
        "quicker, to look at settings.",
        sample="camera-gaussian.png",
    ),
)
