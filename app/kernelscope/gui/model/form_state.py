"""The settings of a run as texts and values, to be compared and restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kernelscope.engine.request import Request
from kernelscope.spec.blocks import block_name
from kernelscope.spec.samples import Kind

MIB = 1 << 20

_OPTIONS = ("device", "level", "block", "repeat", "memory_limit")


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
        Texts of the options of a run, see `RunOptions.texts`; an omitted option keeps its value.
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


def made_with(request: Request, arguments: Mapping[str, Any]) -> bool:
    """Return whether `request` was made with `arguments` (of `ParameterPanel.arguments`)."""
    return (
        request.step.filter.id == arguments["filter_id"]
        and dict(request.step.parameters) == arguments["parameters"]
        and request.step.grey == arguments.get("grey", False)
        and request.step.border == arguments["border"]
        and all(getattr(request.options, name) == arguments[name] for name in _OPTIONS)
    )
