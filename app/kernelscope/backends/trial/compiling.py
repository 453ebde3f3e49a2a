"""A trial that only compiles: with NVRTC, which needs no card."""

from __future__ import annotations

from pathlib import Path

from kernelscope.backends.cuda.compiler import CompileError, resources, title
from kernelscope.backends.cuda.inspection import REPORTED, nvrtc
from kernelscope.backends.trial.compiler_messages import ERROR, CompilerMessage, parse
from kernelscope.backends.trial.protocol import (
    Ending,
    StageNotes,
    TrialJob,
    TrialReport,
    TrialStage,
)
from kernelscope.backends.trial.source_text import expanded
from kernelscope.engine.launch_report import Resources

MOST_STATIC_SHARED = 48 << 10
"""Bytes of a block; more can only be asked for at the launch, as dynamic shared memory."""


def try_out(job: TrialJob, folder: Path, progress: StageNotes) -> TrialReport:
    """Compile for each architecture of the report; raise `NoCompiler` if NVRTC is not installed."""
    compiler = nvrtc()
    name = job.name.removesuffix(".cu")
    messages: dict[CompilerMessage, None] = {}
    reports: dict[str, Resources] = {}
    source = expanded(job.name, job.text)
    ending = Ending.DONE
    with progress.stage(TrialStage.COMPILE):
        for architecture in REPORTED:
            try:
                log = compiler.compile(name, source, architecture, job.defines).log
            except CompileError as error:
                ending = Ending.NOT_COMPILED
                messages |= dict.fromkeys(_errors(error.log))
                break
            messages |= dict.fromkeys(parse(log))
            found = resources(log, job.kernel)
            if found is not None:
                reports[architecture] = found
    problem = _problem(job.kernel, reports)
    if ending is Ending.DONE and problem:
        messages = {CompilerMessage(ERROR, problem): None, **messages}
        ending = Ending.NOT_COMPILED
    if ending is not Ending.DONE:
        reports = {}
    return TrialReport(
        ending,
        compiler=title(compiler),
        messages=tuple(messages),
        resources=reports,
        seconds=progress.seconds,
    )


def _problem(kernel: str, reports: dict[str, Resources]) -> str:
    """Return the reason why a kernel that compiles cannot be launched; or nothing."""
    if not reports:
        return f"The source has no kernel “{kernel}”, which this level launches."
    shared = max(each.shared_bytes for each in reports.values())
    if shared > MOST_STATIC_SHARED:
        return (
            f"“{kernel}” has {shared:,} bytes of static shared memory; a block can have "
            f"{MOST_STATIC_SHARED:,}."
        )
    return ""


def _errors(log: str) -> tuple[CompilerMessage, ...]:
    """Return the messages of a failure: at least one error, whatever the compiler printed."""
    found = parse(log)
    if any(each.kind == ERROR for each in found):
        return found
    text = log.strip() or "The compiler failed without a message."
    return (CompilerMessage(ERROR, text[:1000]), *found)
