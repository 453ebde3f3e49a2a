"""The way out where a file is refused that may be too large for memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernelscope.base.errors import AppError, NoRoomToCompile, OutOfMemory, TooLarge

_LARGE = 2**30  # bytes of a file that may be too large for memory, or have too many samples


@contextmanager
def blocks_mentioned(source: Path, way: str) -> Iterator[None]:
    """Add `way` to the hint of an `AppError`: how a large TIFF or an OME-Zarr is filtered."""
    try:
        yield
    except AppError as error:
        from kernelscope.big.lazy.opening import is_tiff
        from kernelscope.files.volumes.zarr_source import is_zarr

        with suppress(OSError, ValueError):
            lacks = isinstance(error, OutOfMemory) and not isinstance(error, NoRoomToCompile)
            large = lacks or isinstance(error, TooLarge) or source.stat().st_size >= _LARGE
            if large and (is_tiff(source) or is_zarr(source)):
                other = f"{error.hint} Or f" if error.hint else "F"
                error.hint = f"{other}ilter it in blocks: {way}."
        raise
