"""The worker: one run at a time, the latest wins, nothing blocks and nothing is left behind."""

from __future__ import annotations

import itertools
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.backend import Backend, close_all
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.worker import (
    Event,
    Failed,
    Finished,
    Job,
    Progressed,
    Reported,
    Stopped,
    Worker,
)
from kernelscope.images.image import Image
from tests.engine.fakes import FakeBackend, request
from tests.patience import PATIENCE


class Listener:
    """Keeps events in the order in which they arrive, and on which thread."""

    def __init__(self) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.begun: queue.Queue[Request] = queue.Queue()
        """Requests that a fake backend has begun."""
        self.threads: set[str] = set()

    def __call__(self, event: Event) -> None:
        self.threads.add(threading.current_thread().name)
        self.events.put(event)

    def next(self, kind: type[Event], wanted: Request | Job, seconds: float = PATIENCE) -> Event:
        """Return the next event, which has to be of that kind and request."""
        event = self.events.get(timeout=seconds)
        assert isinstance(event, kind), event
        assert event.request is wanted
        return event

    def begins(self, wanted: Request) -> None:
        """Wait until the fake backend begins a request, which has to be that one."""
        assert self.begun.get(timeout=PATIENCE).id == wanted.id

    def noting(self, backend: FakeBackend) -> FakeBackend:
        """Return a fake backend whose requests `begins` knows."""
        inner = backend.body

        def body(request: Request, token: CancelToken, progress: Progress) -> None:
            self.begun.put(request)
            inner(request, token, progress)

        backend.body = body
        return backend


def until_cancelled(request: Request, token: CancelToken, progress: Progress) -> None:
    while True:
        token.check()
        time.sleep(0.001)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def start(listener: Listener) -> Iterator[Callable[..., Worker]]:
    """Return a function that starts a worker on fake or real backends; all are closed."""
    workers = []

    def start(backend: Backend) -> Worker:
        if isinstance(backend, FakeBackend):
            listener.noting(backend)
        workers.append(Worker({"cpu": backend}, listener))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


def test_events_come_in_order_on_the_thread_of_the_worker(start, listener) -> None:
    def body(request: Request, token: CancelToken, progress: Progress) -> None:
        for fraction in (0.25, 0.5):
            progress("compute", fraction)

    worker, wanted = start(FakeBackend(body=body)), request()
    worker.submit(wanted)
    listener.begins(wanted)
    for fraction in (0.25, 0.5):
        event = listener.next(Progressed, wanted)
        assert (event.stage, event.fraction) == ("compute", fraction)
    assert listener.next(Finished, wanted).result.request is wanted
    assert listener.threads == {"kernelscope-worker"}


def test_the_latest_request_wins(start, listener) -> None:
    def body(request: Request, token: CancelToken, progress: Progress) -> None:
        if request is not last:
            until_cancelled(request, token, progress)

    worker = start(FakeBackend(body=body))
    first, second, last = request(), request(), request()
    worker.submit(first)
    listener.begins(first)
    # Whether the second one is started before the third replaces it is up to the scheduler.
    worker.submit(second)
    worker.submit(last)
    events = [listener.events.get(timeout=PATIENCE)]
    while not isinstance(events[-1], Finished):
        events.append(listener.events.get(timeout=PATIENCE))
    stopped = {event.request for event in events if isinstance(event, Stopped)}
    assert stopped == {first, second}
    assert events[-1].request is last


@pytest.mark.parametrize(
    ("cancels", "is_followed"),
    [((False,), False), ((True, True), True)],
    ids=["cancelled before the next", "the next is prepared for longer than the last one takes"],
)
def test_only_a_run_that_was_to_follow_is_logged_as_such(
    start, listener, caplog, cancels: tuple[bool, ...], is_followed: bool
) -> None:
    caplog.set_level(logging.INFO, "kernelscope.engine.worker")
    go_on = threading.Event()
    worker = start(FakeBackend(body=lambda *_: go_on.wait(PATIENCE)))
    first, later = request(), request()
    worker.submit(first)
    listener.begins(first)
    for followed in cancels:
        worker.cancel(followed=followed)
    worker.submit(later)
    go_on.set()
    listener.next(Stopped, first)
    listener.begins(later)
    (message,) = (record.message for record in caplog.records if "Cancelled" in record.message)
    assert (", for a later run: " in message) == is_followed


def test_what_is_cancelled_is_logged(start, listener, caplog) -> None:
    caplog.set_level(logging.INFO, "kernelscope.engine.worker")
    worker, running, waiting = start(FakeBackend(body=until_cancelled)), request(), request()
    worker.submit(running)
    listener.begins(running)
    with worker._condition:  # the next action of the thread has to wait
        worker.submit(waiting)
        worker.cancel()
    listener.next(Stopped, waiting)
    listener.next(Stopped, running)
    logged = [each for each in caplog.records if each.name == "kernelscope.engine.worker"]
    before, after = (record.message for record in logged)
    assert before == "Cancelled before it began: Mean, mask size 3 px, reflect border"
    assert re.fullmatch(r"Cancelled after \d\.\d{3} s: Mean, mask size 3 px, reflect border", after)


def test_a_complete_result_of_a_replaced_request_is_dropped(start, listener) -> None:
    running, go_on = threading.Event(), threading.Event()

    def body(request: Request, token: CancelToken, progress: Progress) -> None:
        running.set()
        assert go_on.wait(PATIENCE)  # deaf to its token, as a compiled kernel is

    worker = start(FakeBackend(body=body))
    old, new = request(), request()
    worker.submit(old)
    assert running.wait(PATIENCE)
    worker.submit(new)
    go_on.set()
    listener.begins(old)
    listener.next(Stopped, old)
    listener.begins(new)
    listener.next(Finished, new)


