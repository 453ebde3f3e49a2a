"""NIfTI, TIFF and NumPy volumes: they are read as written, and damaged files are refused."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import PIL.Image
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope.base.errors import (
    AppError,
    ImageReadError,
    ImageWriteError,
    InvalidImage,
    LossyFormat,
)
from kernelscope.files import read_image
from kernelscope.files.volumes import (
    READABLE_VOLUMES,
    WRITABLE_VOLUMES,
    check_write_volume,
    is_volume,
    read_volume,
    read_volumes,
    write_volume,
    write_volumes,
)
from kernelscope.files.volumes.raw_volume import UNKNOWN_SPACING
from kernelscope.images.volume import DTYPES, Volume
from tests.scans import MNI_T1

SHAPE = (4, 5, 6)
AFFINE = np.array([[-1.5, 0, 0, 80], [0, 0.2, 2, -9], [0, 3, -0.3, 7], [0, 0, 0, 1]])


def voxels(dtype: Any = np.int16, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Distinct values over the whole range of a type; a result has its own order."""
    rng = np.random.default_rng(5)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(0, 1000, shape).astype(np.float32).astype(dtype)
    info = np.iinfo(dtype)
    low, high = max(info.min, -(2**23)), min(info.max, 2**23)
    return rng.integers(low, high, shape, endpoint=True).astype(dtype)


def nifti(
    array: np.ndarray, affine: np.ndarray | None = AFFINE, kind: type = nibabel.Nifti1Image
) -> nibabel.Nifti1Image:
    """An image of nibabel of (depth, height, width, ...) voxels, with a full header."""
    image = kind(array.T, affine, dtype=array.dtype)
    image.header["descrip"] = b"TE=4.2;Time=101112"
    image.header["aux_file"] = b"none"
    image.header["cal_max"] = 1234.5
    image.header["intent_name"] = b"T1w"
    image.header["toffset"] = 2.5
    image.header.set_xyzt_units("mm", "sec")
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"made by hand"))
    return image


def saved(tmp_path: Path, image: nibabel.Nifti1Image, name: str = "a.nii") -> Path:
    nibabel.save(image, tmp_path / name)
    return tmp_path / name


def patched(data: bytes, *fields: tuple[int, str, object]) -> bytes:
    """Overwrite fields of a header: offset, format, value."""
    changed = bytearray(data)
    for offset, form, value in fields:
        struct.pack_into(form, changed, offset, value)
    return bytes(changed)


@pytest.fixture
def plain() -> bytes:
    """A small healthy NIfTI-1 file."""
    image = nibabel.Nifti1Image(voxels().T, np.eye(4), dtype=np.int16)
    return image.to_bytes()


