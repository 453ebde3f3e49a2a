"""Files of any size at a resolution that fits into memory, as the window opens them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.base.errors import ImageReadError, TooLarge
from kernelscope.big.lazy import viewing
from kernelscope.big.lazy.viewing import Resolution, read_at, resolution_of
from kernelscope.files import formats, read_image
from kernelscope.files.volumes.ome_zarr import LATEST, VERSIONS, Axis, attributes_of
from kernelscope.files.volumes.zarr_source import open_zarr
from kernelscope.gui.model.volume_files import read_file
from kernelscope.images.image import Image
from kernelscope.images.volume import Among, Volume

UNITS = {"t": "second", "c": ""}
RGB = [{"label": each, "color": each} for each in ("FF0000", "00FF00", "0000FF")]
DYES = [{"label": "DAPI", "color": "0000FF"}, {"label": "GFP", "color": "00FF00"}]
DYES += [{"label": "RFP", "color": "FF0000"}]


def write(
    path: Path,
    whole: NDArray[Any],
    axes: str,
    levels: int = 3,
    channels: list[dict[str, Any]] | None = None,
    version: str = LATEST,
) -> list[NDArray[Any]]:
    """Write levels, each of every second row and column of the one before; return them."""
    along = [Axis(name, 0.5, UNITS.get(name, "micrometer")) for name in axes]
    factors = [[2**level if name in "yx" else 1 for name in axes] for level in range(levels)]
    omero = {"channels": channels} if channels else {}
    attributes = attributes_of(version, along, factors, omero=omero)
    group = zarr.create_group(path, zarr_format=VERSIONS[version], attributes=attributes)
    found = [whole[..., :: 2**level, :: 2**level] for level in range(levels)]
    for level, each in enumerate(found):
        chunks = tuple(min(side, 16) for side in each.shape)
        array = group.create_array(str(level), shape=each.shape, chunks=chunks, dtype=each.dtype)
        array[...] = each
    return found


def sample(*shape: int, dtype: Any = np.uint16) -> NDArray[Any]:
    return np.random.default_rng(3).integers(0, 200, shape).astype(dtype)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that leaves memory for so many samples."""

    def leave(samples: int) -> None:
        monkeypatch.setattr(memory, "available", lambda: samples * viewing._SAMPLE_BYTES)

    return leave


def test_the_finest_level_that_fits_is_read(tmp_path: Path, room: Callable[[int], None]) -> None:
    path = tmp_path / "slide.ome.zarr"
    levels = write(path, sample(40, 60), "yx")
    for number, samples in enumerate((2400, 600, 150)):
        room(samples)
        image, series = read_file(path)
        assert series is None
        assert isinstance(image, Image)
        np.testing.assert_array_equal(image.pixels.squeeze(), levels[number])
        assert image.metadata.steps == pytest.approx(dict.fromkeys("yx", 0.5e-3 * 2**number))
        assert image.path == path
        if number == 0:
            assert (image.title, image.notices) == ("slide.ome.zarr", ())
            continue
        width, height = 60 // 2**number, 40 // 2**number
        assert image.title == f"slide.ome.zarr, level {number + 1} of 3"
        assert image.notices[0].startswith(
            f"Shown at level {number + 1} of 3: {width}×{height} of 60×40 pixels, "
            f"{0.5 * 2**number:g}×{0.5 * 2**number:g} µm each."
        )
        assert "the full resolution" in image.metadata.others
    room(149)
    assert resolution_of(path) == Resolution(2, 2)


