"""Keeps compiled kernels: on disk, for the next start, and those that came with the package."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelscope.backends.cuda.compiler import STANDARD, Compiler, Cubin, release, title
from kernelscope.base import compiled, jit

_logger = logging.getLogger(__name__)

PACKAGED = jit.PREBUILT / "cubins"
"""Kernels that came with the package (`.ci/prebuild_cuda.py`), those that take long to compile."""


class CubinCache:
    """Cubins on disk, named by a hash of everything that decides their content.

    A cache that cannot be read or written costs time, never a result.

    - `folder`: in place of the user's.
    - `packaged`: a folder of kernels that the same major release of CUDA compiled somewhere else,
      which is what drivers accept: their code is taken before any is compiled.
    """

    def __init__(
        self, compiler: Compiler, folder: Path | None = None, packaged: Path | None = None
    ) -> None:
        self._compiler = compiler
        self._packaged = packaged
        self._folder = folder or compiled.cache_folder("cubins")
        self._loaded: dict[tuple[Any, ...], Cubin] = {}

    @property
    def compiler(self) -> Compiler:
        return self._compiler

    @functools.cached_property
    def title(self) -> str:
        """The compiler of kernels that name none themselves."""
        return title(self._compiler)

    def get(self, name: str, source: str, architecture: str, defines: Mapping[str, str]) -> Cubin:
        """Return the cubin of `source`, compiling it if it is not there yet."""
        wanted = (name, source, architecture, *sorted(defines.items()))
        if wanted not in self._loaded:
            self._loaded[wanted] = self._load_or_compile(name, source, architecture, defines)
        return self._loaded[wanted]

    def _load_or_compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        key = [source, architecture, sorted(defines.items()), self._compiler.version(), STANDARD]
        path = _path(self._folder, name, key)
        cached = _own(path) or self._load_packaged(name, source, architecture, defines)
        if cached is not None:
            return cached
        cubin = self._compiler.compile(name, source, architecture, defines)
        _logger.debug("%s compiled %s for %s %s", self._compiler.name, name, architecture, defines)
        compiled.try_to_keep(path, _entry(json.dumps(cubin.log), cubin.code))
        return cubin

    def _load_packaged(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin | None:
        if self._packaged is None:
            return None
        path = packaged_path(self._packaged, name, source, architecture, defines)
        checked = _parsed(compiled.load_packaged(path))
        if checked is None:
            return None
        (log, compiler, major), code = checked
        return Cubin(code, log, compiler) if major == _major(self._compiler) else None


def packaged_path(
    folder: Path, name: str, source: str, architecture: str, defines: Mapping[str, str]
) -> Path:
    """Return the file of a kernel that comes with the package, whichever compiler made it."""
    return _path(folder, name, [source, architecture, sorted(defines.items()), STANDARD])


def package(path: Path, cubin: Cubin, compiler: Compiler) -> None:
    """Write a kernel to `packaged_path`."""
    header = json.dumps([cubin.log, title(compiler), _major(compiler)])
    compiled.keep(path, _entry(header, cubin.code), private=False)


def _path(folder: Path, name: str, key: list[Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return folder / f"{name}-{digest[:32]}.cubin"


def _major(compiler: Compiler) -> str:
    """Return the major release of CUDA that a compiler is of."""
    return release(compiler).partition(".")[0]


def _own(path: Path) -> Cubin | None:
    """Return a cubin that this program kept; None if there is none that can be trusted."""
    log, code = _parsed(compiled.load(path)) or (None, b"")
    return Cubin(code, log) if isinstance(log, str) else None


def _parsed(entry: bytes | None) -> tuple[Any, bytes] | None:
    """Return header and code of an entry; None if it holds something else."""
    header, _, code = (entry or b"").partition(b"\n")
    try:
        return json.loads(header), code
    except (ValueError, RecursionError):
        return None


def _entry(header: str, code: bytes) -> bytes:
    return header.encode() + b"\n" + code
