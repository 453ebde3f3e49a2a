"""The figures of a result in one line: its time, its rate and its quality."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelscope.base.text import significant
from kernelscope.engine.result import Judgement, Result, estimate_notices
from kernelscope.gui.model.runs import Run
from kernelscope.gui.model.times import BUSY, NOT_TIMED, VARYING, Timing, duration
from kernelscope.schema.samples import Kind

_WORTH_SHOWING = 0.1
"""Seconds of compiling that are worth showing: cached code is loaded in less."""


@dataclass(frozen=True)
class Figures:
    """The headline of a result, and a remark on how it was measured."""

    text: str  # ``2.50 ms, 105 MP/s, +3.1 dB``
    note: str  # ``CPU parallel, median of 5``
    detail: str = ""  # the figure behind a warning in `note`, which then ends with it; may be empty


def figures_of(
    result: Result,
    run: Run | None,
    quality: Judgement | None = None,
    remark: str = "one run",
) -> Figures:
    """Return the figures of a result that is shown.

    `run`: the entry of the gallery; without one the time is that of a single run. `quality`: where
    there is a reference. `remark`: how the time was taken, of a result without an entry.
    """
    unit = "MP/s" if result.request.source.kind is Kind.PICTURE else "Mvoxel/s"
    timing = Timing.of(result)
    cold = "≈ " if run is None and result.first and timing.seconds is not None else ""
    parts = [f"{cold}{duration(timing.seconds)}"]
    if timing.speed is not None:
        parts.append(f"{significant(timing.speed)} {unit}")
    else:
        remark = NOT_TIMED
    if quality is not None:
        parts.append(_describe(quality))
    if cold:
        remark = f"{remark}, the first"
    measurement = run.measurement if run is not None else remark
    where = run.where if run is not None else result.where
    note = [f"{where} while its code is prepared" if result.uncompiled else where, measurement]
    if timing.seconds is not None and result.compile_seconds >= _WORTH_SHOWING:
        note.append(f"compiled once, in {duration(result.compile_seconds)}")
    detail = ""
    if run is not None and len(run.totals.times) > 1:
        half = f"± {100 * run.totals.half:.0f} %"
        if run.totals.unsteady:
            detail = f"{half}: {run.totals.describe()}; {BUSY}"
        note.append(VARYING if detail else half)
    return Figures(", ".join(parts), ", ".join(note), detail)


def _describe(quality: Judgement) -> str:
    """Return by how much the output is better than the input, or else its PSNR."""
    before, after = quality.before, quality.after
    if not math.isfinite(after.psnr):
        return "equal to the reference"
    if before is None or not math.isfinite(before.psnr):
        return f"{after.psnr:.1f} dB"
    return describe_gain(after.psnr - before.psnr)


def describe_gain(decibels: float) -> str:
    """Return a difference of two PSNR with its sign: ``+3.1 dB``, ``±0.0 dB``."""
    if abs(decibels) < 0.05:
        return "±0.0 dB"
    return f"{decibels:+.1f} dB".replace("-", "−")


def describe_result(result: Result) -> str:
    """Return the notices of a run for the status bar; its time and place are in the headline."""
    # Estimates stand in their fields and over the output.
    estimated = estimate_notices(result.request, result.estimates)
    return "  ".join(notice for notice in result.notices if notice not in estimated)
