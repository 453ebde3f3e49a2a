"""The command ``kernel``: the CUDA source of a filter, and the compiler's report on it.

The source is printed as it is compiled: with its headers included, and with the macros that
specialise it for the level and the parameters. This needs neither a window nor a GPU: the report
comes from NVRTC, for the requested GPU architectures. Without NVRTC a notice stands in its place.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.cli.common import Speaker, show
from kernelscope.cli.kernels import filter_with_kernel, launch_parser, request_of
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name

if TYPE_CHECKING:
    from kernelscope.backends.cuda.inspection import PlannedLaunch
    from kernelscope.backends.cuda.preprocessor import FunctionPlace
    from kernelscope.engine.launch_report import Resources
    from kernelscope.schema.filter import FilterSpec
    from kernelscope.schema.launch import Launch

_SIDES = {Kind.PICTURE: 1024, Kind.VOLUME: 128}
_PURPOSE = "Prints the CUDA source of FILTER and the compiler's report on it, without a GPU."


def kernel(arguments: list[str]) -> int:
    """Print a filter's CUDA source and compiler report; needs no GPU."""
    spec = filter_with_kernel("kernel", _PURPOSE, arguments)
    options = _parser(spec).parse_args(arguments[1:])

    def samples(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.broadcast_to(dtype.type(0), shape)  # which takes no memory

    request = request_of(spec, options, "picture", samples, options.level)
    level = next(each for each in spec.levels(Device.GPU) if each.id == options.level)
    from kernelscope.backends.cuda.inspection import plans, reporter
    from kernelscope.backends.cuda.sources import read_source

    made = plans(request, level)
    reports, missing = _reports(spec, made, options)
    if options.json:
        content = {
            "filter": filter_name(spec),
            "level": level.id,
            "compiler": reporter(),
            "notice": missing,
            "kernels": [_entry(spec, *each) for each in zip(made, reports, strict=True)],
            "source": read_source(spec.id),
        }
        print(json.dumps(content, indent=2))
        return 0
    if not options.report_only:
        show(read_source(spec.id))
    for each, report in zip(made, reports, strict=True):
        _print_report(spec, each, report, reporter())
    if missing:
        Speaker(quiet=False).notices([missing])
    return 0


def _reports(
    spec: FilterSpec, made: Sequence[PlannedLaunch], options: argparse.Namespace
) -> tuple[list[dict[str, Resources | None]], str]:
    from kernelscope.backends.cuda.inspection import REPORTED, NoCompiler, compile_report

    architectures = options.arch or REPORTED
    try:
        found = [compile_report(spec.id, each.launch, architectures=architectures) for each in made]
    except NoCompiler as error:
        if options.report_only:
            raise
        return [{} for _ in made], f"The compiler's report is left out. {error}"
    return found, ""


def _entry_point(spec: FilterSpec, launch: Launch) -> FunctionPlace | None:
    from kernelscope.backends.cuda.preprocessor import find_kernel
    from kernelscope.backends.cuda.sources import source_files

    return find_kernel(source_files(spec.id), launch.kernel, launch.defines)


def _entry(
    spec: FilterSpec, planned: PlannedLaunch, report: Mapping[str, Resources | None]
) -> dict[str, Any]:
    launch = planned.launch
    place = _entry_point(spec, launch)
    return {
        "name": launch.kernel,
        "file": place.file if place else None,
        "lines": [place.start + 1, place.stop] if place else None,
        "grid": list(planned.grid),
        "block": list(launch.block),
        "dynamic_shared_bytes": launch.shared_bytes,
        "defines": dict(sorted(launch.defines.items())),
        "notice": planned.notice,
        "reports": {
            name: None if resources is None else asdict(resources)
            for name, resources in report.items()
        },
    }


def _print_report(
    spec: FilterSpec,
    planned: PlannedLaunch,
    report: Mapping[str, Resources | None],
    compiler: str,
) -> None:
    launch = planned.launch
    grid, block = ("×".join(map(str, each)) for each in (planned.grid, launch.block))
    compiled = f", compiled by {compiler}" if report else ""
    show(f"\n{launch.kernel}: {grid} blocks of {block} threads{compiled}")
    place = _entry_point(spec, launch)
    if place is not None:
        show(f"  entry point: {place.file}, lines {place.start + 1} to {place.stop}")
    if planned.notice:
        show(f"  {planned.notice}")
    defines = " ".join(f"-D{name}={value}" for name, value in sorted(launch.defines.items()))
    show(f"  macros: {defines or 'none'}")
    show(f"  dynamic shared memory: {launch.shared_bytes:,} bytes a block")
    for architecture, resources in report.items():
        if resources is None:
            show(f"  {architecture}: the compiler reports nothing")
            continue
        show(
            f"  {architecture}: {resources.registers} registers, {resources.spill_bytes} bytes of "
            f"spills, {resources.stack_bytes} bytes of stack a thread; "
            f"{resources.shared_bytes:,} bytes of static shared memory a block; "
            f"{resources.constant_bytes:,} bytes of constants"
        )


# Arguments ------------------------------------------------------------------------------


def _parser(spec: FilterSpec) -> argparse.ArgumentParser:
    purpose = f"Prints the CUDA source of {spec.name} and the compiler's report."
    parser, launch = launch_parser("kernel", purpose, spec, _SIDES)
    levels = [level.id for level in spec.levels(Device.GPU)]
    launch.add_argument(
        "--level", choices=levels, default=levels[-1], help="memory level (default: %(default)s)"
    )
    launch.add_argument(
        "--arch",
        metavar="SM",
        nargs="+",
        type=_architecture,
        default=None,
        help="GPU architectures to compile for, like sm_90 (default: sm_75 and sm_90)",
    )
    output = parser.add_argument_group("output").add_mutually_exclusive_group()
    output.add_argument(
        "--report-only", action="store_true", default=False, help="do not print the source"
    )
    output.add_argument(
        "--json", action="store_true", default=False, help="print JSON, for other programs"
    )
    return parser


def _architecture(text: str) -> str:
    if not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        raise argparse.ArgumentTypeError(f"{text} is not an architecture like sm_90")
    return text
