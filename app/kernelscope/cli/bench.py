"""The command ``bench``: measure, verify, show runs and compare two."""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelscope.base.errors import AppError
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import (
    STATUS,
    Parser,
    StatusLine,
    add_gpu_option,
    add_options,
    file_path,
    interruptible,
    open_backends,
    show,
)
from kernelscope.schema.devices import Device

if TYPE_CHECKING:
    from kernelscope.bench.data import Data
    from kernelscope.bench.plan import Plan
    from kernelscope.bench.report import Report
    from kernelscope.engine.backend import Backend
    from kernelscope.engine.control import CancelToken

_SAVE_EVERY = 2.0  # seconds between two writes of the rows measured so far

_QUICK = 3
_SIZES = (4096,)
_VERIFIED = (512,)
_MASKS = (3, 5, 7, 9)


def bench(arguments: list[str]) -> int:
    """Time filters, levels, devices and libraries; verify and compare."""
    options = _parse(arguments)
    if options.compare:
        return _compare(options)
    if options.show:
        return _show(options)
    if options.verify:
        return _verify(options)
    return _measure(options)


def _parse(arguments: list[str]) -> argparse.Namespace:
    from kernelscope.bench.presets import PRESETS

    presets = "\n".join(f"  {name}\n      {each.summary}" for name, each in PRESETS.items())
    parser = Parser(
        prog=f"{PROGRAM} bench",
        description="Times filters on seeded data at every level of every device.",
        epilog=f"presets (the beginning of a name suffices):\n{presets}\n\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser)
    options = parser.parse_args(arguments)
    if options.gpu == ():  # without a number: the default GPU only
        options.gpu, options.devices = None, options.devices or [Device.GPU.value]
    if options.preset is not None and (options.filters or options.sizes or options.masks):
        parser.error("argument --preset: it sets filters, sizes and masks; leave those options out")
    if options.verify not in (None, True) and (options.preset is not None or options.sizes):
        parser.error("argument --verify: leave out --sizes, a picture has its own size")
    return options


def _add_options(parser: argparse.ArgumentParser) -> None:
    from kernelscope.bench import peers
    from kernelscope.bench.rules import REPEAT

    measurement = parser.add_argument_group("measurement")
    text = f"""
        --preset NAME
            a preset, see below, or the JSON file of a run to repeat
        --filters FILTER...
            default: all for pictures
        --sizes N...
            sides of the pictures, in pixels; of the volumes, in voxels (default: 4096)
        --masks N...
            mask sizes, for filters that have one (default: 3 5 7 9)
        --devices
            default: all available
        --levels LEVEL...
            default: all of the devices
        --blocks WxH...
            threads of a GPU's blocks, like 8x8 16x16 256x1, one row each, at levels up to texture
            (default: chosen by the filter)
        --peers LIBRARY
            also other libraries, where installed: {", ".join(peers.names())} (default: all)
        """
    devices = {"choices": (Device.CPU.value, Device.GPU.value), "nargs": "+"}
    add_options(measurement, text, devices=devices, peers={"nargs": "*"})
    add_gpu_option(measurement, nargs="?", const=())
    text = f"""
        --repeat N
            timed runs of each (default: {REPEAT})
        --quick
            {_QUICK} runs of each
        """
    add_options(parser.add_argument_group("how"), text)
    text = """
        --out FILE
            write the report as JSON
        --csv FILE
            write a line for each row
        --plot DIR
            draw plots into a folder
        """
    add_options(parser.add_argument_group("output"), text)
    text = """
        --verify IMAGE
            compare the results of all levels, on a picture or (default) on seeded noise
        --compare FILE.json
            compare two runs; with --plot, draw them side by side
        --show FILE.json...
            print several saved runs as if they were one; with --plot, draw them
        """
    instead = parser.add_argument_group("instead of measuring").add_mutually_exclusive_group()
    compared = {"metavar": ("A.json", "B.json"), "nargs": 2, "type": file_path}
    add_options(instead, text, verify={"nargs": "?", "const": True}, compare=compared)


def _plan(options: argparse.Namespace, sizes: tuple[int, ...], data: Data | None = None) -> Plan:
    from kernelscope.bench import presets
    from kernelscope.bench.plan import Plan
    from kernelscope.bench.presets import grid
    from kernelscope.bench.report import load

    if options.preset is not None and Path(options.preset).suffix == ".json":
        plan = load(Path(options.preset)).plan
    elif options.preset is not None:
        plan = presets.get(options.preset).plan
    else:
        names, masks = options.filters or (), options.masks or _MASKS
        plan = Plan(sweeps=grid(names, options.sizes or sizes, masks, data))
    changes: dict[str, Any] = {
        "levels": options.levels and tuple(options.levels),
        "devices": options.devices and tuple(options.devices),
        "repeat": options.repeat or (_QUICK if options.quick else None),
        "peers": options.peers is not None or None,
        "libraries": tuple(options.peers) if options.peers else None,
        "blocks": options.blocks and tuple(options.blocks),
    }
    return replace(plan, **{name: value for name, value in changes.items() if value is not None})


def _gpus(options: argparse.Namespace, plan: Plan) -> tuple[int, ...] | None:
    """Return the GPUs to open: the first ones if the plan uses several and none were chosen."""
    from kernelscope.backends import GPU_VARIABLE

    most = max(plan.gpus, default=1)
    chosen: tuple[int, ...] | None = options.gpu
    if most == 1 or chosen is not None or os.environ.get(GPU_VARIABLE):
        return chosen
    with open_backends() as backends:
        there = backends[Device.GPU].availability().devices
    return tuple(range(min(most, len(there)))) or None


@contextmanager
def _session(
    options: argparse.Namespace, plan: Plan
) -> Iterator[tuple[Plan, Mapping[str, Backend], CancelToken]]:
    with open_backends(_gpus(options, plan)) as backends, interruptible() as token:
        if not (options.devices or options.preset is not None):
            there = (name for name in plan.devices if backends[name].availability().available)
            plan = replace(plan, devices=tuple(there))
        yield plan, backends, token


def _measure(options: argparse.Namespace) -> int:
    from kernelscope.bench.cases import expand
    from kernelscope.bench.output import is_stream
    from kernelscope.bench.report import Report, facts, save
    from kernelscope.bench.rows import Row
    from kernelscope.bench.runner import BenchProgress, measure
    from kernelscope.bench.tables import format_row, save_csv

    draw = _drawer(options)
    status = StatusLine()
    rows: list[Row] = []
    with _session(options, _plan(options, _SIZES)) as (plan, backends, token):
        expand(plan, backends)  # report mistakes before anything is measured
        machine = facts(backends, plan.peers)

        def write(final: bool = False) -> Report:
            report = Report(machine, plan, tuple(rows))
            for path, write_report in ((options.out, save), (options.csv, save_csv)):
                if path and (final or not is_stream(path)):  # a pipe would receive every version
                    write_report(report, path)
            return report

        write()  # If a file cannot be written, fail now and not after an hour.
        written = time.monotonic()
        _print_head(machine)

        def announce(progress: BenchProgress) -> None:
            status.show(progress.describe())

        try:
            for row in measure(plan, backends, token, announce):
                rows.append(row)
                if row.seconds:
                    status.clear()
                    show(format_row(row, rows))
                if time.monotonic() - written > _SAVE_EVERY:
                    write()
                    written = time.monotonic()
        finally:
            status.clear()
            report = write(final=True)
    _print_end(report)
    draw(report)
    return 0


def _show(options: argparse.Namespace) -> int:
    from kernelscope.bench.report import load, merge
    from kernelscope.bench.tables import format_row, save_csv

    draw = _drawer(options)
    report = merge([load(path) for path in options.show])
    for name, whose in report.files.items():
        show(f"{name}: measured on {whose}")
    _print_head(report.machine)
    for row in report.rows:
        if row.seconds:
            show(format_row(row, report.rows))
    _print_end(report)
    if options.csv:
        save_csv(report, options.csv)
    draw(report)
    return 0


def _print_head(machine: Mapping[str, str]) -> None:
    from kernelscope.bench.tables import LEGEND, TABLE

    for name, value in machine.items():
        show(f"{name}: {value}")
    show(f"\n{LEGEND}\n\n{TABLE.head()}")


def _print_end(report: Report) -> None:
    from kernelscope.bench.tables import format_origins, format_reasons

    for line in (*format_origins(report.rows), *format_reasons(report.rows)):
        show(line)


def _drawer(options: argparse.Namespace) -> Callable[[Report], None]:
    folder = options.plot
    if folder is None:
        return lambda report: None
    try:
        from kernelscope.gui.tools.bench_charts import export
    except ImportError as error:
        raise AppError(
            f"Plots need {error.name}, which is not installed.",
            "Use --out FILE.json, and plot it elsewhere: bench --show FILE.json --plot DIR.",
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null character.
        detail = error.strerror if isinstance(error, OSError) else error
        raise AppError(f"{folder} cannot be created: {detail}.", "Choose another folder.") from None

    def draw(report: Report) -> None:
        status = StatusLine()
        export(report, folder, status.show)
        status.clear()

    return draw


def _verify(options: argparse.Namespace) -> int:
    from kernelscope.bench.cases import subjects
    from kernelscope.bench.data import Data
    from kernelscope.bench.parity import verify
    from kernelscope.files import read_image

    picture = None if options.verify is True else Data.of(read_image(Path(options.verify)))
    status = StatusLine()
    with _session(options, _plan(options, _VERIFIED, picture)) as (plan, backends, token):

        def announce(text: str, fraction: float) -> None:
            status.show(f"{text} {100 * fraction:.0f} %")

        for case in itertools.chain.from_iterable(map(subjects, plan.sweeps)):
            parity = verify(
                case.data.make(),
                case.filter,
                case.parameters,
                backends,
                token,
                announce,
                border=case.border,
                devices=plan.devices,
            )
            status.clear()
            show(f"{parity.describe()} ({parity.source})")
            for remark in parity.remarks:
                show(f"  {remark}")
            for level, reason in parity.reasons.items():
                show(f"  {level} did not run: {reason}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    from kernelscope.bench.report import beside_each_other, load
    from kernelscope.bench.tables import format_comparison

    draw = _drawer(options)
    first, second = map(load, options.compare)
    for line in format_comparison(first, second):
        show(line)
    draw(beside_each_other(first, second))
    return 0
