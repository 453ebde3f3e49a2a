"""Functions of filters: the bytes of the command line and of the window, and clear errors."""

from __future__ import annotations

import sys
import threading
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope import filters
from kernelscope.backends import create_backends
from kernelscope.backends.cuda.page_locked import ResultMemory, is_page_locked
from kernelscope.cli.main import main
from kernelscope.engine.backend import close_all
from kernelscope.engine.request import Request
from kernelscope.engine.worker import Event, Finished, Worker
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import DTYPES as VOXEL_TYPES
from kernelscope.images.volume import Volume
from kernelscope.library import arrays
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from tests.backends.emulated import needs_compiler
from tests.pairs import in_turn
from tests.patience import PATIENCE

SPECS = [spec for kind in Kind for spec in filters.discover(kind).values()]
PICTURES = list(filters.discover())
VOLUMES = list(filters.discover(Kind.VOLUME))

MORE: dict[str, dict[str, Any]] = {
    "median": {"size": 5, "border": "mirror"},
    "mask": {"mask": "0 -1 0; -1 5 -1; 0 -1 0", "divisor": "one"},
    "sobel": {"form": "angle-colour", "grey": True},
    "mean": {"size": 7, "border": "valid"},
    "nlm": {"patch": 3, "search_radius": 2},
    "gaussian_noise": {"sigma": 0.1, "seed": 7},
    "laplace": {"within": "ellipse 4,3 20,15"},
    "mri_nlm": {"search_radius": 2, "sigma": 20.0},
    "volume_collaborative": {"sigma": 20.0},
    "volume_dct": {"sigma": 20.0},
}
"""Arguments other than the defaults, of every type."""


def function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(ks, name)
    return found


def picture(dtype: Any, channels: int = 3) -> NDArray[Any]:
    random = np.random.default_rng(5)
    white = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return (random.random((19, 27, channels)) * white).astype(dtype)


def head(dtype: Any = np.float32) -> NDArray[Any]:
    random = np.random.default_rng(6)
    return random.normal(100, 20, (5, 9, 11)).clip(0, 255).astype(dtype)


def options(arguments: dict[str, Any]) -> list[str]:
    """Return keyword arguments as options of the command line."""
    words = []
    for name, value in arguments.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words


# The same bytes -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), in_turn(PICTURES, DTYPES, every=3), ids=str)
def test_bytes_of_the_command_line(name: str, dtype: Any, here: Path) -> None:
    image = picture(dtype)
    tifffile.imwrite("in.tif", image, photometric="rgb")
    for arguments in ({}, MORE.get(name)):
        if arguments is None:
            continue
        line = ["apply", name.replace("_", "-"), "in.tif", "out.tif", "--quiet"]
        assert main([*line, *options(arguments)]) == 0
        made = function(name)(image, **arguments)
        np.testing.assert_array_equal(made, tifffile.imread("out.tif"), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), in_turn(PICTURES, DTYPES, every=3), ids=str)
def test_bytes_of_the_window(name: str, dtype: Any) -> None:
    """The window submits requests to a worker."""
    image = picture(dtype, 1)[:, :, 0]
    made = function(name)(image)
    found: list[Event] = []
    done = threading.Event()

    def emit(event: Event) -> None:
        found.append(event)
        if isinstance(event, Finished):
            done.set()

    backends = create_backends()
    worker = Worker(backends, emit)
    try:
        worker.submit(Request.create(Image.from_array(image), name, estimated(name, image)))
        assert done.wait(PATIENCE)
    finally:
        worker.close()
        close_all(backends.values())
    assert isinstance(found[-1], Finished)
    np.testing.assert_array_equal(made, found[-1].result.image.pixels, strict=True)


def estimated(name: str, image: NDArray[Any]) -> dict[str, Any]:
    """Return the numbers that the window estimates before it submits a request."""
    spec = filters.get(name)
    found: dict[str, Any] = {}
    for each in spec.parameters:
        if each.is_estimated:
            found[each.name] = each.estimate_from(image[:, :, None], {**spec.defaults(), **found})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*VOXEL_TYPES, np.int32, np.float64], ids=str)
