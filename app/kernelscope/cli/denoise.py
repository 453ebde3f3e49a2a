"""The command ``denoise``: ``apply`` with the filter that suits the noise of the source."""

from __future__ import annotations

import sys
from pathlib import Path

from kernelscope.base.text import PROGRAM
from kernelscope.cli.apply import apply
from kernelscope.cli.common import STATUS, Parser, file_path
from kernelscope.engine.denoising import propose
from kernelscope.engine.step import ESTIMATE
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.teach.manual import filter_name, option_of


def denoise(arguments: list[str]) -> int:
    """Remove noise from a picture or a volume, by the filter that suits it."""
    parser = Parser(
        prog=f"{PROGRAM} denoise",
        usage=f"{PROGRAM} denoise INPUT OUTPUT [options of apply]",
        description="Finds out whether INPUT has specks or noise, and applies the filter that "
        "removes it best, with the strength that it estimates.",
        epilog=f"To choose the filter: {PROGRAM} apply FILTER INPUT OUTPUT.\n\n{STATUS}",
    )
    parser.add_argument("input", metavar="INPUT", type=file_path, help="picture or volume")
    parser.add_argument("output", metavar="OUTPUT", type=file_path, help="file of the result")
    files, rest = arguments[:2], arguments[2:]
    proposal = propose(_read(parser.parse_args(files).input))
    if "--quiet" not in rest:
        others = ", ".join(map(filter_name, proposal.others))
        print(f"note: {proposal.line}{others and f'; other filters: {others}'}", file=sys.stderr)
    spec = proposal.step.filter
    own = [
        f"{option_of(each)}={each.format(proposal.step.parameters[each.name])}"
        for each in spec.parameters
        if proposal.step.parameters[each.name] not in (each.default, ESTIMATE)
    ]
    return apply([filter_name(spec), *files, *own, *rest])


def _read(path: Path) -> Source:
    """Return a source to look at; unknown samples do not matter."""
    from kernelscope.files import read_image
    from kernelscope.files.volumes import is_volume, read_volume

    return Scan((read_volume(path),)) if is_volume(path) else read_image(path, nan=0.0)
