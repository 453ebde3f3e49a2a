"""The commands ``kernel`` and ``trace``: about the CUDA code of a filter, without a GPU.

``kernel`` prints the source as it is compiled, with its headers included and with the macros that
specialise it for the level and the parameters, and the report of NVRTC for the requested GPU
architectures. Without NVRTC a notice stands in its place. ``trace`` counts the reads and writes of
the levels, of kernels that run on the emulated GPU, on a picture of random samples.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.durations import duration
from kernelscope.base.text import PROGRAM, one_line
from kernelscope.cli.common import STATUS, Parser, Speaker, add_options, every_filter, show
from kernelscope.cli.shared_options import add_filter_options, escape, in_dimensions, step_of
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name

if TYPE_CHECKING:
    from kernelscope.backends.cuda.inspection import PlannedLaunch
    from kernelscope.backends.cuda.sources import FunctionPlace
    from kernelscope.engine.request import Request
    from kernelscope.engine.timing import Resources
    from kernelscope.schema.filter import FilterSpec
    from kernelscope.schema.launch import Launch
    from kernelscope.schema.levels import Level
    from kernelscope.traffic.gpus import Gpu
    from kernelscope.traffic.trace import Counts

_TYPES: dict[str, Any] = {"8": np.uint8, "16": np.uint16, "float": np.float32}

Sides = dict[Kind, int]  # usual side of the square or the cube that is filtered


def filter_with_kernel(command: str, purpose: str, arguments: Sequence[str]) -> FilterSpec:
    """Return the filter that comes first; without one the parser prints help and exits."""
    specs = {filter_name(spec): spec for spec in every_filter().values() if spec.levels(Device.GPU)}
    spec = specs.get(arguments[0].replace("_", "-")) if arguments else None
    if spec is not None:
        return in_dimensions(spec, arguments[1:])
    catalogue = "\n".join(f"  {name:24}{spec.summary}" for name, spec in specs.items())
    parser = Parser(
        prog=f"{PROGRAM} {command}",
        usage=f"{PROGRAM} {command} FILTER [options]",
        description=f"{purpose} “{command} FILTER --help” lists the options.",
        epilog=f"filters with a kernel:\n{catalogue}\n\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("filter", metavar="FILTER", choices=list(specs))
    parser.parse_args(arguments[:1])
    raise AssertionError("the parser accepts no other filter")


def launch_parser(
    command: str, purpose: str, spec: FilterSpec, sides: Sides
) -> tuple[argparse.ArgumentParser, argparse._ArgumentGroup]:
    """Return the parser of everything after the filter, and its group about the launch."""
    parser = Parser(
        prog=f"{PROGRAM} {command} {filter_name(spec)}",
        description=escape(purpose),
        epilog=STATUS,
        argument_default=argparse.SUPPRESS,
    )
    add_filter_options(parser, spec)
    launch = parser.add_argument_group("launch")
    text = """
        --block WxH
            threads of a block, like 16x16
        --side N
            side of the square or cube that is filtered (default: %(default)s)
        """
    add_options(launch, text, block={"default": None}, side={"default": sides[spec.kind]})
    if spec.kind is Kind.PICTURE:
        text = """
            --type
                samples (default: %(default)s bits)
            --rgb
                a picture in colour
            """
        samples = {"choices": _TYPES, "default": "8"}
        add_options(launch, text, type=samples, rgb={"default": False})
    return parser, launch


def request_of(
    spec: FilterSpec,
    options: argparse.Namespace,
    title: str,
    samples: Callable[[tuple[int, ...], np.dtype[Any]], NDArray[Any]],
    level: str | None = None,
) -> Request:
    from kernelscope.engine.options import RunOptions
    from kernelscope.engine.request import Request
    from kernelscope.images.image import Image
    from kernelscope.images.scan import Scan
    from kernelscope.images.volume import Volume

    side = options.side
    source: Image | Scan
    if spec.kind is Kind.VOLUME:
        source = Scan((Volume(samples((side, side, side), np.dtype(np.float32))),))
    else:
        shape = (side, side, 3) if options.rgb else (side, side)
        source = Image(samples(shape, np.dtype(_TYPES[options.type])), title)
    step = step_of(spec, options)
    return Request(source, step, RunOptions(Device.GPU, level, block=options.block))


_REPORTED_SIDES = {Kind.PICTURE: 1024, Kind.VOLUME: 128}
_REPORTED = "Prints the CUDA source of FILTER and the compiler's report on it, without a GPU."


def kernel(arguments: list[str]) -> int:
    """Print a filter's CUDA source and compiler report; needs no GPU."""
    spec = filter_with_kernel("kernel", _REPORTED, arguments)
    options = _kernel_parser(spec).parse_args(arguments[1:])

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
    from kernelscope.backends.cuda.sources import find_kernel, source_files

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
    from kernelscope.traffic.gpus import occupancy_on

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
        shared = resources.shared_bytes + launch.shared_bytes
        threads = math.prod(launch.block)
        if occupancy := occupancy_on(architecture, threads, resources.registers, shared):
            show(f"    occupancy, computed: {occupancy}")


