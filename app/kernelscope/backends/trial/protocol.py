"""The data that pass between the window and the process of an edited kernel: JSON and arrays."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.rim import with_rim
from kernelscope.base import json_fields
from kernelscope.base.errors import AppError
from kernelscope.engine.request import Request
from kernelscope.engine.timing import Resources
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch, Scratch, planned
from kernelscope.schema.levels import Level
from kernelscope.traffic.trace import ENTRY, RECORD, Scene, Trace

JOB, REPORT, STAGES, LOG = "job.json", "report.json", "stages", "log"
"""Names in the folder that parent and child share."""

_MOST_BYTES = 64 << 20  # of a file of JSON: a wild write may have hit it

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


MOST_MESSAGES = 200  # a missing bracket can cause thousands

ERROR, WARNING = "error", "warning"

_NVCC = re.compile(
    r"^(?P<file>[^\s():]+)\((?P<line>\d+)\): "
    r"(?P<kind>(?:catastrophic |fatal )?error|warning)(?: #(?P<code>[\w-]+))?: (?P<text>.*)$"
)
_GCC = re.compile(
    r"^(?P<file>[^\s():]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>(?:fatal )?error|warning): (?P<text>.*?)(?: \[(?P<code>-W[^\]]+)\])?$"
)
_ASSEMBLER = re.compile(r"^\s*ptxas (?P<kind>error|fatal|warning)\s*: (?P<text>.*)$")
_LINKER = re.compile(r"(?P<text>undefined (?:reference to|symbol:?) .*)$")
_CARET = re.compile(r"^\s*\^\s*$")


@dataclass(frozen=True)
class CompilerMessage:
    kind: str  # `ERROR` or `WARNING`
    text: str
    file: str = ""  # empty if it is about no line, as those of the assembler
    line: int = 0  # from 1 on; 0 if it is about no line
    column: int = 0  # from 1 on, in characters; 0 if it is unknown


def parse(log: str) -> tuple[CompilerMessage, ...]:
    """Return the messages in the output of NVRTC, nvcc, g++ or clang, each once, errors first."""
    found: dict[CompilerMessage, None] = {}
    lines = log.replace("\0", "\n").splitlines()  # NVRTC has one in front of ptxas's errors
    for number, line in enumerate(lines):
        match = _NVCC.match(line) or _GCC.match(line)
        if match is None:
            other = _ASSEMBLER.match(line)
            linker = _LINKER.search(line)
            if other is not None:
                kind = WARNING if other["kind"] == WARNING else ERROR
                found.setdefault(CompilerMessage(kind, other["text"].strip()))
            elif linker is not None:
                found.setdefault(CompilerMessage(ERROR, linker["text"].strip()))
            continue
        column = match.groupdict().get("column")
        found.setdefault(
            CompilerMessage(
                WARNING if match["kind"] == WARNING else ERROR,
                match["text"].strip(),
                match["file"],
                int(match["line"]),
                int(column) if column else _column(lines[number + 1 : number + 4]),
            )
        )
    ordered = sorted(found, key=lambda each: each.kind != ERROR)
    return tuple(ordered[:MOST_MESSAGES])


def _column(following: Iterable[str]) -> int:
    """Return the column that a caret below the quoted line points at; 0 without one."""
    quoted = ""
    for line in following:
        if _CARET.match(line):
            # NVRTC puts two spaces in front of the line that it quotes.
            return max(line.index("^") - 1, 0) if quoted.startswith("  ") else 0
        quoted = line
    return 0


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
    """For each case the reads from global memory, in cells of the picture, where the accesses to
    memory were checked and are right."""
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


_PLAIN = [
    each.name
    for each in dataclasses.fields(Launch)
    if each.name not in ("constants", "tables", "hand_over")
]
"""The fields of a launch that are no arrays; a trial hands nothing over."""


@dataclass(frozen=True, eq=False)
class TrialPlan:
    task: CudaTask  # without parameters: the launches have them in their macros and constants
    plan: CudaPlan
    files: tuple[str, ...]
    """For each launch the name of the program's source that has it, or empty for the source that is
    tried."""

    @classmethod
    def of(cls, request: Request, level: Level) -> TrialPlan:
        """Return the plan of the last filter of a request; raise `AppError` if that is none."""
        *before, (spec, given, border) = request.passes()
        if before:
            raise AppError(
                "The filter converts to greyscale first; a trial runs one filter.",
                "Open a grey picture, or filter all channels.",
            )
        source = request.source.planes
        parameters = spec.resolve(source, given)
        shape, dtype, block = source.shape, source.dtype, request.options.block
        task, plan = planned(spec, shape, dtype, parameters, border, level.id, block)
        if any(launch.hand_over for launch in plan.launches):
            raise AppError(
                "At this level the host takes part between launches, which a trial cannot do.",
                "Choose another level; this one can be compiled.",
            )
        plan, names = with_rim(spec, task, plan)
        files = ("" if name == spec.id else name for name in names)
        return cls(dataclasses.replace(task, parameters={}), plan, tuple(files))

    def write(self, folder: Path, name: str) -> None:
        """Write ``NAME.json`` and ``NAME.npz``."""
        task, plan = self.task, self.plan
        data = _PlanData(
            *(task.shape, task.output_shape, str(task.dtype), task.border, task.level),
            *(self.files, dict(plan.scratch)),
        )
        plain = [{key: getattr(launch, key) for key in _PLAIN} for launch in plan.launches]
        write_record(folder / f"{name}.json", data, launches=plain)
        arrays: dict[str, Any] = {}
        for number, launch in enumerate(plan.launches):
            for key, values in launch.constants.items():
                arrays[f"{number}/constant/{key}"] = values
            for place, table in enumerate(launch.tables):
                arrays[f"{number}/table/{place}"] = table
        np.savez(folder / f"{name}.npz", **arrays)

    @classmethod
    def read(cls, folder: Path, name: str) -> TrialPlan:
        """Return the plan that was written under a name; raise `InvalidJson` if it is damaged."""
        content = json_fields.read(folder / f"{name}.json", _MOST_BYTES)
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        data = content.record(_PlanData)
        task = CudaTask(
            data.shape, data.output_shape, np.dtype(data.dtype), {}, data.border, data.level
        )
        launches = tuple(
            each.record(Launch, **_arrays(number, arrays), hand_over=None)
            for number, each in enumerate(content["launches"].elements(len(data.files)))
        )
        return cls(task, CudaPlan(launches, data.scratch), data.files)


@dataclass(frozen=True)
class _PlanData:
    shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: str
    border: Border
    level: str
    files: tuple[str, ...]
    scratch: Mapping[str, Scratch]


def _arrays(number: int, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the constants and the tables of a launch by number."""
    constants = {
        key.split("/", 2)[2]: values
        for key, values in arrays.items()
        if key.startswith(f"{number}/constant/")
    }
    count = sum(key.startswith(f"{number}/table/") for key in arrays)
    return {
        "constants": constants,
        "tables": tuple(arrays[f"{number}/table/{place}"] for place in range(count)),
    }


