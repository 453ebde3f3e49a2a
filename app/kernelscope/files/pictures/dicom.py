"""DICOM: shared parts of slices and pictures, and pictures in colour.

The format: DICOM PS3.3 (meaning of the elements), PS3.5 (how they are stored).
"""

from __future__ import annotations

import re
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.installed import install_command
from kernelscope.base.once import ignore_warnings, once
from kernelscope.files import formats
from kernelscope.files.depth import rescale
from kernelscope.files.formats import (
    ONLY_FIRST,
    Decoded,
    Format,
    Unreadable,
    check_size,
    damage_explained,
)
from kernelscope.files.pictures import jpeg
from kernelscope.files.pictures.jpeg import check_coded_size
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import Metadata

FORMAT = Format("DICOM", (".dcm", ".ima"))

MAGIC = rb".{128}DICM"  # behind a preamble, which is arbitrary and often looks like a TIFF
START = 132  # bytes that identify a DICOM file

TAGS = "DICOM tags"

_LENGTH_END = START + 12  # end of the first element, the length of the others before the data set
_DEFLATED = b"1.2.840.10008.1.2.1.99"
_MOST_INFLATED, _MOST_RATIO = 1 << 27, 100
"""Bytes, and bytes for each of the file, that a deflated data set may have; one of the two."""

_BY_PYLIBJPEG = re.compile(r"JPEG|RLE")
_NOT_BY_PYLIBJPEG = re.compile(r"MPEG|JPIP|JPEG XL|SMPTE")
_FRAME = re.compile(
    rb"\xff\xd8\xff|\xff\x4f\xff\x51|\0\0\0\x0cjP|[\1-\x0f]\0\0\0\x40\0\0\0", re.DOTALL
)
"""Beginnings of frames: JPEG and JPEG-LS, JPEG 2000 and its file, RLE."""
_GREY = ("MONOCHROME1", "MONOCHROME2")

SAMPLES = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
"""Elements of which a file with a picture has one."""


def matches(start: bytes) -> bool:
    return start[128:START] == b"DICM"


def is_colour(path: Path) -> bool:
    """Return whether a DICOM file holds a picture in colour, and not a slice of a volume."""
    return has_colours(read_header(path))


def has_colours(header: Any) -> bool:
    return "PixelData" in header and header.get("PhotometricInterpretation") not in (None, *_GREY)


def decode(handle: BinaryIO) -> Decoded:
    from pydicom.pixels import apply_color_lut

    name = Path(handle.name).name
    dataset = _read(handle, name)
    if "PixelData" not in dataset:
        raise Unreadable("the file holds no picture.")
    model = dataset.PhotometricInterpretation
    if model in _GREY:
        raise Unreadable(
            "it is a grey DICOM slice, which opens as a volume.", "Open it as a volume."
        )
    check_size(dataset.Columns, dataset.Rows, dataset.SamplesPerPixel)
    frames = frame_count(dataset)
    check_size(dataset.Columns, dataset.Rows * frames, dataset.SamplesPerPixel)
    unstated = keep_first(dataset, name)
    pixels = stored_pixels(dataset, name)
    notices = []
    if frames > 1:
        pixels = pixels[0]
    if max(frames, unstated) > 1:
        notices.append(f"{ONLY_FIRST} of {max(frames, unstated)} pictures is shown.")
    if model == "PALETTE COLOR":
        pixels = apply_color_lut(pixels, dataset)
        notices.append(formats.PALETTE.format("RGB"))
        bits = 8 * pixels.dtype.itemsize
    else:
        bits = int(dataset.BitsStored)
        if model != "RGB":
            notices.append(f"{model} converted to RGB.")
    if pixels.dtype.kind != "u" or bits > 16 or pixels.shape[2] != 3:
        raise Unreadable(f"its colours are of type {pixels.dtype}, which is not supported.")
    if bits not in (8, 16):
        notices.append(f"{bits}-bit samples stretched to {8 if bits < 8 else 16} bits.")
        pixels = rescale(pixels, 2**bits - 1)
    return Decoded(pixels, notices, metadata=Metadata(others=(TAGS,)))


def head(handle: WatchedFile) -> Decoded | None:
    dataset = _dcmread(handle, stop_before_pixels=True)
    model = dataset.PhotometricInterpretation
    if model in _GREY:
        return None
    bits = dataset.BitsStored
    if model == "PALETTE COLOR":
        bits = dataset.RedPaletteColorLookupTableDescriptor[2]
    more = [f"{ONLY_FIRST} of {frame_count(dataset)} pictures is shown."] * (
        frame_count(dataset) > 1
    )
    pixel = np.zeros(3, np.uint8 if bits <= 8 else np.uint16)
    return Decoded.of_head(pixel, dataset.Columns, dataset.Rows, *more)


def read_header(path: Path) -> Any:
    with damage_explained(f"DICOM file {path.name}'s"), WatchedFile(path) as handle:
        return _dcmread(handle, defer_size=1024)


def read_whole(path: Path) -> Any:
    with WatchedFile(path) as handle:
        return _read(handle, path.name)


def frame_count(dataset: Any) -> int:
    return int(getattr(dataset, "NumberOfFrames", None) or 1)


