"""Footprints and morphology as scipy.ndimage has them: its cases, and its results of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

import kernelscope as ks
from kernelscope.base.errors import InvalidParameter
from tests.oracle import OWN_FOOTPRINT

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "median": (ks.median, ndimage.median_filter),
    "minimum": (ks.minimum, ndimage.minimum_filter),
    "maximum": (ks.maximum, ndimage.maximum_filter),
}

OPERATIONS = {
    "opening": ndimage.grey_opening,
    "closing": ndimage.grey_closing,
    "gradient": ndimage.morphological_gradient,
    "white-top-hat": ndimage.white_tophat,
    "black-top-hat": ndimage.black_tophat,
}


def cells(dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    values = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 60, shape)
    return (values - (20 if np.dtype(dtype).kind in "if" else 0)).astype(dtype)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", TYPES)
def test_ranks_of_every_type(name: str, dtype: str) -> None:
    """Tables of even and odd sides, the default border and others, one picture per type."""
    own, theirs = PAIRS[name]
    source = cells(dtype, (17, 22))
    for mask in (np.ones((2, 2)), np.array(OWN_FOOTPRINT), np.eye(7), np.ones((1, 6))):
        for mode in ("reflect", "nearest", "wrap"):
            wanted = theirs(source, footprint=mask.astype(bool), mode=mode)
            found = own(source, footprint=mask, mode=mode)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted, f"{mask.shape} {mode}")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "float64"])
def test_morphology_of_every_type(operation: str, dtype: str) -> None:
    source = cells(dtype, (17, 22))
    for mask in (np.ones((3, 3)), np.array(OWN_FOOTPRINT), np.ones((4, 2))):
        wanted = OPERATIONS[operation](source, footprint=mask.astype(bool))
        if np.dtype(dtype).kind == "u":  # a mask that is not symmetric has differences below 0
            wide = OPERATIONS[operation](source.astype(int), footprint=mask.astype(bool))
            wanted = np.maximum(wide, 0).astype(dtype)
        found = ks.morphology(source, operation=operation, footprint=mask)  # type: ignore[call-overload]
        assert found.dtype == source.dtype
        np.testing.assert_array_equal(found, wanted, str(mask.shape))


def test_a_disk_is_that_of_scikit_image() -> None:
    from skimage.morphology import disk

    source = cells("uint8", (20, 21))
    for radius in (1, 2, 5, 15):
        wanted = ndimage.median_filter(source, footprint=disk(radius))
        found = ks.median(source, size=2 * radius + 1, footprint="disk")
        np.testing.assert_array_equal(found, wanted)


def test_a_full_square_is_the_square_also_where_cells_are_left_out() -> None:
    source = cells("uint8", (9, 12))
    found = ks.median(source, footprint=np.ones((5, 5)), border="reduce")
    np.testing.assert_array_equal(found, ks.median(source, size=5, border="reduce"))


def test_valid_is_cut_off_on_all_sides_alike() -> None:
    """The right and the lower edge have no cells of an even mask, but lose as many pixels."""
    source = cells("uint8", (9, 12))
    whole = ndimage.minimum_filter(source, footprint=np.ones((4, 2)))
    found = ks.minimum(source, footprint=np.ones((4, 2)), border="valid")
    np.testing.assert_array_equal(found, whole[2:-2, 2:-2])


def test_a_value_outside_is_refused_where_results_lie_around_the_picture() -> None:
    source = cells("uint8", (9, 12))
    found = ks.minimum(source, footprint=OWN_FOOTPRINT, mode="constant", cval=7)
    mask = np.array(OWN_FOOTPRINT, bool)
    wanted = ndimage.minimum_filter(source, footprint=mask, mode="constant", cval=7)
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(InvalidParameter, match="cval"):
        ks.morphology(source, mode="constant", cval=7)


@pytest.mark.parametrize("footprint", [np.zeros((3, 3)), np.ones((32, 3)), "round", [1, 0]])
def test_what_is_no_mask_names_the_argument(footprint: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"median\(\): footprint: "):
        ks.median(cells("uint8", (9, 12)), footprint=footprint)


def test_a_recipe_keeps_the_table() -> None:
    step = ks.median(footprint=[[1, 0, 1], [0, 1, 0]])
    source = cells("uint8", (9, 12))
    wanted = ndimage.median_filter(source, footprint=np.array([[1, 0, 1], [0, 1, 0]], bool))
    np.testing.assert_array_equal(step(source), wanted)


@pytest.mark.parametrize("size", [(3, 5), 4])
def test_a_footprint_of_a_name_has_one_odd_side(size: Any) -> None:
    source = np.arange(80, dtype=np.uint8).reshape(8, 10)
    for shape in ("disk", [[1, 1, 0]]):
        with pytest.raises(InvalidParameter, match="no square of an odd side") as caught:
            ks.median(source, size=size, footprint=shape)
        assert "as the footprint, without a size" in caught.value.hint
    np.testing.assert_array_equal(
        ks.median(source, size=size, footprint="square"), ks.median(source, size=size)
    )
