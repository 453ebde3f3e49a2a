"""The options that ``apply`` and ``batch`` have in common, each defined once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from kernelscope.cli.common import add_gpu_option, byte_size, quality, real_number, thread_block
from kernelscope.engine.options import Device, RunOptions
from kernelscope.images.volume import AXES

RUN = {name: name for name in ("device", "level", "repeat", "memory_limit", "block")}
"""Fields of `RunOptions` by the names of their options."""


def add_computing_options(
    group: argparse._ActionsContainer, levels: Sequence[str], **of_gpu: Any
) -> None:
    """Add the options of where and how to compute; `of_gpu` is for `add_gpu_option`."""
    group.add_argument(
        "--device",
        choices=[each.value for each in Device],
        help=f"where to compute (default: {RunOptions.device}); steps that cannot run there run "
        "where they can",
    )
    group.add_argument(
        "--level",
        choices=levels,
        help="level of computing (default: the fastest), for the steps that have it",
    )
    add_gpu_option(group, **of_gpu)
    group.add_argument(
        "--block",
        metavar="WxH",
        type=thread_block,
        help="threads of a GPU's blocks, like 16x16 or 256x1, for levels up to texture (default: "
        "the filter's own)",
    )
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=byte_size,
        help="GPU memory for images, like 256M; larger ones go in strips (default: all free)",
    )


def run_options(found: Mapping[str, Any]) -> RunOptions:
    """Return the run options among those of a command; those that are None have their defaults."""
    given = {field: found[name] for name, field in RUN.items() if found.get(name) is not None}
    return RunOptions(**given | {"device": Device(given.get("device", RunOptions.device))})


def add_file_options(group: argparse._ActionsContainer) -> None:
    """Add the options of how files are read and written."""
    group.add_argument(
        "--nan",
        metavar="X",
        type=real_number,
        help="number that replaces NaN in all files that are read; results have NaN there again "
        "(default: such files are refused)",
    )
    group.add_argument(
        "--lossy",
        action="store_true",
        help="write even if the format of the result loses something: bit depth, alpha, colour, or "
        "the position of a volume",
    )
    group.add_argument(
        "--quality",
        metavar="N",
        type=quality,
        help="quality of a JPEG, from 1 to 100 (default: 95)",
    )


def add_axis_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--axis",
        choices=AXES,
        help=f"axis that slices of a volume are perpendicular to (default: {AXES[0]}); amounts "
        "given as fractions of white are fractions of the brightest voxel",
    )


def add_float_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--float",
        action="store_true",
        help="write 32-bit floats of a volume, not rounded to the type of the input",
    )


def add_output_options(group: argparse._ActionsContainer, quiet: str) -> None:
    """Add the options of what is printed; `quiet` is the help of one."""
    group.add_argument("--quiet", action="store_true", help=quiet)
    group.add_argument("--verbose", action="store_true", help="log every stage on stderr")