def keep_first(dataset: Any, name: str) -> int:
    """Return how many frames there are, and leave the first, if no number is stated.

    By the standard there is one then. If it is compressed it has any number of pieces, so a frame
    is counted where a piece has the beginning of one: decoders would take all pieces for one frame.
    """
    from pydicom import encaps

    if dataset.get("NumberOfFrames") or "PixelData" not in dataset:  # floats are uncompressed
        return 1
    with damage_explained(f"DICOM file {name}'s"):
        syntax = dataset.file_meta.TransferSyntaxUID
        if not _is_decodable(syntax):
            return 1
        if not syntax.is_encapsulated:
            samples = dataset.Rows * dataset.Columns * dataset.get("SamplesPerPixel", 1)
            size = samples * dataset.BitsAllocated // 8
            count = len(dataset.PixelData) // size if size else 1
            if count > 1:
                dataset.PixelData = dataset.PixelData[:size]
            return max(1, count)
        data = BytesIO(dataset.PixelData)
        encaps.parse_basic_offsets(data)
        pieces = list(encaps.generate_fragments(data))
        starts = [number for number, piece in enumerate(pieces) if _FRAME.match(piece)]
        if len(starts) > 1:
            dataset.PixelData = encaps.encapsulate([b"".join(pieces[: starts[1]])])
            dataset["PixelData"].is_undefined_length = True
        return max(1, len(starts))


def stored_pixels(dataset: Any, name: str) -> NDArray[Any]:
    """Return the stored values, colours as RGB; of several frames, the first axis counts them."""
    with damage_explained(f"DICOM file {name}'s"):
        syntax = dataset.file_meta.TransferSyntaxUID
        if not _is_decodable(syntax):
            raise _undecodable(syntax, name)
        _check_frames(dataset)
        try:
            pixels = np.asarray(dataset.pixel_array)
        except (RuntimeError, NotImplementedError) as error:
            # The message of pydicom if a library is installed but does not support these pixels.
            if re.search(r"not support|cannot decode|Unable to convert", str(error)):
                raise _undecodable(syntax, name) from error
            raise
        _check_complete(dataset)
        return pixels


def _check_frames(dataset: Any) -> None:
    """Refuse compressed frames that unpack to more than the size that the file declares."""
    from pydicom import encaps

    if dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        size = dataset.Columns, dataset.Rows, dataset.get("SamplesPerPixel", 1)
        for frame in encaps.generate_frames(
            dataset.PixelData, number_of_frames=frame_count(dataset)
        ):
            check_coded_size(frame, *size)


def _check_complete(dataset: Any) -> None:
    """Refuse JPEG frames whose data end early.

    No decoder behind pydicom reports that, and an exception in `dicom_codecs` would only make
    pydicom try its next decoder.
    """
    import imagecodecs
    from pydicom import encaps, uid

    lossless = (uid.JPEGLossless, uid.JPEGLosslessSV1)
    syntaxes = (uid.JPEGBaseline8Bit, uid.JPEGExtended12Bit, *lossless)
    if dataset.file_meta.TransferSyntaxUID in syntaxes:
        for frame in encaps.generate_frames(
            dataset.PixelData, number_of_frames=frame_count(dataset)
        ):
            samples = imagecodecs.jpeg8_decode(frame)
            jpeg.check_complete(frame, samples, imagecodecs.jpeg8_decode)


def _read(source: BinaryIO, name: str) -> Any:
    with damage_explained(f"DICOM file {name}'s"):
        return _dcmread(source)


def _dcmread(source: BinaryIO, **options: Any) -> Any:
    import pydicom

    ignore_warnings(r"pydicom\.")
    _add_codecs()
    _check_deflated(source)
    dataset = pydicom.dcmread(source, **options)
    frames = dataset.get("PerFrameFunctionalGroupsSequence") or ()
    if not dataset.get("NumberOfFrames") and len(frames) > 1:
        dataset.NumberOfFrames = len(frames)  # which is required, and left out by some
    return dataset


def _check_deflated(source: BinaryIO) -> None:
    """Refuse a deflated file whose data unpack to far more than they are: pydicom takes all."""
    start = source.read(_LENGTH_END)
    meta = source.read(min(int.from_bytes(start[-4:], "little"), 1 << 16))
    if _DEFLATED in meta:
        unpack, total, size = zlib.decompressobj(-zlib.MAX_WBITS), 0, len(start)
        while not unpack.eof and (part := source.read(1 << 16)):
            size += len(part)
            while part:
                total += len(unpack.decompress(part, 1 << 20))
                part = unpack.unconsumed_tail
                if total > _MOST_INFLATED and total > _MOST_RATIO * size:
                    raise Unreadable(
                        "its deflated data unpack to far more than their size explains."
                    )
    source.seek(0)


@once
def _add_codecs() -> None:
    """Let pydicom decode with the library that this package uses for pictures."""
    from pydicom.pixels import get_decoder

    from kernelscope.files.pictures import dicom_codecs

    for uid in dicom_codecs.DECODER_DEPENDENCIES:
        get_decoder(uid).add_plugin("imagecodecs", (dicom_codecs.__name__, "decode_frame"))


def _is_decodable(syntax: Any) -> bool:
    from pydicom.pixels import get_decoder

    if not syntax.is_transfer_syntax or (syntax.is_compressed and syntax.is_encapsulated):
        try:
            return bool(get_decoder(syntax).is_available)
        except NotImplementedError:
            return False
    return True


def _undecodable(syntax: Any, name: str) -> Unreadable:
    """Return the error for intact pixels in a compression that cannot be read here."""
    known = _BY_PYLIBJPEG.search(syntax.name) and not _NOT_BY_PYLIBJPEG.search(syntax.name)
    if known:
        return Unreadable(
            f"{name} is compressed as {syntax.name}, which needs more libraries.",
            f"Install them: {install_command('dicom')}",
        )
    return Unreadable(
        f"{name} is compressed as {syntax.name}, which is not supported.",
        "Save it without compression, with gdcmconv --raw for instance.",
    )
