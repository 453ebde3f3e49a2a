"""The command ``list``: filters, their parameters, borders, levels and devices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import kernelscope
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import Parser, every_filter, open_backends, switches
from kernelscope.engine.step import ESTIMATE, default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import Parameter
from kernelscope.teach.manual import allowed, filter_name, option_of

if TYPE_CHECKING:
    from kernelscope.engine.backend import Backend


def list_filters(arguments: list[str]) -> int:
    """List filters, their parameters, borders, levels and devices."""
    parser = Parser(
        prog=f"{PROGRAM} list",
        description="Lists filters, their parameters, borders, levels and devices.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")
    options = parser.parse_args(arguments)
    with open_backends() as backends:
        catalogue = _catalogue(backends)
    if options.json:
        print(json.dumps(catalogue, indent=2))
    else:
        _print_catalogue(catalogue)
    return 0


def _catalogue(backends: Mapping[str, Backend]) -> dict[str, Any]:
    levels = {
        level.id: level.help
        for spec in every_filter().values()
        for backend in backends.values()
        for level in backend.levels(spec)
    }
    return {
        "version": kernelscope.__version__,
        "filters": [_filter_entry(spec, backends) for spec in every_filter().values()],
        "borders": {str(border): border.help for border in Border},
        "levels": levels,
        "devices": [
            {"id": backend.id, "name": backend.name, **asdict(backend.availability())}
            for backend in backends.values()
        ],
    }


def _filter_entry(spec: FilterSpec, backends: Mapping[str, Backend]) -> dict[str, Any]:
    entry = {
        "id": filter_name(spec),
        "kind": spec.kind,
        "name": spec.name,
        "category": spec.category,
        "summary": spec.summary,
        "source": spec.source,
        "parameters": [_parameter_entry(parameter) for parameter in spec.parameters],
        "borders": [str(border) for border in spec.borders],
        "levels": {
            backend.id: [level.id for level in backend.levels(spec)]
            for backend in backends.values()
        },
    }
    return entry | ({"in_3d": _filter_entry(spec.in_3d, backends)} if spec.in_3d else {})


def _parameter_entry(parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "option": option_of(parameter),
        "label": parameter.label,
        "help": parameter.help,
        "unit": parameter.unit,
        "allowed": allowed(parameter),
        "default": default_text(parameter),
    }
    if parameter.has_estimate:
        entry["estimate"] = ESTIMATE
    entry |= parameter.limits()
    if parameter.named_values():
        entry["switches"] = {option: each.value for option, each in switches(parameter).items()}
    return entry


def _print_catalogue(catalogue: dict[str, Any]) -> None:
    kind = None
    for entry in catalogue["filters"]:
        if entry["kind"] != kind:
            kind = entry["kind"]
            print(f"Filters of {kind}s")
        print(f"  {entry['id']}: {entry['summary']}")
        for parameter in entry["parameters"]:
            print(f"    {parameter['option']}: {parameter['help']}")
            print(f"        {parameter['allowed']}; default: {parameter['default'] or 'none'}")
            for option, choice in parameter.get("switches", {}).items():
                print(f"        {option}: the same as {parameter['option']} {choice}")
        if len(entry["borders"]) < len(catalogue["borders"]):
            print(f"    borders: {', '.join(entry['borders'])}")
        for device, levels in entry["levels"].items():
            print(f"    levels on {device}: {', '.join(levels) or 'none'}")
        if "in_3d" in entry:
            print("    of volumes also in 3-D: --dimensions 3d")
    for title in ("borders", "levels"):
        print(f"\n{title.capitalize()}")
        _print_table(catalogue[title])
    print("\nDevices")
    states = {True: "", False: "not available: "}
    devices = catalogue["devices"]
    _print_table({each["id"]: states[each["available"]] + each["summary"] for each in devices})


def _print_table(texts: Mapping[str, str]) -> None:
    width = max(map(len, texts))
    for name, text in texts.items():
        print(f"  {name:{width}}  {text}")
