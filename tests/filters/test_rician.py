"""Rician noise made Gaussian: sigma is 1 for every signal, and the inverse has no bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kernelscope.filters.shared.rician import restored, stabilised, stabiliser


@pytest.mark.parametrize(
    "signal", [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 11.0, 14.0, 16.0, 60.0]
)
def test_the_noise_is_one_and_the_mean_is_the_signal(signal: float) -> None:
    tables = stabiliser(True)
    z = np.arange(int((signal + 9) * 400)) / 400
    shares = stats.rice.pdf(z, signal)
    shares /= shares.sum()
    f = np.array([stabilised.function(np.float32(each), tables) for each in z], float)
    mean = (shares * f).sum()
    assert np.sqrt((shares * (f - mean) ** 2).sum()) == pytest.approx(1, abs=0.03)
    assert restored.function(np.float32(mean), tables) == pytest.approx(signal, abs=2e-4)


def test_both_directions_rise_and_join() -> None:
    tables = stabiliser(True)
    z = np.arange(0, 4000, dtype=np.float32) / 100
    f = np.array([stabilised.function(each, tables) for each in z])
    steps = np.diff(f) * 100
    assert steps.min() > 0.6
    assert np.abs(steps[1500:] - 1).max() < 2e-3  # at 16 sigma the tables end
    back = np.array([restored.function(each, tables) for each in f])
    assert np.diff(back).min() >= 0
    assert np.abs(np.diff(back)[1000:] * 100 - 1).max() < 0.02


def test_below_the_mean_without_signal_there_is_none() -> None:
    tables = stabiliser(True)
    for mean in (-5.0, 0.0, float(tables.lowest)):
        assert restored.function(np.float32(mean), tables) == 0
    assert stabilised.function(np.float32(0), tables) == 0


def test_large_magnitudes_come_back() -> None:
    """As large as they are where sigma is a millionth of the largest voxel."""
    tables = stabiliser(True)
    for magnitude in (1e3, 1e5, 1e6):
        stable = stabilised.function(np.float32(magnitude), tables)
        assert restored.function(stable, tables) == pytest.approx(magnitude, rel=1e-6)


def test_gaussian_noise_stays_as_it_is() -> None:
    tables = stabiliser(False)
    for value in (-3.0, 0.0, 1e6):
        assert stabilised.function(np.float32(value), tables) == np.float32(value)
        assert restored.function(np.float32(value), tables) == np.float32(value)
