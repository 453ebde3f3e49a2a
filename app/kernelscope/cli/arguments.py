"""The arguments of ``apply``: a filter, several in a row, or a recipe; and the files.

Each step is parsed on its own, with its filter's options. Options that hold for all steps may be
written with any of them, but once:

    apply gaussian-noise in.png out.png : median --size 5 --reference input
          `------ first step ---------´   `---- second step ---------------´
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from kernelscope import filters
from kernelscope.base.errors import AppError
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import (
    STATUS,
    Parser,
    add_options,
    every_filter,
    file_path,
    volume_numbers,
)
from kernelscope.cli.shared_options import (
    RUN,
    add_axis_option,
    add_computing_options,
    add_file_options,
    add_filter_options,
    add_float_option,
    add_level_options,
    add_output_options,
    add_tls_options,
    escape,
    in_dimensions,
    run_options,
    step_of,
)
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.images.levels import given_levels
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind, Levels
from kernelscope.teach.manual import filter_name

PIPE = Path("-")

INPUT = "input"  # stands for the file of a reference: INPUT itself


@dataclass(frozen=True, kw_only=True)
class ApplyCommand:
    recipe: Recipe
    options: RunOptions
    source: Path  # a picture or a volume
    result: Path
    component: tuple[Path, ...] = ()  # volumes of the same head, filtered together with `source`
    volume: tuple[int, ...] = ()
    """Numbers of the volumes in their files, from 1: none, one for all, or one for each."""
    reference: str | None = None  # file that results are compared with, or `INPUT`
    nan: float | None = None  # replaces NaN; without it, files with NaN are refused
    levels: Levels | None = None
    """Black and white of floats and volumes; by default those of the samples."""
    as_float: bool = False  # keep 32-bit floats rather than rounding to the type of the file
    axis: str | None = None  # axis that slices of a volume are perpendicular to
    output_component: tuple[Path, ...] = ()
    """For the results of the components; empty for names derived from `result`."""
    # For the change made by the last step, and the remaining error.
    residual: Path | None = None
    difference: Path | None = None
    save_recipe: Path | None = None
    lossy: bool = False  # whether a format may lose something
    quality: int | None = None  # that of a JPEG, 1 to 100
    memory: int | None = None
    """Bytes that the process may take; without it, files are held in memory as a whole."""
    local_cluster: int | None = None  # worker processes of this machine that filter in blocks
    scheduler: str | None = None  # address of a Dask cluster whose workers do
    # For a scheduler that wants TLS.
    tls_ca_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    named: tuple[Path, Path] | None = None
    """Input and output as the user named them, where files stand for pipes."""
    gpu: tuple[int, ...] | None = None  # numbers of the GPUs to use; None for the default
    # Print nothing but errors; log every stage; print a report as JSON.
    quiet: bool = False
    verbose: bool = False
    json: bool = False


SEPARATOR = ":"  # stands between the steps of a chain

_USAGE = (
    f"{PROGRAM} apply FILTER INPUT OUTPUT [options] [{SEPARATOR} FILTER [options]] ...\n"
    f"       {PROGRAM} apply --recipe FILE INPUT OUTPUT [options]"
)

_WITHOUT_FILTER = ("-h", "--help", "--recipe")  # options of a command that names no filter

_LEVELS = ("white", "black")

_FIELDS = frozenset(each.name for each in fields(ApplyCommand)) - {"recipe"}

_SHARED = _FIELDS | {*RUN, *_LEVELS}
"""Options that hold for all steps and may be given once, with any step."""

_CHAINS = """\
A lone “:” separates several filters, each of which works on the result of
the previous one. INPUT and OUTPUT are written once, with any of them; so are
all options but a filter's parameters, --border and --grey, and they hold for
every step. After a lone “--”, arguments that begin with “-” are names of
files, not options. For example:

  kernelscope apply gaussian-noise in.png out.png : median --reference input
