"""The backend's facts about a real GPU, also while it computes, and about its last launch."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from kernelscope.backends.cuda.inspection import plan
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import Level
from tests.patience import PATIENCE

pytestmark = pytest.mark.gpu


def noise(side: int) -> Image:
    return Image.from_array(np.random.default_rng(3).integers(0, 256, (side, side), np.uint8))


def test_facts(gpu: CudaBackend) -> None:
    groups = {group.title: group.facts for group in gpu.facts()}
    facts = {fact.name: fact for group in groups.values() for fact in group}
    assert facts["Name"].value == gpu.availability().summary
    assert facts["Architecture"].value != "newer than Blackwell"
    assert facts["Constant memory"].value == "64"
    assert float(facts["Copy on the card, read + written"].value.replace(",", "")) > 10
    assert 5 < int(facts["of the theoretical bandwidth"].value.rstrip("%")) <= 100
    assert list(groups)[-1] == "Measured"


def test_facts_and_a_run_at_the_same_time(fresh_gpu: CudaBackend) -> None:
    """Both may be the first to open the card."""
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.extend(g.title for g in fresh_gpu.facts()))
    asking.start()
    request = Request.create(noise(512), "greyscale", device=Device.GPU)
    result = execute(request, {"gpu": fresh_gpu})
    asking.join(PATIENCE)
    assert not asking.is_alive()
    assert found[-1] == "Measured"
    assert result.device == "gpu"


def test_load(gpu: CudaBackend) -> None:
    pytest.importorskip("pynvml")
    load = {fact.name: fact for fact in gpu.load()}
    assert float(load["Free memory"].value.replace(",", "")) > 0
    assert 0 <= int(load["GPU load"].value) <= 100


@pytest.mark.parametrize("level", ["single-block", "global", "shared", "texture"])
def test_the_launch_is_the_planned_one(gpu: CudaBackend, level: str) -> None:
    request = Request.create(noise(100), "median", device=Device.GPU, level=level)
    launch = execute(request, {"gpu": gpu}).launch
    assert launch is not None
    expected = plan(request, level_of(request.step.filter, level))
    assert (launch.kernel, launch.grid) == (expected.launch.kernel, expected.grid)
    assert (launch.block, launch.shared_bytes) == (
        expected.launch.block,
        expected.launch.shared_bytes,
    )
    assert launch.resources is not None
    assert launch.resources.registers > 0
    assert launch.occupancy is not None
    assert 0 < launch.occupancy <= 1


def level_of(spec: FilterSpec, level_id: str) -> Level:
    return next(level for level in spec.levels("gpu") if level.id == level_id)


def test_a_request_may_limit_the_memory(gpu: CudaBackend) -> None:
    def run(limit: int | None) -> Result:
        image = noise(1000)
        request = Request.create(image, "median", device=Device.GPU, memory_limit=limit)
        return execute(request, {"gpu": gpu})

    whole, strips = run(None), run(200_000)
    assert not any("strips" in notice for notice in whole.notices)
    assert "strips" in strips.notices[-1]
    np.testing.assert_array_equal(whole.image.pixels, strips.image.pixels)
