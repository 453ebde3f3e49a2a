"""Trying an edited kernel: on a part of the open picture, or in every case of the contract."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.trial.compiling import header_text
from kernelscope.backends.trial.on_card import ORIGINAL, OWN, REPEATS
from kernelscope.backends.trial.parent import TrialOutcome, try_out
from kernelscope.backends.trial.protocol import (
    CARD,
    CHECKED,
    EMULATED,
    TRACED,
    CompilerMessage,
    Ending,
    TrialJob,
    TrialLimits,
    TrialPlan,
    TrialReport,
    Work,
)
from kernelscope.base.errors import AppError, InvalidImage, InvalidParameter
from kernelscope.base.installed import install_command
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.gui.model.times import duration
from kernelscope.images.image import DTYPES, Image
from kernelscope.images.source import Source
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import SINGLE_BLOCK, Level
from kernelscope.traffic.trace import Trace

_logger = logging.getLogger(__name__)

_INSTALL = f"Install g++, or: {install_command('emulator')}"

SHAPES = ((1, 1), (3, 131), (17, 33))
"""Of the pictures of the contract's cases: as in its tests, a few of them."""

SIDE = 256  # longest side of the part of the picture; the emulated GPU filters it within a second

CARD_SIDE = 4096  # the same on a card, where a small part shows only how long a launch takes

CHECKED_OPERATIONS = 5e7
"""Operations of a kernel in the part whose accesses to memory are checked: 3 s of two cores."""

CHECKED_SIDES = 24, 96
"""Least and longest side of that part: a few blocks, so that their edges are in it."""

_CHECK_LIMITS = TrialLimits(run=15.0)

_RUN = (Ending.DONE, Ending.FAULT, Ending.DIED)  # the endings of a kernel that ran


def part_of(source: Source, side: int = SIDE) -> Image:
    """Return the middle of a picture, without alpha; raises `AppError` for volumes."""
    if not isinstance(source, Image):
        raise AppError(
            "Kernels for volumes can be compiled here, but not run.",
            "Open a picture and choose a filter for pictures.",
        )
    planes = source.planes
    height, width, channels = planes.shape
    top, left = max(0, height - side) // 2, max(0, width - side) // 2
    colours = channels - 1 if channels in (2, 4) else channels
    part = planes[top : top + side, left : left + side, :colours]
    return Image.from_array(np.ascontiguousarray(part), "part of the picture")


def work_for(request: Request, level: Level, side: int = SIDE) -> Work:
    """Return the data for trying a level on a part of the picture, up to `side` long.

    Raises `AppError` for a volume, or a plan that needs the host in between.
    """
    step = request.step
    part = Request.create(
        part_of(request.source, side),
        step.filter.id,
        step.parameters,
        border=step.border,
        grey=step.grey,
        level=level.id,
        block=request.options.block,
    )
    plan = TrialPlan.of(part, level)
    return Work(part.source.planes, plan, plan)


def card_work_for(request: Request, level: Level) -> Work:
    """Return the data for a trial on a card, with the other levels; raises as `work_for`."""
    work = work_for(request, level, CARD_SIDE)
    others = {}
    for each in request.step.filter.levels(Device.GPU):
        if each not in (level, SINGLE_BLOCK):  # that one may take minutes
            with contextlib.suppress(AppError):  # this one needs the host in between
                others[each.name] = work_for(request, each, CARD_SIDE).plan
    return replace(work, others=others)


def small_work_for(request: Request, level: Level) -> Work:
    """Return the data for the slow check of accesses, small unless that runs other kernels."""
    usual = work_for(request, level)
    channels = usual.source.shape[-1]
    operations = channels * sum(each.operations_per_sample for each in usual.plan.plan.launches)
    side = math.isqrt(int(CHECKED_OPERATIONS / max(operations, 1.0)))
    small = work_for(request, level, min(max(side, CHECKED_SIDES[0]), CHECKED_SIDES[1]))
    return small if _kernels(small) == _kernels(usual) else usual


def _kernels(work: Work) -> list[str]:
    return [launch.kernel for launch in work.plan.plan.launches]


def cases_for(request: Request, level: Level) -> list[Work]:
    """Return the cases of the contract: every type, border and channels, in odd sizes."""
    part_of(request.source)
    return list(_cases(request, level))


def _cases(request: Request, level: Level) -> Iterator[Work]:
    step = request.step
    for dtype in DTYPES:
        for border in step.filter.borders:
            for channels in (1, 3):
                for shape in SHAPES:
                    pixels = _pixels((*shape, channels), dtype)
                    try:
                        case = Request.create(
                            Image.from_array(pixels),
                            step.filter.id,
                            step.parameters,
                            border=border,
                            level=level.id,
                            block=request.options.block,
                        )
                        plan = TrialPlan.of(case, level)
                    except (InvalidImage, InvalidParameter):  # not offered: nothing to compare
                        continue
                    colours = "grey" if channels == 1 else "RGB"
                    title = f"{dtype}, {colours}, border {border}, {shape[1]} × {shape[0]}"
                    yield Work(case.source.planes, plan, plan, title)


def _pixels(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    random = np.random.default_rng(shape)
    white = 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)
    pixels = random.uniform(0, white, shape)
    extreme = random.random(shape)
    pixels[extreme < 0.15] = 0
    pixels[extreme > 0.85] = white
    return pixels.astype(dtype)


