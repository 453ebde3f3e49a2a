"""The command ``apply``: one filter, several in a row, or a recipe, on a picture or a volume."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelscope import filters
from kernelscope.cli.common import (
    INPUT,
    PROGRAM,
    STATUS,
    Parser,
    Speaker,
    StatusLine,
    add_gpu_option,
    byte_size,
    every_filter,
    file_path,
    log_nothing,
    log_to_stderr,
    namesakes,
    nan_option,
    open_backends,
    positive,
    run_steps,
    switches,
    thread_block,
    volume_numbers,
)
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import ESTIMATE, Step, default_text, has_estimate
from kernelscope.errors import AppError, Incomparable, InvalidParameter, LossyFormat
from kernelscope.images.volume import AXES
from kernelscope.manual import allowed, filter_name, option_of
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import FilterSpec
from kernelscope.spec.parameters import (
    FloatParameter,
    IntParameter,
    MaskParameter,
    NumbersParameter,
    Parameter,
    RadiiParameter,
    read_number,
)
from kernelscope.spec.samples import Kind

if TYPE_CHECKING:
    from kernelscope.engine.result import Result
    from kernelscope.images.image import Image

SEPARATOR = ":"
"""Stands between the steps of a chain."""

_DEFAULTS: dict[str, Any] = {
    "device": "auto",
    "level": None,
    "gpu": None,
    "repeat": 1,
    "block": None,
    "memory_limit": None,
    "reference": None,
    "difference": None,
    "residual": None,
    "save_recipe": None,
    "axis": None,
    "volume": None,
    "float": False,
    "component": [],
    "output_component": [],
    "nan": None,
    "lossy": False,
    "quiet": False,
    "verbose": False,
}
"""The options that hold for all steps, each of which may be given once, with any step."""

_PREFIX = "parameter_"
"""Keeps a filter's parameters apart from the options that every filter has."""

_CHAINS = """\
Several filters, each on the result of the one before, stand behind each other with
a lone “:” between them. INPUT and OUTPUT stand once, with any of them; so do all
options but a filter's parameters, --border and --grey, and they hold for every
step. After a lone “--” whatever begins with “-” is a file. For example:

  kernelscope apply gaussian-noise in.png out.png : median --size 5 --reference input
"""


def apply(arguments: list[str]) -> int:
    """Filter a picture or a volume into another, in one step or several."""
    options = _parse(arguments)
    from kernelscope.files import read_recipe
    from kernelscope.files.volumes import is_volume

    if options.verbose:
        log_to_stderr()
    elif options.quiet:
        log_nothing()
    recipe = options.steps or read_recipe(options.recipe)
    of_volumes = [step.filter for step in recipe.steps if step.filter.kind is Kind.VOLUME]
    if is_volume(options.input) or of_volumes:
        from kernelscope.cli.volumes import apply_to_volumes

        if of_volumes and not is_volume(options.input):
            _refuse_picture(of_volumes[0], options.input)
        return apply_to_volumes(recipe, options)
    return _apply_to_picture(recipe, options)


def _refuse_picture(spec: FilterSpec, path: Path) -> None:
    """Point from a filter of volumes to that of pictures; what may be a volume passes."""
    from kernelscope.files import READABLE

    pictures = {suffix for kind in READABLE for suffix in kind.suffixes}
    try:
        is_file = path.is_file()
    except OSError:  # a name that no file can have: the reader says so
        is_file = False
    if is_file and path.suffix.lower() in pictures - {".tif", ".tiff"}:
        others = [filter_name(each) for each in namesakes(spec, Kind.PICTURE)]
        hint = f"For pictures there is {' and '.join(others)}." if others else "Take a volume."
        raise InvalidParameter(f"“{path}” is a picture; {filter_name(spec)} is for volumes.", hint)