class TestNifti:
    @pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
    @pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4", "i1", "i4", "u4", "i8", "f8", ">i2"])
    @pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
    def test_reading_and_saving_gives_the_same_file(self, tmp_path, kind, dtype, suffix):
        array = voxels(dtype)
        path = saved(tmp_path, nifti(array, kind=kind), f"a{suffix}")
        volume = read_volume(path)
        np.testing.assert_array_equal(volume.voxels, array)
        assert volume.affine is not None
        np.testing.assert_allclose(volume.affine, AFFINE, rtol=1e-6)
        np.testing.assert_allclose(volume.spacing, np.linalg.norm(AFFINE, axis=0)[2::-1])
        assert volume.orientation == "LSA"
        again = write_volume(volume, tmp_path / f"b{suffix}")
        unpacked = gzip.decompress if suffix == ".nii.gz" else bytes
        assert unpacked(again.read_bytes()) == unpacked(path.read_bytes())

    @pytest.mark.parametrize("endianness", "<>")
    def test_either_byte_order(self, tmp_path, endianness):
        header = nibabel.Nifti1Header(endianness=endianness)
        header.set_data_dtype(np.int16)
        image = nibabel.Nifti1Image(voxels().T, AFFINE, header)
        path = saved(tmp_path, image)
        assert path.read_bytes()[:4] == struct.pack(f"{endianness}i", 348)
        volume = read_volume(path)
        np.testing.assert_array_equal(volume.voxels, voxels())
        assert write_volume(volume, tmp_path / "b.nii").read_bytes() == path.read_bytes()

    def test_results_keep_everything_but_the_voxels(self, tmp_path):
        path = saved(tmp_path, nifti(voxels()))
        volume = read_volume(path)
        result = volume.with_voxels(volume.voxels * np.float32(0.5))
        written = nibabel.load(write_volume(result, tmp_path / "b.nii.gz"))
        assert written.header == nibabel.load(path).header
        assert written.header.extensions[0].get_content() == b"made by hand"
        expected = np.rint(voxels() * 0.5).astype(np.int16)
        np.testing.assert_array_equal(np.asarray(written.dataobj).T, expected)

    def test_results_kept_as_floats_change_the_type_and_drop_the_scaling_only(self, put, tmp_path):
        data = patched(nifti(voxels()).to_bytes(), (112, "<f", 0.25), (116, "<f", -100))
        volume = read_volume(put("a.nii", data))
        result = volume.with_voxels(volume.voxels / 3, as_float=True)
        written = nibabel.load(write_volume(result, tmp_path / "b.nii"))
        assert written.get_data_dtype() == np.float32
        np.testing.assert_array_equal(np.asarray(written.dataobj).T, result.voxels)
        assert bytes(written.header["descrip"]).rstrip(b"\0") == b"TE=4.2;Time=101112"
        np.testing.assert_allclose(written.affine, AFFINE, rtol=1e-6)

    @pytest.mark.parametrize(("slope", "intercept"), [(0.25, -100), (1, -1024), (3.7, 0)])
    def test_scaling_is_applied_and_comes_back(self, tmp_path, plain, put, slope, intercept):
        data = patched(plain, (112, "<f", slope), (116, "<f", intercept))
        path = put("a.nii", data)
        volume = read_volume(path)
        np.testing.assert_allclose(volume.voxels, nibabel.load(path).get_fdata().T, rtol=1e-6)
        assert volume.voxels.dtype == np.float32
        assert "scaled by" in volume.notices[0]
        assert write_volume(volume, tmp_path / "b.nii").read_bytes() == data
        half = volume.with_voxels(volume.voxels / 2)
        written = nibabel.load(write_volume(half, tmp_path / "c.nii"))
        assert written.get_data_dtype() == np.int16
        assert (written.dataobj.slope, written.dataobj.inter) == pytest.approx((slope, intercept))
        np.testing.assert_allclose(written.get_fdata().T, half.voxels, rtol=1e-6)
        np.testing.assert_allclose(half.voxels, volume.voxels / 2, atol=slope * 0.51)

    def test_slope_zero_means_no_scaling(self, plain, put):
        volume = read_volume(put("a.nii", patched(plain, (112, "<f", 0), (116, "<f", 5))))
        np.testing.assert_array_equal(volume.voxels, voxels())
        assert volume.stored is None

    @pytest.mark.parametrize(
        ("least", "most", "window"), [(-20, 1234.5, (-20, 1234.5)), (0, 0, None), (5, -5, None)]
    )
    def test_the_window_of_the_file(self, tmp_path, least, most, window):
        image = nifti(np.arange(-12, 12, dtype=np.int16).reshape(2, 3, 4))
        image.header["cal_min"], image.header["cal_max"] = least, most
        volume = read_volume(saved(tmp_path, image))
        assert volume.channel.window == window
        assert volume.with_voxels(volume.voxels).channel.window is None

    @pytest.mark.parametrize(
        ("unit", "step", "seconds"),
        [
            ("sec", 2.2, 2.2),
            ("msec", 2200, 2.2),
            ("usec", 2.2e6, 2.2),
            ("sec", 0, None),
            ("sec", np.nan, None),
            ("hz", 2.2, None),
            ("unknown", 2.2, None),
        ],
    )
    def test_the_time_of_volumes(self, tmp_path, unit, step, seconds):
        image = nifti(voxels(shape=(3, 2, 3, 4)))
        image.header.set_xyzt_units("mm", unit)
        image.header["pixdim"][4] = step
        path = saved(tmp_path, image)
        volumes = read_volumes(path)
        assert [each.interval for each in volumes] == [pytest.approx(seconds)] * 3
        assert volumes[1].place == ("time 2" if seconds else "volume 2")
        assert write_volumes(volumes, tmp_path / "b.nii").read_bytes() == path.read_bytes()

    def test_a_fifth_axis_is_not_the_time(self, tmp_path):
        image = nifti(voxels(shape=(3, 2, 2, 3, 4)))
        image.header["pixdim"][4] = 2
        path = saved(tmp_path, image)
        assert [each.interval for each in read_volumes(path)] == [None] * 6

    @pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
    def test_a_volume_of_several(self, tmp_path, suffix):
        array = voxels(np.int16, (3, *SHAPE))
        path = saved(tmp_path, nifti(array), f"a{suffix}")
        for number in (1, 2, 3):
            volume = read_volume(path, number)
            np.testing.assert_array_equal(volume.voxels, array[number - 1])
            assert volume.notices == (f"Volume {number} of 3.",)
        written = nibabel.load(write_volume(volume, tmp_path / "b.nii"))
        assert written.shape == SHAPE[::-1]
        np.testing.assert_array_equal(np.asarray(written.dataobj).T, array[2])
        assert written.header.get_intent()[2] == "T1w"

    @pytest.mark.parametrize("number", [None, 0, 4])
    def test_which_volume_has_to_be_said(self, tmp_path, number):
        path = saved(tmp_path, nifti(voxels(np.int16, (3, *SHAPE))))
        with pytest.raises(ImageReadError) as caught:
            read_volume(path, number)
        assert caught.value.message == (
            "a.nii: it holds 3 volumes." if number is None else f"a.nii: it has no volume {number}."
        )
        assert "1: volume 1; 2: volume 2; 3: volume 3" in caught.value.hint

    def test_five_dimensions_count_on(self, tmp_path):
        array = voxels(np.int16, (2, 3, *SHAPE))
        path = saved(tmp_path, nifti(array))
        np.testing.assert_array_equal(read_volume(path, 5).voxels, array[1, 1])

    @pytest.mark.parametrize("shape", [(1, 5, 6), (5, 6), (1, 1, 1), (1, 4, 5, 6), (7,)])
    def test_few_and_many_dimensions(self, tmp_path, shape):
        array = voxels(np.uint8, shape)
        path = saved(tmp_path, nifti(array))
        volume = read_volume(path)
        depth, height, width = (1, 1, *shape)[-3:]
        np.testing.assert_array_equal(volume.voxels, array.reshape(depth, height, width))
        assert write_volume(volume, tmp_path / "b.nii").read_bytes() == path.read_bytes()

    def test_without_orientation_the_spacing_counts(self, tmp_path):
        image = nifti(voxels(), None)
        image.header.set_zooms((0.5, 2, 3))
        image.header.set_xyzt_units("mm")
        volume = read_volume(saved(tmp_path, image))
        assert volume.affine is None
        assert volume.spacing == (3, 2, 0.5)

    @pytest.mark.parametrize(("unit", "factor"), [("meter", 1000), ("micron", 1e-3), ("mm", 1)])
    def test_units(self, tmp_path, unit, factor):
        image = nifti(voxels())
        image.header.set_xyzt_units(unit)
        volume = read_volume(saved(tmp_path, image))
        assert volume.affine is not None
        np.testing.assert_allclose(volume.affine[:3], AFFINE[:3] * factor, rtol=1e-6)
        np.testing.assert_allclose(
            volume.spacing, np.linalg.norm(AFFINE, axis=0)[2::-1] * factor, rtol=1e-6
        )

    def test_an_orientation_that_makes_no_sense_is_left_aside(self, plain, put):
        volume = read_volume(put("a.nii", patched(plain, (280, "<f", float("nan")))))
        assert volume.affine is None
        assert volume.notices == (
            UNKNOWN_SPACING,
            "The orientation in its header makes no sense and is left aside.",
        )

    def test_mended_headers_do_not_print(self, plain, put, capfd):
        read_volume(put("a.nii", patched(plain, (80, "<f", -2), (72, "<h", 99))))
        assert capfd.readouterr() == ("", "")

    def test_from_another_origin(self, tmp_path):
        volume = Volume.from_array(voxels(), affine=AFFINE, spacing=(2.0, 3.0, 1.5))
        written = nibabel.load(write_volume(volume, tmp_path / "a.nii.gz"))
        np.testing.assert_array_equal(np.asarray(written.dataobj).T, voxels())
        np.testing.assert_allclose(written.affine, AFFINE, rtol=1e-6)
        assert int(written.header["sform_code"]) == 1
        assert int(written.header["qform_code"]) == 0  # AFFINE is sheared.
        plainly = Volume.from_array(voxels(), spacing=(3.0, 2.0, 0.5))
        header = nibabel.load(write_volume(plainly, tmp_path / "b.nii")).header
        assert header.get_zooms() == (0.5, 2, 3)
        assert (int(header["sform_code"]), int(header["qform_code"])) == (0, 0)
        assert read_volume(tmp_path / "b.nii").spacing == (3, 2, 0.5)
        unknown = write_volume(Volume.from_array(voxels()), tmp_path / "c.nii")
        assert nibabel.load(unknown).header.get_xyzt_units() == ("unknown", "unknown")
        assert read_volume(unknown).notices == (UNKNOWN_SPACING,)

    def test_rotations_go_into_the_quaternion_too(self, tmp_path):
        affine = np.diag([-2.0, 2.0, 3.0, 1.0])
        volume = Volume.from_array(voxels(), affine=affine, spacing=(3.0, 2.0, 2.0))
        header = nibabel.load(write_volume(volume, tmp_path / "a.nii")).header
        np.testing.assert_allclose(header.get_qform(), affine, atol=1e-6)

    def test_long_sides_need_the_second_version(self, tmp_path):
        volume = Volume.from_array(np.zeros((1, 1, 40000), np.uint8))
        path = write_volume(volume, tmp_path / "a.nii")
        assert path.read_bytes()[:4] == struct.pack("i", 540)
        assert read_volume(path).voxels.shape == (1, 1, 40000)


