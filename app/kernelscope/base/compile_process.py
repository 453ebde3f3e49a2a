"""Compiles CPU kernels in a process of its own, which keeps the compiler's memory out of this one.

Compiling a filter leaves 10 to 40 MiB of LLVM's in the process for ever; loading its code from the
cache on the disk leaves 0 to 5 (figures: *Decisions*). A window that is open all day therefore has
another process compile into the cache, and loads from there::

    this process   (module, name of the kernel, types), pickled   -->  the other process
    this process   <--  a line: empty if the code is in the cache now, otherwise the reason

The other process ends when this one does, when it has grown, or when nothing was asked for a while;
the next request starts another. Whatever goes wrong, the caller compiles for itself.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from typing import Any, BinaryIO, TextIO

from kernelscope.base import jit, memory

_logger = logging.getLogger(__name__)

IDLE_SECONDS = 30.0
"""After these the process ends: starting another takes 1.2 s of processor time (EPYC of 2017)."""

MOST_BYTES = 400 << 20
"""Resident memory above which the process ends: 190 MiB are there before the first kernel."""

_NAME = "kernelscope.base.compile_process"


class CompileProcess:
    """Has kernels compiled into the cache; for `jit.compile_elsewhere`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_usable = True

    def __call__(self, module: str, name: str, types: tuple[Any, ...]) -> None:
        """Return once the code is in the cache, or cannot be compiled there."""
        request = pickle.dumps((module, name, types))
        with self._lock:
            if not self._is_usable:
                return
            # The process may end between two requests: then the second one is asked.
            answer = self._ask(request) or self._ask(request)
            self._is_usable = answer is not None
        if answer is None:
            _logger.warning("kernels cannot be compiled in another process")
        elif answer.strip():
            _logger.info("%s.%s: %s", module, name, answer.decode(errors="replace").strip())

    def close(self) -> None:
        """End the process, unless it compiles: then it keeps the code, and ends after this one."""
        if self._lock.acquire(blocking=False):
            self._forget()
            self._lock.release()

    def _ask(self, request: bytes) -> bytes | None:
        """Return the answer; None if the process ended without one."""
        try:
            if self._process is None:
                self._process = _start()
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(request)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except (OSError, ValueError):  # it has ended, or this system starts no process
            answer = b""
        if not answer:
            self._forget()
        return answer or None

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", _NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment | {"PYTHONSAFEPATH": "1"},
    )


def serve(requests: BinaryIO, answers: TextIO) -> None:
    """Compile each kernel that is asked for, until there are no more."""
    while memory.resident() < MOST_BYTES:
        idle = threading.Timer(IDLE_SECONDS, os._exit, (0,))
        idle.daemon = True
        idle.start()
        try:
            module, name, types = pickle.load(requests)  # from the process that started this one
        except EOFError:
            return
        finally:
            idle.cancel()
        try:
            kernel: jit.JitKernel = getattr(importlib.import_module(module), name)
            kernel.compile_for(types)
            problem = ""
        except Exception as error:  # the other process compiles, and reports its errors
            problem = f"{type(error).__name__}: {error}".replace("\n", " ")
        answers.write(f"{problem}\n")
        answers.flush()


if __name__ == "__main__":
    jit.load_numba()  # decides on the place of the cache
    serve(sys.stdin.buffer, sys.stdout)
