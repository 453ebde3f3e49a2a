"""Compiles CUDA sources to cubins, by PyCUDA with nvcc or by NVRTC, and keeps them on disk."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import json
import logging
import re
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kernelscope.base import compiled, jit
from kernelscope.base.errors import AppError
from kernelscope.base.installed import install_command
from kernelscope.engine.timing import Resources

_logger = logging.getLogger(__name__)

STANDARD = "c++17"


class CompileError(AppError):
    """A kernel did not compile; `log` is the compiler's output."""

    def __init__(self, filter_id: str, compiler: str, log: str) -> None:
        first = next((line for line in log.splitlines() if "error" in line), log.strip())
        super().__init__(f"{compiler} could not compile {filter_id}.cu: {first}")
        self.log = log


@dataclass(frozen=True)
class Cubin:
    """Machine code of one specialised source, and the assembler's report on it."""

    code: bytes
    log: str  # ptxas's resource report: registers, shared and constant memory, spills
    compiler: str = ""  # title of another compiler than that of this computer, if one made it


class Compiler(Protocol):
    """Turns CUDA C++ into a cubin."""

    name: str  # of the program or library
    through: str  # the library that calls it; empty if we do

    def version(self) -> str:
        """Return the version, as part of a cache key."""

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        """Compile or raise `CompileError`."""


_NO_CACHE = b"--no-cache"
"""Of the driver, which would give the code again without ptxas's report; older ones have none."""


