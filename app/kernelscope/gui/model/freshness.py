"""Whether the output belongs to the settings, and which part of it to compute next.

A live change shows the visible part of the result first, at full resolution, and the whole when
the hand rests. Filters that are too slow for that show a part from the middle, or wait for Run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any

from kernelscope.engine.options import Device
from kernelscope.engine.region import Region, window
from kernelscope.engine.request import Request, alike
from kernelscope.images.source import Source
from kernelscope.images.volume import AXES
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind

AT_ONCE = 0.003
"""Seconds that a whole result may take to be computed with every change. The part in view of a
larger one is there sooner, also on a card, where most of the time of the whole is its copy."""

MOVING = 0.1
"""Seconds that a part may take while the settings change: ten pictures a second still feel
attached to the hand."""

RESTING = 3.0  # seconds that a whole result may take without Run, once the user pauses

LOOKING = 12.0
"""Seconds that the rest of the view, or as much of it as there is time for, may take without Run,
once the user pauses and a part of it is shown: a photograph is judged by all that is in view, and
not by a piece of it."""

_MORE = 5 / 4
"""Factor by which a part has to grow to be worth computing again with all that it has already."""

EMULATING = 1.0  # seconds that a run on the emulated GPU may take without Run, once the user pauses

EMULATED_SIDE = 48
"""Side in pixels of the first part on the emulated GPU: 25 blocks of 16×16 with a small halo."""

PROBE_SIDE = 96
"""Side in pixels of the first part of a filter whose cost is unknown: the slowest non-local means
of the samples takes a quarter of a second for it on two cores."""

_PROBE_OF_SLICE = 48  # the same for a slice of a volume, each voxel of which costs more

_SLICES = "slices across z"  # those that cost least for each voxel

_SMALLEST_SIDE = 32  # a smaller preview shows nothing: it waits for Run

_KINDS = 256  # kinds of runs whose pace is kept

_ENOUGH = 3
"""Runs of a kind, the quickest of which gives the pace: any one may have waited, for code that was
loaded at the same time, or for other programs."""


class Freshness(StrEnum):
    PREVIEW = "preview"  # reduced, or by another method
    PART = "part"
    EXACT = "up to date"
    OUT_OF_DATE = "out of date"

    @property
    def symbol(self) -> str:
        """A shape for it, since colour is never the only signal."""
        return {"preview": "◐", "part": "◐", "up to date": "●", "out of date": "○"}[self]


def freshness(shown: Request | None, wanted: Request | None) -> Freshness | None:
    """Return how the output `shown` relates to `wanted`, which is None for invalid settings."""
    if shown is None:
        return None
    if wanted is None or not alike(shown, wanted):
        return Freshness.OUT_OF_DATE
    if shown.reduction > 1 or shown.stand_in:
        return Freshness.PREVIEW
    return Freshness.EXACT if shown.region is None else Freshness.PART


def describe_part(shown: Request) -> str:
    """Return which part of the result of a request is shown; empty for all of it."""
    region = shown.region
    height, width = shown.whole_shape[:2]
    if shown.stand_in:
        return f"by {shown.stand_in}"
    if isinstance(region, Region):
        return f"{region.width}×{region.height} of {width}×{height} pixels"
    if shown.reduction > 1:
        return f"{width}×{height} pixels, reduced {shown.reduction}:1"
    return ""


class Pace:
    """The time that live runs took, from which that of the next one follows.

    Time is taken to be proportional to the pixels: for parts larger than the last ones that is
    too much, since every run has an overhead, so that parts grow step by step.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[int, float]]] = {}
        """Pixels and seconds of the last runs of each kind."""
        self._uncompiled: set[str] = set()
        """Kinds whose last run did without compiled code."""

    def record(self, request: Request, seconds: float, *, uncompiled: bool = False) -> None:
        key = _kind(request)
        runs = self._known.pop(key, [])
        if uncompiled is not (key in self._uncompiled):
            runs = []  # they say nothing about the other code
        (self._uncompiled.add if uncompiled else self._uncompiled.discard)(key)
        self._known[key] = [*runs, (pixels_of(request), seconds)][-_ENOUGH:]
        while len(self._known) > _KINDS:
            del self._known[next(iter(self._known))]

    def forget_uncompiled(self) -> None:
        """Forget how long runs took without compiled code, which may be there now."""
        for key in self._uncompiled:
            self._known.pop(key, None)
        self._uncompiled.clear()

    def is_uncompiled(self, request: Request) -> bool:
        """Return whether `expect` knows runs of a step without compiled code only."""
        return any(_kind(each) in self._uncompiled for each in _steps_of(request))

    def is_sure(self, request: Request) -> bool:
        """Return whether there were enough runs to refuse `request` for its time."""
        return all(len(self._known.get(_kind(each), ())) >= _ENOUGH for each in _steps_of(request))

    def expect(self, request: Request) -> float | None:
        """Return the seconds of the steps whose results are not known; None for an unknown kind."""
        if request.then:
            times = [self.expect(step) for step in _steps_of(request)]
            return None if None in times else sum(filter(None, times))
        runs = self._known.get(_kind(request))
        if runs is None and self.is_bound(request):
            runs = self._known[f"{_kind(request)}, {_SLICES}"]
        if runs is None:
            return None
        return pixels_of(request) * min(seconds / pixels for pixels, seconds in runs)

    def is_bound(self, request: Request) -> bool:
        """Return whether `expect` knows only slices of the volume: the whole takes less time."""
        kind = _kind(request)
        return kind not in self._known and f"{kind}, {_SLICES}" in self._known


