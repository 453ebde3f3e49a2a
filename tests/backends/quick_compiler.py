"""A compiler of emulated kernels for tests: the emulator's headers are compiled once a session.

Half the time of a small kernel goes into the headers, and most of the other half into passes of
the optimiser that save less time than they take where pictures are small.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path

from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.emulator.compiler import _FLAGS, _TRACED, _WATCHED, HostCompiler
from kernelscope.backends.emulator.translation import CHECKS, TRACE, translate
from tests import builds

_WITHOUT_LIBRARIES = ("-fno-exceptions", "-nodefaultlibs", "-lgcc")
"""As where accesses are watched: Python has loaded the libraries of C, and g++ would look through
all of them for a handful of functions, which takes a tenth of a small kernel's compilation."""

_OF_THE_LINKER = ("-shared", "-nodefaultlibs", "-lgcc")


@functools.cache
def _headers(watch: tuple[Path, ...]) -> str:
    """Return the text with which every translated kernel begins."""
    return translate("", {}, "", watch=watch).removesuffix("\n\nEMULATE()\n")


class QuickCompiler(HostCompiler):
    """g++ with precompiled headers; any other compiler works as always."""

    def __init__(self, command: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
        super().__init__(command, more)
        if self.name == "g++" and sys.platform == "linux" and "-nodefaultlibs" not in more:
            self._flags = (*self._flags, *_WITHOUT_LIBRARIES)

    def watching(self) -> HostCompiler:
        # With its own passes of the optimiser: without them, copies of structures would read
        # fields that nothing has written and nobody uses.
        watching = QuickCompiler(self._command, _WATCHED)
        if watching.name == "g++":
            # A third of a compilation would be the functions that are called for each access.
            checks = watching._precompiled(_headers(CHECKS), ".o")
            watching._flags = (*watching._flags, "-DCHECKS_ELSEWHERE", str(checks))
        return watching

    def version(self) -> str:
        # The folder is that of the checkout: another one has the same objects elsewhere.
        return super().version().replace(str(builds.kept("")), "")

    def tracing(self) -> HostCompiler:
        return QuickCompiler(self._command, _TRACED)

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        for headers in map(_headers, (CHECKS, TRACE, ())):
            if self.name == "g++" and source.startswith(headers):
                # The first token of the file, or g++ compiles the header again.
                source = f'#include "{self._precompiled(headers)}"\n{source.removeprefix(headers)}'
        return super().compile(name, source, architecture, defines)

    def _precompiled(self, headers: str, suffix: str = ".h.gch") -> Path:
        """Return a header, or an object, that g++ has compiled with these flags."""
        flags = [flag for flag in self._flags if flag[-2:] != ".o" and flag not in _OF_THE_LINKER]
        return builds.precompiled(headers, (*self._command, *flags), suffix)


def quick_compiler() -> HostCompiler | None:
    """Return the installed compiler for kernels that run for a moment; None without one."""
    assert "-O2" in _FLAGS, "which the flag below replaces"
    return QuickCompiler.find("-Og")
