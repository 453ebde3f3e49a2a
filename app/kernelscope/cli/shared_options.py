"""Options that several commands have, each defined once: computing, files, filters, clusters."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kernelscope.base.errors import UnknownName
from kernelscope.cli.common import Speaker, add_gpu_option, add_options, quality, switches
from kernelscope.engine.area import Area
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import DIMENSIONS, Recipe
from kernelscope.engine.step import ESTIMATE, Step, default_text
from kernelscope.images.volume import AXES
from kernelscope.library.arguments import of_any_sides, takes_any_sides
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import Parameter
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import allowed, option_of

if TYPE_CHECKING:
    from kernelscope.big.batch.cluster import Tls

RUN = ("device", "level", "repeat", "memory_limit", "block")  # fields of `RunOptions`


def add_computing_options(
    group: argparse._ActionsContainer, levels: Sequence[str], **of_gpu: Any
) -> None:
    """Add the options of where and how to compute; `of_gpu` is for `add_gpu_option`."""
    text = f"""
        --device
            where to compute (default: {RunOptions.device}); steps that cannot run there run where
            they can
        --level
            level of computing (default: the fastest), for the steps that have it
        """
    add_options(group, text, device=[each.value for each in Device], level=levels)
    add_gpu_option(group, **of_gpu)
    text = """
        --block WxH
            threads of a GPU's blocks, like 16x16 or 256x1, for levels up to texture (default: the
            filter's own)
        --memory-limit SIZE
            GPU memory for images, like 256M; larger ones go in strips (default: all free)
        """
    add_options(group, text)


def run_options(found: Mapping[str, Any]) -> RunOptions:
    given = {name: found[name] for name in RUN if found.get(name) is not None}
    return RunOptions(**given | {"device": Device(given.get("device", RunOptions.device))})


def add_file_options(group: argparse._ActionsContainer) -> None:
    text = """
        --nan X
            number that replaces NaN in all files that are read; results have NaN there again
            (default: such files are refused)
        --lossy
            write even if the format of the result loses something: bit depth, alpha, colour, or the
            position of a volume
        --quality N
            quality of a JPEG, from 1 to 100 (default: 95, or that of a JPEG it was read from if it
            is higher); chroma that it had as 4:2:2 or 4:2:0 is subsampled so again, unless 4:2:2 is
            turned, and all other chroma is kept whole (4:4:4)
        """
    add_options(group, text, quality={"type": quality})


def add_level_options(group: argparse._ActionsContainer) -> None:
    text = """
        --white X
            white of float pictures and of volumes, to which amounts, PSNR and SSIM are relative
            (default: 1 if samples lie between 0 and 1, else the largest; of a reference its own);
            that of 8-bit and 16-bit pictures is 255 and 65535
        --black X
            black beside --white (default: 0; without --white, the smallest sample if that is
            negative)
        """
    add_options(group, text)


def knows_levels(recipe: Recipe) -> bool:
    """Return whether a step of a recipe asks for black or white."""
    return any(step.filter.unit_for(step.parameters).knows_white for step in recipe.steps)


WITHOUT_LEVELS = "--white has no effect: no step asks for it, and there is no --reference."


def add_axis_option(group: argparse._ActionsContainer) -> None:
    text = f"""
        --axis
            axis that slices of a volume are perpendicular to (default: {AXES[0]}); amounts given as
            fractions of white are fractions of the brightest voxel
        """
    add_options(group, text, axis=AXES)


def add_dimensions_option(group: argparse._ActionsContainer) -> None:
    text = """
        --dimensions
            of the mask on volumes: 2d, in each slice, or 3d, through the slices; 3d has its own
            parameters: “--dimensions 3d --help” (default: 2d)
        """
    add_options(group, text, dimensions={"choices": DIMENSIONS, "default": "2d"})


def in_dimensions(spec: FilterSpec, arguments: Sequence[str]) -> FilterSpec:
    """Return the filter, or its form in 3-D if that is asked for: it has parameters of its own."""
    if spec.in_3d is None:
        return spec
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_dimensions_option(first)
    found, _ = first.parse_known_args(arguments)
    return spec.in_3d if found.dimensions == "3d" else spec


def add_float_option(group: argparse._ActionsContainer) -> None:
    text = """
        --float
            write 32-bit floats of a volume, not rounded to the type of the input
        """
    add_options(group, text, float={"dest": "as_float"})


def add_output_options(group: argparse._ActionsContainer, quiet: str) -> None:
    """Add the options of the printed output; `quiet` is the help of one."""
    add_options(group, f"--quiet\n    {quiet}\n--verbose\n    log every stage on stderr")


_TLS = ("tls_ca_file", "tls_cert", "tls_key")


def add_tls_options(parser: argparse._ActionsContainer) -> None:
    text = """
        --tls-ca-file FILE
            certificate of the authority that signed the scheduler's, for a --scheduler at an
            address such as tls://node1:8786
        --tls-cert FILE
            certificate of this command, for a --scheduler at an address such as tls://node1:8786
        --tls-key FILE
            private key of this command, for a --scheduler at an address such as tls://node1:8786
        """
    add_options(parser, text)


def tls_of(options: Any) -> Tls | None:
    files = {f"--{each.replace('_', '-')}": getattr(options, each) for each in _TLS}
    given = [each for each, file in files.items() if file is not None]
    if not given:
        return None
    if missing := [each for each in files if each not in given]:
        raise UnknownName(
            f"{given[0]} is not enough for TLS.", f"Give {' and '.join(missing)} as well."
        )
    if not options.scheduler:
        raise UnknownName(f"{given[0]} is for --scheduler.", "A local cluster makes its own keys.")
    from kernelscope.big.batch.cluster import Tls

    return Tls(*files.values())


@contextmanager
def cluster_of(
    options: Any, say: Speaker, files_at_once: int = 2
) -> Iterator[tuple[Any, int | None]]:
    """Provide a client of ``--local-cluster`` or ``--scheduler``, and the threads of a worker."""
    from kernelscope.big.batch.cluster import connected, local_workers, share_of_cores

    count = options.local_cluster
    if count:
        with local_workers(count, options.gpu, files_at_once) as client:
            yield client, share_of_cores(count)
        return
    with connected(options.scheduler, tls_of(options)) as client:
        if not client.scheduler_info()["workers"]:
            say.notices([f"{options.scheduler} has no workers yet: the command waits for them."])
        yield client, None


_PREFIX = "parameter_"  # separates a filter's parameters from the options that every filter has


def add_filter_options(
    parser: argparse.ArgumentParser, spec: FilterSpec, *, any_sides: bool = False
) -> None:
    """Add the parameters of a filter, and for pictures its border and ``--grey``.

    The parser omits options that are not given (``argument_default=SUPPRESS``). With `any_sides`,
    masks may be rectangles, which `step_of` may leave to another filter.
    """
    group = parser.add_argument_group("parameters of this filter")
    for parameter in spec.parameters:
        has_sides = any_sides and takes_any_sides(spec, parameter)
        group.add_argument(
            option_of(parameter),
            dest=_PREFIX + parameter.name,
            metavar="N[,N]" if has_sides else parameter.placeholder,
            type=_side_reader(parameter) if has_sides else _reader(parameter),
            help=escape(_parameter_help(parameter, _ANY_SIDES if has_sides else "")),
        )
        for option, choice in switches(parameter).items():
            group.add_argument(
                option,
                dest=_PREFIX + parameter.name,
                action="store_const",
                const=choice.value,
                help=f"the same as {option_of(parameter)} {choice.value}",
            )
    if spec.in_3d or spec.is_in_3d:
        add_dimensions_option(group)
    if spec.kind is Kind.PICTURE or spec.is_in_3d:
        text = """
            --border
                treatment of cells outside the image (default: %(default)s)
            """
        borders = [str(border) for border in spec.borders]
        add_options(group, text, border={"choices": borders, "default": borders[0]})
    if spec.kind is Kind.PICTURE:
        text = """
            --grey
                convert to greyscale first
            --within AREA
                filter only there and keep the rest: a shape and its corners in pixels, such as
                “rectangle 12,8 52,38”, “ellipse 12,8 52,38” or “polygon 0,0 40,0 20,30”
            """
        within = {"type": Area.parse, "default": None}
        add_options(group, text, grey={"default": False}, within=within)


def step_of(spec: FilterSpec, found: argparse.Namespace) -> Step:
    typed = [parameter for parameter in spec.parameters if _PREFIX + parameter.name in found]
    given: dict[str, Any] = {}
    for parameter in typed:
        given |= parameter.implies
    given |= {parameter.name: getattr(found, _PREFIX + parameter.name) for parameter in typed}
    if spec.kind is Kind.VOLUME and not spec.is_in_3d:
        return Step.create(spec.id, given)
    border = Border(found.border)
    if spec.is_in_3d:
        return Step.create(spec.id, given, border=border)
    spec, values = of_any_sides(spec, given)
    return Step.create(spec.id, values, border=border, grey=found.grey, within=found.within)


def escape(text: str) -> str:
    """Protect text from the formatting that `argparse` applies to help."""
    return text.replace("%", "%%")


def _reader(parameter: Parameter) -> Any:
    if not parameter.has_estimate:
        return parameter.parse
    return lambda text: text if text == ESTIMATE else parameter.parse(text)


_TWO_SIDES = re.compile(r"([1-9]\d*)\s*[x×,;\s]\s*([1-9]\d*)", re.ASCII)

_ANY_SIDES = "; or an even number, or a width and a height, as 3,5"


def _side_reader(parameter: Parameter) -> Callable[[str], Any]:
    """Return the function that reads a side, or a width and a height as (height, width)."""

    def read(text: str) -> Any:
        text = text.strip()
        if found := _TWO_SIDES.fullmatch(text):
            width, height = map(int, found.groups())
            return width if width == height and width % 2 else (height, width)
        if text.isdecimal() and text.isascii() and int(text) > 0 and int(text) % 2 == 0:
            return int(text), int(text)
        return parameter.parse(text)

    return read


def _parameter_help(parameter: Parameter, more: str) -> str:
    default = default_text(parameter) or "none"
    form = f"; {parameter.form}" if parameter.form else ""
    return f"{parameter.help} ({allowed(parameter)}{form}{more}; default: {default})"
