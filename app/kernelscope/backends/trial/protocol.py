"""The data that pass between the window and the process of an edited kernel: JSON and arrays."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kernelscope.backends.trial.compiler_messages import (
    ERROR,
    MOST_MESSAGES,
    WARNING,
    CompilerMessage,
)
from kernelscope.base import json_fields
from kernelscope.engine.launch_report import Resources

JOB, REPORT, STAGES, LOG = "job.json", "report.json", "stages", "log"
SOURCE, OUTPUT, REFERENCE = "source.npy", "output.npy", "reference.npy"
PLAN, REFERENCE_PLAN = "plan", "reference-plan"
"""Names in the folder that parent and child share, the latter five in that of each case."""

OTHERS = "others.json"
"""In the folder of a case: the names of further plans of the program's, which are timed."""

_MOST_BYTES = 16 << 20
_MOST_COUNT = 1 << 53

MOST_CASES = 1000


class TrialStage(StrEnum):
    """The stage of the process; each has its own time limit."""

    START = "start"
    REFERENCE = "reference"
    """The program's own kernel runs, for comparison."""
    COMPILE = "compile"
    RUN = "run"


class Ending(StrEnum):
    DONE = "done"
    NOT_COMPILED = "not compiled"
    FAULT = "fault"
    """The kernel did something that is not allowed, and was stopped there."""
    TIME = "time"
    """A stage took longer than its limit."""
    MEMORY = "memory"
    DIED = "died"
    """The process ended without a report: a wild write, a trap."""
    REFUSED = "refused"
    """It could not be tried at all: no compiler, a plan that this target cannot run."""
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class TrialLimits:
    # Most seconds of each stage.
    start: float = 20.0
    compile: float = 60.0
    run: float = 20.0
    memory: int = 4 << 30
    """Most bytes of address space; 0 for none, which a card's driver needs."""

    def seconds(self, stage: TrialStage) -> float:
        longest = {TrialStage.START: self.start, TrialStage.RUN: self.run}
        return longest.get(stage, self.compile)


@dataclass(frozen=True)
class TrialJob:
    target: str
    """Identifier of one of the targets of the child."""
    name: str
    """Of the source in messages: ``mean.cu``."""
    text: str
    """The source, headers not put in place."""
    kernel: str
    """Name of the function whose resources are reported."""
    defines: Mapping[str, str] = field(default_factory=dict)
    """Its macros."""
    reference: str = ""
    """Name of the program's source whose result is the reference; empty if nothing runs."""
    memory: int = 0
    """See `TrialLimits`."""
    cases: int = 0
    """How many pictures it is tried on."""
    pixel: tuple[int, ...] = ()
    """Column and row of the pixel to trace; empty for other targets."""

    def write(self, folder: Path) -> None:
        (folder / JOB).write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> TrialJob:
        """Return the job in a folder; raise `InvalidJson` if it is damaged."""
        content = json_fields.read(folder / JOB, _MOST_BYTES)
        names = ("target", "name", "text", "kernel", "reference")
        return cls(
            **{name: content[name].text() for name in names},
            defines={name: each.text() for name, each in content["defines"].fields()},
            memory=content["memory"].whole(0, _MOST_COUNT),
            cases=content["cases"].whole(0, MOST_CASES),
            pixel=tuple(each.whole(0, _MOST_COUNT) for each in content["pixel"].elements()),
        )


@dataclass(frozen=True)
class TrialReport:
    """The child's answer."""

    ending: Ending
    # The cause and the way out, where it did not end well.
    text: str = ""
    hint: str = ""
    compiler: str = ""
    """Name and version."""
    messages: tuple[CompilerMessage, ...] = ()
    resources: Mapping[str, Resources] = field(default_factory=dict)
    """The assembler's report for each architecture that was compiled for."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time of each stage in the process."""
    loads: tuple[int, ...] = ()
    """For each case the cells of the picture that were read from global memory, where the kernel's
    types count them."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of kernels on a card, by their names."""
    device: str = ""
    """Name of the card that it ran on; empty for the emulated GPU."""

    def write(self, folder: Path) -> None:
        (folder / REPORT).write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> TrialReport:
        """Return the report in a folder, everything in it checked.

        Raises `InvalidJson` if it is not there or damaged: a wild write may have hit it.
        """
        content = json_fields.read(folder / REPORT, _MOST_BYTES)
        return cls(
            Ending(content["ending"].one_of([each.value for each in Ending])),
            content["text"].text(),
            content["hint"].text(),
            content["compiler"].text(),
            tuple(_message(each) for each in content["messages"].elements()[:MOST_MESSAGES]),
            {name: _resources(each) for name, each in content["resources"].fields()},
            {name: each.number(0, 1e9) for name, each in content["seconds"].fields()},
            tuple(each.whole(0, _MOST_COUNT) for each in content["loads"].elements()),
            {name: each.number(0, 1e9) for name, each in content["times"].fields()},
            content["device"].text(),
        )


def case_folder(folder: Path, number: int) -> Path:
    return folder / f"case-{number}"


def write_others(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Note the names of further plans of a case; yield under which each is to be written."""
    (folder / OTHERS).write_text(json.dumps(names), encoding="utf-8")
    yield from (f"other-{number}" for number in range(len(names)))


def read_others(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each further plan of a case, and under which it is written."""
    content = json_fields.read(folder / OTHERS, _MOST_BYTES)
    for number, name in enumerate(content.elements()):
        yield name.text(), f"other-{number}"


def _message(content: json_fields.Field) -> CompilerMessage:
    return CompilerMessage(
        content["kind"].one_of((ERROR, WARNING)),
        content["text"].text(),
        content["file"].text(),
        content["line"].whole(0, 1 << 31),
        content["column"].whole(0, 1 << 31),
    )


def _resources(content: json_fields.Field) -> Resources:
    names = [each.name for each in dataclasses.fields(Resources)]
    return Resources(**{name: content[name].whole(0, _MOST_COUNT) for name in names})
