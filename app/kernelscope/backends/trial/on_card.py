"""A trial on the GPU of this computer: the kernel runs between fences, and is timed.

The process has a context of its own on the card, which is lost if the kernel reads or writes
outside its memory. So the program's kernels run first: the result to compare with, and the times
of the other levels. The parent ends a process whose kernel does not end.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import CompileError, Cubin, CubinCache, Nvrtc
from kernelscope.backends.cuda.device_run import DeviceRun, PreparedFilter
from kernelscope.backends.cuda.executor import filter_rows
from kernelscope.backends.cuda.kernel import hold_cubin
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.trial import compiling
from kernelscope.backends.trial.compiling import expanded
from kernelscope.backends.trial.emulated import PATTERN, faults_beside
from kernelscope.backends.trial.protocol import (
    ERROR,
    CaseFiles,
    CompilerMessage,
    Ending,
    StageNotes,
    TrialJob,
    TrialPlan,
    TrialReport,
    TrialStage,
    parse,
)
from kernelscope.base.errors import AppError
from kernelscope.base.installed import install_command
from kernelscope.schema.launch import Launch

REPEATS = 7  # measured launches of each kernel, where there is one case

FENCE = 1 << 20
"""Bytes on each side of source and output. Writes further away may hit other memory unnoticed."""

_ENDINGS = {
    "illegal memory access": (
        "It read or wrote outside its memory and was stopped.",
        "Check every index of arrays against their sizes.",
    ),
    "misaligned address": (
        "It read or wrote a value at an address that is no multiple of its size.",
        "Look for a pointer that was cast to a larger type.",
    ),
    "too many resources": (
        "It needs more registers than a block of this size can have.",
        "Use fewer variables, or choose a smaller block.",
    ),
    "illegal instruction": ("It reached a trap and was stopped.", "Look for __trap or assert."),
    "unspecified launch failure": (
        "It reached a trap, or broke a rule of the card, and was stopped.",
        "Look for __trap or assert, and check every index of shared memory.",
    ),
}
"""Causes and ways out by a part of the driver's message."""


