"""One GPU for a whole test run; a fresh one where a test breaks it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from app.backends.cuda import CudaBackend
from app.backends.cuda.compiler import Nvrtc

ROOT = Path(__file__).parents[2]
SCRIPT_SECONDS = 60


@pytest.fixture(autouse=True)
def no_leaked_threads() -> None:
    """Take the place of the check of all tests: the shared GPU's threads outlive this one."""


@pytest.fixture(scope="session")
def shared_gpu() -> Iterator[CudaBackend]:
    backend = CudaBackend(compiler=Nvrtc())
    yield backend
    backend.close()


@pytest.fixture
def gpu(shared_gpu: CudaBackend) -> Iterator[CudaBackend]:
    """The GPU with its memory limit put back afterwards."""
    yield shared_gpu
    shared_gpu.memory_limit = None


@pytest.fixture
def fresh_gpu() -> Iterator[CudaBackend]:
    backend = CudaBackend(compiler=Nvrtc())
    yield backend
    backend.close()


class RunScript(Protocol):
    def __call__(self, code: str) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def script() -> RunScript:
    """Run Python code in a process of its own, after the imports that every script needs."""
    prelude = """
        import os, signal, sys, threading, time
        import numpy as np
        from app.backends.cuda import CudaBackend, executor
        from app.backends.cuda.compiler import Nvrtc
        from app.engine.image import Image
        from app.engine.request import Device, Request
        from app.engine.run import execute
        from app.errors import AppError

        backend = CudaBackend(compiler=Nvrtc())
        image = Image.from_array(np.arange(64 * 64, dtype=np.uint8).reshape(64, 64))

        def run(image=image, filter_id="mean", **options):
            request = Request.create(image, filter_id, device=Device.GPU, **options)
            return execute(request, {"gpu": backend})
    """

    def run_code(code: str) -> subprocess.CompletedProcess[str]:
        text = textwrap.dedent(prelude) + textwrap.dedent(code)
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", text],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
        )

    return run_code