@pytest.mark.parametrize("name", [*VOLUMES, "median"])
def test_bytes_of_volumes(name: str, dtype: Any, here: Path) -> None:
    volume = head(dtype)
    np.save("in.npy", volume)
    arguments = MORE[name] if name in VOLUMES else {"size": 5}
    line = ["apply", name.replace("_", "-"), "in.npy", "out.npy", "--quiet"]
    assert main([*line, *options(arguments)]) == 0
    axis = {} if name in VOLUMES else {"axis": "z"}
    made = function(name)(volume, **arguments, **axis)
    np.testing.assert_array_equal(made, np.load("out.npy"), strict=True)


@pytest.mark.slow
def test_components_are_filtered_together(here: Path) -> None:
    first, second = head(), head()[::-1].copy()
    np.save("t1.npy", first)
    np.save("t2.npy", second)
    line = "apply mri-nlm t1.npy out.npy --component t2.npy --output-component two.npy --quiet"
    assert main([*line.split(), "--search-radius", "1"]) == 0
    one, two = ks.mri_nlm(first, components=(second,), search_radius=1)
    np.testing.assert_array_equal(one, np.load("out.npy"), strict=True)
    np.testing.assert_array_equal(two, np.load("two.npy"), strict=True)
    assert not np.array_equal(one, ks.mri_nlm(first, search_radius=1))


# Arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_result_belongs_to_the_caller(spec: FilterSpec) -> None:
    """It can be written to, and the input is neither written to nor shared."""
    array = head() if spec.kind is Kind.VOLUME else picture(np.float32)
    before = array.copy()
    array.flags.writeable = False
    made = function(spec.id)(array)
    made[...] = 0
    np.testing.assert_array_equal(array, before)
    assert not array.flags.writeable
    assert not np.shares_memory(array, made)


@pytest.mark.slow
def test_a_denoiser_filters_floats_of_64_bits_in_32(caplog: pytest.LogCaptureFixture) -> None:
    image = picture(np.float32, 1)[:, :, 0]
    with caplog.at_level("INFO", "kernelscope"):
        made = ks.nlm(image.astype(np.float64))
    np.testing.assert_array_equal(made, ks.nlm(image).astype(np.float64), strict=True)
    assert "Non-local means filters 64-bit floats in 32 bits" in caplog.text


def test_memory_of_a_result_that_cannot_be_released_is_copied() -> None:
    shared = np.frombuffer(bytes(12), np.uint8).reshape(3, 4)
    made = arrays.of_scan(Scan((Volume.from_array(shared[np.newaxis]),)))[0]
    made[...] = 1
    assert not shared.any()


def test_page_locked_memory_of_a_result_is_not_copied() -> None:
    """From the third large result of a GPU on, they lie there."""
    results = ResultMemory(lambda address, size: True, lambda address: None, 1 << 30)
    shape = (1024, 4096, 1)
    for _ in range(2):
        results.take(shape, np.dtype(np.uint8))
    results.grow()
    output = results.take(shape, np.dtype(np.uint8))
    assert is_page_locked(output)
    made = arrays.of_picture(Image.from_array(output))
    assert np.shares_memory(made, output)
    made[...] = 1
    assert output.all()
    results.close()


class Exchanged:
    """An array of a library that offers DLPack and nothing else."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_arrays_are_taken_by_dlpack() -> None:
    image = picture(np.uint8)
    made = ks.median(typing.cast(Any, Exchanged(image)))
    np.testing.assert_array_equal(made, ks.median(image))


class OnCard:
    """An array of a library for GPUs."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (4, 4), "typestr": "|u1", "data": (1, False), "version": 3}


class OnOther:
    """An array on a device of another maker."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 10, 0


class Managed(OnOther):
    """An array in CUDA memory, described by DLPack alone."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 13, 0


def test_arrays_on_other_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("cupy", "torch"):
        monkeypatch.setitem(sys.modules, library, None)  # type: ignore[arg-type]
    for array in (OnCard(), Managed()):
        with pytest.raises(ks.DeviceUnavailable, match=r"image: .* CuPy or PyTorch is installed"):
            ks.median(typing.cast(Any, array))
    with pytest.raises(ks.InvalidImage, match="of another kind"):
        ks.median(typing.cast(Any, OnOther()))


# Errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 40}, "median(): size: a mask of 40×40 cells is too large. Use sides"),
        ({"size": "5"}, "median(): size: '5' is not a whole number."),
        ({"border": "none"}, "median(): border: there is no “none”. Use one of reflect,"),
        ({"border": 3}, "median(): border: there is no “3”."),
        ({"device": "tpu"}, "median(): device: there is no “tpu”. Use one of auto,"),
        ({"level": "fast"}, "median(): level: there is no “fast”. Use one of serial,"),
        ({"axis": "w"}, "median(): axis: there is no “w”. Use one of z, y, x."),
        ({"grey": "no"}, "median(): grey: 'no' is not True or False."),
        ({"nan": "x"}, "median(): nan: 'x' is not a number."),
        ({"progress": 3}, "median(): progress: int cannot be called."),
        ({"cancel": "now"}, "median(): cancel: str cannot be called."),
        ({"within": "circle"}, "median(): within: “circle” is no shape."),
        ({"within": "rectangle 90,90 99,99"}, "median(): The 9×9 rectangle at x 90, y 90 lies"),
        ({"size": 31, "border": "valid"}, "median(): The 31×31 neighbourhood does not fit"),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ks.InvalidParameter) as error:
        function("median")(picture(np.uint8), **arguments)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ("photo.png", "median(): image: an object of type str does not hold real numbers."),
        (np.zeros((4, 4), complex), "median(): image: an array of type complex128 does not hold"),
        ([[1, 2], [3]], "median(): image: this is no array"),
        (
            np.zeros((4, 4, 3), np.int64),
            "median(): image: an array of shape (4, 4, 3) and type int64 may be a picture in",
        ),
        (np.zeros(4), "median(): image: an array of shape (4,) is not a picture."),
        (np.array(3.0), "median(): image: an array of shape () is not a picture."),
        (np.zeros((4, 4), "M8[s]"), "median(): image: an array of type datetime64[s] does not"),
        (np.zeros((2, 3, 4, 5)), "median(): image: an array of shape (2, 3, 4, 5) is not a"),
        (np.zeros((5, 6, 7)), "median(): image: an array of shape (5, 6, 7) is not a picture. Use"),
        (np.zeros((0, 4)), "median(): image: the image has no pixels."),
        (np.full((4, 4), np.nan), "median(): image: 16 of 16 samples are NaN"),
        (np.full((4, 4), np.inf), "median(): image: 16 of 16 samples are infinite or too large"),
        (np.ma.masked_equal([[1.0, 2.0]], 2), "median(): image: some elements of the array are"),
    ],
)
def test_wrong_arrays_are_named(array: Any, message: str) -> None:
    with pytest.raises(ks.AppError) as error:
        ks.median(array)
    assert str(error.value).startswith(message)


def test_wrong_components_are_named() -> None:
    with pytest.raises(ks.AppError, match=r"mri_nlm\(\): components\[1\]: an array of shape"):
        ks.mri_nlm(head(), components=[head(), head()[0]])
    with pytest.raises(ks.InvalidParameter, match=r"mri_nlm\(\): components: int is no list"):
        function("mri_nlm")(head(), components=5)
    with pytest.raises(ks.InvalidParameter, match="5 volumes cannot be filtered together"):
        ks.mri_nlm(head(), components=[head()] * 4)
    with pytest.raises(ks.InvalidImage, match="volume and components"):
        ks.mri_nlm(head(), components=[head()[1:]])


def test_values_of_a_wrong_type_are_no_bug() -> None:
    for wrong in (5, None, object(), [[1, 2], 3]):
        with pytest.raises(ks.InvalidParameter, match=r"mask\(\): mask: "):
            function("mask")(picture(np.uint8), mask=wrong)
    with pytest.raises(ks.InvalidParameter, match=r"sobel\(\): form: "):
        function("sobel")(picture(np.uint8), form=np.zeros(3))


def test_calls_that_do_not_fit_are_type_errors() -> None:
    image = picture(np.uint8)
    unknown = r"median\(\) got an unexpected keyword argument 'sise'; did you mean size"
    with pytest.raises(TypeError, match=unknown):
        function("median")(image, sise=3)
    with pytest.raises(TypeError, match=unknown):
        function("median")(sise=3)
    for name, value, call in (
        ("median", 5, r"median\(image, size=5\)"),
        ("gaussian", (1, 2), r"gaussian\(image, sigma=\(1, 2\)\)"),
        ("mask", image, r"mask\(image, mask=...\)"),
        ("mri_nlm", "local", r"mri_nlm\(volume, .*='local'\)"),
        ("negative", True, r"negative\(image, .*=True\)"),
    ):
        with pytest.raises(TypeError, match=f"takes one argument by position.*; write {call}"):
            function(name)(image, value)
    with pytest.raises(TypeError, match=r"median\(\) missing a required argument: 'image'"):
        function("median")(device="cpu")


