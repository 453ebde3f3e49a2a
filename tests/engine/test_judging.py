"""Evaluating a run: which results are compared with the reference, and on which device."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import judge
from kernelscope.schema.borders import Border
from tests.engine.fakes import FakeBackend


def noisy(*shape: int, dtype: str = "uint8", seed: int = 0) -> Image:
    values = np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)
    return Image.from_array(values)


def flat(*shape: int, dtype: str = "uint8") -> Image:
    return Image.from_array(np.full(shape, 128, dtype))


def test_input_and_result_are_judged() -> None:
    image, reference = noisy(30, 20, 4), flat(30, 20, 3)
    request = Request.create(image, "mean", {"size": 5}, reference=reference)
    result = execute(request, {"cpu": CpuBackend(threads=1)})
    assert result.quality is not None
    for found, picture in (
        (result.quality.before, image),
        (result.quality.after, result.image),
    ):
        assert found == judge(colours(picture.planes), reference.planes)
    assert result.quality.before is not None
    assert result.quality.after.psnr > result.quality.before.psnr + 10
    assert [stage.counted for stage in result.stages if stage.name == "judge"] == [False]


def test_nothing_is_judged_without_a_reference() -> None:
    result = execute(Request.create(flat(9, 9), "mean"), {"cpu": FakeBackend()})
    assert result.quality is None
    assert "judge" not in [stage.name for stage in result.stages]


@pytest.mark.parametrize(
    ("options", "reference", "message"),
    [
        ({"border": Border.VALID}, flat(30, 20, 3), "Pictures of 18×28 and 20×30 pixels"),
        ({"grey": True}, flat(30, 20, 3), "A grey picture and one in colour"),
        ({}, flat(30, 20, 3, dtype="uint16"), "type uint8 and uint16"),
    ],
)
def test_a_result_that_does_not_compare_is_explained(options, reference, message) -> None:
    request = Request.create(noisy(30, 20, 3), "mean", reference=reference, **options)
    result = execute(request, {"cpu": CpuBackend(threads=1)})
    assert result.quality is None
    (notice,) = result.notices
    assert notice.startswith("The result cannot be compared with the reference: ")
    assert message in notice


def test_a_grey_result_is_judged_where_its_input_is_not() -> None:
    request = Request.create(noisy(30, 20, 3), "mean", grey=True, reference=flat(30, 20))
    result = execute(request, {"cpu": CpuBackend(threads=1)})
    assert result.quality is not None
    assert result.quality.before is None
    assert result.quality.after.ssim is not None
    assert not result.notices


def test_the_squared_error_of_the_device_is_taken() -> None:
    request = Request.create(noisy(30, 20), "mean", reference=flat(30, 20))
    result = execute(request, {"cpu": FakeBackend(mse=65.025)})
    assert result.quality is not None
    assert result.quality.after.mse == 65.025
    assert result.quality.after.psnr == pytest.approx(30)


def test_cancel_stops_judging() -> None:
    token = CancelToken()

    def progress(stage: str, fraction: float) -> None:
        if stage == "judge":
            token.cancel()

    request = Request.create(noisy(30, 20), "mean", reference=flat(30, 20))
    with pytest.raises(Cancelled):
        execute(request, {"cpu": FakeBackend()}, token, progress)
