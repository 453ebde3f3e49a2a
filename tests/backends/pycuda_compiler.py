"""Stands in for ``pycuda.compiler``, which needs a driver: runs nvcc and reports as PyCUDA does."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class CompileError(Exception):
    """Has the attributes of PyCUDA's."""

    def __init__(self, command: Sequence[str], stdout: str, stderr: str) -> None:
        super().__init__("nvcc compilation failed")
        self.command_line, self.stdout, self.stderr = command, stdout, stderr


def compile(
    source: str,
    nvcc: str = "nvcc",
    options: list[str] | None = None,
    keep: bool = False,
    no_extern_c: bool = False,
    arch: str | None = None,
    code: str | None = None,
    cache_dir: Any = None,
    include_dirs: Sequence[str] = (),
    target: str = "cubin",
) -> bytes:
    """Compile as PyCUDA 2026.1 does without a cache, and warn of all that nvcc writes."""
    assert options is not None, "the variable PYCUDA_DEFAULT_NVCC_FLAGS decides"
    assert arch is not None, "the current context decides"
    assert cache_dir is False, "there is a cache of our own"
    assert not keep
    assert no_extern_c, "templates have C++ linkage"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.cu").write_text(source, encoding="ascii")
        command = [nvcc, "--" + target, *options, "-arch", arch, "kernel.cu"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(command, done.stdout, done.stderr)
        said = "The CUDA compiler succeeded, but said the following:\n"
        warnings.warn("an aside", DeprecationWarning, stacklevel=1)
        warnings.warn(said + done.stdout + done.stderr, stacklevel=4)
        return Path(folder, f"kernel.{target}").read_bytes()


def install(patch: pytest.MonkeyPatch) -> None:
    """Let modules that import PyCUDA's compiler find this one."""
    package: Any = ModuleType("pycuda")
    package.compiler = sys.modules[__name__]
    package.driver = SimpleNamespace(CompileError=CompileError)
    patch.setitem(sys.modules, "pycuda", package)
    patch.setitem(sys.modules, "pycuda.compiler", package.compiler)
    patch.setitem(sys.modules, "pycuda.driver", package.driver)
