"""The commands ``list`` and ``info``: filters of the program, and devices of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import kernelscope
from kernelscope.base.installed import PARTS, missing_parts
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import Parser, add_gpu_option, every_filter, open_backends, switches
from kernelscope.engine.step import ESTIMATE, default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import Parameter
from kernelscope.teach.manual import allowed, filter_name, option_of

if TYPE_CHECKING:
    from kernelscope.engine.backend import Backend, Fact


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


def info(arguments: list[str]) -> int:
    """Show the devices of this machine, and how to set up a GPU."""
    parser = Parser(
        prog=f"{PROGRAM} info",
        description="Shows the devices of this machine, and how to set up a GPU.",
    )
    add_gpu_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="print JSON, for programs and bug reports"
    )
    options = parser.parse_args(arguments)
    from kernelscope.base import machine

    with open_backends(options.gpu) as backends:
        if options.json:
            print(json.dumps(_as_json(machine.facts(), backends), indent=2))
        else:
            _print_machine(machine.facts(), backends)
    return 0


def _as_json(machine: Mapping[str, str], backends: Mapping[str, Backend]) -> dict[str, Any]:
    """Return everything that `_print_machine` shows, as plain lists and dictionaries."""
    return {
        "machine": dict(machine),
        "missing parts": missing_parts(),
        "devices": [
            {
                "id": backend.id,
                "name": backend.name,
                **asdict(backend.availability()),
                "facts": [
                    {"title": group.title, "facts": [asdict(fact) for fact in group.facts]}
                    for group in backend.facts()
                ],
                "load": [asdict(fact) for fact in backend.load()],
            }
            for backend in backends.values()
        ],
    }


def _print_machine(machine: Mapping[str, str], backends: Mapping[str, Backend]) -> None:
    for name, value in machine.items():
        print(f"{name:13}{value}")
    print("\nDevices")
    for backend in backends.values():
        state = backend.availability()
        prefix = "" if state.available else "not available: "
        print(f"  {backend.id:11}{prefix}{state.summary}")
        for number, step in enumerate(state.steps, 1):
            print(f"{'':13}{number}. {step}")
        if len(state.devices) > 1:
            for number, device in enumerate(state.devices):
                print(f"{'':13}--gpu {number}: {device}")
    print("\nOptional parts")
    missing = missing_parts()
    for name, (purpose, _) in PARTS.items():
        found = f"missing: {missing[name]}" if name in missing else "installed"
        print(f"  {name:11}{purpose}; {found}")
    for backend in backends.values():
        for group in backend.facts():
            _print_facts(f"{backend.name}: {group.title}", group.facts)
        if load := backend.load():
            _print_facts(f"{backend.name}: Now", load)


def _print_facts(title: str, facts: Iterable[Fact]) -> None:
    print(f"\n{title}")
    for fact in facts:
        print(f"  {fact.name:38}{fact.value} {fact.unit}".rstrip(), flush=True)
