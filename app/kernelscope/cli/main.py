"""The command line: ``kernelscope`` when installed, ``python main.py`` in a checkout.

Exit status: 0; 1 for errors that the user can put right (a file, a value out of range, no GPU),
with ``error: ...`` on stderr; 2 for wrong usage (an unknown command or option); 70 for a bug;
130 after Ctrl+C. Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kernelscope
from kernelscope import memory, screen
from kernelscope.cli.apply import apply
from kernelscope.cli.bench import bench
from kernelscope.cli.common import (
    PROGRAM,
    STATUS,
    Parser,
    add_gpu_option,
    every_filter,
    file_path,
    log_to_file,
    log_to_stderr,
    open_backends,
    silence_libraries,
    switches,
)
from kernelscope.cli.volumes import phantom
from kernelscope.engine.step import ESTIMATE, default_text, has_estimate
from kernelscope.errors import AppError, Cancelled, ImageReadError
from kernelscope.manual import allowed, filter_name, option_of
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.parameters import (
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    MaskParameter,
    NumbersParameter,
    Parameter,
    RadiiParameter,
)
from kernelscope.text import one_line

if TYPE_CHECKING:
    from kernelscope.engine.backend import Backend, Fact


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (default: the process's arguments) asks for.

    Returns
    -------
    int
        The exit status. Wrong usage and ``--help`` leave through `SystemExit`, as usual
        with `argparse`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets a substitute rather than a crash.
            stream.reconfigure(errors="replace")
    silence_libraries()
    try:
        command = _COMMANDS.get(arguments[0]) if arguments else None
        status = command(arguments[1:]) if command else _window(arguments)
        sys.stdout.flush()
    except AppError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, Cancelled):
        return 130
    except BrokenPipeError:
        # The reader has gone; give the interpreter's last flush somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if memory.is_shortage(error):
            print("error: There is not enough memory. Close other programs.", file=sys.stderr)
            return 1
        traceback.print_exc()
        print(
            "This is a bug in Kernelscope; please report it with the text above.", file=sys.stderr
        )
        return 70
    return status


# The window ---------------------------------------------------------------------------


def _window(arguments: list[str]) -> int:
    commands = "\n".join(f"  {name:8}{command.__doc__}" for name, command in _COMMANDS.items())
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [--debug] [--log FILE] [IMAGE]\n       {PROGRAM} COMMAND [--help] ...",
        description="Opens the window, on IMAGE if one is given.",
        epilog=f"commands:\n{commands}\n\nA file named like a command is ./NAME.\n\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "image", metavar="IMAGE", nargs="?", type=file_path, help="picture or volume to open"
    )
    parser.add_argument("--debug", action="store_true", help="write the log to stderr too")
    parser.add_argument("--log", metavar="FILE", type=file_path, help="write the log to FILE too")
    parser.add_argument(
        "--version", action="version", version=f"Kernelscope {kernelscope.__version__}"
    )
    options = parser.parse_args(arguments)
    image: Path | None = options.image
    if image is not None and not _is_there(image):
        raise ImageReadError(
            f"There is no file “{image}”.", f"Name a picture, or one of {', '.join(_COMMANDS)}."
        )
    if image is not None and options.log is not None and options.log.resolve() == image.resolve():
        raise AppError("The log would overwrite the image.", "Name another file for the log.")
    if options.debug:
        log_to_stderr()
    if options.log is not None:
        log_to_file(options.log)
    screen.check()
    try:
        from kernelscope.gui import run

        return run(image)
    except ImportError as error:
        if "PySide6" not in (error.name or ""):
            raise
        raise screen.libraries_missing(str(error)) from None


# list, info --------------------------------------------------------------------------


def _is_there(path: Path) -> bool:
    """Tell whether there is such a file; a name that no file can have is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _list(arguments: list[str]) -> int:
    """List filters, their parameters, borders, levels and devices."""
    parser = Parser(prog=f"{PROGRAM} list", description="Lists what there is to run.")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(arguments)
    with open_backends() as backends:
        catalogue = _catalogue(backends)
    if options.json:
        print(json.dumps(catalogue, indent=2))
    else:
        _print_catalogue(catalogue)
    return 0


def _catalogue(backends: Mapping[str, Backend]) -> dict[str, Any]:
    """Return everything there is to run, as plain lists and dictionaries."""
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
    return {
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


def _parameter_entry(parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "option": option_of(parameter),
        "label": parameter.label,
        "help": parameter.help,
        "unit": parameter.unit,
        "allowed": allowed(parameter),
        "default": default_text(parameter),
    }
    if has_estimate(parameter):
        entry["estimate"] = ESTIMATE
    match parameter:
        case (
            IntParameter()
            | FloatParameter()
            | MaskParameter()
            | NumbersParameter()
            | RadiiParameter()
        ):
            entry |= {"minimum": parameter.minimum, "maximum": parameter.maximum}
        case ChoiceParameter():
            entry["choices"] = [choice.value for choice in parameter.choices]
            entry["switches"] = {
                option: choice.value for option, choice in switches(parameter).items()
            }
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
    for title in ("borders", "levels"):
        print(f"\n{title.capitalize()}")
        for name, text in catalogue[title].items():
            print(f"  {name:14}{text}")
    print("\nDevices")
    for device in catalogue["devices"]:
        state = "" if device["available"] else "not available: "
        print(f"  {device['id']:14}{state}{device['summary']}")


def _info(arguments: list[str]) -> int:
    """Show what this machine offers, and how to get a GPU going."""
    parser = Parser(
        prog=f"{PROGRAM} info",
        description="Shows what this machine offers, and how to get a GPU going.",
    )
    add_gpu_option(parser)
    options = parser.parse_args(arguments)
    from kernelscope import machine

    for name, value in machine.facts().items():
        print(f"{name:13}{value}")
    print("\nDevices")
    with open_backends(options.gpu) as backends:
        for backend in backends.values():
            state = backend.availability()
            prefix = "" if state.available else "not available: "
            print(f"  {backend.id:11}{prefix}{state.summary}")
            for number, step in enumerate(state.steps, 1):
                print(f"{'':13}{number}. {step}")
            if len(state.devices) > 1:
                for number, device in enumerate(state.devices):
                    print(f"{'':13}--gpu {number}: {device}")
        for backend in backends.values():
            for group in backend.facts():
                _print_facts(f"{backend.name}: {group.title}", group.facts)
            if load := backend.load():
                _print_facts(f"{backend.name}: Now", load)
    return 0


def _print_facts(title: str, facts: Iterable[Fact]) -> None:
    print(f"\n{title}")
    for fact in facts:
        print(f"  {fact.name:38}{fact.value} {fact.unit}".rstrip(), flush=True)


_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "apply": apply,
    "list": _list,
    "info": _info,
    "bench": bench,
    "phantom": phantom,
}
