"""Starts the process of an edited kernel, watches it, and ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.trial import emulated
from kernelscope.backends.trial.protocol import (
    CARD,
    CHECKED,
    EMULATED,
    LOG,
    STAGES,
    TRACED,
    CaseFiles,
    Ending,
    TrialJob,
    TrialLimits,
    TrialReport,
    TrialStage,
    Work,
    read_trace,
)
from kernelscope.base import atomic, compiled, sandbox
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.engine.control import CancelToken
from kernelscope.schema.launch import Launch
from kernelscope.traffic.trace import Trace

_POLL_SECONDS = 0.02
_MODULE = "kernelscope.backends.trial.child"
_MOST_LOG = 4000
_NO_LIMITS = TrialLimits()

_KERNELS = {EMULATED: emulated.kernels, CHECKED: emulated.checked_kernels}
"""Compile the program's own kernels here: the process may not write to their cache."""

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
class TrialOutcome:
    report: TrialReport
    results: tuple[tuple[NDArray[Any], NDArray[Any]], ...] = ()
    """For each case the results of the kernel, if all ran to their ends, and of the program's own;
    none of a look at its accesses to memory."""
    trace: tuple[Trace, int] | None = None  # of a pixel, and the thread that writes it


def try_out(
    job: TrialJob,
    works: Sequence[Work] = (),
    limits: TrialLimits = _NO_LIMITS,
    token: CancelToken | None = None,
    begun: Callable[[int], None] = lambda number: None,
) -> TrialOutcome:
    """Try a kernel in a process of its own, and wait for the end; call it off the GUI thread.

    Whatever the kernel does, this returns after the limits at the latest, and the process and
    all that it started are gone then. On a processor it has no network, and writes to a folder of
    its own alone, where the system can keep it from both (`kernelscope.base.sandbox`).

    - `works`: the cases, for targets that run kernels.
    - `begun`: gets the number of each case that begins, from 1 on, unless it is over at once.
    """
    token = token or CancelToken()
    with tempfile.TemporaryDirectory(prefix="kernelscope-trial-") as name:
        folder = Path(name)
        replace(job, memory=limits.memory, cases=len(works)).write(folder)
        for number, work in enumerate(works):
            CaseFiles(folder, number).write(work)
        compiler = HostCompiler.find()
        if job.target in _KERNELS and compiler is not None:
            with contextlib.suppress(AppError, Cancelled):  # reported below
                _KERNELS[job.target](compiler).keep(_programs(job, works), token)
        command = [sys.executable, "-m", _MODULE, str(folder)]
        if job.target != CARD:  # whose driver writes to devices
            writable = [folder, *map(Path, _zig_caches().values())]
            command = sandbox.command(writable, _MODULE, str(folder))
        with (folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            report = _watch(process, folder, limits, token, begun)
        finally:
            _end(process)
        results = []
        if report.ending is Ending.DONE and job.target == TRACED:
            try:
                return TrialOutcome(report, trace=read_trace(folder))
            except AppError as error:
                text = f"The process left no trace that is whole: {error.message}"
                return TrialOutcome(replace(report, ending=Ending.DIED, text=text))
        if report.ending is Ending.DONE and job.target != CHECKED:
            for number, work in enumerate(works):
                result = CaseFiles(folder, number).results(work)
                if result is None:
                    text = "The process left no result that is whole."
                    return TrialOutcome(replace(report, ending=Ending.DIED, text=text))
                results.append(result)
    return TrialOutcome(report, tuple(results))


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which the child finds the program, and writes to its folder."""
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, **_zig_caches(), "PYTHONPATH": path, "TMPDIR": str(folder)}


def _zig_caches() -> dict[str, str]:
    """Return the variables for Zig, where it is the compiler.

    It takes a minute to compile its C++ library anew. What trials leave in its cache is only used
    by trials.
    """
    compiler = HostCompiler.find()
    if compiler is None or compiler.name != "Zig":
        return {}
    folder = compiled.cache_folder("trial-zig")
    atomic.own_folder(folder)
    return dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(folder))


def _programs(job: TrialJob, works: Sequence[Work]) -> list[tuple[str, Launch]]:
    """Return the sources of the program's own kernels that a trial runs, with their launches."""
    found = []
    for work in works:
        plans = [(work.plan, "")]
        if job.target == EMULATED:
            plans.append((work.reference, job.reference))
        for trial, usual in plans:
            for file, launch in zip(trial.files, trial.plan.launches, strict=True):
                if file or usual:
                    found.append((file or usual, launch))
    return found


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    limits: TrialLimits,
    token: CancelToken,
    begun: Callable[[int], None],
) -> TrialReport:
    """Wait for the end of the process, of its time, or of the user's patience."""
    stage, noted, since = TrialStage.START, 0, time.monotonic()
    while process.poll() is None:
        now = _stages(folder)
        if len(now) != noted:
            stage, noted, since = now[-1], len(now), time.monotonic()
            begun(now.count(TrialStage.REFERENCE))
        if token.cancelled:
            return TrialReport(Ending.CANCELLED, "Cancelled.")
        if time.monotonic() - since > limits.seconds(stage):
            return _too_long(stage, limits.seconds(stage))
        time.sleep(_POLL_SECONDS)
    begun(_stages(folder).count(TrialStage.REFERENCE))
    if process.returncode == 0:
        try:
            return TrialReport.read(folder)
        except AppError as error:
            return TrialReport(Ending.DIED, f"The process left no report: {error.message}", "")
    return _death(process.returncode, folder)


def _stages(folder: Path) -> list[TrialStage]:
    """Return the stages that the process has been at, the present one last."""
    try:
        names = (folder / STAGES).read_text(encoding="utf-8", errors="replace").splitlines()
        return [TrialStage(name) for name in names]
    except (OSError, ValueError):  # not written yet, or half of it
        return []


def _too_long(stage: TrialStage, seconds: float) -> TrialReport:
    if stage is TrialStage.RUN:
        return TrialReport(
            Ending.TIME,
            f"The kernel ran for more than {seconds:g} s and was stopped.",
            "Look for a loop whose condition never becomes false, or a barrier "
            "(__syncthreads) that some threads do not reach.",
        )
    doing = "Compiling" if stage is TrialStage.COMPILE else "Starting the process of the kernel"
    return TrialReport(
        Ending.TIME,
        f"{doing} took more than {seconds:g} s and was stopped.",
        "Look for templates or macros that expand without end.",
    )


def _death(code: int, folder: Path) -> TrialReport:
    """Return the report of a process that ended by itself, or by the system."""
    log = (folder / LOG).read_bytes()[-_MOST_LOG:].decode(errors="replace")
    if "MemoryError" in log or "std::bad_alloc" in log or "out of memory" in log.lower():
        return TrialReport(
            Ending.MEMORY,
            "The kernel, or compiling it, took more memory than a trial may have.",
            "Look for an array that is far too large.",
        )
    if code < 0:
        name = signal.Signals(-code).name
        how = _DEATHS.get(name, "died")
        if _stages(folder)[-1:] != [TrialStage.RUN]:
            return TrialReport(Ending.DIED, f"Compiling failed: its process {how} ({name}).")
        text = f"The kernel {how} ({name}) and was stopped."
        return TrialReport(Ending.DIED, text, "Check every index of arrays against their sizes.")
    last = next((line for line in reversed(log.splitlines()) if line.strip()), "no message")
    return TrialReport(Ending.DIED, f"The process of the kernel failed ({code}): {last.strip()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started, compilers included."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)  # its group: it leads a session
    elif process.poll() is None:
        process.kill()
    process.wait()
