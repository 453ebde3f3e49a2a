"""The formats of pictures: how each one is recognised, decoded and encoded.

A new format is a module in `kernelscope.files.pictures` and a row of `FORMATS`. Reading, writing,
the dialogs and the help texts follow from that table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files.depth import compose_on_white, convert_depth, to_grey
from kernelscope.files.formats import Decoded, FileFormat, Format
from kernelscope.files.pictures import bmp, dicom, jpeg, netpbm, pillow, png, tiff, tiff_exif, xmp
from kernelscope.files.pictures.exif import has_thumbnail, stamped
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import DTYPES, Image, Metadata
from kernelscope.images.source import UNKNOWN_CHANNEL

_UINT8, _UINT16, _FLOAT32 = DTYPES
_EVERYTHING = frozenset({"profile", "resolution", "exif", "xmp"})

_PER_METRE = 0.0254  # a pixel per metre, in pixels per inch
_ROUNDED = 0.005  # largest error of a resolution that counts as kept

_MAX_SEGMENT = 65_000
"""Largest block of EXIF or XMP data in bytes, a little less than a segment of a JPEG file holds.
The same for all formats, so that they keep the same data."""


def contents_of(metadata: Metadata) -> list[str]:
    """Return the names of everything beside the samples, for records."""
    return [
        *["colour profile"] * bool(metadata.profile),
        *["resolution"] * bool(metadata.resolution),
        *tiff_exif.parts_of(metadata.exif),
        *["XMP data"] * bool(metadata.xmp),
        *["channel name"] * bool(metadata.channel.name),
        *["channel colour"] * bool(metadata.channel.colour),
        *["further OME metadata"] * bool(metadata.channel.facts),
        *(png.COLOURS[kind].name for kind, _ in metadata.chunks),
        *metadata.others,
        *["the thumbnail"] * has_thumbnail(metadata.exif),
    ]


@dataclass(frozen=True)
class Writer:
    format: Format  # its suffixes are those to write, which may be fewer than those to read
    encode: Callable[[NDArray[Any], Metadata], bytes]
    """Maps pixels from `fit` and metadata from `metadata` to the bytes of a file."""
    dtypes: tuple[np.dtype[Any], ...] = (_UINT8,)  # types of samples, the most precise one last
    beside: frozenset[str] = frozenset()  # the fields of `Metadata` that are kept
    # Whether there are files of grey, of colours and with transparency.
    grey: bool = True
    colour: bool = True
    alpha: bool = False
    max_side: int = 2**31 - 1  # largest width and height in pixels
    resolutions: tuple[float, float] = (_PER_METRE, 2.0**24)
    """Pixels per inch: the step to which a resolution is rounded, and the largest that is kept."""
    encode_at: Callable[..., bytes] | None = None
    """As `encode`, with a `quality` from 1 to 100; None for formats without loss."""

    def losses(self, channels: int, dtype: np.dtype[Any]) -> list[str]:
        losses = []
        if dtype not in self.dtypes:
            losses.append("16-bit depth" if dtype == _UINT16 else "float samples")
        if channels in (2, 4) and not self.alpha:
            losses.append("transparency")
        if channels > 2 and not self.colour:
            losses.append("colour")
        return losses

    def fit(self, image: Image) -> NDArray[Any]:
        pixels = image.planes
        if image.missing is not None and self.keeps_missing(image):
            mark = pixels.dtype.type(np.nan if pixels.dtype.kind == "f" else image.metadata.nodata)
            pixels = np.where(image.missing.reshape(*pixels.shape[:2], -1), mark, pixels)
        if image.has_alpha and not self.alpha:
            pixels = compose_on_white(pixels)
        if not image.is_grey and not self.colour:
            pixels = np.concatenate([to_grey(pixels[:, :, :3]), pixels[:, :, 3:]], axis=2)
        if pixels.dtype not in self.dtypes:
            pixels = convert_depth(pixels, self.dtypes[-1])
        if image.metadata.wide and "wide" in self.beside and pixels.dtype.kind == "f":
            pixels = pixels.astype(np.float64)
        if image.is_grey and not self.grey:
            pixels = np.concatenate([pixels[:, :, :1]] * 3 + [pixels[:, :, 1:]], axis=2)
        return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels

    def keeps_missing(self, image: Image) -> bool:
        """Return whether unknown samples are saved as such: as NaN, or as the file's number."""
        if image.dtype not in self.dtypes:
            return False
        has_number = "nodata" in self.beside and image.metadata.nodata is not None
        return has_number or image.dtype.kind == "f"

    def keeps_resolution(self, x: float, y: float) -> bool:
        step, most = self.resolutions
        return all(
            each <= most and abs(round(each / step) * step - each) <= _ROUNDED * each
            for each in (x, y)
        )

    def metadata(self, image: Image) -> Metadata:
        found = image.metadata
        colour = not self.grey or (self.colour and not image.is_grey)
        exif = b""
        if "exif" in self.beside and 0 < len(found.exif) <= _MAX_SEGMENT:
            exif = stamped(found.exif, image.width, image.height)
        is_ome = self.format.suffixes == OME_SUFFIXES
        channel = found.channel if "channel" in self.beside else UNKNOWN_CHANNEL
        if exif and "channel" in self.beside:
            described = is_ome or found.channel != UNKNOWN_CHANNEL
            is_big = tiff.is_big(image.planes.nbytes * (2 if found.wide else 1))
            exif = b"" if is_big else tiff_exif.fitting(exif, described=described)
        packet = b""
        if "xmp" in self.beside:
            packet, _ = xmp.stamped(found.xmp, image.width, image.height)
        return Metadata(
            found.profile
            if "profile" in self.beside and found.profile[16:20] == (b"RGB " if colour else b"GRAY")
            else b"",
            found.resolution
            if "resolution" in self.beside
            and found.resolution
            and self.keeps_resolution(*found.resolution)
            else None,
            exif,
            channel=channel if is_ome else replace(channel, facts=()),
            chunks=found.chunks if "chunks" in self.beside else (),
            nodata=found.nodata if "nodata" in self.beside else None,
            xmp=packet if len(packet) <= _MAX_SEGMENT else b"",
            jpeg=found.jpeg,
        )


