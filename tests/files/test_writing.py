"""Saving: nothing is lost unasked, and never a half-written file."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
import tifffile
from PIL.JpegImagePlugin import JpegImageFile

from kernelscope.base.errors import ImageWriteError, LossyFormat, OutOfMemory
from kernelscope.base.installed import pip_command
from kernelscope.files import READABLE, WRITABLE, check_write, read_image, write_image
from kernelscope.files.depth import compose_on_white
from kernelscope.files.volumes import write_volume
from kernelscope.images.volume import Volume
from tests.files.makers import picture
from tests.pairs import in_turn
from tests.scripts import run_python

SHAPE = (11, 13)
DTYPES = (np.uint8, np.uint16, np.float32)

# The types and channel counts that each suffix keeps.
KEPT = {
    ".png": (DTYPES[:2], (1, 2, 3, 4)),
    ".ome.tif": (DTYPES, (1, 2, 3, 4)),
    ".ome.tiff": (DTYPES, (1, 2, 3, 4)),
    ".tif": (DTYPES, (1, 2, 3, 4)),
    ".tiff": (DTYPES, (1, 2, 3, 4)),
    ".bmp": (DTYPES[:1], (1, 3)),
    ".jpg": (DTYPES[:1], (1, 3)),
    ".jpeg": (DTYPES[:1], (1, 3)),
    ".webp": (DTYPES[:1], (1, 2, 3, 4)),
    ".pgm": (DTYPES[:2], (1,)),
    ".ppm": (DTYPES[:2], (1, 3)),
}
ALL = [
    (suffix, dtype, channels) for suffix in KEPT for dtype in DTYPES for channels in (1, 2, 3, 4)
]
LOSSLESS = [
    (suffix, dtype, channels)
    for suffix, dtype, channels in ALL
    if dtype in KEPT[suffix][0] and channels in KEPT[suffix][1] and suffix not in (".jpg", ".jpeg")
]
LOSSY = [
    (suffix, dtype, channels)
    for suffix, dtype, channels in ALL
    if dtype not in KEPT[suffix][0] or channels not in KEPT[suffix][1]
]


def as_colour(pixels: np.ndarray) -> np.ndarray:
    """Return (height, width, 1 or 2) grey as RGB or RGBA; colour stays."""
    if pixels.shape[2] > 2:
        return pixels
    return np.concatenate([np.repeat(pixels[:, :, :1], 3, axis=2), pixels[:, :, 1:]], axis=2)


def test_the_table_covers_every_format():
    assert [suffix for format in WRITABLE for suffix in format.suffixes] == list(KEPT)
    readable = tuple(suffix for format in READABLE for suffix in format.suffixes)
    assert all(suffix.endswith(readable) for suffix in KEPT)


class TestRoundTrip:
    @pytest.mark.parametrize(("suffix", "dtype", "channels"), LOSSLESS)
    def test_identical(self, tmp_path, noise, suffix, dtype, channels):
        pixels = noise((*SHAPE, channels), dtype)
        path = write_image(picture(pixels), tmp_path / f"a{suffix}")
        image = read_image(path)
        if suffix in (".webp", ".ppm"):  # Formats without grey.
            pixels = as_colour(pixels)
        np.testing.assert_array_equal(image.planes, pixels)
        assert image.pixels.dtype == dtype
        assert image.notices == ()

    def test_floats_outside_0_to_1(self, tmp_path):
        pixels = np.array([[-3.5, 0.25, 1e30]], np.float32)
        path = write_image(picture(pixels), tmp_path / "a.tif")
        np.testing.assert_array_equal(read_image(path).pixels, pixels)

    @pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (1, 3, 3), (3, 1, 4)])
    @pytest.mark.parametrize("suffix", [".png", ".tif", ".webp"])
    def test_thin(self, tmp_path, noise, suffix, shape):
        image = picture(noise(shape))
        pixels = as_colour(image.planes) if suffix == ".webp" else image.planes
        path = write_image(image, tmp_path / f"a{suffix}")
        np.testing.assert_array_equal(read_image(path).planes, pixels)

    @pytest.mark.parametrize("channels", [1, 3])
    def test_jpeg_is_close(self, tmp_path, channels):
        ramp = np.add.outer(np.arange(64), np.arange(64)).astype(np.uint8)
        pixels = np.stack([ramp, ramp[::-1], 255 - ramp], axis=2)[:, :, :channels]
        image = read_image(write_image(picture(pixels), tmp_path / "a.jpg"))
        np.testing.assert_allclose(image.planes.astype(int), pixels, atol=6)

    def test_jpeg_keeps_colour_at_full_resolution(self, tmp_path, noise):
        path = write_image(picture(noise((16, 16, 3))), tmp_path / "a.jpg")
        with PIL.Image.open(path) as image:
            assert isinstance(image, JpegImageFile)
            assert image.layer == [(1, 1, 1, 0), (2, 1, 1, 1), (3, 1, 1, 1)]


class TestOthersCanRead:
    @pytest.mark.parametrize(
        ("suffix", "dtype"),
        [(s, d) for s in (".png", ".tif", ".ppm") for d in KEPT[s][0]]
        + [(".bmp", np.uint8), (".webp", np.uint8)],
    )
    def test_opencv(self, tmp_path, noise, suffix, dtype):
        pixels = noise((*SHAPE, 3), dtype)
        path = write_image(picture(pixels), tmp_path / f"a{suffix}")
        found = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert found is not None
        np.testing.assert_array_equal(found[:, :, ::-1], pixels)

    @pytest.mark.parametrize("channels", [2, 4])
    def test_tiff_says_that_its_last_channel_is_alpha(self, tmp_path, noise, channels):
        path = write_image(picture(noise((*SHAPE, channels))), tmp_path / "a.tif")
        with tifffile.TiffFile(path) as file:
            assert file.pages[0].extrasamples == (tifffile.EXTRASAMPLE.UNASSALPHA,)
        with PIL.Image.open(path) as image:
            assert image.mode == {2: "LA", 4: "RGBA"}[channels]


class TestLosses:
    @pytest.mark.parametrize(("suffix", "dtype", "channels"), LOSSY)
    def test_refused_unless_agreed(self, tmp_path, noise, suffix, dtype, channels):
        image = picture(noise((*SHAPE, channels), dtype))
        path = tmp_path / f"a{suffix}"
        with pytest.raises(LossyFormat, match="cannot keep") as caught:
            write_image(image, path)
        assert list(tmp_path.iterdir()) == []
        depth, alpha, colour = (
            dtype not in KEPT[suffix][0],
            channels in (2, 4) and max(KEPT[suffix][1]) < 4,
            channels > 2 and suffix == ".pgm",
        )
        message = caught.value.message
        assert ("16-bit depth" in message) == (depth and dtype == np.uint16)
        assert ("float samples" in message) == (depth and dtype == np.float32)
        assert ("transparency" in message) == alpha
        assert ("colour" in message) == colour
        assert "TIFF" in caught.value.hint
        assert ("PNG" in caught.value.hint) == (dtype != np.float32)

        saved = read_image(write_image(image, path, lossy=True))
        assert saved.pixels.shape[:2] == SHAPE
        assert saved.is_grey == (
            suffix == ".pgm" or (channels < 3 and suffix not in (".webp", ".ppm"))
        )
        kept_dtype = KEPT[suffix][0][-1] if depth else dtype
        assert saved.pixels.dtype == kept_dtype

    def test_16_bit_is_rounded(self, tmp_path):
        levels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
        path = write_image(picture(levels), tmp_path / "a.bmp", lossy=True)
        np.testing.assert_array_equal(read_image(path).pixels, np.rint(levels / 257))

    @pytest.mark.parametrize(("suffix", "white"), [(".png", 65535), (".bmp", 255)])
    def test_floats_are_clipped_and_rounded(self, tmp_path, suffix, white):
        pixels = np.array([[-1, 0, 0.25, 0.6, 1, 7]], np.float32)
        path = write_image(picture(pixels), tmp_path / f"a{suffix}", lossy=True)
        expected = np.rint(np.clip(pixels, 0, 1) * white)
        np.testing.assert_array_equal(read_image(path).pixels, expected)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("channels", [2, 4])
    def test_transparency_is_composed_on_white(self, tmp_path, noise, dtype, channels):
        pixels = noise((*SHAPE, channels), dtype)
        white = 1 if dtype == np.float32 else np.iinfo(dtype).max
        path = write_image(picture(pixels), tmp_path / "a.ppm", lossy=True)
        share = pixels.astype(float) / white
        opaque = share[:, :, :-1] * share[:, :, -1:] + 1 - share[:, :, -1:]
        top = 255 if dtype == np.uint8 else 65535
        found = read_image(path).pixels
        np.testing.assert_allclose(found, as_colour(opaque) * [top] * np.ones(3), atol=0.51)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_colour_becomes_grey_in_a_pgm(self, tmp_path, noise, dtype):
        pixels = noise((*SHAPE, 3), dtype)
        path = write_image(picture(pixels), tmp_path / "a.pgm", lossy=True)
        scale = 65535 if dtype == np.float32 else 1
        expected = pixels.astype(float) @ [0.299, 0.587, 0.114] * scale
        np.testing.assert_allclose(read_image(path).pixels, expected, atol=0.51)


class TestRefused:
    @pytest.mark.parametrize(
        ("name", "cause"),
        [("a", "no suffix"), ("a.xyz", r"\.xyz files cannot"), ("a.gif", r"\.gif files cannot")],
    )
    def test_suffix(self, tmp_path, noise, name, cause):
        with pytest.raises(ImageWriteError, match=cause) as caught:
            write_image(picture(noise(SHAPE)), tmp_path / name)
        assert ".png, .ome.tif, .tif, .bmp, .jpg, .webp, .pgm, .ppm" in caught.value.hint

    def test_missing_folder(self, tmp_path, noise):
        with pytest.raises(ImageWriteError, match=r"folder .*gone does not exist.*another place"):
            write_image(picture(noise(SHAPE)), tmp_path / "gone" / "a.png")

    def test_target_is_a_folder(self, tmp_path, noise):
        (tmp_path / "a.png").mkdir()
        with pytest.raises(ImageWriteError, match="no ordinary file"):
            write_image(picture(noise(SHAPE)), tmp_path / "a.png")

    @pytest.mark.parametrize("name", ["a.png", "a.png/c.png"])
    def test_circle_of_links(self, tmp_path, noise, name):
        (tmp_path / "a.png").symlink_to(tmp_path / "b.png")
        (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
        with pytest.raises(ImageWriteError, match=r"symbolic links.*another place"):
            write_image(picture(noise(SHAPE)), tmp_path / name)

    @pytest.mark.parametrize("name", ["a\0.png", "a" * 300 + ".png"])
    def test_impossible_names(self, tmp_path, noise, name):
        with pytest.raises(ImageWriteError, match="another place"):
            write_image(picture(noise(SHAPE)), tmp_path / name)

    @pytest.mark.parametrize(
        ("suffix", "side"), [(".webp", 16384), (".jpg", 65501), (".png", 1_000_001)]
    )
    def test_too_long_for_the_format(self, tmp_path, suffix, side):
        with pytest.raises(ImageWriteError, match=rf"at most {side - 1} pixels a side"):
            write_image(picture(np.zeros((1, side), np.uint8)), tmp_path / f"a{suffix}")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("how", "shape"),
        in_turn(
            LOSSLESS,
            [(1, 1), (200, 1), (1, 200), (777, 3), (16383, 4), (4, 16383), (31, 33)],
            every=3,
        ),
    )
    def test_narrow_noise(self, tmp_path, noise, how, shape):
        """Data that does not compress is larger than its pixels."""
        suffix, dtype, channels = how
        pixels = noise((*shape, channels), dtype)
        path = tmp_path / f"a{suffix}"
        write_image(picture(pixels), path)
        again = read_image(path).planes
        if suffix in (".webp", ".ppm"):  # grey comes back as colour
            again, pixels = as_colour(again), as_colour(pixels)
        np.testing.assert_array_equal(again, pixels)

    @pytest.mark.parametrize("shape", [(1, 10**6), (10**6, 1), (65536, 4)])
    @pytest.mark.parametrize("content", ["noise", "black"])
    def test_long_pngs(self, tmp_path, noise, shape, content):
        pixels = noise(shape, np.uint16) if content == "noise" else np.zeros(shape, np.uint16)
        write_image(picture(pixels), tmp_path / "a.png")
        np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, pixels)

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    def test_noise_as_png(self, tmp_path, noise, dtype, channels):
        """Deflate of zlib-ng makes noise of this size an eighth larger."""
        pixels = noise((700, 512, channels), dtype)
        write_image(picture(pixels), tmp_path / "a.png")
        np.testing.assert_array_equal(read_image(tmp_path / "a.png").planes, pixels)
        if dtype == np.uint8:  # Pillow has 8 bits a channel
            with PIL.Image.open(tmp_path / "a.png") as opened:
                np.testing.assert_array_equal(np.atleast_3d(np.asarray(opened)), pixels)

    @pytest.mark.parametrize("step", [(0, 3), (5, 0), (5, 3)])
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_png_of_a_ramp_is_small(self, tmp_path, step, dtype):
        rows, columns = np.mgrid[:300, :400]
        pixels = (rows * step[0] + columns * step[1]).astype(dtype)
        write_image(picture(pixels), tmp_path / "a.png")
        assert (tmp_path / "a.png").stat().st_size < pixels.nbytes / 20
        np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, pixels)

    def test_out_of_memory(self, tmp_path, noise, monkeypatch):
        def fail(*_args, **_options):
            raise MemoryError

        monkeypatch.setattr(tifffile, "TiffWriter", fail)
        with pytest.raises(OutOfMemory, match=r"^a\.tif"):
            write_image(picture(noise(SHAPE)), tmp_path / "a.tif")


class TestAtomic:
    @pytest.fixture
    def old(self, tmp_path):
        path = tmp_path / "a.png"
        path.write_bytes(b"the old file")
        return path

    @pytest.mark.parametrize("step", ["fsync", "copymode", "replace"])
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES])
    def test_a_failure_leaves_the_old_file_and_no_litter(self, old, noise, monkeypatch, step, code):
        def fail(*_args):
            raise OSError(code, os.strerror(code))

        owner = {"fsync": os, "copymode": shutil, "replace": Path}[step]
        monkeypatch.setattr(owner, step, fail)
        with pytest.raises(ImageWriteError, match=r"^a\.png: .*another place") as caught:
            write_image(picture(noise(SHAPE)), old)
        assert ("disk is full" in caught.value.message) == (code in (errno.ENOSPC, errno.EDQUOT))
        assert old.read_bytes() == b"the old file"
        assert list(old.parent.iterdir()) == [old]

    @pytest.mark.slow
    def test_a_full_disk(self, tmp_path):
        """The kernel itself refuses to write more than a few kilobytes."""
        olds = [tmp_path / f"a{format.suffixes[0]}" for format in WRITABLE]
        for old in olds:
            old.write_bytes(b"the old file")
        code = """
