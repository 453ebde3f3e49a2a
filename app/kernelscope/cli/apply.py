"""The commands ``apply`` and ``denoise``: filters in a row on a picture or a volume.

`arguments` parses the command; `sources` reads the inputs and writes the outputs of their kind. The
steps between, which are the same for both, are here, and those of files larger than memory, which
``--memory`` filters in blocks.

“-” stands for a pipe. A picture is read from it as a whole into a private file, because readers go
back and forth in it; its first bytes say which format it has. The result has the same one, and
lines for the user go to stderr. None of them names the private files.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelscope.base.durations import duration
from kernelscope.base.errors import (
    AppError,
    ImageReadError,
    InvalidParameter,
    SeveralVolumes,
    UnknownName,
)
from kernelscope.base.text import PROGRAM
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.cli.arguments import PIPE, ApplyCommand, filter_parser, levels_of, parse
from kernelscope.cli.common import (
    STATUS,
    Parser,
    Speaker,
    StatusLine,
    every_filter,
    file_path,
    interruptible,
    log_to_stderr,
    namesakes,
    nan_option,
    open_backends,
    run_steps,
    unlogged,
)
from kernelscope.cli.shared_options import WITHOUT_LEVELS, cluster_of, knows_levels, tls_of
from kernelscope.cli.sources import PictureFiles, VolumeFiles, across, several_volumes
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import AXES
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name, option_of

if TYPE_CHECKING:
    from kernelscope.big.lazy.remote import Workers


def apply(arguments: list[str]) -> int:
    """Filter a picture or a volume into another, in one step or several."""
    parsed = parse(arguments)
    if parsed.verbose:
        log_to_stderr()
    silent = unlogged() if parsed.quiet and not parsed.verbose else nullcontext()
    with silent, piped(parsed) as command:
        if command.memory is not None:
            apply_streamed(command)
        elif command.local_cluster or command.scheduler or tls_of(command):
            option = "--scheduler" if command.scheduler else "--local-cluster"
            raise UnknownName(
                f"{option} computes blocks, and there are none without --memory.",
                "Add --memory 2G, or use “batch” for many files.",
            )
        else:
            with blocks_mentioned(command.source, "--memory 2G"):
                _run(command, _files(command))
    return 0


def _files(command: ApplyCommand) -> PictureFiles | VolumeFiles:
    from kernelscope.files.volumes import is_volume

    for_volumes = [step.filter for step in command.recipe.steps if step.filter.kind is Kind.VOLUME]
    source = command.source
    if not is_volume(source) and not for_volumes:
        return PictureFiles(command)
    if for_volumes and not is_volume(source):
        _refuse_picture(for_volumes[0], source)
    return VolumeFiles(command)


def _run(command: ApplyCommand, files: PictureFiles | VolumeFiles) -> None:
    from kernelscope.files import write_recipe

    with nan_option():
        sources = files.read()
        if len(sources) > 1:
            _refuse_comparisons(command, sources)
        reference = files.read_reference()
    files.check_outputs()
    status = StatusLine(not (command.quiet or command.verbose))
    say = Speaker(command.quiet, as_json=command.json)
    say.notices(dict.fromkeys(notice for source in sources for notice in source.notices))
    say.notices(files.advice())
    if command.levels and not (command.reference or knows_levels(files.recipe)):
        say.notices([WITHOUT_LEVELS])
    run = command.options, command.gpu, status, say
    results = run_steps(files.recipe, sources, reference, *run)
    record = files.write(results, status, say)
    if command.save_recipe:
        write_recipe(files.recipe, command.save_recipe)
    say.report(
        *(command.named or (command.source, command.result)),
        files.recipe,
        record,
        results,
    )


def _refuse_comparisons(command: ApplyCommand, sources: Sequence[Source]) -> None:
    """Refuse options that are for one picture or volume, before several are filtered."""
    given = {"reference": command.reference, "residual": command.residual}
    if isinstance(sources[0], Scan):
        del given["residual"]  # each volume has one
    option = next((name for name, value in given.items() if value), None)
    if option is not None:
        single, several, one = (
            ("picture", "pictures", "Write the first to a file of one picture, such as .png")
            if isinstance(sources[0], Image)
            else ("volume", "volumes", "Choose one with --volume N")
        )
        raise InvalidParameter(
            f"--{option} is for one {single}; {command.source} holds {len(sources)} {several}.",
            f"{one}, or leave it out.",
        )


def _refuse_picture(spec: FilterSpec, path: Path) -> None:
    """Refuse a picture for a filter for volumes; accept a file that may be a volume."""
    from kernelscope.files import READABLE

    pictures = {suffix for kind in READABLE for suffix in kind.suffixes}
    try:
        is_file = path.is_file()
    except OSError:  # a name that no file can have: the reader reports it
        is_file = False
    if is_file and path.suffix.lower() in pictures - {".tif", ".tiff"}:
        others = [filter_name(each) for each in namesakes(spec, Kind.PICTURE)]
        hint = f"For pictures there is {' and '.join(others)}." if others else "Take a volume."
        if spec.is_in_3d:
            hint = "Leave out --dimensions 3d, or take a volume."
        raise InvalidParameter(f"“{path}” is a picture; {filter_name(spec)} is for volumes.", hint)


_WHOLE = {
    "reference": "--reference",
    "component": "--component",
    "nan": "--nan",
    "as_float": "--float",
}
"""Fields of `ApplyCommand` that need the whole file, and their options."""


def apply_streamed(command: ApplyCommand) -> None:
    """Filter a file in blocks within the memory that the command allows."""
    from kernelscope.big.lazy.files import filter_file
    from kernelscope.engine.costs import Costs, default_path
    from kernelscope.files import write_recipe

    _check_streamed(command)
    assert command.memory is not None
    recipe = command.recipe
    if command.axis:
        recipe = across(recipe, command.axis)
    status = StatusLine(not (command.quiet or command.verbose))
    say = Speaker(command.quiet, as_json=command.json)
    try:
        with (
            open_backends(command.gpu) as backends,
            interruptible() as token,
            _workers(command, say) as workers,
        ):
            report = filter_file(
                recipe,
                command.source,
                command.result,
                command.memory,
                backends,
                number=command.volume[0] if command.volume else None,
                options=command.options,
                token=token,
                progress=status.progress,
                costs=Costs(default_path()),
                workers=workers,
                levels=command.levels,
            )
    except SeveralVolumes as error:
        raise several_volumes(error) from None
    finally:
        status.clear()
    if command.save_recipe:
        write_recipe(recipe, command.save_recipe)
    say.notices(report.record.notices)
    if command.levels and not knows_levels(recipe):
        say.notices([WITHOUT_LEVELS])
    done = report.streamed
    figures = {
        "seconds": round(done.seconds, 6),
        "blocks": done.blocks,
        "peak_bytes": done.peak_bytes,
    }
    say.report(command.source, command.result, recipe, report.record, streamed=figures)
    sides = report.shape if report.kind is Kind.VOLUME else report.shape[:2]
    cells = "voxels" if report.kind is Kind.VOLUME else "pixels"
    size = "×".join(map(str, reversed(sides)))
    size = f"{report.volumes} volumes of {size}" if report.volumes > 1 else size
    say.line(
        f"{command.result}: {'; '.join(report.steps)}; {size} {cells} in "
        f"{duration(done.seconds)}, {done.samples / 1e6 / done.seconds:.1f} million samples/s"
    )
    blocks = f"{done.blocks} blocks" if done.blocks > 1 else "1 block"
    if done.peak_bytes is None:
        say.line(f"  in {blocks}; this system does not report the memory that a process took")
        return
    each = " in each process" if command.local_cluster or command.scheduler else ""
    say.line(
        f"  in {blocks}; at most {done.peak_bytes / 2**20:.0f} MiB of memory{each}, "
        f"{command.memory / 2**20:.0f} MiB were allowed"
    )
    if done.peak_bytes > command.memory:
        say.notices(["More memory was taken than allowed: allow less, to have a margin."])


@contextmanager
def _workers(command: ApplyCommand, say: Speaker) -> Iterator[Workers | None]:
    """Provide the workers that compute the blocks, if any were asked for."""
    from kernelscope.big.lazy.remote import Workers

    if not command.local_cluster and not command.scheduler:
        yield None
        return
    with cluster_of(command, say) as (client, threads):
        yield Workers(client, threads)


def _check_streamed(command: ApplyCommand) -> None:
    if command.scheduler and command.gpu is not None:
        raise UnknownName(
            "--gpu is for this machine.", "Pin workers of --scheduler as they are started."
        )
    values = {option: getattr(command, field) for field, option in _WHOLE.items()}
    given = [
        option
        for option, value in values.items()
        if value is not None and value is not False and value != ()
    ]
    given += ["--residual"] * bool(command.residual)
    if command.quality is not None:
        raise InvalidParameter("--quality is for JPEG; --memory writes TIFF.", "Leave it out.")
    if given:
        raise UnknownName(
            f"{given[0]} needs the whole file in memory, and --memory filters it in blocks.",
            "Leave one of them out.",
        )
    if len(command.volume) > 1:
        raise InvalidParameter(
            "--memory filters one volume, or all.", "Give one number to --volume, or none."
        )


def denoise(arguments: list[str]) -> int:
    """Remove noise by the filter that suits the picture or the volume."""
    parser = Parser(
        prog=f"{PROGRAM} denoise",
        usage=f"{PROGRAM} denoise INPUT OUTPUT [options of apply]",
        description="Finds out whether INPUT has specks or noise, and applies the filter that "
        "removes it best, with the strength that it estimates.",
        epilog=f"To choose the filter: {PROGRAM} apply FILTER INPUT OUTPUT.\n\n{STATUS}",
    )
    parser.add_argument("input", metavar="INPUT", type=file_path, help="picture or volume")
    parser.add_argument("output", metavar="OUTPUT", type=file_path, help="file of the result")
    from kernelscope.engine.denoising import propose

    source = _input_of(parser, arguments)
    given = {word.partition("=")[0] for word in arguments}
    with blocks_mentioned(source, "--memory 2G"):
        seen = _middle_of(source) if "--memory" in given else _first_of(source)
    proposal = propose(seen)
    if "--quiet" not in arguments:
        others = ", ".join(map(filter_name, proposal.others))
        print(f"note: {proposal.line}{others and f'; other filters: {others}'}", file=sys.stderr)
    spec = proposal.filter
    own = [
        f"{option_of(each)}={each.format(proposal.values[each.name])}"
        for each in spec.parameters
        if each.name in proposal.values and option_of(each) not in given
    ]
    across = seen.volumes[0].flat_axis if isinstance(seen, Scan) else None
    if across and "--axis" not in given:
        own.append(f"--axis={AXES[across]}")
    first = [filter_name(proposal.first), ":"] if proposal.first is not None else []
    return apply([*first, filter_name(spec), *own, *arguments])


def _first_of(path: Path) -> Source:
    """Return the picture, or the first volume, of a file that is filtered as a whole."""
    from kernelscope.files import read_image
    from kernelscope.files.volumes import is_volume, read_volume

    # Unknown samples do not matter here, and `apply` is asked about them.
    return Scan((read_volume(path, 1, nan=0.0),)) if is_volume(path) else read_image(path, nan=0.0)


_SEEN = 2048  # side of the part in which specks are counted


def _middle_of(path: Path) -> Source | None:
    """Return the middle of a picture, or of a flat volume, of any size; None for a deep volume."""
    from kernelscope.big.lazy.opening import open_source
    from kernelscope.files.reading import image_from
    from kernelscope.files.volumes.reading import volume_from
    from kernelscope.files.volumes.zarr_source import raw_picture, raw_volume

    with closing(open_source(path, 1)) as opened:
        if opened.kind is Kind.VOLUME and min(opened.shape) > 1:
            return None
        z, y, x = (min(side, _SEEN) for side in opened.shape)
        first, second, third = ((a - b) // 2 for a, b in zip(opened.shape, (z, y, x), strict=True))
        samples = opened.read(Box((first, second, third), (z, y, x)))
    if opened.kind is Kind.VOLUME:
        return Scan((volume_from(raw_volume(opened.head, samples), path.name, path, 0.0),))
    return image_from(raw_picture(opened.head, samples), path.name, path, [], 0.0)


def _input_of(parser: Parser, arguments: list[str]) -> Path:
    """Return INPUT, before which options may stand.

    Which words are values of options depends on the filter, which depends on INPUT: the options
    are those of any filter that has all of them, and takes their values.
    """
    files = arguments[:2]
    asks = {"-h", "--help", "--"} & set(arguments)
    if not asks and any(word.startswith("-") for word in files):
        refused = None
        for spec in every_filter().values():
            if spec.remedy is None:
                continue
            options = filter_parser(spec, levels_of([spec]))
            try:
                found, unknown = options.parse_known_intermixed_args(arguments)
            except AppError as error:
                refused = refused or error
                continue
            if not unknown:
                break
        else:
            if refused is not None:
                raise refused
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        files = [str(each) for each in found.files[:2]]
    source: Path = parser.parse_args(files).input
    return source


@contextmanager
def piped(command: ApplyCommand) -> Iterator[ApplyCommand]:
    """Provide the command with files in place of the pipes, and copy the result to its pipe."""
    named = command.source, command.result
    reads, writes = named[0] == PIPE, named[1] == PIPE
    if not reads and not writes:
        yield command
        return
    if writes and sys.__stdout__ is None:
        raise AppError("Standard output is closed.", "Name a file for the result.")
    if command.memory is not None:
        raise UnknownName("--memory needs files, not pipes.", "Name both files, without “-”.")
    with (
        tempfile.TemporaryDirectory(prefix="kernelscope-") as folder,
        contextlib.ExitStack() as stack,
    ):
        source = _read_pipe(Path(folder)) if reads else command.source
        result = Path(folder) / f"output{source.suffix}" if writes else command.result
        if writes:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        try:
            yield replace(command, source=source, result=result, named=named)
        except AppError as error:
            for path, pipe in ((source, "standard input"), (result, "standard output")):
                if path.parent == Path(folder):
                    error.message = error.message.replace(str(path), pipe)
            raise
        stack.close()
        if writes:
            sys.stdout.buffer.write(result.read_bytes())
            sys.stdout.buffer.flush()


def _read_pipe(folder: Path) -> Path:
    """Return a file of the bytes of standard input, with the suffix of its format."""
    from kernelscope.files.picture_formats import FORMATS

    content = b""
    with contextlib.suppress(OSError):  # cannot be read, as a folder
        if sys.stdin is not None and not sys.stdin.buffer.isatty():  # it may be closed
            content = sys.stdin.buffer.read()
    if not content:
        raise ImageReadError("Standard input is empty.", "Send a picture: < picture.png")
    suffixes = [each.format.suffixes[0] for each in FORMATS if each.fits(content)]
    if not suffixes:
        raise ImageReadError(
            "Standard input is no picture in a format that is known by its first bytes.",
            "Write it to a file, and name that.",
        )
    path = folder / f"input{suffixes[0]}"
    path.write_bytes(content)
    return path
