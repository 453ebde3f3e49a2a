"""Keeps compiled kernels: on disk, for the next start, and those that came with the package."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from kernelscope import atomic, jit
from kernelscope.backends.cuda.compiler import STANDARD, Compiler, Cubin, release, title

_logger = logging.getLogger(__name__)

PACKAGED = jit.PREBUILT / "cubins"
"""Kernels that came with the package (`.ci/prebuild_cuda.py`), those that take long to compile."""

_MOST_BYTES = 64 << 20
"""More than any kernel has."""


class CubinCache:
    """Cubins on disk, named by a hash of everything that decides their content.

    A cache that cannot be read or written costs time, never a result.

    Parameters
    ----------
    compiler : Compiler
    folder : Path, optional
        In place of the user's.
    packaged : Path, optional
        A folder of kernels that the same major release of CUDA compiled somewhere else, which is
        what drivers accept: their code is taken before any is compiled.
    """

    def __init__(
        self, compiler: Compiler, folder: Path | None = None, packaged: Path | None = None
    ) -> None:
        self._compiler = compiler
        self._packaged = packaged
        base = platformdirs.user_cache_path("kernelscope", appauthor=False)
        self._folder = folder or base / "cubins"
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
        cached = _load(path) or self._load_packaged(name, source, architecture, defines)
        if cached is not None:
            return cached
        cubin = self._compiler.compile(name, source, architecture, defines)
        _logger.debug("%s compiled %s for %s %s", self._compiler.name, name, architecture, defines)
        _store(path, cubin)
        return cubin

    def _load_packaged(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin | None:
        if self._packaged is None:
            return None
        path = packaged_path(self._packaged, name, source, architecture, defines)
        try:
            content = path.read_bytes()
        except OSError:
            return None  # as usual: few kernels are there
        checked = _checked(path, content)
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
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(path, _entry(path, header, cubin.code), durable=False)


def _path(folder: Path, name: str, key: list[Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return folder / f"{name}-{digest[:32]}.cubin"


def _major(compiler: Compiler) -> str:
    """Return the major release of CUDA that a compiler is of."""
    return release(compiler).partition(".")[0]


def _load(path: Path) -> Cubin | None:
    """Return a stored cubin; None if there is none, or it is damaged or not the user's own."""
    try:
        content = atomic.read_own(path, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        _logger.warning("a compiled kernel will be made again: %s", error)
        return None
    log, code = _checked(path, content) or (None, b"")
    if not isinstance(log, str):
        _logger.warning("%s is damaged and will be made again", path)
        return None
    return Cubin(code, log)


def _checked(path: Path, content: bytes) -> tuple[Any, bytes] | None:
    """Return header and code of a file; None if it is damaged."""
    digest, _, rest = content.partition(b"\n")
    header, _, code = rest.partition(b"\n")
    try:
        return (json.loads(header), code) if digest == _digest(path, rest) else None
    except (ValueError, RecursionError):
        return None


def _digest(path: Path, content: bytes) -> bytes:
    """Return the first line of a file: proof that `content` is whole and belongs to this name."""
    return hashlib.sha256(path.name.encode() + content).hexdigest().encode()


def _entry(path: Path, header: str, code: bytes) -> bytes:
    rest = header.encode() + b"\n" + code
    return _digest(path, rest) + b"\n" + rest


def _store(path: Path, cubin: Cubin) -> None:
    content = _entry(path, json.dumps(cubin.log), cubin.code)
    try:
        atomic.own_folder(path.parent)
        atomic.replace(path, content, private=True, durable=False)
    except OSError as error:
        _logger.warning("compiled kernels cannot be kept in %s: %s", path.parent, error)
