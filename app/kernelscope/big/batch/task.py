"""A file of a batch as a task for another process: JSON goes there, and JSON comes back.

::

    client                            worker
    describe(...)  ----- text ----->  filter_file(text): reads, filters, writes a part
    finish(...)    <---- text ------  what became of it, and the name of the part

A worker never writes a target. It writes a part with a name of its own in the batch's folder of
parts, and the client moves it to the target. So it does no harm if a task is tried again, or if
a worker that was given up finishes after all: its part is removed with the folder.
"""

from __future__ import annotations

import json
import platform
import secrets
import shutil
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

import kernelscope
from kernelscope.backends.worker import worker_tools
from kernelscope.base import atomic
from kernelscope.base.errors import AppError, ImageReadError, ImageWriteError
from kernelscope.big.batch.conductor import Batch, FileOutcome, Status
from kernelscope.big.batch.item import AS_USUAL, FileStage, Handling, Item, ResultReport
from kernelscope.big.batch.journal import Journal
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.files.volumes.slices import is_slice
from kernelscope.files.write_errors import check_folder, explained
from kernelscope.images.judging.metrics import Quality
from kernelscope.images.judging.volumes import VolumeQuality

OPEN = "open"  # a file in the folder of parts while the batch runs

_SHARED = "Use folders that all machines share, under the same names."

_filtering = threading.Lock()
"""Held while a file is filtered: its threads, or the GPU, would only be shared with another."""


@dataclass(frozen=True)
class TaskSettings:
    """What the tasks of a batch have in common."""

    recipe: Recipe
    options: RunOptions
    parts: Path  # folder for the parts; absolute
    handling: Handling = AS_USUAL
    threads: int | None = None  # threads of the CPU in each worker; by default all cores


def describe(number: int, item: Item, settings: TaskSettings) -> str:
    """Return the task of a file as JSON; `number` tells it from the others of the batch."""
    reference = item.reference.absolute() if item.reference is not None else None
    return json.dumps(
        {
            "version": kernelscope.__version__,
            "number": number,
            "recipe": settings.recipe.to_json(),
            "options": asdict(settings.options),
            "source": str(item.source.absolute()),
            "slices": [str(each.absolute()) for each in item.slices],
            "target": str(item.target.absolute()),
            "reference": str(reference) if reference is not None else None,
            "parts": str(settings.parts),
            "handling": asdict(settings.handling),
            "threads": settings.threads,
        }
    )


def filter_file(text: str) -> str:
    """Do a task, on a worker; return what became of it as JSON.

    `text`: as `describe` returns it.
    """
    task = json.loads(text)
    source, reference = Path(task["source"]), task["reference"]
    part = Path(task["parts"], f"{task['number']}-{secrets.token_hex(8)}")
    part /= Path(task["target"]).name
    slices = tuple(map(Path, task["slices"]))
    item = Item(source, part, Path(reference) if reference is not None else None, slices)
    noted = _Noted()
    try:
        _check(task, item)
        outcome = _filtered(task, item, noted)
    except AppError as error:
        outcome = FileOutcome(item, Status.FAILED, str(error))
    gone = not Path(task["parts"], OPEN).exists()  # the batch has ended meanwhile
    if gone or outcome.status is not Status.DONE:
        shutil.rmtree(part.parent, ignore_errors=True)
    if gone:
        with suppress(OSError):
            part.parent.parent.rmdir()
    plain = {each.name: getattr(outcome, each.name) for each in fields(FileOutcome)}
    for name in ("before", "quality"):
        plain[name] = asdict(plain[name]) if plain[name] is not None else None
    plain["report"] = outcome.report.as_json()
    del plain["item"]
    return json.dumps({**plain, "part": part.parent.name, "state": noted.state})


def times_begun(number: int, settings: TaskSettings) -> int:
    """Return how many workers have begun the file with this number, and not failed."""
    return sum(1 for _ in settings.parts.glob(f"{number}-*"))


def finish(item: Item, text: str, settings: TaskSettings, journal: Journal) -> FileOutcome:
    """Move the part of a task that is done to its target; return what became of the file."""
    plain = json.loads(text)
    part = settings.parts / Path(plain.pop("part")).name / item.target.name
    state = tuple(plain.pop("state") or ()) or None
    for name in ("before", "quality"):
        if plain[name] is not None:
            kind = VolumeQuality if "bias" in plain[name] else Quality
            plain[name] = kind(**plain[name])
    plain["report"] = ResultReport.from_json(plain["report"])
    outcome = FileOutcome(item, Status(plain.pop("status")), **plain)
    if outcome.status is not Status.DONE:
        return outcome
    try:
        if not part.exists():
            raise ImageWriteError(f"{item.target}: a worker's result is not here.", _SHARED)
        with explained(item.target):
            journal.begin(item, cast("tuple[int, int] | None", state), outcome.report)
            item.target.parent.mkdir(parents=True, exist_ok=True)
            if part.is_dir():
                check_folder(item.target, is_slice)
            atomic.move(part, item.target)
            part.parent.rmdir()
        journal.done(item, cast("tuple[int, int] | None", state))
    except AppError as error:
        return FileOutcome(item, Status.FAILED, str(error), outcome.size, outcome.device)
    return outcome


def _check(task: Mapping[str, Any], item: Item) -> None:
    """Refuse a task of another version, and one whose files are on another machine."""
    host = platform.node()
    if task["version"] != kernelscope.__version__:
        raise AppError(
            f"The worker on {host} has Kernelscope {kernelscope.__version__}, "
            f"and the batch {task['version']}.",
            "Install the same version on all machines.",
        )
    if not item.source.exists():
        raise ImageReadError(f"{item.source}: there is no such file on {host}.", _SHARED)
    try:
        item.target.parent.mkdir()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ImageWriteError(
            f"The worker on {host} cannot write to {task['parts']}: {reason}.", _SHARED
        ) from error


def _filtered(task: Mapping[str, Any], item: Item, noted: _Noted) -> FileOutcome:
    """Read, filter and write a file as a batch of its own."""
    backends, costs = worker_tools(task["threads"])
    batch = Batch(
        Recipe.from_json(task["recipe"]),
        [item],
        backends,
        _options(task["options"]),
        handling=Handling(**task["handling"]),
        overwrite=True,
        jobs=1,
        costs=costs,
    )
    with ExitStack() as turn:

        def begun(item: Item, stage: FileStage) -> None:
            if stage is FileStage.FILTERING:
                turn.enter_context(_filtering)
            elif stage is FileStage.WRITING:
                turn.close()

        (outcome,) = batch.run(cast(Journal, noted), CancelToken(), begun=begun)
    return outcome


def _options(plain: Mapping[str, Any]) -> RunOptions:
    """Return the run options of a task: JSON has neither devices nor tuples."""
    block = tuple(plain["block"]) if plain["block"] is not None else None
    return RunOptions(**{**plain, "device": Device(plain["device"]), "block": block})


class _Noted:
    """Takes the place of the journal, which the client writes: notes the state of the source."""

    def __init__(self) -> None:
        self.state: tuple[int, int] | None = None

    def is_done(self, item: Item) -> bool:
        return False

    def report(self, item: Item) -> ResultReport:
        return ResultReport()

    def begin(self, item: Item, state: tuple[int, int] | None, report: ResultReport) -> None:
        self.state = state

    def done(self, item: Item, state: tuple[int, int] | None) -> None:
        pass

    def failed(self, item: Item) -> None:
        pass
