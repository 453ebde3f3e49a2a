"""Opens image files; the format is detected by content."""

from __future__ import annotations

import logging
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernelscope.errors import ImageReadError, OutOfMemory
from kernelscope.files.formats import Decoded, Format, Unreadable, damage_explained, unreadable
from kernelscope.files.pictures import bmp, dicom, jpeg, netpbm, pillow, png, tiff
from kernelscope.files.pictures.exif import upright
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import Image, Metadata

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Reader:
    format: Format
    magic: re.Pattern[bytes]
    decode: Callable[[WatchedFile], Decoded]


def _reader(
    name: str, suffixes: str, magic: bytes, decode: Callable[[WatchedFile], Decoded]
) -> _Reader:
    return _Reader(Format(name, tuple(suffixes.split())), re.compile(magic, re.DOTALL), decode)


_READERS = (
    # First, because a DICOM file may begin with the signature of any other format.
    _Reader(dicom.FORMAT, re.compile(dicom.MAGIC, re.DOTALL), dicom.decode),
    _reader("BMP", ".bmp .dib", bmp.MAGIC, bmp.decode),
    _reader("PNG", ".png", re.escape(png.MAGIC), png.decode),
    _reader("JPEG", ".jpg .jpeg .jpe .jfif", rb"\xff\xd8\xff", jpeg.decode),
    _reader("TIFF", ".tif .tiff", rb"II[*+]\0|MM\0[*+]", tiff.decode),
    _reader("WebP", ".webp", rb"RIFF....WEBP", partial(pillow.decode, kind="WEBP")),
    _reader("PGM/PPM", ".pgm .ppm .pbm .pnm", rb"P[1-6][\s#]", netpbm.decode),
    _reader("GIF", ".gif", rb"GIF8[79]a", partial(pillow.decode, kind="GIF")),
)

READABLE = tuple(reader.format for reader in _READERS)
"""The formats that `read_image` opens."""


def read_image(path: str | Path, *, nan: float | None = None) -> Image:
    """Read an image file of one of the formats in `READABLE`.

    The format is detected by content, not by suffix. Depth is kept; colour models other than grey
    and RGB are converted, which `Image.notices` reports. Pictures are turned upright by their EXIF
    or XMP orientation. Colour profiles are kept, not applied.

    Parameters
    ----------
    nan : float, optional
        Replaces NaN; results saved as floats have NaN there again.

    Raises
    ------
    ImageReadError
        If the file is missing, damaged, too large, or of no format in `READABLE`.
    NotANumber
        If some samples are NaN, and there is no `nan`.
    InvalidImage
        If some are infinite.
    OutOfMemory
        If there is not enough memory for it.
    """
    path = Path(path)
    title = path.name or str(path)
    start = time.perf_counter()
    try:
        with open_file(path) as handle:
            reader = _recognise(handle)
            decoded = _decode(reader, handle)
        notices = [*_suffix_notice(path, reader.format), *decoded.notices]
        if decoded.orientation != 1:
            notices.append("Turned upright, as the camera was held.")
        image = Image.from_array(
            upright(decoded), title, path, tuple(notices), _turned(decoded), nan
        )
    except Unreadable as error:
        raise ImageReadError(f"{title}: {error.cause}", error.hint) from error
    except MemoryError as error:
        raise OutOfMemory(
            f"{title}: there is not enough memory to open it.",
            "Close other programs or use a smaller image.",
        ) from error
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Read %s from %s: %.1f ms", image.describe(), reader.format.name, elapsed)
    for notice in image.notices:
        _logger.info("%s: %s", title, notice)
    return image


def _turned(decoded: Decoded) -> Metadata:
    """Return the metadata of a file, for the upright picture."""
    metadata = decoded.metadata
    if decoded.orientation >= 5 and metadata.resolution:
        return replace(metadata, resolution=metadata.resolution[::-1])
    return metadata


def open_file(path: Path) -> WatchedFile:
    """Open a regular file that is not empty, with limited reading time.

    Raises
    ------
    Unreadable
        If it is no such file, does not exist, or may not be read.
    """
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise Unreadable("this is a folder, not an image file.")
        if not stat.S_ISREG(info.st_mode):
            # A pipe or a device might never end.
            raise Unreadable("this is no ordinary file.")
        if info.st_size == 0:
            raise Unreadable("the file is empty.")
        return WatchedFile(path)
    except FileNotFoundError:
        raise Unreadable("the file does not exist.", "Was it moved or renamed?") from None
    except PermissionError:
        raise Unreadable("you are not allowed to read the file.") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character.
        raise unreadable(error) from error


def _recognise(handle: WatchedFile) -> _Reader:
    """Return the reader for a file by its first bytes, and rewind it."""
    start = handle.read(dicom.START)
    handle.seek(0)
    for reader in _READERS:
        if reader.magic.match(start):
            return reader
    names = ", ".join(format.name for format in READABLE)
    raise Unreadable("this is no image, or one of an unknown format.", f"Readable are {names}.")


def _decode(reader: _Reader, handle: WatchedFile) -> Decoded:
    with damage_explained(reader.format.name):
        return reader.decode(handle)


def _suffix_notice(path: Path, format: Format) -> list[str]:
    suffix = path.suffix.lower()
    if not suffix or suffix in format.suffixes:
        return []
    return [f"The file is {format.name} in spite of its suffix {path.suffix}."]
