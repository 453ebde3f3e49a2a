"""A look at every access of an edited kernel to memory, on the emulated GPU.

A result can be right by chance: the emulator runs the threads of a block in turn, so that a missing
barrier may go unnoticed, and the bytes behind an array may be zero. The findings become messages
at the lines of the source, like those of a compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelscope.backends.cuda.compiler import CompileError
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator.checking import CheckedBackend, Finding, MistakeKind
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.emulator.launch import Memory
from kernelscope.backends.emulator.translation import CHECKS
from kernelscope.backends.trial.cases import CaseFiles
from kernelscope.backends.trial.compiler_messages import ERROR, MOST_MESSAGES, CompilerMessage
from kernelscope.backends.trial.emulated import PRELUDE, Kernels
from kernelscope.backends.trial.plan import TrialPlan
from kernelscope.backends.trial.protocol import (
    Ending,
    StageNotes,
    TrialJob,
    TrialReport,
    TrialStage,
)
from kernelscope.backends.trial.source_text import expanded
from kernelscope.base.errors import AppError, DeviceUnavailable
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.schema.launch import Launch

_HINTS = {
    MistakeKind.OUTSIDE: "Check the index of this line against the size of the array.",
    MistakeKind.INDEX: "Check the index of this line against the size of the array.",
    MistakeKind.UNINITIALISED: "Give the cell a value first, for the threads outside the image as "
    "well.",
    MistakeKind.RACE_OF_WRITES: "Give each thread a cell of its own, or put __syncthreads() "
    "between the two writes.",
    MistakeKind.RACE_WITH_READ: "Put __syncthreads() between the write and the read.",
}


def try_out(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Run a kernel on each picture of the job and report its faults in memory."""
    compiler = HostCompiler.find()
    if compiler is None:
        raise AppError("No C++ compiler was found to run the kernel with.", "Install g++.")
    checks = _Checks(job, compiler, progress)
    for number in range(job.cases):
        case = CaseFiles(folder, number)
        try:
            checks.check(case.plan(), case.source())
        except CompileError as error:
            return TrialReport(Ending.NOT_COMPILED, error.message)
        except DeviceUnavailable as error:  # a barrier, which the trial itself reports
            return TrialReport(Ending.FAULT, error.message)
    if not checks.findings:
        return TrialReport(Ending.DONE, seconds=progress.seconds)
    found = merged(checks.findings)
    messages = dict.fromkeys(map(_message, found))
    first = found[0]
    return TrialReport(
        Ending.FAULT,
        f"Wrong access to memory at {first.place or 'an unknown line'}: {_sentence(first)}.",
        _HINTS[first.kind],
        messages=tuple(messages)[:MOST_MESSAGES],
        seconds=progress.seconds,
    )


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """Return each mistake once, for all pictures together; the likeliest cause comes first.

    Without a barrier threads also read cells that are not written yet: the barrier comes first.
    """
    alike: dict[tuple[MistakeKind, str, str], list[Finding]] = {}
    for each in findings:
        alike.setdefault((each.kind, each.place, each.array), []).append(each)
    once = [replace(same[0], count=sum(each.count for each in same)) for same in alike.values()]
    races = (MistakeKind.RACE_OF_WRITES, MistakeKind.RACE_WITH_READ)
    raced = {each.array for each in once if each.kind in races}
    return sorted(
        once, key=lambda each: each.kind is MistakeKind.UNINITIALISED and each.array in raced
    )


def _sentence(finding: Finding) -> str:
    """Return a finding without its place, which the message has."""
    return str(finding).partition(": ")[2]


def _message(finding: Finding) -> CompilerMessage:
    file, _, line = finding.place.rpartition(":")
    return CompilerMessage(ERROR, _sentence(finding), file, int(line) if line else 0)


def kernels(compiler: HostCompiler) -> Kernels:
    return Kernels(compiler.watching(), PRELUDE, CHECKS)


class _Checks(CheckedBackend):
    """Checks the source of a job, with plans that were made elsewhere."""

    def __init__(self, job: TrialJob, compiler: HostCompiler, progress: StageNotes) -> None:
        super().__init__(compiler)
        self._kernels, self._progress = kernels(compiler), progress
        self._edited = expanded(job.name, job.text)

    def check(self, trial: TrialPlan, source: NDArray[Any]) -> None:
        """Run the launches of a plan and keep the findings."""
        task, plan = trial.task, trial.plan
        memory = Memory.of(task, plan, source.reshape(task.shape))
        for file, launch in zip(trial.files, plan.launches, strict=True):
            with self._progress.stage(TrialStage.COMPILE):
                library = self._library(file, launch, RunContext())
            with self._progress.stage(TrialStage.RUN):
                self._launch(library, launch, task, memory, CancelToken(), lambda _: None)
            if self.findings:  # what follows would work with what is wrong already
                return

    def _library(self, file: str, launch: Launch, context: RunContext) -> ctypes.CDLL:
        text = read_source(file) if file else self._edited
        library, code = self._kernels.load(launch, text, own=not file)
        self._code[id(library)] = code
        return library