def _apply_to_picture(recipe: Recipe, options: argparse.Namespace) -> int:
    from kernelscope.files import read_image, unkept, write_image, write_recipe

    for name in ("axis", "volume", "float", "component", "output_component"):
        if getattr(options, name) != _DEFAULTS[name]:
            option = name.replace("_", "-")
            raise InvalidParameter(
                f"--{option} is for volumes; {options.input} is none.", "Leave it out."
            )
    with nan_option():
        image = read_image(options.input, nan=options.nan)
        reference = _read_reference(options.reference, image, options.nan)
    _check_outputs(options, recipe, image, reference)
    status = StatusLine(not (options.quiet or options.verbose))
    say = Speaker(options.quiet)
    say.notices(image.notices)
    result = run_steps(recipe, image, reference, options, status, say)
    write_image(result.image, options.output, lossy=options.lossy)
    say.notices(unkept(result.image, options.output))
    say.result(str(options.output), result)
    for picture in _pictures(options, result):
        write_image(picture.image, picture.path, lossy=options.lossy)
        say.line(picture.describe())
    if options.save_recipe:
        write_recipe(recipe, options.save_recipe)
    return 0


# What is computed besides the result --------------------------------------------------


def _read_reference(name: str | None, image: Image, nan: float | None) -> Image | None:
    from kernelscope.files import read_image

    if name is None:
        return None
    return image if name == INPUT else read_image(name, nan=nan)


@dataclass(frozen=True)
class _Difference:
    """A picture of a difference, where to write it, and what is to be said of it."""

    path: Path
    image: Image
    of: str
    gain: int

    def describe(self) -> str:
        return f"{self.path}: {self.of}, ×{self.gain} around grey 128"


def _pictures(options: argparse.Namespace, result: Result) -> Iterator[_Difference]:
    """Yield the pictures of differences that the options ask for."""
    from kernelscope.engine.chain import to_grey
    from kernelscope.images.image import Image
    from kernelscope.judging import colours
    from kernelscope.judging.pictures import difference, suggest_gain

    before = result.request.image
    for path, other, of in (
        (options.residual, before, f"output - input of {result.request.step.filter.name}"),
        (options.difference, result.request.reference, "output - reference"),
    ):
        if path is None or not isinstance(other, Image):
            continue
        if result.image.is_grey:
            other = to_grey(other)
        pair = colours(result.image.planes), colours(other.planes)
        gain = suggest_gain(*pair)
        yield _Difference(path, Image.from_array(difference(*pair, gain)), of, gain)


def _check_outputs(
    options: argparse.Namespace, recipe: Recipe, image: Image, reference: Image | None
) -> None:
    """Refuse before a long run what would be refused after it."""
    from kernelscope.engine.chain import shapes
    from kernelscope.files import check_write
    from kernelscope.files.atomic import check_target
    from kernelscope.judging import check_comparable, colours

    dtype = image.pixels.dtype
    before, after = [image.planes.shape, *shapes(recipe, image)][-2:]
    try:
        check_write(options.output, after, dtype, lossy=options.lossy)
    except LossyFormat as error:
        raise LossyFormat(error.message, f"{error.hint} Or add --lossy.".lstrip()) from None
    compared = [(options.residual, before, dtype)]
    if reference:
        compared.append((options.difference, reference.planes.shape, reference.pixels.dtype))
    for path, shape, other_dtype in compared:
        if path is None:
            continue
        if after[2] <= 2:  # It is turned to grey as the result was.
            shape = (*shape[:2], 1)
        made = colours(np.broadcast_to(dtype.type(), after))
        try:
            check_comparable(made, colours(np.broadcast_to(other_dtype.type(), shape)))
        except Incomparable as error:
            raise Incomparable(f"{path}: {error.message}", error.hint) from None
        check_write(path, made.shape, np.dtype(np.uint8), lossy=options.lossy)
    if options.save_recipe:
        check_target(options.save_recipe)


