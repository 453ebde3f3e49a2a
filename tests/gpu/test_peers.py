"""NPP and CuPy compute the same as the filters: otherwise ratios would be meaningless."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.bench import peers
from kernelscope.bench.plan import Plan
from kernelscope.bench.presets import grid
from kernelscope.bench.runner import measure
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken

pytestmark = pytest.mark.gpu

pytest.importorskip("cupy")


ROUNDED = {
    ("gaussian", None): 1,
    ("greyscale", None): 1,
    ("mean", None): 2,
    ("weighted_mean", None): 1,
    ("sobel", "magnitude"): 1,
}
"""The largest difference where a library truncates and we round, by filter and form."""


@pytest.fixture
def backends(gpu: CudaBackend) -> Iterator[dict[str, Backend]]:
    cpu = CpuBackend()
    yield {"gpu": gpu, "cpu": cpu}
    cpu.close()


@pytest.mark.parametrize(
    "filter_id",
    sorted({name for each in peers.discover().values() if each.on_card for name in each.makers}),
)
@pytest.mark.parametrize("cold", [True, False])
def test_equal_results_and_times(filter_id: str, cold: bool, backends: dict[str, Backend]) -> None:
    plan = Plan(
        sweeps=grid([filter_id], [320], [3, 9]),
        devices=("gpu",),
        levels=("global",),
        peers=True,
        repeat=2,
        cold=cold,
    )
    rows = [row for row in measure(plan, backends, CancelToken()) if row.library and row.seconds]
    assert rows
    for row in rows:
        assert row.difference is not None
        allowed = ROUNDED.get((filter_id, row.parameters.get("form")), 0)
        assert row.difference.largest <= allowed, f"{row.label}, {row.level}: {row.difference}"
        assert 1e-7 < min(row.seconds) <= max(row.seconds) < 0.1
