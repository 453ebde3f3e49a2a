"""Figures of volumes; `tests/cli/test_volumes.py` holds them against scikit-image's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelscope.base.errors import Cancelled, Incomparable
from kernelscope.images.judging.metrics import judge_volume


@pytest.mark.parametrize("scale", [1, 1000])
def test_errors_are_in_units_of_the_voxels_and_psnr_knows_none(scale: int) -> None:
    reference = np.linspace(0, scale, 3 * 8 * 9, dtype=np.float32).reshape(3, 8, 9)
    judged = judge_volume(reference - np.float32(0.1 * scale), reference)
    assert judged.bias == pytest.approx(-0.1 * scale)
    assert judged.mae == pytest.approx(0.1 * scale)
    assert judged.mse == pytest.approx(0.01 * scale**2)
    assert judged.psnr == pytest.approx(20, abs=1e-4)


def test_black_references_and_small_slices() -> None:
    black = np.zeros((2, 3, 9), np.int16)
    judged = judge_volume(black + np.int16(2), black)
    assert (judged.mse, judged.ssim, judged.bias) == (4, None, 2)
    assert judge_volume(black, black).psnr == math.inf


def test_other_shapes_are_refused() -> None:
    with pytest.raises(Incomparable, match="9×8×3 and 9×8×2 voxels"):
        judge_volume(np.zeros((3, 8, 9)), np.zeros((2, 8, 9)))


def test_can_be_cancelled() -> None:
    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        judge_volume(np.zeros((3, 8, 9)), np.zeros((3, 8, 9)), stop)
