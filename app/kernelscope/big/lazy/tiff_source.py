"""Pictures and stacks in TIFF files, BigTIFF and OME-TIFF among them, read a box at a time.

Samples that lie uncompressed, in one piece, are read from their place. Strips and tiles are decoded
one by one, and the last ones are kept, since halos of neighbouring blocks need them again.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage
from kernelscope.files.formats import Unreadable, damage_explained, named
from kernelscope.files.lazy import Head, OpenedFile, Sides
from kernelscope.files.picture_formats import contents_of
from kernelscope.files.pictures.tiff import metadata_of, nodata_of, orientation_of, photometric
from kernelscope.files.pictures.tiff_layout import (
    check_extents,
    check_pages,
    check_planes,
    check_segments,
    prepare,
)
from kernelscope.files.volumes.raw_volume import spacing_from, spacing_notices
from kernelscope.files.volumes.tiff_stack import (
    WHITE_IS_ZERO,
    check_grey,
    chosen_stack,
    inverted,
    others_of,
    stack_shape,
    volume_axes,
)
from kernelscope.images.image import DTYPES as PICTURE_DTYPES
from kernelscope.images.source import UNKNOWN_CHANNEL
from kernelscope.images.volume import DTYPES as VOLUME_DTYPES
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

_BLACK_IS_ZERO, _RGB, _YCBCR = 1, 2, 6
_JPEG_COMPRESSIONS = (6, 7)
_ALPHA = 2

_TURNED = ("it is stored turned or mirrored.", "Turn it upright and save it.")

KEPT_BYTES = 32 << 20
"""Decoded strips and tiles that are kept, beside those of the box that is being read."""


class TiffSource:
    def __init__(self, file: OpenedFile, pages: list[_Page], kind: Kind, head: Head) -> None:
        self._file, self._pages = file, pages
        self.kind, self.head, self.title = kind, head, file.path.name
        first = pages[0]
        self.dtype = first.dtype
        self.shape: Sides = first.shape if kind is Kind.PICTURE else (len(pages), *first.shape[:2])
        rows, columns = first.grain
        self.grain: Sides = (
            (rows, columns, first.shape[2]) if kind is Kind.PICTURE else (1, rows, columns)
        )

    def read(self, box: Box) -> NDArray[Any]:
        self.check_unchanged()
        output = np.empty(box.sides, self.dtype)
        if self.kind is Kind.PICTURE:
            self._pages[0].read(box.first[0], box.first[1], output)
            return output
        z, y, x = box.first
        for place, page in enumerate(self._pages[z : z + box.sides[0]]):
            page.read(y, x, output[place][:, :, np.newaxis])
        return output

    def working_bytes(self, box: Box) -> int:
        size: int = self.dtype.itemsize
        return box.pixels * size + self._pages[0].working_bytes

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was opened, with an `ImageReadError`."""
        self._file.check_unchanged()

    def close(self) -> None:
        self._file.close()


