"""Trials on the emulated GPU: the kernel runs on the processor, is checked there, or traced."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
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
from kernelscope.backends.emulator.checking import CheckedBackend, Finding, MistakeKind
from kernelscope.backends.emulator.compiler import HostCompiler, library_cache
from kernelscope.backends.emulator.launch import Memory, run_launch
from kernelscope.backends.emulator.spans import EmulatedLaunches
from kernelscope.backends.emulator.symbols import Symbols
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.backends.emulator.translation import CHECKS, translate
from kernelscope.backends.trial import compiling
from kernelscope.backends.trial.compiling import expanded
from kernelscope.backends.trial.protocol import (
    ERROR,
    MOST_MESSAGES,
    CaseFiles,
    CompilerMessage,
    Ending,
    StageNotes,
    TrialJob,
    TrialPlan,
    TrialReport,
    TrialStage,
    parse,
    write_trace,
)
from kernelscope.base.compiled import load_library
from kernelscope.base.errors import AppError, DeviceUnavailable
from kernelscope.base.parallel import core_count
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.schema.launch import Launch
from kernelscope.schema.levels import Level

_GUARD = 1 << 20
"""Bytes on each side of an array. Writes further away mostly leave the process's memory."""

PATTERN = 0xA5  # the byte that guards are full of
_ALIGNMENT = 512  # of the arrays, as on a card


class Guarded:
    """Arrays for a kernel, each with guards on both sides."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[NDArray[np.uint8], int, int]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array full of the pattern; `name` stands for it in `faults`."""
        size = math.prod(shape) * dtype.itemsize
        held = np.full(size + 2 * _GUARD + _ALIGNMENT, PATTERN, np.uint8)
        start = _GUARD + (-held.ctypes.data - _GUARD) % _ALIGNMENT
        self.held[name] = held, start, start + size
        return held[start : start + size].view(dtype).reshape(shape)

    def faults(self) -> Iterator[str]:
        """Yield a sentence for each array next to which something was written."""
        for name, (held, start, stop) in self.held.items():
            yield from faults_beside(name, held[:start], held[stop:])


def faults_beside(name: str, before: NDArray[np.uint8], after: NDArray[np.uint8]) -> Iterator[str]:
    """Yield a sentence for each guard of an array that is not as it was."""
    changed = np.flatnonzero(before != PATTERN)
    if changed.size:
        yield (
            f"It wrote in front of {name}: {changed.size:,} bytes, "
            f"the nearest {len(before) - int(changed[-1]):,} bytes before its beginning."
        )
    changed = np.flatnonzero(after != PATTERN)
    if changed.size:
        yield (
            f"It wrote behind {name}: {changed.size:,} bytes, "
            f"the nearest {int(changed[0]) + 1:,} bytes behind its end."
        )


_MOST_THREADS = 4  # each reserves a quarter of a gigabyte for the stacks of a block

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


def _compiler() -> HostCompiler:
    compiler = HostCompiler.find()
    if compiler is None:
        raise AppError("No C++ compiler was found to run the kernel with.", "Install g++.")
    return compiler


