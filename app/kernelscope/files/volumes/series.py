"""The DICOM files of a folder, by their series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelscope.files.formats import Unreadable
from kernelscope.files.volumes import dicom
from kernelscope.files.volumes.folder import strangers


@dataclass
class DicomFiles:
    series: dict[dicom.DicomSeries, list[Path]] = field(default_factory=dict)
    """The files of each series in grey."""
    damaged: list[Path] = field(default_factory=list)
    """Those whose series is not known, and files that are named like slices."""
    pictures: list[Path] = field(default_factory=list)  # those in colour
    others: list[Path] = field(default_factory=list)
    """Those without a picture, such as indices and reports."""

    def slices(self, series: dicom.DicomSeries) -> tuple[Path, ...]:
        """Return the files of a series, with all damaged ones: each may be a slice of it."""
        return tuple(sorted([*self.series[series], *self.damaged]))


def dicom_files(files: Sequence[Path]) -> DicomFiles:
    found, known, closed = DicomFiles(), dict[str, dicom.DicomSeries](), list[Path]()
    for file in files:
        try:
            if not dicom.is_dicom(file):
                continue
        except Unreadable:
            closed.append(file)
            continue
        try:
            series = dicom.identify(file)
        except Unreadable:
            found.damaged.append(file)
            continue
        if series is None:
            found.others.append(file)
        elif series.colour:
            found.pictures.append(file)
        else:
            found.series.setdefault(known.setdefault(series.id, series), []).append(file)
    # A file that must not be read may be a slice, or anything.
    found.damaged += (
        closed
        if found.series
        else [file for file in closed if file.suffix.lower() in dicom.FORMAT.suffixes]
    )
    slices = [file for group in found.series.values() for file in group]
    rest = set(files).difference(slices, found.pictures, found.others, found.damaged)
    found.damaged += strangers(slices, rest)
    return found