# Arguments ------------------------------------------------------------------------------


def _kernel_parser(spec: FilterSpec) -> argparse.ArgumentParser:
    purpose = f"Prints the CUDA source of {spec.name} and the compiler's report."
    parser, launch = launch_parser("kernel", purpose, spec, _REPORTED_SIDES)
    levels = [level.id for level in spec.levels(Device.GPU)]
    text = """
        --level
            memory level (default: %(default)s)
        --arch SM...
            GPU architectures to compile for, like sm_90 (default: sm_75 and sm_90)
        """
    level = {"choices": levels, "default": levels[-1]}
    add_options(launch, text, level=level, arch={"type": _architecture, "default": None})
    text = """
        --report-only
            do not print the source
        --json
            print JSON, for other programs
        """
    output = parser.add_argument_group("output").add_mutually_exclusive_group()
    add_options(output, text, report_only={"default": False}, json={"default": False})
    return parser


def _architecture(text: str) -> str:
    if not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        raise argparse.ArgumentTypeError(f"{text} is not an architecture like sm_90")
    return text


_TRACED_SIDES = {Kind.PICTURE: 512, Kind.VOLUME: 16}
_TRACED = "Counts what the kernels of FILTER read and write at each level, without a GPU."


def trace(arguments: list[str]) -> int:
    """Count the reads and writes of the levels of a filter; needs no GPU."""
    spec = filter_with_kernel("trace", _TRACED, arguments)
    options = _trace_parser(spec).parse_args(arguments[1:])
    levels = [each for each in spec.levels(Device.GPU) if each.id in options.level]
    random = np.random.default_rng(options.side)

    def samples(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        if spec.kind is Kind.VOLUME:
            return random.random(shape, np.float32)
        most = np.iinfo(dtype).max if dtype.kind == "u" else 1
        return (random.random(shape) * most).astype(dtype)

    title = f"{options.side}×{options.side} random pixels"
    request = request_of(spec, options, title, samples)
    if options.at is not None:
        return _trace_block(request, levels, options)
    from kernelscope.backends.emulator.tracing import TooManyAccesses, Tracer

    tracer = Tracer()
    try:
        found = {}
        for level in levels:
            try:
                found[level.name] = tracer.count(request, level)
            except TooManyAccesses as error:
                print(f"{level.name} is left out: {error}", file=sys.stderr)
    finally:
        tracer.close()
    if options.json:
        print(
            json.dumps({"filter": filter_name(spec), "levels": _content(levels, found)}, indent=2)
        )
    else:
        _print_table(spec, request, found)
        if options.card is not None:
            _print_times(request, levels, found, options.card)
    return 0


def _trace_block(request: Request, levels: Sequence[Level], options: argparse.Namespace) -> int:
    """Print the totals of one block, and where its warps part."""
    from kernelscope.backends.emulator.tracing import Tracer
    from kernelscope.traffic.totals import branches, launch_totals

    tracer = Tracer()
    content: list[dict[str, Any]] = []
    try:
        for level in levels:
            found, _ = tracer.trace_pixel(request, level, *options.at)
            parted = branches(found)
            content.append(
                {
                    "level": level.id,
                    "kernel": found.scene.kernel,
                    "block": list(found.block),
                    "threads": found.scene.threads,
                    "truncated": found.truncated,
                    "barriers": found.barriers,
                    "branches": parted.passed,
                    "divergent": parted.divergent,
                    "totals": {
                        _key(key): each.of_space(key[0])
                        for key, each in launch_totals(found).items()
                    },
                }
            )
    finally:
        tracer.close()
    if options.json:
        print(json.dumps(content, indent=2))
        return 0
    for each in content:
        show(
            f"{each['kernel']}, block {each['block']}, {each['threads']} threads: "
            f"{each['branches']:,} branches of warps, {each['divergent']:,} of them divergent"
            + ("; truncated" if each["truncated"] else "")
        )
        for name, totals in each["totals"].items():
            parts = (f"{value:,} {field.replace('_', ' ')}" for field, value in totals.items())
            show(f"  {name}: {', '.join(parts)}")
    return 0


def _key(key: tuple[Any, Any]) -> str:
    space, event = key
    return f"{space.name.lower()} {'loads' if event == 0 else 'stores'}"


def _content(levels: Sequence[Level], found: Mapping[str, list[Counts]]) -> list[dict[str, Any]]:
    from kernelscope.traffic.totals import launch_totals

    return [
        {
            "id": level.id,
            "launches": [
                {
                    "kernel": each.scene.kernel,
                    "grid": list(each.scene.grid),
                    "block": list(each.scene.block),
                    "counted_blocks": each.counted,
                    "blocks": each.scene.blocks,
                    "barriers": each.barriers,
                    "totals": {
                        _key(key): totals.of_space(key[0])
                        for key, totals in launch_totals(each).items()
                    },
                }
                for each in found[level.name]
            ],
        }
        for level in levels
        if level.name in found
    ]


def _print_table(spec: FilterSpec, request: Request, found: Mapping[str, list[Counts]]) -> None:
    from kernelscope.traffic.totals import figures

    rows = [("", *found), *((each.title, *each.texts()) for each in figures(found))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    show(f"{spec.name}, for each pixel of the output of {request.source.title}:\n")
    for title, *cells in rows:
        line = "  ".join(f"{text:>{width}}" for text, width in zip(cells, widths[1:], strict=True))
        show(f"{title:{widths[0]}}  {line}".rstrip())
    partly = [
        f"{each.scene.kernel} ({each.counted:,} of {each.scene.blocks:,})"
        for launches in found.values()
        for each in launches
        if each.counted < each.scene.blocks
    ]
    if partly:
        kinds = one_line(", ".join(partly))
        print(f"Not all blocks were run, but one of each kind: {kinds}.", file=sys.stderr)


def _print_times(
    request: Request, levels: Sequence[Level], found: Mapping[str, list[Counts]], card: Gpu
) -> None:
    """Print the lower bounds, and those that were recorded of the same work on the card."""
    from kernelscope.bench.memory_ladder import CountedRung, MemoryLadder
    from kernelscope.bench.recorded import Recorded

    rungs = [CountedRung(level, found[level.name]) for level in levels if level.name in found]
    ladder = MemoryLadder(rungs, card, Recorded.read().same(request, card.name))
    show(f"\nLower bound on {card.name}, and the unit that sets it:\n")
    width = max(map(len, found), default=0)
    for step in ladder.steps:
        assert step.prediction is not None
        line = f"{step.rung.level.name:{width}}  {duration(step.prediction.seconds):>10}  "
        line += f"{step.prediction.limit:16}"
        if step.seconds is not None and step.ratio is not None:
            line += f"  {step.origin}: {duration(step.seconds)}, {step.ratio:.2f} times"
        show(line.rstrip())
    for reason in ladder.reasons():
        show(reason)


# Arguments ------------------------------------------------------------------------------


def _trace_parser(spec: FilterSpec) -> argparse.ArgumentParser:
    purpose = f"Counts what the kernels of {spec.name} read and write."
    parser, launch = launch_parser("trace", purpose, spec, _TRACED_SIDES)
    levels = [level.id for level in spec.levels(Device.GPU)]
    text = f"""
        --level LEVEL...
            memory levels (default: all: {", ".join(levels)})
        --at X,Y
            count only the block that computes this pixel of the output, and its branches
        --card NAME
            print the least times on a graphics card as well, like H100; another word lists them
        """
    add_options(
        launch,
        text,
        level={"choices": levels, "default": levels},
        at={"type": _pixel, "default": None},
        card={"type": _card, "default": None},
    )
    text = """
        --json
            print JSON, for other programs
        """
    add_options(parser.add_argument_group("output"), text, json={"default": False})
    return parser


def _card(text: str) -> Gpu:
    from kernelscope.traffic.gpus import GPUS, gpu

    found = gpu(text)
    if found is None:
        names = "; ".join(each.name for each in GPUS)
        raise argparse.ArgumentTypeError(f"the cards are: {names}")
    return found


def _pixel(text: str) -> tuple[int, int]:
    x, _, y = text.partition(",")
    if not (x.isdecimal() and y.isdecimal()):
        raise argparse.ArgumentTypeError("two numbers are needed, like 3,2")
    return int(x), int(y)