# Arguments ----------------------------------------------------------------------------


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Return every option; `steps` is None where `recipe` names a file instead."""
    segments = _split(arguments)
    parser = _apply_parser()
    specs = [_filter(segment) for segment in segments]
    if specs[0] is None:
        return _parse_recipe(parser, segments)
    levels = _levels(spec for spec in specs if spec)
    options = argparse.Namespace(recipe=None, **_DEFAULTS)
    given: set[str] = set()
    files: list[Path] = []
    steps: list[Step] = []
    for number, (spec, segment) in enumerate(zip(specs, segments, strict=True), 1):
        if spec is None:
            parser.error(f"step {number}: {_unknown(segment)}")
        try:
            found = _filter_parser(spec, levels).parse_intermixed_args(segment[1:])
            steps.append(_step(spec, found))
        except AppError as error:
            if len(segments) == 1:
                raise
            raise type(error)(f"Step {number}, {spec.name}: {error.message}", error.hint) from None
        files += found.files
        for name in _DEFAULTS.keys() & vars(found):
            if name in given:
                parser.error(f"argument --{name.replace('_', '-')}: give it once, for all steps")
            given.add(name)
            setattr(options, name, getattr(found, name))
    options.steps = Recipe(tuple(steps))
    return _checked(parser, options, files)


def _parse_recipe(
    parser: argparse.ArgumentParser, segments: Sequence[Sequence[str]]
) -> argparse.Namespace:
    """Return the options where there is no filter to begin with."""
    known, _ = parser.parse_known_args(segments[0])
    if known.recipe is None:
        parser.error(_unknown(segments[0]))
    if len(segments) > 1:
        parser.error(f"argument --recipe: no steps can follow it after “{SEPARATOR}”")
    found = parser.parse_intermixed_args(segments[0])
    options = argparse.Namespace(**_DEFAULTS | vars(found), steps=None)
    return _checked(parser, options, found.files)


def _checked(
    parser: argparse.ArgumentParser, options: argparse.Namespace, files: Sequence[Path]
) -> argparse.Namespace:
    """Add input and output to `options`, or refuse what does not go together."""
    from kernelscope.files.atomic import resolved

    if len(files) != 2:
        names = ", ".join(map(str, files)) or "none"
        parser.error(f"INPUT and OUTPUT are needed, two files; there are: {names}")
    if options.difference and not options.reference:
        parser.error("argument --difference: only with --reference")
    if options.quiet and options.verbose:
        parser.error("argument --quiet: not allowed with argument --verbose")
    options.input, options.output = files
    written = [options.output, options.residual, options.difference, options.save_recipe]
    targets = [resolved(path) for path in written if path is not None]
    if len(set(targets)) < len(targets):
        parser.error("OUTPUT, --residual, --difference and --save-recipe are files of their own")
    return options


def _split(arguments: Iterable[str]) -> list[list[str]]:
    """Return the arguments of each step; those after a lone ``--`` are files, whatever they begin
    with.
    """
    segments: list[list[str]] = [[]]
    files_only = False
    for argument in arguments:
        if argument == SEPARATOR:
            segments.append([])
            files_only = False
        elif argument == "--" and not files_only:
            files_only = True  # parse_intermixed_args takes none of these marks for what they are
        else:
            is_file = files_only and argument.startswith("-")
            segments[-1].append(f"./{argument}" if is_file else argument)
    return segments


def _filter(segment: Sequence[str]) -> FilterSpec | None:
    """Return the filter that a step begins with."""
    name = segment[0] if segment else ""
    return every_filter().get(name.replace("-", "_"))


def _unknown(segment: Sequence[str]) -> str:
    names = ", ".join(map(filter_name, every_filter().values()))
    problem = f"there is no filter “{segment[0]}”" if segment else "the filter is missing"
    return f"argument FILTER: {problem}; choose from {names}"


def _levels(specs: Iterable[FilterSpec]) -> list[str]:
    """Return the levels that any of the filters has on any device."""
    with open_backends() as backends:
        found = {
            level.id: None
            for spec in specs
            for backend in backends.values()
            for level in backend.levels(spec)
        }
    return list(found)


def _step(spec: FilterSpec, found: argparse.Namespace) -> Step:
    typed = [parameter for parameter in spec.parameters if _PREFIX + parameter.name in found]
    given: dict[str, Any] = {}
    for parameter in typed:
        given |= parameter.implies
    given |= {parameter.name: getattr(found, _PREFIX + parameter.name) for parameter in typed}
    if spec.kind is Kind.VOLUME:
        return Step.create(spec.id, given)
    return Step.create(spec.id, given, border=Border(found.border), grey=found.grey)


def _apply_parser() -> argparse.ArgumentParser:
    """Return the parser of what has no filter: recipes and the general help."""
    catalogue = "\n\n".join(
        f"filters of {kind}s:\n"
        + "\n".join(f"  {filter_name(spec):24}{spec.summary}" for spec in of_kind.values())
        for kind in Kind
        if (of_kind := filters.discover(kind))
    )
    parser = Parser(
        prog=f"{PROGRAM} apply",
        usage=f"{PROGRAM} apply FILTER INPUT OUTPUT [options] [{SEPARATOR} FILTER [options]] ...\n"
        f"       {PROGRAM} apply --recipe FILE INPUT OUTPUT [options]",
        description="Filters INPUT into OUTPUT. “apply FILTER --help” lists a filter's options.\n\n"
        + _CHAINS,
        epilog=f"{catalogue}\n\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    _add_files(parser)
    parser.add_argument(
        "--recipe",
        metavar="FILE",
        type=file_path,
        default=None,
        help="do what --save-recipe, or the window, wrote to FILE",
    )
    _add_run_options(parser, _levels(every_filter().values()))
    _add_volume_options(parser, *Kind)
    return parser


def _filter_parser(spec: FilterSpec, levels: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of one step."""
    parser = Parser(
        prog=f"{PROGRAM} apply {filter_name(spec)}",
        description=_escape(f"{spec.name}. {spec.summary} Source: {spec.source}."),
        epilog=f"“{PROGRAM} apply --help” says how to put several filters behind each other. "
        + STATUS,
        argument_default=argparse.SUPPRESS,
    )
    _add_files(parser)
    own = parser.add_argument_group("parameters of this filter")
    for parameter in spec.parameters:
        own.add_argument(
            option_of(parameter),
            dest=_PREFIX + parameter.name,
            metavar=_metavar(parameter),
            type=_reader(parameter),
            help=_escape(_parameter_help(parameter)),
        )
        for option, choice in switches(parameter).items():
            own.add_argument(
                option,
                dest=_PREFIX + parameter.name,
                action="store_const",
                const=choice.value,
                help=f"the same as {option_of(parameter)} {choice.value}",
            )
    if spec.kind is Kind.PICTURE:
        own.add_argument(
            "--border",
            choices=[str(border) for border in spec.borders],
            default=str(spec.borders[0]),
            help="treatment of cells outside the image (default: %(default)s)",
        )
        own.add_argument(
            "--grey", action="store_true", default=False, help="convert to greyscale first"
        )
    run = _add_run_options(parser, levels)
    _add_volume_options(parser, spec.kind)
    run.add_argument(
        "--save-recipe",
        metavar="FILE",
        type=file_path,
        help="write the steps to FILE as JSON, for --recipe and the window",
    )
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="INPUT OUTPUT",
        nargs="*",
        type=file_path,
        default=[],
        help="picture or volume to filter, and file to write, whose suffix is its format",
    )