"""


def parse(arguments: list[str]) -> ApplyCommand:
    segments = _split(arguments)
    specs = [_filter(segment) for segment in segments]
    if specs[0] is None:
        named = segments[0][:1] and not segments[0][0].startswith("-")
        if named and not any(each.startswith(_WITHOUT_FILTER) for each in segments[0]):
            _refuse(_unknown(segments[0]))
        return _parse_recipe(apply_parser(), segments)
    levels = levels_of(spec for spec in specs if spec)
    shared: dict[str, Any] = {}
    files: list[Path] = []
    steps: list[Step] = []
    for number, (spec, segment) in enumerate(zip(specs, segments, strict=True), 1):
        if spec is None:
            _refuse(f"step {number}: {_unknown(segment)}")
        try:
            spec = in_dimensions(spec, segment[1:])
            found = filter_parser(spec, levels).parse_intermixed_args(segment[1:])
            steps.append(step_of(spec, found))
        except AppError as error:
            if len(segments) == 1:
                raise
            raise error.prefixed(f"Step {number}, {spec.name}: ") from None
        files += found.files
        for name in _SHARED & vars(found).keys():
            if name in shared:
                _refuse(f"argument --{name.replace('_', '-')}: give it once, for all steps")
            shared[name] = getattr(found, name)
    _check(shared, files)
    return _command(Recipe(tuple(steps)), shared, files)


def _parse_recipe(
    parser: argparse.ArgumentParser, segments: Sequence[Sequence[str]]
) -> ApplyCommand:
    """Return the command that names a recipe instead of filters."""
    from kernelscope.files import read_recipe

    known, _ = parser.parse_known_args(segments[0])
    if known.recipe is None:
        parser.error(_unknown(segments[0]))
    if len(segments) > 1:
        parser.error(f"argument --recipe: no steps can follow it after “{SEPARATOR}”")
    found = parser.parse_intermixed_args(segments[0])
    shared = vars(found)
    _check(shared, found.files)
    return _command(read_recipe(found.recipe), shared, found.files)


def _refuse(message: str) -> NoReturn:
    """End the program with status 2, below the usage. No filter is imported for it."""
    Parser(prog=f"{PROGRAM} apply", usage=_USAGE).error(message)


def _check(shared: dict[str, Any], files: Sequence[Path]) -> None:
    """Refuse options that exclude each other, and files that would be written twice."""
    from kernelscope.files.write_errors import resolved

    if len(files) != 2:
        names = ", ".join(map(str, files)) or "none"
        _refuse(f"give two files, INPUT and OUTPUT; found: {names}")
    if "difference" in shared and not shared.get("reference"):
        _refuse("argument --difference: only with --reference")
    if "quiet" in shared and "json" in shared:
        _refuse("argument --quiet: not allowed with argument --json")
    if "quiet" in shared and "verbose" in shared:
        _refuse("argument --quiet: not allowed with argument --verbose")
    written = [files[1], *map(shared.get, ("residual", "difference", "save_recipe"))]
    targets = [resolved(path) for path in written if path not in (None, PIPE)]
    if len(set(targets)) < len(targets):
        _refuse("OUTPUT, --residual, --difference and --save-recipe must be different files")


def _command(recipe: Recipe, shared: dict[str, Any], files: Sequence[Path]) -> ApplyCommand:
    """Return the command for options that passed `_check`."""
    source, result = files
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in shared.items()
        if name in _FIELDS
    }
    levels = given_levels(*map(shared.get, _LEVELS))
    return ApplyCommand(
        recipe=recipe,
        options=run_options(shared),
        source=source,
        result=result,
        levels=levels,
        **given,
    )


def _split(arguments: Iterable[str]) -> list[list[str]]:
    segments: list[list[str]] = [[]]
    files_only = False
    for argument in arguments:
        if argument == SEPARATOR:
            segments.append([])
            files_only = False
        elif argument == "--" and not files_only:
            files_only = True  # parse_intermixed_args does not know this mark
        else:
            is_file = files_only and argument.startswith("-")
            segments[-1].append(f"./{argument}" if is_file else argument)
    return segments


def _filter(segment: Sequence[str]) -> FilterSpec | None:
    name = segment[0] if segment else ""
    return filters.find(name.replace("-", "_"))


def _unknown(segment: Sequence[str]) -> str:
    problem, alike = "the filter is missing", list[str]()
    if segment:
        problem = f"there is no filter “{segment[0]}”"
        names = [name.replace("_", "-") for name in sorted(filters.names())]
        alike = difflib.get_close_matches(segment[0], names, n=3)
    if alike:
        hint = f"did you mean {' or '.join(alike)}? See “kernelscope list”"
    else:
        hint = f"choose from {', '.join(map(filter_name, every_filter().values()))}"
    return f"argument FILTER: {problem}; {hint}"


def levels_of(specs: Iterable[FilterSpec]) -> list[str]:
    devices = (Device.GPU, Device.CPU)
    levels = (level for spec in specs for device in devices for level in spec.levels(device))
    return list(dict.fromkeys(level.id for level in levels))


def apply_parser() -> argparse.ArgumentParser:
    catalogue = "\n\n".join(
        f"filters of {kind}s:\n"
        + "\n".join(
            f"  {filter_name(spec):24}{spec.summary}"
            for spec in every_filter().values()
            if spec.kind is kind
        )
        for kind in Kind
    )
    parser = Parser(
        prog=f"{PROGRAM} apply",
        usage=_USAGE,
        description="Filters INPUT into OUTPUT. “apply FILTER --help” lists a filter's options.\n\n"
        + _CHAINS,
        epilog=f"{catalogue}\n\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    _add_files(parser)
    text = """
        --recipe FILE
            apply the steps that --save-recipe, or the window, wrote to FILE
        """
    add_options(parser, text, recipe={"default": None})
    _add_run_options(parser, levels_of(every_filter().values()))
    _add_volume_options(parser, *Kind)
    return parser


_ON_ONE_SCREEN = {"--device", "--level", "--reference", "--component"}
"""Options of all filters that the help of one shows; the others are under ``--help-all``."""


class _FilterParser(Parser):
    """The options of one filter first; those that all filters have are for another page."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.add_argument(
            "--help-all",
            action=_HelpAll,
            nargs=0,
            help="show the options that all filters have as well, and exit",
        )

    def format_help(self) -> str:
        """Return the help on one screen; `_HelpAll` prints all of it."""
        shared = [each for each in self._action_groups if each.title in ("all steps", "volumes")]
        hidden = [
            action
            for group in shared
            for action in group._group_actions
            if not _ON_ONE_SCREEN.intersection(action.option_strings)
        ]
        formatter = self._get_formatter()
        usage = f"%(prog)s INPUT OUTPUT [options] [{SEPARATOR} FILTER [options]] ..."
        formatter.add_usage(usage, (), ())
        formatter.add_text(self.description)
        for group in self._action_groups:
            actions = [each for each in group._group_actions if each not in hidden]
            formatter.start_section(group.title if actions else None)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(f"--help-all shows {len(hidden)} more options.")
        return formatter.format_help()


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *ignored: Any) -> None:
        assert isinstance(parser, _FilterParser)
        print(super(_FilterParser, parser).format_help(), end="")
        parser.exit()


