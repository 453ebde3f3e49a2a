"""Volumes seen from any side, by shear and warp (Lacroute and Levoy, SIGGRAPH 1994).

Slices across the axis nearest to the line of sight are shifted by whole voxels, so that lines of
sight become columns, and are combined: a pass over the volume in order of memory::

    line of sight  \\   \\        |   |        The picture of the shifted slices is distorted; one
      slice k    ---\\---\\---  ---|---|---     linear map, which the painter applies, makes it that
      slice k-1  ----\\---\\--  --|---|----     of the screen.

Shifts are rounded: lines of sight are off by half a voxel at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.gui.model.display import Display
from kernelscope.images.planes import planes_of
from kernelscope.images.volume import Volume

_FLATTEST = 89.0  # largest angle, in degrees, at which the camera looks from above or below

_ZOOMS = 0.2, 20.0

_AMBIENT = 0.2  # share of the light that surfaces have on every side


@dataclass(frozen=True)
class Viewpoint:
    """The direction from which volumes are seen; at first, the front."""

    # Degrees by which the camera went around to the right, and up.
    yaw: float = 30.0
    pitch: float = 15.0
    zoom: float = 1.0  # 1 where the whole volume fits into the view from every side

    def turned(self, right: float, up: float) -> Viewpoint:
        pitch = min(max(self.pitch + up, -_FLATTEST), _FLATTEST)
        return replace(self, yaw=(self.yaw + right) % 360, pitch=pitch)

    def zoomed(self, factor: float) -> Viewpoint:
        return replace(self, zoom=min(max(self.zoom * factor, _ZOOMS[0]), _ZOOMS[1]))

    def axes(self, front: NDArray[np.float64]) -> NDArray[np.float64]:
        right, up, toward = front
        yaw, pitch = math.radians(self.yaw), math.radians(self.pitch)
        toward, right = (
            math.cos(yaw) * toward + math.sin(yaw) * right,
            math.cos(yaw) * right - math.sin(yaw) * toward,
        )
        toward, up = (
            math.cos(pitch) * toward + math.sin(pitch) * up,
            math.cos(pitch) * up - math.sin(pitch) * toward,
        )
        return np.stack([right, up, toward])


@dataclass(frozen=True)
class SpaceStyle:
    """How lines of sight become brightness."""

    surface: bool = False
    """Show the first voxels that reach the threshold, lit from the camera; otherwise the
    maximum."""
    threshold: int = 0  # smaller steps (0 to 255) are not seen
    opacity: float = 1.0  # opacity of the surface; the maximum is visible through it


@dataclass(frozen=True, eq=False)
class ViewedVolume:
    """A volume in the steps in which it is drawn.

    `steps`: ndarray of uint8, shape (depth, height, width). `spacing`: along z, y and x, in
    millimetres. `front`, shape (3, 3): right, up and towards the camera in the front view, along z,
    y and x.
    """

    steps: NDArray[np.uint8]
    spacing: NDArray[np.float64]
    front: NDArray[np.float64]
    kept: dict[int, NDArray[np.uint8]] = field(default_factory=dict)  # of `slices`

    @classmethod
    def of(cls, volume: Volume, display: Display) -> ViewedVolume:
        """Return the scene of a volume; takes a while for large ones."""
        return cls(display.steps(volume.voxels), np.array(volume.spacing), _front(volume))

    def slices(self, axis: int) -> NDArray[np.uint8]:
        """Return the slices across an axis; they are kept in order of memory, which is faster."""
        if axis not in self.kept:
            self.kept[axis] = np.ascontiguousarray(np.moveaxis(self.steps, axis, 0))
        return self.kept[axis]

    @property
    def radius(self) -> float:
        """Half the diagonal, in millimetres."""
        return float(np.linalg.norm(self.spacing * self.steps.shape)) / 2


class Rendering(NamedTuple):
    """A distorted picture, and the map that straightens it.

    `matrix` takes (column, row, 1) to millimetres right and down of the middle of the screen.
    """

    steps: NDArray[np.uint8]
    matrix: NDArray[np.float64]


def render(scene: ViewedVolume, camera: Viewpoint, style: SpaceStyle) -> Rendering:
    axes = camera.axes(scene.front)
    toward = axes[2]
    across = int(np.argmax(np.abs(toward)))
    rows, columns = (axis for axis in range(3) if axis != across)
    slices = scene.slices(across)
    count, spacing = len(slices), scene.spacing
    # Millimetres along the other axes for each slice, and the same in voxels.
    slopes = -toward / toward[across] * spacing[across]
    shifts = np.rint(np.arange(count)[:, np.newaxis] * (slopes / spacing)[[rows, columns]])
    shifts = shifts.astype(int)
    first = shifts.min(axis=0)
    shifts -= first
    shape = np.array(slices.shape[1:]) + shifts.max(axis=0)
    order = range(count - 1, -1, -1) if toward[across] > 0 else range(count)
    steps, depth = _combine(slices, shifts, shape, order, style)
    # The point in slice 0 on the line of sight of the first pixel, from the middle of the volume.
    corner = np.zeros(3)
    corner[[rows, columns]] = first * spacing[[rows, columns]]
    corner -= spacing * (np.array(scene.steps.shape) - 1) / 2
    if style.surface:
        lit = _shade(depth, axes, spacing, (across, rows, columns))
        steps = np.rint(style.opacity * lit + (1 - style.opacity) * steps).astype(np.uint8)
    screen = np.stack([axes[0], -axes[1]])
    matrix = np.column_stack(
        [screen[:, columns] * spacing[columns], screen[:, rows] * spacing[rows], screen @ corner]
    )
    return Rendering(steps, matrix)


def _combine(
    slices: NDArray[np.uint8],
    shifts: NDArray[np.int_],
    shape: NDArray[np.int_],
    order: range,
    style: SpaceStyle,
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return the maximum, and the slice in which the surface is, NaN where there is none."""
    highest, width = slices.shape[1:]
    largest = np.zeros(shape, np.uint8)
    depth = np.full(shape, np.nan, np.float32)
    before = np.zeros(shape, np.uint8)  # the slice in front
    threshold = max(style.threshold, 1)
    for index in order:
        top, left = shifts[index]
        place = slice(top, top + highest), slice(left, left + width)
        cut = slices[index]
        np.maximum(largest[place], cut, out=largest[place])
        if not style.surface:
            continue
        hit = (cut >= threshold) & np.isnan(depth[place])
        found, ahead = cut[hit].astype(np.float32), before[place][hit].astype(np.float32)
        # Between the slices, so that surfaces have no terraces.
        share = (found - threshold) / np.maximum(found - np.minimum(ahead, threshold), 1)
        depth[place][hit] = index - order.step * share
        before[:] = 0
        before[place] = cut
    largest[largest < style.threshold] = 0
    return largest, depth


