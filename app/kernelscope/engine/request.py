"""A step on a source, and how to run it: frozen, and checked when it is made."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kernelscope import filters
from kernelscope.base.errors import AppError, InvalidParameter, naming
from kernelscope.engine.area import Area
from kernelscope.engine.options import DEFAULT_OPTIONS, RunOptions
from kernelscope.engine.region import Region
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import AXES, Volume
from kernelscope.schema.blocks import block_name, takes_block
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import MIDDLE, SIGN, WHOLE, Chip, FilterSpec
from kernelscope.schema.samples import Kind, is_bytes

_ids = itertools.count(1)


class Pass(NamedTuple):
    filter: FilterSpec
    parameters: Mapping[str, Any]
    border: Border


def grey_first() -> Pass:
    """Return the pass that converts to greyscale before a step that asks for it."""
    grey = filters.get("greyscale")
    return Pass(grey, grey.defaults(), Border.REFLECT)


def settings_of(step: Step, source: Source) -> Hashable:
    """Return the settings that decide the result of `step` on `source`.

    Those that it estimates are left out; a result has those of the `fixed` step.
    """
    spec, numbers, values = step.filter, step.unestimated.parameters, step.values
    by_slices = spec.kind is not source.kind
    grey = step.grey or source.is_grey
    looks_around = spec.whole(numbers) or spec.radius(numbers) > 0
    return (
        spec.id,
        *(values[each.name] for each in spec.parameters if each.acts(numbers, grey=grey)),
        step.border if looks_around else None,
        step.grey and not source.is_grey,
        step.axis if by_slices else None,
        step.within,
        spec.noise is not None and isinstance(source, Scan) and source.microscope,
    )


@dataclass(frozen=True)
class RunSettings:
    """A step of a sequence, and how to run it."""

    step: Step
    options: RunOptions = DEFAULT_OPTIONS
    on: bool = True  # off, it takes no part in the output
    key: int = field(default_factory=lambda: next(_ids), compare=False)
    """Stays the same while the step is moved or edited."""

    @classmethod
    def of(cls, request: Request) -> RunSettings:
        """Return the settings that `request` was made with; the axis of slices is not one."""
        step = replace(request.step, axis=0)
        if request.source.kind is Kind.VOLUME:  # which have no colours
            step = replace(step, grey=False)
        return cls(step, request.options)

    def request(self, source: Source) -> Request:
        """Return a checked request for `source`, with the numbers as they are.

        Raises `InvalidParameter` as `Request`.
        """
        return Request(source, self.step, self.options, estimated=True)

    def made(self, request: Request) -> bool:
        """Return whether `request` has these settings; the axis of slices is not one of them."""
        if request.step is self.step and request.options is self.options:
            return True
        step = replace(self.step, axis=request.step.axis)
        with suppress(AppError):  # settings that the source does not fit
            return alike(request, replace(request, step=step, options=self.options))
        return False


@dataclass(frozen=True, eq=False)
class Measurement:
    """Slow measurements of a source that estimates needed before the run."""

    values: Mapping[str, Any]  # from `FilterSpec.measure`
    seconds: float
    """How long measuring took; the run counts it, since it would have to measure otherwise."""

    @classmethod
    def of(cls, request: Request) -> Measurement | None:
        """Measure for `request`, if its filter has measurements; slices have none."""
        if request.by_slices:
            return None
        start = time.perf_counter()
        values = request.step.filter.measure(request.source.planes, request.step.parameters)
        return cls(values, time.perf_counter() - start) if values else None


@dataclass(frozen=True, eq=False)
class Request:
    """The settings (`step`), the source (`source`), and the run options (`options`).

    A request does not change once it is made, and its result refers to it. One that cannot be
    run is refused when it is made.

    Raises `InvalidParameter` for a filter for volumes on a picture, a ``valid`` border that would
    leave no pixel, slices of volumes that would become smaller or coloured, a region that does not
    exist or cannot be computed on its own, or a further step that cannot be.
    """

    source: Source
    step: Step
    options: RunOptions = DEFAULT_OPTIONS
    reference: Image | Volume | None = None
    """The ideal result, or the ideal of its first volume; input and result are compared with it."""
    measured: Measurement | None = None
    """Measurements of this source for this step, if they were needed before the run."""
    noise: Any = None
    """Model of the noise of the source, or of the whole of which it is a part; see
    `kernelscope.engine.stabilising`."""
    origin: tuple[int, int] = (0, 0)
    """Row and column of the picture at which the source begins, where it is a part of one."""
    resolved: Mapping[str, Any] | None = None
    """The parameters with the values that follow from the data, such as sigma, of a whole of which
    only `region` is computed."""
    region: Region | Box | None = None
    """The part of the result to compute, of a volume a box; it has the bytes that it has in the
    whole result."""
    stand_in: str | None = None
    """None: only the filter itself will do. Empty: while its code is compiled, another method may
    take its place for a preview; its name is here in the request of such a result."""
    live: bool = False  # the settings are still changing: the run is neither logged nor learnt from
    reduction: int = 1
    """The result is reduced for the screen: each pixel is the mean of a square of this side."""
    timed: bool = False
    """Warm up and repeat the run, so that its time can be compared; see
    `kernelscope.engine.measuring`."""
    then: tuple[RunSettings, ...] = ()
    """Further steps, the last of which makes the output; see `kernelscope.engine.steps`."""
    estimated: bool = False
    """The numbers that the step estimates are those of this source; else the run estimates them."""
    recipe: bool = False
    """Each step is a run of its own: compared with the reference, and named by its number."""
    done: tuple[Any, ...] = ()  # a `Result` knows its request: naming the type would be a circle
    """Results of the first of all these steps, which are not computed again."""
    id: int = field(default_factory=lambda: next(_ids))
    """Increases with each request; a later one replaces an earlier one."""

    def __post_init__(self) -> None:
        with naming(self.prefix(1)):
            self._check_step()
        for _ in self.followers():
            pass  # each is checked as it is made
        if self.region is not None:
            self._check_region(self.region)
        is_whole = self.region is None and not self.then
        if self.reduction > 1 and not (is_whole and self.source.kind is Kind.PICTURE):
            raise InvalidParameter("Only whole pictures are reduced.", "Leave out the region.")

    @classmethod
    def create(
        cls,
        source: Source,
        filter_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        border: Border | None = None,
        grey: bool = False,
        axis: int = 0,
        within: Area | None = None,
        reference: Image | Volume | None = None,
        **options: Any,
    ) -> Request:
        """Return a request for `Step.of_numbers` with the `RunOptions` of these names.

        Raises `InvalidParameter` as `Step.of_numbers`, `RunOptions` and `Request`.
        """
        step = Step.of_numbers(
            filter_id, parameters, border=border, grey=grey, axis=axis, within=within
        )
        return cls(source, step, RunOptions(**options), reference)

    def _check_step(self) -> None:
        """Refuse a source that the step alone cannot filter."""
        spec, kind = self.step.filter, self.source.kind
        if spec.kind is Kind.VOLUME and kind is not Kind.VOLUME:
            raise InvalidParameter(
                f"{spec.name} is for {spec.kind}s; {self.source.title} is a {kind}.",
                "Choose another filter.",
            )
        if self.by_slices:
            self._check_slices()
        else:
            self._check_border()
        if self.step.within is not None:
            self._check_area(self.step.within)

    def _check_border(self) -> None:
        """Refuse a ``valid`` border that would leave nothing."""
        step = self.step
        if step.border is not Border.VALID:
            return
        side = 2 * step.filter.radius(step.parameters) + 1
        height, width = self.source.shape[:2]
        if side > min(width, height):
            raise InvalidParameter(
                f"The {side}×{side} neighbourhood does not fit into "
                f"{width}×{height} pixels, so “valid” would leave nothing.",
                "Choose a smaller mask or another border.",
            )

    def _check_area(self, area: Area) -> None:
        """Refuse an area beyond the picture, or around which the input cannot be kept."""
        source, shape = self.source, self.source.shape
        if source.kind is not Kind.PICTURE:
            raise InvalidParameter(
                "Only pictures are filtered within a region.", "Filter the whole volume."
            )
        if self._own_shape != shape:
            raise InvalidParameter(
                "Within a region, the result must have the size and the colours of the input.",
                "Choose another border, or do not convert to greyscale.",
            )
        if area.region(*shape[:2]) is None:
            raise InvalidParameter(
                f"The {area.describe()} lies outside of {source.title}.",
                "Move the region, or filter the whole picture.",
            )

    def _check_region(self, region: Region | Box) -> None:
        """Refuse a region outside of the result, or of a filter that needs the whole picture."""
        spec = self.step.filter
        obstacle = spec.uncroppable(self.step.parameters)
        if self.by_slices:
            obstacle = "it runs slice by slice"
        if isinstance(region, Box):
            obstacle = "" if self.has_boxes else "it filters the source as a whole"
        if self.then:
            obstacle = "other steps follow it"
        if obstacle:
            raise InvalidParameter(
                f"{spec.name} cannot be computed for a part of the result: {obstacle}.",
                "Run it on the whole.",
            )
        if not region.fits(self.whole_shape):
            size = "×".join(str(side) for side in reversed(self.whole_shape[:-1]))
            raise InvalidParameter(
                f"{region.describe()} exceed the result of {size} {self.source.unit}.",
                "Choose a part of the result.",
            )

    def _check_slices(self) -> None:
        """Refuse slices that would become smaller, as border ``valid`` makes them, or coloured."""
        step = self.step
        if step.border is Border.VALID:
            raise InvalidParameter(
                "Slices have to keep their size, and border “valid” makes them smaller.",
                "Choose another border.",
            )
        shape = list(self.scan.volumes[0].voxels.shape)
        shape[step.axis] = 1
        one = (*(side for axis, side in enumerate(shape) if axis != step.axis), 1)
        if step.filter.output_shape(one, step.parameters, step.border)[-1] > 1:
            raise InvalidParameter(
                f"{self._describe_one(None)}, makes colours, and slices have to stay grey.",
                "Choose other settings.",
            )

    def at(self, options: RunOptions) -> Request:
        return replace(self, options=options)

    @cached_property
    def work(self) -> Hashable:
        """The computation: equal for requests with the same whole result, wherever they run."""
        first = self.step if self.needs_estimates else self.step.fixed
        steps = ((first, self.source), *((each.step, each.source) for each in self.followers()))
        return self.source.fingerprint, *(settings_of(*each) for each in steps)

    @cached_property
    def cost_key(self) -> str:
        """It decides the time: runs that agree differ in size, part and content only."""
        return "; then ".join(each.cost_at(each.options) for each in (self, *self.followers()))

    def cost_at(self, options: RunOptions) -> str:
        """Return the `cost_key` that the first step would have with other options."""
        spec, parameters = self.step.filter, self.step.parameters
        kind = Device.GPU if options.device is Device.EMULATED else options.device
        level = options.level or next((each.id for each in reversed(spec.levels(kind))), "")
        parts = [
            options.device.value,
            level,
            spec.id,
            *spec.work_per_pixel(parameters),
            _type_name(self.source.dtype),
            f"{self.source.shape[-1]} channels",
        ]
        if len(self.passes()) > 1:
            parts.append("to grey")
        if spec.whole(parameters):  # time is not proportional to the pixels
            parts.append(f"whole, {math.prod(self.source.shape)}")
        if self.step.within is not None:  # a part of the pixels is filtered
            parts.append(self.step.within.format())
        return ", ".join((*parts, *_limits(spec, level, options)))

    @property
    def image(self) -> Image:
        assert isinstance(self.source, Image)
        return self.source

    @property
    def scan(self) -> Scan:
        assert isinstance(self.source, Scan)
        return self.source

    @property
    def is_grey(self) -> bool:
        """Whether the filter gets no colours."""
        return self.step.grey or self.source.is_grey

    @property
    def by_slices(self) -> bool:
        """Whether a filter for pictures runs on each slice of volumes."""
        return self.step.filter.kind is Kind.PICTURE and self.source.kind is Kind.VOLUME

    @property
    def has_boxes(self) -> bool:
        """Whether boxes of the result can be computed, on the CPU: it is a volume."""
        if self.source.kind is not Kind.VOLUME:
            return False
        return self.by_slices or self.step.filter.crop.boxes

    @property
    def target(self) -> Source:
        """A source in the shape of the result, whose types the result gets."""
        return self.scan.part(self.region) if isinstance(self.region, Box) else self.source

    @property
    def known(self) -> Mapping[str, Any]:
        """The parameters together with the measurements for them."""
        step, measured, choice = self.step, self.measured, self.step.filter.noise
        known = {**step.parameters, **measured.values} if measured else step.parameters
        if step.filter.is_in_3d:
            return {**known, **_facts_of(self.scan.volumes[0], step)}
        return known if choice is None or self.noise is None else {**known, choice.key: self.noise}

    def passes(self) -> tuple[Pass, ...]:
        """Return the filters to run, each on the output of the last.

        There are two where the source is converted to greyscale first. Volumes have no colours.
        """
        step = self.step
        last = Pass(step.filter, self.known, step.border)
        if not step.grey or self.source.is_grey:
            return (last,)
        return grey_first(), last

    @property
    def output_shape(self) -> tuple[int, ...]:
        shape, region = self.whole_shape, self.region
        if isinstance(region, Box):
            shape = (*region.sides, *shape[3:])
        elif region is not None:
            shape = (region.height, region.width, *shape[2:])
        if self.reduction > 1:
            shape = (-(-shape[0] // self.reduction), -(-shape[1] // self.reduction), *shape[2:])
        return shape

    @property
    def whole_shape(self) -> tuple[int, ...]:
        return self.shapes[-1]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shape of each step's result, as `whole_shape`."""
        return [self._own_shape, *(each._own_shape for each in self.followers())]

    @property
    def needs_estimates(self) -> bool:
        """Whether numbers of the step are still to be estimated."""
        return bool(self.step.estimates) and not self.estimated

    def computed_by(self, stand_in: str | None) -> Request:
        """Return this very request, or one that names another method which took its place."""
        return self if stand_in == self.stand_in else replace(self, stand_in=stand_in)

    def alone(self, number: int, source: Source) -> Request:
        """Return the request for one of the steps, counted from 1, on `source`."""
        if number > 1:
            next_ = self.then[number - 2]
            return Request(
                source, next_.step, next_.options, live=self.live, stand_in=self.stand_in
            )
        if not self.then and not self.recipe and source is self.source:
            return self
        return replace(self, source=source, reference=None, then=(), done=(), recipe=False)

    def prefix(self, number: int) -> str:
        """Return the name of a step, counted from 1, in errors; empty where it is clear."""
        name = (self.then[number - 2].step if number > 1 else self.step).filter.name
        if self.recipe:
            return f"Step {number}, {name}: " if self.then else ""
        return f"{name}, a later step: " if number > 1 else ""

    @cached_property
    def _own_shape(self) -> tuple[int, ...]:
        shape = self.source.shape
        if not self.by_slices:
            for spec, parameters, border in self.passes():
                shape = spec.output_shape(shape, parameters, border)
        return shape

    def followers(self) -> Iterator[Request]:
        """Yield a request for each of the further steps, on a stand-in for its input.

        Raises `InvalidParameter` if a step cannot work on the output of the one before; the message
        names it.
        """
        if not self.then:
            return
        source, shape = self.source, self._own_shape
        for number, each in enumerate(self.then, 2):
            source = source.stand_in(shape)
            with naming(self.prefix(number)):
                request = Request(source, each.step, each.options)
            yield request
            shape = request._own_shape

    def describe(self, estimates: Mapping[str, Any] | None = None) -> str:
        """Return the settings in words, without device and level.

        - `estimates`: values that have been estimated.
        """
        text = self._describe_one(estimates)
        if self.by_slices:
            return f"{text}, slice by slice across {AXES[self.step.axis]}"
        return text

    def chips(self, estimates: Mapping[str, Any] | None = None) -> tuple[Chip, ...]:
        """Return the settings as chips, without device and level.

        - `estimates`: values that were estimated by now.
        """
        step, block = self.step, self.options.block
        chips = list(step.filter.chips(step.parameters, estimates, grey=self.is_grey))
        if len(step.filter.borders) > 1:
            usual = step.border is step.filter.borders[0]
            chips.append(Chip("border", f"{step.border} border", usual))
        if not self.source.is_grey:
            text = "in grey" if step.grey else "in colour"
            chips.append(Chip("grey", text, not step.grey))
        if self.by_slices:
            chips.append(Chip("axis", f"slices across {AXES[step.axis]}", step.axis == 0))
        if step.within is not None:
            chips.append(Chip("within", f"only {step.within.describe()}", False))
        if block is not None:
            chips.append(Chip("block", f"blocks of {block_name(block)}", False))
        return tuple(chips)

    def _describe_one(self, estimates: Mapping[str, Any] | None) -> str:
        """Describe the request, or that for one slice."""
        step, block = self.step, self.options.block
        parts = [step.filter.describe(step.parameters, estimates, grey=self.is_grey)]
        if len(step.filter.borders) > 1:
            parts.append(f"{step.border} border")
        if step.grey and not self.by_slices:
            parts.append("in grey")
        if step.within is not None:
            parts.append(f"only {step.within.describe()}")
        if block is not None:
            parts.append(f"blocks of {block_name(block)}")
        return ", ".join(parts)


