"""Volume filters on GPUs: each level equals the CPU; slabs and more GPUs change nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend, slabs
from kernelscope.backends.cuda.compiler import Nvrtc
from kernelscope.backends.cuda.components import known_by
from kernelscope.backends.cuda.kernel import Kernel, Timed
from kernelscope.backends.cuda.probe import probe
from kernelscope.base.errors import Cancelled, OutOfMemory
from kernelscope.engine.context import RunLog
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.filters.shared.mri_sigma import estimate_component, estimate_global
from kernelscope.images import phantom
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask
from kernelscope.schema.levels import TUNED, Level
from kernelscope.schema.samples import Components

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("small_volumes_are_shared")]

SPEC = filters.get("mri_nlm")
SHAPE = (13, 37, 71)
"""More than a block of any level, and a multiple of nothing."""

TOLERANCE = 1e-4  # of the range

CASES: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (1, {"noise": "gaussian", "search_radius": 7, "sigma_from": "given", "sigma": (9.0,)}),
    (1, {"dimensions": "2d", "patch_radius": 2}),
    (1, {"sigma_from": "local", "search_radius": 1, "window_radius": 2}),
    (1, {"sigma_from": "local", "dimensions": "2d", "noise": "gaussian"}),
    (1, {"sigma_from": "adaptive", "search_radius": 2}),
    (1, {"patch_radius": 3, "search_radius": 2}),
    (2, {"sigma_from": "given", "sigma": (9.0, 14.0), "beta": 0.5, "search_radius": 3}),
    (3, {"search_radius": 3}),
    (3, {"patch_radius": 2, "search_radius": 2}),
    (3, {"sigma_from": "local", "search_radius": 2}),
    (4, {"search_radius": 2, "noise": "gaussian"}),
    (4, {"patch_radius": 3, "search_radius": 2, "sigma_from": "local"}),
    (4, {"sigma_from": "adaptive", "dimensions": "2d", "noise": "gaussian"}),
    (4, {"dimensions": "2d", "patch_radius": 3}),
    (1, {"search_radius": (5, 3, 2), "patch_radius": (1, 2, 1)}),
    (2, {"search_radius": (1, 2, 3), "patch_radius": (4, 1, 2), "sigma_from": "local"}),
    (2, {"search_radius": (7, 2, 1), "patch_radius": (1, 5, 3), "dimensions": "2d"}),
    (1, {"patch_radius": 5, "search_radius": 1}),
    (3, {"patch_radius": 5, "search_radius": 1}),  # tuned has no room: level global runs
]
cases = pytest.mark.parametrize(("components", "parameters"), CASES)


def head(components: int, shape: tuple[int, int, int] = SHAPE) -> Scan:
    """Return noisy volumes of a head; the fourth is the first with other noise."""
    truth = list(phantom.head(shape).truth.values())
    noisy = (
        phantom.add_noise(truth[n % 3], phantom.ScannerNoise.RICIAN, 6.0 + 3 * n, seed=n).voxels
        for n in range(components)
    )
    return Scan(tuple(map(Volume.from_array, noisy)))


def apply(backend: CpuBackend | CudaBackend, scan: Scan, **options: Any) -> Result:
    device = Device.CPU if isinstance(backend, CpuBackend) else Device.GPU
    request = Request.create(scan, SPEC.id, device=device, **options)
    return execute(request, {device.value: backend})


def assert_close(actual: NDArray[Any], wanted: NDArray[Any], label: str) -> None:
    """Rician results are roots: near zero their squares are compared."""
    top = float(np.abs(wanted).max())
    linear = np.abs(actual - wanted) / top
    squared = np.abs(np.square(actual) - np.square(wanted)) / top**2
    assert np.minimum(linear, squared).max() <= TOLERANCE, label


@pytest.fixture(scope="module")
def many() -> Iterator[Callable[[int], CudaBackend]]:
    """Give a backend of so many GPUs, of those that there are."""
    count, backends = len(probe().devices), {}

    def of(number: int) -> CudaBackend:
        if number > count:
            pytest.skip(f"needs {number} GPUs, there are {count}")
        if number not in backends:
            backends[number] = CudaBackend(range(number), compiler=Nvrtc())
        return backends[number]

    yield of
    for backend in backends.values():
        backend.close()


def slab_limit(scan: Scan, level: Level, slices: int) -> int:
    """Return a memory limit that leaves slabs of so many slices."""
    values = SPEC.resolve(scan.planes, SPEC.validate({}))
    planes = scan.planes
    task = CudaTask(planes.shape, planes.shape, planes.dtype, values, Border.REFLECT, level.id)
    buffers = CudaPlan.of(SPEC.implementation(Cuda).plan(task)).scratch.values()
    without, with_one = (sum(buffer.size(n, len(planes)) for buffer in buffers) for n in (0, 1))
    there = slabs.BUFFERS * planes[0].nbytes + with_one - without
    halo = 2 * SPEC.radius(values)
    return int((slices + halo) * there + slices * slabs.BUFFERS * planes[0].nbytes + without)


@cases
def test_every_level_equals_the_cpu(
    components: int, parameters: dict[str, Any], gpu: CudaBackend, cpu: CpuBackend
) -> None:
    scan = head(components)
    wanted = apply(cpu, scan, parameters=parameters).scan.planes
    assert np.abs(wanted - scan.planes).max() > 1  # it does something
    for level in SPEC.levels("gpu"):
        actual = apply(gpu, scan, parameters=parameters, level=level.id).scan.planes
        assert_close(actual, wanted, level.id)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 40, 33), (2, 3, 70), (40, 2, 1)])
@pytest.mark.parametrize("sigma_from", ["given", "local", "adaptive"])
def test_tiny_volumes(
    shape: tuple[int, int, int], sigma_from: str, gpu: CudaBackend, cpu: CpuBackend
) -> None:
    """They are mirrored more than once."""
    voxels = np.random.default_rng(0).uniform(100, 200, shape).astype(np.float32)
    scan = Scan((Volume.from_array(voxels),))
    parameters = {"sigma_from": sigma_from, "sigma": (20.0,), "search_radius": 3}
    wanted = apply(cpu, scan, parameters=parameters).scan.planes
    for level in SPEC.levels("gpu"):
        actual = apply(gpu, scan, parameters=parameters, level=level.id).scan.planes
        assert_close(actual, wanted, level.id)


@pytest.mark.parametrize("sigma_from", ["volume", "local", "adaptive", "given"])
def test_a_constant_volume_stays_as_it_is(sigma_from: str, gpu: CudaBackend) -> None:
    scan = Scan((Volume.from_array(np.full((5, 9, 33), 70, np.float32)),))
    parameters = {"sigma_from": sigma_from, "sigma": (0.0,), "search_radius": 2}
    for level in SPEC.levels("gpu"):
        actual = apply(gpu, scan, parameters=parameters, level=level.id).scan.planes
        np.testing.assert_allclose(actual, 70, rtol=1e-5, err_msg=level.id)


@cases
def test_slabs_equal_one_piece(
    components: int,
    parameters: dict[str, Any],
    gpu: CudaBackend,
    rows_of_a_slab: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scan = head(components)
    for level in SPEC.levels("gpu"):
        whole = apply(gpu, scan, parameters=parameters, level=level.id)
        assert "slabs" not in " ".join(whole.notices)
        # Slabs of the tuned level begin where its tiles do.
        for slices in (4, 8) if level is TUNED else (3,):
            rows_of_a_slab(slices)
            cut = apply(gpu, scan, parameters=parameters, level=level.id)
            assert f"in {-(-SHAPE[0] // slices)} slabs on GPU 0" in " ".join(cut.notices)
            np.testing.assert_array_equal(
                cut.scan.planes, whole.scan.planes, f"{level.id}, {slices} slices"
            )
        monkeypatch.undo()


def test_a_memory_limit_is_kept_or_refused(gpu: CudaBackend) -> None:
    scan = head(2, (80, 64, 64))
    gpu.memory_limit = slab_limit(scan, TUNED, 7)
    assert "slabs" in apply(gpu, scan).notices[-1]
    gpu.memory_limit = scan.planes[0].nbytes
    with pytest.raises(OutOfMemory):
        apply(gpu, scan)


def test_overlapped_stages_are_not_counted(
    gpu: CudaBackend, rows_of_a_slab: Callable[[int], None]
) -> None:
    scan = head(1, (64, 128, 128))
    rows_of_a_slab(8)
    apply(gpu, scan)
    stages = {stage.name: stage for stage in apply(gpu, scan).stages}
    for name in ("upload", "kernel", "download"):
        assert stages[name].overlapped
        assert not stages[name].counted
        assert 0 < stages[name].seconds < stages["slabs"].seconds
    assert stages["slabs"].counted


@pytest.mark.parametrize(
    "shape", [(130, 157, 189), (1, 40, 33), (5, 1, 70), (2, 2, 2), (1, 1, 9), (1, 1, 1)]
)
@pytest.mark.parametrize("dtype", ["float32", "int16", "uint16", "uint8"])
@pytest.mark.parametrize("components", [1, 3])
def test_the_card_finds_the_noise_and_the_largest_voxels(
    shape: tuple[int, int, int], dtype: str, components: int, gpu: CudaBackend
) -> None:
    random = np.random.default_rng(1)
    volumes = [
        random.normal(60 + 30 * (np.arange(shape[2]) > 9), 5 + n, shape).astype(dtype)
        for n in range(components)
    ]
    if dtype in ("float32", "int16"):
        volumes[0].flat[0] = -300
    scan = Scan(tuple(map(Volume.from_array, volumes)))
    device = gpu._open()[0]
    known = device.call(known_by, device, gpu._cache, scan, RunLog())
    assert isinstance(known, Components)
    for number, volume in enumerate(volumes):
        assert known.peak(number) == np.abs(volume.astype(np.float32)).max()
        for rician in (False, True):
            assert estimate_component(known, number, rician) == estimate_global(volume, rician)
    np.testing.assert_array_equal(device.call(fetched, device, scan), scan.planes)


def fetched(device: Any, scan: Scan) -> NDArray[np.float32]:
    """Return the card's copy of a scan."""
    copy = np.empty(scan.shape, np.float32)
    device.staging.download(int(device.resident.get(scan.key)), copy)
    return copy


