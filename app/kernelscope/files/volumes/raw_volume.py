"""Shared parts of the readers of all volume formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import SeveralVolumes
from kernelscope.files.formats import Unreadable
from kernelscope.images.source import UNKNOWN_CHANNEL, Channel
from kernelscope.images.volume import Among, Spacing

UNKNOWN_SPACING = "The file does not state the distance of voxels: they are taken for cubes."
UNKNOWN_DEPTH = "The file does not state the distance of slices: that of their pixels is assumed."


@dataclass
class RawVolume:
    """Result of a reader; the attributes are the arguments of `Volume.from_array`."""

    numbers: NDArray[Any]  # as stored, of any type and byte order: shape (depth, height, width)
    spacing: Spacing | None = None
    """None if the file does not state it; along some axes it may be a guess, see `stated`."""
    affine: NDArray[np.float64] | None = None
    notices: list[str] = field(default_factory=list)
    header: object = None
    slope: float = 1.0
    intercept: float = 0.0
    others: tuple[str, ...] = ()
    """Names of further data in the file that a volume does not keep: "DICOM tags"."""
    stated: str = "zyx"
    channel: Channel = UNKNOWN_CHANNEL
    microscope: bool = False
    among: tuple[Among, ...] = ()
    missing: NDArray[np.bool_] | None = None
    """Where the file has `nodata`, its number for unknown voxels."""
    nodata: float | None = None
    interval: float | None = None


class Several(Unreadable):
    def __init__(
        self, cause: str, hint: str, names: Sequence[str], *, alike: bool, what: str
    ) -> None:
        super().__init__(cause, hint)
        self.names, self.alike, self.what = tuple(names), alike, what

    def of(self, title: str) -> SeveralVolumes:
        return SeveralVolumes(
            f"{title}: {self.cause}", self.hint, self.names, alike=self.alike, what=self.what
        )


def choose(number: int | None, names: Sequence[str], what: str, *, alike: bool = False) -> int:
    """Return the index of the selected volume, if a file or folder has several.

    `number`: counted from 1. `names`: descriptions of the volumes. `what`: kind of the items:
    "volume", "series". `alike`: they are volumes of one grid in one file.
    """
    total = len(names)
    several = "series" if what == "series" else f"{what}s"
    if number is None and total == 1:
        return 0
    if number is not None and 1 <= number <= total:
        return number - 1
    shown = "; ".join(f"{i}: {name}" for i, name in enumerate(names[:12], 1))
    rest = "; …" if total > 12 else ""
    if number is None:
        hint = f"Choose one by number: {shown}{rest}."
        raise Several(f"it holds {total} {several}.", hint, names, alike=alike, what=what)
    raise Unreadable(f"it has no {what} {number}.", f"There is 1 to {total}: {shown}{rest}.")


ONE_SCAN = "Leave only the slices of one scan in the folder."


def check_alike(name: str, other: str, *facts: tuple[str, object, object]) -> None:
    """Refuse two slices if one of the facts about them, its name and both values, differs."""
    for what, these, those in facts:
        if these != those:
            raise Unreadable(f"{name} and {other} differ in {what}: {these} and {those}.", ONE_SCAN)


def spacing_from(steps: Mapping[str, float]) -> tuple[Spacing | None, str]:
    """Return the spacing for stated distances by their axes, and the axes without a guess.

    The distance of slices is guessed where that of pixels is known.
    """
    if not {"y", "x"} <= steps.keys():
        return None, ""
    z = steps.get("z")
    stated = "yx" if z is None else "zyx"
    return (steps["y"] if z is None else z, steps["y"], steps["x"]), stated


def spacing_notices(spacing: Spacing | None, stated: str, depth: int) -> list[str]:
    """Return a notice if the distance of voxels in several slices is not stated, or in part."""
    if depth == 1:
        return []
    if spacing is None:
        return [UNKNOWN_SPACING]
    return [] if "z" in stated else [UNKNOWN_DEPTH]


def fill(handle: BinaryIO, array: NDArray[Any]) -> None:
    """Read the bytes of a C-ordered array."""
    view = array.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(view):
        count = handle.readinto(view[done : done + 2**22])  # type: ignore[attr-defined]
        if not count:
            raise Unreadable(f"the file is cut off: {done} of {len(view)} bytes of voxels.")
        done += count


def spacing_of(affine: NDArray[np.float64]) -> Spacing:
    """Return the steps along z, y and x of an affine matrix, which has x first."""
    x, y, z = np.linalg.norm(affine[:3, :3], axis=0).tolist()
    return z, y, x
