"""A trial on the emulated GPU: the kernel is compiled for the processor and run there."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.compiler import CompileError
from kernelscope.backends.cuda.inspection import NoCompiler
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator.compiler import HostCompiler, library_cache
from kernelscope.backends.emulator.launch import Memory, run_launch
from kernelscope.backends.emulator.translation import translate
from kernelscope.backends.trial import compiling
from kernelscope.backends.trial.cases import CaseFiles
from kernelscope.backends.trial.compiler_messages import ERROR, CompilerMessage, parse
from kernelscope.backends.trial.guarded import Guarded
from kernelscope.backends.trial.plan import TrialPlan
from kernelscope.backends.trial.protocol import (
    Ending,
    StageNotes,
    TrialJob,
    TrialReport,
    TrialStage,
)
from kernelscope.backends.trial.source_text import expanded
from kernelscope.base.compiled import load_library
from kernelscope.base.errors import AppError, DeviceUnavailable
from kernelscope.base.parallel import core_count
from kernelscope.engine.control import CancelToken
from kernelscope.schema.launch import Launch

_MOST_THREADS = 4  # each reserves a quarter of a gigabyte for the stacks of a block

_COUNTER = """\
#define KERNELSCOPE_TRIAL
extern "C" __attribute__((visibility("default"))) unsigned long long trial_loads;
unsigned long long trial_loads;  // cells of pictures, see exercise.cuh
"""

PRELUDE = """\
namespace trial {
// Threads of a block that wait at different lines would hang a card, or mix up data.
UNCHECKED void barrier(const char* file, int line)
{
    static thread_local const char* first_file;
    static thread_local int first_line;
    static thread_local char fault[300];
    emulator::Gate& gate = emulator::block->gates[0];
    if (!gate.arrived) {
        first_file = file;
        first_line = line;
    } else if (line != first_line || strcmp(file, first_file)) {
        snprintf(fault, sizeof fault,
            "threads of a block wait at different barriers, %.99s:%d and %.99s:%d", first_file,
            first_line, file, line);
        emulator::block->fault = fault;
        emulator::leave(emulator::WAITING);
    }
    emulator::meet(gate, emulator::block->live);
}
}  // namespace trial
// Give back the stacks of this thread of the host: each library has its own.
extern "C" __attribute__((visibility("default"))) void trial_release()
{
    emulator::release_block();
}
#define __syncthreads() trial::barrier(__FILE__, __LINE__)
#define __trap() __builtin_trap()
"""
"""In front of the sources: checks that a trial makes and the emulated GPU does not."""


def try_out(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Compile a kernel, run it and the reference, and leave both results in the folder."""
    compiler = HostCompiler.find()
    if compiler is None:
        raise AppError("No C++ compiler was found to run the kernel with.", "Install g++.")
    checked = _checked(job, folder, progress)
    if checked.ending is not Ending.DONE:
        return checked
    made, edited = kernels(compiler), expanded(job.name, job.text)

    def libraries(trial: TrialPlan, *, own: bool) -> list[ctypes.CDLL]:
        return [
            made.load(launch, edited, own=True)[0]
            if own and not file
            else made.load(launch, read_source(file or job.reference), own=False)[0]
            for file, launch in zip(trial.files, trial.plan.launches, strict=True)
        ]

    loads: list[int] = []
    try:
        for number in range(job.cases):
            case = CaseFiles(folder, number)
            source, reference, plan = case.source(), case.reference(), case.plan()
            with progress.stage(TrialStage.REFERENCE):
                output, _ = _run(reference, libraries(reference, own=False), source)
                case.save_reference(output)
            with progress.stage(TrialStage.COMPILE):
                own = libraries(plan, own=True)
            before = [_loads(each).value for each in own]
            with progress.stage(TrialStage.RUN):
                output, faults = _run(plan, own, source)
            after = [_loads(each).value for each in own]
            loads.append(sum(after) - sum(before))
            if faults:
                return _fault(checked, " ".join(faults), _HINT_OUTSIDE)
            case.save_output(output)
    except CompileError as error:
        found = parse(error.log) or (CompilerMessage(ERROR, error.message),)
        return replace(checked, ending=Ending.NOT_COMPILED, messages=(*found, *checked.messages))
    except DeviceUnavailable as error:
        return _fault(checked, error.message, _HINT_BARRIER)
    return replace(checked, seconds=progress.seconds, loads=tuple(loads))


