"""TIFF through tifffile, which keeps 16-bit and float samples as they are."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.files import formats
from kernelscope.files.depth import cmyk_to_rgb, rescale, top, undo_premultiplied
from kernelscope.files.formats import ONLY_FIRST, Decoded, Unreadable, check_size, check_together
from kernelscope.files.pictures import xmp
from kernelscope.files.pictures.exif import resolution_of, valid_orientation
from kernelscope.files.pictures.tiff_description import (
    IMAGEJ_TYPES,
    Description,
    description_of_page,
    imagej,
    ome,
    ours,
)
from kernelscope.files.pictures.tiff_exif import add_tables, exif_of, has_private, tags_for
from kernelscope.files.pictures.tiff_layout import (
    FAX_COMPRESSIONS,
    are_cut_off,
    check_pages,
    check_segments,
    prepare,
)
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import MICROSCOPE, MM_PER_INCH, NOTHING, Metadata, as_single, can_hold
from kernelscope.images.levels import range_notice
from kernelscope.schema.samples import levels_between

# Photometric interpretations and extra samples, as TIFF 6.0 numbers them.
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _PALETTE, _CMYK, _YCBCR, _LAB = 0, 1, 2, 3, 5, 6, 8
_COLOURS = {
    _WHITE_IS_ZERO: 1,
    _BLACK_IS_ZERO: 1,
    _RGB: 3,
    _PALETTE: 1,
    _CMYK: 4,
    _YCBCR: 3,
    _LAB: 3,
}
_GREYS = (_WHITE_IS_ZERO, _BLACK_IS_ZERO)
_PREMULTIPLIED_ALPHA, _ALPHA = 1, 2
_JPEG_COMPRESSIONS = (6, 7)
_PHOTOMETRIC, _ORIENTATION, _SOFTWARE, _XMP = 262, 274, 305, 700

_NAMES = {
    "IPTC data": (33723,),
    "Photoshop's data": (34377,),
    "the georeference": (33550, 33922, 34264, 34735),
    "GDAL's metadata": (42112,),
    "its primaries": (318, 319),
    "its transfer function": (301,),
    "its grey response": (291,),
    "its range of samples": (280, 281, 340, 341),
    "further pictures": (330,),
}
"""Further data of pages, which are not kept, by their tags."""

_NODATA = 42113  # tag of GDAL: the number of unknown samples, as text

MAGIC = rb"II[*+]\0|MM\0[*+]"

_LEVEL = 1
"""Of zlib: on photographs of 2048² samples 1.5 to 4.6 times as fast as the usual level, in files
that are 0.97 to 1.05 times as large (two cores, libdeflate through imagecodecs 2026.3)."""

# tifffile's warnings go to listeners of the log, and never to stderr.
logging.getLogger("tifffile").addHandler(logging.NullHandler())


def decode(handle: WatchedFile) -> Decoded:
    import tifffile

    check_pages(handle)
    with tifffile.TiffFile(handle) as file:
        (result,) = _decoded(handle, file.pages[:1])
        result.notices += _more(file)
    return result


def head(handle: WatchedFile) -> Decoded:
    import tifffile

    check_pages(handle)
    with tifffile.TiffFile(handle) as file:
        page = file.pages[0]
        _check(page)
        pixel = _interpret(np.zeros((1, 1, page.samplesperpixel), page.dtype), page).pixels
        return Decoded.of_head(pixel, page.imagewidth, page.imagelength, *_more(file))


def _more(file: Any) -> list[str]:
    count = len(file.pages)
    return [f"{ONLY_FIRST} of {count} pages is shown."] * (count > 1)


def decode_all(handle: WatchedFile) -> list[Decoded]:
    import tifffile

    check_pages(handle)
    with tifffile.TiffFile(handle) as file:
        pages = [page.aspage() for page in file.pages]
        check_together(
            sum(page.imagewidth * page.imagelength * page.samplesperpixel for page in pages)
        )
        return _decoded(handle, pages)


def _decoded(handle: WatchedFile, pages: Sequence[Any]) -> list[Decoded]:
    size = handle.seek(0, io.SEEK_END)
    for page in pages:
        _check(page)
        check_segments(page, size)
        prepare(page)
    handle.trust()
    return [_page(page, size, handle) for page in pages]


def _page(page: Any, size: int, handle: WatchedFile) -> Decoded:
    try:
        # (planes, depth, height, width, samples): planes or samples is 1.
        stored = page.asarray().reshape(page.shaped)[:, 0]
    except Exception as error:
        if isinstance(error, Unreadable) or not are_cut_off([page], size):
            raise
        raise Unreadable("the file is cut off.") from error
    samples = np.moveaxis(stored, 0, -1).reshape(*stored.shape[1:3], -1)
    result = _interpret(samples, page)
    _mark_missing(result, samples, page)
    result.notices.extend(unwritten(page))
    result.orientation = orientation_of(page)
    result.metadata = metadata_of(page, handle)
    if result.pixels.dtype == np.float32:
        known = True if result.missing is None else ~result.missing
        low = result.pixels.min(where=known, initial=np.inf)
        high = result.pixels.max(where=known, initial=-np.inf)
        if low < 0 or high > 1:  # Also false for NaN, which `Image` refuses.
            levels = levels_between(float(low), float(high))
            result.notices.append(range_notice(low, high, levels))
    return result


def nodata_of(page: Any) -> float | None:
    """Return the number that stands for unknown samples (GDAL_NODATA), if there is one."""
    try:
        return float(str(page.tags[_NODATA].value).strip(" \0")) if _NODATA in page.tags else None
    except ValueError:
        return None


def _mark_missing(result: Decoded, samples: NDArray[Any], page: Any) -> None:
    """Mark the colours that the file calls unknown."""
    count = _COLOURS[page.photometric]
    holes = None if page.photometric == _PALETTE else holes_of(page, samples[:, :, :count])
    if holes is None:
        return
    if count not in (1, 3) or page.photometric in (_YCBCR, _LAB):
        holes = np.broadcast_to(holes.any(axis=2, keepdims=True), (*holes.shape[:2], 3))
    pixels = np.atleast_3d(result.pixels)
    missing = np.zeros(pixels.shape, bool)
    missing[:, :, : holes.shape[2]] = holes
    result.pixels, result.missing = pixels, missing


def holes_of(page: Any, samples: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where samples of a page, as stored, are its number for unknown ones; None: nowhere."""
    nodata = nodata_of(page)
    if nodata is None or not can_hold(samples.dtype, nodata):
        return None
    with np.errstate(over="ignore"):  # 3.4e38 is written with more digits than a float has
        holes: NDArray[np.bool_] = samples == samples.dtype.type(nodata)
    return holes if holes.any() else None


