"""Masks of voxels on a GPU: the bytes of NumPy, at every level, in one piece and in slabs."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.run import execute
from kernelscope.schema.borders import Border
from tests.contract.test_cubes import BORDERS, TYPES, assert_equal, make, request_for
from tests.filters.cubes import CASES, expected
from tests.pairs import all_pairs

pytestmark = pytest.mark.gpu

each = pytest.mark.parametrize("filter_id", filters.in_3d())

SHAPES = ((1, 1, 1), (4, 1, 5), (3, 2, 11), (13, 37, 71))


@each
def test_every_level_equals_the_oracle(filter_id: str, shared_gpu: CudaBackend) -> None:
    levels = [level.id for level in filters.get(filter_id).levels("gpu")]
    for row in all_pairs(CASES[filter_id], BORDERS, TYPES, SHAPES, levels):
        case, border, dtype, shape, level = row
        voxels = make(shape, dtype)
        request = request_for(filter_id, voxels, case, border, device=Device.GPU, level=level)
        made = execute(request, {"gpu": shared_gpu}).scan.volumes[0].voxels
        assert_equal(made, expected(filter_id, voxels, case, border), row)


@each
def test_slabs_have_the_bytes_of_the_whole(filter_id: str, shared_gpu: CudaBackend) -> None:
    """Memory for a few slices and their halo at a time."""
    voxels = make((40, 64, 96), "int16")
    for level, border in all_pairs(filters.get(filter_id).levels("gpu"), BORDERS):
        case = CASES[filter_id][0]
        results = []
        for limit in (None, 1 << 20):
            request = request_for(
                *(filter_id, voxels, case, border),
                device=Device.GPU,
                level=level.id,
                memory_limit=limit,
            )
            results.append(execute(request, {"gpu": shared_gpu}).scan.volumes[0].voxels)
        np.testing.assert_array_equal(results[1], results[0], f"{level.id}, {border}")


def test_wide_masks_run_at_another_level(shared_gpu: CudaBackend) -> None:
    voxels, wide = make((9, 21, 33), "uint8"), {"sigma": 30.0}
    made = []
    for level in ("constant", "shared"):
        request = request_for(
            "gaussian_3d", voxels, wide, Border.REFLECT, device=Device.GPU, level=level
        )
        result = execute(request, {"gpu": shared_gpu})
        assert any("do not fit" in each for each in result.notices) == (level == "shared")
        made.append(result.scan.volumes[0].voxels)
    np.testing.assert_array_equal(made[1], made[0])
