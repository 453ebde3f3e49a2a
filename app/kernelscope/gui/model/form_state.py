"""The settings of a run as texts and values, to be compared and restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
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
    def of(cls, request: Request, automatic: tuple[str, ...] = ()) -> FormState:
        """Return the settings that `request` was made with."""
        options = {
            "device": request.options.device.value,
            "level": request.options.level or "",
            "border": request.step.border.value,
            "block": block_name(request.options.block) if request.options.block else "",
            "repeat": str(request.options.repeat),
            "memoryLimit": str((request.options.memory_limit or 0) // MIB),
        }
        if request.source.kind is Kind.PICTURE:  # volumes are grey
            options["grey"] = "on" if request.step.grey else "off"
        return cls(request.step.filter.id, dict(request.step.parameters), automatic, options)

    def but(self, names: tuple[str, ...]) -> FormState:
        """Return the same without the values of the parameters of these names."""
        kept = {name: self.parameters[name] for name in self.parameters if name not in names}
        return replace(self, parameters=kept)


class RunSettings(NamedTuple):
    """The settings of the panel: a step, and how to run it."""

    step: Step
    options: RunOptions


def made_with(request: Request, settings: RunSettings) -> bool:
    """Return whether `request` has these settings; the axis of slices is not one of them."""
    step, options = settings
    step = replace(step, axis=request.step.axis)
    if request.source.kind is Kind.VOLUME:  # which have no colours
        step = replace(step, grey=request.step.grey)
    return (request.step, request.options) == (step, options)