def nodata_tags(nodata: float | None) -> list[tuple[Any, ...]]:
    """Return the tag for the number of unknown samples, for tifffile's `extratags`."""
    return [] if nodata is None else [(_NODATA, "s", 0, f"{nodata:.17g}", True)]


def encode(pixels: NDArray[Any], metadata: Metadata = NOTHING) -> bytes:
    return encode_all([(pixels, metadata)])


def encode_ome(pixels: NDArray[Any], metadata: Metadata = NOTHING) -> bytes:
    return encode_all([(pixels, metadata)], is_ome=True)


def is_big(count: int) -> bool:
    """Return whether samples of this many bytes take a BigTIFF: tags need room as well."""
    return count >= 2**32 - 2**25


def encode_all(pages: Sequence[tuple[NDArray[Any], Metadata]], *, is_ome: bool = False) -> bytes:
    import tifffile

    buffer = io.BytesIO()
    total = sum(pixels.nbytes for pixels, _ in pages)
    big = is_big(total)
    held = [b"" if big else metadata.exif for _, metadata in pages]  # its tables have 32 bits
    is_imagej = not (is_ome or big or len(pages) > 1 or any(held)) and _of_microscope(*pages[0])
    with tifffile.TiffWriter(buffer, bigtiff=big, ome=is_ome, imagej=is_imagej) as file:
        for (pixels, metadata), exif in zip(pages, held, strict=True):
            alpha = pixels.ndim == 3 and pixels.shape[2] in (2, 4)
            nodata, tags = metadata.nodata, tags_for(exif, file.tiff.byteorder) if exif else []
            if nodata is not None and pixels.dtype.kind == "f":
                pixels = np.where(np.isnan(pixels), pixels.dtype.type(nodata), pixels)
            described = _ome(pixels, metadata) if is_ome else None
            # tifffile would describe no page behind one without a description
            own = None if is_ome or is_imagej else _own(pixels, metadata)
            resolution, unit = metadata.resolution, "inch" if metadata.resolution else None
            if is_imagej:
                spacing = 1.0, metadata.steps["y"], metadata.steps["x"]
                described, resolution = imagej(spacing, "yx", None, metadata.channel)
                unit = None
            file.write(
                pixels,
                photometric="minisblack" if pixels.ndim == 2 or pixels.shape[2] == 2 else "rgb",
                planarconfig="contig" if pixels.ndim == 3 else None,
                extrasamples=("unassalpha",) if alpha else None,
                compression="zlib",
                compressionargs={"level": _LEVEL},
                predictor=not (is_imagej and pixels.dtype.kind == "f"),  # ImageJ has none for them
                description=own,
                metadata=described,
                iccprofile=metadata.profile or None,
                resolution=resolution,
                resolutionunit=unit,
                software=False if any(tag[0] == _SOFTWARE for tag in tags) else None,
                extratags=[
                    *tags,
                    *nodata_tags(nodata),
                    *([(_XMP, "B", len(metadata.xmp), metadata.xmp, True)] if metadata.xmp else []),
                ],
            )
    if any(held):
        add_tables(buffer, held)
    return buffer.getvalue()