import sys
import numpy as np
import resource, signal
from kernelscope.images.image import Image
from kernelscope.base.errors import ImageWriteError
from kernelscope.files import write_image
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
image = Image.from_array(np.random.default_rng(1).integers(0, 256, (99, 99), np.uint8))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for path in sys.argv[1:]:
    try:
        write_image(image, path)
    except ImageWriteError as error:
        assert "disk is full" in error.message, error
    else:
        raise AssertionError(f"{path} was written")
"""
        run_python(code, *olds)
        assert {old.read_bytes() for old in olds} == {b"the old file"}
        assert sorted(tmp_path.iterdir()) == sorted(olds)

    def test_interrupted_from_the_keyboard(self, old, noise, monkeypatch):
        def interrupt(_descriptor):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_image(picture(noise(SHAPE)), old)
        assert list(old.parent.iterdir()) == [old]

    def test_links_are_followed(self, old, noise):
        link = old.with_name("link.png")
        link.symlink_to(old.name)
        pixels = noise(SHAPE)
        assert write_image(picture(pixels), link) == link
        assert link.is_symlink()
        np.testing.assert_array_equal(read_image(old).pixels, pixels)

    def test_write_protected(self, old, noise, monkeypatch):
        """Replacing would work, as only the folder's permissions count for it."""
        old.chmod(0o444)
        monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
        with pytest.raises(ImageWriteError, match=r"write-protected.*another place"):
            write_image(picture(noise(SHAPE)), old)
        assert old.read_bytes() == b"the old file"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_write_protected_folder(self, old, noise):
        old.parent.chmod(0o555)
        try:
            with pytest.raises(ImageWriteError, match=r"not allowed to write.*another place"):
                write_image(picture(noise(SHAPE)), old)
        finally:
            old.parent.chmod(0o755)


