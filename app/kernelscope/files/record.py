"""The record of reading a file and of writing its result, whatever kind it is of."""

from __future__ import annotations

from pathlib import Path

from kernelscope.files.volumes.writing import record_of_volume
from kernelscope.files.writing import record_of_image
from kernelscope.images.image import Image
from kernelscope.images.record import Record, joined
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume


def record_of(path: str | Path, *results: Source | Volume) -> Record:
    """Return which properties of inputs are kept, changed and lost when results are saved there.

    A result has the properties of its source, and the notices of reading it.
    """
    return joined([_record(Path(path), each) for each in results])


def _record(path: Path, result: Source | Volume) -> Record:
    if isinstance(result, Image):
        return record_of_image(result, path)
    if isinstance(result, Volume):
        return record_of_volume(result, path)
    assert isinstance(result, Scan)
    return joined([record_of_volume(each, path) for each in result.volumes])