def _add_run_options(
    parser: argparse.ArgumentParser, levels: Sequence[str]
) -> argparse._ArgumentGroup:
    """Add what may be given once, whatever the number of steps."""
    group = parser.add_argument_group("all steps")
    group.add_argument(
        "--device",
        choices=["auto", "cpu", "gpu"],
        help=f"where to compute (default: {_DEFAULTS['device']}); of several steps, those that "
        "cannot run there run where they can",
    )
    group.add_argument(
        "--level",
        choices=levels,
        help="way of computing (default: the fastest); of several steps, for those that have it",
    )
    add_gpu_option(group)
    group.add_argument(
        "--repeat",
        metavar="N",
        type=positive,
        help="kernel runs on a GPU, after a warm-up, whose median is reported (default: "
        f"{_DEFAULTS['repeat']})",
    )
    group.add_argument(
        "--block",
        metavar="WxH",
        type=thread_block,
        help="threads of a GPU's blocks, like 16x16 or 256x1, for levels up to texture (default: "
        "what the filter plans)",
    )
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=byte_size,
        help="GPU memory for images, like 256M; larger ones go in strips (default: what is free)",
    )
    group.add_argument(
        "--reference",
        metavar="FILE",
        help="judge each step by this picture or volume: PSNR, SSIM, MSE and MAE before and "
        f"after; “{INPUT}” is INPUT itself; turned to grey where a result is",
    )
    group.add_argument(
        "--difference",
        metavar="FILE",
        type=file_path,
        help="write OUTPUT - reference to FILE: of a picture amplified around mid-grey, of a "
        "volume the values",
    )
    group.add_argument(
        "--residual",
        metavar="FILE",
        type=file_path,
        help="write what the last step changed, its output - its input, in the same way",
    )
    group.add_argument(
        "--nan",
        metavar="X",
        type=read_number,
        help="number that takes the place of NaN in INPUT and what is read with it; OUTPUT has NaN "
        "there again (default: such files are refused)",
    )
    group.add_argument(
        "--lossy",
        action="store_true",
        help="write even if the format of OUTPUT loses something: bit depth, alpha, colour; the "
        "place of a volume",
    )
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")
    group.add_argument("--verbose", action="store_true", help="log every stage on stderr")
    return group