class TestCheckBeforehand:
    @pytest.mark.parametrize("name", ["a", "a.gif", "nowhere/a.png", ""])
    def test_places(self, tmp_path, name):
        with pytest.raises(ImageWriteError):
            check_write(tmp_path / name, (*SHAPE, 1), np.dtype(np.uint8))

    def test_a_protected_folder(self, tmp_path, monkeypatch):
        # The tests may run as root, who may write anywhere.
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(ImageWriteError, match="not allowed"):
            check_write(tmp_path / "a.png", (*SHAPE, 1), np.dtype(np.uint8))

    def test_nothing_is_left_behind(self, tmp_path):
        check_write(tmp_path / "a.png", (*SHAPE, 1), np.dtype(np.uint8))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_alpha_over_white_is_rounded_to_the_nearest(dtype):
    white = np.iinfo(dtype).max
    pixels = np.random.default_rng(2).integers(0, white + 1, (40, 50, 2)).astype(dtype)
    colour, alpha = pixels[:, :, 0].astype(np.float64), pixels[:, :, 1] / white
    wanted = np.rint(colour * alpha + white * (1 - alpha))
    np.testing.assert_array_equal(compose_on_white(pixels)[:, :, 0], wanted)


def test_a_format_whose_encoder_is_not_installed_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imagecodecs", None)  # as if it were not installed
    volume = Volume.from_array(np.zeros((3, 4, 5), np.uint8))
    with pytest.raises(ImageWriteError) as caught:
        write_volume(volume, tmp_path / "a.nii.gz")
    needs = "a.nii.gz: its format needs the package imagecodecs, which is not installed."
    assert caught.value.message == needs
    assert caught.value.hint == f"Install it: {pip_command('imagecodecs')}"
    assert not any(tmp_path.iterdir())
