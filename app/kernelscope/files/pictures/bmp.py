"""BMP of every documented kind, except those that hold another format.

Pillow knows the usual kinds only: it refuses bit fields of other widths, run-length encoding
with holes and two-bit palettes, and drops the alpha of 16-bit pixels. The format: Microsoft,
“Bitmap Storage” (BITMAPINFOHEADER, BITMAPV5HEADER); IBM, OS/2 2.0 Presentation Manager Reference.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import kernel
from kernelscope.base.text import enumerated
from kernelscope.files import formats
from kernelscope.files.depth import rescale
from kernelscope.files.formats import Decoded, Unreadable, check_size
from kernelscope.images.image import NOTHING, Metadata

MAGIC = (
    rb"BM"
    # A .dib begins with the length of its header, then the size, one plane and the depth.
    rb"|(?:\x0c\0\0\0.{4}|[\x28\x34\x38\x40\x6c\x7c]\0\0\0.{8})\x01\0[\x01\x02\x04\x08\x10\x18\x20]\0"
)

_HEAD = 1024 + 256  # bytes of the headers, with a palette
_FILE_HEADER = 14
_OS2_1, _WINDOWS_3 = 12, 40
_PLAIN, _RLE8, _RLE4, _FIELDS, _JPEG, _PNG, _ALPHA_FIELDS = range(7)
_HUFFMAN, _RLE24 = "Huffman", "RLE24"
_CMYK = (11, 12, 13)
_RLE_BITS = {_RLE8: 8, _RLE4: 4, _RLE24: 24}
_USUAL_FIELDS = {
    16: (0x7C00, 0x03E0, 0x001F, 0),
    32: (0xFF0000, 0xFF00, 0xFF, 0),
}
_INTERPRETED = 2**12
"""Bytes of runs below which Python finishes before Numba has loaded its compiled code."""

_MOST_HOLES = 2**24  # pixels that runs may leave out; otherwise a few bytes could claim a gigabyte

PER_METRE = 1 / 0.0254
_MAX_PROFILE = 2**24

_CUT_OFF = "the file is cut off."


@dataclass(frozen=True)
class _Header:
    """Description of the pixels in the header of a BMP."""

    width: int
    height: int
    top_down: bool
    bits: int
    compression: int | str
    """As Windows numbers it; OS/2 gives other meanings to 3 and 4, which have names here."""
    fields: tuple[int, int, int, int]
    """Masks of red, green, blue and alpha in a pixel of 16 or 32 bits; 0 if there is none."""
    palette: NDArray[np.uint8]  # red, green and blue of each entry: shape (entries, 3)
    pixels: int  # offset of the pixels in the data
    metadata: Metadata = NOTHING  # without the profile, which follows the pixels
    profile: slice | None = None  # its place in the data


def decode(handle: BinaryIO) -> Decoded:
    header = _header(handle.read(_HEAD))
    if header.profile is not None:
        handle.seek(header.profile.start)
        profile = handle.read(header.profile.stop - header.profile.start)
        header = replace(header, metadata=replace(header.metadata, profile=profile))
    handle.seek(header.pixels)
    data = handle.read()
    notices: list[str] = []
    if header.compression in _RLE_BITS:
        samples = _unpacked_runs(data, header, notices)
        if header.compression == _RLE24:
            return _turned(samples, header, notices)
    else:
        samples = _rows(data, header)
    if header.bits <= 8:
        pixels = _coloured(_indices(samples, header), header, notices)
    elif header.bits == 24:
        pixels = samples[:, : 3 * header.width].reshape(header.height, -1, 3)[:, :, ::-1]
    else:
        pixels = _fields(samples, header, notices)
    return _turned(pixels, header, notices)


def head(handle: BinaryIO) -> Decoded:
    whole = _header(handle.read(_HEAD))
    header = replace(whole, width=1, height=1)
    if header.bits == 24:
        pixel = np.zeros(3, np.uint8)
    elif header.bits <= 8:
        pixel = _coloured(np.zeros((1, 1), np.uint8), header, [])
    else:
        pixel = _fields(np.zeros((1, 4), np.uint8), header, [])
    return Decoded.of_head(pixel, whole.width, whole.height)


def _turned(pixels: NDArray[Any], header: _Header, notices: list[str]) -> Decoded:
    return Decoded(pixels if header.top_down else pixels[::-1], notices, metadata=header.metadata)


def _header(start: bytes) -> _Header:
    at = _FILE_HEADER if start[:2] == b"BM" else 0
    if len(start) < at + 16:
        raise Unreadable(_CUT_OFF)
    length = int.from_bytes(start[at : at + 4], "little")
    if length != _OS2_1 and not 16 <= length <= 64 and length not in (108, 124):
        raise Unreadable(f"its BMP header is damaged: no kind has {length} bytes.")
    block = start[at : at + length]
    if len(block) < length:
        raise Unreadable(_CUT_OFF)
    if length == _OS2_1:
        width, height, planes, bits = struct.unpack("<HHHH", block[4:12])
        code = used = 0
    else:
        padded = block.ljust(124, b"\0")
        width, height, planes, bits, code = struct.unpack("<iiHHI", padded[4:20])
        used = int.from_bytes(padded[32:36], "little")
    if planes != 1:
        raise Unreadable(f"its BMP header is damaged: {planes} planes.")
    check_size(width, abs(height))
    compression = _compression(code, bits, length)
    fields, behind = _masks(start[at:], length, bits, compression)
    first = at + length + behind
    if bits <= 8 and not 0 < used <= 1 << bits:
        used = 1 << bits
    entry = 3 if length == _OS2_1 else 4
    offset = int.from_bytes(start[10:14], "little") if at else 0
    pixels = offset or first + entry * used
    if pixels < first:
        raise Unreadable("its BMP header is damaged: the pixels begin inside it.")
    table = start[first : min(pixels, first + entry * used)] if bits <= 8 else b""
    palette = np.frombuffer(table[: len(table) // entry * entry], np.uint8)
    palette = palette.reshape(-1, entry)[:, 2::-1]
    return _Header(
        width,
        abs(height),
        height < 0,
        bits,
        compression,
        fields,
        palette,
        pixels,
        Metadata(resolution=_resolution(block), others=_colours(block)),
        _profile(block, at),
    )


def _colours(block: bytes) -> tuple[str, ...]:
    """Return the names of statements about colours that results lack."""
    if len(block) < 108:
        return ()
    if block[56:60] == b"KNIL":
        return ("a linked colour profile",)
    states = block[56:60] == bytes(4) and any(block[60:108])
    return ("its primaries", "its gamma") if states else ()


def _resolution(block: bytes) -> tuple[float, float] | None:
    x, y = struct.unpack("<ii", block.ljust(124, b"\0")[24:32])
    return (x / PER_METRE, y / PER_METRE) if x > 0 and y > 0 and len(block) >= 32 else None


def _profile(block: bytes, at: int) -> slice | None:
    if len(block) < 124 or block[56:60] != b"DEBM":
        return None
    offset, size = struct.unpack("<II", block[112:120])
    return slice(at + offset, at + offset + min(size, _MAX_PROFILE)) if offset and size else None


def _compression(code: int, bits: int, length: int) -> int | str:
    os2 = 16 <= length <= 64 and length not in (_WINDOWS_3, 52, 56)
    if code == _JPEG and (os2 or bits == 24):
        compression: int | str = _RLE24
    elif code == _FIELDS and (os2 or bits == 1):
        compression = _HUFFMAN
    else:
        compression = code
    if compression in (_JPEG, _PNG):
        kind = "JPEG" if compression == _JPEG else "PNG"
        raise Unreadable(
            f"it is a {kind} inside a BMP, as it is sent to printers, and not supported.",
            f"Save the {kind} itself; XnView and ImageMagick can.",
        )
    if compression == _HUFFMAN:
        raise Unreadable(
            "it is a fax (Huffman 1D) inside an OS/2 BMP, which is not supported.",
            "Convert it to PNG, with XnView for instance.",
        )
    if compression in _CMYK:
        raise Unreadable("it is a BMP of CMYK inks, which is not supported.", "Convert it to RGB.")
    if bits == 64:
        raise Unreadable(
            "it is a BMP of 64 bits a pixel, which is not supported.",
            "Save it as a 16-bit PNG or TIFF; Windows' own libraries (WIC, GDI+) read it.",
        )
    known = {
        _PLAIN: (1, 2, 4, 8, 16, 24, 32),
        _FIELDS: (16, 32),
        _ALPHA_FIELDS: (16, 32),
        **{code: (bits,) for code, bits in _RLE_BITS.items()},
    }
    if bits not in known.get(compression, ()):
        raise Unreadable(
            f"its BMP header is damaged: there is no compression {code} of {bits} bits a pixel."
        )
    return compression


def _masks(
    block: bytes, length: int, bits: int, compression: int | str
) -> tuple[tuple[int, int, int, int], int]:
    """Return the bit fields, and their length in bytes after the header."""
    if compression not in (_FIELDS, _ALPHA_FIELDS):
        return _USUAL_FIELDS.get(bits, (0, 0, 0, 0)), 0
    count = 4 if compression == _ALPHA_FIELDS or length >= 56 else 3
    inside = max(0, min(length - _WINDOWS_3, 4 * count))
    table = block[_WINDOWS_3 : _WINDOWS_3 + 4 * count]
    if len(table) < 4 * count:
        raise Unreadable(_CUT_OFF)
    red, green, blue, alpha = struct.unpack("<4I", table.ljust(16, b"\0"))
    for mask in (red, green, blue, alpha):
        if mask >> bits:
            raise Unreadable(f"its bit fields do not fit into {bits} bits.")
        if mask and (mask // (mask & -mask) + 1).bit_count() != 1:
            raise Unreadable("its bit fields have gaps.", "Convert it to a BMP of 24 or 32 bits.")
    return (red, green, blue, alpha), 4 * count - inside


def _rows(data: bytes, header: _Header) -> NDArray[np.uint8]:
    stride = (header.width * header.bits + 31) // 32 * 4
    size = stride * header.height
    least = size - stride + (header.width * header.bits + 7) // 8
    if len(data) < least:
        raise Unreadable(_CUT_OFF)
    return np.frombuffer(data[:size].ljust(size, b"\0"), np.uint8).reshape(header.height, stride)


def _indices(samples: NDArray[np.uint8], header: _Header) -> NDArray[np.uint8]:
    if header.compression in _RLE_BITS:
        return samples[:, :, 0]
    if header.bits < 8:
        shifts = np.arange(8 - header.bits, -1, -header.bits, dtype=np.uint8)
        parts = (samples[:, :, np.newaxis] >> shifts) & np.uint8((1 << header.bits) - 1)
        samples = parts.reshape(header.height, -1)
    return samples[:, : header.width]


def _coloured(indices: NDArray[np.uint8], header: _Header, notices: list[str]) -> NDArray[Any]:
    palette = header.palette
    entries = 1 << header.bits
    if palette.tolist() == [[0, 0, 0], [255, 255, 255]] and header.bits == 1:
        notices.append(formats.ONE_BIT)
        return indices * np.uint8(255)
    if len(palette) == 256 and np.array_equal(palette, np.repeat(np.arange(256), 3).reshape(-1, 3)):
        return indices
    lacking = int(np.count_nonzero(indices >= len(palette))) if len(palette) < entries else 0
    if lacking:
        notices.append(f"{lacking} pixels have colours that the palette lacks: they are black.")
    table = np.zeros((entries, 3), np.uint8)
    table[: len(palette)] = palette
    notices.append(formats.PALETTE.format("RGB"))
    pixels = np.empty((*indices.shape, 3), np.uint8)
    for channel in range(3):  # takes half the time of looking up all three at once
        pixels[:, :, channel] = table[:, channel][indices]
    return pixels


def _fields(samples: NDArray[np.uint8], header: _Header, notices: list[str]) -> NDArray[Any]:
    packed = samples.view(f"<u{header.bits // 8}")[:, : header.width]
    masks = header.fields if header.fields[3] else header.fields[:3]
    widths = [mask.bit_count() for mask in masks]
    if header.compression == _PLAIN:
        spare = samples[:, 3::4] if header.bits == 32 else samples[:, 1 : 2 * header.width : 2] >> 7
        if spare.min() != spare.max():
            what = "fourth byte" if header.bits == 32 else "highest bit"
            notices.append(f"The {what} of each pixel has no meaning in this BMP: left out.")
    dtype = np.uint16 if max(widths) > 8 else np.uint8
    pixels = np.empty((header.height, header.width, len(masks)), dtype)
    for channel, (mask, width) in enumerate(zip(masks, widths, strict=True)):
        if not mask:
            pixels[:, :, channel] = 0
            continue
        kept = min(width, 16)  # samples have at most 16 bits
        shift = (mask & -mask).bit_length() - 1 + width - kept
        sample = (packed >> shift) & ((1 << kept) - 1)
        largest = (1 << kept) - 1
        if dtype == np.uint16 and kept <= 8:
            white = np.uint32(65535)
            pixels[:, :, channel] = (sample * white + largest // 2) // largest
        else:
            pixels[:, :, channel] = rescale(sample, largest)
    odd = sorted({width for width in widths if width not in (0, 8 * pixels.itemsize)})
    if odd:
        found = enumerated([str(width) for width in odd])
        notices.append(f"Samples of {found} bits converted to {8 * pixels.itemsize} bits.")
    return pixels


def _unpacked_runs(data: bytes, header: _Header, notices: list[str]) -> NDArray[np.uint8]:
    """Return (height, width, 1 or 3) indices or colours of run-length encoded pixels."""
    bits = _RLE_BITS[header.compression]
    most = len(data) // 2 * 255
    if header.width * header.height > most + _MOST_HOLES:
        raise Unreadable(
            f"it is cut off or damaged: its header claims {header.width}×{header.height} pixels, "
            f"and its data have {most} at most."
        )
    pixels = np.zeros((header.height, header.width, 3 if bits == 24 else 1), np.uint8)
    unpack = _unpack if len(data) > _INTERPRETED else _unpack.function
    written = unpack(np.frombuffer(data, np.uint8), bits, pixels)
    if written < 0:
        raise Unreadable(_CUT_OFF)
    holes = header.height * header.width - int(written)
    if holes:
        notices.append(f"The file leaves out {holes} pixels: they have the palette's first colour.")
    return pixels


@kernel
def _unpack(data: Any, bits: Any, pixels: Any) -> Any:  # noqa: C901 - compiled by Numba as one loop
    """Fill `pixels` from the bottom row up; return how many were written, -1 if the data end.

    Pixels outside a row are ignored. A file may end without its end mark if its last row is full.
    """
    height, width, channels = pixels.shape
    size = len(data)
    at = x = y = written = 0
    while y < height:
        if at + 2 > size:
            return written if y == height - 1 and x >= width else -1
        count, value = int(data[at]), int(data[at + 1])
        at += 2
        if count == 0 and value <= 2:
            if value == 0:
                x = 0
                y += 1
            elif value == 1:
                return written
            else:
                if at + 2 > size:
                    return -1
                x += int(data[at])
                y += int(data[at + 1])
                at += 2
            continue
        literal = count == 0
        first = at if literal else at - 1
        if literal:
            count = value
            used = (count * bits + 7) // 8
            at += used + used % 2
            if first + used > size:
                return -1
        elif bits == 24:
            at += 2
            if at > size:
                return -1
        for i in range(min(count, max(0, width - x))):
            if bits == 24:
                place = first + 3 * i if literal else first
                for c in range(channels):
                    pixels[y, x + i, c] = data[place + 2 - c]
            elif bits == 8:
                pixels[y, x + i, 0] = data[first + i] if literal else data[first]
            else:
                place = first + i // 2 if literal else first
                nibble = data[place] & 15 if i % 2 else data[place] >> 4
                pixels[y, x + i, 0] = nibble
            written += 1
        x += count
    return written
