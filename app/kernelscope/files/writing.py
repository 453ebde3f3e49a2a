"""Saves images in the format of the suffix; loses data only if explicitly allowed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.base.errors import ImageWriteError, LossyFormat
from kernelscope.base.text import enumerated
from kernelscope.files.formats import writer_for
from kernelscope.files.picture_formats import WRITERS, Writer, contents_of
from kernelscope.files.pictures import tiff
from kernelscope.files.pictures.tiff_description import OME_SUFFIXES
from kernelscope.files.pictures.xmp import stamped
from kernelscope.files.write_errors import check_target, replace_file, saving
from kernelscope.images.image import Image
from kernelscope.images.record import Record

_logger = logging.getLogger(__name__)


def write_image(
    image: Image, path: str | Path, *, lossy: bool = False, quality: int | None = None
) -> Path:
    """Write an image in the format that the suffix names.

    The file at `path` is replaced in one step when everything is written, or stays as it was.

    - `lossy`: allow losing properties that the format cannot keep: depth is rounded (floats are
      clipped to 0 to 1), transparency is composed on white, colour becomes grey (ITU-R BT.601) in a
      PGM. The small losses of JPEG itself need no permission.
    - `quality`: that of a JPEG, 1 to 100; by default 95, or that of the JPEG it was read from
      if it is higher. Chroma is subsampled as there, or not at all.

    Returns where it was written to.

    Raises `LossyFormat` if the format cannot keep the depth, transparency or colour, and `lossy` is
    False; `ImageWriteError` if the suffix names no format, or one without a quality that is given,
    or the place cannot be written to; `OutOfMemory` if there is not enough memory to encode the
    image.
    """
    path = Path(path)
    start = time.perf_counter()
    check_write(path, image.planes.shape, image.pixels.dtype, lossy=lossy, quality=quality)
    writer = _writer(path)
    with saving(path):
        replace_file(path, encoded(image, path, quality))
    elapsed = (time.perf_counter() - start) * 1e3
    _logger.info("Saved %s as %s: %.1f ms", image.describe(), path, elapsed)
    losses = writer.losses(image.channels, image.pixels.dtype)
    if losses:
        _logger.info("%s: saved without the %s", path.name, enumerated(losses))
    return path


def encoded(image: Image, path: Path, quality: int | None = None) -> bytes:
    """Return the content of the file that `write_image` writes, where `check_write` is passed."""
    writer = _writer(path)
    encode = writer.encode
    if quality is not None and writer.encode_at is not None:
        encode = partial(writer.encode_at, quality=quality)
    return encode(writer.fit(image), writer.metadata(image))


def record_of_image(image: Image, path: Path) -> Record:
    """Return the properties of an image and its metadata that `write_image` keeps and loses."""
    writer = _writer(path)
    before = image.metadata
    after = {*contents_of(writer.metadata(image))} - {*before.others}
    in_packet = stamped(before.xmp, image.width, image.height)[1]
    nodata = image.metadata.nodata
    marks = "NaN" if nodata is None else "marks of samples without data"
    has_marks = image.missing is not None or nodata is not None
    facts = (
        *((loss, True, False) for loss in writer.losses(image.channels, image.dtype)),
        *((name, True, name in after) for name in contents_of(before)),
        *((name, True, False) for name in in_packet),
        (marks, has_marks, writer.keeps_missing(image)),
    )
    return Record.of(path.name, facts, image.notices)


def check_write(
    path: str | Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    lossy: bool = False,
    quality: int | None = None,
) -> None:
    """Refuse, before a long run, an image that `write_image` would refuse after it.

    `shape`: height, width and channels of the image to write. `dtype`: type of its samples.
    """
    path = Path(path)
    check_form(path, shape, dtype, lossy=lossy, quality=quality)
    check_target(path)


def check_form(
    path: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    lossy: bool = False,
    quality: int | None = None,
) -> None:
    """Refuse an image that its format cannot keep, as `check_write` does, wherever it goes."""
    height, width, channels = shape
    writer = _writer(path)
    if max(width, height) > writer.max_side:
        raise ImageWriteError(
            f"{path.name}: {writer.format.name} holds at most {writer.max_side} pixels a side, "
            f"and the picture has {width}×{height}.",
            "Save it as TIFF.",
        )
    if quality is not None and writer.encode_at is None:
        raise ImageWriteError(
            f"{path.name}: {writer.format.name} has no quality: it is stored without loss.",
            "Leave the quality out, or save it as JPEG.",
        )
    if quality is not None and not 1 <= quality <= 100:
        raise ImageWriteError(f"{path.name}: there is no quality {quality}.", "Use 1 to 100.")
    losses = writer.losses(channels, dtype)
    if losses and not lossy:
        keepers = [other.format.name for other in WRITERS if not other.losses(channels, dtype)]
        raise LossyFormat(
            f"{path.name}: {writer.format.name} cannot keep {enumerated(losses)}.",
            f"Save it as {enumerated(keepers, 'or')} to keep everything.",
        )


def write_pages(images: Sequence[Image], path: str | Path) -> Path:
    """Write pictures as the pages of a TIFF, each in its depth and colours.

    Raises `ImageWriteError` if the suffix is not that of TIFF, or the place cannot be written to;
    `OutOfMemory` if there is not enough memory to encode them.
    """
    path = Path(path)
    check_write_pages(path)
    writer = _writer(path)
    with saving(path):
        pages = [(writer.fit(each), writer.metadata(each)) for each in images]
        is_ome = path.name.lower().endswith(OME_SUFFIXES)
        replace_file(path, tiff.encode_all(pages, is_ome=is_ome))
    _logger.info("Saved %d pictures as %s", len(images), path)
    return path


def holds_pages(path: Path) -> bool:
    return path.suffix.lower() in (".tif", ".tiff")


def check_write_pages(path: str | Path) -> None:
    """Refuse, before a long run, a place that `write_pages` would refuse after it."""
    path = Path(path)
    check_form_of_pages(path)
    check_target(path)


def check_form_of_pages(path: Path) -> None:
    """Refuse a format that holds one picture only."""
    if not holds_pages(path):
        raise ImageWriteError(
            f"{path.name}: several pictures are written to TIFF files only.", "Save it as TIFF."
        )


def _writer(path: Path) -> Writer:
    return writer_for(path, WRITERS, f"{path.suffix.lower()} files cannot be written.")
