"""The formats that Pillow reads or writes: BMP, JPEG, WebP and GIF."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.once import ignore_warnings
from kernelscope.files import formats
from kernelscope.files.formats import Decoded, Unreadable, check_size, check_together
from kernelscope.files.pictures import exif
from kernelscope.files.watched import WatchedFile
from kernelscope.images.image import NOTHING, Coding, Metadata

JPEG_QUALITY = 95

_WHOLE_CHROMA = "4:4:4"
_CHROMA = (_WHOLE_CHROMA, "4:2:2", "4:2:0")

_LOOPS = (b"NETSCAPE2.0", b"ANIMEXTS1.0")  # extensions of GIF that repeat an animation

_MAX_CANVAS = 2**25
"""Limit for an animated WebP, in pixels: libwebp fills several canvases per frame."""


def decode(handle: WatchedFile, kind: str) -> Decoded:
    with _opened(handle, kind) as image:
        if kind == "WEBP":
            _check_canvas(image)
        handle.trust()
        result = _convert(image)
        held, xmp, profile = (
            image.info.get(name) or b"" for name in ("exif", "xmp", "icc_profile")
        )
        others = ["a comment"] * ("comment" in image.info)
        extension, *_ = image.info.get("extension", _LOOPS)
        others += ["application data"] * (extension not in _LOOPS)
        exif.describe(result, held, xmp, profile, others=tuple(others))
        # Asked last, because Pillow has to search a GIF for its second picture.
        if getattr(image, "is_animated", False):
            result.notices.append(formats.ANIMATION)
    return result


def head(handle: WatchedFile, kind: str) -> Decoded:
    with _opened(handle, kind) as image:
        channels = (1 if image.mode in ("1", "L") else 3) + image.has_transparency_data
        notices = [formats.ANIMATION] * getattr(image, "is_animated", False)
        return Decoded.of_head(np.zeros(channels, np.uint8), *image.size, *notices)


def decode_all(
    handle: WatchedFile, kind: str, first: Callable[[WatchedFile], Decoded]
) -> list[Decoded]:
    """Decode every picture of an animation as it is shown, with the metadata of the `first`."""
    head = first(handle)
    handle.seek(0)
    with _opened(handle, kind) as image:
        if kind == "WEBP":
            _check_canvas(image)
        handle.trust()
        count = getattr(image, "n_frames", 1)
        check_together(4 * image.width * image.height * count)
        found = []
        for number in range(count):
            image.seek(number)
            image.load()
            found.append(
                replace(_convert(image), orientation=head.orientation, metadata=head.metadata)
            )
        return found


def decode_jpeg(data: bytes) -> Decoded:
    """Decode as `decode` does; the caller supplies the metadata."""
    with _opened(io.BytesIO(data), "JPEG") as image:
        return _convert(image)


def _opened(source: IO[bytes], kind: str) -> Any:
    import PIL.Image

    # `check_size` below is the limit; Pillow's own is lower.
    PIL.Image.MAX_IMAGE_PIXELS = None
    ignore_warnings(r"PIL\.")
    image = PIL.Image.open(source, formats=(kind,))
    check_size(*image.size)
    return image


def _check_canvas(image: Any) -> None:
    """Refuse an animation that would take far more memory and time than its first picture."""
    if image.is_animated and image.width * image.height > _MAX_CANVAS:
        raise Unreadable(
            f"its animation has {image.width}×{image.height} pixels, which is too large.",
            f"At most {_MAX_CANVAS / 1e6:.4g} megapixels are opened of an animation.",
        )


def _convert(image: Any) -> Decoded:
    """Return the pixels of a Pillow image as grey, grey with alpha, RGB or RGBA."""
    alpha = image.has_transparency_data
    if image.mode in ("L", "RGB", "RGBA"):
        if alpha and image.mode != "RGBA":
            return Decoded(_with_alpha(image), ["The transparent colour became an alpha channel."])
        return Decoded(np.asarray(image))
    if image.mode == "1":
        return Decoded(np.asarray(image.convert("L")), [formats.ONE_BIT])
    model = "RGBA" if alpha else "RGB"
    notices = {"P": formats.PALETTE.format(model), "CMYK": formats.CMYK}
    notice = notices.get(image.mode, f"{image.mode} converted to {model}.")
    return Decoded(np.asarray(image.convert(model)), [notice])


def _with_alpha(image: Any) -> NDArray[Any]:
    if image.mode != "L":
        return np.asarray(image.convert("RGBA"))
    # Pillow's own grey with alpha takes 4 bytes per pixel, beside two copies of the result.
    grey = np.asarray(image)
    result = np.full((*grey.shape, 2), 255, np.uint8)
    result[..., 0] = grey
    result[..., 1][grey == image.info["transparency"]] = 0
    return result


def encode_bmp(pixels: NDArray[Any], metadata: Metadata = NOTHING) -> bytes:
    return _encode(pixels, metadata, format="BMP")


def jpeg_coding(pixels: NDArray[Any], metadata: Metadata, quality: int | None = None) -> Coding:
    """Return how a JPEG is written: as that of the source, at another quality if it is given.

    A lower one of the source would take back a part of a filter's gain (33.67 dB before; 32.40
    at 85, 33.28 at 95). Chroma that Pillow cannot subsample alike is kept whole.
    """
    usual = metadata.jpeg or Coding(JPEG_QUALITY, _WHOLE_CHROMA)
    chroma = usual.chroma if usual.chroma in _CHROMA else _WHOLE_CHROMA
    return Coding(quality or max(usual.quality, JPEG_QUALITY), chroma if pixels.ndim == 3 else "")


def encode_jpeg(
    pixels: NDArray[Any], metadata: Metadata = NOTHING, quality: int | None = None
) -> bytes:
    """Encode 8-bit grey or RGB, see `jpeg_coding`."""
    coding = jpeg_coding(pixels, metadata, quality)
    subsampling = coding.chroma or _WHOLE_CHROMA
    return _encode(pixels, metadata, format="JPEG", quality=coding.quality, subsampling=subsampling)


def encode_webp(pixels: NDArray[Any], metadata: Metadata = NOTHING) -> bytes:
    """Encode 8-bit RGB or RGBA without loss, also under transparent pixels."""
    return _encode(pixels, metadata, format="WEBP", lossless=True, exact=True)


def _encode(pixels: NDArray[Any], metadata: Metadata, **options: Any) -> bytes:
    import PIL.Image

    if metadata.profile:
        options["icc_profile"] = metadata.profile
    if metadata.exif:
        options["exif"] = b"Exif\0\0" + metadata.exif
    if metadata.xmp:
        options["xmp"] = metadata.xmp
    if metadata.resolution:
        options["dpi"] = metadata.resolution
    elif options["format"] == "BMP":
        options["dpi"] = (0, 0)  # otherwise Pillow writes a default
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, **options)
    return buffer.getvalue()
