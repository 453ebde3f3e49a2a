"""Commands about kernels share: the filters that have one, their options, and a source."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import STATUS, Parser, every_filter, positive, thread_block
from kernelscope.cli.shared_options import add_filter_options, escape, in_dimensions, step_of
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name

if TYPE_CHECKING:
    from kernelscope.engine.request import Request
    from kernelscope.schema.filter import FilterSpec

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
    launch.add_argument(
        "--block",
        metavar="WxH",
        type=thread_block,
        default=None,
        help="threads of a block, like 16x16",
    )
    launch.add_argument(
        "--side",
        metavar="N",
        type=positive,
        default=sides[spec.kind],
        help=f"side of the square or cube that is filtered (default: {sides[spec.kind]})",
    )
    if spec.kind is Kind.PICTURE:
        launch.add_argument(
            "--type", choices=_TYPES, default="8", help="samples (default: %(default)s bits)"
        )
        launch.add_argument("--rgb", action="store_true", default=False, help="a picture in colour")
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
