"""Arrays on a GPU: recognised, filtered where they lie, and given back in their own library.

CuPy, PyTorch and the card are made up here, of memory of the host; at the end are the real ones.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.backend import Availability
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.library.functions import function_of
from kernelscope.library.session import LibrarySession
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import PARALLEL, Level

ON_GPU = [spec for spec in filters.discover().values() if spec.levels("gpu")]


# A card and libraries made up of host memory -------------------------------------------


class Card:
    """Filters at addresses, on the processor; notes the calls."""

    id, name, ordinals = "gpu", "GPU", (0,)

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._cpu = CpuBackend(1)

    def availability(self) -> Availability:
        return Availability(True, "made up")

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels(self.id)

    def run_at(
        self, request: Request, level: Level, context: RunContext, source: int, target: int
    ) -> None:
        self.calls.append(f"{request.step.filter.id} {level.id}")
        context.progress("kernel", 1.0)
        shape, dtype = request.source.pixels.shape, request.source.dtype
        image = Image.from_array(at(source, shape, dtype).copy())
        real = Request(image, request.step, request.options, noise=request.noise)
        made = self._cpu.run(real, PARALLEL, RunContext(token=context.token))
        at(target, made.shape, dtype)[...] = made.planes

    def fetch(self, address: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        self.calls.append("fetch")
        return at(address, shape, dtype).copy()

    def store(self, array: NDArray[Any], address: int) -> None:
        self.calls.append("store")
        at(address, array.shape, array.dtype)[...] = array

    def peak_at(self, address: int, samples: int) -> float:
        return float(np.abs(at(address, (samples,), np.dtype(np.float32))).max())

    def close(self) -> None:
        self._cpu.close()


def at(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    size = int(np.prod(shape)) * dtype.itemsize
    raw: Any = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(raw, np.uint8).view(dtype).reshape(shape)


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array at an address like those of a card's memory."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 256, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + size].view(dtype).reshape(shape)


@dataclass
class CupyArray:
    """Stands in for cupy.ndarray."""

    host: NDArray[Any]

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.host.ctypes.data)

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    device = types.SimpleNamespace(id=0)

    def copy(self) -> Any:
        return on_card(self.host)


class TorchType:
    """Stands in for torch.dtype."""

    def __init__(self, name: str) -> None:
        self.name, self.is_complex = name, name.startswith("complex")

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass
class Tensor:
    """Stands in for torch.Tensor."""

    host: NDArray[Any]
    requires_grad: bool = False
    is_cuda: bool = True
    device: ClassVar[Any] = types.SimpleNamespace(index=0)

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: TorchType(self.host.dtype.name))

    def numpy(self) -> NDArray[Any]:
        assert not self.is_cuda
        return self.host

    def data_ptr(self) -> int:
        return int(self.host.ctypes.data)

    def contiguous(self) -> Tensor:
        return self if self.host.flags.c_contiguous else self.clone()

    def clone(self) -> Tensor:
        return Tensor(on_card(self.host).host)


def on_card(array: NDArray[Any]) -> Any:
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return CupyArray(copy)


@contextmanager
def cuda_device(number: int) -> Iterator[None]:
    yield


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = types.ModuleType("cupy")
    module.ndarray = CupyArray
    module.ascontiguousarray = lambda each: CupyArray(np.ascontiguousarray(each.host))
    module.asarray = lambda each: CupyArray(each.host)
    module.from_dlpack = lambda each: CupyArray(each.host)
    module.empty = lambda shape, dtype: CupyArray(aligned(shape, dtype))
    module.cuda = types.SimpleNamespace(Device=cuda_device)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = types.ModuleType("torch")
    module.Tensor, module.bfloat16, module.uint8 = Tensor, None, np.uint8
    module.empty = lambda shape, dtype, device: Tensor(aligned(shape, dtype))
    module.from_dlpack = lambda each: Tensor(each.host)
    module.from_numpy = lambda each: Tensor(each, is_cuda=False)
    module.as_tensor = lambda each, device: Tensor(each.host)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setitem(sys.modules, "cupy", None)  # type: ignore[arg-type]
    return module


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    card = Card()

    @contextmanager
    def provided(
        self: LibrarySession, ordinal: int, token: CancelToken | None = None
    ) -> Iterator[Card]:
        assert ordinal == 0
        yield card

    monkeypatch.setattr(LibrarySession, "card", provided)
    yield card
    card.close()


def picture(dtype: Any, channels: int = 1, side: int = 24) -> NDArray[Any]:
    shape = (side, side + 5, channels)[: 2 if channels == 1 else 3]
    random = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return random.random(shape).astype(dtype)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


# Where they lie -----------------------------------------------------------------------


@pytest.mark.parametrize("spec", ON_GPU, ids=lambda spec: spec.id)
def test_pictures_are_filtered_where_they_lie(spec: FilterSpec, cupy: Any, card: Card) -> None:
    image = picture(np.uint8, 3)
    before = image.copy()
    source = on_card(image)
    made = function_of(spec)(source)
    assert isinstance(made, CupyArray)
    expected = function_of(spec)(image, device="cpu")
    np.testing.assert_array_equal(made.host, expected, strict=True)
    np.testing.assert_array_equal(source.host, before)
    *read, run = card.calls
    assert run == f"{spec.id} {spec.levels('gpu')[-1].id}"
    assert read in ([], ["fetch"])  # for an estimate


def test_a_chain_never_leaves_the_card(cupy: Any, card: Card) -> None:
    recipe = ks.Recipe.from_json(
        '{"format": "kernelscope recipe", "version": 2, "steps": [{"filter": "median"},'
        ' {"filter": "median", "grey": true}, {"filter": "sobel", "border": "valid"}]}'
    )
    image, stages = picture(np.uint16, 3), []
    made = recipe(on_card(image), progress=lambda stage, fraction: stages.append(stage))
    np.testing.assert_array_equal(made.host, recipe(image), strict=True)
    assert [call.split()[0] for call in card.calls] == ["median", "median", "sobel"]
    assert stages == [f"step {n} of 3, kernel" for n in (1, 2, 3)]


def test_a_level_by_name(cupy: Any, card: Card) -> None:
    ks.mean(on_card(picture(np.uint8)), level="shared")
    assert card.calls == ["mean shared"]
    made: Any = ks.mean(on_card(picture(np.uint8)), level="serial")  # the processor has it
    np.testing.assert_array_equal(made.host, ks.mean(picture(np.uint8)))
    assert card.calls[1:] == ["fetch", "store"]


def test_one_channel_stays_an_axis(cupy: Any, card: Card) -> None:
    image = picture(np.uint8)[:, :, np.newaxis]
    made: Any = ks.median(on_card(image))
    np.testing.assert_array_equal(made.host, ks.median(image), strict=True)


def test_views_are_copied_on_the_card(cupy: Any, card: Card) -> None:
    """Kernels need rows one after the other, from an aligned address on."""
    whole = on_card(picture(np.uint8, side=32)).host
    for part in (whole[:, 3:20], whole[1:], whole.T):
        made: Any = ks.median(cast(Any, CupyArray(part)))
        np.testing.assert_array_equal(made.host, ks.median(part))
    assert "fetch" not in card.calls


# By the host ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "how"),
    [
        (picture(np.uint8, 4), {}),
        (picture(np.uint8, 2), {}),
        (picture(np.float64), {}),
        (picture(np.uint8), {"within": "rectangle 2,2 9,9"}),
        (picture(np.uint8), {"device": "cpu"}),
        (picture(np.int16)[np.newaxis].repeat(6, axis=0), {"axis": "z"}),
    ],
)
def test_others_go_by_the_host_and_come_back(
    image: NDArray[Any], how: dict[str, Any], cupy: Any, card: Card
) -> None:
    made: Any = ks.median(on_card(image), **how)
    np.testing.assert_array_equal(made.host, ks.median(image, **how), strict=True)
    assert card.calls == ["fetch", "store"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mask", "nlm"])
def test_floats_with_a_sign_go_by_the_host(name: str, cupy: Any, card: Card) -> None:
    """A kernel would clip them: on the card their black is 0."""
    image = picture(np.float32) - np.float32(0.5)
    made: Any = getattr(ks, name)(on_card(image))
    np.testing.assert_array_equal(made.host, getattr(ks, name)(image), strict=True)
    assert card.calls[-2:] == ["fetch", "store"]


def test_black_without_white_is_refused_as_on_the_host(cupy: Any, card: Card) -> None:
    with pytest.raises(ks.AppError, match="Black is given without white"):
        ks.nlm(on_card(picture(np.float32)), black=-1)


def test_noise_has_no_kernels(cupy: Any, card: Card) -> None:
    image = picture(np.uint8)
    made: Any = ks.gaussian_noise(on_card(image), seed=3)
    np.testing.assert_array_equal(made.host, ks.gaussian_noise(image, seed=3))


@pytest.mark.slow
def test_volumes_and_their_components(cupy: Any, card: Card) -> None:
    first, second = (ks.phantom((9, 12, 10), weighting=each) for each in ("t1", "t2"))
    made: Any = ks.mri_nlm(on_card(first), components=[second], search_radius=1, sigma=9)
    expected = ks.mri_nlm(first, components=[second], search_radius=1, sigma=9)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one.host, other, strict=True)


def test_nan_is_replaced_or_refused(cupy: Any, card: Card) -> None:
    image = picture(np.float32)
    image[3, 4] = np.nan
    with pytest.raises(ks.NotANumber, match="NaN"):
        ks.median(on_card(image))
    made: Any = ks.median(on_card(image), nan=0)
    np.testing.assert_array_equal(made.host, ks.median(image, nan=0))


def test_a_result_that_is_not_finite_is_an_error(
    cupy: Any, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflow(request: Request, level: Level, context: RunContext, *places: int) -> None:
        at(places[1], request.source.pixels.shape, request.source.dtype).fill(np.inf)

    monkeypatch.setattr(card, "run_at", overflow)
    with pytest.raises(ks.InvalidImage, match=r"mean\(\): .*696 of 696 samples are infinite"):
        ks.mean(on_card(picture(np.float32)))


def test_figures(cupy: Any, card: Card) -> None:
    image = picture(np.uint8)
    assert ks.quality(on_card(image), image) == ks.quality(image, image)


# Other libraries --------------------------------------------------------------------------


@dataclass
class Described:
    """An array of a library that describes its memory in one of two ways."""

    host: NDArray[Any]


class ByInterface(Described):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.host.shape, "typestr": "|u1", "data": (1, False), "version": 3}


class ByDlpack(Described):
    def __dlpack_device__(self) -> tuple[int, int]:
        return 13, 0


@pytest.mark.parametrize("kind", [ByInterface, ByDlpack])
def test_cupy_wraps_arrays_of_others(kind: Any, cupy: Any, card: Card) -> None:
    image = picture(np.uint8)
    made: Any = ks.median(kind(on_card(image).host))
    assert isinstance(made, CupyArray)
    np.testing.assert_array_equal(made.host, ks.median(image))


@pytest.mark.parametrize("kind", [ByInterface, ByDlpack])
def test_torch_wraps_arrays_of_others(kind: Any, torch: Any, card: Card) -> None:
    image = picture(np.uint8)
    made: Any = ks.median(kind(on_card(image).host))
    assert isinstance(made, Tensor)
    np.testing.assert_array_equal(made.host, ks.median(image))


def test_tensors(torch: Any, card: Card) -> None:
    image = picture(np.uint8, 3)
    tensor: Any = Tensor
    for part in (image, image[:, ::2]):
        made: Any = ks.median(tensor(part))
        assert isinstance(made, Tensor)
        np.testing.assert_array_equal(made.host, ks.median(part))
    assert card.calls == 2 * ["median tuned"]
    on_host: Any = ks.median(tensor(image, is_cuda=False))
    assert not on_host.is_cuda
    np.testing.assert_array_equal(on_host.host, ks.median(image), strict=True)
    with pytest.raises(ks.InvalidImage, match=r"records gradients.*image\.detach\(\)"):
        ks.median(tensor(image, requires_grad=True))
    with pytest.raises(ks.InvalidImage, match=r"torch\.complex64 cannot be filtered"):
        ks.median(tensor(image.astype(np.complex64)))


def test_cancel_before_the_kernels(cupy: Any, card: Card) -> None:
    with pytest.raises(ks.Cancelled):
        ks.nlm(on_card(picture(np.uint8)), cancel=lambda: True)


def test_without_a_card_the_reason_is_given(cupy: Any) -> None:
    with pytest.raises(ks.DeviceUnavailable, match="GPU cannot be used"):
        ks.median(on_card(picture(np.uint8)))


# On a card --------------------------------------------------------------------------------


def real(library: str) -> tuple[Any, Any]:
    """Return functions to a card and back."""
    if library == "cupy":
        cupy = pytest.importorskip("cupy")
        return cupy.asarray, cupy.asnumpy
    torch = pytest.importorskip("torch")
    return (lambda array: torch.from_numpy(array).cuda()), lambda tensor: tensor.cpu().numpy()


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("spec", ON_GPU, ids=lambda spec: spec.id)
def test_each_filter_has_the_same_bytes(spec: FilterSpec, library: str) -> None:
    """Those of a copy on the host that the card filters; others compare the card with the CPU."""
    up, down = real(library)
    function = function_of(spec)
    images = picture(np.uint8, 1, 61), picture(np.uint16, 3, 61), picture(np.float32, 1, 61)
    for image in images:
        made = function(up(image))
        assert type(made) is type(up(image))
        np.testing.assert_array_equal(down(made), function(image, device="gpu"), strict=True)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_chains_views_and_volumes_on_a_card(library: str) -> None:
    up, down = real(library)
    recipe = ks.Recipe.from_json(
        '{"format": "kernelscope recipe", "version": 2, "steps": [{"filter": "median"},'
        ' {"filter": "median", "grey": true}, {"filter": "sobel", "border": "valid"}]}'
    )
    image = picture(np.uint8, 3, 301)
    for part in (np.s_[:], np.s_[1:], np.s_[:, 7:90], np.s_[:, ::2]):
        expected = recipe(np.ascontiguousarray(image[part]), device="cpu")
        np.testing.assert_array_equal(down(recipe(up(image)[part])), expected)
    volume = ks.noise(ks.phantom((9, 40, 30)), "rician", sigma=9, seed=0)
    made = down(ks.mri_nlm(up(volume), device="cpu", search_radius=1))
    np.testing.assert_array_equal(made, ks.mri_nlm(volume, device="cpu", search_radius=1))


@pytest.mark.gpu
def test_work_on_other_streams_is_waited_for() -> None:
    """The array is still being computed when the filter is called, and its memory is reused."""
    cupy = pytest.importorskip("cupy")
    image = picture(np.uint8, 1, 1024)
    expected = ks.median(image, device="cpu")
    stream = cupy.cuda.Stream(non_blocking=True)
    for _ in range(20):
        with stream:
            busy = cupy.random.random((3000, 3000)).astype(cupy.float32)
            for _ in range(3):
                busy = busy @ busy
            late = cupy.asarray(image) + (busy[0, 0] * 0 != 0).astype(cupy.uint8)
        made = ks.median(late)
        np.testing.assert_array_equal(cupy.asnumpy(made), expected)


@pytest.mark.gpu
def test_large_results_on_the_host_are_arrays_to_write_to() -> None:
    """From the third one on they lie in page-locked memory."""
    image = picture(np.uint8, 1, 3000)
    expected = ks.mean(image, device="cpu")
    for _ in range(5):
        made = ks.mean(image, device="gpu")
        np.testing.assert_array_equal(made, expected)
        made[...] = 0
