"""PBM, PGM and PPM, plain and binary, because Pillow cuts 16-bit colour down to 8 bits.

The format: https://netpbm.sourceforge.net/doc/ppm.html and its siblings.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelscope.files import formats
from kernelscope.files.depth import rescale
from kernelscope.files.formats import ONLY_FIRST, Decoded, Unreadable, check_size
from kernelscope.images.image import NOTHING, Metadata

_CUT_OFF = "the file is cut off."
_BLANKS = (b" ", b"\n", b"\r", b"\t", b"\v", b"\f")
_PIECE = 2**20
_MOST_DIGITS = 9
"""Digits of a sample in a plain file; leading zeros may make it longer than the maximum."""


def decode(handle: BinaryIO) -> Decoded:
    kind, width, height, maximum = _header(handle)
    plain, bitmap, channels = kind <= 3, kind in (1, 4), 3 if kind in (3, 6) else 1
    start = handle.tell()
    handle.seek(0)
    others = ("a comment",) if b"#" in handle.read(-1 if plain else start) else ()
    handle.seek(start)
    metadata = Metadata(others=others)
    shape = (height, width, channels)
    if bitmap:
        bits = _plain_bits(handle, width * height) if plain else _packed_bits(handle, shape)
        white = np.uint8(255)
        pixels, notices = white - white * bits.reshape(height, width), [formats.ONE_BIT]
        return Decoded(pixels, notices + _rest(handle), metadata=metadata)
    read = _plain if plain else _binary
    samples = read(handle, width * height * channels, maximum).reshape(shape)
    if samples.max() > maximum:
        raise Unreadable(f"it holds samples above {maximum}, its own white.")
    notices = _rest(handle)
    if maximum not in (255, 65535):
        notices.append(f"Samples of 0 to {maximum} stretched to {8 if maximum < 255 else 16} bits.")
    return Decoded(rescale(samples, maximum), notices, metadata=metadata)


def _header(handle: BinaryIO) -> tuple[int, int, int, int]:
    """Return the kind, the width, the height and the sample of white."""
    kind = int(handle.read(2)[1:])
    width, height = _number(handle), _number(handle)
    maximum = 1 if kind in (1, 4) else _number(handle)
    check_size(width, height, 3 if kind in (3, 6) else 1)
    if not 1 <= maximum <= 65535:
        raise Unreadable(f"its header gives {maximum} as white; 1 to 65535 are allowed.")
    return kind, width, height, maximum


def head(handle: BinaryIO) -> Decoded:
    kind, width, height, maximum = _header(handle)
    pixel = np.zeros(3 if kind in (3, 6) else 1, np.uint8 if maximum < 256 else np.uint16)
    return Decoded.of_head(pixel, width, height)


def _rest(handle: BinaryIO) -> list[str]:
    """Return a notice if another picture follows, as in streams of frames."""
    more = re.match(rb"P[1-6]\s", handle.read(3))
    return [f"{ONLY_FIRST} of several pictures is shown."] if more else []


def encode(pixels: NDArray[Any], _: Metadata = NOTHING) -> bytes:
    kind = "P5" if pixels.ndim == 2 else "P6"
    maximum = np.iinfo(pixels.dtype).max
    header = f"{kind}\n{pixels.shape[1]} {pixels.shape[0]}\n{maximum}\n"
    return header.encode() + pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()


def _number(handle: BinaryIO) -> int:
    digits = b""
    while True:
        byte = handle.read(1)
        if byte == b"#":
            handle.readline()
        elif byte.isdigit() and len(digits) < 10:
            digits += byte
        elif byte.isspace() and digits:
            return int(digits)
        elif not byte.isspace():
            raise Unreadable("its header is damaged." if byte else _CUT_OFF)


def _text(handle: BinaryIO) -> bytes:
    data = handle.read()
    return re.sub(rb"#[^\r\n]*", b"", data) if b"#" in data else data


def _plain(handle: BinaryIO, count: int, maximum: int) -> NDArray[Any]:
    text = _text(handle)
    if 2 * count - 1 > len(text):
        raise Unreadable(_CUT_OFF)
    samples = np.empty(count, np.uint32)
    done, start = 0, 0
    while done < count:
        if start >= len(text):
            raise Unreadable(_CUT_OFF)
        piece = text[start : start + _PIECE]
        # The last number may continue in the next piece.
        cut = max(map(piece.rfind, _BLANKS)) + 1
        if start + _PIECE < len(text) and cut:
            piece = piece[:cut]
        numbers = _decimals(piece, maximum)[: count - done]
        samples[done : done + len(numbers)] = numbers
        done += len(numbers)
        start += len(piece)
    return samples


def _decimals(text: bytes, maximum: int) -> NDArray[np.uint32]:
    digits = np.frombuffer(text, np.uint8) - np.uint8(ord("0"))
    inside = np.zeros(len(text) + 2, np.bool_)
    inside[1:-1] = digits < 10
    if not np.isin(np.frombuffer(text, np.uint8)[~inside[1:-1]], list(b"".join(_BLANKS))).all():
        raise Unreadable("it holds samples that are no numbers.")
    first = np.flatnonzero(inside[1:-1] & ~inside[:-2])
    last = np.flatnonzero(inside[1:-1] & ~inside[2:])
    length = last - first + 1
    longest = int(length.max(initial=0))
    if longest > _MOST_DIGITS:
        raise Unreadable(f"it holds samples above {maximum}, its own white.")
    numbers = np.zeros(len(last), np.uint32)
    for power in range(longest):
        there = length > power
        numbers[there] += digits[last[there] - power] * np.uint32(10**power)
    return numbers


def _binary(handle: BinaryIO, count: int, maximum: int) -> NDArray[Any]:
    dtype = np.dtype(np.uint8 if maximum <= 255 else ">u2")
    return np.frombuffer(_exactly(handle, count * dtype.itemsize), dtype)


def _plain_bits(handle: BinaryIO, count: int) -> NDArray[np.uint8]:
    """Read digits that need no blanks between them."""
    digits = _text(handle).translate(None, b"".join(_BLANKS))[:count]
    if len(digits) < count:
        raise Unreadable(_CUT_OFF)
    bits = np.frombuffer(digits, np.uint8) - np.uint8(ord("0"))
    if bits.max() > 1:
        raise Unreadable("it holds bits other than 0 and 1.")
    return bits


def _packed_bits(handle: BinaryIO, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    height, width, _ = shape
    stride = (width + 7) // 8
    packed = np.frombuffer(_exactly(handle, height * stride), np.uint8)
    return np.unpackbits(packed.reshape(height, stride), axis=1, count=width)


def _exactly(handle: BinaryIO, size: int) -> bytes:
    data = handle.read(size)
    if len(data) < size:
        raise Unreadable(_CUT_OFF)
    return data
