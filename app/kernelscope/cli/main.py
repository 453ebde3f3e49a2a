"""The command line: ``kernelscope`` when installed, ``python main.py`` in a checkout.

Exit status: 0; 1 for errors that the user can put right (a file, a value out of range) and for
whatever this machine lacks (a GPU, NVRTC), with ``error: ...`` on stderr; 2 for wrong usage (a
command, an option, a filter, a level or a preset that does not exist anywhere); 70 for a bug; 130
after Ctrl+C; 141 if its output can no longer be written to a pipe. Results go to stdout, the rest
to stderr.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import kernelscope
from kernelscope.base import memory
from kernelscope.base.errors import AppError, Cancelled, ImageReadError, UnknownName
from kernelscope.base.installed import missing_package, pip_command
from kernelscope.base.text import PROGRAM, one_line
from kernelscope.cli.common import (
    STATUS,
    Parser,
    add_options,
    file_path,
    log_to_file,
    log_to_stderr,
    silence_libraries,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command given by `argv` (default: the process's arguments).

    Returns the exit status. Wrong usage and ``--help`` leave through `SystemExit`, as usual with
    `argparse`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell closed it: >&-
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets a substitute rather than a crash.
            stream.reconfigure(errors="replace")
    silence_libraries()
    try:
        if arguments and arguments[0] in COMMANDS:
            status = command_of(arguments[0])(arguments[1:])
        else:
            status = _window(arguments)
        sys.stdout.flush()
    except AppError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, UnknownName) else 1
    except (KeyboardInterrupt, Cancelled):
        return 130
    except BrokenPipeError:
        # The reader has gone; redirect the interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if memory.is_shortage(error):
            print("error: There is not enough memory. Close other programs.", file=sys.stderr)
            return 1
        package = missing_package(error) if isinstance(error, ModuleNotFoundError) else None
        if package is not None:
            hint = f"Install it: {pip_command(package)}"
            print(f"error: The package {package} is not installed. {hint}", file=sys.stderr)
            return 1
        traceback.print_exc()
        print(
            "This is a bug in Kernelscope; please report it with the text above.", file=sys.stderr
        )
        return 70
    return status


# The window ---------------------------------------------------------------------------


class _WindowParser(Parser):
    """Its help lists the commands, whose modules are imported for that alone."""

    def format_help(self) -> str:
        commands = "\n".join(f"  {name:11}{command_of(name).__doc__}" for name in COMMANDS)
        self.epilog = (
            f"commands:\n{commands}\n\n"
            f"To open a file named like a command, write ./NAME.\n\n{STATUS}"
        )
        return super().format_help()


def _window(arguments: list[str]) -> int:
    _refuse_misspelt(arguments)
    parser = _WindowParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [--debug] [--log FILE] [IMAGE ...]\n"
        f"       {PROGRAM} --install-desktop | --remove-desktop\n"
        f"       {PROGRAM} COMMAND [--help] ...",
        description="Opens the window, on each IMAGE that is given.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    text = """
        images IMAGE...
            pictures and volumes to open
        --debug
            write the log to stderr too
        --log FILE
            write the log to FILE too
        """
    add_options(parser, text, images={"nargs": "*", "type": file_path})
    parser.add_argument(
        "--version", action="version", version=f"Kernelscope {kernelscope.__version__}"
    )
    text = """
        --install-desktop
            add the program to the desktop's menu, with its icon and types of files (Linux)
        --remove-desktop
            remove that again
        """
    add_options(parser.add_mutually_exclusive_group(), text)
    options = parser.parse_args(arguments)
    images: list[Path] = options.images
    if options.install_desktop or options.remove_desktop:
        if images:
            parser.error("an image cannot be opened while the menu is changed")
        return _menu_entry(options.install_desktop)
    for image in images:
        if not _is_there(image):
            raise ImageReadError(
                f"There is no file “{image}”.", f"Name a picture, or one of {', '.join(COMMANDS)}."
            )
    if options.log is not None and os.path.realpath(options.log) in map(os.path.realpath, images):
        raise AppError("The log would overwrite the image.", "Choose another file for the log.")
    if options.debug:
        log_to_stderr()
    if options.log is not None:
        log_to_file(options.log)
    from kernelscope.base import screen

    screen.check_installed()
    screen.check()
    try:
        from kernelscope.gui import run

        return run(*images or (None,))
    except ImportError as error:
        if "PySide6" not in (error.name or ""):
            raise
        raise screen.libraries_missing(str(error)) from None


def _refuse_misspelt(arguments: list[str]) -> None:
    """Raise `UnknownName` for a command that does not exist.

    A lone word may be the name of a file, of which others are never the first of several.
    """
    name = arguments[0] if arguments else ""
    if not name or name.startswith("-") or _is_there(Path(name)):
        return
    meant = _MEANT.get(name.lower())
    alike = [meant] if meant else difflib.get_close_matches(name.lower(), COMMANDS, n=2)
    words = [each for each in arguments if not each.startswith("-")]
    if alike and not Path(name).suffix:
        hint = f"Did you mean {' or '.join(alike)}? “{PROGRAM} --help” lists all."
        raise UnknownName(f"There is no command “{name}”.", hint)
    if len(words) > 1 and not Path(name).suffix and "--log" not in arguments:
        hint = f"Use one of {', '.join(COMMANDS)}."
        raise UnknownName(f"There is no command “{name}”.", hint)


def _menu_entry(wanted: bool) -> int:
    """Add the program to the desktop's menu, or remove it."""
    from kernelscope.base import desktop

    if wanted:
        print(f"{desktop.install()}: starts {' '.join(desktop.command())}")
        return 0
    for path in desktop.remove():
        print(f"removed {path}")
    return 0


def _is_there(path: Path) -> bool:
    """Return whether such a file exists; False if no file can have this name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


COMMANDS = {
    "apply": "apply:apply",
    "denoise": "apply:denoise",
    "batch": "batch:batch",
    "list": "catalogue:list_filters",
    "info": "catalogue:info",
    "kernel": "kernels:kernel",
    "trace": "kernels:trace",
    "bench": "bench:bench",
    "phantom": "phantom:phantom",
    "warm-up": "setting_up:warm_up",
    "completion": "setting_up:completion",
}
"""The module and the function of each command; it is imported when the command runs."""

_MEANT = {
    "doctor": "info",
    "check": "info",
    "filters": "list",
    "help": "--help",
    "version": "--version",
}
"""Names that other programs have for commands."""


def command_of(name: str) -> Callable[[list[str]], int]:
    module, function_name = COMMANDS[name].split(":")
    found = importlib.import_module(f"kernelscope.cli.{module}")
    function: Callable[[list[str]], int] = getattr(found, function_name)
    return function