class Nvrtc:
    """NVIDIA's run-time compiler through cuda-bindings: needs no host compiler.

    `more` are options to add.
    """

    name = "NVRTC"
    through = ""

    def __init__(self, *more: str) -> None:
        self._more = more

    def version(self) -> str:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
        build = _package_version("nvidia-cuda-nvrtc")
        return " ".join((f"nvrtc {major}.{minor} {build}", *self._more))

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        # The bindings rather than cuda.core.Program: that one asks the driver for its version.
        from cuda.bindings import nvrtc

        options = [
            f"--gpu-architecture={architecture}".encode(),
            f"--std={STANDARD}".encode(),
            b"--ptxas-options=-v",
            _NO_CACHE,
            *(option.encode() for option in self._more),
            *(f"-D{key}={value}".encode() for key, value in sorted(defines.items())),
        ]
        status, program = nvrtc.nvrtcCreateProgram(
            source.encode(), f"{name}.cu".encode(), 0, [], []
        )
        _check_nvrtc(status)
        try:
            (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
            if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
                options.remove(_NO_CACHE)
                (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log_bytes = b" " * size
            nvrtc.nvrtcGetProgramLog(program, log_bytes)
            log = log_bytes.rstrip(b"\0 ").decode(errors="replace")
            if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                raise CompileError(name, self.name, log)
            _, size = nvrtc.nvrtcGetCUBINSize(program)
            code = b" " * size
            _check_nvrtc(nvrtc.nvrtcGetCUBIN(program, code)[0])
            return Cubin(code, log)
        finally:
            nvrtc.nvrtcDestroyProgram(program)


def _check_nvrtc(status: Any) -> None:
    if int(status) != 0:
        raise AppError(f"NVRTC failed: {status.name}.")


_SAID = "The CUDA compiler succeeded, but said the following:\n"
"""Start of the warning by which PyCUDA passes on nvcc's output, with ptxas's report."""

_listening = threading.Lock()
"""Only one thread may catch warnings at a time: they are the process's."""


class Nvcc:
    """The CUDA toolkit's compiler, called by PyCUDA; needs a host compiler as well.

    PyCUDA keeps nothing: `cubins.CubinCache` does, which also knows the report of registers.
    """

    name = "nvcc"
    through = "PyCUDA"

    def __init__(self, program: str) -> None:
        self._program = program

    @classmethod
    def find(cls) -> Nvcc | None:
        """Return nvcc if it, a host compiler and PyCUDA are installed and start."""
        program = shutil.which("nvcc")
        host = "cl" if sys.platform == "win32" else "g++"
        if program is None or shutil.which(host) is None:
            return None
        found = cls(program)
        try:
            importlib.import_module("pycuda.compiler")
            found.version()
        except Exception as error:  # whatever a missing or a broken installation raises
            _logger.debug("nvcc is not used: %r", error)
            return None
        return found

    @functools.cache  # noqa: B019 - there is one compiler a process
    def version(self) -> str:
        return subprocess.run(
            [self._program, "--version"], capture_output=True, text=True, check=True
        ).stdout

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        from pycuda import compiler, driver

        options = [f"-D{key}={value}" for key, value in sorted(defines.items())]
        try:
            with _nvcc_output() as said:
                code = compiler.compile(
                    # PyCUDA writes the file in the system's encoding; only comments can differ.
                    source.encode("ascii", "replace").decode(),
                    nvcc=self._program,
                    options=[f"-std={STANDARD}", "-Xptxas=-v", *options],
                    no_extern_c=True,  # sources say that themselves, they have templates
                    arch=architecture,
                    cache_dir=False,
                    target="cubin",
                )
        except driver.CompileError as error:
            log = f"{error.stdout or ''}{error.stderr or ''}"
            raise CompileError(name, self.name, log) from error
        return Cubin(code, "".join(said))


@contextmanager
def _nvcc_output() -> Iterator[list[str]]:
    """Collect the output of nvcc out of PyCUDA's warnings; other warnings go on."""
    said: list[str] = []
    with _listening:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        for warning in caught:
            text = str(warning.message)
            if text.startswith(_SAID):
                said.append(text.removeprefix(_SAID))
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )


def release(compiler: Compiler) -> str:
    """Return the CUDA version of a compiler, like ``13.0``."""
    match = re.search(r"(?:nvrtc|release) ([\d.]+)", compiler.version())
    return match[1] if match else "0"


def title(compiler: Compiler) -> str:
    """Return which compiler it is: ``nvcc 13.0 through PyCUDA``, ``NVRTC 13.0``."""
    through = f" through {compiler.through}" if compiler.through else ""
    return f"{compiler.name} {release(compiler)}{through}"


def choose_compiler() -> Compiler:
    """Return nvcc through PyCUDA where that works, else NVRTC.

    Raises `AppError` if neither is there.
    """
    nvcc = Nvcc.find()
    if nvcc is not None:
        return nvcc
    try:
        nvrtc = Nvrtc()
        nvrtc.version()
    except Exception as error:  # whatever the loader of a missing library raises
        raise AppError(
            "There is no CUDA compiler on this computer.",
            f"Install one with: {install_command('cuda')}",
        ) from error
    return nvrtc


def _package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.lru_cache(maxsize=256)
def resources(log: str, kernel: str) -> Resources | None:
    """Read the resource report of `kernel` out of ptxas's `log`."""
    match = re.search(
        rf"Function properties for {re.escape(kernel)}\n(.*?)\n(.*?Used .*?)(?:\n|$)",
        log,
        re.DOTALL,
    )
    if match is None:
        return None
    text = match[1] + " " + match[2]

    def number(pattern: str) -> int:
        return sum(int(value) for value in re.findall(pattern, text))

    return Resources(
        registers=number(r"Used (\d+) registers"),
        spill_bytes=number(r"(\d+) bytes spill"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
        shared_bytes=number(r"(\d+) bytes smem"),
        constant_bytes=number(r"(\d+) bytes cmem"),
    )


PACKAGED = jit.PREBUILT / "cubins"
"""Kernels that came with the package (`.ci/prebuild_cuda.py`), those that take long to compile."""


class CubinCache:
    """Cubins on disk, named by a hash of everything that decides their content.

    A cache that cannot be read or written costs time, never a result.

    - `folder`: in place of the user's.
    - `packaged`: a folder of kernels that the same major release of CUDA compiled somewhere else,
      which drivers accept: their code is taken before any is compiled.
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
