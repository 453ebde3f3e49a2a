"""The field's names, axes and types: the results of scipy.ndimage, in the type that came in."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

import kernelscope
from kernelscope.library.arguments import MODES
from kernelscope.library.session import LibrarySession

ks: Any = kernelscope  # tests also give arguments that the stub refuses

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def samples(dtype: str, shape: tuple[int, ...] = (20, 31), seed: int = 0) -> NDArray[Any]:
    """Return samples over the whole range of a type, as far as 64-bit floats hold it."""
    random, kind = np.random.default_rng(seed), np.dtype(dtype)
    if kind.kind == "f":
        return random.normal(0, 100, shape).astype(dtype)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    limits, most = np.iinfo(kind), 2**53
    return random.integers(max(limits.min, -most), min(limits.max, most), shape, kind, True)


def medians(array: NDArray[Any], *arguments: Any, **named: Any) -> NDArray[Any]:
    """Return SciPy's, which has none of 16-bit floats."""
    known = array.astype(np.float32) if array.dtype == np.float16 else array
    return ndimage.median_filter(known, *arguments, **named).astype(array.dtype)


# Types --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_means_of_integers_are_exact(dtype: str) -> None:
    """Against sums of Python's integers: ties go to the even neighbour."""
    image = samples(dtype, (8, 9))
    if image.dtype.itemsize == 8:
        image //= 16  # 64-bit floats have to hold the sums
    wide = np.pad(image.astype(object), 1, mode="symmetric")
    found = ks.mean(image)
    assert found.dtype == image.dtype
    for y, x in np.ndindex(8, 9):
        total = sum(map(int, wide[y : y + 3, x : x + 3].ravel()))
        assert int(found[y, x]) == round(Fraction(total, 9))


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 1e-4)])
def test_floats_keep_their_precision(dtype: str, error: float) -> None:
    image = samples(dtype)
    wide = image.astype(np.float64)
    expected = ndimage.uniform_filter(wide, 5, mode="wrap")
    found = ks.mean(image, size=5, border="wrap")
    assert found.dtype == image.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=error)
    bent = ks.laplace(image, negative="clip")  # the sign stays, as some samples are negative
    np.testing.assert_allclose(bent, ndimage.laplace(wide), rtol=0, atol=10 * error)


