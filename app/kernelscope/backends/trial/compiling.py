"""A trial that only compiles: with NVRTC, which needs no card."""

from __future__ import annotations

import re
from pathlib import Path

from kernelscope.backends.cuda.compiler import CompileError, resources, title
from kernelscope.backends.cuda.inspection import REPORTED, nvrtc
from kernelscope.backends.trial.protocol import (
    ERROR,
    CompilerMessage,
    Ending,
    StageNotes,
    TrialJob,
    TrialReport,
    TrialStage,
    parse,
)
from kernelscope.base.paths import KERNELS, RESOURCES
from kernelscope.engine.timing import Resources

_ENDIF = re.compile(r"^\s*#\s*(?:endif|else|elif)\b")
_FOLDERS = (KERNELS, RESOURCES / "exercises")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"(\w[\w-]*\.cuh)"\s*(?://.*)?$')


def expanded(name: str, text: str) -> str:
    """Return an edited source with the program's headers put in place, as `read_source` does.

    A header that the program does not have stays an ``#include``, about which the compiler
    complains at its line. The compiler's messages call the source `name`.
    """
    return "\n".join(_lines(name, text, set()))


def _lines(name: str, text: str, seen: set[str]) -> list[str]:
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        match = _INCLUDE.match(line)
        header = _header(match[1]) if match is not None else None
        if match is None or header is None:
            lines.append(line)
            if _ENDIF.match(line):  # directives between were not read if the condition was false
                lines.append(f'#line {number + 1} "{name}"')
            continue
        if match[1] not in seen:
            seen.add(match[1])
            lines += _lines(match[1], header.read_text(encoding="utf-8"), seen)
        lines.append(f'#line {number + 1} "{name}"')
    return lines


def header_text(name: str) -> str:
    """Return the text of a header of the program; empty if there is none of that name."""
    header = _header(name)
    return header.read_text(encoding="utf-8") if header is not None else ""


def _header(name: str) -> Path | None:
    """Return the file of a header; None if the program has none of that name."""
    return next((folder / name for folder in _FOLDERS if (folder / name).is_file()), None)


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