_OTHERS = "others.json"


@dataclass(frozen=True, eq=False)
class Work:
    """The data of a case, for a target that runs kernels."""

    source: NDArray[Any]  # of the shape that both plans are for
    # Of the kernel that is tried, and of the program's own.
    plan: TrialPlan
    reference: TrialPlan
    title: str = ""  # of the case, for reports
    others: Mapping[str, TrialPlan] = field(default_factory=dict)
    """Further plans of the program's, which a card times; by the names for it."""


class CaseFiles:
    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder / f"case-{number}"

    def write(self, work: Work) -> None:
        self._folder.mkdir()
        self.save("source", work.source)
        work.plan.write(self._folder, "plan")
        work.reference.write(self._folder, "reference-plan")
        (self._folder / _OTHERS).write_text(json.dumps([*work.others]), encoding="utf-8")
        for number, other in enumerate(work.others.values()):
            other.write(self._folder, f"other-{number}")

    def source(self) -> NDArray[Any]:
        source: NDArray[Any] = np.load(self._folder / "source.npy", allow_pickle=False)
        return source

    def plan(self) -> TrialPlan:
        return TrialPlan.read(self._folder, "plan")

    def reference(self) -> TrialPlan:
        return TrialPlan.read(self._folder, "reference-plan")

    def others(self) -> Iterator[tuple[str, TrialPlan]]:
        """Yield further plans of the program's, which are timed, with their names."""
        names = json_fields.read(self._folder / _OTHERS, _MOST_BYTES)
        for number, name in enumerate(names.elements()):
            yield name.text(), TrialPlan.read(self._folder, f"other-{number}")

    def results(self, work: Work) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return both results that the process left; None unless they are those of the plans."""
        output = self._result("output", work.plan)
        reference = self._result("reference", work.reference)
        return None if output is None or reference is None else (output, reference)

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Save the ``output`` of the kernel, or the ``reference``: that of the program's own."""
        np.save(self._folder / f"{name}.npy", array, allow_pickle=False)

    def _result(self, name: str, plan: TrialPlan) -> NDArray[Any] | None:
        try:
            array: NDArray[Any] = np.load(self._folder / f"{name}.npy", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        task = plan.task
        return array if (array.shape, array.dtype) == (task.output_shape, task.dtype) else None


_SCENE, _ARRAYS = "trace.json", "trace.npz"
_TRACED_ARRAYS = {"records": RECORD, "entries": ENTRY, "footprint": np.dtype(np.int64)}


def write_trace(folder: Path, trace: Trace, thread: int) -> None:
    rows = None if trace.rows is None else (trace.rows.start, trace.rows.stop)
    flags = bool(trace.truncated), bool(trace.whole), bool(trace.whole_warp)
    data = _TraceData(trace.scene, trace.number, trace.barriers, *flags, rows, thread)
    write_record(folder / _SCENE, data)
    np.savez(folder / _ARRAYS, **{name: getattr(trace, name) for name in _TRACED_ARRAYS})


@dataclass(frozen=True)
class _TraceData:
    scene: Scene
    number: int
    barriers: int
    truncated: bool
    whole: bool
    whole_warp: bool
    rows: tuple[int, int] | None
    thread: int


def read_trace(folder: Path) -> tuple[Trace, int]:
    """Return the trace in a folder, and the thread of which it is.

    Raises `InvalidJson` if it is not there or damaged: a wild write may have hit it.
    """
    content = json_fields.read(folder / _SCENE, _MOST_BYTES)
    data = content.record(_TraceData)
    scene, arrays = data.scene, _trace_arrays(folder, content)
    if scene.launch > scene.launches:
        content["scene"]["launch"].refuse("there are fewer launches")
    for name, most in (("number", scene.blocks), ("thread", scene.threads)):
        content[name].whole(0, most - 1)
    if int(arrays["records"]["array"].max(initial=0)) >= len(scene.arrays):
        content.refuse("a record is of no array")
    if arrays["footprint"].shape != (len(scene.arrays), 2):
        content.refuse("the footprint is not that of the arrays")
    trace = Trace(
        scene,
        data.number,
        arrays["records"],
        arrays["entries"],
        arrays["footprint"],
        data.barriers,
        data.truncated,
        data.whole,
        data.whole_warp,
        None if data.rows is None else range(*data.rows),
    )
    return trace, data.thread


def _trace_arrays(folder: Path, content: json_fields.Field) -> dict[str, Any]:
    try:
        with np.load(folder / _ARRAYS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in _TRACED_ARRAYS}
    except (OSError, ValueError, EOFError, KeyError):
        content.refuse("its arrays are damaged")
    if any(arrays[name].dtype != dtype for name, dtype in _TRACED_ARRAYS.items()):
        content.refuse("its arrays are of other types")
    return arrays
