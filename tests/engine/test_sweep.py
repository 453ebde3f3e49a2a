"""Variants of a request, their results and scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from skimage import data

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled
from kernelscope.engine.control import CancelToken
from kernelscope.engine.region import Region
from kernelscope.engine.request import Measurement, Request
from kernelscope.engine.run import execute
from kernelscope.engine.sweep import CELLS, Cell, sweep, sweepable, variants
from kernelscope.files.reading import read_image
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import judge
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind

SIDE = 96


def _clean() -> Image:
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    return Image.from_array((120 + 50 * np.sin(8 * x + 5 * y)).astype(np.uint8), "clean")


def _noisy(sigma: float = 8) -> Image:
    noise = np.random.default_rng(2).normal(0, sigma, (SIDE, SIDE))
    return Image.from_array((_clean().pixels + noise).clip(0, 255).astype(np.uint8), "noisy")


def _cells(request: Request, name: str, backends: dict[str, CpuBackend]) -> list[Cell]:
    """Return the last report about each variant."""
    found: dict[int, Cell] = {}
    sweep(
        variants(request, name),
        backends,
        CancelToken(),
        lambda cell: found.__setitem__(cell.index, cell),
    )
    return [found[index] for index in sorted(found)]


def test_each_parameter_has_its_value_among_the_variants() -> None:
    """For every filter: variants are allowed, distinct, at most nine, and include the value."""
    seen = 0
    for spec in (*filters.discover().values(), *filters.discover(Kind.VOLUME).values()):
        values = spec.defaults()
        for parameter in spec.parameters:
            found = parameter.variants(values[parameter.name], CELLS)
            if not found:
                continue
            seen += 1
            assert values[parameter.name] in found
            assert 1 <= len(found) <= CELLS
            assert len(set(found)) == len(found)
            assert [parameter.validate(each) for each in found] == list(found)
    assert seen > 20


def test_sizes_are_neighbours() -> None:
    size = filters.get("median").parameter("size")
    assert size.variants(9, 5) == (5, 7, 9, 11, 13)
    assert size.variants(3, 9) == (3, 5, 7, 9, 11, 13, 15, 17, 19)


def test_strengths_range_from_half_to_twice() -> None:
    sigma = filters.get("nlm").parameter("filter_sigma")
    found = sigma.variants(0.04, 9)
    assert len(found) == 9
    assert (found[0], found[4], found[-1]) == (0.02, 0.04, 0.08)
    assert found == tuple(sorted(found))
    strength = filters.get("collaborative").parameter("strength")
    assert strength.variants(100.0, 9) == (50, 59, 71, 84, 100, 120, 140, 170, 200)
    assert strength.variants(84.9, 3) == (42, 84.9, 170)  # the user's own is left as it is


def test_numbers_measured_for_one_value_do_not_hold_for_others() -> None:
    request = Request.create(_noisy(), "nlm")
    measured = replace(request, measured=Measurement({"sigma": 0.3}, 1.0))
    found = [each.request for each in variants(measured, "filter_sigma") if each.request]
    assert len(found) > 1
    assert [each.measured for each in found] == [None] * len(found)


def test_strengths_come_first() -> None:
    first = {"nlm": "strength", "sliding_dct": "strength", "collaborative": "strength"}
    first |= {"bilateral": "sigma_range", "threshold_mean": "threshold", "unsharp": "amount"}
    for id_, name in first.items():
        offered = [each.name for each in sweepable(Request.create(_noisy(), id_))]
        assert offered[0] == name


def test_results_that_do_not_differ_are_named(backends: dict[str, CpuBackend]) -> None:
    request = Request.create(_noisy(), "sliding_dct", {"sigma": 0.0})
    cells = _cells(request, "strength", backends)
    assert cells[0].same is None
    assert [each.same for each in cells[1:]] == [cells[0].variant] * 8
    assert {each.score for each in cells} == {cells[0].score}
    noisy = Request.create(_noisy(), "sliding_dct", {"sigma": 5.0, "noise": "white"})
    assert [each.same for each in _cells(noisy, "strength", backends)] == [None] * 9


def test_a_mask_has_no_variants() -> None:
    request = Request.create(_noisy(), "mask")
    assert "mask" not in [each.name for each in sweepable(request)]


def test_parameters_that_do_not_matter_are_not_offered() -> None:
    uniform = Request.create(_noisy(), "nlm", {"weights": "uniform"})
    gaussian = Request.create(_noisy(), "nlm", {"weights": "gaussian"})
    assert "patch_sigma" not in [each.name for each in sweepable(uniform)]
    assert "patch_sigma" in [each.name for each in sweepable(gaussian)]


@pytest.mark.slow
def test_results_are_those_of_single_runs(backends: dict[str, CpuBackend]) -> None:
    region = Region(10, 20, 40, 50)
    request = replace(Request.create(_noisy(), "mean", {"size": 5}), region=region)
    cells = _cells(request, "size", backends)
    assert [each.variant.value for each in cells][:3] == [3, 5, 7]
    for cell in cells:
        whole = execute(Request.create(_noisy(), "mean", {"size": cell.variant.value}), backends)
        assert cell.result is not None
        assert (cell.result.image.planes == region.of(whole.image.planes)).all()


def test_scores_with_a_reference_are_psnrs_of_the_region(backends: dict[str, CpuBackend]) -> None:
    region = Region(10, 20, 40, 50)
    request = replace(
        Request.create(_noisy(), "mean", {"size": 3}, reference=_clean()), region=region
    )
    for cell in _cells(request, "size", backends):
        assert cell.result is not None
        assert cell.score is not None
        expected = judge(cell.result.image.planes, region.of(_clean().planes)).psnr
        assert cell.score.psnr == expected
        assert not cell.score.estimated


def test_estimates_of_a_part_are_those_of_a_comparison(backends: dict[str, CpuBackend]) -> None:
    """With sigma of the part alone, 4 % off, they were 0.4 dB too good."""
    clean = data.chelsea()
    noise = np.random.default_rng(1).normal(0, 10, clean.shape)
    noisy = Image.from_array((clean + noise).clip(0, 255).round().astype(np.uint8), "noisy")
    region = Region(30, 65, 240, 320)
    cells = _cells(replace(Request.create(noisy, "mean"), region=region), "size", backends)
    for cell in cells:
        assert cell.result is not None
        assert cell.score is not None
        assert cell.score.estimated
        real = judge(cell.result.image.planes, region.of(clean)).psnr
        assert cell.score.psnr == pytest.approx(real, abs=0.15)
    assert len(cells) == CELLS


def test_noise_of_a_jpeg_gives_no_estimates(
    backends: dict[str, CpuBackend], tmp_path: Path
) -> None:
    """They were 13 dB too good, and named the noisiest result the best."""
    clean = data.chelsea()
    noise = np.random.default_rng(1).normal(0, 10, clean.shape)
    noisy = Pillow.fromarray((clean + noise).clip(0, 255).round().astype(np.uint8))
    noisy.save(tmp_path / "noisy.jpg", quality=95)
    Pillow.open(tmp_path / "noisy.jpg").save(tmp_path / "noisy.png")
    for name, reason in (("jpg", "noise of a JPEG is correlated"), ("png", "may be correlated")):
        request = Request.create(read_image(tmp_path / f"noisy.{name}"), "mean")
        request = replace(request, region=Region(30, 65, 240, 320))
        cells: list[Cell] = []
        assert reason in sweep(variants(request, "size", 2), backends, CancelToken(), cells.append)
        assert all(each.score is None and each.result is not None for each in cells)


def test_without_reference_and_noise_nothing_is_claimed(backends: dict[str, CpuBackend]) -> None:
    cells = _cells(Request.create(_clean(), "mean", {"size": 3}), "size", backends)
    assert all(each.score is None and each.result is not None for each in cells)


def test_a_result_of_another_size_is_not_estimated(backends: dict[str, CpuBackend]) -> None:
    request = Request.create(_noisy(), "mean", {"size": 3}, border=Border.VALID)
    cells = _cells(request, "size", backends)
    assert all(each.score is None and each.result is not None for each in cells)


def test_a_value_that_cannot_be_run_says_why(backends: dict[str, CpuBackend]) -> None:
    small = Image.from_array(np.zeros((8, 8), np.uint8), "small")
    request = Request.create(small, "mean", {"size": 5}, border=Border.VALID)
    cells = _cells(request, "size", backends)
    problems = {each.variant.value: each.problem for each in cells}
    assert problems[7] == ""
    assert "8×8" in problems[9]


def test_a_cancelled_sweep_ends(backends: dict[str, CpuBackend]) -> None:
    token = CancelToken()
    seen: list[Cell] = []

    def report(cell: Cell) -> None:
        seen.append(cell)
        token.cancel()

    with pytest.raises(Cancelled):
        sweep(variants(Request.create(_noisy(), "mean"), "size"), backends, token, report)
    assert len(seen) == 1


def test_all_filters_of_pictures_offer_something_or_nothing() -> None:
    offered = {id_: len(sweepable(Request.create(_noisy(), id_))) for id_ in filters.discover()}
    assert offered["median"] >= 1
    assert offered["nlm"] >= 5
