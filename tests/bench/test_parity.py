"""Whether levels agree: the largest difference between any two, whose, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope.base.errors import AppError, Cancelled, InvalidParameter
from kernelscope.bench.data import Content, Data
from kernelscope.bench.parity import verify
from kernelscope.engine.backend import Backend
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.levels import Level
from tests.bench.stand_in import StandIn


class Liar(StandIn):
    """Is wrong at two levels, in two places."""

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        result = super().run(request, level, context)
        planes = result.planes.copy()
        if level.id == "global":
            planes[3, 4, 0] = 255
        if level.id == "shared":
            planes[3, 4, 0] = 5
            planes[1, 1, 0] ^= 1
        return result.like(planes)


@pytest.fixture
def image() -> Image:
    source = Data(Content.NOISE, (12, 10)).make()
    assert isinstance(source, Image)
    return source


def check(image: Image, backends: dict[str, Backend], **more: Any) -> Any:
    return verify(image, "mean", {"size": 3}, backends, CancelToken(), **more)


@pytest.mark.slow
def test_levels_that_agree(image: Image, backends: dict[str, Backend]) -> None:
    announced: list[tuple[str, float]] = []
    parity = check(image, backends, announce=lambda *step: announced.append(step))
    assert parity.levels[:3] == ("CPU serial", "CPU parallel", "GPU single-block")
    assert len(parity.levels) == 7
    assert (parity.largest, parity.share) == (0, 0)
    assert parity.map.shape == (12, 10)
    assert not parity.map.any()
    assert not parity.remarks
    assert parity.describe() == "Mean, mask size 3: 7 levels give the same result."
    fractions = [fraction for _, fraction in announced]
    assert fractions == sorted(fractions)
    assert announced[0] == ("CPU serial", 0.0)
    assert announced[-1][0] == "GPU tuned"
    assert fractions[-1] <= 1


class Talker(StandIn):
    """Says something in every run, and more at one level."""

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        context.log.notices.append("In strips.")
        if level.id == "tuned":
            context.log.notices.append("Another kernel.")
        return super().run(request, level, context)


def test_a_level_that_ran_another_kernel_is_named(
    image: Image, backends: dict[str, Backend]
) -> None:
    backends["gpu"] = Talker()
    assert check(image, backends, devices=("gpu",)).remarks == ("GPU tuned: Another kernel.",)
    backends["gpu"].close()


def test_levels_that_do_not(image: Image, backends: dict[str, Backend]) -> None:
    backends["gpu"] = Liar()
    parity = check(image, backends)
    assert parity.largest == 250
    assert parity.pair == ("GPU shared", "GPU global")
    assert parity.place == (3, 4, 0)
    assert parity.share == pytest.approx(2 / 120)
    assert [parity.map[3, 4], parity.map[1, 1], np.count_nonzero(parity.map)] == [250, 1, 2]
    assert "1.67 % of the samples differ" in parity.describe()
    backends["gpu"].close()


def test_a_level_that_shows_a_fault_is_not_compared(
    image: Image, backends: dict[str, Backend]
) -> None:
    parity = verify(image, "turned_tiles", {}, backends, CancelToken())
    assert parity.levels == ("CPU serial", "CPU parallel", "GPU global", "GPU shared")


@pytest.mark.slow
def test_volumes(backends: dict[str, Backend]) -> None:
    scan = Data(Content.HEAD, (4, 6, 5), 2).make()
    parameters = {"search_radius": 1, "sigma_from": "given", "sigma": (10.0,)}
    parity = verify(scan, "mri_nlm", parameters, backends, CancelToken())
    assert parity.map.shape == (4, 6, 5)
    assert parity.largest < 1e-4 * 255


def test_a_level_that_cannot_run_is_named(
    image: Image, backends: dict[str, Backend], gpu: StandIn
) -> None:
    gpu.too_large_for = "shared"
    parity = check(image, backends)
    assert parity.reasons == {"GPU shared": "The GPU has too little memory."}
    assert "GPU shared" not in parity.levels


def test_nothing_to_compare(
    image: Image, backends: dict[str, Backend], gpu: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandIn, "levels", lambda self, spec: spec.levels("gpu")[:1])
    parity = check(image, backends, devices=("gpu",))
    assert parity.describe() == (
        "Mean, mask size 3: only GPU single-block ran, so there is nothing to compare."
    )
    gpu.too_large_for = "single-block"
    with pytest.raises(AppError, match="No level could run: The GPU has too little memory"):
        check(image, backends, devices=("gpu",))


def test_mistakes_and_cancel(image: Image, backends: dict[str, Backend]) -> None:
    with pytest.raises(InvalidParameter, match="4 is even"):
        verify(image, "mean", {"size": 4}, backends, CancelToken())
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        verify(image, "mean", {}, backends, token)
