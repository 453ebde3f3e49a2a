"""Files put together by hand, and healthy ones to damage."""

from __future__ import annotations

import io
import struct
import zlib

import imagecodecs
import numpy as np
import PIL.Image

from kernelscope.images.image import Image


def picture(pixels: np.ndarray) -> Image:
    return Image.from_array(pixels, "picture")


def png_chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png_header(width: int, height: int, depth: int = 8, colour_type: int = 2) -> bytes:
    content = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", content)


def bmp(
    width: int,
    height: int,
    bits: int,
    body: bytes,
    *,
    compression: int = 0,
    palette: bytes = b"",
    masks: tuple[int, ...] = (),
) -> bytes:
    """A BMP with a 40-byte header; `height` is negative for top-down rows."""
    extra = struct.pack(f"<{len(masks)}I", *masks) + palette
    offset = 54 + len(extra)
    return (
        struct.pack("<2sIHHI", b"BM", offset + len(body), 0, 0, offset)
        + struct.pack(
            "<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(body), 0, 0, 0, 0
        )
        + extra
        + body
    )


def claims(kind: str, width: int, height: int) -> bytes:
    """A file of a few bytes whose header claims a size."""
    if kind == "png":
        return png_header(width, height) + png_chunk(b"IDAT", b"") + png_chunk(b"IEND", b"")
    if kind == "bmp":
        return bmp(width, height, 24, bytes(64))
    if kind == "ppm":
        return f"P6 {width} {height} 255 ".encode() + bytes(64)
    if kind == "gif":
        size = struct.pack("<HH", width, height)
        frame = b"\x2c\0\0\0\0" + size + b"\0\2\1\0\0"
        return b"GIF89a" + size + b"\x80\0\0" + bytes(6) + frame + b";"
    if kind == "jpg":
        frame = struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0"
        scan = b"\xff\xda\0\x08\1\1\0\0\x3f\0"
        return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + scan + bytes(64)
    entries = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1)]
    entries += [(278, height), (279, width * height % 2**32)]
    tags = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + tags + bytes(4)


def jpeg(kind: str, pixels: np.ndarray) -> bytes:
    """Encode colours as one of the kinds of JPEG."""
    grey = pixels[..., 0].copy()
    if kind == "12-bit":
        return bytes(imagecodecs.jpeg8_encode(grey.astype(np.uint16) << 4, bitspersample=12))
    if kind == "lossless":
        return bytes(imagecodecs.jpeg8_encode(grey, lossless=True))
    if kind == "LS":
        return bytes(imagecodecs.jpegls_encode(grey))
    modes = {"grey": "L", "CMYK": "CMYK"}
    restarts = 3 if kind == "restarts" else 0
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).convert(modes.get(kind, "RGB")).save(
        buffer, "JPEG", progressive=kind == "progressive", restart_marker_blocks=restarts
    )
    return buffer.getvalue()


def healthy(suffix: str) -> bytes:
    """A small colour picture as a file."""
    rng = np.random.default_rng(3)
    ramp = np.add.outer(np.arange(40), np.arange(48))[:, :, None] * [1, 2, 1]
    colour = (ramp + rng.integers(0, 9, (40, 48, 3))).astype(np.uint8)
    options = {".tif": {"compression": "tiff_lzw"}, ".tiff": {"compression": "jpeg"}}
    PIL.Image.init()
    kind = PIL.Image.registered_extensions()[suffix]
    buffer = io.BytesIO()
    PIL.Image.fromarray(colour).save(buffer, kind, **options.get(suffix, {}))
    return buffer.getvalue()
