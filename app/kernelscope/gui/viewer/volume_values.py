"""The values and notes that the view of volumes writes, and the size of slices."""

from __future__ import annotations

from collections.abc import Sequence

from kernelscope.gui.model.arrangement import Units
from kernelscope.gui.model.camera import Point
from kernelscope.gui.model.measurements import white_of
from kernelscope.gui.model.projection import Projection
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.viewer.slices import PaneContent, Slabs
from kernelscope.gui.viewer.volume_pane import numbers
from kernelscope.images.planes import Plane, Position, millimetres
from kernelscope.images.volume import Volume


def values_at(
    position: Position,
    volume: Volume,
    content: PaneContent,
    slabs: Slabs,
    look: Look,
    plane: Plane | None,
    index: int,
    factor: float | None = None,
) -> list[tuple[str, str]]:
    """Return names and values of a voxel in the input, the output and their difference.

    `plane` and `index`: the slice in which the voxel is looked at: where it is projected, the value
    that is drawn follows in brackets. `factor`: by which values are multiplied; see `factor_of`.
    """
    second = "map" if content.display else "output"
    contents = [("input", PaneContent(volume)), (second, PaneContent(content.at(position)))]
    if content.minus is not None:
        contents.append(("residual" if content.minus is volume else "difference", content))
    texts = []
    for name, each in contents:
        if each.volume is None:
            continue
        value = each.volume.voxels[position].item()
        if each.minus is not None:
            value -= each.minus.voxels[position].item()
        drawn = ""
        if plane is not None and look.projection is not Projection.SLICE:
            drawn = _projected(each, slabs, look, plane, index, position, factor)
        texts.append((name, f"{text_of(value, factor)}{drawn}"))
    return texts


def place_text(volume: Volume, position: Position) -> str:
    """Return “x 1, y 2, z 3   (90.5, -108.5, 90.5) mm”, without the latter if unknown."""
    z, y, x = position
    text = f"x {x}, y {y}, z {z}"
    place = millimetres(volume, position)
    if place is None:
        return text
    return f"{text}   ({', '.join(f'{part:.1f}' for part in place)}) mm"


def factor_of(volume: Volume, units: Units) -> float | None:
    """Return the factor from voxels to other units; None for values as they are stored."""
    if units is Units.STORED:
        return None
    return (255 if units is Units.BYTES else 1) / white_of(volume)


def text_of(value: float, factor: float | None) -> str:
    if factor is None:
        return str(value) if isinstance(value, int) else f"{value:.4g}"
    return f"{value * factor:.4g}"


def _projected(
    content: PaneContent,
    slabs: Slabs,
    look: Look,
    plane: Plane,
    index: int,
    position: Position,
    factor: float | None,
) -> str:
    """Return “ (maximum 233)”, or nothing while that is being computed."""
    assert content.volume is not None
    values = slabs.values(content.volume, content.minus, plane, index, look)
    if values is None:
        return ""
    column, row = plane.place(position, content.volume.voxels.shape)
    largest = content.minus is not None and look.projection is not Projection.MEAN
    name = "largest" if largest else look.projection.value.lower()
    return f" ({name} {text_of(values[row, column].item(), factor)})"


def note_of(projection: Projection, part: range, state: str, *, drawn: bool) -> str:
    """Return the content of a view, unless that is the slice of its pane.

    `state`: how it relates to the settings, where that is not the same for all views. `drawn`:
    false while the projection is computed.
    """
    words = []
    if projection is not Projection.SLICE:
        words.append(f"{projection.value} of slices {numbers(part)}")
    if not drawn:
        words.append("computing…")
    if state:
        words.append(state)
    return ", ".join(words)


def middles(volume: Volume, planes: Sequence[Plane], position: Position) -> dict[int, Point]:
    """Return where the middle of a voxel is drawn in each plane, in millimetres."""
    points = {}
    for number, plane in enumerate(planes):
        column, row = plane.place(position, volume.voxels.shape)
        across, down = volume.spacing[plane.columns], volume.spacing[plane.rows]
        points[number] = (column + 0.5) * across, (row + 0.5) * down
    return points


def extent(volume: Volume, plane: Plane) -> Point:
    """Return the size of a slice in millimetres."""
    shape, steps = volume.voxels.shape, volume.spacing
    return shape[plane.columns] * steps[plane.columns], shape[plane.rows] * steps[plane.rows]