def _of_microscope(pixels: NDArray[Any], metadata: Metadata) -> bool:
    """Return whether ImageJ should find micrometres: a scanner's pixels are larger."""
    steps = metadata.steps.values()
    small = bool(steps) and max(steps) < MICROSCOPE
    return small and pixels.ndim == 2 and pixels.dtype in IMAGEJ_TYPES


def _ome(pixels: NDArray[Any], metadata: Metadata) -> dict[str, Any]:
    axes = "YX" if pixels.ndim == 2 else "YXS"
    return {"axes": axes, **ome(metadata.steps, pixels, metadata.channel)}


def _own(pixels: NDArray[Any], metadata: Metadata) -> str | None:
    described = ours((1.0, 1.0, 1.0), "", metadata.channel)
    return json.dumps({"shape": pixels.shape, **described}) if described else None


def metadata_of(page: Any, handle: WatchedFile, description: Description | None = None) -> Metadata:
    """Return the metadata of a page; without a `description`, it is a picture of its own."""
    description = description or description_of_page(page)
    exif, left_out = exif_of(handle, page, understood=description.understood)

    def value(tag: int) -> Any:
        return page.tags[tag].value if tag in page.tags else None

    others = [name for name, tags in _NAMES.items() if any(tag in page.tags for tag in tags)]
    packet = value(_XMP)
    if packet and not isinstance(packet, bytes):
        others.append("XMP data")
    others += left_out
    others += ["private tags"] * has_private(page)
    unit = value(296)
    try:
        x, y = (top / bottom for top, bottom in (value(282), value(283)))
        resolution = resolution_of(x, y, 2 if unit is None else int(unit))
        if resolution is None and x and y and x != y and not description.understood:
            others.append("the shape of its pixels")
    except (TypeError, ValueError, ZeroDivisionError):  # It is missing or damaged.
        resolution = None
    stated = {"x", "y"} <= description.steps.keys()
    if stated:
        x, y = (MM_PER_INCH / description.steps[axis] for axis in "xy")
        resolution = x, y
    profile = value(34675)
    return Metadata(
        profile if isinstance(profile, bytes) else b"",
        resolution,
        exif,
        (*others, *description.others),
        description.channel(),
        nodata=nodata_of(page),
        xmp=packet if isinstance(packet, bytes) else b"",
        wide=page.dtype == np.float64 and page.photometric in (*_GREYS, _RGB),
        measured=stated and not description.of_paper,
    )