def test_a_real_scan(tmp_path):
    """The MNI template as nilearn packs it."""
    volume = read_volume(MNI_T1)
    image = nibabel.load(MNI_T1)
    np.testing.assert_array_equal(volume.voxels, np.asarray(image.dataobj).T)
    assert volume.describe() == f"{MNI_T1.name}, 197×233×189, 8 bit, 1×1×1 mm, RAS"
    again = write_volume(volume, tmp_path / "a.nii.gz")
    assert gzip.decompress(again.read_bytes()) == gzip.decompress(MNI_T1.read_bytes())


class TestBadNifti:
    @pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
    def test_complex(self, tmp_path, dtype):
        path = saved(tmp_path, nibabel.Nifti1Image(np.ones(SHAPE, dtype), np.eye(4)))
        with pytest.raises(ImageReadError, match="voxels are complex numbers"):
            read_volume(path)

    @pytest.mark.parametrize("names", ["RGB", "RGBA"])
    def test_colour(self, tmp_path, names):
        colour = np.zeros(SHAPE, np.dtype([(name, "u1") for name in names]))
        path = saved(tmp_path, nibabel.Nifti1Image(colour, np.eye(4)))
        with pytest.raises(ImageReadError, match="voxels are colours"):
            read_volume(path)

    @pytest.mark.parametrize("shape", [(2048, 1024, 1024), (32767, 32767, 32767)])
    @pytest.mark.parametrize("packed", [False, True])
    def test_absurd_sizes_take_no_memory(self, plain, put, shape, packed):
        fields = [(42 + 2 * i, "<h", side) for i, side in enumerate(shape)]
        data = patched(plain, *fields)
        path = put("a.nii", gzip.compress(data) if packed else data)
        with pytest.raises(InvalidImage, match="voxels are too many"):
            read_volume(path)

    @pytest.mark.parametrize("packed", [False, True])
    def test_too_short_for_its_header(self, plain, put, packed):
        data = patched(plain, *[(42 + 2 * i, "<h", 1000) for i in range(3)])
        path = put("a.nii", gzip.compress(data) if packed else data)
        with pytest.raises(ImageReadError, match="too short for the voxels of its header"):
            read_volume(path)

    @pytest.mark.parametrize("side", [0, -3])
    def test_no_voxels(self, plain, put, side):
        with pytest.raises(AppError, match="no voxels"):
            read_volume(put("a.nii", patched(plain, (44, "<h", side))))

    @pytest.mark.parametrize("packed", [False, True])
    def test_every_way_of_cutting_off(self, plain, put, packed):
        data = gzip.compress(plain) if packed else plain
        for length in range(1, len(data), 7):
            with pytest.raises(ImageReadError) as caught:
                read_volume(put("a.nii", data[:length]))
            assert caught.value.message.startswith("a.nii: ")

    def test_wrong_checksum(self, plain, put):
        data = bytearray(gzip.compress(plain))
        data[-6] ^= 1
        with pytest.raises(ImageReadError, match="damaged or cut off"):
            read_volume(put("a.nii.gz", bytes(data)))

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 351), st.integers(0, 255)), max_size=4))
    @pytest.mark.slow
    def test_damaged_headers_raise_nothing_else(self, tmp_path_factory, changes):
        image = nibabel.Nifti1Image(voxels().T, np.eye(4), dtype=np.int16)
        data = patched(image.to_bytes(), *[(offset, "B", value) for offset, value in changes])
        path = tmp_path_factory.getbasetemp() / "damaged.nii"
        path.write_bytes(data)
        try:
            volume = read_volume(path)
        except AppError:
            return
        assert volume.voxels.size <= 240

    @pytest.mark.parametrize("offset", [0, 347, -1, float("nan"), 1e30])
    def test_voxels_at_an_absurd_place(self, plain, put, offset):
        with pytest.raises(ImageReadError, match="the voxels start at byte"):
            read_volume(put("a.nii", patched(plain, (108, "<f", offset))))

    def test_half_of_a_pair(self, tmp_path):
        nibabel.save(nibabel.Nifti1Pair(voxels().T, np.eye(4)), tmp_path / "a.hdr")
        with pytest.raises(ImageReadError, match=r"half of a pair of files"):
            read_volume(tmp_path / "a.hdr")