def test_floats_beyond_those_of_32_bits() -> None:
    image = samples("float64") * 1e300
    np.testing.assert_array_equal(ks.median(image), medians(image, 3), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_results_saturate_and_never_wrap(dtype: str) -> None:
    limits = np.iinfo(dtype)
    image = np.where(np.arange(12) < 6, limits.min, limits.max).astype(dtype)
    found = ks.sobel(np.tile(image, (9, 1)))
    assert found.dtype == image.dtype
    assert found.max() == limits.max
    assert found.min() == 0
    kept = ks.laplace(np.tile(image, (9, 1)), negative="clip")
    assert (kept.min(), kept.max()) == (limits.min, limits.max)
    assert ks.sobel(np.tile(image, (1, 9, 1)), axis="z").max() == limits.max


def test_edges_of_signed_integers_keep_their_sign() -> None:
    image = samples("int16") // 16  # clipping would lose a half of each edge
    found = ks.laplace(image, negative="clip")
    assert found.dtype == image.dtype
    assert (found < 0).any()
    np.testing.assert_array_equal(found, ks.laplace(image.astype(np.float64), negative="clip"))


@pytest.mark.parametrize("dtype", ["int16", "float64", "float16"])
def test_a_denoiser_returns_the_type_that_came_in(dtype: str) -> None:
    image = (np.abs(samples(dtype)) / 4 + 50).astype(dtype)
    found = ks.nlm(image, sigma=5.0, search_radius=2)
    assert found.dtype == image.dtype
    expected = ks.nlm(image.astype(np.float32), sigma=5.0, search_radius=2)
    np.testing.assert_allclose(found.astype(float), expected, atol=0.6 if dtype[0] == "i" else 0.1)


def test_nan_of_64_bits_is_filtered_as_a_number() -> None:
    image = samples("float64")
    image[3, 4] = np.nan
    with pytest.raises(ks.NotANumber):
        ks.median(image)
    found = ks.median(image, nan=0)
    assert np.argwhere(np.isnan(found)).tolist() == [[3, 4]]
    with pytest.raises(ks.InvalidImage):
        ks.median(np.full((4, 4), np.inf))


def test_progress_and_cancel_of_other_types() -> None:
    seen: list[float] = []
    ks.mean(samples("float64", (300, 200)), progress=lambda stage, part: seen.append(part))
    assert seen[-1] == 1
    with pytest.raises(ks.Cancelled):
        ks.mean(samples("int32"), cancel=lambda: True)


# Borders ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_those_of_scipy_and_numpy(mode: str) -> None:
    image = samples("uint8")
    scipy = {"symmetric": "reflect", "edge": "nearest"}.get(mode, mode)
    np.testing.assert_array_equal(
        ks.median(image, size=7, mode=mode), medians(image, 7, mode=scipy)
    )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_cval_is_the_value_outside(dtype: str) -> None:
    image = samples(dtype)
    found = ks.median(image, size=5, mode="constant", cval=77)
    np.testing.assert_array_equal(found, medians(image, 5, mode="constant", cval=77), strict=True)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"mode": "reflekt"}, "mode: there is no “reflekt”. Use one of reflect,"),
        ({"mode": "wrap", "border": "mirror"}, "mode: “wrap” is not border “mirror”."),
        ({"cval": 3}, "cval: border “reflect” has no constant outside."),
        ({"mode": "constant", "cval": "x"}, "cval: 'x' is not a number."),
        ({"mode": "constant", "cval": 300}, "cval: samples of type uint8 have no value 300."),
        ({"mode": "constant", "cval": 1.5}, "cval: samples of type uint8 have no value 1.5."),
        ({"size": (3, 3, 3)}, "size: (3, 3, 3) are not two sides, and a picture has two axes."),
        ({"axes": (0, 0)}, "axes: (0, 0) does not name two axes."),
        ({"axes": 1}, "axes: 1 does not name two axes."),
        ({"axes": (0, 9)}, "axes: an array of 2 axes has no axis 9."),
        ({"channel_axis": "c"}, "channel_axis: 'c' is not a whole number."),
        ({"alpha": 1}, "alpha: 1 is not True or False."),
        ({"alpha": True}, "alpha: an array of 1 channel has none."),
        ({"out": np.zeros((3, 3))}, "out: an array of shape (3, 3) and type float64 cannot hold"),
        ({"out": [1]}, "out: an object of type list cannot hold"),
    ],
)
def test_wrong_values_are_named(named: dict[str, Any], message: str) -> None:
    with pytest.raises(ks.AppError) as error:
        ks.median(samples("uint8"), **named)
    assert str(error.value).startswith(f"median(): {message}")


SIDES: list[Any] = [4, 2, (3, 5), (2, 7), (1, 6), (14, 2), [5, 4]]


@pytest.mark.parametrize("size", SIDES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float64"])
def test_averages_have_masks_of_any_sides(size: Any, dtype: str) -> None:
    image = samples(dtype)
    if image.dtype.kind != "f":
        image //= 4  # sums of the largest weights stay below 2**53
    height, width = (size, size) if isinstance(size, int) else size
    for name, weights in (("mean", lambda n: [1] * n), ("weighted_mean", binomial)):
        mask = np.outer(weights(height), weights(width)).astype(float)
        for mode in ("reflect", "mirror", "nearest", "constant", "wrap"):
            exact = ndimage.correlate(image.astype(float), mask, mode=mode) / mask.sum()
            found = getattr(ks, name)(image, size=size, mode=mode)
            assert found.dtype == image.dtype
            if image.dtype.kind == "f":
                np.testing.assert_allclose(found, exact, atol=1e-9)
            else:
                np.testing.assert_array_equal(found, np.rint(exact), f"{name} {mode}")


def binomial(side: int) -> list[int]:
    return [math.comb(side - 1, place) for place in range(side)]


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("threshold_mean", (3, 5), "(3, 5) is no square, and the mask is one. Use one number; ks."),
        ("threshold_mean", 4, "4 is even. A mask needs a centre: use 3 or 5."),
        ("mean", 16, "a mask of 16×16 cells is too large. Use sides up to 15, or a square: odd, 3"),
        ("weighted_mean", (3, 17), "a mask of 3×17 cells is too large. Use sides up to 15, or"),
        ("mean", (3, 0), "(3, 0) is no square"),
        ("mean", True, "True is"),
    ],
)
def test_masks_of_no_such_sides_are_refused(name: str, size: Any, message: str) -> None:
    with pytest.raises(ks.InvalidParameter) as error:
        getattr(ks, name)(samples("uint8"), size=size)
    assert str(error.value).startswith(f"{name}(): size: {message}")