def unwritten(page: Any) -> list[str]:
    """Return a notice if strips or tiles of a page have no data, as in sparse files."""
    if page.is_contiguous:
        return []
    segments = list(zip(page.dataoffsets, page.databytecounts, strict=False))
    empty = sum(not offset or not length for offset, length in segments)
    if not empty:
        return []
    return [f"{empty} of {len(segments)} strips or tiles were never written: they count as 0."]


def orientation_of(page: Any) -> int:
    orientation = page.tags.get(_ORIENTATION)
    if orientation is not None:
        return valid_orientation(orientation.value)
    packet = page.tags.valueof(_XMP)
    return xmp.orientation_of(packet) if isinstance(packet, bytes) else 1


def photometric(page: Any, notices: list[str]) -> int:
    if _PHOTOMETRIC in page.tags:
        return int(page.photometric)
    if page.compression in FAX_COMPRESSIONS:
        return _WHITE_IS_ZERO
    colours = page.samplesperpixel > 2
    meaning = "RGB" if colours else "grey, with 0 for black"
    notices.append(f"The file does not say what its samples stand for: taken as {meaning}.")
    return _RGB if colours else _BLACK_IS_ZERO


def _check(page: Any) -> None:
    """Refuse a page that would take too much memory, or is not a picture."""
    check_size(page.imagewidth, page.imagelength, page.samplesperpixel)
    if page.imagedepth != 1:
        raise Unreadable("it holds a volume, not a picture.")
    if page.photometric not in _COLOURS:
        model = getattr(page.photometric, "name", page.photometric)
        raise Unreadable(f"its colour model {model} is not supported.", "Convert it to RGB.")
    if page.dtype is None or page.dtype.kind not in "buif":
        raise Unreadable(
            f"samples of type {page.dtype or 'unknown'} are not supported.",
            "Convert them to 8-bit, 16-bit or 32-bit float.",
        )


def _interpret(samples: NDArray[Any], page: Any) -> Decoded:
    """Return (height, width, stored samples) as grey or RGB, with alpha if there is any."""
    notices: list[str] = []
    meaning = photometric(page, notices)
    count = _COLOURS[meaning]
    if samples.shape[2] < count:
        raise Unreadable(f"it has {samples.shape[2]} samples per pixel where {count} belong.")
    if meaning == _PALETTE:
        samples = _look_up(samples, page, notices)
        count = 3
    else:
        samples = _standard_depth(samples, page, notices)
    colour, extra = samples[:, :, :count], samples[:, :, count:]
    if meaning == _WHITE_IS_ZERO:
        colour = _inverted(colour, notices)
    elif meaning == _CMYK:
        colour = cmyk_to_rgb(colour)
        notices.append(formats.CMYK)
    elif meaning == _LAB:
        colour = _with_pillow(colour, "LAB", notices)
    elif meaning == _YCBCR and page.compression not in _JPEG_COMPRESSIONS:
        colour = _with_pillow(colour, "YCbCr", notices)
    return Decoded(_with_alpha(colour, extra, page.extrasamples, notices), notices)


def _inverted(colour: NDArray[Any], notices: list[str]) -> NDArray[Any]:
    if colour.dtype.kind != "f":
        return top(colour.dtype) - colour
    if colour.min() < 0 or colour.max() > 1:
        notices.append("White is marked as 0, but no value is marked as black: not inverted.")
        return colour
    notices.append("White is 0 in the file: inverted.")
    return 1 - colour