def _add_volume_options(parser: argparse.ArgumentParser, *kinds: Kind) -> None:
    """Add what may be given once, where filters of these kinds are applied to volumes."""
    group = parser.add_argument_group(
        "volumes",
        "INPUT may be a NIfTI file, a TIFF stack, a NumPy array, or a DICOM series or pictures "
        "of equal size in a folder."
        + (" Filters of pictures go through it slice by slice." if Kind.PICTURE in kinds else ""),
    )
    if Kind.PICTURE in kinds:
        group.add_argument(
            "--axis",
            choices=AXES,
            help=f"across which axis slices lie (default: {AXES[0]}); amounts that are fractions "
            "of white are fractions of the brightest voxel",
        )
    if Kind.VOLUME in kinds:
        group.add_argument(
            "--component",
            metavar="FILE",
            type=file_path,
            action="append",
            help="another volume of the same head, to be filtered together with INPUT and written "
            "beside OUTPUT, with the name of FILE in its name; up to three times",
        )
        group.add_argument(
            "--output-component",
            metavar="FILE",
            type=file_path,
            action="append",
            help="where to write a component instead: once for each, in the same order",
        )
    group.add_argument(
        "--volume",
        metavar="N",
        type=volume_numbers,
        help="number of the volume in a file of several, or of the series in a folder, from 1"
        + ("; like 1,3,4 to give each component its own" if Kind.VOLUME in kinds else ""),
    )
    group.add_argument(
        "--float",
        action="store_true",
        help="write 32-bit floats, not rounded to the type of INPUT",
    )


def _reader(parameter: Parameter) -> Any:
    """Return what reads a parameter's value from the command line."""
    if not has_estimate(parameter):
        return parameter.parse
    return lambda text: text if text == ESTIMATE else parameter.parse(text)


def _metavar(parameter: Parameter) -> str:
    match parameter:
        case IntParameter():
            return "N"
        case FloatParameter():
            return "X"
        case MaskParameter():
            return "ROWS"
        case NumbersParameter():
            return "X[,X...]"
        case RadiiParameter():
            return "N[,N,N]"
    return "VALUE"


def _parameter_help(parameter: Parameter) -> str:
    default = default_text(parameter) or "none"
    return f"{parameter.help} ({allowed(parameter)}; default: {default})"


def _escape(text: str) -> str:
    """Protect text from the formatting that `argparse` applies to help."""
    return text.replace("%", "%%")