def filter_parser(spec: FilterSpec, levels: Sequence[str]) -> argparse.ArgumentParser:
    parser = _FilterParser(
        prog=f"{PROGRAM} apply {filter_name(spec)}",
        description=escape(f"{spec.name}. {spec.summary} Source: {spec.source}."),
        epilog=f"“{PROGRAM} apply --help” explains how to chain several filters. " + STATUS,
        argument_default=argparse.SUPPRESS,
    )
    _add_files(parser)
    add_filter_options(parser, spec, any_sides=True)
    run = _add_run_options(parser, levels)
    _add_volume_options(parser, spec.kind)
    text = """
        --save-recipe FILE
            write the steps to FILE as JSON, for --recipe and the window
        """
    add_options(run, text)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    text = """
        files INPUT
            picture or volume to filter, and file to write, whose suffix is its format; “-” is
            standard input or output, for pictures
        """
    files = {"metavar": "INPUT OUTPUT", "nargs": "*", "type": file_path, "default": []}
    add_options(parser, text, files=files)


def _add_run_options(
    parser: argparse.ArgumentParser, levels: Sequence[str]
) -> argparse._ArgumentGroup:
    """Add the options that may be given only once, with any step."""
    group = parser.add_argument_group("all steps")
    add_computing_options(group, levels)
    text = f"""
        --repeat N
            kernel runs on a GPU, after a warm-up, whose median is reported (default:
            {RunOptions.repeat})
        --memory SIZE
            filter INPUT in blocks, so that the program takes at most this much memory, like 2G:
            TIFF files of any size (default: the whole file in memory)
        --local-cluster N
            with --memory: compute the blocks in N worker processes on this machine, each with a GPU
            of its own and with as much memory
        --scheduler ADDRESS
            with --memory: compute the blocks on the workers of a Dask cluster, such as
            tcp://node1:8786; all machines have the files under the same names
        """
    add_options(group, text)
    add_tls_options(group)
    text = f"""
        --reference FILE
            compare each step with this picture or volume: PSNR, SSIM, MSE and MAE before and after;
            “{INPUT}” is INPUT itself; converted to grey if a result is grey
        --difference FILE
            write OUTPUT - reference to FILE: of a picture amplified around mid-grey, of a volume
            the values
        --residual FILE
            write the change made by the last step, its output - its input, in the same way; where
            a denoiser took the noise of a volume for that of photons, in units of its sigma
        """
    add_options(group, text, reference={"type": str})
    add_level_options(group)
    add_file_options(group)
    text = """
        --json
            print a report as JSON: the steps, which properties of INPUT the output keeps, has in
            another form, and lacks, and device, seconds and quality of the results
        """
    add_options(group, text)
    add_output_options(group, "print nothing but errors")
    return group


def _add_volume_options(parser: argparse.ArgumentParser, *kinds: Kind) -> None:
    group = parser.add_argument_group(
        "volumes",
        "INPUT may be a NIfTI file, a TIFF stack, a NumPy array, or a DICOM series or\n"
        "pictures of equal size in a folder."
        + ("\nFilters of pictures go through it slice by slice." if Kind.PICTURE in kinds else ""),
    )
    if Kind.PICTURE in kinds:
        add_axis_option(group)
    each = ""
    if Kind.VOLUME in kinds:
        each = "; like 1,3,4 to give each component its own"
        text = """
            --component FILE
                another volume of the same head, to be filtered together with INPUT and written next
                to OUTPUT, with the name of FILE in its name; up to three times
            --output-component FILE
                file to write a component to instead: once for each, in the same order
            """
        several = {"action": "append"}
        add_options(group, text, component=several, output_component=several)
    text = f"""
        --volume N
            number of the volume in a file of several, or of the series in a folder, from 1{each}
        """
    add_options(group, text, volume={"type": volume_numbers})
    add_float_option(group)
