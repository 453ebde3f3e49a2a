"""The protocol of workers: a task is the name of a function and a JSON text, its answer another.

::

    client                              worker
    Sender.send(do, texts) -- JSON -->  do(text) = answered(...): checks the version and the source,
    Sender.answer(future)  <-- JSON --  writes a part; returns its name, or the reason for none

A worker never writes a target: each try of a task has a part of its own in a folder of parts, and
the client puts it in its place. So it does no harm if a task is done again after a worker was lost.
The backends of a worker are shared by all of its tasks (`worker_tools`).
"""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernelscope
from kernelscope.backends import create_backends
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import AppError, ImageReadError, ImageWriteError
from kernelscope.base.json_fields import Field, OwnField
from kernelscope.base.once import once
from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import Device


@once
def worker_tools(threads: int | None) -> tuple[dict[str, Backend], Costs]:
    backends = create_backends(emulated=True)
    return {**backends, Device.CPU.value: CpuBackend(threads)}, Costs()


_logger = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
LOOK_SECONDS = 0.1  # a task that is waited for looks this often whether it was cancelled
TRIES = 5  # of a task whose workers were lost

SHARED = "Use folders that all machines share, under the same names."

TaskFields = Mapping[str, Any]
"""JSON: the version, the source, the folder of parts and the threads of the CPU, and more."""


def task_of(source: Path, parts: Path | None, threads: int | None, **more: Any) -> dict[str, Any]:
    return {
        "version": kernelscope.__version__,
        "source": str(source.absolute()),
        "parts": str(parts),
        "threads": threads,
        **more,
    }


def answered(text: str, caller: str, do: Callable[[Field], TaskFields]) -> str:
    """Do a task, on a worker; return its answer as JSON, or the reason for none.

    `caller`: of the task, in messages.
    """
    task = OwnField(json.loads(text), "task")
    try:
        _check(task, caller)
        return json.dumps(do(task))
    except AppError as error:
        return json.dumps({"reason": str(error)})


def _check(task: Field, caller: str) -> None:
    """Refuse a task of another version, and one whose source is on another machine."""
    host, version = platform.node(), task["version"].text()
    if version != kernelscope.__version__:
        raise AppError(
            f"The worker on {host} has Kernelscope {kernelscope.__version__}, "
            f"and the {caller} {version}.",
            "Install the same version on all machines.",
        )
    source = task["source"].from_text(Path)
    if not source.exists():
        raise ImageReadError(f"{source}: there is no such file on {host}.", SHARED)


def unwritable(task: Field, error: OSError) -> ImageWriteError:
    reason = error.strerror or str(error)
    return ImageWriteError(
        f"The worker on {platform.node()} cannot write to {task['parts'].text()}: {reason}.", SHARED
    )


class SchedulerLost(AppError):
    """The scheduler ended, or cannot be reached any more."""

    def __init__(self, hint: str) -> None:
        super().__init__("The scheduler went away.", hint)


@dataclass(frozen=True)
class Sender:
    client: Any  # of Dask, which `batch.cluster` alone imports
    lost: str  # hint when the scheduler goes away
    ended: AppError  # the failure of a task that ended all of its workers

    def send(self, do: Callable[[str], str], texts: Sequence[str], keys: Sequence[str]) -> Any:
        try:
            return self.client.map(do, texts, key=keys, pure=False)
        except (OSError, RuntimeError) as error:
            raise SchedulerLost(self.lost) from error

    def check(self) -> None:
        if self.client.status != "running":
            raise SchedulerLost(self.lost)

    def answer(self, future: Any) -> str | None:
        """Return the answer of a task that ended; None if it was lost on the way.

        Raises the reason why there will be none.
        """
        failure = None
        try:
            if future.status == "finished":
                text: str = future.result(timeout=ANSWER_SECONDS)
                return text
            if future.status == "error":
                failure = future.exception(timeout=ANSWER_SECONDS)
        except Exception as error:  # Dask has several for answers that were lost on the way
            _logger.info("no answer yet: %s: %s", type(error).__name__, error)
        if failure is not None:
            raise self._failure(failure)
        if future.status == "cancelled":
            raise SchedulerLost(self.lost)
        self.check()
        return None

    def _failure(self, error: BaseException) -> AppError:
        name = type(error).__name__
        if name == "KilledWorker":
            return self.ended
        if isinstance(error, ImportError):
            return AppError(
                f"A worker cannot import Kernelscope: {error}.", "Install it on all machines."
            )
        _logger.error("a task failed", exc_info=error)
        return AppError(f"A bug in the program, on a worker: {name}: {error}.", "See the log.")

    def drop(self, futures: Sequence[Any]) -> None:
        """Take back tasks that have not begun."""
        if futures and self.client.status == "running":
            try:
                self.client.cancel(futures, force=True)
            except Exception as error:  # it is gone as well, and the tasks with it
                _logger.info("cancel: %s", error)