@dataclass(frozen=True)
class TrialSubject:
    # Under which the versions are kept.
    filter_id: str
    level_id: str
    file: str  # name of the source
    text: str  # the program's own source
    kernel: str  # name of the function that the level launches
    defines: Mapping[str, str]  # the macros of the launch
    works: Callable[[], Sequence[Work]] | None = None
    """Returns the cases to run a version with, off the GUI thread; raises `AppError` if it can only
    be compiled."""
    cases: Callable[[], Sequence[Work]] | None = None  # returns the cases of the contract, likewise
    small: Callable[[], Work] | None = None
    """Returns the case in which its accesses to memory are checked; by default it is checked in all
    of `works`."""
    card: Callable[[], Work] | None = None
    """Returns the case to try it in on the card of this computer, if there is one."""
    goal: float | None = None
    """Most cells that the kernel may read from global memory for each pixel."""
    tolerance: int = 0  # by how many levels a pixel may differ
    reference: str = ""
    """Filter of the program to compare with; by default that of the name of the file."""
    template: str = ""  # a source to begin a kernel of one's own with; empty if there is none
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Of the filter, for the test of a new one."""


@dataclass(frozen=True, eq=False)
class Tried:
    outcome: TrialOutcome
    obstacle: str = ""  # the reason if it was only compiled
    titles: tuple[str, ...] = ()  # of the cases, where they have titles
    place: str = ""  # the case in which it was stopped, as a sentence; or empty
    memory: str = ""  # the fault of its accesses to memory, in a sentence; or empty
    findings: tuple[CompilerMessage, ...] = ()  # the wrong accesses, at their lines
    loads: tuple[int, ...] = ()
    """For each case the cells read from global memory, if its accesses were checked in all."""
    unchecked: str = ""  # why its accesses to memory were not checked, as a sentence; or empty
    versions: tuple[Version, ...] = ()  # the kernel in each case, for a look at single pixels


@dataclass(frozen=True, eq=False)
class Version:
    """An edited kernel and a picture that it was run on."""

    job: TrialJob
    work: Work

    def trace(self, x: int, y: int, token: CancelToken) -> tuple[Trace, int]:
        """Return the trace of a pixel and its thread; `AppError` if the kernel cannot be traced."""
        job = replace(self.job, target=TRACED, pixel=(x, y))
        made = try_out(job, [self.work], TrialLimits(), token)
        if made.trace is None:
            raise AppError(made.report.text, made.report.hint)
        return made.trace

    def source(self, file: str) -> str:
        return self.job.text if file == self.job.name else header_text(file)


def try_subject(
    subject: TrialSubject,
    job: TrialJob,
    token: CancelToken,
    report: Callable[[int, int], None],
    *,
    graded: bool,
) -> Tried:
    """Try a version as far as possible here, `graded` in all cases of the contract.

    `report`: gets the number of the case that begins, from 1 on, and how many there are.
    """
    if subject.card is not None and not graded:
        made = _on_card(subject.card, subject, job, token)
        if made is not None:
            return made
    source = subject.cases if graded else subject.works
    if source is None:
        return Tried(try_out(job, token=token))
    try:
        works = source()
        if HostCompiler.find() is None:
            raise AppError("It was not run: that needs a C++ compiler.", _INSTALL)
    except AppError as error:
        return Tried(try_out(job, token=token), str(error))
    job = replace(job, target=EMULATED, reference=subject.reference or Path(job.name).stem)
    begun = 0

    def note(number: int) -> None:
        nonlocal begun
        begun = number
        report(number, len(works))

    outcome = try_out(job, works, TrialLimits(), token, note)
    titles = tuple(work.title for work in works)
    stopped = begun and len(works) > 1 and outcome.report.ending is not Ending.DONE
    title = titles[begun - 1] if begun else ""
    place = f"Case {begun} of {len(works)}" + (f" ({title})" if title else "")
    tried = Tried(
        outcome,
        titles=titles,
        place=f"{place}:" if stopped else "",
        versions=tuple(Version(job, each) for each in works),
    )
    return _checked(tried, subject, job, works, token)


def _on_card(
    work: Callable[[], Work], subject: TrialSubject, job: TrialJob, token: CancelToken
) -> Tried | None:
    """Try a version on the card; None if that is refused, so that it is emulated."""
    try:
        works = [work()]
    except AppError:
        return None
    job = replace(job, target=CARD, reference=subject.reference or Path(job.name).stem)
    outcome = try_out(job, works, TrialLimits(memory=0), token)  # drivers reserve addresses
    if outcome.report.ending is Ending.REFUSED:
        _logger.warning("a kernel was not tried on the card: %s", outcome.report.text)
        return None
    if HostCompiler.find() is None:
        return Tried(outcome, unchecked=f"Its accesses to memory were not checked. {_INSTALL}")
    return _checked(Tried(outcome, versions=(Version(job, works[0]),)), subject, job, works, token)


def times_of(report: TrialReport) -> str:
    if not report.times or not report.device:
        return ""
    times = dict(report.times)
    own, original = times.pop(OWN, None), times.pop(ORIGINAL, None)
    parts = [
        f"{name} {duration(seconds)}"
        for name, seconds in ((OWN, own), (ORIGINAL, original), *times.items())
        if seconds
    ]
    return f"Median of {REPEATS} launches: {', '.join(parts)}."


def _checked(
    tried: Tried, subject: TrialSubject, job: TrialJob, works: Sequence[Work], token: CancelToken
) -> Tried:
    """Return a trial with the faults of its kernel in memory, if it ran."""
    if tried.outcome.report.ending not in _RUN or token.cancelled:
        return tried
    cases = [subject.small()] if subject.small else works
    report = try_out(replace(job, target=CHECKED), cases, _CHECK_LIMITS, token).report
    if report.messages:
        return replace(tried, memory=f"{report.text} {report.hint}", findings=report.messages)
    if report.ending is Ending.DONE:
        return tried if subject.small else replace(tried, loads=report.loads)
    if tried.outcome.report.ending is not Ending.DONE:
        return tried
    return replace(tried, unchecked=f"Its accesses to memory were not checked: {report.text}")
