"""Denoisers of volumes on GPUs: the bytes of the CPU at every level, in slabs, on several cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from tests.gpu.test_volume_gpu import head

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("small_volumes_are_shared")]

FILTERS = ("volume_dct", "volume_collaborative")

CASES: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (1, {"noise": "gaussian", "sigma_from": "given", "sigma": (9.0,)}),
    (2, {"sigma_from": "given", "sigma": (9.0, 14.0), "strength": 60.0}),
    (3, {"sigma_from": "adaptive"}),
    (1, {"strength": 0.0}),
]

each = pytest.mark.parametrize("filter_id", FILTERS)
cases = pytest.mark.parametrize(("components", "parameters"), CASES)


def apply(backend: Any, scan: Scan, filter_id: str, **options: Any) -> Any:
    device = Device.CPU if isinstance(backend, CpuBackend) else Device.GPU
    return execute(
        Request.create(scan, filter_id, device=device, **options), {device.value: backend}
    )


def planes(result: Any) -> NDArray[np.float32]:
    voxels: NDArray[np.float32] = result.scan.planes
    return voxels


@each
@cases
def test_every_level_has_the_bytes_of_the_cpu(
    filter_id: str,
    components: int,
    parameters: dict[str, Any],
    gpu: CudaBackend,
    cpu: CpuBackend,
) -> None:
    scan = head(components, (13, 37, 71))
    wanted = planes(apply(cpu, scan, filter_id, parameters=parameters))
    for level in filters.get(filter_id).levels("gpu"):
        result = apply(gpu, scan, filter_id, parameters=parameters, level=level.id)
        np.testing.assert_array_equal(planes(result), wanted, level.id)


@each
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 40, 33), (2, 3, 70), (40, 2, 1)])
def test_tiny_volumes(
    filter_id: str, shape: tuple[int, int, int], gpu: CudaBackend, cpu: CpuBackend
) -> None:
    voxels = np.random.default_rng(0).uniform(100, 200, shape).astype(np.float32)
    scan = Scan((Volume.from_array(voxels),))
    parameters = {"sigma_from": "given", "sigma": (20.0,)}
    wanted = planes(apply(cpu, scan, filter_id, parameters=parameters))
    for level in filters.get(filter_id).levels("gpu"):
        result = apply(gpu, scan, filter_id, parameters=parameters, level=level.id)
        np.testing.assert_array_equal(planes(result), wanted, level.id)


@each
@cases
def test_slabs_equal_one_piece(
    filter_id: str,
    components: int,
    parameters: dict[str, Any],
    gpu: CudaBackend,
    rows_of_a_slab: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scan = head(components, (41, 20, 23))
    for level in filters.get(filter_id).levels("gpu"):
        whole = apply(gpu, scan, filter_id, parameters=parameters, level=level.id)
        assert "slabs" not in " ".join(whole.notices)
        for slices in (3, 8):
            rows_of_a_slab(slices)
            cut = apply(gpu, scan, filter_id, parameters=parameters, level=level.id)
            assert f"in {-(-41 // slices)} slabs on GPU 0" in cut.notices[-1]
            np.testing.assert_array_equal(planes(cut), planes(whole), f"{level.id}, {slices}")
        monkeypatch.undo()