def test_a_square_may_be_a_pair() -> None:
    image = samples("uint8")
    np.testing.assert_array_equal(ks.median(image, size=(5, 5)), ks.median(image, size=5))


# Axes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_channel_is_filtered(channels: int) -> None:
    image = samples("uint8", (20, 31, channels))
    np.testing.assert_array_equal(ks.median(image), medians(image, (3, 3, 1)), strict=True)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64"])
@pytest.mark.parametrize(("axis", "channels"), [(0, 3), (1, 7), (-1, 5), (2, 2)])
def test_channels_may_be_any_axis(dtype: str, axis: int, channels: int) -> None:
    shape = [20, 31]
    shape.insert(axis % 3, channels)
    image = samples(dtype, tuple(shape))
    size = [3, 3]
    size.insert(axis % 3, 1)
    found = ks.median(image, channel_axis=axis)
    np.testing.assert_array_equal(found, medians(image, size), strict=True)


def test_rows_and_columns_may_change_places() -> None:
    stack = samples("uint8", (3, 12, 14))
    found = ks.mask(stack, mask="1 2 3; 0 0 0; 0 0 0", axes=(2, 1))
    for one, other in zip(found, stack, strict=True):
        np.testing.assert_array_equal(one, ks.mask(other.T.copy(), mask="1 2 3; 0 0 0; 0 0 0").T)


def test_four_axes_with_channels() -> None:
    stack = samples("uint8", (2, 3, 3, 12, 14))
    found = ks.greyscale(stack, axes=(3, 4), channel_axis=2)
    assert found.shape == (2, 3, 12, 14)
    one = np.moveaxis(stack[1, 2], 0, -1)
    np.testing.assert_array_equal(found[1, 2], ks.greyscale(one))
    colours = ks.sobel(stack[0, 0], axes=(1, 2), form="angle-colour")
    assert colours.shape == (3, 12, 14, 3)
    np.testing.assert_array_equal(colours[2], ks.sobel(stack[0, 0, 2], form="angle-colour"))


def test_alpha_is_declared() -> None:
    image = samples("uint8", (20, 31, 4))
    image[:10, :, 3] = 0
    kept = ks.median(image, alpha=True)
    np.testing.assert_array_equal(kept[..., 3], image[..., 3])
    np.testing.assert_array_equal(kept[:10], image[:10])
    first = np.moveaxis(ks.median(np.moveaxis(image, 2, 0), channel_axis=0, alpha=True), 0, 2)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *((dtype, (9, 10, 3)) for dtype in ("bool", "int16", "uint32")),
        *itertools.product(
            ("uint8", "uint16", "float32", "float64"), ((3, 40, 3), (4, 40, 2), (2, 40, 4))
        ),
    ],
)
def test_channels_first_or_last_or_none_asks(dtype: str, shape: tuple[int, ...]) -> None:
    """Of types that pictures have where both ends may be channels; of others at width 3."""
    stack = samples(dtype, shape)
    with pytest.raises(ks.InvalidImage, match=r"may be a picture in colour or a stack.*axes="):
        ks.median(stack)
    np.testing.assert_array_equal(ks.median(stack, channel_axis=-1), medians(stack, (3, 3, 1)))
    np.testing.assert_array_equal(ks.median(stack, axes=(1, 2)), medians(stack, (1, 3, 3)))


@pytest.mark.parametrize(
    ("shape", "known_as"), [((20, 33, 3), "red, green and blue"), ((20, 33, 2), "2 channels")]
)
def test_channels_that_nobody_declared_are_in_the_log(
    shape: tuple[int, ...], known_as: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "kernelscope"):
        ks.median(samples("uint8", shape), channel_axis=-1)
        assert "taken for" not in caplog.text
        ks.median(samples("uint8", shape))
    assert f"image: the last axis of shape {shape} is taken for {known_as}. Of a" in caplog.text


OUT_CASES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("median", (20, 33, 3), {}),
    ("greyscale", (20, 33, 3), {}),
    ("greyscale", (20, 33, 4), {"alpha": True}),
    ("median", (20, 33, 3), {"border": "valid", "size": 5}),
    ("median", (20, 33, 3), {"grey": True}),
    ("median", (20, 33, 1), {}),
    ("sobel", (20, 33), {"form": "angle-colour"}),
    ("sobel", (5, 20, 33), {"axes": (1, 2), "form": "angle-colour"}),
    ("median", (5, 20, 33), {"axes": (1, 2), "border": "valid"}),
    ("median", (20, 33, 7), {"channel_axis": -1}),
    ("median", (2, 20, 33, 3), {"axes": (1, 2), "channel_axis": 3}),
    ("median", (5, 20, 33), {"axis": "y"}),
]