@pytest.mark.parametrize("error", [InvalidParameter("Too large."), ZeroDivisionError("a bug")])
def test_failures_are_told_and_the_worker_goes_on(start, listener, error, caplog) -> None:
    faults = iter([error])

    def body(*_: object) -> None:
        for fault in faults:
            raise fault

    worker, bad, good = start(FakeBackend(body=body)), request(), request()
    worker.submit(bad)
    listener.begins(bad)
    assert listener.next(Failed, bad).error is error
    # A bug is logged with its traceback, for the console.
    record = caplog.records[-1]
    assert record.levelname == "ERROR"
    assert bool(record.exc_info) == isinstance(error, ZeroDivisionError)
    worker.submit(good)
    listener.begins(good)
    listener.next(Finished, good)


def test_an_error_of_a_cancelled_request_is_not_told(start, listener) -> None:
    def body(request: Request, token: CancelToken, progress: Progress) -> None:
        while not token.cancelled:
            time.sleep(0.001)
        raise ZeroDivisionError

    worker, wanted = start(FakeBackend(body=body)), request()
    worker.submit(wanted)
    listener.begins(wanted)
    worker.cancel()
    listener.next(Stopped, wanted)


def test_cancelling_an_idle_worker_does_nothing(start, listener) -> None:
    worker, wanted = start(FakeBackend()), request()
    worker.cancel()
    worker.submit(wanted)
    listener.begins(wanted)
    listener.next(Finished, wanted)
    worker.cancel()
    assert listener.events.empty()


@pytest.mark.slow
def test_a_long_run_on_a_big_image_stops_within_a_second(start, listener) -> None:
    """A second of this process's CPU time, which other processes cannot stretch.

    The run is on one thread, so that this is the wait on a machine with a core to spare; the
    bound on the wall clock only finds a worker that hangs.
    """
    pixels = np.zeros((4096, 4096, 3), np.uint8)
    # The slowest that there is: tenths of a second for a row, many minutes for the image.
    wanted = Request.create(
        Image.from_array(pixels), "mean", {"size": 99}, device=Device.CPU, level="serial"
    )
    backend = CpuBackend()
    worker = start(backend)
    small = Request.create(
        Image.from_array(pixels[:1, :1]), "mean", {"size": 99}, device=Device.CPU, level="serial"
    )
    execute(small, {"cpu": backend})  # compiles
    worker.submit(wanted)
    assert listener.next(Progressed, wanted).stage == "compile"
    # Long enough to be in the first band, whose length is chosen blindly.
    begun = time.process_time()
    while (begin := time.process_time()) - begun < 0.3:
        time.sleep(0.01)
    worker.cancel()
    while isinstance(event := listener.events.get(timeout=PATIENCE), Progressed):
        pass
    assert time.process_time() - begin < 1
    assert isinstance(event, Stopped)


def test_closing_stops_what_runs_and_closes_the_backends(listener) -> None:
    backend = listener.noting(FakeBackend(body=until_cancelled))
    worker, wanted = Worker({"cpu": backend}, listener), request()
    worker.submit(wanted)
    listener.begins(wanted)
    begin = time.monotonic()
    worker.close()
    assert time.monotonic() - begin < PATIENCE
    listener.next(Stopped, wanted)
    assert backend.closed == 1
    assert "kernelscope-worker" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(RuntimeError, match="closed"):
        worker.submit(request())
    worker.close()
    assert backend.closed == 1


def test_jobs_use_the_backends_on_the_thread_of_the_worker(start, listener) -> None:
    def work(backends, token, report) -> None:
        assert threading.current_thread().name == "kernelscope-worker"
        report(sorted(backends))
        report("more")

    worker, job, wanted = start(FakeBackend()), Job(work), request()
    worker.submit(job)
    assert listener.next(Reported, job).value == ["cpu"]
    assert listener.next(Reported, job).value == "more"
    listener.next(Finished, job)
    worker.submit(wanted)
    listener.begins(wanted)


def test_a_request_takes_the_place_of_a_job(start, listener) -> None:
    def work(backends, token, report) -> None:
        until_cancelled(wanted, token, lambda stage, fraction: None)

    worker, job, wanted = start(FakeBackend()), Job(work), request()
    worker.submit(job)
    worker.submit(wanted)
    listener.next(Stopped, job)
    listener.begins(wanted)


def test_a_job_that_fails(start, listener) -> None:
    error = InvalidParameter("There is no such preset.")

    def work(backends, token, report) -> None:
        raise error

    worker, job = start(FakeBackend()), Job(work)
    worker.submit(job)
    assert listener.next(Failed, job).error is error


def test_every_request_ends_in_exactly_one_event(start, listener) -> None:
    worker = start(FakeBackend(body=lambda request, token, progress: time.sleep(0.0005)))
    requests = [request() for _ in range(200)]
    for number, wanted in enumerate(requests):
        worker.submit(wanted)
        if number % 7 == 0:
            worker.cancel()
        if number % 5 == 0:
            time.sleep(0.001)
    worker.close()
    ended = [event.request.id for event in listener.events.queue]
    assert sorted(ended) == [wanted.id for wanted in requests]
    started = [begun.id for begun in listener.begun.queue]
    assert all(before < after for before, after in itertools.pairwise(started))


def test_a_backend_that_does_not_close_leaves_no_other_open() -> None:
    class Stuck(FakeBackend):
        def close(self) -> None:
            super().close()
            raise RuntimeError("stuck")

    backends = [FakeBackend(), Stuck(), FakeBackend()]
    with pytest.raises(RuntimeError, match="stuck"):
        close_all(backends)
    assert [each.closed for each in backends] == [1, 1, 1]