def try_out(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Compile a kernel, run it and the reference, and leave both results in the folder."""
    compiler = _compiler()
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

    try:
        for number in range(job.cases):
            case = CaseFiles(folder, number)
            source, reference, plan = case.source(), case.reference(), case.plan()
            with progress.stage(TrialStage.REFERENCE):
                output, _ = _run(reference, libraries(reference, own=False), source)
                case.save("reference", output)
            with progress.stage(TrialStage.COMPILE):
                own = libraries(plan, own=True)
            with progress.stage(TrialStage.RUN):
                output, faults = _run(plan, own, source)
            if faults:
                return _fault(checked, " ".join(faults), _HINT_OUTSIDE)
            case.save("output", output)
    except CompileError as error:
        found = parse(error.log) or (CompilerMessage(ERROR, error.message),)
        return replace(checked, ending=Ending.NOT_COMPILED, messages=(*found, *checked.messages))
    except DeviceUnavailable as error:
        return _fault(checked, error.message, _HINT_BARRIER)
    return replace(checked, seconds=progress.seconds)


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
    return Kernels(compiler, PRELUDE)


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


# Every access to memory ----------------------------------------------------------------
#
# A result can be right by chance: the emulator runs the threads of a block in turn, so that a
# missing barrier may go unnoticed, and the bytes behind an array may be zero. The findings become
# messages at the lines of the source, like those of a compiler.

_HINTS = {
    MistakeKind.OUTSIDE: "Check the index of this line against the size of the array.",
    MistakeKind.INDEX: "Check the index of this line against the size of the array.",
    MistakeKind.UNINITIALISED: "Give the cell a value first, for the threads outside the image as "
    "well.",
    MistakeKind.RACE_OF_WRITES: "Give each thread a cell of its own, or put __syncthreads() "
    "between the two writes.",
    MistakeKind.RACE_WITH_READ: "Put __syncthreads() between the write and the read.",
}


def check(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Run a kernel on each picture of the job; report its faults in memory, or its reads of it."""
    checks = _Checks(job, _compiler(), progress)
    loads = []
    for number in range(job.cases):
        case = CaseFiles(folder, number)
        source, before = case.source(), checks.read
        try:
            checks.check(case.plan(), source)
        except CompileError as error:
            return TrialReport(Ending.NOT_COMPILED, error.message)
        except DeviceUnavailable as error:  # a barrier, which the trial itself reports
            return TrialReport(Ending.FAULT, error.message)
        loads.append((checks.read - before) // source.itemsize)
    if not checks.findings:
        return TrialReport(Ending.DONE, seconds=progress.seconds, loads=tuple(loads))
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


def checked_kernels(compiler: HostCompiler) -> Kernels:
    return Kernels(compiler.watching(), PRELUDE, CHECKS)


class _Checks(CheckedBackend):
    """Checks the source of a job, with plans that were made elsewhere."""

    def __init__(self, job: TrialJob, compiler: HostCompiler, progress: StageNotes) -> None:
        super().__init__(compiler)
        self._kernels, self._progress = checked_kernels(compiler), progress
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
            if self.findings:  # the next launches would work with wrong values
                return

    def _library(self, file: str, launch: Launch, context: RunContext) -> ctypes.CDLL:
        text = read_source(file) if file else self._edited
        library, code = self._kernels.load(launch, text, own=not file)
        self._symbols[id(library)] = Symbols(code, library)
        return library


# A trace of one pixel, for the X-ray ---------------------------------------------------

_PRELUDE = "#define __trap() __builtin_trap()\n"

VERSION = "Your version"  # stands for the level in a trace


def trace(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Trace the pixel of the job in its only picture, and leave the trace in the folder."""
    case = CaseFiles(folder, 0)
    source, trial = case.source(), case.plan()
    edited = _PRELUDE + expanded(job.name, job.text)
    sources = tuple(read_source(file) if file else edited for file in trial.files)
    level = Level(trial.task.level, VERSION, "")

    def launches() -> EmulatedLaunches:
        planes = source.reshape(trial.task.shape)
        memory = Memory.of(trial.task, trial.plan, planes)
        return EmulatedLaunches(sources, level, trial.task, trial.plan, memory)

    tracer = Tracer(threads=1, kept=False)
    x, y = job.pixel
    try:
        with progress.stage(TrialStage.COMPILE):  # each kernel once, for tracing and without
            tracer.compile(launches())
        with progress.stage(TrialStage.RUN):
            traced, thread = tracer.trace_pixel_of(launches, x, y)
    except CompileError as error:
        return TrialReport(Ending.NOT_COMPILED, error.message, error.hint)
    except DeviceUnavailable as error:  # threads that wait at different barriers
        return TrialReport(Ending.FAULT, error.message, error.hint)
    write_trace(folder, traced, thread)
    return TrialReport(Ending.DONE, seconds=progress.seconds)
