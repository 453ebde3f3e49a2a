"""Brings the worker's events to the GUI thread."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal

from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import Request
from kernelscope.engine.worker import (
    Completed,
    Event,
    Failed,
    Finished,
    Job,
    Progressed,
    Reported,
    Started,
    Stopped,
    Worker,
)
from kernelscope.gui.work.relay import Relay


class WorkerBridge(QObject):
    """Owns the worker; its signals come on the GUI thread, for the latest request only.

    Between `submitted` and one of `finished`, `failed` and `stopped` a request is in progress.
    A live request has signals of its own, `live_finished` and `live_ended`, and gives way to
    others.
    A job ends in `job_ended`, with a `Completed`, `Failed` or `Stopped`; a request that is
    submitted meanwhile takes its place, and the other way round.
    `used` comes before any of these begins.
    """

    used = Signal()
    submitted = Signal(object)
    progressed = Signal(str, float)
    finished = Signal(object)
    failed = Signal(object)
    stopped = Signal()
    live_finished = Signal(object)
    live_ended = Signal(object)
    job_reported = Signal(object)
    job_ended = Signal(object)

    def __init__(
        self,
        backends: Mapping[str, Backend],
        parent: QObject | None = None,
        costs: Costs | None = None,
    ) -> None:
        super().__init__(parent)
        self._current: Request | None = None
        self._live: Request | None = None
        self._job: Job | None = None
        relay = self._relay = Relay(self._deliver)

        def hear(event: Event) -> None:  # holds the relay only: the thread may outlive the bridge
            if not isinstance(event, Started):  # which nobody waits for
                relay.send(event)

        self._worker = Worker(backends, hear, costs)

    @property
    def busy(self) -> bool:
        """Whether a request is in progress."""
        return self._current is not None

    def submit(self, request: Request) -> None:
        """Run `request` in place of the current one."""
        self.used.emit()
        self._current = request
        self._worker.submit(request)
        self.submitted.emit(request)

    @property
    def occupied(self) -> bool:
        """Whether a request or a job is in progress that a live request would replace."""
        return self._current is not None or self._job is not None

    @property
    def live_stage(self) -> str:
        """The stage of the live request in progress; empty if there is none."""
        return self._worker.live_stage if self._live is not None else ""

    def submit_live(self, request: Request) -> None:
        """Run `request` in place of the live one in progress; only while not `occupied`."""
        assert not self.occupied
        self.used.emit()
        self._live = request
        self._worker.submit(request)

    def cancel_live(self) -> None:
        """Stop the live request, if one is in progress; its signals do not come."""
        if self._live is not None:
            self._live = None
            if not self.occupied:
                self._worker.cancel(followed=True)

    def cancel(self, *, followed: bool = False) -> None:
        """Stop the current request; see `Worker.cancel`.

        `stopped` comes at once, although a kernel that is being compiled runs to its end.
        """
        self._worker.cancel(followed=followed)
        if self._current is not None:
            self._current = None
            self.stopped.emit()

    def start(self, job: Job) -> None:
        """Run `job` in place of the current work; a job that it replaces ends as `Stopped`."""
        self.used.emit()
        replaced, self._job = self._job, job
        self._worker.submit(job)
        if replaced is not None:
            self.job_ended.emit(Stopped(replaced))

    def stop_job(self) -> None:
        """Stop the current job; its last reports come before `job_ended`."""
        if self._job is not None:
            self._worker.cancel()

    def close(self, timeout: float) -> None:
        """Cancel and wait for the worker's thread to end, `timeout` seconds at most."""
        self._current = self._live = self._job = None
        self._relay.close()
        self._worker.close(timeout)

    def _deliver(self, event: Event) -> None:
        if self._job is not None and event.request is self._job:
            self._deliver_of_job(event)
            return
        if self._live is not None and event.request is self._live:
            self._deliver_live(event)
            return
        if event.request is not self._current:
            return  # of a request that was replaced
        match event:
            case Progressed(stage=stage, fraction=fraction):
                self.progressed.emit(stage, fraction)
            case Finished(result=result):
                self._current = None
                self.finished.emit(result)
            case Failed(error=error):
                self._current = None
                self.failed.emit(error)
            case Stopped():
                self._current = None
                self.stopped.emit()

    def _deliver_live(self, event: Event) -> None:
        match event:
            case Finished(result=result):
                self._live = None
                self.live_finished.emit(result)
            case Failed(error=error):
                self._live = None
                self.live_ended.emit(error)
            case Stopped():
                self._live = None
                self.live_ended.emit(None)

    def _deliver_of_job(self, event: Event) -> None:
        match event:
            case Reported(value=value):
                self.job_reported.emit(value)
            case Completed() | Failed() | Stopped():
                self._job = None
                self.job_ended.emit(event)
