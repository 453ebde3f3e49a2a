"""Decodes compressed DICOM frames with imagecodecs; a plugin of pydicom.

Pillow, which pydicom has at hand, reads neither 12-bit nor lossless JPEG nor JPEG-LS.
"""

from __future__ import annotations

from typing import Any

from pydicom import uid

_JPEG = (uid.JPEGExtended12Bit, uid.JPEGLossless, uid.JPEGLosslessSV1)
_JPEG_LS = (uid.JPEGLSLossless, uid.JPEGLSNearLossless)

DECODER_DEPENDENCIES = dict.fromkeys((*_JPEG, *_JPEG_LS), ("imagecodecs",))
"""What pydicom asks plugins for."""


def is_available(_: str) -> bool:
    """Whether the library is there: the program needs it anyway."""
    return True


def decode_frame(data: bytes, runner: Any) -> bytes:
    """Return the samples of one frame.

    Parameters
    ----------
    data : bytes
        One frame as it is stored.
    runner : pydicom.pixels.decoders.base.DecodeRunner
        What the file says of it.
    """
    import imagecodecs

    if runner.transfer_syntax == uid.JPEGExtended12Bit and runner.samples_per_pixel != 1:
        raise NotImplementedError("imagecodecs does not support raw colour here")
    is_ls = runner.transfer_syntax in _JPEG_LS
    samples = (imagecodecs.jpegls_decode if is_ls else imagecodecs.jpeg8_decode)(data)
    runner.set_option("bits_allocated", 8 * samples.dtype.itemsize)
    runner.set_option("planar_configuration", 0)
    return bytes(samples.tobytes())
