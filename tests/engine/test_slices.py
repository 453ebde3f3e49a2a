"""Filters of pictures, slice by slice over volumes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from kernelscope.base.errors import Cancelled, InvalidParameter
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.slices import STAGE, filter_slices
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import GPU_LEVELS, Level
from tests.engine.fakes import FakeBackend

SHAPE = (3, 7, 6)


def volume(dtype: str, seed: int = 0) -> Volume:
    rng = np.random.default_rng(seed)
    low = -500 if dtype == "int16" else 0
    voxels = rng.integers(low, 255 if dtype == "uint8" else 4000, SHAPE).astype(dtype)
    return Volume.from_array(voxels, f"{dtype} {seed}", affine=np.diag([1.0, 2, 3, 1]))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_every_slice_is_filtered_as_a_picture_of_its_own(backends, axis: int, dtype: str) -> None:
    scan = Scan((volume(dtype), volume(dtype, 1)))
    reports = []
    result = execute(
        Request.create(scan, "median", {"size": 3}, axis=axis),
        backends,
        progress=lambda stage, fraction: reports.append((stage, fraction)),
    )
    size = [3, 3, 3]
    size[axis] = 1
    for before, after in zip(scan.volumes, result.scan.volumes, strict=True):
        exact = ndimage.median_filter(before.voxels, size, mode="reflect")
        if dtype == "float32":  # scaled to 1 and back
            np.testing.assert_allclose(after.voxels, exact, rtol=1e-6)
        else:
            np.testing.assert_array_equal(after.voxels, exact)
        assert after.voxels.dtype == before.voxels.dtype
        np.testing.assert_array_equal(after.affine, before.affine)
    fractions = [fraction for stage, fraction in reports if stage == STAGE]
    assert fractions == sorted(fractions)
    assert 0.9 < fractions[-1] <= 1


def test_volumes_are_not_copied_as_floats(backends) -> None:
    """A whole volume filter reads them so; four times the memory of bytes, for nothing here."""
    scan = Scan((volume("uint8"), volume("uint8", 1)))
    request = Request.create(scan, "negative", repeat=2)
    result = execute(request, backends)
    assert result.speed > 0
    assert request.output_shape == (*SHAPE, 2)
    held = list(scan.arrays())
    assert [array is voxels for array, voxels in zip(held, scan.samples, strict=True)] == [True] * 2


def test_noise_is_new_in_every_slice_and_scaled_to_the_volume(backends) -> None:
    flat = Volume.from_array(np.full((4, 40, 40), 1000, np.float32), "flat")
    result = execute(Request.create(Scan((flat,)), "gaussian_noise", {"sigma": 0.1}), backends)
    noise = result.scan.volumes[0].voxels - 1000
    assert 90 < noise.std() < 110
    assert np.abs(np.corrcoef(noise.reshape(4, -1)) - np.eye(4)).max() < 0.1


def test_seeds_go_on_from_the_first_after_the_last(backends) -> None:
    seeds: list[int] = []
    body = FakeBackend(body=lambda request, *_: seeds.append(request.step.parameters["seed"]))
    scan = Scan((Volume.from_array(np.zeros((3, 4, 5), np.uint8)),))
    execute(Request.create(scan, "gaussian_noise", {"seed": 2**31 - 2}), {"cpu": body})
    assert seeds == [2**31 - 2, 2**31 - 1, 0]


@pytest.mark.parametrize("value", [0, -300])
def test_volumes_without_a_bright_voxel_keep_their_values(backends, value: int) -> None:
    dark = Volume.from_array(np.full((2, 5, 6), value, np.int16), "dark")
    result = execute(Request.create(Scan((dark,)), "mean"), backends)
    np.testing.assert_array_equal(result.scan.volumes[0].voxels, dark.voxels)


def test_border_that_makes_slices_smaller_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="keep their size"):
        Request.create(Scan((volume("uint8"),)), "median", border=Border.VALID)


def test_slices_stay_grey() -> None:
    scan = Scan((volume("uint8"),))
    with pytest.raises(InvalidParameter, match=r"Sobel, form angle as a colour.*makes colours"):
        Request.create(scan, "sobel", {"form": "angle-colour"})
    Request.create(scan, "sobel", {"form": "angle"})


def test_what_holds_for_every_slice_is_told_once() -> None:
    class Telling(FakeBackend):
        def run(self, request: Request, level: Level, context: RunContext) -> Image:
            context.log.notices.append("In strips.")
            return super().run(request, level, context)

    scan = Scan((Volume.from_array(np.zeros((3, 4, 5), np.uint8)),))
    assert execute(Request.create(scan, "mean"), {"cpu": Telling()}).notices == ("In strips.",)


def test_every_slice_gets_the_block_that_was_asked_for() -> None:
    asked: list[Request] = []
    gpu = FakeBackend("gpu", lambda request, *_: asked.append(request), levels=GPU_LEVELS)
    options: dict[str, Any] = {"device": Device.GPU, "level": "global", "block": (8, 8)}
    execute(Request.create(Scan((volume("uint8"),)), "mean", **options), {"gpu": gpu})
    assert [request.options.block for request in asked] == [(8, 8)] * SHAPE[0]


def test_cancel_stops_between_slices(backends) -> None:
    token = CancelToken()

    def stop(stage: str, fraction: float) -> None:
        if fraction > 0.3:
            token.cancel()

    with pytest.raises(Cancelled):
        execute(Request.create(Scan((volume("uint8"),)), "median", axis=1), backends, token, stop)


def test_progress_goes_on_within_a_slice() -> None:
    def run(request: Request, report: Any) -> Image:
        report("upload", 0.5)
        report("compute", 0.5)
        return request.image

    reports: list[tuple[str, float]] = []
    context = RunContext(progress=lambda stage, fraction: reports.append((stage, fraction)))
    scan = Scan((volume("uint8"),))
    filter_slices(Request.create(scan, "negative", axis=0), run, context)
    parts = len(scan.volumes[0].voxels)
    expected = [k / parts + more for k in range(parts) for more in (0, 0.5 / parts)]
    assert [stage for stage, _ in reports] == [STAGE] * len(reports)
    np.testing.assert_allclose([fraction for _, fraction in reports], expected)
