"""A step on a lazy source, which is a lazy source itself: steps can follow each other.

A box of the result is computed from the window of its source that the filter needs, see
`kernelscope.engine.region`; so it has the bytes that it has in the whole result, borders included.
Nothing here knows a filter: halo, rows and grid come from the specs.

A filter for pictures goes through a volume slice by slice, as in `kernelscope.engine.slices`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidImage, InvalidParameter, NotANumber
from kernelscope.engine.options import DEFAULT_OPTIONS, RunOptions
from kernelscope.engine.region import NeededPart, Region, window
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.scaling import facts_of_whole, ignores_levels
from kernelscope.engine.slices import SliceUnit, step_of
from kernelscope.engine.stabilising import for_slices
from kernelscope.engine.step import Step
from kernelscope.engine.steps import prepared
from kernelscope.files.lazy import LazySource, Sides, take
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import SIGN
from kernelscope.schema.samples import UNIT, Kind, Levels, levels_between, levels_from

Execute = Callable[[Request], Result]
"""Computes a request; with backends, cancel token and costs bound."""

Cover = Callable[[LazySource], Iterable[Box]]
"""Returns boxes that cover a source, each of which fits into memory."""


def whole(source: LazySource) -> Iterable[Box]:
    return [Box((0, 0, 0), source.shape)]


def filtered(
    source: LazySource,
    step: Step,
    execute: Execute,
    options: RunOptions = DEFAULT_OPTIONS,
    cover: Cover = whole,
    levels: Levels | None = None,
) -> Filtered:
    """Return the result of a step, of which nothing is computed yet.

    `cover` returns boxes that cover a source, for values that depend on all of it: slices of other
    types than bytes are scaled by the brightest voxel. `levels`: black and white of floats or
    voxels, if they are known: the source is not covered for them.
    """
    check(step, source.kind)
    made: type[Filtered] = FilteredPicture
    if source.kind is Kind.VOLUME:
        made = FilteredCubes if step.filter.is_in_3d else FilteredSlices
    return made(source, step, execute, options, cover, levels)


def check(step: Step, kind: Kind) -> None:
    """Raise `InvalidParameter` if the step needs all of a picture or volume at once."""
    spec = step.filter
    if spec.is_in_3d and kind is Kind.VOLUME:
        return
    if spec.kind is Kind.VOLUME or (kind is Kind.PICTURE and spec.uncroppable(step.parameters)):
        raise _needs_whole(step, spec.uncroppable(step.parameters))
    # Slices have white noise where it was to be found, and the numbers of the middle one.
    part = for_slices(step).fixed if kind is Kind.VOLUME else step
    why, way = facts_of_whole(part)
    if why:
        raise _needs_whole(step, why, way)


def _needs_whole(
    step: Step,
    obstacle: str,
    hint: str = "Filter it as a whole, in memory, or choose other settings.",
) -> InvalidParameter:
    return InvalidParameter(f"{step.filter.name} cannot be computed in blocks: {obstacle}.", hint)


def _loses_sign(step: Step, low: float) -> InvalidParameter:
    return InvalidParameter(
        f"{step.filter.name} would clip negative samples to black: they go down to {low:g}.",
        "Filter the file as a whole, in memory, or choose another treatment of negative results.",
    )


class Filtered:
    """The result of a step, or of the last of several, on a source."""

    kind = Kind.VOLUME
    step: Step  # with the numbers that were estimated
    description: str  # the step in words, with those numbers
    levels: Levels | None = None  # black and white of the source, if the step needs them

    def __init__(
        self,
        source: LazySource,
        step: Step,
        execute: Execute,
        options: RunOptions,
        cover: Cover,
        levels: Levels | None,
    ) -> None:
        self._source, self.step = source, step
        self._execute, self._options = execute, options
        self.title, self.dtype = source.title, source.dtype
        self.shape, self.grain = source.shape, source.grain
        zeros = np.broadcast_to(source.dtype.type(0), source.shape)
        stand_in = (
            Image(zeros, source.title)
            if self.kind is Kind.PICTURE
            else Scan((Volume(zeros, title=source.title),))
        )
        request = Request(stand_in, step, options)  # refuses it before the survey
        self._survey(request, cover, levels)
        self.description = Request(stand_in, self.step, options).describe()

    def _survey(self, request: Request, cover: Cover, levels: Levels | None) -> None:
        """Find the facts about the whole source that the step needs."""
        raise NotImplementedError

    def read(self, box: Box) -> NDArray[Any]:
        raise NotImplementedError

    def working_bytes(self, box: Box) -> int:
        raise NotImplementedError

    def _levels_of_voxels(self, cover: Cover, levels: Levels | None) -> Levels | None:
        if self.dtype == np.uint8:
            return None
        found = levels or levels_from(*extremes(self._source, cover(self._source)))
        if self.step.parameters.get(SIGN) == "clip" and found.black < 0:
            raise _loses_sign(self.step, found.black)
        return found


class FilteredPicture(Filtered):
    kind = Kind.PICTURE

    def _survey(self, request: Request, cover: Cover, levels: Levels | None) -> None:
        height, width, channels = request.output_shape
        self.shape, self.grain = (height, width, channels), (*self.grain[:2], channels)
        self.levels = levels if self.dtype.kind == "f" else None
        if levels is None and self.dtype.kind == "f" and not ignores_levels(self.step):
            low, high = extremes(self._source, cover(self._source))
            self.levels = levels_between(low, high)
            if self.step.parameters.get(SIGN) == "clip" and low < 0 and self.levels != UNIT:
                raise _loses_sign(self.step, low)

    def read(self, box: Box) -> NDArray[Any]:
        step, region = self.step, _region(box)
        part = self._window(region)
        pixels = take(self._source, (part.rows, part.columns, range(self._source.shape[2])))
        with _without_nan(self.title):
            image = Image.from_array(pixels, self.title)
        image, step = replace(image, given_levels=self.levels), replace(step, within=None)
        planes = _run(image, step, part, self._execute, self._options)
        if self.step.within is not None:
            planes = self.step.within.limited(self._source.read(box), planes, region)
        return np.ascontiguousarray(planes)

    def working_bytes(self, box: Box) -> int:
        part = self._window(_region(box))
        channels = self._source.shape[2]
        needed = Box((0, 0, 0), (len(part.rows), len(part.columns), channels))
        return max(
            self._source.working_bytes(needed),
            needed.pixels * (2 * self.dtype.itemsize + 4 * self.step.filter.crop.floats)
            + box.pixels * self.dtype.itemsize,
        )

    def _window(self, region: Region) -> NeededPart:
        return _window(region, self._source.shape, self.step)


class FilteredSlices(Filtered):
    """A filter for pictures on the slices of a volume."""

    def _survey(self, request: Request, cover: Cover, levels: Levels | None) -> None:
        self._whole = bool(self.step.filter.uncroppable(self.step.parameters))
        self.levels = self._levels_of_voxels(cover, levels)
        self._unit = SliceUnit.of(self.levels or UNIT, self.step)
        self.step = self._estimated(self.step)

    def _estimated(self, step: Step) -> Step:
        """Return the step with numbers, estimated from the middle slice as the engine does."""
        if not step.estimates:
            return step
        number = self.shape[step.axis] // 2
        box = Box.slice_of(self.shape, step.axis, number)
        image = self._slice(self._source.read(box), step.axis)
        return prepared(Request(image, step, self._options))[0].step.fixed

    def read(self, box: Box) -> NDArray[Any]:
        axis, source = self.step.axis, self._source
        part = self._part(box)
        across = range(box.first[axis], box.first[axis] + box.sides[axis])
        voxels = take(source, _with(axis, across, part.rows, part.columns))
        output: NDArray[Any] | None = None
        for place, number in enumerate(across):
            image = self._slice(voxels.take([place], axis), axis)
            step = step_of(self.step, number)
            planes = _run(image, step, part, self._execute, self._options)[:, :, 0]
            if planes.dtype.kind == "f":
                inside = part.inside
                own = inside.of(voxels.take(place, axis))
                planes = self._unit.restored(planes, inside.of(image.pixels), own)
            if output is None:
                output = np.empty(box.sides, planes.dtype)
            np.moveaxis(output, axis, 0)[place] = planes
        assert output is not None  # a box has slices
        target = Volume(np.broadcast_to(self.dtype.type(0), box.sides), title=self.title)
        return target.with_voxels(output, copy=False).voxels

    def working_bytes(self, box: Box) -> int:
        axis = self.step.axis
        part = self._part(box)
        rows, columns, size = len(part.rows), len(part.columns), self.dtype.itemsize
        sides = _with(axis, range(box.sides[axis]), range(rows), range(columns))
        needed = Box((0, 0, 0), (len(sides[0]), len(sides[1]), len(sides[2])))
        results = box.pixels * (size if size == 1 else 4 + 2 * size)
        return max(
            self._source.working_bytes(needed),
            needed.pixels * size
            + results
            + rows * columns * 4 * (self.step.filter.crop.floats + 2),
        )

    def _part(self, box: Box) -> NeededPart:
        axis = self.step.axis
        height, width = (side for i, side in enumerate(self.shape) if i != axis)
        (top, left), (rows, columns) = (np.delete(each, axis).tolist() for each in box)
        region = Region(top, left, rows, columns)
        if self._whole:
            return NeededPart(range(height), range(width), region)
        return _window(region, (height, width, 1), self.step)

    def _slice(self, voxels: NDArray[Any], axis: int) -> Image:
        pixels = np.ascontiguousarray(voxels.squeeze(axis))
        with _without_nan(self.title):
            return self._unit.picture(pixels, self.title)


class FilteredCubes(Filtered):
    """A filter whose mask goes through the slices of a volume."""

    def _survey(self, request: Request, cover: Cover, levels: Levels | None) -> None:
        if self.step.parameters.get(SIGN) in ("clip", "offset"):
            self.levels = self._levels_of_voxels(cover, levels)

    def read(self, box: Box) -> NDArray[Any]:
        ranges = self._ranges(box)
        voxels = take(self._source, ranges)
        if voxels.dtype.kind == "f" and not np.isfinite(voxels).all():
            raise _not_finite(self.title)
        voxels.flags.writeable = False
        volume = Volume(voxels, title=self.title, given_levels=self.levels)
        result = self._execute(Request(Scan((volume,)), self.step, self._options, live=True))
        first = [start - part.start for start, part in zip(box.first, ranges, strict=True)]
        inside = Box((first[0], first[1], first[2]), box.sides)
        return np.ascontiguousarray(inside.of(result.scan.volumes[0].voxels))

    def working_bytes(self, box: Box) -> int:
        z, y, x = map(len, self._ranges(box))
        needed, size = Box((0, 0, 0), (z, y, x)), self.dtype.itemsize
        return max(
            self._source.working_bytes(needed),
            needed.pixels * (2 * size + 2 * 4) + box.pixels * size,
        )

    def _ranges(self, box: Box) -> tuple[range, range, range]:
        """Return the places along z, y and x that a box of the result needs."""
        radii = self.step.filter.radii(self.step.parameters)
        wraps = self.step.border is Border.WRAP
        found = [
            range(start - radius, start + count + radius)
            if wraps
            else range(max(0, start - radius), min(side, start + count + radius))
            for start, count, side, radius in zip(*box, self.shape, radii, strict=True)
        ]
        return found[0], found[1], found[2]


def _window(region: Region, shape: Sides, step: Step) -> NeededPart:
    spec = step.filter
    return window(region, shape, spec.radius(step.parameters), step.border, spec.crop)


def _run(
    image: Image, step: Step, part: NeededPart, execute: Execute, options: RunOptions
) -> NDArray[Any]:
    origin = part.rows.start, part.columns.start
    result = execute(Request(image, step, options, origin=origin, live=True))
    return part.inside.of(result.output.planes)


def _with(axis: int, across: range, rows: range, columns: range) -> tuple[range, range, range]:
    ranges = [rows, columns]
    ranges.insert(axis, across)
    return ranges[0], ranges[1], ranges[2]


def _region(box: Box) -> Region:
    return Region(*box.first[:2], *box.sides[:2])


def extremes(source: LazySource, boxes: Iterable[Box]) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for box in boxes:
        samples = source.read(box)
        if samples.dtype.kind == "f" and not np.isfinite(samples).all():
            raise _not_finite(source.title)
        low, high = min(low, samples.min().item()), max(high, samples.max().item())
    return low, high


@contextmanager
def _without_nan(title: str) -> Iterator[None]:
    """Refuse NaN in words that fit a block."""
    try:
        yield
    except NotANumber as error:
        raise _not_finite(title) from error


def _not_finite(title: str) -> InvalidImage:
    return InvalidImage(
        f"{title}: some samples are NaN or infinite.",
        "Replace them in the program that wrote the file.",
    )
