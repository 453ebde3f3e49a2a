"""One GPU for a whole test run; a fresh one where a test breaks it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Protocol

import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend, slabs
from kernelscope.backends.cuda.compiler import CubinCache, Nvrtc
from kernelscope.backends.cuda.sources import read_source
from tests.backends.specialisations import defines, gpu_filters
from tests.paths import ROOT

SCRIPT_SECONDS = 60


@pytest.fixture(autouse=True)
def no_leaked_threads() -> None:
    """Take the place of the check of all tests: the shared GPU's threads outlive this one."""


@pytest.fixture(scope="session")
def shared_gpu() -> Iterator[CudaBackend]:
    backend = CudaBackend(compiler=Nvrtc())
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def compiled(shared_gpu: CudaBackend, request: pytest.FixtureRequest) -> None:
    """Put the cubins of all tests that were chosen into the cache, on all cores.

    The workers of xdist use all cores anyway: each compiles for its tests.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    (card,) = shared_gpu._open()
    chosen = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {
        (call.params["filter_id"], str(call.params["border"].code))
        for call in chosen
        if call is not None and {"filter_id", "border"} <= set(call.params)
    }
    jobs = [
        (spec.id, card.architecture, macros)
        for spec in gpu_filters()
        for macros in defines(spec)
        if (spec.id, macros.get("BORDER")) in wanted
    ]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in pool.map(_compile, jobs, chunksize=4):
            pass


def _compile(job: tuple[str, str, dict[str, str]]) -> None:
    filter_id, architecture, macros = job
    CubinCache(Nvrtc()).get(filter_id, read_source(filter_id), architecture, macros)


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


@pytest.fixture
def alone() -> None:
    """Leave out a test of times or of free memory while other workers use the same card."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("other processes use the card meanwhile")


@pytest.fixture
def small_volumes_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slabs, "WORTH_SHARING", 0)


@pytest.fixture(scope="module")
def cpu() -> Iterator[CpuBackend]:
    backend = CpuBackend()
    yield backend
    backend.close()


class RunScript(Protocol):
    def __call__(self, code: str) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def script() -> RunScript:
    """Run Python code in a process of its own, after the imports that every script needs."""
    prelude = f"""
        import faulthandler
        faulthandler.dump_traceback_later({SCRIPT_SECONDS}, exit=True)
    """
    prelude += """
        import os, signal, sys, threading, time
        import numpy as np
        from kernelscope.backends.cpu import CpuBackend
        from kernelscope.backends.cuda import CudaBackend, executor, kernel
        from kernelscope.backends.cuda.compiler import Nvrtc
        from kernelscope.images.image import Image
        from kernelscope.engine.options import Device
        from kernelscope.engine.request import Request
        from kernelscope.engine.run import execute
        from kernelscope.base.errors import AppError

        backend = CudaBackend(compiler=Nvrtc())
        image = Image.from_array(np.arange(64 * 64, dtype=np.uint8).reshape(64, 64))

        def run(image=image, filter_id="mean", **options):
            request = Request.create(image, filter_id, device=Device.GPU, **options)
            return execute(request, {"gpu": backend, "cpu": CpuBackend()})
    """

    def run_code(code: str) -> subprocess.CompletedProcess[str]:
        text = textwrap.dedent(prelude) + textwrap.dedent(code)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", text],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=2 * SCRIPT_SECONDS,
            check=False,
        )
        if "Timeout (" in done.stderr:  # faulthandler's: says where each thread was
            pytest.fail(done.stdout + done.stderr, pytrace=False)
        return done

    return run_code
