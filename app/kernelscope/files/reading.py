"""Opens image files; the format is detected by content."""

from __future__ import annotations

import logging
import stat
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernelscope.files.formats import (
    ONLY_FIRST,
    Decoded,
    Format,
    Unreadable,
    damage_explained,
    named,
    unknown,
    unreadable,
)
from kernelscope.files.picture_formats import FORMATS, READABLE, PictureFormat
from kernelscope.files.pictures import dicom
from kernelscope.files.pictures.exif import turned
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import Image, Metadata, fill_missing

_logger = logging.getLogger(__name__)


def read_image(path: str | Path, *, nan: float | None = None) -> Image:
    """Read an image file of one of the formats in `READABLE`, or an OME-Zarr of one plane.

    The format is detected by content, not by suffix. Depth is kept; colour models other than grey
    and RGB are converted, which `Image.notices` reports. Pictures are turned upright by their EXIF
    or XMP orientation. Colour profiles are kept, not applied.

    - `nan`: replaces NaN; results saved as floats have NaN there again.

    Raises `ImageReadError` if the file is missing, damaged, too large, or of no format in
    `READABLE`; `NotANumber` if some samples are NaN, and there is no `nan`; `InvalidImage` if some
    are infinite; `OutOfMemory` if there is not enough memory for it.
    """
    # Formats of volumes are read by means of this module.
    from kernelscope.files.volumes.zarr_source import decode_picture, is_zarr

    path = Path(path)
    title = path.name or str(path)
    start = time.perf_counter()
    with named(title):
        if is_zarr(path):
            decoded, notices, name = decode_picture(path), list[str](), "OME-Zarr"
        else:
            with open_file(path) as handle:
                found = _recognise(handle)
                decoded = _decode(found, handle)
            notices, name = _suffix_notice(path, found.format), found.format.name
        image = image_from(decoded, title, path, notices, nan)
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Read %s from %s: %.1f ms", image.describe(), name, elapsed)
    for notice in image.notices:
        _logger.info("%s: %s", title, notice)
    return image


def read_head(path: Path) -> Image | None:
    """Return a black image of the form that `read_image` returns, from the head of a file.

    It takes no memory. None where only reading the file shows its form, or why it cannot be read.
    """
    try:
        with open_file(path) as handle:
            found = _recognise(handle)
            with damage_explained(found.format.name):
                decoded = found.head(handle)
    except (Unreadable, MemoryError):
        return None
    if decoded is None:
        return None
    return Image(decoded.pixels, path.name, path, tuple(decoded.notices))


def is_one_of_several(image: Image) -> bool:
    """Return whether the file of a picture has more of them, which `read_pages` reads."""
    return any(notice.startswith(ONLY_FIRST) for notice in image.notices)


def read_pages(path: str | Path, *, nan: float | None = None) -> list[Image]:
    """Read all pictures of a file: the pages of a TIFF, or an animation as it is shown.

    Parameters and errors are those of `read_image`.
    """
    path = Path(path)
    title = path.name or str(path)
    with named(title):
        with open_file(path) as handle:
            found = _recognise(handle)
            if found.decode_all is None:
                pages = [_decode(found, handle)]
            else:
                with damage_explained(found.format.name):
                    pages = found.decode_all(handle)
        return [
            image_from(page, f"{title}, picture {number}", path, [], nan)
            for number, page in enumerate(pages, 1)
        ]


def image_from(
    decoded: Decoded, title: str, path: Path, notices: list[str], nan: float | None
) -> Image:
    notices = [*notices, *decoded.notices]
    if decoded.orientation != 1:
        notices.append("Turned upright, as the camera was held.")
    pixels, missing = turned(decoded.pixels, decoded.orientation), decoded.missing
    if missing is not None:
        missing = np.ascontiguousarray(turned(missing, decoded.orientation))
        pixels, notice = fill_missing(pixels, missing, title, "samples", nan)
        notices.append(notice)
    image = Image.from_array(pixels, title, path, tuple(notices), _turned(decoded), nan)
    if missing is None:
        return image
    missing = missing.reshape(image.pixels.shape)
    return replace(image, missing=missing if image.missing is None else missing | image.missing)


def _turned(decoded: Decoded) -> Metadata:
    metadata = decoded.metadata
    if decoded.orientation >= 5 and metadata.resolution:
        return replace(metadata, resolution=metadata.resolution[::-1])
    return metadata


def open_file(path: Path) -> WatchedFile:
    """Open a regular file that is not empty, with limited reading time."""
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


def _recognise(handle: WatchedFile) -> PictureFormat:
    start = handle.read(dicom.START)
    handle.seek(0)
    for each in FORMATS:
        if each.fits(start):
            return each
    raise unknown(start, "image", [format.name for format in READABLE])


def _decode(found: PictureFormat, handle: WatchedFile) -> Decoded:
    with damage_explained(found.format.name):
        return found.decode(handle)


def _suffix_notice(path: Path, format: Format) -> list[str]:
    suffix = path.suffix.lower()
    if not suffix or suffix in format.suffixes:
        return []
    return [f"The file is {format.name} in spite of its suffix {path.suffix}."]
