"""The phantom head: its geometry, its signals, and the noise put on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelscope.base.errors import InvalidParameter
from kernelscope.images import phantom
from kernelscope.images.phantom import BRIGHTEST, Contrast, ScannerNoise, Tissue, add_noise, head
from tests.pairs import together

SIDE = 64


@pytest.fixture(scope="module")
def made() -> phantom.Phantom:
    return head((SIDE, SIDE, SIDE))


class TestHead:
    @together("shape", [(1, 1, 1), (1, 40, 30), (3, 5, 7), (20, 1, 1)])
    def test_any_size(self, shape):
        made = head(shape, ["T1w"], shading=0.2)
        assert made.labels.shape == made.truth[Contrast.T1W].shape == shape
        assert made.truth[Contrast.T1W].dtype == np.float32
        assert np.isfinite(made.truth[Contrast.T1W]).all()

    def test_every_tissue_is_there(self, made):
        counts = np.bincount(made.labels.ravel(), minlength=len(Tissue))
        assert (counts > 50).all()
        brain = counts[[Tissue.GREY, Tissue.WHITE]]
        assert brain.sum() > 0.3 * made.labels.size * math.pi / 6

    @pytest.mark.parametrize("contrast", Contrast)
    def test_signal_of_a_tissue_is_the_same_away_from_its_surface(self, made, contrast):
        truth = made.truth[contrast]
        assert truth.min() == 0
        assert truth.max() == pytest.approx(BRIGHTEST, rel=1e-5)
        for tissue in Tissue:
            expected = phantom.tissue_signals(contrast)[tissue]
            assert np.isclose(truth[made.labels == tissue], expected, rtol=1e-4).any()
        for tissue in (Tissue.BACKGROUND, Tissue.GREY, Tissue.WHITE):
            expected = phantom.tissue_signals(contrast)[tissue]
            pure = np.isclose(truth[made.labels == tissue], expected, rtol=1e-4)
            assert pure.mean() > 0.4

    def test_contrasts_are_those_of_radiology(self):
        t1, t2, pd = (phantom.tissue_signals(contrast) for contrast in Contrast)
        assert t1[Tissue.WHITE] > t1[Tissue.GREY] > t1[Tissue.CSF]
        assert t2[Tissue.CSF] > t2[Tissue.LESION] > t2[Tissue.GREY] > t2[Tissue.WHITE]
        assert pd[Tissue.CSF] > pd[Tissue.GREY] > pd[Tissue.WHITE]
        assert t1[Tissue.SKULL] == t2[Tissue.SKULL] == pd[Tissue.SKULL] == 0

    def test_signals_follow_the_sequences(self):
        """Ratios worked out by hand from Ernst's formula and the spin echo's."""
        t1, t2, pd = (phantom.tissue_signals(contrast) for contrast in Contrast)
        ernst = {
            tissue: density * (1 - e1) / (1 - math.sqrt(3) / 2 * e1) * math.exp(-10 / t2_star)
            for tissue, density, e1, t2_star in (
                (Tissue.WHITE, 0.77, math.exp(-0.036), 61),
                (Tissue.CSF, 1.0, math.exp(-18 / 2569), 58),
            )
        }
        ratio = ernst[Tissue.WHITE] / ernst[Tissue.CSF]
        assert t1[Tissue.WHITE] / t1[Tissue.CSF] == pytest.approx(ratio)
        decay = t2[Tissue.GREY] / pd[Tissue.GREY] / (t2[Tissue.CSF] / pd[Tissue.CSF])
        assert decay == pytest.approx(math.exp(-85 / 83 + 85 / 329))

    @pytest.mark.slow
    @pytest.mark.parametrize("angle", [0, 35])
    def test_edges_are_shares_of_voxels(self, monkeypatch, angle):
        """Against voxels cut into 4x4x4 pieces, for a body that is long and turned."""
        body = phantom._Ellipsoid(Tissue.SCALP, (0.1, -0.05, 0.2), (0.7, 0.3, 0.5), angle)
        monkeypatch.setattr(phantom, "_HEAD", (body,))
        shape, pieces = (36, 48, 60), 4
        share = head(shape, ["T1w"]).truth[Contrast.T1W] / BRIGHTEST

        z, y, x = ((np.arange(side * pieces) + 0.5) / (side * pieces) * 2 - 1 for side in shape)
        dx, dy, dz = np.meshgrid(x - 0.1, y + 0.05, z - 0.2, indexing="ij")
        turned = (dx + 1j * dy) * np.exp(-1j * np.radians(angle))
        inside = (turned.real / 0.7) ** 2 + (turned.imag / 0.3) ** 2 + (dz / 0.5) ** 2 <= 1
        cells = inside.T.reshape(36, pieces, 48, pieces, 60, pieces)
        expected = cells.mean(axis=(1, 3, 5))

        assert np.abs(share - expected).max() < 0.16
        assert np.abs(share - expected)[(expected > 0) & (expected < 1)].mean() < 0.04
        assert share.sum() == pytest.approx(expected.sum(), rel=0.005)
        assert share.sum() == pytest.approx(math.pi / 6 * 0.7 * 0.3 * 0.5 * share.size, rel=0.005)

    def test_only_the_lesions_tell_the_sides_apart(self, made):
        differing = made.labels != made.labels[:, :, ::-1]
        lesion = made.labels == Tissue.LESION
        assert lesion.any()
        assert not (differing & ~(lesion | lesion[:, :, ::-1])).any()

    def test_one_contrast_is_the_same_as_among_several(self, made):
        alone = head((SIDE, SIDE, SIDE), ["T2w"])
        assert list(alone.truth) == [Contrast.T2W]
        np.testing.assert_array_equal(alone.truth[Contrast.T2W], made.truth[Contrast.T2W])
        np.testing.assert_array_equal(alone.labels, made.labels)

    def test_shading_is_smooth_and_bounded(self, made):
        shaded = head((SIDE, SIDE, SIDE), ["PDw"], shading=0.3).truth[Contrast.PDW]
        bright = made.truth[Contrast.PDW] > 1
        factor = shaded[bright] / made.truth[Contrast.PDW][bright]
        assert 0.7 <= factor.min() < 0.85 < 0.97 < factor.max() <= 1
        plane = head((1, 8, 8), ["PDw"], shading=0.3)
        assert plane.truth[Contrast.PDW].max() <= BRIGHTEST

    @together(
        ("arguments", "message"),
        [
            (((0, 4, 4),), "4 voxels cannot be made"),
            (((4, 4),), "4×4 voxels cannot be made"),
            (((4, 4, 4), ["T3w"]), "“T3w” is unknown here. Use T1w, T2w, PDw."),
        ],
    )
    def test_refused(self, arguments, message):
        with pytest.raises(InvalidParameter) as caught:
            head(*arguments)
        assert message in str(caught.value)

    @pytest.mark.parametrize("shading", [-0.1, 1.1, math.nan])
    def test_refused_shading(self, shading):
        with pytest.raises(InvalidParameter, match="out of range"):
            head((2, 2, 2), shading=shading)


class TestVoxels:
    @pytest.mark.slow
    def test_the_head_is_as_large_as_a_head(self):
        """Voxels of 1 mm that fill 181 x 217 x 181 mm are those of the default size."""
        filled = head((181, 217, 181), ["T1w"]).truth[Contrast.T1W]
        part = head((61, 109, 181), ["T1w"], voxel=(1, 1, 1)).truth[Contrast.T1W]
        np.testing.assert_allclose(part, filled[60:121, 54:163], atol=0.02)

    @pytest.mark.slow
    def test_thick_slices_lie_where_they_are(self):
        """Every fourth slice of thin ones lies in the middle of a thick one, but for its rim."""
        thin = head((37 * 3, 128, 120), ["T2w"], voxel=(4 / 3, 1.7, 1.6))
        thick = head((37, 128, 120), ["T2w"], voxel=(4, 1.7, 1.6))
        middle = thin.labels[1::3]
        assert middle.shape == thick.labels.shape
        assert (middle == thick.labels).mean() > 0.99
        assert len(np.unique(thick.labels)) > 5

    def test_what_does_not_fit_is_cut_off(self):
        labels = head((20, 30, 30), ["T1w"], voxel=(2, 2, 2)).labels
        assert (labels > 0).all(axis=(1, 2)).sum() == 20, "inside the head everywhere"
        labels = head((100, 120, 100), ["T1w"], voxel=(3, 3, 3)).labels
        assert not labels[:15].any()
        assert not labels[:, :, -15:].any()

    @together("voxel", [(0, 1, 1), (1, -1, 1), (1, 1, np.inf), (np.nan, 1, 1)])
    def test_refused(self, voxel):
        with pytest.raises(InvalidParameter, match="has no size"):
            head((4, 4, 4), ["T1w"], voxel=voxel)


class TestNoise:
    SIGMA = 7.0

    def flat(self, value: float) -> np.ndarray:
        return np.full((32, 64, 64), value, np.float32)

    @pytest.mark.parametrize("kind", [ScannerNoise.GAUSSIAN, ScannerNoise.UNIFORM])
    def test_additive(self, kind):
        noisy = add_noise(self.flat(50), kind, self.SIGMA)
        assert noisy.voxels.dtype == noisy.sigma.dtype == np.float32
        assert noisy.voxels.mean() == pytest.approx(50, abs=0.1)
        assert noisy.voxels.std() == pytest.approx(self.SIGMA, rel=0.01)
        assert (noisy.sigma == self.SIGMA).all()
        fourth = ((noisy.voxels - 50) ** 4).mean() / self.SIGMA**4
        assert fourth == pytest.approx(3 if kind is ScannerNoise.GAUSSIAN else 1.8, rel=0.05)

    @pytest.mark.parametrize("signal", [0.0, 10.0, 200.0])
    def test_rician(self, signal):
        """The second moment of Rician noise is A² + 2 sigma²; without signal it is Rayleigh's."""
        voxels = add_noise(self.flat(signal), "rician", self.SIGMA).voxels
        assert (voxels >= 0).all()
        square = (voxels.astype(np.float64) ** 2).mean()
        assert square == pytest.approx(signal**2 + 2 * self.SIGMA**2, rel=0.01)
        if signal == 0:
            assert voxels.mean() == pytest.approx(self.SIGMA * math.sqrt(math.pi / 2), rel=0.01)

    def test_varying(self):
        noisy = add_noise(self.flat(500), ScannerNoise.VARYING_RICIAN, self.SIGMA)
        assert noisy.sigma.max() == pytest.approx(3 * self.SIGMA, rel=0.01)
        assert noisy.sigma[0, 0, 0] == pytest.approx(self.SIGMA, rel=0.02)
        assert np.abs(np.diff(noisy.sigma, axis=1)).max() < 0.1 * self.SIGMA
        scores = (noisy.voxels - 500) / noisy.sigma
        for region in (np.s_[12:20, 24:40, 24:40], np.s_[:4, :16], np.s_[-4:, -16:]):
            assert scores[region].std() == pytest.approx(1, rel=0.05)

    def test_seeds(self):
        flat = self.flat(50)
        first, again, other = (
            add_noise(flat, ScannerNoise.RICIAN, 5, seed).voxels for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        for one, two in ((first, other), (first[:-1], first[1:])):
            correlation = np.corrcoef(one.ravel(), two.ravel())[0, 1]
            assert abs(correlation) < 0.02

    @together("kind", ScannerNoise)
    def test_none(self, kind):
        noisy = add_noise(self.flat(50), kind, 0)
        np.testing.assert_array_equal(noisy.voxels, 50)

    @together(
        ("kind", "sigma", "message"),
        [
            ("pink", 1, "“pink” is unknown here."),
            ("rician", -1, "A sigma of -1 is out of range."),
            ("rician", math.nan, "A sigma of nan"),
            ("rician", math.inf, "A sigma of inf"),
        ],
    )
    def test_refused(self, kind, sigma, message):
        with pytest.raises(InvalidParameter, match=message):
            add_noise(self.flat(0), kind, sigma)