def _with_alpha(
    colour: NDArray[Any], extra: NDArray[Any], kinds: tuple[int, ...], notices: list[str]
) -> NDArray[Any]:
    """Move the first alpha channel after the colour; other extra samples are left out."""
    alphas = [i for i, kind in enumerate(kinds) if kind in (_PREMULTIPLIED_ALPHA, _ALPHA)]
    left_out = extra.shape[2] - bool(alphas)
    if left_out:
        notices.append(f"{left_out} extra samples per pixel of unknown meaning are left out.")
    if not alphas:
        return colour
    alpha = extra[:, :, alphas[0] : alphas[0] + 1]
    if kinds[alphas[0]] == _PREMULTIPLIED_ALPHA:
        colour = undo_premultiplied(colour, alpha)
        notices.append("Premultiplied alpha converted to plain alpha.")
    return np.concatenate([colour, alpha], axis=2)


def _standard_depth(samples: NDArray[Any], page: Any, notices: list[str]) -> NDArray[Any]:
    """Return the samples as uint8, uint16 or float32."""
    dtype = samples.dtype
    if dtype.kind == "b":
        notices.append(formats.ONE_BIT)
        return samples * np.uint8(255)
    if dtype.kind == "f":
        if dtype.itemsize == 8:
            notices.append("64-bit floats filtered as 32-bit floats.")
        elif dtype.itemsize != 4:
            notices.append(f"{dtype.itemsize * 8}-bit floats converted to 32-bit floats.")
        single, small = as_single(samples, Path(page.parent.filename).name, "samples")
        notices += small
        return single
    if dtype.kind == "u" and dtype.itemsize <= 2:
        bits = page.bitspersample
        if not isinstance(bits, int) or bits == dtype.itemsize * 8:
            return samples.astype(dtype.newbyteorder("="))
        notices.append(f"{bits}-bit samples stretched to {dtype.itemsize * 8} bits.")
        return rescale(samples, 2**bits - 1)
    # Which of these values is white is not known: stretched by its own range, each picture of a
    # series would be so in another way.
    if page.samplesperpixel == 1:
        raise Unreadable(f"its samples are of type {dtype}.", "Open it as a volume of one slice.")
    raise Unreadable(
        f"its colours are of type {dtype}.", "Convert them to 8-bit, 16-bit or 32-bit float."
    )


def is_of_volumes(dtype: np.dtype[Any] | None) -> bool:
    """Return whether samples are integers that volumes keep, and pictures cannot hold."""
    return dtype is not None and (dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize > 2))


def _look_up(samples: NDArray[Any], page: Any, notices: list[str]) -> NDArray[Any]:
    if page.colormap is None:
        raise Unreadable("its palette is missing.")
    table = np.asarray(page.colormap).T
    samples = samples.astype(np.uint8 if samples.dtype.itemsize == 1 else np.uint16)
    if samples[:, :, 0].max() >= len(table):
        raise Unreadable(f"it holds colours beyond its palette of {len(table)}.")
    if np.array_equal(table % 257, np.zeros_like(table)):
        table = table // 257
    elif np.array_equal(table % 256, np.zeros_like(table)):  # shifted by some programs
        table = table // 256
    if table.max() < 256:
        table = table.astype(np.uint8)
    notices.append(formats.PALETTE.format("RGB"))
    white = 2**page.bitspersample - 1
    extra = np.rint(samples[:, :, 1:] * (top(table.dtype) / white)).astype(table.dtype)
    return np.concatenate([table[samples[:, :, 0]], extra], axis=2)


def _with_pillow(colour: NDArray[Any], model: str, notices: list[str]) -> NDArray[Any]:
    """Convert (height, width, 3) LAB or YCbCr to RGB."""
    import PIL.Image
    import PIL.ImageCms

    if colour.dtype != np.uint8:
        raise Unreadable(f"{model} with other than 8 bits is not supported.", "Convert it to RGB.")
    notices.append(f"{model} converted to RGB.")
    image = PIL.Image.frombytes(model, colour.shape[1::-1], colour.tobytes())
    if model == "YCbCr":
        return np.asarray(image.convert("RGB"))
    profile = PIL.ImageCms.createProfile
    converted = PIL.ImageCms.profileToProfile(
        image, profile("LAB"), profile("sRGB"), outputMode="RGB"
    )
    return np.asarray(converted)
