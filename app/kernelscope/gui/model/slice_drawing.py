"""How slices of volumes are drawn: projections, steps of a colour map, differences over anatomy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.parallel import in_parts
from kernelscope.engine.stabilising import Sigmas, change_of
from kernelscope.gui.model.display import Colouring, ColourMap, Display, map_of, table
from kernelscope.images.image import MM_PER_INCH, Image, Metadata
from kernelscope.images.planes import Plane
from kernelscope.images.volume import AXES, Volume


class Projection(StrEnum):
    SLICE = "Slice"  # the slice itself
    MAXIMUM = "Maximum"
    MINIMUM = "Minimum"
    MEAN = "Mean"


def slab(index: int, slices: int, side: int) -> range:
    """Return `slices` slices around `index`, 0 for all, cut off at the ends of the volume."""
    if slices == 0:
        return range(side)
    first = index - (slices - 1) // 2
    return range(max(first, 0), min(first + slices, side))


def numbers(part: range) -> str:
    return f"{part.start + 1}" if len(part) == 1 else f"{part.start + 1}–{part.stop}"


def project(volume: Volume, axis: int, slices: range, projection: Projection) -> NDArray[Any]:
    """Return one slice for several, of floats for the mean; its axis has length 1."""
    cut = [slice(None)] * 3
    cut[axis] = slice(slices.start, slices.stop)
    lines = np.moveaxis(volume.voxels[tuple(cut)], axis, -1)

    def work(part: slice) -> NDArray[Any]:
        if projection is Projection.MEAN:
            return np.asarray(lines[part].mean(axis=-1, dtype=np.float64), np.float32)
        extreme = np.max if projection is Projection.MAXIMUM else np.min
        return np.asarray(extreme(lines[part], axis=-1))

    return np.expand_dims(np.concatenate(in_parts(work, lines)), axis)


def project_change(
    volume: Volume,
    minus: Volume,
    axis: int,
    slices: range,
    projection: Projection,
    sigmas: Sigmas | None = None,
) -> NDArray[np.float32]:
    """Return one slice for the differences of several, as `project`.

    For both extremes it is the largest size with its sign: a maximum would hide all that darkens.
    """
    shape = [1 if each == axis else side for each, side in enumerate(volume.voxels.shape)]
    total: NDArray[np.float64] = np.zeros(shape)
    for index in slices:
        cut = _across(axis, index)
        change = change_of(volume.voxels[cut], minus.voxels[cut], sigmas)
        if projection is Projection.MEAN:
            total += change
        else:
            np.copyto(total, change, where=np.abs(change) > np.abs(total))
    if projection is Projection.MEAN:
        total /= len(slices)
    return total.astype(np.float32)


def slice_of(
    volume: Volume,
    minus: Volume | None,
    plane: Plane,
    index: int,
    look: Look,
    sigmas: Sigmas | None = None,
) -> NDArray[Any]:
    """Return a slice or a projection as it is drawn, rows from the top; a difference to `minus`."""
    if look.projection is Projection.SLICE:
        cut = plane.cut(volume.voxels, index)
        return cut if minus is None else change_of(cut, plane.cut(minus.voxels, index), sigmas)
    part = slab(index, look.slices, volume.voxels.shape[plane.axis])
    if minus is None:
        return plane.cut(project(volume, plane.axis, part, look.projection), 0)
    change = project_change(volume, minus, plane.axis, part, look.projection, sigmas)
    return plane.cut(change, 0)


def _across(axis: int, index: int) -> tuple[slice, ...]:
    return tuple(slice(index, index + 1) if each == axis else slice(None) for each in range(3))


_FAINTEST = 64
"""Steps from the middle of the diverging map at which differences over anatomy begin: nearer to it
the colours are too dark to be distinguished."""


@dataclass(frozen=True)
class Look:
    """The choices of the user on how slices are made of volumes, and differences are drawn."""

    projection: Projection = Projection.SLICE
    slices: int = 0  # thickness of the slab that is projected; 0 for all slices
    overlaid: bool = False  # whether differences are drawn over the volume that was subtracted
    opacity: float = 0.8  # of the strongest differences over the picture or anatomy, 0 to 1
    threshold: float = 0.0  # smaller differences are not drawn there, in units of the values
    beside: tuple[tuple[Volume, Display], ...] = ()
    """The other channels of a composite, which are added to the one in front."""
    filtered: tuple[tuple[Volume, Display], ...] = ()
    """The same for the output: filtered, as far as they were as the one in front was."""
    hidden: frozenset[int] = frozenset()
    """Numbers of the channels of a composite that are not drawn; the one in front may be."""

    @property
    def of_output(self) -> Look:
        """The look of the output, in which channels that were not filtered are not drawn."""
        if not self.filtered:
            return self
        pairs = zip(self.beside, self.filtered, strict=True)
        raw = {made.channel_number for (before, _), (made, _) in pairs if made is before}
        return replace(self, beside=self.filtered, hidden=self.hidden | raw)

    def beside_output(self, made: Iterable[Volume]) -> Look:
        """Return the look in which `made` are the other channels that were filtered."""
        known = {each.channel_number: each for each in made}
        pairs = [(known.get(raw.channel_number, raw), own) for raw, own in self.beside]
        return replace(self, filtered=tuple(pairs))

    def of_input(self, front: Volume) -> Look:
        """The look of the input beside an output: a channel that this lacks is not drawn either,
        or filtering would seem to have removed it.
        """
        return replace(self, hidden=self.of_output.hidden) if self.shows(front) else self

    def shows(self, channel: Volume) -> bool:
        return not self.beside or channel.channel_number not in self.hidden

    def others(self, front: Volume) -> list[tuple[Volume, Display]]:
        """Return the channels of `beside` whose light is added to that of the one in front."""
        shape = front.voxels.shape
        fitting = [p for p in self.beside if p[0] is not front and p[0].voxels.shape == shape]
        return [pair for pair in fitting if self.shows(pair[0])]

    def names(self, front: Volume) -> str:
        """Return the channels that are drawn, ``DAPI + GFP``; of one alone, if it has a name."""
        if not self.beside:
            return front.channel.name
        drawn = [front] * self.shows(front) + [each for each, _ in self.others(front)]
        drawn.sort(key=lambda each: each.channel_number)
        return " + ".join(map(channel_name, drawn)) or "no channel"

    def figures_of(self, front: Volume) -> str:
        """Return to which of the channels that are drawn values and levels belong; see `names`."""
        return channel_name(front) if self.beside else ""

    def filtered_only(self, front: Volume) -> str:
        """Return which channels are filtered, ``DAPI only``; empty if all that are drawn are."""
        pairs = [(raw, made) for (raw, _), (made, _) in zip(self.beside, self.filtered)]  # noqa: B905
        drawn = [(raw, made) for raw, made in pairs if self.shows(raw)]
        if all(made is not raw for raw, made in drawn):
            return ""
        filtered = [front] if self.shows(front) else []
        filtered += [made for raw, made in drawn if made is not raw]
        names = ", ".join(each.channel.name for each in filtered if each.channel.name)
        return f"{names} only" if names else "" if filtered else "not filtered"

    def layer(self, change: NDArray[np.float32], width: float, gain: int) -> NDArray[np.uint8]:
        """Return differences as colours to be drawn over anatomy.

        The size of a difference decides on its opacity, so that the anatomy shows through where
        little changed; `opacity` is reached where the difference alone would saturate. `width`:
        from black to white, in the anatomy.

        Bytes of shape (rows, columns, 4): red, green, blue and opacity, not premultiplied.
        """
        share = np.clip(change * np.float32(2 * gain / width), -1, 1)
        size = np.abs(share)
        middle = np.where(share < 0, 128 - _FAINTEST, 127 + _FAINTEST)
        steps = middle + np.rint(share * (127 - _FAINTEST)).astype(int)
        result = np.empty((*change.shape, 4), np.uint8)
        result[..., :3] = table(ColourMap.DIVERGING)[steps]
        seen = (np.abs(change) >= self.threshold) & (change != 0)
        result[..., 3] = np.rint(255 * self.opacity * size * seen)
        return result


_DYES = (ColourMap.RED, ColourMap.GREEN, ColourMap.BLUE, ColourMap.GREY)
"""Of channels whose colours are not known, in their order."""


def dyes(volumes: Sequence[Volume]) -> list[Colouring]:
    """Return the colours in which channels are drawn in a composite: their own, if they differ."""
    known = [map_of(each.channel.colour) for each in volumes]
    return known if len(set(known)) == len(known) else [_DYES[n % 4] for n in range(len(known))]


def added_light(
    shape: tuple[int, ...], slices: Iterable[tuple[NDArray[Any], Display]]
) -> NDArray[np.uint8]:
    """Return slices of channels, each in its colours, as one picture of red, green and blue."""
    total: NDArray[np.float32] = np.zeros((*shape, 3), np.float32)
    for values, display in slices:
        total += table(display.colour_map)[display.steps(values)]
    return np.minimum(total, 255).astype(np.uint8)


def moment(interval: float | None, place: int) -> str:
    """Return the seconds since the first of the times of a file that states their interval."""
    return f"{float(f'{place * interval:.6g}'):g} s" if interval else ""


def channel_name(volume: Volume) -> str:
    return volume.channel.name or f"channel {volume.channel_number + 1}"


def in_colours(channels: Iterable[tuple[Volume, Display]]) -> str:
    """Return the names of channels with their colours: ``DAPI in blue, GFP in green``."""
    ordered = sorted(channels, key=lambda pair: pair[0].channel_number)
    return ", ".join(
        f"{channel_name(volume)} in {display.colour_map.value.lower()}"
        for volume, display in ordered
    )


def composite(
    channels: Sequence[tuple[Volume, Display]], plane: Plane, index: int, look: Look
) -> Image:
    """Return the channels that are not hidden, as the screen has them, as one picture."""
    first, shown = channels[0][0], [pair for pair in channels if look.shows(pair[0])]
    slices = ((slice_of(each, None, plane, index, look), display) for each, display in shown)
    pixels = added_light(plane.cut(first.voxels, index).shape, slices)
    title = plane.title(first, index)
    if look.projection is not Projection.SLICE:
        part = numbers(slab(index, look.slices, first.voxels.shape[plane.axis]))
        title = f"{first.title}, {look.projection.value.lower()} {plane.name.lower()} {part}"
    metadata = Metadata(resolution=resolution_of(first, plane), measured=True)
    notices = (f"{in_colours(shown)}.",) if shown else ()
    return replace(Image.from_array(pixels, title, notices=notices), metadata=metadata)


def resolution_of(volume: Volume, plane: Plane) -> tuple[float, float] | None:
    """Return the pixels per inch of a slice, across and down, if the file states distances."""
    if not {AXES[plane.rows], AXES[plane.columns]} <= set(volume.stated):
        return None
    return MM_PER_INCH / volume.spacing[plane.columns], MM_PER_INCH / volume.spacing[plane.rows]


def drawn_slice(volume: Volume, plane: Plane, index: int, display: Display) -> Image:
    """Return a slice as the filters for pictures take it: bytes, or floats from black to white."""
    title = plane.title(volume, index)
    cut = plane.cut(volume.voxels, index)
    if cut.dtype == np.uint8:
        return Image.from_array(cut.copy(), title)
    notice = f"Values from {display.low:.4g} to {display.high:.4g} became 0 to 1."
    share = np.multiply(cut, np.float32(1 / display.width), dtype=np.float32, order="C")
    share -= np.float32(display.low / display.width)
    return Image.from_array(share, title, notices=(notice,))
