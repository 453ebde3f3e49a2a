"""The data that pass between the window and the process of an edited kernel: JSON and arrays."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernelscope.backends.trial.compiler_messages import (
    MOST_MESSAGES,
    CompilerMessage,
)
from kernelscope.base import json_fields
from kernelscope.engine.launch_report import Resources

JOB, REPORT, STAGES, LOG = "job.json", "report.json", "stages", "log"
"""Names in the folder that parent and child share."""

_MOST_BYTES = 16 << 20

# Identifiers of the places where an edited kernel can be tried.

COMPILE_ONLY = "compile"
"""NVRTC compiles it for the architectures of the compile report; nothing runs."""

EMULATED = "emulated"  # it runs on the emulated GPU, next to the program's own kernel

CARD = "card"
"""It runs on the first GPU, next to the program's own kernel and other levels, and is timed."""

CHECKED = "checked"  # it runs on the emulated GPU, which looks at every access to memory
TRACED = "traced"  # a pixel of its result is traced on the emulated GPU


def write_record(path: Path, record: Any, **more: Any) -> None:
    """Write a data class, and more, for `Field.record`."""
    path.write_text(json.dumps(dataclasses.asdict(record) | more), encoding="utf-8")


class TrialStage(StrEnum):
    """The stage of the process; each has its own time limit."""

    START = "start"
    REFERENCE = "reference"  # the program's own kernel runs, for comparison
    COMPILE = "compile"
    RUN = "run"


class StageNotes:
    """Notes the stages in the folder, for the parent, and how long each took."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STAGES
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, stage: TrialStage) -> Iterator[None]:
        with self._path.open("a", encoding="utf-8") as handle:
            handle.write(f"{stage}\n")
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds


class Ending(StrEnum):
    DONE = "done"
    NOT_COMPILED = "not compiled"
    FAULT = "fault"  # the kernel did something that is not allowed, and was stopped there
    TIME = "time"  # a stage took longer than its limit
    MEMORY = "memory"
    DIED = "died"  # the process ended without a report: a wild write, a trap
    REFUSED = "refused"
    """It could not be tried at all: no compiler, a plan that this target cannot run."""
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class TrialLimits:
    # Most seconds of each stage.
    start: float = 20.0
    compile: float = 60.0
    run: float = 20.0
    memory: int = 4 << 30  # most bytes of address space; 0 for none, which a card's driver needs

    def seconds(self, stage: TrialStage) -> float:
        longest = {TrialStage.START: self.start, TrialStage.RUN: self.run}
        return longest.get(stage, self.compile)


@dataclass(frozen=True)
class TrialJob:
    target: str  # identifier of one of the targets of the child
    name: str  # of the source in messages: ``mean.cu``
    text: str  # the source, headers not put in place
    kernel: str  # name of the function whose resources are reported
    defines: Mapping[str, str] = field(default_factory=dict)  # its macros
    reference: str = ""
    """Name of the program's source whose result is the reference; empty if nothing runs."""
    memory: int = 0  # see `TrialLimits`
    cases: int = 0  # how many pictures it is tried on
    pixel: tuple[int, ...] = ()  # column and row of the pixel to trace; empty for other targets

    def write(self, folder: Path) -> None:
        write_record(folder / JOB, self)

    @classmethod
    def read(cls, folder: Path) -> TrialJob:
        """Return the job in a folder; raise `InvalidJson` if it is damaged."""
        return json_fields.read(folder / JOB, _MOST_BYTES).record(cls)


@dataclass(frozen=True)
class TrialReport:
    """The child's answer."""

    ending: Ending
    # The cause and the way out, where it did not end well.
    text: str = ""
    hint: str = ""
    compiler: str = ""  # name and version
    messages: tuple[CompilerMessage, ...] = ()
    resources: Mapping[str, Resources] = field(default_factory=dict)
    """The assembler's report for each architecture that was compiled for."""
    seconds: Mapping[str, float] = field(default_factory=dict)  # time of each stage in the process
    loads: tuple[int, ...] = ()
    """For each case the cells of the picture that were read from global memory, where the kernel's
    types count them."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of kernels on a card, by their names."""
    device: str = ""  # name of the card that it ran on; empty for the emulated GPU

    def write(self, folder: Path) -> None:
        write_record(folder / REPORT, self)

    @classmethod
    def read(cls, folder: Path) -> TrialReport:
        """Return the report in a folder, everything in it checked.

        Raises `InvalidJson` if it is not there or damaged: a wild write may have hit it.
        """
        report = json_fields.read(folder / REPORT, _MOST_BYTES).record(cls)
        return dataclasses.replace(report, messages=report.messages[:MOST_MESSAGES])
