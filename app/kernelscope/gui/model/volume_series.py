"""The volumes of one file, such as the time points of a functional scan: read as they are shown."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from kernelscope.files.volumes import read_volume
from kernelscope.images.volume import Volume

MOST_BYTES = 1 << 28
"""Limit for the voxels of a file that are kept, so that they show at once the next time."""


@dataclass(eq=False)
class VolumeSeries:
    """A file of several volumes of one shape."""

    path: Path
    count: int  # number of volumes
    nan: float | None = None  # takes the place of NaN
    what: str = "volume"  # kind of the volumes: "volume" or "channel"
    names: tuple[str, ...] = ()  # of each, if they have names
    _kept: OrderedDict[int, Volume] = field(default_factory=OrderedDict)

    def name(self, index: int) -> str:
        """Return the name of a volume, unless it is its number."""
        name = self.names[index] if self.names else ""
        return "" if name == f"{self.what} {index + 1}" or len(set(self.names)) == 1 else name

    def read(self, index: int) -> Volume:
        """Return the volume at `index`; takes a while unless `kept` has it.

        Raises `AppError`: as `read_volume`.
        """
        return read_volume(self.path, index + 1, nan=self.nan)

    def keep(self, index: int, volume: Volume) -> None:
        """Keep a volume that was read, in place of those that were not shown for longest."""
        self._kept[index] = volume
        self._kept.move_to_end(index)
        while len(self._kept) > 1 and self._bytes() > MOST_BYTES:
            self._kept.popitem(last=False)

    def kept(self, index: int) -> Volume | None:
        found = self._kept.get(index)
        if found is not None:
            self._kept.move_to_end(index)
        return found

    def _bytes(self) -> int:
        return sum(volume.voxels.nbytes for volume in self._kept.values())