def _facts_of(volume: Volume, step: Step) -> dict[str, Any]:
    """Return the facts about a volume that a filter with a mask of voxels has for parameters.

    As slice by slice, mid-grey of bytes is 128, and of all else half of white; and results below
    zero are not clipped where voxels are.
    """
    facts: dict[str, Any] = {WHOLE: volume.is_whole}
    negative = step.parameters.get(SIGN)
    if negative == "offset":
        half = 128.0 if is_bytes(volume.voxels.dtype) else volume.levels.span / 2
        facts[MIDDLE] = half
    if negative == "clip" and volume.value_range[0] < 0:
        facts[SIGN] = "keep"
    return facts


def alike(first: Request, second: Request) -> bool:
    """Return whether two requests have the same whole result, and take the same time for it."""
    if first.source is not second.source:
        return False
    if (
        first.step is second.step
        and first.options is second.options
        and first.then is second.then
        and first.estimated is second.estimated
    ):
        return True  # it is asked several times for each change of a setting
    return first.work == second.work and first.cost_key == second.cost_key


def _limits(spec: FilterSpec, level: str, options: RunOptions) -> Iterator[str]:
    """Yield the options that change the time of a run at this level."""
    device = options.device
    if options.block is not None and device is not Device.CPU:
        automatic = device is Device.AUTO and not options.level
        where = spec.levels(Device.GPU)[-1].id if automatic and spec.levels(Device.GPU) else level
        if takes_block(spec, where):
            yield f"blocks of {block_name(options.block)}"
    if device in (Device.AUTO, Device.GPU):
        if options.memory_limit:
            yield f"{options.memory_limit} bytes"
        if options.gpus:
            yield f"{options.gpus} GPUs"
        if options.cold:
            yield "cold"
        if options.repeat > 1:
            yield f"{options.repeat} times"


@functools.lru_cache
def _type_name(dtype: np.dtype[Any]) -> str:
    """Return ``uint8``; NumPy takes 10 µs to find it."""
    return dtype.name