@pytest.mark.parametrize(
    ("shape", "axes", "kind"),
    [((37, 51), "yx", Image), ((3, 37, 51), "cyx", Image), ((5, 37, 51), "zyx", Volume)],
)
@pytest.mark.parametrize("factor", [2, 4, 8])
def test_pixels_are_averaged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    axes: str,
    kind: type,
    factor: int,
) -> None:
    """In squares, of blocks of any size: those that lie within the picture have their mean."""
    path, whole = tmp_path / "a.zarr", sample(*shape)
    write(path, whole, axes, 1)
    found = []
    for rows, columns in ((1, 1), (24, 8), (999, 999)):
        monkeypatch.setattr(viewing, "_ROWS", rows)
        monkeypatch.setattr(viewing, "_COLUMNS", columns)
        shown = read_at(path, Resolution(0, factor))
        assert isinstance(shown, kind)
        found.append(np.asarray(shown.voxels if isinstance(shown, Volume) else shown.pixels))
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])
    reduced = np.moveaxis(found[0], -1, 0) if axes == "cyx" else found[0]
    assert reduced.shape[-2:] == (-(-37 // factor), -(-51 // factor))
    high, wide = 37 // factor, 51 // factor
    inside = whole[..., : high * factor, : wide * factor].astype(float)
    squares = inside.reshape(*shape[:-2], high, factor, wide, factor).mean((-3, -1))
    # Halves are rounded up at each of the steps by two.
    np.testing.assert_allclose(reduced[..., :high, :wide], squares, atol=0.5 * np.log2(factor))


def test_channels_and_times_are_volumes_of_one_series(
    tmp_path: Path, room: Callable[[int], None]
) -> None:
    path = tmp_path / "film.ome.zarr"
    levels = write(path, sample(3, 2, 4, 16, 24), "tczyx", 2, DYES[:2])
    room(500)
    first, series = read_file(path)
    assert series is not None
    assert series.count == 6
    assert series.has_both
    for index in range(6):
        volume = series.read(index)
        time, channel = divmod(index, 2)
        np.testing.assert_array_equal(volume.voxels, levels[1][time, channel])
        assert volume.among == (Among("T", time, 3), Among("C", channel, 2))
        assert volume.channel.name == ("DAPI", "GFP")[channel]
        assert volume.spacing == pytest.approx((0.5e-3, 1e-3, 1e-3))
        assert volume.interval == 0.5
    assert isinstance(first, Volume)
    assert first.title == "film.ome.zarr, level 2 of 2"


@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        ({"start": 20, "end": 150.5, "min": 0, "max": 65535}, (20, 150.5)),
        ({"start": 0, "end": 65535}, None),  # of no choice: nothing would be seen
        ({"start": 150, "end": 20}, None),
        ({"start": "a", "end": 20}, None),
        ({"start": 0, "end": 10**400}, None),
        ([1, 2], None),
        (None, None),
    ],
)
def test_a_channel_has_the_window_of_its_file(
    tmp_path: Path, window: object, wanted: tuple[float, float] | None
) -> None:
    write(tmp_path / "a.ome.zarr", sample(2, 3, 20, 30), "czyx", 1, [{"window": window}, DYES[1]])
    first, series = read_file(tmp_path / "a.ome.zarr")
    assert series is not None
    assert isinstance(first, Volume)
    assert (first.channel.window, series.read(1).channel.window) == (wanted, None)


def test_three_channels_are_colours_unless_they_are_dyes(tmp_path: Path) -> None:
    whole = sample(3, 8, 9)
    for name, channels in (("plain", None), ("rgb", RGB)):
        write(tmp_path / name, whole, "cyx", 1, channels)
        image, _ = read_file(tmp_path / name)
        assert isinstance(image, Image)
        np.testing.assert_array_equal(image.pixels, np.moveaxis(whole, 0, -1))
    write(tmp_path / "dyes", whole, "cyx", 1, DYES)
    first, series = read_file(tmp_path / "dyes")
    assert isinstance(first, Volume)
    assert series is not None
    assert first.flat_axis == 0
    np.testing.assert_array_equal(series.read(2).voxels[0], whole[2])
    assert series.names == ("DAPI", "GFP", "RFP")
    assert open_zarr(tmp_path / "dyes").shape == (8, 9, 3), "one result in blocks"


def test_the_metadata_stand_for_their_folder(tmp_path: Path) -> None:
    (whole,) = write(tmp_path / "a.zarr", sample(8, 9), "yx", 1)
    image, _ = read_file(tmp_path / "a.zarr" / "zarr.json")
    assert isinstance(image, Image)
    assert image.path == tmp_path / "a.zarr"
    np.testing.assert_array_equal(image.pixels.squeeze(), whole)


def test_without_the_package_there_is_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.zarr", sample(8, 9), "yx", 1)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImageReadError, match="needs the package zarr") as error:
        read_file(tmp_path / "a.zarr")
    assert "zarr" in error.value.hint


def test_a_tiff_that_is_too_large_is_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sample(64, 96, 3, dtype=np.uint8)
    tifffile.imwrite(tmp_path / "big.tif", whole, photometric="rgb", resolution=(300, 300))
    for module in (formats, viewing):
        monkeypatch.setattr(module, "MAX_PIXELS", 2000)
    with pytest.raises(TooLarge):
        read_image(tmp_path / "big.tif")
    image, _ = read_file(tmp_path / "big.tif")
    assert isinstance(image, Image)
    squares = whole.reshape(32, 2, 48, 2, 3).mean((1, 3))
    np.testing.assert_array_equal(image.pixels, np.floor(squares + 0.5))
    assert image.title == "big.tif, reduced 2×"
    assert image.notices[0].startswith("Shown reduced 2×: 48×32 of 96×64 pixels")
    assert image.metadata.resolution == pytest.approx((150, 150))
    planar = np.moveaxis(whole, -1, 0)
    tifffile.imwrite(tmp_path / "planar.tif", planar, photometric="rgb", planarconfig="separate")
    with pytest.raises(ImageReadError, match="no plain grey or RGB picture"):
        read_file(tmp_path / "planar.tif")