@dataclass(frozen=True)
class PictureFormat(FileFormat):
    decode: Callable[[WatchedFile], Decoded]  # reads a file, from its start
    head: Callable[[WatchedFile], Decoded | None]
    """Reads the size, type and channels alone, and whether there are further pictures."""
    writers: tuple[Writer, ...] = ()  # several where each suffix keeps other properties
    decode_all: Callable[[WatchedFile], list[Decoded]] | None = None
    """Reads all pictures of a file; None for formats of a single one."""


FORMATS = (
    # First, because a DICOM file may begin with the signature of any other format.
    PictureFormat(dicom.FORMAT, dicom.MAGIC, dicom.decode, dicom.head),
    PictureFormat(
        Format("PNG", (".png",)),
        re.escape(png.MAGIC),
        png.decode,
        png.head,
        (
            Writer(
                Format("PNG", (".png",)),
                png.encode,
                (_UINT8, _UINT16),
                _EVERYTHING | {"chunks"},
                alpha=True,
                max_side=png.MAX_SIDE,
                resolutions=(_PER_METRE, 5e7),
            ),
        ),
        decode_all=partial(pillow.decode_all, kind="PNG", first=png.decode),
    ),
    PictureFormat(
        Format("TIFF", (".tif", ".tiff")),
        tiff.MAGIC,
        tiff.decode,
        tiff.head,
        tuple(
            Writer(
                Format(name, suffixes),
                encode,
                DTYPES,
                _EVERYTHING | {"channel", "nodata", "wide"},
                alpha=True,
                resolutions=(1e-6, 2.0**31),
            )
            # OME-TIFF first, because its names end like those of the other as well.
            for name, suffixes, encode in (
                ("OME-TIFF", OME_SUFFIXES, tiff.encode_ome),
                ("TIFF", (".tif", ".tiff"), tiff.encode),
            )
        ),
        decode_all=tiff.decode_all,
    ),
    PictureFormat(
        Format("BMP", (".bmp", ".dib")),
        bmp.MAGIC,
        bmp.decode,
        bmp.head,
        (Writer(Format("BMP", (".bmp",)), pillow.encode_bmp, beside=frozenset({"resolution"})),),
    ),
    PictureFormat(
        Format("JPEG", (".jpg", ".jpeg", ".jpe", ".jfif")),
        rb"\xff\xd8(?:[^\xff]|\xff\0){0,120}\xff[^\0]",  # stray bytes may be between
        jpeg.decode,
        jpeg.head,
        (
            Writer(
                Format("JPEG", (".jpg", ".jpeg")),
                pillow.encode_jpeg,
                beside=_EVERYTHING,
                max_side=jpeg.MAX_SIDE,
                resolutions=(1.0, 65535.0),
                encode_at=pillow.encode_jpeg,
            ),
        ),
    ),
    PictureFormat(
        Format("WebP", (".webp",)),
        rb"RIFF....WEBP",
        partial(pillow.decode, kind="WEBP"),
        partial(pillow.head, kind="WEBP"),
        (
            Writer(
                Format("WebP", (".webp",)),
                pillow.encode_webp,
                beside=frozenset({"profile", "exif", "xmp"}),
                grey=False,
                alpha=True,
                max_side=16383,
            ),
        ),
        decode_all=partial(
            pillow.decode_all, kind="WEBP", first=partial(pillow.decode, kind="WEBP")
        ),
    ),
    PictureFormat(
        Format("PGM/PPM", (".pgm", ".ppm", ".pbm", ".pnm")),
        rb"P[1-6][\s#]",
        netpbm.decode,
        netpbm.head,
        (
            Writer(Format("PGM", (".pgm",)), netpbm.encode, (_UINT8, _UINT16), colour=False),
            Writer(Format("PPM", (".ppm",)), netpbm.encode, (_UINT8, _UINT16), grey=False),
        ),
    ),
    PictureFormat(
        Format("GIF", (".gif",)),
        rb"GIF8[79]a",
        partial(pillow.decode, kind="GIF"),
        partial(pillow.head, kind="GIF"),
        decode_all=partial(pillow.decode_all, kind="GIF", first=partial(pillow.decode, kind="GIF")),
    ),
)
"""All formats, in the order in which signatures are tried and names are listed."""

READABLE = tuple(each.format for each in FORMATS)
"""The formats that `kernelscope.files.read_image` opens."""

WRITERS = tuple(writer for each in FORMATS for writer in each.writers)
"""The writers of all formats; the first one is the proposal of the dialogs."""

WRITABLE = tuple(writer.format for writer in WRITERS)
"""The formats that `kernelscope.files.write_image` writes."""


def writer_of(name: str) -> Writer | None:
    lower = name.lower()
    return next((each for each in WRITERS if lower.endswith(each.format.suffixes)), None)