def _steps_of(request: Request) -> tuple[Request, ...]:
    """Return the requests of the steps whose results are not known."""
    if not request.then:
        return (request,)
    return (replace(request, then=(), done=()), *request.followers())[len(request.done) :]


def _kind(request: Request) -> str:
    kind = request.cost_key
    if isinstance(request.region, Box) and not request.by_slices:
        # A thin box costs more for each voxel, and how much more depends on its direction.
        return f"{kind}, {_across(request.region)}"
    return f"{kind}, reduced" if request.reduction > 1 else kind


def _across(box: Box) -> str:
    return f"slices across {AXES[box.sides.index(min(box.sides))]}"


def pixels_of(request: Request) -> int:
    region, step = request.region, request.step
    shape = request.source.shape
    if region is None:
        return math.prod(shape[:-1])
    if isinstance(region, Box):
        return region.pixels
    spec = step.filter
    part = window(region, shape, spec.radius(step.parameters), step.border, spec.crop)
    return len(part.rows) * len(part.columns)


def is_worthwhile(
    shown: Region | Box | None, new: Region | Box | None, visible: Region | Box | None
) -> bool:
    """Return whether `new` shows enough more than `shown`: runs change the affordable part."""
    if shown is None or new is None or type(shown) is not type(new):
        return True
    before: Any = shown
    after: Any = new
    if before.contains(after):
        return False
    return new == visible or not after.contains(before) or new.pixels >= _MORE * shown.pixels


def run_to_measure(wanted: Request, visible: Region | Box | None, pace: Pace) -> Request | None:
    """Return the request that shows whether a run has to wait for its time; None if that is sure.

    It is the first one for an unknown cost. One that took longer than any run may take unasked is
    believed at once.
    """

    def expect(request: Request) -> float | None:
        return pace.expect(request) if wanted.then and pace.is_sure(request) else None

    request = next_run(wanted, visible, expect, resting=True)
    if request is None or pace.is_sure(request) or (pace.expect(request) or 0.0) > RESTING:
        return None
    return request


def next_run(  # noqa: C901 - one list of cases, in order
    wanted: Request,
    visible: Region | Box | None,
    expect: Callable[[Request], float | None],
    *,
    resting: bool,
    looking: bool = False,
    reduction: int = 1,
) -> Request | None:
    """Return the request to compute next for the settings; None to wait for Run.

    `wanted`: that of the settings, for the whole. `visible`: the part of its result on the screen;
    None if parts cannot be shown. `expect`: returns the seconds that a request should take, or
    None. `reduction`: factor by which the device itself can reduce the result to the size at which
    it is seen. `resting`: whether the settings have not changed for a moment. `looking`: whether as
    much as a pause has time for is shown, so that the rest of the view may take longer.
    """
    if wanted.options.device is Device.EMULATED:
        return _emulated(wanted, visible, expect) if resting else None
    spec, whole = wanted.step.filter, expect(wanted)
    if (
        reduction > 1
        and not wanted.then
        and not resting
        and visible == Region.all_of(wanted.whole_shape)
    ):
        small = replace(wanted, reduction=reduction)
        cost = expect(small) or whole
        if cost is not None and cost <= MOVING:
            return small
    if whole is not None and whole <= (RESTING if resting else AT_ONCE):
        return wanted
    if wanted.then and whole is None:
        measuring = _measuring(wanted, expect)
        if measuring is not None:
            return measuring
    limit = MOVING if not resting else LOOKING if looking else RESTING
    # All of the view follows at a pause: a part that is nearly all of it would double the time.
    of_view = _MORE * RESTING if limit == RESTING else limit
    if isinstance(visible, Box):
        return _slice(wanted, visible, expect, limit, of_view)
    if wanted.by_slices or wanted.then or spec.uncroppable(wanted.step.parameters):
        return _whole_or_nothing(wanted, whole, expect)
    if visible is None:
        if whole is not None:
            return wanted if whole <= MOVING else None
        return _part(wanted, _middle(Region.all_of(wanted.whole_shape), PROBE_SIDE * PROBE_SIDE))
    cost = expect(replace(wanted, region=visible))
    if cost is None:
        return _part(wanted, _middle(visible, PROBE_SIDE * PROBE_SIDE))
    # While the hand rests, larger parts show that the cost of small ones was mostly overhead.
    if cost <= of_view:
        return _part(wanted, visible)
    pixels = visible.pixels * limit / cost
    part = _middle(visible, pixels)
    least = min(_SMALLEST_SIDE, visible.height, visible.width)
    return _part(wanted, part) if min(part.height, part.width) >= least else None


