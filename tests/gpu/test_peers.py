"""NPP and CuPy compute what the filters do: otherwise the bench would compare different things."""

from __future__ import annotations

import pytest

from app import bench_gpu, bench_peers
from app.backends.cpu import CpuBackend
from app.backends.cuda import CudaBackend
from app.engine.control import CancelToken

pytestmark = pytest.mark.gpu

pytest.importorskip("cupy")


ROUNDED = {
    ("greyscale", None): 1,
    ("mean", None): 2,
    ("weighted_mean", None): 1,
    ("sobel", "magnitude"): 1,
}
"""Where a library cuts off what we round, by filter and form: the largest difference."""


@pytest.mark.parametrize("filter_id", sorted({*bench_peers._NPP, *bench_peers._CUPY}))
def test_equal_results_and_times(filter_id: str, gpu: CudaBackend) -> None:
    settings = bench_gpu.Settings(
        filters=(filter_id,), sizes=(320,), masks=(3, 9), levels=("global",), repeat=2, peers=True
    )
    backends = {"gpu": gpu, "cpu": CpuBackend()}
    try:
        rows = list(bench_gpu.measure(settings, backends, CancelToken(), lambda text: None))
    finally:
        backends["cpu"].close()
    peers = [row for row in rows if row.level in ("NPP", "CuPy")]
    assert peers
    for row in peers:
        largest = int(row.difference.rpartition(" ")[2] or 0)
        allowed = ROUNDED.get((filter_id, row.parameters.get("form")), 0)
        assert largest <= allowed, f"{row.label}, {row.level}: {row.difference}"
        assert 1e-7 < min(row.seconds) <= max(row.seconds) < 0.1
