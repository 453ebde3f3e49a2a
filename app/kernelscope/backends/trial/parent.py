"""Starts the process of an edited kernel, watches it, and ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.trial.protocol import (
    LOG,
    OUTPUT,
    SOURCE,
    STAGES,
    Ending,
    Job,
    Limits,
    Report,
    Stage,
)
from kernelscope.engine.control import CancelToken
from kernelscope.errors import AppError

_POLL_SECONDS = 0.02
_MODULE = "kernelscope.backends.trial.child"
_MOST_LOG = 4000
_NO_LIMITS = Limits()

_DEATHS = {
    "SIGSEGV": "wrote or read outside its memory",
    "SIGBUS": "wrote or read outside its memory",
    "SIGILL": "reached a trap",
    "SIGTRAP": "reached a trap",
    "SIGFPE": "divided a whole number by zero",
    "SIGABRT": "damaged its memory",
    "SIGKILL": "was ended by the system, probably for lack of memory",
    "SIGXFSZ": "wrote more output than a trial may",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of a trial.

    Attributes
    ----------
    report : Report
    output : ndarray, optional
        The result of the kernel, if it ran to its end.
    """

    report: Report
    output: NDArray[Any] | None = None


def try_out(
    job: Job,
    source: NDArray[Any] | None = None,
    limits: Limits = _NO_LIMITS,
    token: CancelToken | None = None,
) -> Outcome:
    """Try a kernel in a process of its own, and wait for the end; call it off the GUI thread.

    Whatever the kernel does, this returns after the limits at the latest, and the process and
    all that it started are gone then.

    Parameters
    ----------
    source : ndarray, optional
        The picture, for a target that runs kernels.
    """
    token = token or CancelToken()
    with tempfile.TemporaryDirectory(prefix="kernelscope-trial-") as name:
        folder = Path(name)
        replace(job, memory=limits.memory).write(folder)
        if source is not None:
            np.save(folder / SOURCE, source, allow_pickle=False)
        with (folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(folder)],
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            report = _watch(process, folder, limits, token)
        finally:
            _end(process)
        output = _output(folder) if report.ending is Ending.DONE else None
    return Outcome(report, output)


def _environment() -> dict[str, str]:
    """Return an environment in which the child finds the program, as this process did."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _watch(
    process: subprocess.Popen[bytes], folder: Path, limits: Limits, token: CancelToken
) -> Report:
    """Wait for the end of the process, of its time, or of the user's patience."""
    stage, since = Stage.START, time.monotonic()
    while process.poll() is None:
        now = _stage(folder)
        if now is not stage:
            stage, since = now, time.monotonic()
        if token.cancelled:
            return Report(Ending.CANCELLED, "Cancelled.")
        if time.monotonic() - since > limits.seconds(stage):
            return _too_long(stage, limits.seconds(stage))
        time.sleep(_POLL_SECONDS)
    if process.returncode == 0:
        try:
            return Report.read(folder)
        except AppError as error:
            return Report(Ending.DIED, f"The process left no report: {error.message}", "")
    return _death(process.returncode, folder)


def _stage(folder: Path) -> Stage:
    """Return the stage that the process is at."""
    try:
        with (folder / STAGES).open(encoding="utf-8", errors="replace") as handle:
            *_, last = (Stage.START.value, *handle.read(1000).split())
        return Stage(last)
    except (OSError, ValueError):  # not written yet, or half of it
        return Stage.START


def _too_long(stage: Stage, seconds: float) -> Report:
    if stage is Stage.RUN:
        return Report(
            Ending.TIME,
            f"The kernel ran for more than {seconds:g} s and was stopped.",
            "Look for a loop whose condition never becomes false, or a barrier "
            "(__syncthreads) that some threads do not reach.",
        )
    doing = "Compiling" if stage is Stage.COMPILE else "Starting the process of the kernel"
    return Report(
        Ending.TIME,
        f"{doing} took more than {seconds:g} s and was stopped.",
        "Look for templates or macros that expand without end.",
    )


def _death(code: int, folder: Path) -> Report:
    """Return the report of a process that ended by itself, or by the system."""
    log = (folder / LOG).read_bytes()[-_MOST_LOG:].decode(errors="replace")
    if "MemoryError" in log or "std::bad_alloc" in log or "out of memory" in log.lower():
        return Report(
            Ending.MEMORY,
            "The kernel, or compiling it, took more memory than a trial may have.",
            "Look for an array that is far too large.",
        )
    if code < 0:
        name = signal.Signals(-code).name
        how = _DEATHS.get(name, "died")
        text = f"The kernel {how} ({name}) and was stopped."
        return Report(Ending.DIED, text, "Check every index of arrays against their sizes.")
    last = next((line for line in reversed(log.splitlines()) if line.strip()), "no message")
    return Report(Ending.DIED, f"The process of the kernel failed ({code}): {last.strip()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started, compilers included."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)  # its group: it leads a session
    elif process.poll() is None:
        process.kill()
    process.wait()


def _output(folder: Path) -> NDArray[Any] | None:
    """Return the result that the process left; None if it has none that is whole."""
    path = folder / OUTPUT
    if not path.is_file():
        return None
    try:
        output: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return output