@pytest.mark.parametrize("value", [0.0, 70.0, 1e-20, 1e6])
def test_a_constant_volume_has_no_noise_on_the_card(value: float, gpu: CudaBackend) -> None:
    scan = Scan((Volume.from_array(np.full((5, 9, 33), value, np.float32)),))
    device = gpu._open()[0]
    known = device.call(known_by, device, gpu._cache, scan, RunLog())
    assert isinstance(known, Components)
    assert estimate_component(known, 0, True) == 0


# Several GPUs -------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("slices", [None, 4, 8])
@pytest.mark.parametrize(("components", "parameters"), CASES[:4] + CASES[9:11])
def test_any_number_of_gpus_gives_the_same_bytes(
    number: int,
    slices: int | None,
    components: int,
    parameters: dict[str, Any],
    gpu: CudaBackend,
    many: Callable[[int], CudaBackend],
    rows_of_a_slab: Callable[[int], None],
) -> None:
    backend = many(number)
    scan = head(components, (29, 37, 71))
    one = apply(gpu, scan, parameters=parameters)
    if slices is not None:
        rows_of_a_slab(slices)
    several = apply(backend, scan, parameters=parameters)
    np.testing.assert_array_equal(several.scan.planes, one.scan.planes)
    assert f"on GPU {number - 1}" in several.notices[-1]


