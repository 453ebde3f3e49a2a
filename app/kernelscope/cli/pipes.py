"""“-” in place of a file: pictures from standard input, and to standard output.

A picture is read as a whole into a private file, because readers go back and forth in it; its first
bytes say which format it has. The result has the same one, and lines for the user go to stderr.
None of them names the private files.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelscope.base.errors import AppError, ImageReadError, UnknownName
from kernelscope.cli.arguments import PIPE, ApplyCommand


@contextlib.contextmanager
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
        source = _read(Path(folder)) if reads else command.source
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


def _read(folder: Path) -> Path:
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
