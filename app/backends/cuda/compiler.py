"""Compiles CUDA sources to cubins, with nvcc or NVRTC, and keeps them on disk."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from app.engine.launch import Resources
from app.errors import AppError

_logger = logging.getLogger(__name__)

STANDARD = "c++17"


class CompileError(AppError):
    """A kernel did not compile; `log` is what the compiler said."""

    def __init__(self, filter_id: str, compiler: str, log: str) -> None:
        first = next((line for line in log.splitlines() if "error" in line), log.strip())
        super().__init__(f"{compiler} could not compile {filter_id}.cu: {first}")
        self.log = log


@dataclass(frozen=True)
class Cubin:
    """Machine code of one specialised source, and what the assembler said of it.

    Attributes
    ----------
    code : bytes
    log : str
        ptxas's resource report: registers, shared and constant memory, spills.
    """

    code: bytes
    log: str


class Compiler(Protocol):
    """Turns CUDA C++ into a cubin."""

    name: str

    def version(self) -> str:
        """Return what has to be part of a cache key."""

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        """Compile or raise `CompileError`."""


class Nvrtc:
    """NVIDIA's run-time compiler through cuda-bindings: needs no host compiler."""

    name = "NVRTC"

    def version(self) -> str:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
        build = _package_version("nvidia-cuda-nvrtc")
        return f"nvrtc {major}.{minor} {build}"

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        # The bindings rather than cuda.core.Program: that one asks the driver for its version.
        from cuda.bindings import nvrtc

        options = [
            f"--gpu-architecture={architecture}".encode(),
            f"--std={STANDARD}".encode(),
            b"--ptxas-options=-v",
            *(f"-D{key}={value}".encode() for key, value in sorted(defines.items())),
        ]
        status, program = nvrtc.nvrtcCreateProgram(
            source.encode(), f"{name}.cu".encode(), 0, [], []
        )
        _check_nvrtc(status)
        try:
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


class Nvcc:
    """The CUDA toolkit's compiler; needs a host compiler beside it."""

    name = "nvcc"

    def __init__(self, program: str) -> None:
        self._program = program

    @classmethod
    def find(cls) -> Nvcc | None:
        """Return nvcc if it and a host compiler are installed."""
        program = shutil.which("nvcc")
        host = "cl" if sys.platform == "win32" else "g++"
        if program is None or shutil.which(host) is None:
            return None
        return cls(program)

    @functools.cache  # noqa: B019 - there is one compiler a process
    def version(self) -> str:
        return subprocess.run(
            [self._program, "--version"], capture_output=True, text=True, check=True
        ).stdout

    def compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
            path = Path(folder) / f"{name}.cu"
            path.write_text(source, encoding="utf-8")
            target = path.with_suffix(".cubin")
            command = [
                self._program,
                "-cubin",
                f"-arch={architecture}",
                f"-std={STANDARD}",
                "-Xptxas=-v",
                *(f"-D{key}={value}" for key, value in sorted(defines.items())),
                "-o",
                str(target),
                str(path),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            log = done.stdout + done.stderr
            if done.returncode != 0:
                raise CompileError(name, self.name, log)
            return Cubin(target.read_bytes(), log)


def choose_compiler() -> Compiler:
    """Return nvcc where it works, else NVRTC.

    Raises
    ------
    AppError
        If neither is there.
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
            "Install one with: pip install 'kernelscope[cuda]'",
        ) from error
    return nvrtc


def _package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


class CubinCache:
    """Cubins on disk, named by a hash of everything that decides their content.

    A cache that cannot be read or written costs time, never a result.
    """

    def __init__(self, compiler: Compiler, folder: Path | None = None) -> None:
        self._compiler = compiler
        base = platformdirs.user_cache_path("kernelscope", appauthor=False)
        self._folder = folder or base / "cubins"
        self._loaded: dict[tuple[Any, ...], Cubin] = {}

    @property
    def compiler(self) -> Compiler:
        return self._compiler

    def get(self, name: str, source: str, architecture: str, defines: Mapping[str, str]) -> Cubin:
        """Return the cubin of `source`, compiling it if it is not there yet."""
        wanted = (name, source, architecture, *sorted(defines.items()))
        if wanted not in self._loaded:
            self._loaded[wanted] = self._load_or_compile(name, source, architecture, defines)
        return self._loaded[wanted]

    def _load_or_compile(
        self, name: str, source: str, architecture: str, defines: Mapping[str, str]
    ) -> Cubin:
        key = json.dumps(
            [source, architecture, sorted(defines.items()), self._compiler.version(), STANDARD]
        )
        path = self._folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin"
        cached = _load(path)
        if cached is not None:
            return cached
        cubin = self._compiler.compile(name, source, architecture, defines)
        _logger.debug("%s compiled %s for %s %s", self._compiler.name, name, architecture, defines)
        _store(path, cubin)
        return cubin


def _load(path: Path) -> Cubin | None:
    """Return a stored cubin, or None if there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, _, rest = content.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        _logger.warning("%s is damaged and will be made again", path)
        return None
    header, _, code = rest.partition(b"\n")
    return Cubin(code, json.loads(header))


def _store(path: Path, cubin: Cubin) -> None:
    rest = json.dumps(cubin.log).encode() + b"\n" + cubin.code
    content = hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        _logger.warning("compiled kernels cannot be kept in %s: %s", path.parent, error)


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
