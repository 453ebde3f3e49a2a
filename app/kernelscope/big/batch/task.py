"""A file of a batch as a task of a worker, see `kernelscope.big.workers`.

::

    client                            worker
    describe(...)  ----- text ----->  filter_file(text): reads, filters, writes a part
    finish(...)    <---- text ------  the outcome, and the name of the part

A part that comes after its worker was given up is removed with the folder of parts.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelscope.base import atomic
from kernelscope.base.errors import AppError, ImageWriteError
from kernelscope.base.json_fields import Field, OwnField
from kernelscope.big.batch.conductor import Batch, FileOutcome
from kernelscope.big.batch.item import AS_USUAL, FileState, Handling, Item
from kernelscope.big.batch.journal import Journal
from kernelscope.big.workers import SHARED, TaskFields, answered, task_of, unwritable, worker_tools
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.files.volumes.folder import is_slice
from kernelscope.files.write_errors import check_folder, explained

OPEN = "open"  # a file in the folder of parts while the batch runs

_filtering = threading.Lock()
"""Held while a file is filtered: its threads, or the GPU, would only be shared with another."""


@dataclass(frozen=True)
class TaskSettings:
    """The options that the tasks of a batch share."""

    recipe: Recipe
    options: RunOptions
    parts: Path  # folder for the parts; absolute
    handling: Handling = AS_USUAL
    threads: int | None = None  # threads of the CPU in each worker; by default all cores


def describe(number: int, item: Item, settings: TaskSettings) -> str:
    reference = item.reference and str(item.reference.absolute())
    task = task_of(
        item.source,
        settings.parts,
        settings.threads,
        number=number,
        recipe=settings.recipe.to_json(),
        options=asdict(settings.options),
        by_folder=item.by_folder,
        slices=[str(each.absolute()) for each in item.slices],
        target=str(item.target.absolute()),
        reference=reference,
        handling=asdict(settings.handling),
    )
    return json.dumps(task)


@dataclass(frozen=True)
class _FileTask:
    number: int
    recipe: str
    options: RunOptions
    source: str
    by_folder: bool
    slices: tuple[str, ...]
    target: str
    reference: str | None
    parts: str
    handling: Handling
    threads: int | None


def filter_file(text: str) -> str:
    return answered(text, "batch", _part)


def _part(content: Field) -> TaskFields:
    task = content.record(_FileTask)
    parts = Path(task.parts)
    part = parts / f"{task.number}-{secrets.token_hex(8)}" / Path(task.target).name
    reference = None if task.reference is None else Path(task.reference)
    slices = tuple(map(Path, task.slices))
    item = Item(Path(task.source), part, reference, slices, task.by_folder)
    outcome = None
    try:
        try:
            part.parent.mkdir()
        except OSError as error:
            raise unwritable(content, error) from error
        outcome = _filtered(task, item)
    finally:
        gone = not (parts / OPEN).exists()  # the batch has ended meanwhile
        if gone or outcome is None or outcome.status is not FileState.DONE:
            shutil.rmtree(part.parent, ignore_errors=True)
        if gone:
            with suppress(OSError):
                parts.rmdir()
    return {"outcome": {**asdict(outcome), "item": None}, "part": part.parent.name}


def times_begun(number: int, settings: TaskSettings) -> int:
    return sum(1 for _ in settings.parts.glob(f"{number}-*"))


def finish(item: Item, text: str, settings: TaskSettings, journal: Journal) -> FileOutcome:
    """Move the part of a task that is done to its target; return the outcome of the file."""
    answer = OwnField(json.loads(text), "answer")
    if "reason" in answer:
        return FileOutcome(item, FileState.FAILED, answer["reason"].text())
    part = settings.parts / answer["part"].from_text(Path).name / item.target.name
    outcome = answer["outcome"].record(FileOutcome, item=item)
    if outcome.status is not FileState.DONE:
        return outcome
    try:
        if not part.exists():
            raise ImageWriteError(f"{item.target}: a worker's result is not here.", SHARED)
        with explained(item.target):
            journal.begin(item, outcome.state, outcome.report)
            item.target.parent.mkdir(parents=True, exist_ok=True)
            if part.is_dir():
                check_folder(item.target, is_slice)
            atomic.move(part, item.target)
            part.parent.rmdir()
        journal.done(item, outcome.state)
    except AppError as error:
        return FileOutcome(item, FileState.FAILED, str(error), outcome.size, outcome.device)
    return outcome


def _filtered(task: _FileTask, item: Item) -> FileOutcome:
    """Read, filter and write a file as a batch of its own."""
    backends, costs = worker_tools(task.threads)
    batch = Batch(
        Recipe.from_json(task.recipe),
        [item],
        backends,
        task.options,
        handling=task.handling,
        overwrite=True,
        jobs=1,
        costs=costs,
    )
    with ExitStack() as turn:

        def begun(item: Item, stage: FileState) -> None:
            if stage is FileState.FILTERING:
                turn.enter_context(_filtering)
            elif stage is FileState.WRITING:
                turn.close()

        (outcome,) = batch.run(None, CancelToken(), begun=begun)
    return outcome
