"""Small healthy files of every kind that the program reads, and ways to damage them."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nibabel
import numpy as np
import PIL.Image
import pydicom
import tifffile
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGLosslessSV1,
    JPEGLSLossless,
    MRImageStorage,
    RLELossless,
    generate_uid,
)

from tests.files.makers import bmp, png_chunk


@dataclass(frozen=True)
class Seed:
    """A healthy file.

    Attributes
    ----------
    data : bytes
        The file to damage.
    finish : callable
        Makes a file of damaged data: packs it, or puts checksums right.
    """

    data: bytes
    finish: Callable[[bytes], bytes] = bytes


_rng = np.random.default_rng(23)
_GREY = _rng.integers(0, 256, (9, 12), np.uint8)
_COLOUR = _rng.integers(0, 256, (9, 12, 3), np.uint8)
_ALPHA = _rng.integers(0, 256, (9, 12, 4), np.uint8)
_DEEP = _rng.integers(0, 65536, (9, 12), np.uint16)
_BITS = _rng.random((19, 30)) < 0.4
_VOXELS = _rng.integers(0, 4000, (3, 5, 4), np.int16)


def seeds(kind: str) -> list[Seed]:
    """Return the files of a kind, by the name of its reader."""
    return _SEEDS[kind]()


def mutated(files: list[Seed], rng: np.random.Generator) -> bytes:
    """Return one of the files with one to three faults."""
    seed = files[rng.integers(len(files))]
    data = bytearray(seed.data)
    for _ in range(rng.integers(1, 4)):
        other = files[rng.integers(len(files))].data
        _FAULTS[rng.integers(len(_FAULTS))](data, other, rng)
        if not data:
            data = bytearray(seed.data[:1])
    return seed.finish(bytes(data))


def _place(data: bytearray, rng: np.random.Generator, align: int = 1) -> int:
    """Return a place: every other one in the first 128 bytes, where the headers are."""
    reach = min(len(data), 128) if rng.integers(2) else len(data)
    return int(rng.integers(reach)) // align * align


def _flip_bits(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    for _ in range(rng.integers(1, 9)):
        data[_place(data, rng)] ^= 1 << int(rng.integers(8))


def _random_bytes(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    start = _place(data, rng)
    count = min(int(rng.integers(1, 9)), len(data) - start)
    data[start : start + count] = rng.bytes(count)


def _cut_off(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    del data[_place(data, rng) :]


def _block(data: bytearray, rng: np.random.Generator) -> slice:
    start = _place(data, rng)
    return slice(start, start + int(rng.integers(1, 65)))


def _remove_block(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    del data[_block(data, rng)]


def _repeat_block(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    block = _block(data, rng)
    data[block.stop : block.stop] = data[block] * int(rng.integers(1, 5))


def _block_of_another(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    block = _block(bytearray(other), rng)
    start = _place(data, rng)
    data[start : start + len(other[block])] = other[block]


_EXTREMES = (0, 1, 2, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


def _extreme_number(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    number = int(rng.choice([*_EXTREMES, len(data), len(data) - 1, _place(data, rng)]))
    order = "little" if rng.integers(2) else "big"
    size = int(rng.choice([2, 4, 4, 8]))
    start = _place(data, rng, 2)
    data[start : start + size] = (number % 256**size).to_bytes(size, order)  # type: ignore[arg-type]


_FAULTS = (
    _flip_bits,
    _random_bytes,
    _cut_off,
    _remove_block,
    _repeat_block,
    _block_of_another,
    _extreme_number,
    _extreme_number,
)


def _saved(pixels: Any, kind: str, **options: Any) -> Seed:
    buffer = io.BytesIO()
    image = pixels if isinstance(pixels, PIL.Image.Image) else PIL.Image.fromarray(pixels)
    image.save(buffer, kind, **options)
    return Seed(buffer.getvalue())


def _exif() -> bytes:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    exif[0x011A] = 72.0
    return exif.tobytes()


_XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


def _bmps() -> list[Seed]:
    palette = _rng.bytes(4 * 16)
    return [
        _saved(_COLOUR, "BMP"),
        _saved(PIL.Image.fromarray(_COLOUR).quantize(16), "BMP"),
        _saved(_BITS, "BMP"),
        _saved(_ALPHA, "BMP"),
        Seed(bmp(4, 2, 8, b"\4\1\0\0\0\4\1\2\3\4\0\2\1\1\0\1", compression=1, palette=palette)),
        Seed(bmp(4, 2, 4, b"\4\x12\0\0\4\x34\0\1", compression=2, palette=palette)),
        Seed(bmp(4, -2, 16, _rng.bytes(16), compression=3, masks=(0xF800, 0x7E0, 0x1F))),
        Seed(bmp(3, 2, 32, _rng.bytes(24), compression=3, masks=(0xFF000000, 0xFF0000, 0xFF00))),
    ]


def _checksums(data: bytes) -> bytes:
    """Put right the checksums of a PNG, as far as its chunks can be followed."""
    repaired, start = bytearray(data), 8
    while start + 12 <= len(repaired):
        end = start + 8 + int.from_bytes(repaired[start : start + 4], "big")
        if end + 4 > len(repaired):
            break
        repaired[end : end + 4] = struct.pack(">I", zlib.crc32(repaired[start + 4 : end]))
        start = end + 4
    return bytes(repaired)


def _pngs() -> list[Seed]:
    palette = PIL.Image.fromarray(_COLOUR).quantize(16)
    plain = [
        _saved(_COLOUR, "PNG", exif=_exif(), dpi=(300, 300)),
        _saved(_DEEP, "PNG"),
        _saved(_BITS, "PNG"),
        _saved(_ALPHA, "PNG", icc_profile=_rng.bytes(200)),
        _saved(palette, "PNG", transparency=3),
        _saved(
            PIL.Image.fromarray(_GREY),
            "PNG",
            save_all=True,
            append_images=[PIL.Image.fromarray(255 - _GREY)],
        ),
    ]
    texts = png_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(999)))
    texts += png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(_XMP))
    texts += png_chunk(b"gAMA", struct.pack(">I", 100000))
    plain.append(Seed(plain[0].data[:33] + texts + plain[0].data[33:]))
    return [*plain, *(Seed(seed.data, _checksums) for seed in plain)]


def _jpegs() -> list[Seed]:
    import imagecodecs

    cmyk = PIL.Image.fromarray(_ALPHA, "CMYK")
    return [
        _saved(_COLOUR, "JPEG", exif=_exif(), dpi=(72, 72)),
        _saved(_COLOUR, "JPEG", progressive=True, icc_profile=_rng.bytes(300), xmp=_XMP),
        _saved(_GREY, "JPEG", restart_marker_blocks=1),
        _saved(cmyk, "JPEG", comment=b"a"),
        Seed(bytes(imagecodecs.jpeg8_encode(_DEEP >> 4, bitspersample=12))),
        Seed(bytes(imagecodecs.jpeg8_encode(_GREY, lossless=True))),
        Seed(bytes(imagecodecs.jpegls_encode(_GREY))),
    ]


def _gifs() -> list[Seed]:
    palette = PIL.Image.fromarray(_COLOUR).quantize(16)
    more = PIL.Image.fromarray(255 - _COLOUR).quantize(8)
    animated = _saved(palette, "GIF", save_all=True, append_images=[more], transparency=1, loop=0)
    return [_saved(palette, "GIF", comment=b"a"), _saved(_GREY, "GIF", interlace=1), animated]


def _webps() -> list[Seed]:
    more = [PIL.Image.fromarray(255 - _ALPHA)]
    return [
        _saved(_COLOUR, "WEBP", exif=_exif(), xmp=_XMP, icc_profile=_rng.bytes(90)),
        _saved(_ALPHA, "WEBP", lossless=True),
        _saved(_ALPHA, "WEBP"),
        _saved(PIL.Image.fromarray(_ALPHA), "WEBP", save_all=True, append_images=more),
    ]


def _netpbms() -> list[Seed]:
    def plain(kind: int, values: np.ndarray, maximum: str) -> Seed:
        text = " ".join(map(str, values.ravel().tolist()))
        return Seed(f"P{kind}\n# a\n4 3\n{maximum}\n{text}\n".encode())

    return [
        plain(1, _GREY[:3, :4] % 2, ""),
        plain(2, _GREY[:3, :4] % 200, "199"),
        plain(3, _COLOUR[:3, :4], "255"),
        Seed(b"P4 12 9\n" + np.packbits(_GREY > 9, axis=1).tobytes()),
        Seed(b"P5 12 9 65535\n" + _DEEP.tobytes()),
        Seed(b"P6 12 9 255\n" + _COLOUR.tobytes()),
    ]


def _written(*pages: np.ndarray, **options: Any) -> Seed:
    buffer = io.BytesIO()
    bigtiff, order = options.pop("bigtiff", False), options.pop("byteorder", "<")
    imagej, ome = options.pop("imagej", False), options.pop("ome", None)
    with tifffile.TiffWriter(
        buffer, bigtiff=bigtiff, byteorder=order, imagej=imagej, ome=ome
    ) as writer:
        for page in pages:
            writer.write(page, **options)
    return Seed(buffer.getvalue())


def _tiffs() -> list[Seed]:
    table = _rng.integers(0, 65536, (3, 256), np.uint16)
    grey = {"photometric": "minisblack", "metadata": None}
    colour = {"photometric": "rgb", "metadata": None}
    compressions = ["lzw", "zlib", "packbits", "zstd", "jpeg", "lzma", "webp", "jpeg2000", "png"]
    return [
        _written(_GREY, **grey, resolution=(72, 72), resolutionunit="inch"),
        _written(_DEEP, **grey, byteorder=">", rowsperstrip=2, compression="zlib", predictor=True),
        _written(_DEEP.astype(np.float32), **grey, compression="zlib", predictor=True),
        _written(_COLOUR, **colour, bigtiff=True, tile=(16, 16), compression="lzw"),
        _written(_ALPHA, **colour, extrasamples=["assocalpha"], iccprofile=_rng.bytes(99)),
        _written(np.moveaxis(_COLOUR, 2, 0), photometric="rgb", planarconfig="separate"),
        _written(_GREY, photometric="palette", colormap=table, metadata=None),
        _written(_BITS, photometric="miniswhite", metadata=None),
        *(_written(_COLOUR, **colour, compression=name) for name in compressions),
        *(_saved(_BITS, "TIFF", compression=name) for name in ("group3", "group4", "tiff_ccitt")),
        _saved(_BITS, "TIFF", compression="group3", tiffinfo={292: 1}),
        _saved(PIL.Image.fromarray(_COLOUR).convert("YCbCr"), "TIFF", compression="jpeg"),
        _saved(PIL.Image.fromarray(_ALPHA, "CMYK"), "TIFF", compression="tiff_lzw"),
    ]


def _stacks() -> list[Seed]:
    pages = [page.astype(np.uint16) for page in _VOXELS]
    grey = {"photometric": "minisblack"}
    return [
        _written(*pages, **grey, metadata=None),
        _written(*pages, **grey, metadata=None, compression="zlib", rowsperstrip=2),
        _written(np.stack(pages), **grey, metadata={"axes": "ZYX", "spacing_mm": (3, 2, 1)}),
        _written(
            np.stack(pages), imagej=True, metadata={"axes": "ZYX", "spacing": 2, "unit": "um"}
        ),
        _written(np.stack(pages), **grey, ome=True, metadata={"axes": "ZYX"}),
        _written(np.stack(pages)[:, None], **grey, bigtiff=True, byteorder=">"),
        _saved(
            PIL.Image.fromarray(_BITS),
            "TIFF",
            save_all=True,
            append_images=[PIL.Image.fromarray(~_BITS)],
            compression="group4",
        ),
    ]


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def _niftis() -> list[Seed]:
    volumes = []
    for make in (nibabel.Nifti1Image, nibabel.Nifti2Image):
        for voxels in (_VOXELS, _VOXELS.astype(np.float32), np.stack([_VOXELS] * 2, -1)):
            image = make(voxels, np.diag([2.0, 3, 4, 1]))
            image.header.set_slope_inter(2, 1)
            image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"a" * 9))
            volumes.append(Seed(image.to_bytes()))
    swapped = nibabel.Nifti1Image(
        _VOXELS.astype(">i2"), np.eye(4), nibabel.Nifti1Header(endianness=">")
    )
    volumes.append(Seed(swapped.to_bytes()))
    packed = [Seed(seed.data, _packed) for seed in volumes[::2]]
    return [*volumes, *packed, *(Seed(_packed(seed.data)) for seed in volumes[::3])]


def _arrays() -> list[Seed]:
    def saved(array: np.ndarray, version: tuple[int, int]) -> Seed:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version)
        return Seed(buffer.getvalue())

    return [
        saved(_VOXELS, (1, 0)),
        saved(_VOXELS.astype(">f8"), (2, 0)),
        saved(np.asfortranarray(_VOXELS), (3, 0)),
        saved(_GREY, (1, 0)),
        saved(_VOXELS > 9, (1, 0)),
    ]


def _dicoms() -> list[Seed]:
    return [
        _dicom(syntax, **options)
        for syntax in (ExplicitVRLittleEndian, ImplicitVRLittleEndian)
        for options in ({}, {"PhotometricInterpretation": "MONOCHROME1"})
    ] + [
        _dicom(ExplicitVRBigEndian),
        _dicom(DeflatedExplicitVRLittleEndian),
        _dicom(RLELossless),
        *(_packed_dicom(syntax, encode) for syntax, encode in _encoders()),
        _enhanced_dicom(),
        _colour_dicom(PhotometricInterpretation="RGB"),
        _colour_dicom(PhotometricInterpretation="YBR_FULL", PlanarConfiguration=1),
    ]


def _encoders() -> list[tuple[Any, Callable[[np.ndarray], Any]]]:
    import imagecodecs

    return [
        (JPEGLosslessSV1, lambda grey: imagecodecs.jpeg8_encode(grey, lossless=True)),
        (JPEGLSLossless, imagecodecs.jpegls_encode),
        (JPEG2000Lossless, lambda grey: imagecodecs.jpeg2k_encode(grey, codecformat="j2k")),
    ]


def _packed_dicom(syntax: Any, encode: Callable[[np.ndarray], Any]) -> Seed:
    encoded = bytes(encode(_VOXELS[0].astype(np.uint16)))
    return _dicom(syntax, BitsStored=16, HighBit=15, PixelData=encapsulate([encoded]))


def _enhanced_dicom() -> Seed:
    """Several frames, each with its place."""
    shared, measures, orientation = pydicom.Dataset(), pydicom.Dataset(), pydicom.Dataset()
    measures.PixelSpacing, measures.SliceThickness = [2, 1], 3
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [orientation]
    frames = []
    for number in range(len(_VOXELS)):
        position, frame = pydicom.Dataset(), pydicom.Dataset()
        position.ImagePositionPatient = [0, 0, 3 * number]
        frame.PlanePositionSequence = [position]
        frames.append(frame)
    return _dicom(
        ExplicitVRLittleEndian,
        NumberOfFrames=len(_VOXELS),
        SharedFunctionalGroupsSequence=[shared],
        PerFrameFunctionalGroupsSequence=frames,
        PixelData=_VOXELS.tobytes(),
    )


def _colour_dicom(**options: Any) -> Seed:
    return _dicom(
        ExplicitVRLittleEndian,
        SamplesPerPixel=3,
        **{"PlanarConfiguration": 0, **options},
        BitsAllocated=8,
        BitsStored=8,
        HighBit=7,
        Rows=_COLOUR.shape[0],
        Columns=_COLOUR.shape[1],
        PixelData=_COLOUR.tobytes(),
    )


def _dicom(syntax: Any, **options: Any) -> Seed:
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["instance"])
    dataset = FileDataset(
        "",
        {},
        bytes(128),
        meta,
        is_implicit_VR=syntax.is_implicit_VR,
        is_little_endian=syntax.is_little_endian,
    )
    dataset.SOPClassUID = MRImageStorage
    dataset.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    dataset.SeriesInstanceUID = generate_uid(entropy_srcs=["series"])
    dataset.SeriesNumber = 1
    dataset.SeriesDescription = "a"
    dataset.Rows, dataset.Columns = _VOXELS.shape[1:]
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, 12, 11
    dataset.PixelRepresentation, dataset.SamplesPerPixel = 0, 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.ImagePositionPatient, dataset.PixelSpacing = [0, 0, 1], [2, 1]
    dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    dataset.SliceThickness = 3
    dataset.RescaleSlope, dataset.RescaleIntercept = 2, -10
    stored = ">i2" if syntax == ExplicitVRBigEndian else "<i2"
    dataset.PixelData = _VOXELS[0].astype(stored).tobytes()
    for keyword, value in options.items():
        setattr(dataset, keyword, value)
    dataset["PixelData"].VR = "OB" if syntax.is_encapsulated or dataset.BitsAllocated == 8 else "OW"
    inner = pydicom.Dataset()
    inner.PatientID = "a"
    dataset.ReferencedStudySequence = [inner]
    if syntax == RLELossless:
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        dataset.compress(RLELossless, generate_instance_uid=False)
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    return Seed(buffer.getvalue())


_SEEDS: dict[str, Callable[[], list[Seed]]] = {
    "BMP": _bmps,
    "PNG": _pngs,
    "JPEG": _jpegs,
    "TIFF": _tiffs,
    "WebP": _webps,
    "PGM/PPM": _netpbms,
    "GIF": _gifs,
    "NIfTI": _niftis,
    "TIFF stack": _stacks,
    "NumPy array": _arrays,
    "DICOM": _dicoms,
}