class Kernels:
    """Kernels as libraries for the processor, each compiled and loaded once."""

    def __init__(self, compiler: HostCompiler, head: str, watch: Sequence[Path] = ()) -> None:
        self._compiler, self._head, self._watch = compiler, head, watch
        self._cache = library_cache(compiler)
        self._loaded: dict[tuple[str, str], tuple[ctypes.CDLL, bytes]] = {}

    def keep(self, programs: Sequence[tuple[str, Launch]], token: CancelToken) -> None:
        """Compile kernels of the program's into their cache, by the names of their sources."""
        for file, launch in programs:
            token.check()
            self._cache.get(launch.kernel, self._made(read_source(file), launch), "host", {})

    def load(self, launch: Launch, text: str, *, own: bool) -> tuple[ctypes.CDLL, bytes]:
        """Return the library of a launch and its code: the user's `own`, or the program's."""
        made = self._made(text, launch)
        key = launch.kernel, made
        if key not in self._loaded:
            # Versions of the user's would stay in the cache for ever.
            compile_ = self._compiler.compile if own else self._cache.get
            code = compile_(launch.kernel, made, "host", {}).code
            self._loaded[key] = load_library(code), code
        return self._loaded[key]

    def _made(self, text: str, launch: Launch) -> str:
        text = self._head + text
        return translate(text, launch.defines, launch.kernel, watch=self._watch)


def kernels(compiler: HostCompiler) -> Kernels:
    return Kernels(compiler, _COUNTER + PRELUDE)


def _loads(library: ctypes.CDLL) -> ctypes.c_ulonglong:
    """Return the counter of cells that the kernels of a library have read."""
    return ctypes.c_ulonglong.in_dll(library, "trial_loads")


_HINT_BARRIER = (
    "Every thread of a block has to reach each __syncthreads, also those outside the image."
)
_HINT_OUTSIDE = "Compare the indices of writes with the sizes of the picture."


def _fault(report: TrialReport, text: str, hint: str) -> TrialReport:
    return replace(report, ending=Ending.FAULT, text=text, hint=hint)


def _checked(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Compile for a GPU first: its compiler knows more mistakes, and a GPU's limits."""
    try:
        return compiling.try_out(job, folder, progress)
    except NoCompiler:
        return TrialReport(Ending.DONE)


def _run(
    trial: TrialPlan, libraries: list[ctypes.CDLL], source: NDArray[Any]
) -> tuple[NDArray[Any], list[str]]:
    """Return the output of a plan, and the faults that the memory shows afterwards."""
    task, plan = trial.task, trial.plan
    rows = task.output_shape[0]
    guarded = Guarded()
    given = guarded.array("the source", task.shape, task.dtype)
    given[...] = source.reshape(task.shape)
    memory = Memory(
        given,
        guarded.array("the output", task.output_shape, task.dtype),
        {
            name: guarded.array(f"the buffer {name}", (each.size(rows, rows),), np.dtype(np.uint8))
            for name, each in plan.scratch.items()
        },
    )
    with ExitStack() as stack:
        threads = min(core_count(), _MOST_THREADS)
        workers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(threads - 1)]
        for each, launch in zip(libraries, plan.launches, strict=True):
            run_launch(each, launch, task, memory, workers, CancelToken(), lambda _: None)
            for release in [worker.submit(each.trial_release) for worker in workers]:
                release.result()
            each.trial_release()
    faults = list(guarded.faults())
    if given.tobytes() != source.tobytes():  # also where floats are not numbers
        faults.append("It wrote into the source.")
    return memory.output, faults