def try_out(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Compile a kernel, run it and the program's own, and leave both results in the folder.

    Raises `AppError` if there is no card, or it cannot run the program's own kernels.
    """
    checked = compiling.try_out(job, folder, progress)
    if checked.ending is not Ending.DONE:
        return checked
    try:
        card = GpuContext(0)
    except ImportError as error:
        raise AppError(f"{error}.", f"Install it: {install_command('cuda')}") from error
    try:
        trial = _Trial(job, card)
        times: dict[str, float] = {}
        for number in range(job.cases):
            faults = trial.run_case(CaseFiles(folder, number), progress, times)
            if faults:
                return replace(checked, ending=Ending.FAULT, text=" ".join(faults), hint=_OUTSIDE)
        name = card.call(card.handle.name)
    except CompileError as error:
        found = parse(error.log) or (CompilerMessage(ERROR, error.message),)
        return replace(checked, ending=Ending.NOT_COMPILED, messages=(*found, *checked.messages))
    except card.cuda.Error as error:
        text, hint = ending_of(str(error))
        return replace(checked, ending=Ending.FAULT, text=text, hint=hint)
    finally:
        card.close()
    return replace(checked, seconds=progress.seconds, times=times, device=str(name))


_OUTSIDE = "Compare the indices of writes with the sizes of the picture."

OWN = "yours"  # the name of the kernel that is tried, among the times of a report
ORIGINAL = "original"  # that of the program's own at the same level


def ending_of(message: str) -> tuple[str, str]:
    """Return the cause and the way out for a message of the driver."""
    for part, ending in _ENDINGS.items():
        if part in message:
            return ending
    return f"The card stopped it: {message}.", "Compare it with the program's own kernel."


class _Ran(NamedTuple):
    """A run of a plan: output, faults of its memory, and median seconds of its kernels."""

    output: NDArray[Any]
    faults: list[str]
    seconds: float


class _Trial:
    """Compiles and runs the kernels of plans on a card."""

    def __init__(self, job: TrialJob, card: GpuContext) -> None:
        self._job, self._card = job, card
        self._compiler = Nvrtc()
        self._cache = CubinCache(self._compiler)
        self._text = expanded(job.name, job.text)
        self._repeat = REPEATS if job.cases == 1 else 1

    def run_case(self, case: CaseFiles, progress: StageNotes, times: dict[str, float]) -> list[str]:
        """Run all kernels of a case, that of the user last; return the findings in its memory.

        Raises `pycuda.driver.Error` if the card stopped the kernel.
        """
        call, cuda = self._card.call, self._card.cuda
        source, plan = case.source(), case.plan()
        with progress.stage(TrialStage.REFERENCE):
            try:
                ran = call(self._run, case.reference(), source, False)
                case.save("reference", ran.output)
                times[ORIGINAL] = ran.seconds
                for name, other in case.others():
                    times[name] = call(self._run, other, source, False).seconds
            except cuda.Error as error:
                raise AppError(
                    f"The GPU could not run the program's own kernel: {error}.",
                    "Close other programs that use the GPU.",
                ) from error
        with progress.stage(TrialStage.COMPILE):
            cubins = call(self._cubins, plan, True)
        with progress.stage(TrialStage.RUN):
            ran = call(self._run, plan, source, True, cubins)
        times[OWN] = ran.seconds
        case.save("output", ran.output)
        return ran.faults

    def _cubins(self, trial: TrialPlan, own: bool) -> tuple[Cubin, ...]:
        """Return the machine code of each launch, of the text that is tried or of the program."""
        return tuple(
            self._cubin(file, launch, own and not file)
            for file, launch in zip(trial.files, trial.plan.launches, strict=True)
        )

    def _cubin(self, file: str, launch: Launch, own: bool) -> Cubin:
        architecture = self._card.architecture
        if own:  # versions of the user's would stay in the cache for ever
            name = self._job.name.removesuffix(".cu")
            return self._compiler.compile(name, self._text, architecture, launch.defines)
        name = file or self._job.reference
        return self._cache.get(name, read_source(name), architecture, launch.defines)

    def _run(
        self,
        trial: TrialPlan,
        source: NDArray[Any],
        own: bool,
        cubins: tuple[Cubin, ...] | None = None,
    ) -> _Ran:
        card, task = self._card, trial.task
        cubins = cubins or self._cubins(trial, own)
        hold_cubin(self._cache, card)
        spec = filters.get(self._job.reference)
        step = PreparedFilter(spec, task, 0, True, trial.plan, cubins, is_new=True)
        run = DeviceRun(card, self._cache, [step], self._repeat)
        source = np.ascontiguousarray(source).reshape(task.shape)
        output = np.empty(task.output_shape, task.dtype)
        given, made = _Fenced(card, source.nbytes), _Fenced(card, output.nbytes)
        try:
            card.staging.upload(source, given.start)
            filter_rows(run, None, given.start, made.start)
            card.staging.download(made.start, output)
            faults = [*given.faults("the source"), *made.faults("the output")]
            again = np.empty_like(source)
            card.staging.download(given.start, again)
            if again.tobytes() != source.tobytes():  # also where floats are not numbers
                faults.append("It wrote into the source.")
        finally:
            run.free()
            card.free(given.memory, made.memory)
        return _Ran(output, faults, run.kernel_seconds)


class _Fenced:
    """Device memory between two fences of known bytes."""

    def __init__(self, card: GpuContext, size: int) -> None:
        self._card, self._size = card, size
        self.memory = card.allocate(size + 2 * FENCE)
        self.start = int(self.memory) + FENCE
        whole = size + 2 * FENCE
        card.cuda.memset_d8_async(int(self.memory), PATTERN, whole, card.stream)

    def faults(self, name: str) -> list[str]:
        """Return a sentence for each fence that was written to."""
        before, after = np.empty(FENCE, np.uint8), np.empty(FENCE, np.uint8)
        self._card.staging.download(int(self.memory), before)
        self._card.staging.download(self.start + self._size, after)
        return list(faults_beside(name, before, after))
