"""Volumes that were opened together: read one after the other, and which of them fit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelscope.base.errors import AppError, NotANumber, SeveralVolumes
from kernelscope.base.text import one_line, without_name
from kernelscope.files.volumes import read_volume, series_of
from kernelscope.images.volume import Volume, check_aligned

_ALONE = "Open it alone, then add the others."


@dataclass(frozen=True, eq=False)
class FoundFile:
    path: Path
    volume: Volume | None = None  # None if the file adds none
    problem: str = ""  # the reason for that, as a sentence


def read_together(paths: Sequence[Path], nan: float | None = None) -> list[FoundFile]:
    """Read files one after the other; takes a while.

    Files of a DICOM series that was read already are not read again, and copies are left out.

    `nan`: replaces NaN.

    Raises `NotANumber`: if some voxels are NaN, and there is no `nan`.
    """
    found: list[FoundFile] = []
    series: dict[tuple[Path, str], Path] = {}
    for path in paths:
        try:
            name = series_of(path)
            earlier = series.setdefault((path.parent, name), path) if name else path
            if earlier is not path:
                text = f"It belongs to the same series as {earlier.name}."
                found.append(FoundFile(path, problem=text))
                continue
            volume = read_volume(path, nan=nan)
        except NotANumber:
            raise
        except SeveralVolumes as error:
            problem = f"{without_name(error.message, one_line(path.name))} {_ALONE}"
            found.append(FoundFile(path, problem=problem))
        except AppError as error:
            found.append(FoundFile(path, problem=without_name(str(error), one_line(path.name))))
        else:
            copies = (each.path for each in found if each.volume and _equal(each.volume, volume))
            copy = next(copies, None)
            problem = f"It holds the same voxels as {copy.name}." if copy is not None else ""
            found.append(FoundFile(path, None if problem else volume, problem))
    return found


def misfit(first: Volume, other: Volume) -> str:
    try:
        check_aligned((first, other))
    except AppError as error:
        return error.message
    return ""


def _equal(first: Volume, second: Volume) -> bool:
    return first.spacing == second.spacing and np.array_equal(first.voxels, second.voxels)
