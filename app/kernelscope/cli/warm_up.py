"""The command ``warm-up``: compiles the usual code of filters now, so that no first run waits."""

from __future__ import annotations

from kernelscope.base import jit
from kernelscope.base.durations import about
from kernelscope.base.errors import AppError
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import Parser, show


def warm_up(arguments: list[str]) -> int:
    """Compile the code of the common filters now, so that no run waits."""
    Parser(
        prog=f"{PROGRAM} warm-up",
        description="Compiles the code of the common filters for the CPU, for 8 bit, 16 bit and "
        "float, so that no first run waits for it. What is compiled already is not compiled again.",
    ).parse_args(arguments)
    from kernelscope.backends.warm_up import compile_all, pieces

    jit.load_numba()  # decides on the place of the cache
    if not jit.can_cache():
        raise AppError(
            f"Compiled code cannot be kept in {jit.cache_folder()}.",
            "Set XDG_CACHE_HOME to a folder that you can write to.",
        )
    for done in compile_all(pieces()):
        if done.next:
            left = f", {about(done.left)} left" if done.left else ""
            show(f"{done.number + 1} of {done.of}: {done.next}{left}")
    show("All is compiled.")
    return 0
