"""Whether what a denoiser removed is noise alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from kernelscope.images.judging.whiteness import removed_correlation, structure_notice

F = np.float32


def head(seed: int = 1) -> NDArray[np.float32]:
    structure = gaussian_filter(np.random.default_rng(seed).normal(0, 1, (40, 50, 60)), 1.5)
    return (300 + 40 * structure / structure.std()).astype(F)


def test_noise_alone_is_white() -> None:
    noise = np.random.default_rng(2).normal(0, 10, (40, 50, 60))
    found = removed_correlation((head() + noise).astype(F), head())
    assert found == pytest.approx(0, abs=0.02)
    assert structure_notice((head() + noise).astype(F), head(), "head") == ""


def test_structure_that_is_removed_is_reported() -> None:
    noise = np.random.default_rng(2).normal(0, 10, (40, 50, 60))
    noisy = (head() + noise).astype(F)
    smooth = gaussian_filter(noisy, 2)
    rest = (noisy - smooth)[smooth > smooth.mean()]
    assert rest.std() > 15
    found = removed_correlation(noisy, smooth)
    assert found is not None
    assert found > 0.5
    assert f"correlation {found:.2f}" in structure_notice(noisy, smooth, "head")


@pytest.mark.parametrize("exponent", [-66, 66])
def test_scale_does_not_matter(exponent: int) -> None:
    noisy = head() + np.random.default_rng(2).normal(0, 10, (40, 50, 60)).astype(F)
    smooth = gaussian_filter(noisy, 2)
    factor = F(2.0**exponent)
    assert removed_correlation(noisy * factor, smooth * factor) == pytest.approx(
        removed_correlation(noisy, smooth)
    )


def test_nothing_removed_or_nothing_there() -> None:
    for volume in (np.zeros((9, 9, 9), F), np.full((20, 30, 30), 7, F), head()[:1, :1, :1], head()):
        assert removed_correlation(volume, volume) is None