@pytest.mark.parametrize(("name", "shape", "named"), OUT_CASES)
def test_a_wrong_out_is_refused_before_the_run(
    name: str, shape: tuple[int, ...], named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    image, function = samples("uint8", shape), getattr(ks, name)
    expected = function(image, **named)
    out = np.empty_like(expected)
    assert function(image, **named, out=out) is out
    np.testing.assert_array_equal(out, expected)
    monkeypatch.setattr(LibrarySession, "run", lambda *given: pytest.fail("it ran"))
    for wrong in (np.empty((*out.shape, 2), "u1"), np.empty(out.shape, "u2"), [[0]]):
        with pytest.raises(ks.InvalidParameter, match=re.escape(f"Give one of shape {out.shape}")):
            function(image, **named, out=wrong)
    out.flags.writeable = False
    with pytest.raises(ks.InvalidParameter, match="out: the array is read-only"):
        function(image, **named, out=out)


@pytest.mark.slow
@pytest.mark.parametrize("specks", [False, True])
def test_denoise_takes_what_other_calls_take(specks: bool) -> None:
    random = np.random.default_rng(0)
    plane = np.add.outer(np.arange(48), np.arange(48)) + random.normal(0, 6, (48, 48))
    if specks:
        plane[random.random((48, 48)) < 0.05] = 120
    stack = np.stack([plane, plane.T, plane]).clip(0, 255).astype(np.uint8)
    function = ks.median if specks else ks.collaborative
    cases: list[tuple[Any, dict[str, Any]]] = [
        (plane.astype(np.int16), {}),
        (plane.tolist(), {}),
        (np.ma.array(stack[0], mask=stack[0] > 90), {"nan": 0}),
        (stack, {"axes": (1, 2)}),
        (stack, {"axis": "z"}),
        (np.stack([stack[0]] * 7, 2), {"channel_axis": -1}),
    ]
    for image, named in cases:
        expected = function(image, **named)
        found = ks.denoise(image, **named)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected, strict=True)


def test_noise_differs_from_picture_to_picture() -> None:
    noisy = ks.gaussian_noise(np.full((3, 20, 20), 0.5, np.float32), axes=(1, 2), seed=5)
    np.testing.assert_array_equal(noisy[0], ks.gaussian_noise(np.full((20, 20), 0.5, "f4"), seed=5))
    assert not np.array_equal(noisy[0], noisy[1])
    assert not np.array_equal(noisy[1], noisy[2])


def test_progress_of_a_stack_goes_on() -> None:
    seen: list[float] = []
    ks.median(
        samples("uint8", (5, 20, 31)), axes=(1, 2), progress=lambda _, part: seen.append(part)
    )
    assert seen == sorted(seen)
    assert seen[-1] == 1


# Containers ---------------------------------------------------------------------------


def test_lists_and_masked_arrays() -> None:
    image = samples("uint8")
    np.testing.assert_array_equal(ks.median(image.tolist()), medians(image.astype(int), 3))
    masked = np.ma.masked_greater(image, 200)
    with pytest.raises(ks.InvalidImage, match=r"filled\(0\), or give a number to filter them as"):
        ks.median(masked)
    found = ks.median(masked, nan=0)
    np.testing.assert_array_equal(np.ma.getmaskarray(found), masked.mask)
    np.testing.assert_array_equal(found.data, medians(masked.filled(0), 3))
    rows = ks.median(list(masked), nan=0)
    np.testing.assert_array_equal(rows.data, found.data)
    np.testing.assert_array_equal(ks.median(np.ma.asarray(image)), medians(image, 3))


class Labelled:
    """The members of xarray's DataArray that count here."""

    def __init__(self, data: Any, dims: tuple[str, ...], coords: Any) -> None:
        self.data, self.dims, self.coords = data, dims, coords
        self.shape = data.shape

    def copy(self, data: Any) -> Labelled:
        return Labelled(data, self.dims, self.coords)


def test_names_and_coordinates_of_axes_are_kept() -> None:
    stack: Any = Labelled(samples("uint8", (4, 20, 31)), ("time", "y", "x"), {"time": [1, 2, 3, 4]})
    found: Any = ks.median(stack, axes=("y", "x"))
    assert (found.dims, found.coords) == (stack.dims, stack.coords)
    np.testing.assert_array_equal(found.data, medians(stack.data, (1, 3, 3)))
    found = ks.median(stack, channel_axis="time")
    np.testing.assert_array_equal(found.data, medians(stack.data, (1, 3, 3)))
    with pytest.raises(ks.InvalidParameter, match=r"There is no axis “z”\. Use one of time, y, x"):
        ks.median(stack, axes=("z", "x"))