def _shade(
    depth: NDArray[np.float32],
    axes: NDArray[np.float64],
    spacing: NDArray[np.float64],
    order: tuple[int, int, int],
) -> NDArray[np.float32]:
    """Return the brightness of the surface, 0 to 255, lit from the camera."""
    across, rows, columns = order
    toward = axes[2]
    along = toward / toward[across] * spacing[across]  # one slice further on a line of sight
    smooth = _smooth(depth)
    down, right = np.gradient(smooth, axis=0), np.gradient(smooth, axis=1)
    steps: list[NDArray[np.float64]] = []
    for change, axis in ((down, rows), (right, columns)):
        step = np.asarray(change[..., np.newaxis] * along, np.float64)
        step[..., axis] += spacing[axis]
        steps.append(step)
    normal = np.asarray(np.cross(steps[0], steps[1]))
    length = np.sqrt(np.einsum("ijk,ijk->ij", normal, normal))
    cosine = np.abs(normal @ toward) / np.maximum(length, 1e-6)
    lit = 255 * (_AMBIENT + (1 - _AMBIENT) * cosine)
    return np.where(np.isnan(depth), np.float32(0), lit).astype(np.float32)


def _smooth(depth: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return depths averaged over 5×5 pixels, where there is a surface: voxels have no normals."""
    known = ~np.isnan(depth)
    total, weight = np.where(known, depth, 0).astype(np.float32), known.astype(np.float32)
    for axis in (0, 1):
        total, weight = (_added(each, axis) for each in (total, weight))
    return np.asarray(total / np.maximum(weight, np.float32(1)), np.float32)


def _added(values: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    padded = np.moveaxis(np.pad(values, [(2, 2) if a == axis else (0, 0) for a in (0, 1)]), axis, 0)
    total = sum(padded[i : i + values.shape[axis]] for i in range(5))
    return np.moveaxis(np.asarray(total, np.float32), 0, axis)


def _front(volume: Volume) -> NDArray[np.float64]:
    """Return right, up and towards the camera in the front view: that of the coronal plane."""
    plane = planes_of(volume)[1]
    letters = volume.orientation[::-1]
    result = np.zeros((3, 3))
    result[0, plane.columns] = -1 if plane.flip_columns else 1
    result[1, plane.rows] = 1 if plane.flip_rows else -1
    result[2, plane.axis] = 1 if letters and letters[plane.axis] == "A" else -1
    return result
