"""The settings of a run as texts and values, to be compared and restored."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.errors import AppError
from kernelscope.gui.model.freshness import alike
from kernelscope.spec.blocks import block_name
from kernelscope.spec.samples import Kind

MIB = 1 << 20


@dataclass(frozen=True)
class FormState:
    """The settings in the panel.

    Attributes
    ----------
    parameters : mapping
        Valid values of the filter's parameters.
    automatic : tuple of str
        The parameters that every run estimates.
    options : mapping
        Texts of the options of a run, see `RunOptionsForm.texts`; an option that is left out
        keeps its value.
    """

    filter_id: str
    parameters: Mapping[str, Any]
    automatic: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request, automatic: tuple[str, ...] | None = None) -> FormState:
        """Return the settings that `request` was made with.

        Parameters
        ----------
        automatic : tuple of str, optional
            In place of the parameters that were estimated for it.
        """
        settings = RunSettings(request.step, request.options)
        automatic = request.estimated if automatic is None else automatic
        return cls.of_settings(settings, request.source.kind, automatic)

    @classmethod
    def of_settings(
        cls, settings: RunSettings, kind: Kind, automatic: tuple[str, ...] = ()
    ) -> FormState:
        """Return these settings of a run on pictures or on volumes."""
        step, options = settings
        texts = {
            "device": options.device.value,
            "level": options.level or "",
            "border": step.border.value,
            "block": block_name(options.block) if options.block else "",
            "repeat": str(options.repeat),
            "memoryLimit": str((options.memory_limit or 0) // MIB),
        }
        if kind is Kind.PICTURE:  # volumes are grey
            texts["grey"] = "on" if step.grey else "off"
            texts["within"] = step.within.format() if step.within is not None else ""
        return cls(step.filter.id, dict(step.parameters), automatic, texts)


class RunSettings(NamedTuple):
    """The settings of the panel: a step, and how to run it."""

    step: Step
    options: RunOptions


def made_with(request: Request, settings: RunSettings) -> bool:
    """Return whether `request` has these settings; the axis of slices is not one of them."""
    step = replace(settings.step, axis=request.step.axis)
    with contextlib.suppress(AppError):  # settings that the source does not fit
        return alike(request, replace(request, step=step, options=settings.options))
    return False