def test_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    image = xarray.DataArray(samples("float64"), dims=("y", "x"), coords={"x": np.arange(31.0)})
    found = ks.median(image)
    assert isinstance(found, xarray.DataArray)
    assert found.dims == image.dims
    assert found.coords.equals(image.coords)


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    found = ks.median(torch.from_numpy(samples("int16")))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), medians(samples("int16"), 3))


def test_tensors_that_numpy_cannot_read_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ks.InvalidImage, match="the tensor is no array of NumPy"):
        ks.median(torch.eye(5).to_sparse())


@pytest.mark.slow
def test_volumes_come_back_in_the_container_that_they_came_in() -> None:
    first: Any = Labelled(samples("float32", (5, 20, 31)), ("z", "y", "x"), {"z": [1, 2, 3, 4, 5]})
    second = np.ma.array(samples("float32", (5, 20, 31)), mask=False)
    second[2, 3, 4] = np.ma.masked
    how: Any = {"search_radius": 1, "sigma": 0.1, "nan": 0}
    expected = ks.mri_nlm(first.data, components=[second.filled(0)], **how)
    with pytest.raises(ks.InvalidImage, match=r"components\[0\]: some elements .* are masked"):
        ks.mri_nlm(first, components=[second], **{**how, "nan": None})
    for call in (ks.mri_nlm, ks.Recipe(ks.mri_nlm(search_radius=1, sigma=0.1))):
        named = how if call is ks.mri_nlm else {"nan": 0}
        labelled, masked = call(first, components=[second], **named)
        assert (labelled.dims, labelled.coords) == (first.dims, first.coords)
        np.testing.assert_array_equal(labelled.data, expected[0])
        np.testing.assert_array_equal(masked.mask, second.mask)
        np.testing.assert_array_equal(masked.data, expected[1])


def test_a_table_is_no_array() -> None:
    class Table:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("cannot convert a Dataset")

    with pytest.raises(ks.InvalidImage, match=r"this is no array \(cannot convert a Dataset\)"):
        ks.median(Table())  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_dask_array_of_unknown_shape_is_refused() -> None:
    array = pytest.importorskip("dask.array")
    image = array.from_array(samples("uint8", (50, 61)), chunks=(17, 20))
    with pytest.raises(ks.InvalidImage, match=r"not known yet\. Call image\.compute_chunk_sizes"):
        ks.median(image[image[:, 0] > 100])


@pytest.mark.slow
@pytest.mark.parametrize("border", ["reflect", "mirror", "nearest", "constant", "wrap", "keep"])
def test_dask_is_filtered_in_chunks(border: str) -> None:
    array = pytest.importorskip("dask.array")
    image = samples("uint8", (50, 61))
    lazy = array.from_array(image, chunks=(17, 20))
    found = ks.median(lazy, size=5, border=border)
    assert found.chunks[0][0] < 50
    assert found.dtype == image.dtype
    np.testing.assert_array_equal(
        found.compute(scheduler="sync"), ks.median(image, size=5, border=border)
    )
    steps = ks.Recipe(ks.median(size=5), ks.mean())
    np.testing.assert_array_equal(steps(lazy).compute(scheduler="sync"), steps(image))


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("nlm", {"patch": 3, "filter_sigma": 0.05, "search_radius": 3, "border": "mirror"}),
        ("sliding_dct", {}),
    ],
)
def test_dask_takes_denoisers_whose_numbers_are_given(name: str, named: dict[str, Any]) -> None:
    array = pytest.importorskip("dask.array")
    image = samples("uint8", (50, 61))
    named = {"noise": "white", "sigma": 0.05, **named}
    found = getattr(ks, name)(array.from_array(image, chunks=(17, 20)), **named)
    assert found.chunks[0][0] < 50
    expected = getattr(ks, name)(image, **named)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), expected)


