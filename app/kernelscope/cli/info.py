"""The command ``info``: the devices of this machine, to set up a GPU and to report a problem."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kernelscope.base.installed import PARTS, missing_parts
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import Parser, add_gpu_option, open_backends

if TYPE_CHECKING:
    from kernelscope.engine.backend import Backend, Fact, FactGroup


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
            _print(machine.facts(), backends)
    return 0


def _as_json(machine: Mapping[str, str], backends: Mapping[str, Backend]) -> dict[str, Any]:
    """Return everything that `_print` shows, as plain lists and dictionaries."""
    return {
        "machine": dict(machine),
        "missing parts": missing_parts(),
        "devices": [
            {
                "id": backend.id,
                "name": backend.name,
                **asdict(backend.availability()),
                "facts": [_group(group) for group in backend.facts()],
                "load": [asdict(fact) for fact in backend.load()],
            }
            for backend in backends.values()
        ],
    }


def _group(group: FactGroup) -> dict[str, Any]:
    return {"title": group.title, "facts": [asdict(fact) for fact in group.facts]}


def _print(machine: Mapping[str, str], backends: Mapping[str, Backend]) -> None:
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
