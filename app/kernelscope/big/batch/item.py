"""A file of a batch, and the names of the batch's own files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

JOURNAL = "kernelscope-batch.jsonl"
"""Name of the journal in the output folder."""

PARTS = ".kernelscope-batch-parts"
"""Folder in the output folder, for results of workers that are not at their places yet."""


_ZARR = ("zarr.json", ".zattrs", ".zgroup", ".zarray")
"""Files of which a folder in the format Zarr has one."""


def is_zarr(path: Path) -> bool:
    """Return whether a path is a folder in the format Zarr: one file to users."""
    return any((path / name).is_file() for name in _ZARR)


@dataclass(frozen=True)
class Item:
    """A file of a batch."""

    # Of a DICOM series, `source` is one of its files.
    source: Path
    target: Path
    reference: Path | None = None
    """The file that the result is compared with."""
    slices: tuple[Path, ...] = ()
    """All files of a DICOM series, with those that may be its damaged slices."""

    @property
    def files(self) -> tuple[Path, ...]:
        return self.slices or (self.source,)