def test_cancel_stops_several_gpus_and_they_work_again(
    many: Callable[[int], CudaBackend],
) -> None:
    backend, token = many(2), CancelToken()
    request = Request.create(
        head(1, (256, 256, 256)), SPEC.id, {"search_radius": 7}, device=Device.GPU, level="global"
    )

    def progress(stage: str, fraction: float) -> None:
        if stage == "kernel":
            token.cancel()

    with pytest.raises(Cancelled):
        execute(request, {"gpu": backend}, token, progress)
    assert apply(backend, head(1)).scan.planes.any()


def test_an_error_on_one_gpu_stops_the_other(
    many: Callable[[int], CudaBackend],
    monkeypatch: pytest.MonkeyPatch,
    rows_of_a_slab: Callable[[int], None],
) -> None:
    backend, scan = many(2), head(1, (64, 64, 64))
    rows_of_a_slab(2)
    put = Kernel._put

    def fail_on_the_second(self: Kernel, *arguments: Any) -> Timed:
        if threading.current_thread().name == "kernelscope-gpu-1":
            raise ZeroDivisionError("a bug")
        return put(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "_put", fail_on_the_second)
        with pytest.raises(ZeroDivisionError):
            apply(backend, scan)
    assert apply(backend, scan).scan.planes.any()


def test_nothing_stays_on_several_gpus(many: Callable[[int], CudaBackend]) -> None:
    backend, scan = many(2), head(1, (64, 64, 64))
    free = []
    for _ in range(3):
        apply(backend, scan)
        free.append([device.call(device.free_memory) for device in backend._open()])
    assert free[1] == free[2]


# A real size --------------------------------------------------------------------------


def test_levels_agree_on_a_real_size(gpu: CudaBackend) -> None:
    """Too large for the CPU: the plain formula is the reference."""
    scan = head(1, (130, 157, 189))
    plain, *others = (apply(gpu, scan, level=level.id).scan.planes for level in SPEC.levels("gpu"))
    for level, planes in zip(SPEC.levels("gpu")[1:], others, strict=True):
        assert_close(planes, plain, level.id)
