"""A scan: volumes of the same head that are filtered together."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.remembered import let_find
from kernelscope.images.source import fingerprint
from kernelscope.images.volume import Volume, check_aligned, stack, unstack
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import ENDS, Components, Kind

MAX_COMPONENTS = 4  # T1w, T2w, PDw and one more


@dataclass(frozen=True, eq=False)
class Scan:
    """One to four volumes of one shape, the components of a filter's input or output."""

    volumes: tuple[Volume, ...]

    kind = Kind.VOLUME
    unit = "voxels"
    is_grey = True
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float32)
    """Filters read volumes so, whatever the type of their files."""

    def __post_init__(self) -> None:
        if len(self.volumes) > MAX_COMPONENTS:
            raise InvalidParameter(
                f"{len(self.volumes)} volumes cannot be filtered together.",
                f"Choose up to {MAX_COMPONENTS}.",
            )

    @cached_property
    def planes(self) -> NDArray[np.float32]:
        """The voxels, shape (depth, height, width, components), read-only.

        Raises `AppError` if the volumes differ in size or position.
        """
        planes = stack(self.volumes)
        planes.flags.writeable = False
        let_find(planes, ENDS, partial(_ends, self.volumes))
        return planes

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Depth, height, width and components; raises `AppError` as `planes`."""
        check_aligned(self.volumes)
        return *self.volumes[0].voxels.shape, len(self.volumes)

    @property
    def pixels(self) -> NDArray[np.float32]:
        """The same array as `planes`, by which a GPU recognises the scan in its memory."""
        return self.planes

    @property
    def is_apart(self) -> bool:
        """Whether its volumes have to be put together, or converted, for a filter."""
        return len(self.volumes) > 1 or self.volumes[0].voxels.dtype != self.dtype

    @property
    def key(self) -> object:
        return self if self.is_apart else self.planes

    @property
    def components(self) -> Components:
        return Components(
            self.samples,
            lambda: self.planes,
            lambda number: self.volumes[number].value_range,
            lambda number: _known_peak(self.volumes[number]),
        )

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays that it holds in memory by now."""
        voxels = tuple(volume.voxels for volume in self.volumes)
        planes = vars(self).get("planes")
        return voxels if planes is None or planes.base is not None else (*voxels, planes)

    @property
    def title(self) -> str:
        return " + ".join(self.titles)

    @property
    def microscope(self) -> bool:
        return all(volume.microscope for volume in self.volumes)

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(notice for volume in self.volumes for notice in volume.notices)

    def describe(self) -> str:
        first, *others = self.volumes
        return " + ".join((first.describe(), *(volume.title for volume in others)))

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(volume.title for volume in self.volumes)

    @property
    def samples(self) -> tuple[NDArray[Any], ...]:
        return tuple(volume.voxels for volume in self.volumes)

    @cached_property
    def fingerprint(self) -> Hashable:
        return tuple(map(fingerprint, self.samples))

    @property
    def size(self) -> str:
        return self.volumes[0].size

    @property
    def mode(self) -> str:
        """How many volumes there are: ``1 volume`` or ``3 volumes``."""
        count = len(self.volumes)
        return f"{count} volume" + "s" * (count > 1)

    def like(self, planes: NDArray[Any], *, finite: bool = False) -> Scan:
        """Return the same volumes with the voxels of `planes`, rounded to their types.

        `planes` must not be written to afterwards; `finite` says that they were looked at already.
        """
        return Scan(
            tuple(
                volume.with_voxels(voxels, copy=False, finite=finite)
                for volume, voxels in zip(self.volumes, unstack(planes), strict=True)
            )
        )

    def part(self, box: Box) -> Scan:
        """Return a part of each volume, without its place in the patient; the voxels are views."""
        return Scan(
            tuple(
                replace(volume, voxels=box.of(volume.voxels), affine=None, missing=None)
                for volume in self.volumes
            )
        )

    def stand_in(self, shape: tuple[int, ...]) -> Scan:
        """Return the scan: no filter changes the shape of volumes."""
        return self

    def cropped(self, shape: tuple[int, ...]) -> Scan:
        """Return copies of the corners of the volumes, without their headers."""
        part = tuple(slice(0, side) for side in shape)
        return Scan(
            tuple(
                Volume.from_array(volume.voxels[part].copy(), volume.title)
                for volume in self.volumes
            )
        )


def _ends(volumes: tuple[Volume, ...]) -> list[tuple[float, float]]:
    return [volume.value_range for volume in volumes]


def _known_peak(volume: Volume) -> float | None:
    """Return the largest magnitude of a voxel; None until someone asked for `value_range`."""
    known = vars(volume).get("value_range")
    return None if known is None else float(max(known[1], -known[0]))