@pytest.mark.parametrize(
    ("name", "named", "message"),
    [
        (
            "nlm",
            {},
            "sigma, Patch size, Filter sigma are estimated from .* "
            "Give numbers: sigma, patch, filter_sigma. Or compute the array first.",
        ),
        ("median", {"border": "valid"}, "chunks have to keep their shape"),
        ("gaussian_noise", {}, "more than its neighbours"),
    ],
)
def test_dask_refuses_filters_of_the_whole(name: str, named: dict[str, Any], message: str) -> None:
    array = pytest.importorskip("dask.array")
    with pytest.raises(ks.InvalidParameter, match=message):
        getattr(ks, name)(array.zeros((50, 61), np.uint8, chunks=(17, 20)), **named)


# Recipes ------------------------------------------------------------------------------


def test_calls_without_an_array_are_the_steps_of_a_recipe() -> None:
    image = samples("uint8", (40, 44))
    recipe = ks.Recipe(ks.median(size=5, mode="wrap"), ks.nlm(sigma=0.1, search_radius=2))
    expected = ks.nlm(ks.median(image, size=5, border="wrap"), sigma=0.1, search_radius=2)
    np.testing.assert_array_equal(recipe(image), expected)
    assert repr(ks.Recipe(recipe, ks.sobel())) == "<Recipe: median, nlm, sobel>"
    assert ks.Recipe.from_json(recipe.to_json()) == recipe
    np.testing.assert_array_equal(ks.median(size=5)(image), ks.median(image, size=5))


def test_recipes_take_other_axes_and_types() -> None:
    stack = samples("int32", (3, 20, 31))
    recipe = ks.Recipe(ks.median(), ks.mean())
    found = recipe(stack, axes=(1, 2))
    np.testing.assert_array_equal(found[1], ks.mean(ks.median(stack[1])), strict=True)
    out = np.empty_like(stack)
    assert recipe(stack, axes=(1, 2), out=out) is out


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: ks.Recipe(), ks.InvalidParameter),
        (lambda: ks.Recipe("median"), ks.InvalidParameter),
        (lambda: ks.median(device="cpu"), TypeError),
        (lambda: ks.median(sizes=3), TypeError),
        (lambda: ks.median(size=40), ks.InvalidParameter),
    ],
)
def test_wrong_steps_are_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong()


class Bar:
    """The members of a bar of tqdm that count here."""

    total: float | None = None
    n = 0.0

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def update(self, amount: float) -> None:
        raise AssertionError(amount)

    def set_description(self, text: str, refresh: bool) -> None:
        self.text = text

    def refresh(self) -> None:
        self.seen.append((self.text, self.n))


def test_a_bar_of_tqdm_shows_progress() -> None:
    bar = Bar()
    ks.median(samples("uint8"), progress=bar)
    assert bar.total == 1
    assert bar.seen[-1] == ("compute", 1.0)


@pytest.mark.parametrize(
    ("step", "dtype", "shape", "says"),
    [
        ("mask", np.int16, (40, 40), "sign are those of the whole"),
        ("negative", np.int32, (40, 40), "sign are those of the whole"),
        ("greyscale", np.uint8, (40, 40, 3), "keep their shape"),
        ("mean", np.uint8, (2, 40), "smaller than the mask"),
        ("nlm", np.uint8, (2, 40), "smaller than the mask. Compute the array first"),
    ],
)
def test_chunks_that_would_differ_from_the_whole_are_refused(
    step: str, dtype: Any, shape: tuple[int, ...], says: str
) -> None:
    """Each chunk would have a sign, a white or a shape of its own."""
    dask = pytest.importorskip("dask.array")
    array = dask.from_array(np.ones(shape, dtype), chunks=20)
    how = {"size": 9} if step == "mean" else {}
    with pytest.raises(ks.AppError, match=says):
        getattr(ks, step)(array, **how)


def test_integers_are_refused_from_the_first_that_floats_do_not_hold() -> None:
    held = np.full((5, 5), 2**53, np.int64)
    np.testing.assert_array_equal(ks.median(held), held)
    with pytest.raises(ks.AppError, match="do not hold these integers"):
        ks.median(held + 1)
    with pytest.raises(ks.AppError, match="do not hold these integers"):
        ks.sobel(np.full((5, 5, 3), 2**60 + 1, np.int64), channel_axis=-1)


def test_a_mask_is_kept_or_the_result_refused() -> None:
    values = np.ma.array(np.arange(36, dtype=np.uint8).reshape(6, 6))
    assert isinstance(ks.median(values), np.ma.MaskedArray)
    values[2, 2] = np.ma.masked
    with pytest.raises(ks.AppError, match="another shape than the mask"):
        ks.median(values, nan=0, border="valid")
    for number in (300, 0.5):
        with pytest.raises(ks.AppError, match="have no value"):
            ks.median(values, nan=number)
