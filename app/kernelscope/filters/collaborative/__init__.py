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
coefficient of a block in each plane. Alike blocks share more of it, so it grows faster with the
sums (`model`). Other correlated noise, and that of cameras, is made white first
(`shared.stabilise`).

Pixels get blocks in any order, so the sums are of integers: 4096 stand for sigma. What is summed is
the noise that the blocks lose, which is small whatever the samples are; the picture less that is
the result. All levels compute the same floats before that, and so the same bytes.

Sources: Dabov, Foi, Katkovnik and Egiazarian, "Image denoising by sparse 3-D transform-domain
collaborative filtering", IEEE Transactions on Image Processing 16, 2007 (the method, BM3D, and for
colours C-BM3D); Lebrun, "An analysis and implementation of the BM3D image denoising method", Image
Processing On Line 2, 2012.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.collaborative.cpu import plan_cpu
from kernelscope.filters.collaborative.model import (
    GRID,
    MARGIN,
    SETTING,
    SIDE,
    WIENER,
    Numbers,
    numbers,
    radius,
    search,
)
from kernelscope.filters.shared import uncompiled_blocks
from kernelscope.filters.shared.sigma_parameters import CHROMA, STRENGTH, sigma_parameter
from kernelscope.filters.shared.stabilise import (
    NOISE,
    WHITENING_STEPS,
    estimate_sigma,
    with_spectra,
)
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop
from kernelscope.schema.explanation import Explanation
from kernelscope.schema.filter import Cpu, Disturbance, FilterSpec, Remedy, Unit
from kernelscope.schema.launch import BLOCK, Cuda, CudaPlan, CudaTask, Launch, Scratch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.samples import colour_count

GAPS = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    CONSTANT.id: "There is no mask: the factors of the transform are numbers in the code.",
    TEXTURE.id: "The picture is padded once, so that no pass treats a border.",
}

TILE = (16, 8)
"""Blocks of the grid whose stacks share their sums: macros ``TILE_COLUMNS``, ``TILE_ROWS``."""

MEAN = (32, 32)
"""Pixels of a block of threads of *guide* and *finish*: the second is macro ``MEAN_ROWS``."""

WARPS = 4  # of a block of threads of *groups*: the macro
_GROUP_WARPS = 8  # the same at level *tuned*: two such blocks share a multiprocessor

_SLOTS, _SUM_PITCH, _STACK_PITCH = 12, 104, 36
"""Of a block's queue, the tile's sums and a stack's coefficients at *tuned*: see the kernel."""

_KEY = 2**21
"""Squared differences below this fit into the keys of the tuned *match*, which is for bytes."""

_STACK_BYTES = WARPS * SIDE**2 * 33 * 4


