"""The options with which a command shows its keys to the scheduler of a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from kernelscope.base.errors import UnknownName
from kernelscope.cli.common import file_path

if TYPE_CHECKING:
    from kernelscope.big.batch.cluster import Tls

_OPTIONS = {
    "--tls-ca-file": "certificate of the authority that signed the scheduler's",
    "--tls-cert": "certificate of this command",
    "--tls-key": "private key of this command",
}


def add_tls_options(parser: argparse._ActionsContainer) -> None:
    for option, text in _OPTIONS.items():
        parser.add_argument(
            option,
            metavar="FILE",
            type=file_path,
            help=f"{text}, for a --scheduler at an address such as tls://node1:8786",
        )


def tls_of(options: Any) -> Tls | None:
    """Return the files that were given; None if there are none."""
    files = {each: getattr(options, each[2:].replace("-", "_")) for each in _OPTIONS}
    given = [each for each, file in files.items() if file is not None]
    if not given:
        return None
    if missing := [each for each in files if each not in given]:
        raise UnknownName(
            f"{given[0]} is not enough for TLS.", f"Give {' and '.join(missing)} as well."
        )
    if not options.scheduler:
        raise UnknownName(
            f"{given[0]} is for --scheduler.",
            "A local cluster makes its own keys.",
        )
    from kernelscope.big.batch.cluster import Tls

    return Tls(*files.values())
