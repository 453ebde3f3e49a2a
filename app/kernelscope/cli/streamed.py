"""``apply --memory``: a file that is larger than memory, filtered in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelscope.base.errors import InvalidParameter, SeveralVolumes, UnknownName
from kernelscope.cli.command import ApplyCommand
from kernelscope.cli.common import Speaker, StatusLine, interruptible, open_backends
from kernelscope.cli.shared_options import WITHOUT_LEVELS, cluster_of, knows_levels
from kernelscope.cli.volumes import across, several_volumes
from kernelscope.engine.costs import Costs, default_path
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:
    from kernelscope.big.lazy.remote import Workers

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
    from kernelscope.files import write_recipe

    _check(command)
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
    say.report(command.source, command.result, recipe, report.record)
    sides = report.shape if report.kind is Kind.VOLUME else report.shape[:2]
    cells = "voxels" if report.kind is Kind.VOLUME else "pixels"
    done = report.streamed
    size = "×".join(map(str, reversed(sides)))
    say.line(
        f"{command.result}: {'; '.join(report.steps)}; {size} {cells} in "
        f"{done.seconds:.1f} s, {done.samples / 1e6 / done.seconds:.1f} million samples/s"
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


def _check(command: ApplyCommand) -> None:
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
        raise InvalidParameter("--memory filters one volume.", "Give one number to --volume.")
