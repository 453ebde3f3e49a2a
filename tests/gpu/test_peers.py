"""NPP and CuPy compute what the filters do: otherwise the bench would compare different things."""

from __future__ import annotations

import pytest

from app import bench_gpu, bench_peers
from app.backends.cpu import CpuBackend
from app.backends.cuda import CudaBackend
from app.engine.control import CancelToken

pytestmark = pytest.mark.gpu

pytest.importorskip("cupy")


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
        # Quotients and grey values of the libraries are rounded or cut off their own way.
        exact = filter_id in ("median", "mask", "laplace", "sobel")
        assert not row.difference or (not exact and row.difference.endswith("by up to 1")), (
            f"{row.label}, {row.level}: {row.difference}"
        )
        assert 1e-7 < min(row.seconds) <= max(row.seconds) < 0.1
