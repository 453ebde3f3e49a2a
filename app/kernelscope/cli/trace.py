"""The command ``trace``: the reads and writes of the levels of a filter, counted without a GPU.

The kernels run on the emulated GPU, on a picture of random samples.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.durations import duration
from kernelscope.base.text import one_line
from kernelscope.cli.common import show
from kernelscope.cli.kernels import filter_with_kernel, launch_parser, request_of
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name

if TYPE_CHECKING:
    from kernelscope.engine.request import Request
    from kernelscope.schema.filter import FilterSpec
    from kernelscope.schema.levels import Level
    from kernelscope.traffic.gpus import Gpu
    from kernelscope.traffic.trace import Counts

_SIDES = {Kind.PICTURE: 512, Kind.VOLUME: 16}
_PURPOSE = "Counts what the kernels of FILTER read and write at each level, without a GPU."


def trace(arguments: list[str]) -> int:
    """Count the reads and writes of the levels of a filter; needs no GPU."""
    spec = filter_with_kernel("trace", _PURPOSE, arguments)
    options = _parser(spec).parse_args(arguments[1:])
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
                        _key(key): asdict(each) for key, each in launch_totals(found).items()
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
                        _key(key): asdict(totals) for key, totals in launch_totals(each).items()
                    },
                }
                for each in found[level.name]
            ],
        }
        for level in levels
        if level.name in found
    ]


def _print_table(spec: FilterSpec, request: Request, found: Mapping[str, list[Counts]]) -> None:
    from kernelscope.traffic.table import figures

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


def _parser(spec: FilterSpec) -> argparse.ArgumentParser:
    purpose = f"Counts what the kernels of {spec.name} read and write."
    parser, launch = launch_parser("trace", purpose, spec, _SIDES)
    levels = [level.id for level in spec.levels(Device.GPU)]
    launch.add_argument(
        "--level",
        choices=levels,
        nargs="+",
        default=levels,
        metavar="LEVEL",
        help=f"memory levels (default: all: {', '.join(levels)})",
    )
    launch.add_argument(
        "--at", metavar="X,Y", type=_pixel, default=None,
        help="count only the block that computes this pixel of the output, and its branches",
    )  # fmt: skip
    launch.add_argument(
        "--card", metavar="NAME", type=_card, default=None,
        help="print the least times on a graphics card as well, like H100; another word lists them",
    )  # fmt: skip
    parser.add_argument_group("output").add_argument(
        "--json", action="store_true", default=False, help="print JSON, for other programs"
    )
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