def test_the_source_may_be_given_by_name_or_by_place() -> None:
    image = picture(np.uint8)
    expected = ks.median(image, size=5)
    np.testing.assert_array_equal(function("median")(image=image, size=5), expected)
    with pytest.raises(TypeError, match=r"median\(\) multiple values for argument 'image'"):
        function("median")(image, image=image)


@pytest.mark.slow
def test_a_typed_argument_implies_others() -> None:
    """As an option of the command line does: a sigma is used, not estimated."""
    given = ks.mri_nlm(head(), sigma=20, sigma_from="given", search_radius=1)
    np.testing.assert_array_equal(ks.mri_nlm(head(), sigma=20, search_radius=1), given)
    assert not np.array_equal(ks.mri_nlm(head(), search_radius=1), given)


# Progress and cancel ------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", pytest.param("emulated", marks=needs_compiler)])
def test_cancel(device: Any) -> None:
    asked = []

    def stop() -> bool:
        asked.append(threading.get_ident())
        return len(asked) > 3

    image = np.zeros((900, 900), np.uint8)
    with pytest.raises(ks.Cancelled):
        ks.median(image, size=31, level=None, device=device, cancel=stop)
    assert len(asked) == 4, "it is not asked again once it returned True"


@pytest.mark.parametrize("callback", ["progress", "cancel"])
def test_an_error_of_a_callback_is_raised(callback: str) -> None:
    def fail(*arguments: Any) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        function("median")(picture(np.uint8), **{callback: fail})


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint32", "int64", "bool"])
def test_quality_of_grey_pictures_of_any_integers(dtype: str) -> None:
    """As of volumes, white is the range where samples are negative, else the brightest one."""
    reference = (
        np.arange(100).reshape(10, 10) % 2 if dtype == "bool" else np.arange(100).reshape(10, 10)
    )
    reference = reference.astype(dtype) - (30 if dtype.startswith("int") else 0)
    reference = reference.astype(dtype)
    result = reference.copy()
    result[0, :4] = reference[0, :4] ^ 1
    white = 1 if dtype == "bool" else 99
    found = ks.quality(result, reference)
    assert found.mse == pytest.approx(4 / 100)
    assert found.psnr == pytest.approx(10 * np.log10(white**2 / 0.04))
    assert ks.quality(result[..., np.newaxis], reference[..., np.newaxis]) == found


def test_denoise_gives_the_bytes_of_the_filter_that_suits() -> None:
    draws = np.random.default_rng(1).random((40, 60))
    pixels = np.where(draws < 0.02, 0, np.where(draws > 0.98, 255, 128)).astype(np.uint8)
    assert np.array_equal(ks.denoise(pixels), ks.median(pixels, size=3))
    assert np.array_equal(ks.denoise(pixels, border="mirror"), ks.median(pixels, border="mirror"))
    with pytest.raises(ks.AppError, match=r"denoise\(\): image"):
        ks.denoise("text")


@pytest.mark.slow
def test_denoise_mends_hot_pixels_before() -> None:
    pixels = np.broadcast_to(
        np.arange(60, 188, dtype=np.uint8)[:, None, None], (128, 128, 3)
    ).copy()
    pixels[::12, ::12, 1] = 255
    mended = ks.hot_pixels(pixels)
    assert mended[24, 24, 1] == 84
    wanted = ks.collaborative(mended, border="mirror", strength=50)
    np.testing.assert_array_equal(ks.denoise(pixels, border="mirror", strength=50), wanted)
    planes = np.moveaxis(pixels, 2, 0)
    made = ks.denoise(planes, channel_axis=0, border="mirror", strength=50)
    np.testing.assert_array_equal(np.moveaxis(made, 0, 2), wanted)


def test_denoise_names_the_functions_for_a_volume() -> None:
    volume = np.zeros((5, 6, 7), np.uint8)
    with pytest.raises(ks.AppError, match=r"; of a volume, all three\.$"):
        ks.denoise(volume)
    with pytest.raises(ks.AppError, match=r"Use ks\.volume_collaborative\(volume\) or ks"):
        ks.denoise(volume, axes=(0, 1, 2))
