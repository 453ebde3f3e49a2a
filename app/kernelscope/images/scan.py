"""What volume filters work on: volumes of the same head, filtered together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.errors import InvalidParameter
from kernelscope.images.volume import Volume, stack, unstack

MAX_COMPONENTS = 4
"""T1w, T2w, PDw and one more."""


@dataclass(frozen=True, eq=False)
class Scan:
    """One to four volumes of one shape, the components of a filter's input or output."""

    volumes: tuple[Volume, ...]

    def __post_init__(self) -> None:
        if len(self.volumes) > MAX_COMPONENTS:
            raise InvalidParameter(
                f"{len(self.volumes)} volumes cannot be filtered together.",
                f"Choose up to {MAX_COMPONENTS}.",
            )

    @cached_property
    def planes(self) -> NDArray[np.float32]:
        """The voxels, shape (depth, height, width, components), read-only.

        Raises
        ------
        AppError
            If the volumes do not show the same places.
        """
        planes = stack(self.volumes)
        planes.flags.writeable = False
        return planes

    @property
    def pixels(self) -> NDArray[np.float32]:
        """The same as `planes`: what stays on a GPU is known by its array."""
        return self.planes

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Yield what it holds in memory by now."""
        yield from (volume.voxels for volume in self.volumes)
        planes = vars(self).get("planes")
        if planes is not None and planes.base is None:
            yield planes

    @property
    def title(self) -> str:
        return " + ".join(volume.title for volume in self.volumes)

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(notice for volume in self.volumes for notice in volume.notices)

    def describe(self) -> str:
        """Return what `Volume.describe` says of the first, and the names of the others."""
        first, *others = self.volumes
        return " + ".join((first.describe(), *(volume.title for volume in others)))

    def describe_count(self) -> str:
        """Return ``1 volume`` or ``3 volumes``."""
        count = len(self.volumes)
        return f"{count} volume" + "s" * (count > 1)

    def like(self, planes: NDArray[Any]) -> Scan:
        """Return the same volumes with the voxels of `planes`, rounded to their types.

        Nobody may write to `planes` afterwards.
        """
        return Scan(
            tuple(
                volume.with_voxels(voxels, copy=False)
                for volume, voxels in zip(self.volumes, unstack(planes), strict=True)
            )
        )