def _emulated(
    wanted: Request, visible: Region | Box | None, expect: Callable[[Request], float | None]
) -> Request | None:
    """Return the whole or the part in view, if emulating it is quick; first a probe."""
    whole = expect(wanted)
    if whole is not None and whole <= EMULATING:
        return wanted
    crops = not wanted.then and not wanted.step.filter.uncroppable(wanted.step.parameters)
    if not isinstance(visible, Region) or not crops:
        return None
    cost = expect(replace(wanted, region=visible))
    if cost is None:
        return _part(wanted, _middle(visible, EMULATED_SIDE * EMULATED_SIDE))
    return _part(wanted, visible) if cost <= EMULATING else None


def _slice(
    wanted: Request,
    box: Box,
    expect: Callable[[Request], float | None],
    limit: float,
    of_all: float,
) -> Request | None:
    """Return the request for a slice of a volume, or for as much of it as there is time for.

    - `limit`, `of_all`: seconds that a part and all of it may take.
    """
    request = replace(wanted, region=box)
    cost = expect(request)
    if wanted.by_slices and wanted.step.filter.uncroppable(wanted.step.parameters):
        return request if cost is None or cost <= limit else None
    if cost is None:
        side = PROBE_SIDE if wanted.by_slices else _PROBE_OF_SLICE
        return replace(wanted, region=box.middle((side, side, side)))
    if cost <= of_all:
        return request
    part = _middle_of_slice(box, limit / cost)
    both = zip(part.sides, box.sides, strict=True)
    seen = all(side >= min(_SMALLEST_SIDE, whole) for side, whole in both)
    return replace(wanted, region=part) if seen else None


def _middle_of_slice(box: Box, share: float) -> Box:
    """Return the middle of a slice, about that share of its voxels, and no narrow strip of it."""
    _, short, long = sorted(range(3), key=lambda axis: box.sides[axis])
    sides = list(box.sides)
    least = min(_SMALLEST_SIDE, sides[short])
    sides[short] = max(least, round(sides[short] * math.sqrt(share)))
    sides[long] = int(share * box.pixels / sides[short])
    return box.middle((sides[0], sides[1], sides[2]))


def _measuring(wanted: Request, expect: Callable[[Request], float | None]) -> Request | None:
    """Return a part of one of several steps, not to be shown, whose pace is unknown.

    Of volumes only the first step is measured.
    """
    if wanted.source.kind is Kind.PICTURE:
        unknown = (each for each in _steps_of(wanted) if expect(each) is None)
        parts = (_measured_part(each, wanted.source) for each in unknown)
        return next(filter(None, parts), None)
    first = replace(wanted, then=(), done=())
    if wanted.done or not first.has_boxes or expect(first) is not None:
        return None
    shape, axis = first.source.shape, first.step.axis if first.by_slices else 0
    return _slice(first, Box.slice_of(shape, axis, shape[axis] // 2), expect, RESTING, RESTING)


def _measured_part(step: Request, source: Source) -> Request | None:
    """Return a part of a step of a picture, `source`, that shows its pace; None if none can."""
    if step.step.filter.uncroppable(step.step.parameters):
        return None
    if step.source.shape == source.shape:  # with noise: the stand-in for its input is black
        step = replace(step, source=source)
    part = _middle(Region.all_of(step.whole_shape), PROBE_SIDE * PROBE_SIDE)
    cropped = _part(replace(step, estimated=True), part)  # numbers that were not matter little
    return cropped if cropped.region is not None else None


def _whole_or_nothing(
    wanted: Request, cost: float | None, expect: Callable[[Request], float | None]
) -> Request | None:
    """Return the request for the whole where it is quick, or a first one will show its cost."""
    if cost is None:
        steps = _steps_of(wanted)
        slow = any(each.step.filter.whole(each.step.parameters) for each in steps)
        slow = slow or sum(filter(None, map(expect, steps))) > RESTING
        return None if slow or wanted.source.kind is Kind.VOLUME else wanted
    return wanted if cost <= MOVING else None


def _part(wanted: Request, part: Region) -> Request:
    """Return the request for a part of the result, or for the whole if that is all of it."""
    if part == Region.all_of(wanted.whole_shape):
        return wanted
    return replace(wanted, region=part)


def _middle(visible: Region, pixels: float) -> Region:
    """Return the middle of a region, of about this many pixels and of its proportions."""
    scale = min(1.0, math.sqrt(pixels / (visible.height * visible.width)))
    height = max(1, round(visible.height * scale))
    width = max(1, round(visible.width * scale))
    return Region(
        visible.top + (visible.height - height) // 2,
        visible.left + (visible.width - width) // 2,
        height,
        width,
    )