class TestOtherFormats:
    @pytest.mark.parametrize("dtype", [*map(str, DTYPES), "int32", "float64"])
    @pytest.mark.parametrize("suffix", [".npy", ".tif"])
    @pytest.mark.parametrize("shape", [SHAPE, (1, 5, 6), (5, 6, 3), (3, 1, 1)])
    def test_voxels_and_type_come_back(self, tmp_path, dtype, suffix, shape):
        volume = Volume.from_array(voxels(dtype, shape))
        path = write_volume(volume, tmp_path / f"a{suffix}")
        again = read_volume(path)
        np.testing.assert_array_equal(again.voxels, volume.voxels)
        assert again.voxels.dtype == volume.voxels.dtype
        foreign = np.load(path) if suffix == ".npy" else tifffile.imread(path).reshape(shape)
        np.testing.assert_array_equal(foreign, voxels(dtype, shape))
        assert foreign.dtype == dtype

    def test_scaled_values_are_saved_as_they_are(self, tmp_path):
        volume = Volume.from_array(voxels(np.int16), slope=0.3)
        for name in ("a.npy", "a.tif"):
            again = read_volume(write_volume(volume, tmp_path / name))
            np.testing.assert_array_equal(again.voxels, volume.voxels)
        again = read_volume(write_volume(volume, tmp_path / "a.nii"))  # which has the slope
        np.testing.assert_allclose(again.voxels, volume.voxels, rtol=1e-6)

    def test_tiff_keeps_the_exact_spacing(self, tmp_path):
        volume = Volume.from_array(voxels(), spacing=(1 / 3, 0.9375, 2.0))
        again = read_volume(write_volume(volume, tmp_path / "a.tif"))
        assert again.spacing == (1 / 3, 0.9375, 2.0)
        assert again.notices == ()

    def test_losses_need_agreement(self, tmp_path):
        volume = Volume.from_array(voxels(np.uint8), affine=AFFINE, spacing=(2.0, 3.0, 1.5))
        for name, losses in (
            ("a.tif", "TIFF stack cannot keep orientation and position."),
            ("a.npy", "cannot keep the distance of voxels, orientation and position."),
            ("a.pngs", "cannot keep the distance of voxels, orientation and position."),
        ):
            with pytest.raises(LossyFormat) as caught:
                check_write_volume(volume, tmp_path / name)
            assert losses in caught.value.message
            assert "NIfTI" in caught.value.hint
            with pytest.raises(LossyFormat):
                write_volume(volume, tmp_path / name)
            assert not (tmp_path / name).exists()
            again = read_volume(write_volume(volume, tmp_path / name, lossy=True))
            np.testing.assert_array_equal(again.voxels, volume.voxels)

    @pytest.mark.parametrize("name", ["a.png", "a", "a.gz", "a.mha"])
    def test_unknown_suffix(self, tmp_path, name):
        with pytest.raises(ImageWriteError) as caught:
            write_volume(Volume.from_array(voxels()), tmp_path / name)
        assert (
            caught.value.hint
            == "Use one of .nii.gz, .nii, .ome.tif, .tif, .npy, .ome.zarr, .pngs, .tifs, .bmps."
        )

    def test_a_full_disk_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = write_volume(Volume.from_array(voxels()), tmp_path / "a.nii.gz")
        before = path.read_bytes()

        def fail(target: Path, data: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("kernelscope.base.atomic.replace", fail)
        with pytest.raises(ImageWriteError, match="disk is full"):
            write_volume(Volume.from_array(voxels(np.uint8)), path)
        assert path.read_bytes() == before

    def test_formats_for_dialogs(self):
        writable = [suffix for format in WRITABLE_VOLUMES for suffix in format.suffixes]
        readable = [suffix for format in READABLE_VOLUMES for suffix in format.suffixes]
        folders = [".ome.zarr", ".zarr", ".pngs", ".tifs", ".bmps"]
        assert writable == [
            ".nii.gz",
            ".nii",
            ".ome.tif",
            ".ome.tiff",
            ".tif",
            ".tiff",
            ".npy",
            *folders,
        ]
        assert {*readable, *folders} | {".ome.tif", ".ome.tiff"} == {*writable, ".dcm", ".ima"}


class TestNumpy:
    def write(self, tmp_path: Path, array: np.ndarray) -> Path:
        np.save(tmp_path / "a.npy", array)
        return tmp_path / "a.npy"

    @pytest.mark.parametrize("array", [voxels(">i2"), np.asfortranarray(voxels()), voxels()[0]])
    def test_layouts(self, tmp_path, array):
        volume = read_volume(self.write(tmp_path, array))
        np.testing.assert_array_equal(volume.voxels, array.reshape(volume.voxels.shape))
        assert volume.notices == ((UNKNOWN_SPACING,) if array.ndim == 3 else ())

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((2, 2, 2, 2)), r"shape \(2, 2, 2, 2\) is not a volume"),
            (np.zeros(3), r"shape \(3,\)"),
            (np.zeros(SHAPE, complex), "values are of type <c16"),
            (np.zeros(SHAPE, "S3"), "values are of type"),
            (np.array([[[None]]]), r"values are of type \|O"),
            (np.full(SHAPE, np.nan), "120 of 120 voxels are NaN"),
        ],
    )
    def test_refused(self, tmp_path, array, message):
        with pytest.raises(AppError, match=message):
            read_volume(self.write(tmp_path, array))

    def test_cut_off(self, tmp_path, put):
        data = self.write(tmp_path, voxels()).read_bytes()
        for length in (7, 60, 130, len(data) - 1):
            with pytest.raises(ImageReadError, match="cut off"):
                read_volume(put("b.npy", data[:length]))

    def test_absurd_size(self, tmp_path):
        path = tmp_path / "a.npy"
        with path.open("wb") as handle:
            header = {"descr": "|u1", "fortran_order": False, "shape": (2048, 1024, 1024)}
            np.lib.format.write_array_header_1_0(handle, header)
            handle.truncate(handle.tell() + 2**31)  # A hole takes no disk.
        with pytest.raises(InvalidImage, match="voxels are too many"):
            read_volume(path)


