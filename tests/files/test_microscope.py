"""Sizes and channels of microscopes: read from OME-TIFF and ImageJ, kept by our own files."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import ImageReadError, ImageWriteError, SeveralVolumes
from kernelscope.big.lazy.tiff_sink import tiff_sink
from kernelscope.big.lazy.tiff_source import open_tiff
from kernelscope.cli.main import main
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.files import read_image, read_pages, write_image, write_pages
from kernelscope.files.lazy import Head
from kernelscope.files.volumes import (
    is_volume,
    read_volume,
    read_volumes,
    tiff_stack,
    write_volume,
    write_volumes,
)
from kernelscope.files.volumes.raw_volume import UNKNOWN_DEPTH, UNKNOWN_SPACING
from kernelscope.files.volumes.writing import record_of
from kernelscope.images.image import Image, Metadata
from kernelscope.images.lengths import in_words, millimetres
from kernelscope.images.planes import planes_of
from kernelscope.images.scan import Scan
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

pytestmark = pytest.mark.usefixtures("closed_session")

STACK = np.arange(4 * 6 * 5, dtype=np.uint16).reshape(4, 6, 5)
RECIPE = '{"format": "kernelscope recipe", "version": 2, "steps": [{"filter": "median"}]}'
BLUE = 0x0000FFFF  # OME's red, green, blue, alpha


def ome(path: Path, array: NDArray[Any], axes: str, **metadata: Any) -> Path:
    tifffile.imwrite(
        path, array, ome=True, photometric="minisblack", metadata={"axes": axes, **metadata}
    )
    return path


def imagej(path: Path, array: NDArray[Any], resolution: Any = (5, 5), **metadata: Any) -> Path:
    tifffile.imwrite(path, array, imagej=True, resolution=resolution, metadata=metadata)
    return path


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("Å", 1e-7),
        ("\u212b", 1e-7),
        ("nm", 1e-6),
        ("µm", 1e-3),
        ("\u03bcm", 1e-3),
        ("um", 1e-3),
        ("\\u00B5m", 1e-3),
        ("micron", 1e-3),
        ("Microns", 1e-3),
        ("micrometre", 1e-3),
        ("micrometer", 1e-3),
        ("mm", 1.0),
        ("cm", 10.0),
        ("m", 1e3),
        ("inch", 25.4),
        ("inches", 25.4),
        ("in", 25.4),
        ("angstrom", 1e-7),
        ("nanometers", 1e-6),
        ("pixel", None),
        ("reference frame", None),
        ("", None),
        (None, None),
        (3, None),
    ],
)
def test_units(unit: object, factor: float | None):
    assert millimetres(unit) == factor


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([2e-4, 2e-4, 5e-4], "0.2×0.2×0.5 µm"),
        ([6.5e-5], "0.065 µm"),
        ([1e-6, 2e-6], "1×2 nm"),
        ([1, 1, 1.2], "1×1×1.2 mm"),
        ([0.0166, 0.012], "16.6×12 µm"),
        ([2000], "2 m"),
        ([], ""),
    ],
)
def test_lengths_in_words(lengths: list[float], text: str):
    assert in_words(lengths) == text


class TestOme:
    def test_micrometres_unless_another_unit_is_stated(self, tmp_path: Path):
        sizes = {"PhysicalSizeX": 0.2, "PhysicalSizeY": 0.3, "PhysicalSizeZ": 0.7}
        path = ome(tmp_path / "a.ome.tif", STACK, "ZYX", **sizes, PhysicalSizeZUnit="nm")
        volume = read_volume(path)
        assert volume.spacing == pytest.approx((7e-7, 3e-4, 2e-4))
        assert volume.stated == "zyx"
        assert volume.notices == ()

    def test_a_single_slice_needs_no_distance_of_slices(self, tmp_path: Path):
        sizes = {"PhysicalSizeX": 0.2, "PhysicalSizeY": 0.3}
        volume = read_volume(ome(tmp_path / "a.ome.tif", STACK[:2], "CYX", **sizes), 2)
        assert not any("distance" in notice for notice in volume.notices)
        assert volume.describe().startswith(f"a.ome.tif, {STACK.shape[2]}×{STACK.shape[1]}, ")
        assert volume.describe().endswith(", 0.2×0.3 µm")
        for plane, title in zip(
            planes_of(volume),
            ("a.ome.tif", "a.ome.tif, across y 1", "a.ome.tif, across x 1"),
            strict=True,
        ):
            assert plane.title(volume, 0) == title

    def test_no_distance_of_slices(self, tmp_path: Path):
        path = ome(tmp_path / "a.ome.tif", STACK, "ZYX", PhysicalSizeX=0.2, PhysicalSizeY=0.3)
        volume = read_volume(path)
        assert volume.notices == (UNKNOWN_DEPTH,)
        assert volume.steps == {"y": 3e-4, "x": 2e-4}
        again = tifffile.tiffcomment(write_volume(volume, tmp_path / "b.ome.tif"))
        assert "PhysicalSizeZ" not in again
        assert 'PhysicalSizeY="0.3"' in again
        for name in ("b.ome.tif", "b.tif"):
            assert read_volume(write_volume(volume, tmp_path / name)).stated == "yx"

    @pytest.mark.parametrize("unit", ["pixel", "reference frame", "nonsense"])
    def test_sizes_that_are_no_lengths(self, tmp_path: Path, unit: str):
        sizes = {f"PhysicalSize{axis}": 0.2 for axis in "XYZ"}
        units = {f"{name}Unit": unit for name in sizes}
        volume = read_volume(ome(tmp_path / "a.ome.tif", STACK, "ZYX", **sizes, **units))
        assert volume.notices == (UNKNOWN_SPACING,)
        again = tifffile.tiffcomment(write_volume(volume, tmp_path / "b.ome.tif"))
        assert "PhysicalSize" not in again

    @pytest.mark.parametrize("axes", ["CTZYX", "TCZYX", "ZCTYX", "ZTCYX", "CZTYX", "TZCYX"])
    def test_every_order_of_axes(self, tmp_path: Path, axes: str):
        sides = {"T": 2, "C": 3, "Z": 4, "Y": 6, "X": 5}
        array = np.arange(720, dtype=np.uint16).reshape([sides[axis] for axis in axes])
        names = {"Channel": {"Name": ["DAPI", "GFP", "RFP"]}}
        path = ome(tmp_path / "a.ome.tif", array, axes, **names)
        with pytest.raises(SeveralVolumes) as caught:
            read_volume(path)
        numbers = {name: number for number, name in enumerate(caught.value.names, 1)}
        parts = ["GFP", "time 2"] if axes.index("C") < axes.index("T") else ["time 2", "GFP"]
        wanted = array.take(1, axes.index("C"))
        rest = axes.replace("C", "")
        wanted = wanted.take(1, rest.index("T"))
        volume = read_volume(path, numbers[", ".join(parts)])
        np.testing.assert_array_equal(volume.voxels, wanted)
        assert volume.channel.name == "GFP"

    def test_channels(self, tmp_path: Path):
        array = np.stack([STACK, STACK + 1, STACK + 2])
        channels = {"Name": ["DAPI", "007", "G<F>P é"], "Color": [BLUE, -16776961, -1]}
        path = ome(tmp_path / "a.ome.tif", array, "CZYX", Channel=channels)
        with pytest.raises(SeveralVolumes, match="3 channels") as caught:
            read_volume(path)
        assert caught.value.names == ("DAPI", "007", "G<F>P é")
        assert caught.value.what == "channel"
        assert [read_volume(path, number).channel for number in (1, 2, 3)] == [
            Channel("DAPI", "0000FF"),
            Channel("007", "FF0000"),
            Channel("G<F>P é"),
        ]
        assert "Channel 1 of 3: DAPI." in read_volume(path, 1).notices
        assert "DAPI" in read_volume(path, 1).describe()

    def test_channels_are_no_slices(self, tmp_path: Path):
        path = ome(tmp_path / "a.ome.tif", STACK[:3], "CYX")
        with pytest.raises(SeveralVolumes, match="3 channels"):
            read_volume(path)
        np.testing.assert_array_equal(read_volume(path, 2).voxels, STACK[1:2])

    @pytest.mark.parametrize("name", ["b.ome.tif", "b.tif"])
    def test_round_trip(self, tmp_path: Path, name: str):
        array = np.stack([STACK, STACK + 1])
        path = ome(
            tmp_path / "a.ome.tif",
            array,
            "CZYX",
            PhysicalSizeX=0.2,
            PhysicalSizeY=0.3,
            PhysicalSizeZ=0.7,
            Channel={"Name": ["DAPI", "GFP"], "Color": [BLUE, BLUE]},
        )
        volume = read_volume(path, 2)
        again = read_volume(write_volume(volume, tmp_path / name))
        np.testing.assert_array_equal(again.voxels, STACK + 1)
        assert again.spacing == volume.spacing
        assert again.channel == volume.channel == Channel("GFP", "0000FF")
        assert record_of(tmp_path / name, volume).lost == ()
        assert ("<OME" in tifffile.tiffcomment(tmp_path / name)) == (name == "b.ome.tif")

    @pytest.mark.parametrize("name", ["b.ome.tif", "b.tif"])
    def test_a_picture(self, tmp_path: Path, name: str):
        path = ome(
            tmp_path / "a.ome.tif",
            STACK[0],
            "YX",
            PhysicalSizeX=0.2,
            PhysicalSizeY=300.0,
            PhysicalSizeYUnit="nm",
            Channel={"Name": ["DAPI"], "Color": [BLUE]},
        )
        assert not is_volume(path)
        image = read_image(path)
        assert image.metadata.steps == pytest.approx({"x": 2e-4, "y": 3e-4})
        again = read_image(write_image(image, tmp_path / name))
        assert again.metadata.steps == pytest.approx(image.metadata.steps, rel=1e-6)
        assert again.metadata.channel == Channel("DAPI", "0000FF")
        assert record_of(tmp_path / name, image).losses == []
        assert record_of("b.png", image).lost == ("channel name", "channel colour")
        png = read_image(write_image(image, tmp_path / "b.png"))
        assert png.metadata.steps == pytest.approx(image.metadata.steps, rel=1e-6)

    def test_what_is_left_out_is_named(self, tmp_path: Path):
        path = ome(
            tmp_path / "a.ome.tif",
            STACK,
            "ZYX",
            Plane={"PositionX": [0.0] * 4},
            TimeIncrement=0.1,
            TimeIncrementUnit="fortnight",
        )
        lost = record_of("b.ome.tif", read_volume(path)).lost
        assert lost == ("the time step", "further OME metadata")

    @pytest.mark.parametrize(
        ("metadata", "lost"),
        [
            ({"Name": "Image0"}, ()),
            ({"Name": "well A3"}, ("further OME metadata",)),
            ({"SignificantBits": 16}, ()),
            ({"SignificantBits": 12}, ("its significant bits",)),
        ],
    )
    def test_names_and_bits(self, tmp_path: Path, metadata: dict[str, Any], lost: tuple[str, ...]):
        volume = read_volume(ome(tmp_path / "a.ome.tif", STACK, "ZYX", **metadata))
        assert record_of("b.ome.tif", volume).lost == lost

    def test_time_steps_and_wavelengths_are_kept(self, tmp_path: Path):
        path = ome(
            tmp_path / "a.ome.tif",
            np.stack([STACK, STACK + 1], 1)[np.newaxis].repeat(3, 0),
            "TZCYX",
            TimeIncrement=1500,
            TimeIncrementUnit="ms",
            Channel=[
                {"Name": "DAPI", "EmissionWavelength": 460, "EmissionWavelengthUnit": "nm"},
                {"Name": "RFP", "Color": 0x00FF00FF, "Fluor": "mCherry"},
            ],
        )
        volumes = read_volumes(path)
        assert [each.interval for each in volumes] == [1.5] * 6
        assert record_of("b.ome.tif", *volumes).losses == []
        made = write_volumes(volumes, tmp_path / "b.ome.tif")
        text = tifffile.tiffcomment(made)
        assert 'TimeIncrement="1.5" TimeIncrementUnit="s"' in text
        assert 'Name="DAPI" EmissionWavelength="460" EmissionWavelengthUnit="nm"' in text
        assert 'Name="RFP" Color="16711935" Fluor="mCherry"' in text
        assert [each.channel for each in read_volumes(made)] == [each.channel for each in volumes]
        lost = set(record_of("b.pngs", *volumes).lost)
        assert lost >= {"further OME metadata", "the time step"}
        header = nibabel.load(write_volumes(volumes[::2], tmp_path / "b.nii")).header
        assert header.get_zooms()[3] == 1.5
        assert header.get_xyzt_units()[1] == "sec"
        assert "the time step" not in record_of("b.nii", *volumes[::2]).lost
        header = nibabel.load(write_volumes(volumes, tmp_path / "c.nii")).header
        assert header.get_zooms()[3] != 1.5, "channels and times are one axis"
        assert header.get_xyzt_units()[1] == "unknown"
        assert "the time step" in record_of("c.nii", *volumes).lost
        scans = [Scan((each,)) for each in volumes]
        assert "the time step" in record_of("c.nii", *scans).lost
        assert "the time step" in record_of("b.nii", *scans[::2]).kept

    def test_every_image_of_a_file_has_its_own_description(self, tmp_path: Path):
        path = tmp_path / "a.ome.tif"
        with tifffile.TiffWriter(path, ome=True) as file:
            sizes = {"PhysicalSizeX": 0.2, "PhysicalSizeY": 0.2}
            for more in ({}, {"TimeIncrement": 1.5}, sizes):
                described = {"axes": "ZYX", **more}
                file.write(STACK, photometric="minisblack", metadata=described)
        volumes = several(path)
        assert [each.interval for each in volumes] == [None, 1.5, None]
        assert [each.stated for each in volumes] == ["", "", "yx"]
        assert [each.others for each in volumes] == [(), (), ()]
        named = [replace(each, channel=Channel(f"C{n}")) for n, each in enumerate(volumes)]
        for name in ("b.tif", "b.ome.tif"):
            made = read_volumes(write_volumes(named, tmp_path / name))
            found = {each.channel for each in made}, {each.stated for each in made}
            assert found == ({UNKNOWN_CHANNEL}, {""}), "a file has one description"
            lost = ("channel name", "the time step", "the distance of voxels")
            assert set(record_of(name, *named).lost) == set(lost)
        source = open_tiff(path, Kind.VOLUME, 2)
        assert (source.head.interval, source.head.others) == (1.5, ())
        source.close()

    def test_damaged(self, tmp_path: Path):
        path = ome(tmp_path / "a.ome.tif", STACK, "ZYX", PhysicalSizeX=0.2)
        data = path.read_bytes().replace(b"</Pixels>", b"</Pixelz>")
        path.write_bytes(data)
        with pytest.raises(ImageReadError, match=r"a\.ome\.tif: "):
            read_volume(path)


class TestImageJ:
    @pytest.mark.parametrize(("unit", "factor"), [("\\u00B5m", 1e-3), ("inch", 25.4)])
    @pytest.mark.parametrize("spacing", [None, 0.7])
    def test_calibration(self, tmp_path: Path, unit: str, factor: float, spacing: float | None):
        step = {} if spacing is None else {"spacing": spacing}
        path = imagej(tmp_path / "a.tif", STACK, (5, 4), axes="ZYX", unit=unit, **step)
        volume = read_volume(path)
        z = 1.0 if spacing is None else spacing
        assert volume.spacing == pytest.approx((z * factor, 0.25 * factor, 0.2 * factor))
        assert volume.notices == ()

    def test_pixels_are_no_length(self, tmp_path: Path):
        volume = read_volume(imagej(tmp_path / "a.tif", STACK, axes="ZYX", unit="pixel", spacing=2))
        assert volume.notices == (UNKNOWN_SPACING,)
        assert not volume.stated

    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
    def test_a_picture(self, tmp_path: Path, dtype: str):
        plane = STACK[0].astype(dtype)
        image = read_image(imagej(tmp_path / "a.tif", plane, axes="YX", unit="um"))
        assert image.metadata.steps == pytest.approx({"x": 2e-4, "y": 2e-4})
        assert image.metadata.others == ()
        made = write_image(image, tmp_path / "b.tif")
        with tifffile.TiffFile(made) as file:  # micrometres for ImageJ, not inches
            assert file.imagej_metadata is not None
            assert file.imagej_metadata["unit"] == "um"
            assert file.pages[0].resolution == (5, 5)
            np.testing.assert_array_equal(file.asarray(), plane)
        assert read_image(made).metadata.steps == pytest.approx(image.metadata.steps)

    @pytest.mark.parametrize("dpi", [5000.0, 7200.0])
    def test_a_scan_of_a_film_has_inches(self, tmp_path: Path, dpi: float):
        metadata = Metadata(resolution=(dpi, dpi))
        made = write_image(Image.from_array(STACK[0], metadata=metadata), tmp_path / "b.tif")
        with tifffile.TiffFile(made) as file:
            assert not file.is_imagej
            assert file.pages[0].resolution == (dpi, dpi)

    def test_tables_labels_and_ranges(self, tmp_path: Path):
        blue, fire = np.zeros((3, 256), np.uint8), np.zeros((3, 256), np.uint8)
        blue[2], fire[0] = np.arange(256), np.minimum(np.arange(256) * 2, 255)
        array = np.stack([STACK, STACK + 1], axis=1)
        path = imagej(
            tmp_path / "a.tif",
            array,
            axes="ZCYX",
            unit="um",
            LUTs=[blue, fire],
            Labels=[f"slice {number}" for number in range(8)],
            Ranges=(0.0, 100.0, 0.0, 200.0),
            finterval=0.1,
        )
        volume = read_volume(path, 1)
        assert volume.channel == Channel("", "0000FF")
        assert [read_volume(path, n).channel.window for n in (1, 2)] == [(0, 100), (0, 200)]
        assert volume.with_voxels(volume.voxels).channel.window is None
        assert record_of("b.ome.tif", volume).lost == (
            "lookup tables",
            "labels of slices",
            "display ranges",
        )

    @pytest.mark.parametrize(
        ("stated", "seconds"),
        [
            ({"finterval": 2, "tunit": "sec"}, 2),
            ({"finterval": 2, "tunit": "ms"}, 0.002),
            ({"finterval": 2, "tunit": "min"}, 120),
            ({"finterval": 2, "tunit": "hour"}, 7200),
            ({"finterval": 2, "tunit": "turn"}, None),
            ({"fps": 25}, None),
            ({"fps": 25, "finterval": 0}, None),
        ],
    )
    def test_a_time_step_with_a_unit_is_kept_and_others_are_named(
        self, tmp_path: Path, stated: dict[str, Any], seconds: float | None
    ):
        array = np.stack([STACK, STACK + 1])
        path = imagej(tmp_path / "a.tif", array, axes="TZYX", unit="um", **stated)
        volumes = read_volumes(path)
        assert [each.interval for each in volumes] == [seconds] * 2
        assert record_of("b.tif", *volumes).lost == (() if seconds else ("the time step",))

    @pytest.mark.parametrize(
        ("key", "value", "name"),
        [
            ("cf", 0, "the calibration of values"),
            ("vunit", "OD", "the calibration of values"),
            ("yorigin", 3, "the origin"),
            ("info", "seen", "ImageJ's notes"),
        ],
    )
    def test_properties_that_are_left_out_are_named(
        self, tmp_path: Path, key: str, value: object, name: str
    ):
        path = imagej(tmp_path / "a.tif", STACK, axes="ZYX", unit="um", **{key: value})
        data = path.read_bytes()
        text = f"ImageJ=1.11a\n{key}={value}\n".encode()  # tifffile writes those it knows only
        place = data.index(b"ImageJ=")
        length = data.index(b"\0", place) - place
        rest = data[place + len(b"ImageJ=1.11a\n") : place + length]
        new = (text + rest)[: length + 63].ljust(length, b"\0")
        path.write_bytes(data[:place] + new + data[place + len(new) :])
        assert read_volume(path).others == (name,)

    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
    def test_a_hyperstack_stays_one(self, tmp_path: Path, dtype: str):
        """As tifffile reads it: axes, unit, distances, time step, colours and samples."""
        tables = [np.zeros((3, 256), np.uint8) for _ in range(2)]
        tables[0][2] = tables[1][1] = np.arange(256)
        array = np.stack([STACK, STACK // 2], 1)[np.newaxis].repeat(3, 0).astype(dtype)
        array += np.arange(3, dtype=dtype).reshape(3, 1, 1, 1, 1)
        described = {"unit": "um", "spacing": 0.3, "finterval": 1.5, "LUTs": tables}
        path = imagej(tmp_path / "a.tif", array, (3, 4), axes="TZCYX", **described)
        volumes = read_volumes(path)
        made = write_volumes(volumes, tmp_path / "b.tif")
        with tifffile.TiffFile(made) as file:
            assert file.is_imagej
            assert file.series[0].axes == "TZCYX"
            np.testing.assert_array_equal(file.asarray(), array)
            properties = file.imagej_metadata
            assert properties is not None
            assert {name: properties[name] for name in ("unit", "spacing", "finterval")} == {
                name: described[name] for name in ("unit", "spacing", "finterval")
            }
            assert properties["mode"] == "composite"
            np.testing.assert_array_equal(properties["LUTs"], tables)
            assert file.pages[0].resolution == pytest.approx((3, 4))
        again = read_volumes(made)
        assert [each.spacing for each in again] == [each.spacing for each in volumes]
        assert [each.channel for each in again] == [each.channel for each in volumes]
        assert again[0].interval == 1.5
        assert again[0].microscope
        assert record_of("b.tif", *volumes).losses == []

    @pytest.mark.parametrize("step", [0.2, 1000.0])  # micrometres
    @pytest.mark.parametrize("dtype", ["uint16", "int16", "float64"])
    def test_a_stack_of_a_microscope_is_one_again(self, tmp_path: Path, dtype: str, step: float):
        """In types that ImageJ has and in others, and whatever the size of its pixels."""
        sizes: dict[str, Any] = {f"PhysicalSize{axis}": step for axis in "XYZ"}
        if step > 100:
            sizes["Channel"] = {"Name": "GFP"}
        path = ome(tmp_path / "a.ome.tif", STACK.astype(dtype), "ZYX", TimeIncrement=2, **sizes)
        volume = read_volume(path)
        record = record_of("b.tif", volume)
        assert record.lost == ()
        assert "the time step" in record.kept
        again = volume
        for name in ("b.tif", "c.tif"):
            made = write_volume(again, tmp_path / name)
            with tifffile.TiffFile(made) as file:
                assert file.is_imagej == (dtype == "uint16")
            again = read_volume(made)
            assert again.unscaled.dtype == dtype
            assert (again.microscope, again.interval, again.spacing) == (True, 2, volume.spacing)

    @pytest.mark.parametrize("end", [".ome.tif", ".tif"])
    @pytest.mark.parametrize("spacing", [(1.2, 1, 1), (0.01, 0.01, 0.01), None])
    def test_a_scan_is_none_of_a_microscope(self, tmp_path: Path, end: str, spacing: Any):
        """Whatever its pixels, as a whole and in blocks; foreign files are judged by their size."""
        scan = Volume.from_array(STACK, "head", spacing=spacing)
        made = write_volume(scan, tmp_path / f"b{end}")
        again = read_volume(made)
        assert (again.microscope, again.spacing) == (False, scan.spacing)
        assert again.others == ()
        ks.Recipe.from_json(RECIPE).apply_file(made, tmp_path / f"c{end}", memory="64G")
        assert not read_volume(tmp_path / f"c{end}").microscope

    @pytest.mark.parametrize("step", [0.05, 1.0])  # millimetres
    def test_pixels_of_a_millimetre_are_of_no_microscope(self, tmp_path: Path, step: float):
        """Unless a channel has a name or a colour."""
        sizes = {f"PhysicalSize{axis}": step * 1000 for axis in "XYZ"}
        named = {"Channel": {"Name": "GFP"}}
        green = {"LUTs": [np.outer([0, 1, 0], np.arange(256)).astype(np.uint8)]}
        steps = {"axes": "ZYX", "unit": "mm", "spacing": step}
        resolution = (1 / step, 1 / step)
        unnamed = [
            ome(tmp_path / "a.ome.tif", STACK, "ZYX", **sizes),
            imagej(tmp_path / "a.tif", STACK, resolution, **steps),
        ]
        others = [
            ome(tmp_path / "b.ome.tif", STACK, "ZYX", **sizes, **named),
            imagej(tmp_path / "b.tif", STACK, resolution, **steps, **green),
        ]
        assert [read_volume(each).microscope for each in unnamed] == [step < 0.1] * 2
        assert all(read_volume(each).microscope for each in others)
        assert read_volume(others[1]).channel == Channel("", "00FF00")

    def test_a_hyperstack_too_large_for_imagej(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(tiff_stack, "is_big", lambda count: True)
        volume = read_volume(ome(tmp_path / "a.ome.tif", STACK, "ZYX", TimeIncrement=2))
        made = write_volume(volume, tmp_path / "b.tif")
        with tifffile.TiffFile(made) as file:
            assert (file.is_bigtiff, file.is_imagej) == (True, False)
        assert "the time step" in record_of("b.tif", volume).kept
        assert (read_volume(made).interval, read_volume(made).microscope) == (2, True)

    @pytest.mark.parametrize("name", ["b.tif", "b.ome.tif", "b.ome.zarr"])
    def test_blocks_keep_the_time_step_or_say_so(self, tmp_path: Path, name: str):
        path = ome(tmp_path / "a.ome.tif", STACK, "ZYX", TimeIncrement=2)
        filed = ks.Recipe.from_json(RECIPE).apply_file(path, tmp_path / name, memory="64G")
        assert ("the time step" in filed.record.kept) == (name != "b.ome.zarr")
        if name != "b.ome.zarr":
            again = read_volume(tmp_path / name)
            assert (again.interval, again.microscope) == (2, True)


class TestPages:
    """A page is a picture of its own, of the image and the channel that the file puts it in."""

    def test_of_several_images(self, tmp_path: Path):
        path, colours = tmp_path / "a.ome.tif", np.zeros((3, 8, 9, 3), np.uint8)
        with tifffile.TiffWriter(path, ome=True) as file:
            for number in (1, 2):
                sizes = {"PhysicalSizeX": 0.1 * number, "PhysicalSizeY": 0.1 * number}
                named = {"Channel": {"Name": f"camera {number}"}}
                described = {"axes": "ZYXS", **sizes, **named}
                file.write(colours, photometric="rgb", metadata=described)
        found = [page.metadata for page in read_pages(path)]
        names = [page.channel.name for page in found]
        assert names == ["camera 1"] * 3 + ["camera 2"] * 3
        steps = [page.steps["x"] for page in found]
        assert steps == pytest.approx([1e-4] * 3 + [2e-4] * 3)

    @pytest.mark.parametrize("axes", ["CZTYX", "ZCTYX", "TZCYX"])
    def test_of_channels(self, tmp_path: Path, axes: str):
        sides = {"C": 3, "Z": 2, "T": 2, "Y": 8, "X": 9}
        array = np.zeros([sides[axis] for axis in axes], np.uint8)
        named = {"Name": ["DAPI", "GFP", "RFP"]}
        path = ome(tmp_path / "a.ome.tif", array, axes, Channel=named, TimeIncrement=2)
        pages = read_pages(path)
        numbers = np.indices(array.shape[:3])[axes.index("C")].ravel()
        assert [page.metadata.channel.name for page in pages] == [named["Name"][n] for n in numbers]
        assert {page.metadata.others for page in pages} == {("the time step",)}

    def test_of_imagej(self, tmp_path: Path):
        tables = [np.zeros((3, 256), np.uint8) for _ in range(2)]
        tables[0][2] = tables[1][1] = np.arange(256)
        array = np.zeros((2, 2, 8, 9), np.uint8)
        pages = read_pages(imagej(tmp_path / "a.tif", array, axes="ZCYX", unit="um", LUTs=tables))
        assert [page.metadata.channel.colour for page in pages] == ["0000FF", "00FF00"] * 2

    @pytest.mark.parametrize("name", ["a.tif", "a.ome.tif"])
    @pytest.mark.parametrize("names", [("DAPI", "", "RFP"), ("", "DAPI", "RFP")])
    def test_of_our_own(self, tmp_path: Path, name: str, names: tuple[str, ...]):
        pages = [
            Image.from_array(STACK[0, number:], metadata=Metadata(channel=Channel(text)))
            for number, text in enumerate(names)
        ]
        again = read_pages(write_pages(pages, tmp_path / name))
        assert tuple(page.metadata.channel.name for page in again) == names


@pytest.mark.parametrize("orientation", range(1, 9))
def test_stacks_are_turned_as_single_pages_are(tmp_path: Path, orientation: int):
    tag = [(274, "H", 1, orientation, True)]
    how: dict[str, Any] = {"photometric": "minisblack", "extratags": tag, "metadata": None}
    tifffile.imwrite(tmp_path / "stack.tif", STACK, **how)
    volume = read_volume(tmp_path / "stack.tif")
    for number, plane in enumerate(STACK):
        tifffile.imwrite(tmp_path / "page.tif", plane, **how)
        page = read_image(tmp_path / "page.tif")
        np.testing.assert_array_equal(volume.voxels[number], page.pixels)
    assert ("Turned upright, as the file states." in volume.notices) == (orientation != 1)


def test_turned_by_a_quarter_the_sizes_are_exchanged(tmp_path: Path):
    tag = [(274, "H", 1, 6, True)]
    described = {"axes": "ZYX", "spacing": 3, "unit": "mm"}
    tifffile.imwrite(
        tmp_path / "a.tif", STACK, imagej=True, resolution=(1, 2), extratags=tag, metadata=described
    )
    assert read_volume(tmp_path / "a.tif").spacing == (3.0, 1.0, 0.5)


def test_noise_of_a_microscope_is_not_rician(tmp_path: Path):
    """It is that of a camera where enough voxels show it: see tests/engine/test_stack_noise.py."""
    backend = CpuBackend(2)

    def noise_of(volume: Volume, **values: Any) -> Any:
        request = Request.create(Scan((volume,)), "volume_dct", values)
        return execute(request, {"cpu": backend}).estimates.get("noise")

    imagej(tmp_path / "cells.tif", STACK, axes="ZYX", unit="um")
    cells = read_volume(tmp_path / "cells.tif")
    write_volume(replace(cells, microscope=False, channel=UNKNOWN_CHANNEL), tmp_path / "head.nii")
    assert noise_of(cells) == "gaussian"
    assert noise_of(cells, noise="rician") is None
    assert noise_of(read_volume(tmp_path / "head.nii")) == "rician"
    for spacing in (cells.spacing, (1.0, 1.0, 1.0)):
        write_volume(replace(cells, spacing=spacing), tmp_path / "own.tif")
        assert noise_of(read_volume(tmp_path / "own.tif")) == "gaussian"
    write_volume(replace(cells, microscope=False), tmp_path / "scan.tif")
    assert noise_of(read_volume(tmp_path / "scan.tif")) == "rician"
    backend.close()


@pytest.mark.parametrize("unit", ["um", "mm"])
def test_frames_have_no_distance_unless_imagej_states_one(tmp_path: Path, unit: str) -> None:
    for axes, more, stated in (
        ("TYX", {}, "yx"),
        ("TYX", {"spacing": 3.0}, "zyx"),
        ("ZYX", {}, "zyx"),  # where it is 1, ImageJ leaves it out
    ):
        volume = read_volume(imagej(tmp_path / "a.tif", STACK, axes=axes, unit=unit, **more))
        assert "".join(sorted(volume.stated, reverse=True)) == stated, axes


def sides_of(stack: NDArray[Any]) -> tuple[int, int, int]:
    depth, height, width = stack.shape
    return depth, height, width


def identifier(path: Path) -> str:
    with tifffile.TiffFile(path) as file:
        found = re.search(r'UUID="urn:uuid:([^"]+)"', file.pages.first.description)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("kind", ["picture", "volume", "blocks"])
def test_the_same_result_has_the_same_bytes_whenever_it_is_written(
    tmp_path: Path, kind: str
) -> None:
    """The identifier that tifffile makes has the time, and the address of the network card."""

    def write(name: str, stack: NDArray[Any]) -> Path:
        path = tmp_path / f"{name}.ome.tif"
        volume = Volume.from_array(stack)
        if kind == "picture":
            write_image(Image.from_array(stack[0]), path)
        elif kind == "volume":
            write_volume(volume, path)
        else:
            with tiff_sink(path, sides_of(stack), stack.dtype, Kind.VOLUME, Head()) as sink:
                sink.write(Box((0, 0, 0), sides_of(stack)), stack)
        return path

    first, second = write("first", STACK), write("second", STACK)
    assert first.read_bytes() == second.read_bytes()
    assert uuid.UUID(identifier(first)).version == 5
    other = write("other", STACK[:, 1:])
    assert identifier(other) != identifier(first)
    if kind != "blocks":  # whose samples are not known when the file begins
        assert identifier(write("brighter", STACK + np.uint16(1))) != identifier(first)


def several(path: Path) -> list[Volume]:
    """Return all volumes of a file."""
    with pytest.raises(SeveralVolumes) as caught:
        read_volume(path)
    return [read_volume(path, number + 1) for number in range(len(caught.value.names))]


SIDES = {"T": 2, "C": 3, "Z": 4, "Y": 6, "X": 5}
CHANNELS: dict[str, list[Any]] = {
    "Name": ["DAPI", "GFP", "é <&>"],
    "Color": [BLUE, -16776961, -1],
}
COLOURS = ["0000FF", "FF0000", ""]


class TestSeveralChannels:
    @pytest.mark.parametrize("name", ["b.ome.tif", "b.tif"])
    @pytest.mark.parametrize("axes", ["CZYX", "CYX", "TCZYX", "CTZYX", "TZYX"])
    @pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
    def test_a_file_of_all_comes_back(self, tmp_path: Path, name: str, axes: str, dtype: str):
        shape = [SIDES[axis] for axis in axes]
        array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        sizes = {"PhysicalSizeX": 0.2, "PhysicalSizeY": 0.3, "PhysicalSizeZ": 0.7}
        more = {"Channel": CHANNELS} if "C" in axes else {}
        before = several(ome(tmp_path / "a.ome.tif", array, axes, **sizes, **more))
        after = several(write_volumes(before, tmp_path / name))
        assert len(after) == len(before)
        letters = axes.removesuffix("ZYX").removesuffix("YX")
        order = list(range(len(before)))
        if letters == "CT":  # times are outside
            order = np.arange(len(before)).reshape(3, 2).T.ravel().tolist()
        for number, made in zip(order, after, strict=True):
            given = before[number]
            np.testing.assert_array_equal(made.voxels, given.voxels)
            assert made.voxels.dtype == dtype
            assert made.channel == given.channel
            assert made.spacing == pytest.approx(given.spacing)
            assert made.stated == given.stated
        if "C" in axes:
            found = {each.channel.name: each.channel.colour for each in after}
            assert found == dict(zip(CHANNELS["Name"], COLOURS, strict=True))

    def test_other_programs_see_the_channels(self, tmp_path: Path):
        array = np.stack([STACK, STACK + 1, STACK + 2])
        before = several(ome(tmp_path / "a.ome.tif", array, "CZYX", Channel=CHANNELS))
        path = write_volumes(before, tmp_path / "b.ome.tif")
        with tifffile.TiffFile(path) as file:
            assert file.series[0].axes == "CZYX"
            np.testing.assert_array_equal(file.series[0].asarray(), array)
            assert file.ome_metadata is not None
            assert 'Name="DAPI"' in file.ome_metadata
            assert f'Color="{BLUE}"' in file.ome_metadata

    @pytest.mark.parametrize("target", [".ome.tif", ".tif"])
    def test_a_batch_filters_each_and_keeps_them_together(self, tmp_path: Path, target: str):
        array = np.random.default_rng(0).integers(0, 999, (3, 4, 9, 8)).astype(np.uint16)
        source = ome(tmp_path / "a.ome.tif", array, "CZYX", Channel=CHANNELS, PhysicalSizeX=0.5)
        (tmp_path / "r.json").write_text(RECIPE)
        summary = tmp_path / "s.json"
        names = [str(tmp_path / "r.json"), str(source), "--out", str(tmp_path / "out")]
        assert main(["batch", *names, "--suffix", target, "--summary", str(summary)]) == 0
        (found,) = json.loads(summary.read_text())["files"]
        made = several(Path(found["target"]))
        for channel, volume in zip(array, made, strict=True):
            np.testing.assert_array_equal(volume.voxels, ks.median(channel, axis="z"))
        assert [each.channel.name for each in made] == CHANNELS["Name"]
        assert {"channel name", "channel colour"} <= set(found["record"]["kept"])

    @pytest.mark.parametrize("count", [2, 3])
    def test_volumes_of_nifti_become_times(self, tmp_path: Path, count: int):
        arrays = [STACK + number for number in range(count)]
        path = write_volumes([Volume.from_array(each) for each in arrays], tmp_path / "a.nii")
        again = several(write_volumes(several(path), tmp_path / "b.ome.tif"))
        for array, volume in zip(arrays, again, strict=True):
            np.testing.assert_array_equal(volume.voxels, array)
        flat = [Volume.from_array(each[:1]) for each in arrays]
        with pytest.raises(ImageWriteError, match=r"c\.tif: Several volumes of one slice"):
            write_volumes(flat, tmp_path / "c.tif")


@pytest.mark.parametrize("name", ["part.ome.tif", "part.tif", "part.ome.zarr"])
def test_channels_that_are_written_as_times_have_no_name(tmp_path: Path, name: str) -> None:
    film = np.stack([STACK + n for n in range(4)]).reshape(2, 2, *STACK.shape)
    ome(tmp_path / "film.ome.tif", film, "TCZYX", Channel={"Name": ["DAPI", "RFP"]})
    part = read_volumes(tmp_path / "film.ome.tif")[:3]
    target = write_volumes(part, tmp_path / name)
    assert [each.channel.name for each in read_volumes(target)] == [""] * 3
    assert "channel name" in record_of(target, *part).lost
