"""The command ``denoise``: ``apply`` with the filter that suits the noise of the source."""

from __future__ import annotations

import sys
from pathlib import Path

from kernelscope.base.text import PROGRAM
from kernelscope.cli.apply import apply
from kernelscope.cli.common import STATUS, Parser, file_path
from kernelscope.engine.denoising import propose
from kernelscope.teach.manual import filter_name, option_of


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
    from kernelscope.files import read_image
    from kernelscope.files.volumes import is_volume

    files, rest = arguments[:2], arguments[2:]
    source: Path = parser.parse_args(files).input
    # Unknown samples do not matter here, and `apply` is asked about them.
    proposal = propose(None if is_volume(source) else read_image(source, nan=0.0))
    if "--quiet" not in rest:
        others = ", ".join(map(filter_name, proposal.others))
        print(f"note: {proposal.line}{others and f'; other filters: {others}'}", file=sys.stderr)
    spec = proposal.filter
    given = {word.partition("=")[0] for word in rest}
    own = [
        f"{option_of(each)}={each.format(proposal.values[each.name])}"
        for each in spec.parameters
        if each.name in proposal.values and option_of(each) not in given
    ]
    return apply([filter_name(spec), *files, *own, *rest])