class TestTiff:
    def test_plain_pages(self, tmp_path):
        with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
            for page in voxels():
                writer.write(page, photometric="minisblack", metadata=None)
        volume = read_volume(tmp_path / "a.tif")
        np.testing.assert_array_equal(volume.voxels, voxels())
        assert volume.notices == (UNKNOWN_SPACING,)

    def test_pages_of_several_sizes_are_several_volumes(self, tmp_path):
        with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
            for page in (*voxels(np.uint8), np.ones((2, 2), np.uint8)):
                writer.write(page, photometric="minisblack", metadata=None)
        with pytest.raises(ImageReadError) as caught:
            read_volume(tmp_path / "a.tif")
        assert "1: 6×5×4; 2: 2×2×1" in caught.value.hint
        volume = read_volume(tmp_path / "a.tif", 1)
        np.testing.assert_array_equal(volume.voxels, voxels(np.uint8))

    def test_white_is_zero(self, tmp_path):
        tifffile.imwrite(tmp_path / "a.tif", voxels(np.uint8), photometric="miniswhite")
        volume = read_volume(tmp_path / "a.tif")
        np.testing.assert_array_equal(volume.voxels, 255 - voxels(np.uint8))
        assert "White is 0 in the file: inverted." in volume.notices

    @pytest.mark.parametrize("photometric", ["rgb", "palette"])
    def test_colour(self, tmp_path, photometric):
        shape = (*SHAPE, 3) if photometric == "rgb" else SHAPE
        table = np.zeros((3, 256), np.uint16) if photometric == "palette" else None
        array = np.zeros(shape, np.uint8)
        tifffile.imwrite(tmp_path / "a.tif", array, photometric=photometric, colormap=table)
        with pytest.raises(ImageReadError, match="pages are in colour"):
            read_volume(tmp_path / "a.tif")

    def test_ambiguous(self, tmp_path):
        tifffile.imwrite(
            tmp_path / "a.tif",
            voxels(np.uint8, (2, 3, 5, 6)),
            photometric="minisblack",
            metadata={"axes": "TQYX"},
        )
        with pytest.raises(ImageReadError, match="none is the depth"):
            read_volume(tmp_path / "a.tif")

    @pytest.mark.parametrize("writer", ["tifffile", "libtiff"])
    def test_cut_off(self, tmp_path, put, writer):
        """libtiff puts a page's tags behind its pixels: a cut there only shortens the chain."""
        pages = voxels(np.uint8)
        if writer == "tifffile":
            tifffile.imwrite(tmp_path / "a.tif", pages, photometric="minisblack", metadata=None)
        else:
            first, *others = (PIL.Image.fromarray(page) for page in pages)
            options: dict[str, Any] = {
                "append_images": others,
                "compression": "tiff_lzw",
            }
            first.save(tmp_path / "a.tif", save_all=True, **options)
        np.testing.assert_array_equal(read_volume(tmp_path / "a.tif").voxels, pages)
        data = (tmp_path / "a.tif").read_bytes()
        refused = 0
        for length in range(8, len(data), 5):
            path = put("b.tif", data[:length])
            try:
                volume = read_volume(path)
            except ImageReadError:
                refused += 1
            else:  # Only facts beside the picture stood in the end.
                np.testing.assert_array_equal(volume.voxels, pages)
        assert refused * 5 > 0.9 * len(data)

    def test_absurd_size(self, put):
        entries = [(256, 4, 2**16), (257, 4, 2**16), (258, 3, 8), (259, 3, 8), (262, 3, 1)]
        entries += [(273, 4, 8), (277, 3, 1), (278, 4, 2**16), (279, 4, 8)]
        tags = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
        data = b"II*\0" + struct.pack("<IH", 8, len(entries)) + tags + bytes(4)
        with pytest.raises(InvalidImage, match="voxels are too many"):
            read_volume(put("a.tif", data))


