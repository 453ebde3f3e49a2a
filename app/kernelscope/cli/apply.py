"""The command ``apply``: one filter, several in a row, or a recipe, on a picture or a volume.

`arguments` parses the command; `pictures` and `volumes` read the inputs and write the outputs of
their kind. The steps between, which are the same for both, are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

from kernelscope.base.errors import InvalidParameter, UnknownName
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.cli.arguments import parse
from kernelscope.cli.command import ApplyCommand
from kernelscope.cli.common import (
    Speaker,
    StatusLine,
    log_to_stderr,
    namesakes,
    nan_option,
    run_steps,
    unlogged,
)
from kernelscope.cli.pipes import piped
from kernelscope.cli.shared_options import WITHOUT_LEVELS, knows_levels, tls_of
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.result import Result
from kernelscope.images.image import Image
from kernelscope.images.record import Record
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name


class Medium(Protocol):
    @property
    def recipe(self) -> Recipe:
        """The steps, as they apply to this kind of source."""

    def read(self) -> Sequence[Image | Scan]:
        """Return the sources: all pictures or volumes of a file, if its result can hold them."""

    def read_reference(self) -> Image | Volume | None:
        """Return the picture or volume to compare with, after `read`."""

    def check_outputs(self) -> None:
        """Refuse, before a long run, outputs that could not be written after it."""

    def advice(self) -> list[str]:
        """Return notices about filters that suit this kind better."""

    def write(self, results: Sequence[Result], status: StatusLine, say: Speaker) -> Record:
        """Write the outputs, a result for each source, and report them."""


def apply(arguments: list[str]) -> int:
    """Filter a picture or a volume into another, in one step or several."""
    parsed = parse(arguments)
    if parsed.verbose:
        log_to_stderr()
    silent = unlogged() if parsed.quiet and not parsed.verbose else nullcontext()
    with silent, piped(parsed) as command:
        if command.memory is not None:
            from kernelscope.cli.streamed import apply_streamed

            apply_streamed(command)
        elif command.local_cluster or command.scheduler or tls_of(command):
            option = "--scheduler" if command.scheduler else "--local-cluster"
            raise UnknownName(
                f"{option} computes blocks, and there are none without --memory.",
                "Add --memory 2G, or use “batch” for many files.",
            )
        else:
            with blocks_mentioned(command.source, "--memory 2G"):
                _run(command, _medium(command))
    return 0


def _medium(command: ApplyCommand) -> Medium:
    from kernelscope.files.volumes import is_volume

    for_volumes = [step.filter for step in command.recipe.steps if step.filter.kind is Kind.VOLUME]
    source = command.source
    if is_volume(source) or for_volumes:
        from kernelscope.cli.volumes import VolumeFiles

        if for_volumes and not is_volume(source):
            _refuse_picture(for_volumes[0], source)
        return VolumeFiles(command)
    from kernelscope.cli.pictures import PictureFiles

    return PictureFiles(command)


def _run(command: ApplyCommand, medium: Medium) -> None:
    from kernelscope.files import write_recipe

    with nan_option():
        sources = medium.read()
        if len(sources) > 1:
            _refuse_comparisons(command, sources)
        reference = medium.read_reference()
    medium.check_outputs()
    status = StatusLine(not (command.quiet or command.verbose))
    say = Speaker(command.quiet, as_json=command.json)
    say.notices(dict.fromkeys(notice for source in sources for notice in source.notices))
    say.notices(medium.advice())
    if command.levels and not (command.reference or knows_levels(medium.recipe)):
        say.notices([WITHOUT_LEVELS])
    run = command.options, command.gpu, status, say
    results = run_steps(medium.recipe, sources, reference, *run)
    record = medium.write(results, status, say)
    if command.save_recipe:
        write_recipe(medium.recipe, command.save_recipe)
    say.report(
        *(command.named or (command.source, command.result)),
        medium.recipe,
        record,
        [result.correlation for result in results],
    )


def _refuse_comparisons(command: ApplyCommand, sources: Sequence[Source]) -> None:
    """Refuse options that are for one picture or volume, before several are filtered."""
    given = {"reference": command.reference, "residual": command.residual}
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
