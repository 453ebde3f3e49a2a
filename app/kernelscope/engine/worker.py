"""The one thread on which filters run, so that the window never waits.

The latest submission wins: it cancels the one that runs and replaces the one that waits. Events
go to a listener::

    submit(A)      submit(B)
       |---- A -------|x Stopped(A)
                      |---- B ---- Finished(B)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelscope.base.errors import AppError, Cancelled
from kernelscope.engine.backend import Backend, close_all
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import Request
from kernelscope.engine.steps import execute_all

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Job:
    """Work for the worker's thread other than a request, such as a benchmark."""

    work: Callable[[Mapping[str, Backend], CancelToken, Callable[[Any], None]], object]
    """Called with the backends, a token to check often, and a function whose argument reaches the
    listener as `Reported`."""
    name: str = "measurement"  # for the log
    live: bool = False  # it gives way to everything else, which is not worth a line of the log

    def describe(self) -> str:
        return self.name


@dataclass(frozen=True)
class Progressed:
    request: Request
    stage: str
    fraction: float


@dataclass(frozen=True)
class Finished:
    request: Request | Job
    result: Any


@dataclass(frozen=True)
class Reported:
    """`value` is a report of a job, such as its progress."""

    request: Job
    value: Any


@dataclass(frozen=True)
class Failed:
    """`error` is an `AppError` if the user can fix the problem; anything else is a bug."""

    request: Request | Job
    error: Exception


@dataclass(frozen=True)
class Stopped:
    """The request was cancelled, or a later one took its place."""

    request: Request | Job


Event = Progressed | Finished | Reported | Failed | Stopped


_UNBEGUN = "before it began"


class Worker:
    """Runs requests and jobs one after the other; a new one replaces those that are not done.

    - `backends`: backends by id; used and closed on the worker's thread only.
    - `costs`: times of earlier runs, from which Auto chooses; none by default.
    - `daemon`: the program may end before the thread does.
    - `listener`: called with each `Event` on the worker's thread; only `Stopped` for a request that
      never started comes on the thread that replaced or cancelled it. A request that was replaced
      or cancelled ends in `Stopped`: its result is dropped even if it was complete.
    - `live_stage`: the stage of the last live request, which reports no progress: an event for each
      of many quick runs would delay them. Any thread may read it.
    """

    def __init__(
        self,
        backends: Mapping[str, Backend],
        listener: Callable[[Event], None],
        costs: Costs | None = None,
        *,
        daemon: bool = False,
    ) -> None:
        self._backends = backends
        self._costs = costs or Costs()
        self._listener = listener
        self._condition = threading.Condition()
        self._pending: Request | Job | None = None
        self._token: CancelToken | None = None
        self._closing = False
        self.live_stage = ""
        self._followed = False
        """Whether the running request was cancelled in favour of a later one."""
        self._thread = threading.Thread(target=self._loop, name="kernelscope-worker", daemon=daemon)
        self._thread.start()

    def submit(self, request: Request | Job) -> None:
        """Run `request` as soon as possible, instead of the running and the waiting one."""
        with self._condition:
            if self._closing:
                raise RuntimeError("the worker is closed")
            replaced, self._pending = self._pending, request
            if self._token is not None:
                self._followed |= not self._token.cancelled
                self._token.cancel()
            self._condition.notify()
        if replaced is not None:
            self._stop(replaced, "before it began, for a later run")

    def cancel(self, *, followed: bool = False) -> None:
        """Stop the running request and drop the waiting one.

        `followed` is for the log: another run is being prepared that takes its place.
        """
        with self._condition:
            dropped, self._pending = self._pending, None
            if self._token is not None:
                first = self._followed or not self._token.cancelled
                self._followed = followed and first
                self._token.cancel()
        if dropped is not None:
            self._stop(dropped, "before it began, for a later run" if followed else _UNBEGUN)

    def close(self, timeout: float | None = None) -> bool:
        """Cancel, let the thread release the backends, and wait for it to end.

        - `timeout`: seconds to wait at most; without it, as long as it takes.

        Returns whether the thread has ended. Computing stops within a second, but compiling a
        kernel cannot be interrupted.
        """
        with self._condition:
            self._closing = True
            self._condition.notify()
        self.cancel()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        try:
            self._serve()
        finally:
            close_all(self._backends.values())

    def _serve(self) -> None:
        while True:
            with self._condition:
                while self._pending is None and not self._closing:
                    self._condition.wait()
                if self._closing:
                    return
                request, self._pending = self._pending, None
                assert request is not None
                token = self._token = CancelToken()
                self._followed = False
            start = time.perf_counter()
            event = self._run(request, token)
            seconds = time.perf_counter() - start
            with self._condition:
                self._token = None
                stopped = token.cancelled or isinstance(event, Stopped)
                why = ", for a later run" if self._followed else ""
            if stopped:
                self._stop(request, f"after {seconds:.3f} s{why}")
            else:
                self._listener(event)

    def _stop(self, request: Request | Job, when: str = _UNBEGUN) -> None:
        """Log that a request was cancelled or replaced, and notify the listener."""
        level = logging.DEBUG if request.live else logging.INFO
        _logger.log(level, "Cancelled %s: %s", when, request.describe())
        self._listener(Stopped(request))

    def _run(self, request: Request | Job, token: CancelToken) -> Event:
        try:
            if isinstance(request, Job):
                job = request
                job.work(self._backends, token, lambda value: self._listener(Reported(job, value)))
                return Finished(job, None)

            def report(stage: str, fraction: float) -> None:
                self._listener(Progressed(request, stage, fraction))

            def note(stage: str, fraction: float) -> None:
                self.live_stage = stage

            self.live_stage = ""
            result = execute_all(
                request,
                self._backends,
                token,
                note if request.live else report,
                self._costs,
            )
        except Cancelled:
            return Stopped(request)
        except AppError as error:
            _logger.log(logging.DEBUG if request.live else logging.ERROR, "%s", error)
            return Failed(request, error)
        except Exception as error:  # a bug: the window shows the log and stays usable
            _logger.exception("The filter failed")
            return Failed(request, error)
        return Finished(request, result)