class TestRecognition:
    def test_volumes(self, tmp_path, put, plain):
        assert is_volume(tmp_path)
        assert is_volume(put("a.bin", plain))
        assert is_volume(str(put("b.bin", gzip.compress(plain))))

    def test_pictures(self, save, noise, tmp_path, put):
        assert not is_volume(save("a.png", noise((4, 5))))
        assert not is_volume(save("a.tif", noise((4, 5))))
        assert not is_volume(save("b.tif", noise((4, 5, 3))))
        assert not is_volume(tmp_path / "missing.png")
        assert not is_volume(put("c.tif", b"II*\0damaged"))

    @pytest.mark.parametrize("name", ["a" * 300 + ".nii", "b/" * 2100 + "a.nii", "a\0.nii"])
    def test_impossible_names(self, tmp_path, name):
        path = tmp_path / name
        is_volume(path)
        for read in (read_volume, read_image):
            with pytest.raises(ImageReadError, match=r"cannot be read \("):
                read(path)

    def test_damaged_nifti_gets_its_message_from_the_volume_reader(self, put):
        assert is_volume(put("a.nii.gz", b"\x1f\x8bdamaged"))

    @pytest.mark.parametrize(
        ("name", "data", "message"),
        [
            ("a.nii", b"", "the file is empty"),
            ("a.nii", b"neither", "no volume, or one of an unknown format"),
            ("a.png", b"\x89PNG\r\n\x1a\n", "no volume, or one of an unknown format"),
            ("a.nii.gz", b"\x1f\x8b\x08damaged", "compressed data are damaged"),
        ],
    )
    def test_nothing_to_read(self, put, name, data, message):
        with pytest.raises(ImageReadError, match=message) as caught:
            read_volume(put(name, data))
        assert caught.value.message.startswith(f"{name}: ")

    @pytest.mark.parametrize("name", ["missing.nii", "null\0.nii"])
    def test_no_file(self, tmp_path, name):
        with pytest.raises(ImageReadError):
            read_volume(tmp_path / name)
