"""Volumes: accepted and converted input, slices, results, and stacking."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import permutations, product
from typing import Any

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.images import volume as volume_module
from kernelscope.images.scan import Scan
from kernelscope.images.volume import DTYPES, MAX_VOXELS, Stored, Volume, narrowed, stack
from tests.pairs import together


def volume(shape: tuple[int, ...] = (2, 3, 4), dtype: Any = np.uint8, **more: Any) -> Volume:
    return Volume.from_array(np.arange(np.prod(shape)).reshape(shape).astype(dtype), **more)


class TestFromArray:
    @together("dtype", DTYPES)
    def test_keeps_what_filters_work_on(self, dtype: np.dtype) -> None:
        array = np.arange(24).reshape(2, 3, 4).astype(dtype)
        made = Volume.from_array(array, "a")
        assert np.shares_memory(made.voxels, array)
        assert made.voxels.dtype == dtype
        assert (made.depth, made.height, made.width) == (2, 3, 4)
        assert (made.notices, made.stored) == ((), None)
        assert not made.voxels.flags.writeable
        assert array.flags.writeable

    @together("layout", [lambda a: a[:, ::2], np.asfortranarray, lambda a: a.T])
    @together("dtype", ["<i2", ">i2", ">f4", ">u2", "u1"])
    def test_other_layouts_and_byte_orders_are_copied(self, layout, dtype: str) -> None:
        array = layout(np.arange(60).reshape(3, 4, 5).astype(dtype))
        made = Volume.from_array(array)
        np.testing.assert_array_equal(made.voxels, array)
        assert made.voxels.flags.c_contiguous
        assert made.voxels.dtype.isnative
        assert made.stored is None

    @together(
        ("dtype", "values", "kept", "notice"),
        [
            ("i1", (0, 100), "uint8", "Signed 8-bit integers filtered as uint8."),
            ("i1", (-1, 100), "int16", "Signed 8-bit integers filtered as int16."),
            (">i4", (0, 255), "uint8", "Signed 32-bit integers filtered as uint8."),
            ("i4", (0, 256), "uint16", "Signed 32-bit integers filtered as uint16."),
            ("i4", (-32768, 32767), "int16", "Signed 32-bit integers filtered as int16."),
            ("i4", (-1, 32768), "float32", "Signed 32-bit integers filtered as 32-bit floats."),
            ("u8", (0, 2**24), "float32", "Unsigned 64-bit integers filtered as 32-bit floats."),
            ("f8", (0.5, -1), "float32", "64-bit floats filtered as 32-bit floats."),
        ],
    )
    def test_other_types_become_the_smallest_that_holds_them(
        self, dtype: str, values: tuple[float, float], kept: str, notice: str
    ) -> None:
        array = np.array(values, dtype).reshape(1, 1, 2)
        made = Volume.from_array(array)
        assert made.voxels.dtype == kept
        np.testing.assert_array_equal(made.voxels, array)
        assert made.notices == (notice,)
        assert made.stored == Stored(np.dtype(dtype).newbyteorder("="))
        np.testing.assert_array_equal(made.unscaled, array)
        assert made.unscaled.dtype == np.dtype(dtype).newbyteorder("=")

    def test_integers_without_an_exact_float_are_refused(self) -> None:
        Volume.from_array(np.array([2**24, -1]).reshape(1, 1, 2))
        with pytest.raises(InvalidImage, match="signed 64-bit integers are too large"):
            Volume.from_array(np.array([2**24 + 1, -1]).reshape(1, 1, 2))

    def test_booleans(self) -> None:
        made = Volume.from_array(np.eye(3, dtype=bool)[None])
        np.testing.assert_array_equal(made.voxels[0], np.eye(3, dtype=np.uint8))
        assert made.voxels.dtype == np.uint8

    @together("dtype", DTYPES)
    def test_constant_volumes_are_fine(self, dtype: np.dtype) -> None:
        assert Volume.from_array(np.full((2, 2, 2), 7, dtype)).value_range == (7, 7)

    @together(
        ("array", "message"),
        [
            (np.zeros((2, 2)), "a: an array of shape (2, 2) is not a volume."),
            (np.zeros((2, 2, 2, 3)), "shape (2, 2, 2, 3) is not a volume"),
            (np.zeros((2, 0, 3)), "a: the volume has no voxels (3×0×2)."),
            (np.zeros((1, 1, 1), complex), "a: voxels of type complex128 cannot be filtered."),
            (np.zeros((1, 1, 1), object), "voxels of type object"),
            (np.array([[[0, np.nan, np.inf]]], np.float32), "a: 1 of 3 voxels is infinite"),
            (np.array([[[0, np.nan]]], np.float64), "1 of 2 voxels"),
            (np.array([[[0, 1e300]]]), "1 of 2 voxels is infinite or too large"),
            (
                np.broadcast_to(np.uint8(0), (2**10, 2**10, MAX_VOXELS // 2**20)),
                "a: 2048×1024×1024 voxels are too many.",
            ),
        ],
    )
    def test_refuses_with_the_cause(self, array: np.ndarray, message: str) -> None:
        with pytest.raises(InvalidImage) as caught:
            Volume.from_array(array, "a")
        assert message in caught.value.message


class TestScaling:
    def test_values_are_real_and_numbers_come_back(self) -> None:
        numbers = np.array([-32768, 0, 7, 32767], np.int16).reshape(1, 2, 2)
        made = Volume.from_array(numbers, slope=0.3, intercept=-1000.0)
        np.testing.assert_array_equal(made.voxels, (numbers * 0.3 - 1000).astype(np.float32))
        assert made.notices == ("Stored values are scaled by 0.3, plus -1000.",)
        np.testing.assert_array_equal(made.stored.numbers(made.voxels), numbers)

    @given(
        stn.arrays(np.int16, (1, 2, 3)),
        st.floats(2**-10, 2**10, width=32),
        st.floats(-1e4, 1e4, width=32),
    )
    def test_either_exact_or_kept_as_floats(self, numbers, slope, intercept) -> None:
        made = Volume.from_array(numbers, slope=slope, intercept=intercept)
        if made.stored is not None:
            np.testing.assert_array_equal(made.stored.numbers(made.voxels), numbers)
        elif (slope, intercept) != (1, 0):
            assert "Saved as 32-bit floats without that scaling." in made.notices

    def test_scaling_that_floats_cannot_undo_is_not_kept(self) -> None:
        made = Volume.from_array(np.array([[[1, 2]]], np.int16), slope=1e-6, intercept=1e6)
        assert made.stored is None
        assert made.notices[-1] == "Saved as 32-bit floats without that scaling."

    def test_results_take_the_steps_of_the_file(self) -> None:
        made = Volume.from_array(np.array([[[0, 10]]], np.uint8), slope=0.5)
        result = made.with_voxels(np.array([[[0.3, 1000.0]]], np.float32))
        assert result.voxels.ravel().tolist() == [0.5, 127.5]
        assert result.stored == made.stored
        free = made.with_voxels(np.array([[[0.3, 1000.0]]], np.float32), as_float=True)
        np.testing.assert_array_equal(free.voxels, np.array([[[0.3, 1000.0]]], np.float32))
        assert free.stored is None


class TestWithVoxels:
    @together(
        ("dtype", "expected"),
        [
            (np.uint8, [0, 2, 255, 0]),
            (np.int16, [0, 2, 32767, -32768]),
            (np.uint16, [0, 2, 65535, 0]),
            (np.float32, [0.5, 1.5, 1e9, -1e9]),
        ],
    )
    def test_rounds_ties_to_even_and_saturates(self, dtype: type, expected: list[float]) -> None:
        made = volume((1, 2, 2), dtype, spacing=(3.0, 2.0, 1.0), notices=("n",))
        result = made.with_voxels(np.array([0.5, 1.5, 1e9, -1e9], np.float32).reshape(1, 2, 2))
        assert result.voxels.ravel().tolist() == expected
        assert result.voxels.dtype == dtype
        assert (result.spacing, result.notices) == ((3.0, 2.0, 1.0), ("n",))
        assert not result.voxels.flags.writeable

    def test_does_not_share_memory(self) -> None:
        new = np.zeros((2, 3, 4), np.uint8)
        result = volume().with_voxels(new)
        new[...] = 1
        assert result.value_range == (0, 0)

    def test_64_bit_integers_saturate(self) -> None:
        made = Volume.from_array(np.array([[[-(2**40), 2**40]]]))
        assert made.stored == Stored(np.dtype(np.int64))
        result = made.with_voxels(np.array([[[-1e30, 1e30]]], np.float32))
        low, high = result.unscaled.ravel().tolist()
        assert low == -(2**63)
        assert 2**63 - 2**12 < high < 2**63

    @pytest.mark.parametrize("new", [np.zeros((2, 3, 5)), np.full((2, 3, 4), np.nan)])
    def test_refuses_other_shapes_and_nan(self, new: np.ndarray) -> None:
        with pytest.raises(InvalidImage):
            volume().with_voxels(new)


class TestOrientation:
    @together("order", list(permutations(range(3))))
    @together("signs", list(product([1, -1], repeat=3)))
    def test_agrees_with_nibabel(self, order, signs) -> None:
        affine = np.eye(4)
        affine[:3, :3] = np.eye(3)[list(order)] * signs * [1.0, 2.0, 0.5]
        affine[:3, :3] += 0.05  # a little oblique
        made = volume(affine=affine)
        assert made.orientation == "".join(nibabel.aff2axcodes(affine))

    @pytest.mark.parametrize(("degrees", "expected"), [(0.9, ""), (12, ", 12° oblique")])
    def test_how_oblique_it_is(self, degrees: float, expected: str) -> None:
        """Letters are those of the nearest directions, which a turned head has not quite."""
        angle = np.radians(degrees)
        affine = np.eye(4)
        affine[:2, :2] = [[-np.cos(angle), np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        assert volume(affine=affine).describe().endswith(f", LAS{expected}")

    def test_unknown(self) -> None:
        assert volume().orientation == volume().oblique == ""

    def test_describes_itself(self) -> None:
        made = volume(dtype=np.int16, title="a", spacing=(1.5, 1, 0.9375), affine=np.eye(4))
        assert made.describe() == "a, 4×3×2, 16 bit signed, 0.9375×1×1.5 mm, RAS"
        assert volume(dtype=np.float32).describe() == "untitled, 4×3×2, 32-bit float"

    def test_only_stated_distances(self) -> None:
        made = volume(dtype=np.uint8, title="a", spacing=(5e-4, 2e-4, 2e-4), stated="yx")
        assert made.describe() == "a, 4×3×2, 8 bit, 0.2×0.2 µm"
        assert made.steps == {"y": 2e-4, "x": 2e-4}


class TestStack:
    def test_components_side_by_side(self) -> None:
        parts = [volume(dtype=dtype, affine=np.eye(4)) for dtype in DTYPES]
        stacked = stack(parts)
        assert stacked.shape == (2, 3, 4, 4)
        assert stacked.dtype == np.float32
        for component, part in enumerate(parts):
            np.testing.assert_array_equal(stacked[..., component], part.voxels)

    def test_none(self) -> None:
        with pytest.raises(InvalidParameter, match="no volume"):
            stack([])

    def test_unknown_places_fit_everything(self) -> None:
        assert stack([volume(affine=np.eye(4)), volume()]).shape == (2, 3, 4, 2)

    def test_differing_shapes(self) -> None:
        with pytest.raises(InvalidImage) as caught:
            stack([volume(title="a"), volume((2, 4, 3), title="b")])
        assert caught.value.message == "a and b differ in size: 4×3×2 and 3×4×2."

    def test_differing_orientations(self) -> None:
        flipped = np.diag([-1.0, -1.0, 1.0, 1.0])
        with pytest.raises(InvalidImage, match="differ in orientation: RAS and LPS"):
            stack([volume(affine=np.eye(4)), volume(affine=flipped)])

    @pytest.mark.parametrize("shift", [0.05, 0.2])
    def test_places_may_differ_by_a_tenth_of_a_voxel(self, shift: float) -> None:
        moved = np.eye(4)
        moved[0, 3] = shift
        pair = [volume(title="a", affine=np.eye(4)), volume(title="b", affine=moved)]
        if shift < 0.1:
            stack(pair)
        else:
            with pytest.raises(InvalidImage, match=r"a and b lie up to 0\.2 mm apart"):
                stack(pair)

    def test_differing_spacing_shows_at_the_far_corner(self) -> None:
        with pytest.raises(InvalidImage, match=r"lie up to 0\.3 mm apart"):
            stack([volume(affine=np.eye(4)), volume(affine=np.diag([1.1, 1, 1, 1]))])


@pytest.mark.slow
@given(stn.arrays(np.int64, 3, elements=st.integers(-(2**24), 2**24)))
def test_narrowed_keeps_every_value(values: np.ndarray) -> None:
    result = narrowed(values)
    np.testing.assert_array_equal(result, values)
    smaller = DTYPES[: DTYPES.index(result.dtype)]
    assert not any(np.array_equal(values.astype(dtype), values) for dtype in smaller)


@together("shape", [(1, 1, 1), (70_000, 1, 2), (3, 400, 401), (40, 80, 70)])
def test_the_range_of_volumes_of_every_form(shape: tuple[int, int, int]) -> None:
    voxels = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert Volume.from_array(voxels).value_range == (voxels.min(), voxels.max())


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("filter_id", ["mri_nlm", "volume_dct"])
def test_a_volume_is_searched_for_its_range_once(
    dtype: str, filter_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its unit, its sign and its peak are the same fact, for however many threads."""
    looks = list[int]()
    look = volume_module._ends
    monkeypatch.setattr(volume_module, "_ends", lambda voxels: looks.append(1) or look(voxels))
    voxels = np.random.default_rng(0).normal(0, 50, (4, 9, 9)).astype(dtype)
    scan = Scan((Volume.from_array(voxels),))
    request = Request(scan, Step.of_numbers(filter_id))
    backends = {"cpu": CpuBackend()}
    with ThreadPoolExecutor(4) as pool, closing(backends["cpu"]):
        runs = [pool.submit(execute, request, backends) for _ in range(4)]
        results = [run.result() for run in runs]
    assert results[0].estimates["noise"] == "gaussian"
    assert len(looks) == 1


@together(
    ("dtype", "least", "peak"),
    [("uint8", 1, 200), ("int16", -32768, 32768), ("float32", -300.5, 300.5), ("uint16", 3, 200)],
)
def test_the_peak_is_known_once_the_range_is(dtype: str, least: float, peak: float) -> None:
    voxels = np.full((2, 3, 4), 200, dtype)
    voxels[1, 2, 3] = least
    volume = Volume.from_array(voxels)
    scan = Scan((volume, Volume.from_array(np.ones((2, 3, 4), np.float32))))
    assert scan.components.peak(0) is None
    assert volume.value_range == (least, 200)
    assert scan.components.peak(0) == peak
    assert scan.components.peak(1) is None
    assert Scan((volume.with_voxels(2 * voxels),)).components.peak(0) is None