def plan_cuda(task: CudaTask) -> CudaPlan:
    """Return the launches of a level; ``collaborative.cu`` explains them."""
    found = numbers(task.dtype, task.shape[2], task.parameters)
    if found is None:
        copy = Launch("collaborative_copy", task.defines(), BLOCK, 2.0 * task.dtype.itemsize, 1.0)
        return CudaPlan((copy,))
    step, reach = search(task.parameters)
    level, tuned = task.level, task.level == TUNED.id
    of_bytes = tuned and task.dtype == np.uint8 and max(found.tolerances) < _KEY
    colours = colour_count(task.shape[2])
    grey_bytes = tuned and task.dtype == np.uint8 and colours == 1
    halo = 2 * (SIDE - 1 + 2 * reach)
    width = task.output_shape[1] + 2 * MARGIN
    inner = replace(task, border=Border.REFLECT)
    floats = replace(inner, dtype=np.dtype(np.float32))
    plain = {"GRID_STEP": step, "REACH": reach}
    region = tuple((side - 1) * step + 2 * reach + SIDE for side in TILE)
    region_bytes = 2 * 4 * region[0] * region[1]
    across = search(task.parameters).count(width)
    tiles = -(-across // TILE[0]) * colours
    columns, rows_compared = ((side - 1) * step + 2 * reach + SIDE for side in BLOCK)
    cells_bytes = 4 * columns * rows_compared
    tall = rows_compared + step
    norms = -(-(columns - SIDE + 1) // step) * step * (tall - SIDE + 1)
    match_bytes = 4 * (tall * ((columns + 7) // 4) + norms + _SLOTS * BLOCK[0] * BLOCK[1])
    work = 64 * 2 * (2 * reach + 1) ** 2 * 2 / step**2

    def launch(
        kernel: str,
        *scratch: str,
        stage: int = 0,
        operations: float = 1.0,
        defines: dict[str, str] | None = None,
        tile: tuple[int, int] = BLOCK,
        block: tuple[int, int] = BLOCK,
        shared_bytes: int = 0,
    ) -> Launch:
        return Launch(
            kernel=f"collaborative_{kernel}",
            # The stages have different constants, so that no module may serve both.
            defines=inner.defines(**plain, WIENER_STAGE=stage) if defines is None else defines,
            block=block,
            tile=tile,
            constants={"numbers": _constants(found, stage)},
            scratch=scratch,
            shared_bytes=shared_bytes,
            bytes_per_sample=8.0,
            operations_per_sample=operations,
        )

    def stage(number: int) -> tuple[Launch, ...]:
        cells, guides = ("guide_cells", "guides") if number else ("cells", "planes")
        # Samples are floats by then: types and borders share the code, and a stage is one module.
        most = WIENER if number else found.most
        usual = floats.defines(**plain, WIENER_STAGE=number, MOST=most)
        quick = {**usual, "TUNED": "1", "GROUP_WARPS": str(_GROUP_WARPS)}
        if grey_bytes:
            quick["BYTES"] = "1"
        own = quick if tuned else usual
        match = launch(
            f"{'global' if level == GLOBAL.id else 'shared'}_match",
            *(cells, "places", "counts"),
            stage=number,
            operations=work,
            defines=usual,
            tile=(BLOCK[0] * step, BLOCK[1] * step),
            shared_bytes=0 if level == GLOBAL.id else cells_bytes,
        )
        match = replace(match, frame=MARGIN)
        groups = launch(
            f"{level}_groups",
            *("planes", guides, "places", "counts", "tiles"),
            stage=number,
            operations=work / 2,
            defines=own,
            tile=(TILE[0] * step, TILE[1] * step),
            block=(32, _GROUP_WARPS if tuned else WARPS),
        )
        if level == GLOBAL.id:
            groups = replace(groups, scratch=(*groups.scratch, "work"))
        elif tuned:
            below = region[1] + SIDE
            pixels = -(-(region[0] | 1) * below // 4) * 4
            stacks = _GROUP_WARPS * (SIDE**2 // 2 * _STACK_PITCH + 32)
            tile = 4 * (stacks + _SUM_PITCH * region[1] + pixels)
            bytes_ = (region[0] + 7) // 4 * 4 * below if grey_bytes else 0
            groups = replace(groups, shared_bytes=tile + bytes_)
        else:
            groups = replace(groups, shared_bytes=_STACK_BYTES + region_bytes)
        if of_bytes:
            match = replace(
                match,
                kernel="collaborative_tuned_match",
                defines=quick,
                block=(32, 4),
                shared_bytes=match_bytes,
            )
        return match, groups

    pad = replace(launch("pad", "planes", "cells"), defines=task.defines(**plain))

    def rows(lines: int) -> Scratch:
        return Scratch(4 * lines * width, 2 * halo * 4 * lines * width, margin=MARGIN)

    def grid(size: int, each: int) -> Scratch:
        """Return a buffer of `size` bytes for every `each` rows, and some more."""
        return Scratch(-(-size // each), (2 * halo // each + 12) * size)

    scratch = {
        "planes": rows(colours),
        "guides": rows(colours),
        "cells": rows(1),
        "guide_cells": rows(1),
        "places": grid(2 * WIENER * across, step),
        "counts": grid(4 * across, step),
        "tiles": grid(region_bytes * tiles, TILE[1] * step),
    }
    if level == GLOBAL.id:
        scratch["work"] = grid(_STACK_BYTES * tiles, TILE[1] * step)
    guide = launch("guide", "planes", "tiles", "guides", "guide_cells", operations=80, tile=MEAN)
    finish = launch("finish", "tiles", stage=1, operations=80, tile=MEAN)
    return CudaPlan((pad, *stage(0), guide, *stage(1), finish), scratch)


def _constants(found: Numbers, stage: int) -> NDArray[np.float32]:
    """Return the constant ``numbers``."""
    first = [found.tolerances[stage], found.part, 0, found.quotient]
    levels = found.variances if stage else found.thresholds
    # The kernel counts coefficients along x first.
    norms = found.norms[stage].reshape(-1, SIDE, SIDE).transpose(0, 2, 1).reshape(len(levels), -1)
    planes = np.zeros((3, 6 + SIDE**2), np.float32)
    planes[: len(levels)] = np.hstack([levels, norms])
    return np.concatenate([np.array(first, np.float32), found.window, planes.ravel()])


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