class _Page:
    """A page, as (height, width, channels).

    `grain`: rows and columns that are stored together. `working_bytes`: most bytes that reading
    takes beside its output: a strip or tile, its code, and those kept.
    """

    def __init__(
        self, file: OpenedFile, page: Any, first: int | None, kept: _Kept, white_is_zero: bool
    ) -> None:
        keyframe = page.keyframe
        self._file, self._page, self._keyframe, self._kept = file, page, keyframe, kept
        self._inverted = white_is_zero
        self._nodata = nodata_of(keyframe)
        self.shape: Sides = (
            int(keyframe.imagelength),
            int(keyframe.imagewidth),
            int(keyframe.samplesperpixel),
        )
        self.dtype = keyframe.dtype.newbyteorder("=")
        self._stored = keyframe.dtype.newbyteorder(keyframe.parent.byteorder)
        self._first = first
        self.working_bytes = 0
        if first is not None:
            if first + math.prod(self.shape) * self.dtype.itemsize > file.size:
                raise Unreadable("the file is cut off.")
            self.grain = (1, self.shape[1])
            return
        if keyframe.is_tiled:
            self.grain = (int(keyframe.tilelength), int(keyframe.tilewidth))
        else:
            self.grain = (min(int(keyframe.rowsperstrip), self.shape[0]), self.shape[1])
        self.working_bytes = 2 * math.prod(self.grain) * self.shape[2] * self.dtype.itemsize + int(
            max(page.databytecounts)
        )

    def read(self, top: int, left: int, output: NDArray[Any]) -> None:
        if self._first is not None:
            self._read_plain(top, left, output)
        else:
            self._read_segments(top, left, output)
        if self._nodata is not None and (output == self._nodata).any():
            raise InvalidImage(
                f"Some samples are marked as without data (GDAL_NODATA {self._nodata:g}).",
                "Filter the file in memory, with a number for them.",
            )
        if self._inverted:
            grey = output[:, :, :1]  # and not alpha
            grey[...] = inverted(grey, 8 * self.dtype.itemsize)

    def _read_plain(self, top: int, left: int, output: NDArray[Any]) -> None:
        assert self._first is not None
        _, width, channels = self.shape
        rows, columns, _ = output.shape
        size = self.dtype.itemsize * channels
        whole = columns == width and output.flags.c_contiguous
        target = output if self._stored == self.dtype and whole else None
        stored = np.empty(output.shape, self._stored) if target is None else target
        if columns == width:
            self._file.fill(self._first + top * width * size, stored)
        else:
            for row in range(rows):
                place = self._first + ((top + row) * width + left) * size
                self._file.fill(place, stored[row])
        if target is None:
            output[...] = stored

    def _read_segments(self, top: int, left: int, output: NDArray[Any]) -> None:
        high, wide = self.grain
        rows, columns, _ = output.shape
        across = -(-self.shape[1] // wide)
        for down in range(top // high, -(-(top + rows) // high)):
            for right in range(left // wide, -(-(left + columns) // wide)):
                segment = self._segment(down * across + right)
                y, x = down * high - top, right * wide - left
                target = output[max(0, y) : y + high, max(0, x) : x + wide]
                height, width = target.shape[:2]
                if segment is None:
                    target[...] = 0
                else:
                    y, x = max(0, -y), max(0, -x)
                    target[...] = segment[y : y + height, x : x + width]

    def _segment(self, index: int) -> NDArray[Any] | None:
        """Return a decoded strip or tile, (rows, columns, channels); None if it has no data."""
        offset, count = self._page.dataoffsets[index], self._page.databytecounts[index]
        if not offset or not count:
            return None
        found = self._kept.get(offset)
        if found is None:
            data = self._file.bytes_at(offset, count)
            with named(self._file.path.name), damage_explained("TIFF"):
                decoded = self._keyframe.decode(
                    data,
                    index,
                    jpegtables=self._page.jpegtables,
                    jpegheader=self._keyframe.jpegheader,
                )[0]
            found = self._kept.put(offset, np.asarray(decoded)[0])
        return found


class _Kept:
    """The decoded strips and tiles that were used last, up to some bytes, by their offset."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._lock = threading.Lock()
        self._found: OrderedDict[int, NDArray[Any]] = OrderedDict()

    def get(self, offset: int) -> NDArray[Any] | None:
        with self._lock:
            if offset in self._found:
                self._found.move_to_end(offset)
            return self._found.get(offset)

    def put(self, offset: int, segment: NDArray[Any]) -> NDArray[Any]:
        with self._lock:
            if offset not in self._found:
                self._found[offset] = segment
                self._bytes += segment.nbytes
            while self._bytes > self._most:
                _, oldest = self._found.popitem(last=False)
                self._bytes -= oldest.nbytes
        return segment


def open_tiff(path: Path, kind: Kind, number: int | None = None) -> TiffSource:
    """Open the first page as a picture, or a stack of pages as a volume.

    `number`: from 1, of the volume in a file of several.
    """
    with named(path.name), ExitStack() as undo:
        file = OpenedFile(path)
        undo.callback(file.close)
        with damage_explained("TIFF"):
            source = _opened(file, kind, number)
        undo.pop_all()
    return source


def _opened(file: OpenedFile, kind: Kind, number: int | None) -> TiffSource:
    import tifffile

    count = check_pages(file.handle)
    tiff = tifffile.TiffFile(file.handle)
    check_planes(tiff)
    if len(tiff.pages) != count or not tiff.series:
        raise Unreadable("its chain of pages is damaged.")
    opened = _picture(file, tiff, count) if kind is Kind.PICTURE else _stack(file, tiff, number)
    if min(opened.shape) < 1:
        raise Unreadable("the image has no pixels.")
    file.handle.trust()
    return opened


def _picture(file: OpenedFile, tiff: Any, count: int) -> TiffSource:
    page, notices = tiff.pages[0], list[str]()
    meaning = photometric(page, notices)
    is_jpeg = page.compression in _JPEG_COMPRESSIONS
    colours = {WHITE_IS_ZERO: 1, _BLACK_IS_ZERO: 1, _RGB: 3}
    if is_jpeg:
        colours[_YCBCR] = 3  # its decoder makes RGB of it
    extra = page.samplesperpixel - colours.get(meaning, 0)
    if meaning not in colours or extra not in (0, 1) or page.planarconfig != 1:
        raise Unreadable(
            "it is no plain grey or RGB picture, and only those are read in blocks.",
            "Convert it to RGB with its samples together.",
        )
    if extra and tuple(page.extrasamples) != (_ALPHA,):
        raise Unreadable("its extra samples are no plain alpha.", "Leave them out.")
    if orientation_of(page) != 1:
        raise Unreadable(*_TURNED)
    if page.dtype is None or page.dtype not in PICTURE_DTYPES:
        raise _of_type(page.dtype, "8-bit, 16-bit or 32-bit float")
    _check_page(page, file)
    metadata = metadata_of(page, file.handle)
    if count > 1:
        notices.append(f"Only the first of {count} pages is filtered.")
    rest = replace(metadata, profile=b"", resolution=None, channel=UNKNOWN_CHANNEL)
    head = Head(
        profile=metadata.profile,
        resolution=metadata.resolution,
        measured=metadata.measured,
        notices=tuple(notices),
        channels=(metadata.channel,),
        others=(*contents_of(rest), *_marks(page)),
    )
    first = int(page.dataoffsets[0]) if page.is_contiguous else None
    inverts = meaning == WHITE_IS_ZERO
    if inverts:
        inverted(np.empty(0, page.dtype), 8)  # refuses a type without a largest value
    pages = [_Page(file, page, first, _Kept(KEPT_BYTES), inverts)]
    return TiffSource(file, pages, Kind.PICTURE, head)


def _stack(file: OpenedFile, tiff: Any, number: int | None) -> TiffSource:
    chosen, notices = chosen_stack(tiff, number)
    series, keyframe = chosen.series, chosen.series.keyframe
    meaning = photometric(keyframe, notices)
    check_grey(series, meaning)
    if keyframe.dtype not in VOLUME_DTYPES:
        raise _of_type(keyframe.dtype, "uint8, uint16, int16 or 32-bit float")
    if meaning == WHITE_IS_ZERO:
        inverted(np.empty(0, keyframe.dtype), 8)  # refuses a type without a largest value
        notices.append("White is 0 in the file: inverted.")
    if orientation_of(keyframe) != 1:
        raise Unreadable(*_TURNED)
    spacing, stated = spacing_from(chosen.description.steps)
    notices += spacing_notices(spacing, stated, stack_shape(series)[0])
    head = Head(
        spacing,
        stated,
        notices=tuple(notices),
        channels=(chosen.channel,),
        others=(*others_of(file.handle, keyframe, chosen.description), *_marks(keyframe)),
        microscope=chosen.description.microscope,
        interval=chosen.description.interval,
        among=chosen.among,
    )
    pages = list(_slices(file, series, chosen.index, meaning == WHITE_IS_ZERO))
    return TiffSource(file, pages, Kind.VOLUME, head)


def _marks(page: Any) -> list[str]:
    return ["marks of samples without data"] * (nodata_of(page) is not None)


def _slices(file: OpenedFile, series: Any, index: int, inverts: bool) -> Iterator[_Page]:
    depth, height, width = stack_shape(series)
    keyframe, kept = series.keyframe, _Kept(KEPT_BYTES)
    if series.axes[-2:] != "YX" or (keyframe.imagelength, keyframe.imagewidth) != (height, width):
        raise Unreadable(
            f"its axes are {series.axes}: its slices are no pages of their own.",
            "Save it as a plain stack.",
        )
    others = volume_axes(series)
    leading = series.shape[:-2]
    order = np.arange(math.prod(leading)).reshape(leading)
    rest = [axis for axis in range(len(leading)) if axis not in others]
    numbers = np.transpose(order, (*others, *rest)).reshape(-1, depth)[index]
    if series.dataoffset is not None:
        size = height * width * keyframe.dtype.itemsize
        for each in numbers.tolist():
            yield _Page(file, keyframe, series.dataoffset + each * size, kept, inverts)
        return
    _check_page(keyframe, file)  # before its pages are counted: one may have several slices
    pages = [series.pages[each] for each in numbers.tolist()]
    if any(page is None for page in pages):
        raise Unreadable("some of its pages are missing.", "Save it as a plain stack.")
    check_extents(pages, file.size)
    for page in pages:
        first = int(page.dataoffsets[0]) if keyframe.is_contiguous else None
        yield _Page(file, page, first, kept, inverts)


def _check_page(page: Any, file: OpenedFile) -> None:
    """Refuse damaged strips and tiles, and samples of fewer bits than their type has."""
    bits = page.bitspersample
    if bits != page.dtype.itemsize * 8:
        raise Unreadable(f"its samples have {bits} bits.", "Convert them to 8 or 16 bits.")
    if page.imagedepth != 1:
        raise Unreadable("its tiles have several slices.", "Save it as a plain stack.")
    check_segments(page, file.size)
    prepare(page)


def _of_type(dtype: Any, usable: str) -> Unreadable:
    return Unreadable(f"its samples are of type {dtype}.", f"Convert them to {usable}.")
