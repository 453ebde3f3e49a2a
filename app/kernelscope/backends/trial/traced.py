"""A trace of one pixel of an edited kernel, for the X-ray: how it came to its value."""

from __future__ import annotations

from pathlib import Path

from kernelscope.backends.cuda.compiler import CompileError
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator.launch import Memory
from kernelscope.backends.emulator.spans import EmulatedLaunches as Launches
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.backends.trial.cases import CaseFiles
from kernelscope.backends.trial.protocol import (
    Ending,
    StageNotes,
    TrialJob,
    TrialReport,
    TrialStage,
)
from kernelscope.backends.trial.source_text import expanded
from kernelscope.backends.trial.trace_files import write_trace
from kernelscope.base.errors import DeviceUnavailable
from kernelscope.schema.levels import Level

_PRELUDE = "#define __trap() __builtin_trap()\n"

VERSION = "Your version"  # stands for the level in a trace


def try_out(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Trace the pixel of the job in its only picture, and leave the trace in the folder."""
    case = CaseFiles(folder, 0)
    source, trial = case.source(), case.plan()
    edited = _PRELUDE + expanded(job.name, job.text)
    sources = tuple(read_source(file) if file else edited for file in trial.files)
    level = Level(trial.task.level, VERSION, "")

    def launches() -> Launches:
        planes = source.reshape(trial.task.shape)
        memory = Memory.of(trial.task, trial.plan, planes)
        return Launches(sources, level, trial.task, trial.plan, memory)

    tracer = Tracer(threads=1, kept=False)
    x, y = job.pixel
    try:
        with progress.stage(TrialStage.COMPILE):  # each kernel once, for tracing and without
            tracer.compile(launches())
        with progress.stage(TrialStage.RUN):
            trace, thread = tracer.trace_pixel_of(launches, x, y)
    except CompileError as error:
        return TrialReport(Ending.NOT_COMPILED, error.message, error.hint)
    except DeviceUnavailable as error:  # threads that wait at different barriers
        return TrialReport(Ending.FAULT, error.message, error.hint)
    write_trace(folder, trace, thread)
    return TrialReport(Ending.DONE, seconds=progress.seconds)
