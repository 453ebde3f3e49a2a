"""Decodes compressed DICOM frames with imagecodecs; a plugin of pydicom.

Pillow, pydicom's default decoder, reads neither 12-bit nor lossless JPEG, JPEG-LS or
High-Throughput JPEG 2000, nor JPEG 2000 with more than 8 bits.
"""

from __future__ import annotations

from typing import Any

from pydicom import uid

_JPEG = (uid.JPEGExtended12Bit, uid.JPEGLossless, uid.JPEGLosslessSV1)
_JPEG_LS = (uid.JPEGLSLossless, uid.JPEGLSNearLossless)
_JPEG_2000 = (uid.JPEG2000, uid.JPEG2000Lossless)
_HIGH_THROUGHPUT = (uid.HTJ2K, uid.HTJ2KLossless, uid.HTJ2KLosslessRPCL)

DECODER_DEPENDENCIES = dict.fromkeys(
    (*_JPEG, *_JPEG_LS, *_JPEG_2000, *_HIGH_THROUGHPUT), ("imagecodecs",)
)
"""Names that pydicom requires of a plugin."""


def is_available(_: str) -> bool:
    """Return whether the library is available: always, as the program requires it."""
    return True


def decode_frame(data: bytes, runner: Any) -> bytes:
    import imagecodecs

    syntax, channels = runner.transfer_syntax, runner.samples_per_pixel
    if syntax == uid.JPEGExtended12Bit and channels != 1:
        raise NotImplementedError("imagecodecs does not support raw colour here")
    if syntax in _JPEG_2000 and (channels == 1 or runner.bits_stored <= 8):
        raise NotImplementedError("imagecodecs does not support the kinds left to Pillow")
    if syntax in _JPEG_LS:
        samples = imagecodecs.jpegls_decode(data)
    elif syntax in _JPEG:
        samples = imagecodecs.jpeg8_decode(data)
    else:
        samples = imagecodecs.jpeg2k_decode(data)
        if str(runner.photometric_interpretation) in ("YBR_ICT", "YBR_RCT"):
            runner.set_option("photometric_interpretation", "RGB")  # as it is decoded
    runner.set_option("bits_allocated", 8 * samples.dtype.itemsize)
    runner.set_option("planar_configuration", 0)
    return bytes(samples.tobytes())
