"""The filter that is proposed for a picture or a volume."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from kernelscope.engine import denoising
from kernelscope.engine.denoising import Proposal, propose, remedies
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.images.image import Image
from kernelscope.images.judging.noise import impulse_share
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import Disturbance
from kernelscope.schema.samples import Kind


def clean(name: str) -> NDArray[np.float32]:
    picture = getattr(data, name)()
    rows, columns = (slice(max(0, n - 256) // 2, (n + 256) // 2) for n in picture.shape[:2])
    made = (picture[rows, columns] / 255).astype(np.float32)
    return made.reshape(*made.shape[:2], -1)


def step_of(proposal: Proposal) -> Step:
    return Step.create(proposal.filter.id, proposal.values)


def specks(planes: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    made, draws = planes.copy(), np.random.default_rng(5).random(planes.shape[:2])
    made[draws < share / 2] = 0
    made[draws > 1 - share / 2] = 1
    return made


def normal(planes: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    noise = np.random.default_rng(6).normal(0, sigma / 255, planes.shape)
    return np.clip(planes + noise, 0, 1).astype(np.float32)


def photons(planes: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(7).poisson(planes * count) / count
    return np.clip(drawn, 0, 1).astype(np.float32)


@pytest.mark.parametrize("name", ["camera", "coins", "page", "grass", "coffee", "retina"])
def test_specks_are_found_and_noise_is_not_taken_for_them(name: str) -> None:
    planes = clean(name)
    for other in (planes, normal(planes, 10), normal(planes, 50), photons(planes, 20)):
        assert impulse_share(other) == 0
    for share in (0.02, 0.1):
        assert impulse_share(specks(planes, share)) == pytest.approx(share, rel=0.25)
    assert impulse_share(specks(planes, 0.4)) == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize("name", ["chelsea", "immunohistochemistry", "retina", "astronaut"])
@pytest.mark.parametrize("count", [6, 12, 25, 50])
def test_noise_of_dark_photos_in_the_curve_of_a_screen_is_no_specks(name: str, count: int) -> None:
    """The curve makes the noise of dark pixels large, and much of it is clipped at black."""
    assert impulse_share(photons(clean(name) ** 2.2, count) ** (1 / 2.2)) == 0


def test_a_mask_is_nothing_but_specks() -> None:
    mask = (np.random.default_rng(0).random((40, 48)) > 0.5).astype(np.uint8) * 255
    assert propose(Image.from_array(mask)).line == "Median: specks in 100 % of the pixels"


def test_specks_of_each_channel_by_itself() -> None:
    planes = clean("astronaut")
    made, draws = planes.copy(), np.random.default_rng(5).random(planes.shape)
    made[draws < 0.025], made[draws > 0.975] = 0, 1
    assert impulse_share(made) == pytest.approx(0.05, rel=0.25)


def test_specks_at_the_edge_have_no_neighbours_but_their_own() -> None:
    planes = np.full((64, 64, 1), 0.15, np.float32)
    planes[0, ::2] = 0
    assert impulse_share(planes) == pytest.approx(32 / 64**2)


def test_specks_of_pictures_below_eight_rows_are_not_looked_for() -> None:
    planes = np.full((7, 9, 1), 0.5, np.float32)
    planes[3, 3] = 0
    assert impulse_share(planes) == 0


def test_specks_in_texture_where_no_neighbours_are_alike() -> None:
    planes = np.tile(np.array([[0.3, 0.42], [0.54, 0.66]], np.float32), (32, 32))[..., None]
    planes[::8, ::8] = 0
    assert impulse_share(planes) == pytest.approx(1 / 64)


@pytest.mark.parametrize(("share", "size"), [(0.05, 3), (0.3, 5), (0.6, 7)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_more_specks_get_a_larger_median(share: float, size: int, dtype: str) -> None:
    planes = specks(clean("camera"), share)
    white = 1 if dtype == "float32" else np.iinfo(dtype).max
    proposal = propose(Image.from_array((planes * white).astype(dtype)))
    assert (proposal.filter.id, step_of(proposal).parameters["size"]) == ("median", size)
    assert "specks in" in proposal.line


def test_alpha_has_no_specks() -> None:
    grey = specks(clean("camera"), 0.05)
    alpha = np.full_like(grey, 0.5)
    planes = np.concatenate([grey, grey, grey, alpha], axis=2)
    assert propose(Image.from_array(planes)).line == propose(Image.from_array(planes[..., :3])).line


@pytest.mark.parametrize("offset", [0.0, -500.0])
def test_specks_of_floats_in_any_unit(offset: float) -> None:
    planes = specks(clean("camera"), 0.05) * 1000 + offset
    assert propose(Image.from_array(planes)).filter.id == "median"


def test_noise_gets_the_filter_with_the_best_results_at_its_estimates() -> None:
    proposal = propose(Image.from_array(normal(clean("coins"), 20)))
    step = step_of(proposal)
    assert step.filter.id == "collaborative"
    assert step.values["sigma"] == ESTIMATE
    assert [each.id for each in proposal.others] == ["sliding_dct", "nlm"]
    assert proposal.line == (
        "Collaborative filtering: the best results of the denoisers, "
        "for noise of photons or read-out"
    )
    assert proposal.first is None


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_hot_pixels_are_mended_before(dtype: str) -> None:
    planes = clean("coffee")
    random = np.random.default_rng(3)
    hot = random.random(planes.shape[:2]) < 0.002
    planes[hot, 0] = random.uniform(0.9, 1, hot.sum())
    white = 1 if dtype == "float32" else np.iinfo(dtype).max
    proposal = propose(Image.from_array((planes * white).astype(dtype)))
    assert proposal.filter.id == "collaborative"
    assert proposal.first is not None
    assert proposal.first.id == "hot_pixels"
    assert re.search(r"; Hot pixels before it: 0\.\d+ % of the pixels$", proposal.line)


def test_volumes_get_a_filter_of_volumes() -> None:
    proposal = propose(None)
    assert proposal.filter.kind is Kind.VOLUME
    measured = [each.remedy for each in remedies(Disturbance.NOISE, Kind.VOLUME)]
    decibels = [each.decibels for each in measured if each]
    assert proposal.filter.remedy is measured[0]
    assert decibels == sorted(decibels, reverse=True)


def test_a_volume_of_a_single_slice_gets_a_filter_of_pictures() -> None:
    voxels = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
    assert propose(Scan((Volume.from_array(voxels[None]),))).filter.kind is Kind.PICTURE
    assert propose(Scan((Volume.from_array(voxels[:, None]),))).filter.kind is Kind.PICTURE
    deep = propose(Scan((Volume.from_array(np.stack([voxels, voxels])),)))
    assert deep.filter is propose(None).filter


@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (3, 40, 3)])
@pytest.mark.parametrize("value", [0, 128, 255])
def test_nothing_to_be_seen(shape: tuple[int, ...], value: Any) -> None:
    proposal = propose(Image.from_array(np.full(shape, value, np.uint8)))
    assert proposal.filter.id == "collaborative"


def test_a_large_picture_is_judged_by_its_middle() -> None:
    planes = np.full((2100, 3000), 128, np.uint8)
    planes[:, 1000:2000] = (specks(np.full((2100, 1000, 1), 0.5, np.float32), 0.1) * 255)[..., 0]
    share = propose(Image.from_array(planes)).line
    assert "specks in 6.9 %" in share or "specks in 7 %" in share  # 1000 of 1448 columns, of 10 %


@pytest.mark.parametrize("shape", [(9000, 9000), (5000, 6000, 3), (8, 500_000), (300_000, 20, 3)])
def test_the_analysis_has_a_limit(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def share_of(planes: NDArray[np.float32]) -> float:
        seen.append(planes.size)
        return 0.0

    monkeypatch.setattr(denoising, "impulse_share", share_of)
    propose(Image.from_array(np.broadcast_to(np.uint8(7), shape)))
    assert 2**20 < seen[0] <= 2**21
