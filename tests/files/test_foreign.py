"""Formats that are not read are named, with the way out; and odd files beside those of other tests.

Each of these was found by hand: a hang, a bug, gigabytes of memory, or a line that helped nobody.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path

import numpy as np
import pydicom
import pytest
import tifffile

from kernelscope.base.errors import ImageReadError, InvalidParameter
from kernelscope.big.lazy.opening import open_source
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume
from kernelscope.images.levels import given_levels
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Levels
from tests.files.test_volumes_dicom import pixels
from tests.files.test_volumes_dicom import write as write_slice

VOXELS = np.random.default_rng(7).integers(0, 4000, (4, 6, 5), np.uint16)

FOREIGN = {
    "a.nrrd": (b"NRRD0004\ntype: ushort\nencoding: raw\n\n" + VOXELS.tobytes(), "NRRD", "NIfTI"),
    "a.nhdr": (b"NRRD0005\ndata file: ../../../etc/passwd\n", "NRRD", "NIfTI"),
    "a.mha": (b"ObjectType = Image\nElementDataFile = LOCAL\n", "MetaImage", "NIfTI"),
    "a.mhd": (b"NDims = 3\nElementDataFile = /etc/passwd\n", "MetaImage", "NIfTI"),
    "a.mnc": (b"CDF\x01" + bytes(600), "netCDF (MINC)", "NIfTI"),
    "a.hdr": (struct.pack("<i", 348) + bytes(344), "Analyze", "NIfTI"),
    "a.mgh": (struct.pack(">7i", 1, 5, 6, 4, 1, 4, 0) + bytes(256), "FreeSurfer MGH", "NIfTI"),
    "a.mgz": (gzip.compress(struct.pack(">7i", 1, 5, 6, 4, 1, 4, 0)), "gzip", "NIfTI"),
    "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(600), "HDF5", ".npy"),
    "a.czi": (b"ZISRAWFILE" + bytes(600), "Zeiss CZI", "OME-TIFF"),
    "a.nd2": (b"\xda\xce\xbe\x0a" + bytes(99), "Nikon ND2", "OME-TIFF"),
    "a.fits": (b"SIMPLE  =                    T" + b" " * 2800, "FITS", "TIFF"),
    "a.exr": (b"\x76\x2f\x31\x01" + bytes(50), "OpenEXR", "TIFF"),
    "a.hdr2": (b"#?RADIANCE\n", "Radiance HDR", "TIFF"),
    "a.jp2": (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000", "TIFF"),
    "a.jxl": (b"\xff\x0a" + bytes(20), "JPEG XL", "TIFF"),
    "a.heic": (b"\0\0\0\x18ftypheic" + bytes(99), "HEIF or AVIF", "PNG"),
    "a.avif": (b"\0\0\0\x18ftypavif" + bytes(99), "HEIF or AVIF", "PNG"),
    "a.psd": (b"8BPS" + bytes(30), "Photoshop", "PNG"),
    "a.svg": (b'<?xml version="1.0"?>\n<svg xmlns="x"/>', "SVG", "PNG"),
    "a.pdf": (b"%PDF-1.7\n", "PDF", "PNG"),
    "a.npz": (b"PK\x03\x04" + bytes(60), "ZIP", ".npy"),
    "a.pfm": (b"Pf\n4 4\n-1.0\n" + bytes(64), "PFM", "TIFF"),
    "a.pam": (b"P7\nWIDTH 4\nHEIGHT 4\nDEPTH 1\nENDHDR\n" + bytes(16), "PAM", "TIFF"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_format_that_is_not_read_is_named_with_the_way_out(name: str, tmp_path: Path) -> None:
    content, format_, way = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert not is_volume(path)
    for read in (read_image, read_volume):
        if name == "a.mgz" and read is read_volume:  # which looks into it
            continue
        with pytest.raises(ImageReadError) as caught:
            read(path)
        assert caught.value.message.endswith(f" that is read: its format is {format_}.")
        assert way in caught.value.hint


def _zarr(folder: Path) -> Path:
    array = folder / "0"
    array.mkdir(parents=True)
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    multiscale = {"version": "0.4", "axes": axes, "datasets": [{"path": "0"}]}
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / ".zattrs").write_text(json.dumps({"multiscales": [multiscale]}))
    shape = list(VOXELS.shape)
    plain = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "<u2", "fill_value": 0}
    rest = {"compressor": None, "filters": None, "order": "C"}
    (array / ".zarray").write_text(json.dumps(plain | rest))
    (array / "0.0.0").write_bytes(VOXELS.tobytes())
    return folder


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", ["0/.zarray", "0/0.0.0"])
def test_a_pipe_in_a_zarr_folder_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = _zarr(tmp_path / "a.zarr")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ImageReadError, match=f"its {Path(name).name} is no ordinary file"):
        open_source(folder).read(Box((0, 0, 0), VOXELS.shape))


@pytest.mark.parametrize("size", ["SizeZ", "SizeC", "SizeT"])
def test_planes_that_a_file_cannot_have_are_not_listed(size: str, tmp_path: Path) -> None:
    sizes = {"SizeX": 5, "SizeY": 6, "SizeZ": 4, "SizeC": 1, "SizeT": 1} | {size: 10**9}
    text = " ".join(f'{name}="{value}"' for name, value in sizes.items())
    xml = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
        f'<Image ID="I"><Pixels ID="P" DimensionOrder="XYZCT" Type="uint16" {text}><TiffData/>'
        "</Pixels></Image></OME>"
    )
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(path, VOXELS, photometric="minisblack", description=xml, metadata=None)
    with pytest.raises(ImageReadError, match=r"claims [14]e\+09 planes; it has 4 pages"):
        read_volume(path)
    assert not is_volume(path)


def test_a_tiff_without_pixels_is_refused_in_blocks_too(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, VOXELS[0], photometric="minisblack", metadata=None)
    data = bytearray(path.read_bytes())
    place = int.from_bytes(data[4:8], "little") + 2
    while data[place : place + 2] != struct.pack("<H", 256):
        place += 12
    data[place + 8 : place + 12] = bytes(4)
    path.write_bytes(data)
    with pytest.raises(ImageReadError, match="has no pixels"):
        open_source(path)


def test_a_quaternion_longer_than_one_is_left_aside(tmp_path: Path) -> None:
    import nibabel

    path = tmp_path / "a.nii"
    nibabel.save(nibabel.Nifti1Image(VOXELS.T.astype(np.int16), np.eye(4)), path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<hh", data, 252, 1, 0)
    struct.pack_into("<3f", data, 256, 5, 5, 5)
    path.write_bytes(data)
    volume = read_volume(path)
    assert "The orientation in its header makes no sense and is left aside." in volume.notices
    assert volume.affine is None
    assert np.array_equal(volume.voxels, VOXELS)


def test_messages_about_one_dicom_file_name_it_once(tmp_path: Path) -> None:
    path = tmp_path / "a.dcm"
    write_slice(path, pixels(0), 0)
    header = pydicom.dcmread(path)
    del header.PixelData
    header.save_as(path)
    with pytest.raises(ImageReadError) as caught:
        read_volume(path)
    assert caught.value.message.count("a.dcm") == 1


@pytest.mark.parametrize(
    ("white", "black"), [(1e40, None), (3e38, -3e38), (1e-40, None), (1e300, 0.0), (1.0, -1e39)]
)
def test_levels_fit_into_32_bit_floats(white: float, black: float | None) -> None:
    with pytest.raises(InvalidParameter, match="too far or too near for 32-bit floats"):
        given_levels(white, black)
    assert given_levels(1e38, -1e38) == Levels(-1e38, 1e38)
