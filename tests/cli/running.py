"""Runs the command line in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from kernelscope.cli.main import main


class Said(NamedTuple):
    out: str
    err: str


def run(line: str, *more: object, status: int = 0) -> Said:
    """Run the words of a line, and further ones as they are; return the text of both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            found: object = main([*line.split(), *map(str, more)])
        except SystemExit as stop:
            found = stop.code
    assert found == status, (line, more, found, err.getvalue())
    return Said(out.getvalue(), err.getvalue())


def refused(line: str, *more: object, status: int = 1) -> str:
    """Return the only line of a command that is refused: the error."""
    said = run(line, *more, status=status)
    assert not said.out
    (error,) = said.err.splitlines()
    assert error.startswith("error: ")
    return error
