"""Filters whose mask goes through slices, on a GPU: the bytes of the oracle, also in slabs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.run import execute
from tests.contract.test_cubes import (
    BORDERS,
    SPECS,
    TYPES,
    assert_equal,
    each,
    make,
    request_for,
)
from tests.filters.cubes import CASES, expected
from tests.pairs import all_pairs

pytestmark = pytest.mark.gpu

SHAPES = ((1, 9, 7), (4, 1, 5), (13, 21, 70))


@each
def test_every_level_equals_the_oracle(filter_id: str, gpu: CudaBackend) -> None:
    levels = [level.id for level in SPECS[filter_id].levels("gpu")]
    for row in all_pairs(CASES[filter_id], BORDERS, TYPES, SHAPES, levels):
        case, border, dtype, shape, level = row
        voxels = make(shape, dtype)
        request = request_for(filter_id, voxels, case, border, device=Device.GPU, level=level)
        made = execute(request, {"gpu": gpu}).scan.volumes[0].voxels
        assert_equal(made, expected(filter_id, voxels, case, border), row)


@each
def test_slabs_equal_the_whole(
    filter_id: str, gpu: CudaBackend, rows_of_a_slab: Callable[[int], None]
) -> None:
    rows = list(all_pairs(CASES[filter_id], BORDERS, SPECS[filter_id].levels("gpu")))
    voxels = make((13, 21, 70), "float32")
    requests = [
        request_for(filter_id, voxels, case, border, device=Device.GPU, level=level.id)
        for case, border, level in rows
    ]
    whole = [execute(each, {"gpu": gpu}).scan.volumes[0].voxels for each in requests]
    rows_of_a_slab(3)
    for row, request, wanted in zip(rows, requests, whole, strict=True):
        made = execute(request, {"gpu": gpu}).scan.volumes[0].voxels
        np.testing.assert_array_equal(made, wanted, str(row))
