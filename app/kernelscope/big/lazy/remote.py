"""Computes the blocks of a lazy source on the workers of a cluster.

::

    client                              worker
    Remote.read(box)  ----- JSON ---->  compute_block(text): opens the source, computes the box,
                      <---- JSON -----  and saves it as a part

A worker is sent the name of a function and a text: the file, the steps with the numbers that were
estimated, and the box. Each try has a part of its own, so that a block that is computed again after
a worker was lost is there once. The client writes the parts to their places, in their order.
"""

from __future__ import annotations

import json
import platform
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelscope
from kernelscope.backends.worker import worker_tools
from kernelscope.base import memory
from kernelscope.base.errors import AppError, ImageReadError, ImageWriteError
from kernelscope.big.lazy.blocks import AT_ONCE
from kernelscope.big.lazy.filtered import Filtered, filtered, whole
from kernelscope.big.lazy.opening import open_source
from kernelscope.big.lazy.source import LazySource, Sides
from kernelscope.big.lazy.streaming import Sink, Streamed, stream
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.files.write_errors import explained
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Levels

_LOOK_SECONDS = 0.1  # a block that is waited for looks this often whether the run was cancelled
_FEWEST = 4  # workers for which blocks are sent: more may come

_ANSWER_SECONDS = 10.0

_TRIES = 5  # answers of a block that may be lost with workers

_SHARED = "Use folders that all machines share, under the same names."


Task = dict[str, Any]  # what the blocks of a file have in common, as JSON has it


@dataclass(frozen=True)
class Workers:
    """The workers of a cluster."""

    client: Any
    threads: int | None = None  # threads of the CPU in each worker; by default all cores

    def stream(
        self,
        source: LazySource,
        sink: Sink,
        boxes: Sequence[Box],
        task: Task,
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
) -> Task:
    """Return the task of steps whose estimates and surveys are done.

    `number`: from 1, of the volume in a file of several.
    """
    return {
        "version": kernelscope.__version__,
        "source": str(source.absolute()),
        "number": number,
        "recipe": Recipe(tuple(each.step for each in steps)).to_json(),
        "levels": [each.levels for each in steps],
        "device": options.device.value,
        "level": options.level,
    }


class Remote:
    """A lazy source whose blocks are computed elsewhere; it is read on several threads.

    `source`: the same, here: its shape and type. `task`: as `describe` returns it, with the folder
    of parts and the threads. `at_once`: blocks that keep all workers busy. `peak_bytes`: most
    memory that a worker had resident.
    """

    def __init__(self, source: LazySource, client: Any, task: Task, token: CancelToken) -> None:
        self._client, self._task, self._token = client, task, token
        self.kind, self.title, self.dtype = source.kind, source.title, source.dtype
        self.shape, self.grain = source.shape, source.grain
        self.working_bytes: Callable[[Box], int] = source.working_bytes
        self.at_once = AT_ONCE * max(_FEWEST, len(client.ncores()))
        self.peak_bytes = 0
        self._lock = threading.Lock()

    def read(self, box: Box) -> NDArray[Any]:
        """Return a block that lies on the disk."""
        text = json.dumps({**self._task, "first": box.first, "sides": box.sides})
        for _ in range(_TRIES):
            answer = self._answer(text)
            if answer is not None:
                return self._taken(json.loads(answer))
        raise AppError(
            f"{self.title}: the answers of a block were lost {_TRIES} times.",
            "See the logs of the workers.",
        )

    def _answer(self, text: str) -> str | None:
        """Return the answer of a worker; None if it was lost on the way."""
        try:
            key = f"kernelscope-block-{secrets.token_hex(8)}"
            future = self._client.submit(compute_block, text, key=key, pure=False)
        except (OSError, RuntimeError) as error:
            raise self._lost() from error
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(_LOOK_SECONDS):
                self._token.check()
                if self._client.status != "running":
                    raise self._lost()
            if future.status == "error":
                raise _failure(future.exception(timeout=_ANSWER_SECONDS))
            answer: str = future.result(timeout=_ANSWER_SECONDS)
        except AppError:
            raise
        except Exception:  # Dask has several for answers that were lost
            self._token.check()
            if self._client.status != "running":
                raise self._lost() from None
            return None
        finally:
            with suppress(Exception):  # the scheduler may be gone
                future.cancel()
        return answer

    def _taken(self, answer: dict[str, Any]) -> NDArray[Any]:
        if "reason" in answer:
            raise AppError(answer["reason"])
        part = Path(self._task["parts"]) / Path(answer["part"]).name
        try:
            # Blocks that come before their turn wait on the disk.
            samples: NDArray[Any] = np.load(part, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ImageReadError(f"{part}: a worker's block is not here.", _SHARED) from error
        with suppress(OSError):  # Windows removes it with the folder
            part.unlink()
        with self._lock:
            self.peak_bytes = max(self.peak_bytes, answer["peak"] or 0)
        return samples

    def _lost(self) -> AppError:
        return AppError(
            "The scheduler went away. The result was not written.",
            "Start it again, and the command again.",
        )


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
    """Compute a block, on a worker; return the name of its part, or the reason for none, as JSON.

    `text`: as a `Remote` sends it.
    """
    task = json.loads(text)
    try:
        _check(task)
        samples = _computed(task)
        part = Path(task["parts"], f"{secrets.token_hex(8)}.npy")
        try:
            np.save(part, samples)
        except OSError as error:
            part.unlink(missing_ok=True)
            reason = error.strerror or str(error)
            raise ImageWriteError(
                f"The worker on {platform.node()} cannot write to {task['parts']}: {reason}.",
                _SHARED,
            ) from error
    except AppError as error:
        return json.dumps({"reason": str(error)})
    return json.dumps({"part": part.name, "peak": memory.peak()})


def _check(task: Task) -> None:
    """Refuse a task of another version, and one whose files are on another machine."""
    host = platform.node()
    if task["version"] != kernelscope.__version__:
        raise AppError(
            f"The worker on {host} has Kernelscope {kernelscope.__version__}, "
            f"and the command {task['version']}.",
            "Install the same version on all machines.",
        )
    if not Path(task["source"]).exists():
        raise ImageReadError(f"{task['source']}: there is no such file on {host}.", _SHARED)


def _computed(task: Task) -> NDArray[Any]:
    backends, costs = worker_tools(task["threads"])
    options = RunOptions(device=Device(task["device"]), level=task["level"])

    def compute(request: Request) -> Result:
        return execute(request, backends, costs=costs, learn=False)

    with closing(open_source(Path(task["source"]), task["number"])) as opened:
        last: LazySource = opened
        steps = Recipe.from_json(task["recipe"]).steps
        for step, found in zip(steps, task["levels"], strict=True):
            levels = None if found is None else Levels(*found)
            last = filtered(last, step, compute, options, whole, levels)
        samples = last.read(Box(_sides(task["first"]), _sides(task["sides"])))
        opened.check_unchanged()
    return samples


def _sides(numbers: Sequence[int]) -> Sides:
    first, second, third = numbers
    return first, second, third


def _failure(error: BaseException | None) -> AppError:
    """Return the reason why a block has no answer."""
    name = type(error).__name__
    if name == "KilledWorker":
        return AppError(
            "Every worker that had a block in work ended.",
            "Each may need more memory than it has: allow less with --memory.",
        )
    if isinstance(error, ImportError):
        return AppError(
            f"A worker cannot import Kernelscope: {error}.", "Install it on all machines."
        )
    return AppError(f"A bug in the program, on a worker: {name}: {error}.")
