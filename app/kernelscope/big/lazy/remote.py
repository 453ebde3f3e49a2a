"""Computes the blocks of a lazy source on the workers of a cluster: `kernelscope.big.workers`.

A task is the file, the steps with the numbers that were estimated, and the box. The client writes
the parts to their places, in their order.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.base.errors import AppError, ImageReadError
from kernelscope.base.json_fields import Field, Number
from kernelscope.big.lazy.blocks import AT_ONCE
from kernelscope.big.lazy.filtered import Filtered, filtered, whole
from kernelscope.big.lazy.opening import open_source
from kernelscope.big.lazy.streaming import Sink, Streamed, stream
from kernelscope.big.workers import (
    LOOK_SECONDS,
    SHARED,
    TRIES,
    SchedulerLost,
    Sender,
    TaskFields,
    answered,
    task_of,
    unwritable,
    worker_tools,
)
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.files.lazy import LazySource
from kernelscope.files.write_errors import explained
from kernelscope.schema.crop import Box
from kernelscope.schema.devices import Device
from kernelscope.schema.samples import Levels

_FEWEST = 4  # workers for which blocks are sent: more may come


@dataclass(frozen=True)
class Workers:
    client: Any
    threads: int | None = None  # threads of the CPU in each worker; by default all cores

    def stream(
        self,
        source: LazySource,
        sink: Sink,
        boxes: Sequence[Box],
        task: TaskFields,
        target: Path,
        token: CancelToken,
        progress: Progress,
    ) -> Streamed:
        """Have the boxes of a source computed, and write them; as `streaming.stream`.

        The report has the most memory that a worker took.
        """
        with _folder_of_parts(target) as parts:
            task = {**task, "parts": str(parts), "threads": self.threads}
            remote = Remote(source, self.client, task, token)
            report = stream(remote, sink, boxes, token, progress, remote.at_once)
        return replace(report, peak_bytes=remote.peak_bytes or None)


def describe(
    source: Path, number: int | None, steps: Sequence[Filtered], options: RunOptions
) -> TaskFields:
    """Return the task of steps whose estimates and surveys are done.

    `number`: from 1, of the volume in a file of several.
    """
    return task_of(
        source,
        None,
        None,
        number=number,
        recipe=Recipe(tuple(each.step for each in steps)).to_json(),
        levels=[each.levels for each in steps],
        device=options.device,
        level=options.level,
    )


class Remote:
    """A lazy source whose blocks are computed elsewhere; it is read on several threads.

    `source`: the same, here: its shape and type. `task`: as `describe` returns it, with the folder
    of parts and the threads. `at_once`: blocks that keep all workers busy. `peak_bytes`: most
    memory that a worker had resident.
    """

    def __init__(
        self, source: LazySource, client: Any, task: TaskFields, token: CancelToken
    ) -> None:
        self._task, self._token = task, token
        self._sender = Sender(
            client,
            "The result was not written. Start it again, and the command again.",
            AppError(
                "Every worker that had a block in work ended.",
                "Each may need more memory than it has: allow less with --memory.",
            ),
        )
        self.kind, self.title, self.dtype = source.kind, source.title, source.dtype
        self.shape, self.grain = source.shape, source.grain
        self.working_bytes: Callable[[Box], int] = source.working_bytes
        self.at_once = AT_ONCE * max(_FEWEST, len(client.ncores()))
        self.peak_bytes = 0
        self._lock = threading.Lock()

    def read(self, box: Box) -> NDArray[Any]:
        text = json.dumps({**self._task, "first": box.first, "sides": box.sides})
        for _ in range(TRIES):
            answer = self._answer(text)
            if answer is not None:
                return self._taken(json.loads(answer))
        raise AppError(
            f"{self.title}: the answers of a block were lost {TRIES} times.",
            "See the logs of the workers.",
        )

    def _answer(self, text: str) -> str | None:
        """Return the answer of a worker; None if it was lost on the way."""
        key = f"kernelscope-block-{secrets.token_hex(8)}"
        (future,) = self._sender.send(compute_block, [text], [key])
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(LOOK_SECONDS):
                self._token.check()
                self._sender.check()
            return self._sender.answer(future)
        except SchedulerLost:
            self._token.check()
            raise
        finally:
            with suppress(Exception):  # the scheduler may be gone
                future.cancel()

    def _taken(self, answer: dict[str, Any]) -> NDArray[Any]:
        if "reason" in answer:
            raise AppError(answer["reason"])
        part = Path(self._task["parts"]) / Path(answer["part"]).name
        try:
            # Blocks that come before their turn wait on the disk.
            samples: NDArray[Any] = np.load(part, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ImageReadError(f"{part}: a worker's block is not here.", SHARED) from error
        with suppress(OSError):  # Windows removes it with the folder
            part.unlink()
        with self._lock:
            self.peak_bytes = max(self.peak_bytes, answer["peak"] or 0)
        return samples


@contextmanager
def _folder_of_parts(target: Path) -> Iterator[Path]:
    """Provide a folder next to a target, for the blocks that are on their way."""
    parts = target.absolute().parent / f".kernelscope-blocks-{secrets.token_hex(8)}"
    with explained(parts):
        parts.mkdir()
    try:
        yield parts
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def compute_block(text: str) -> str:
    return answered(text, "command", _part)


@dataclass(frozen=True)
class _BlockTask:
    source: str
    number: int | None
    recipe: str
    levels: tuple[tuple[Number, Number] | None, ...]
    device: Device
    level: str | None
    parts: str
    threads: int | None
    first: tuple[int, int, int]
    sides: tuple[int, int, int]


def _part(content: Field) -> Mapping[str, Any]:
    """Compute a block, and save it."""
    task = content.record(_BlockTask)
    samples = _computed(task)
    part = Path(task.parts, f"{secrets.token_hex(8)}.npy")
    try:
        np.save(part, samples)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise unwritable(content, error) from error
    return {"part": part.name, "peak": memory.peak()}


def _computed(task: _BlockTask) -> NDArray[Any]:
    backends, costs = worker_tools(task.threads)
    options = RunOptions(device=task.device, level=task.level)

    def compute(request: Request) -> Result:
        return execute(request, backends, costs=costs, learn=False)

    with closing(open_source(Path(task.source), task.number)) as opened:
        last: LazySource = opened
        for step, found in zip(Recipe.from_json(task.recipe).steps, task.levels, strict=True):
            levels = None if found is None else Levels(*found)
            last = filtered(last, step, compute, options, whole, levels)
        samples = last.read(Box(task.first, task.sides))
        opened.check_unchanged()
    return samples
