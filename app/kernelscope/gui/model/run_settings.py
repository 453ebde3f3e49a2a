"""The settings of a run as one value, to be compared and shown again."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from kernelscope.base.errors import AppError
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.gui.model.freshness import alike
from kernelscope.images.source import Source
from kernelscope.schema.samples import Kind


@dataclass(frozen=True)
class RunSettings:
    """A step, how to run it, and which of its numbers every run estimates again."""

    step: Step  # all of its parameters have numbers, the automatic ones those of the last estimate
    options: RunOptions
    automatic: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request) -> RunSettings:
        """Return the settings that `request` was made with; the axis of slices is not one."""
        step = replace(request.step, axis=0)
        if request.source.kind is Kind.VOLUME:  # which have no colours
            step = replace(step, grey=False)
        return cls(step, request.options, request.estimated)

    @classmethod
    def of_open(cls, step: Step, options: RunOptions) -> RunSettings:
        """Return the settings of a step that may leave numbers to be estimated."""
        return cls(step.with_numbers(), options, step.estimates)

    @property
    def filter_id(self) -> str:
        """The filter of the step."""
        return self.step.filter.id

    @property
    def open_step(self) -> Step:
        """The step with its automatic numbers left to be estimated."""
        return self.step.left_open(self.automatic)

    def request(self, source: Source) -> Request:
        """Return a checked request for `source`; raises `InvalidParameter`."""
        return Request(source, self.step, self.options, estimated=self.automatic)

    def made(self, request: Request) -> bool:
        """Return whether `request` has these settings; the axis of slices is not one of them."""
        step = replace(self.step, axis=request.step.axis)
        with contextlib.suppress(AppError):  # settings that the source does not fit
            return alike(request, replace(request, step=step, options=self.options))
        return False
