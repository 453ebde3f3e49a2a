"""Runs requests of library functions: the backends of the process, shared by its threads.

The CPU backend serves several threads at once; those of GPUs serve one after the other. A process
that was forked starts with backends of its own, because threads do not survive a fork.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled
from kernelscope.engine.backend import Availability, Backend, Fact, FactGroup, close_all
from kernelscope.engine.context import RunContext, RunLog
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs, default_path
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import usable
from kernelscope.engine.steps import execute_recipe
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import Level

if TYPE_CHECKING:
    from kernelscope.backends.cuda import CudaBackend

_logger = logging.getLogger(__name__)

Cancel = Callable[[], bool]
"""Returns whether to stop; called often, on any thread, by one at a time."""

_WAIT_SECONDS = 0.05  # how often a thread that waits for a GPU asks whether to stop


class PolledToken(CancelToken):
    """A token that asks a function of the caller."""

    def __init__(self, stop: Cancel | None) -> None:
        super().__init__()
        self._stop = stop
        self._asking = threading.Lock()

    @property
    def cancelled(self) -> bool:
        if not self._is_set and self._stop is not None and self._asking.acquire(False):
            try:
                if self._stop():
                    self.cancel()
            finally:
                self._asking.release()
        return self._is_set

    def check(self) -> None:
        if self.cancelled:
            raise Cancelled


class OneByOne:
    """A backend that runs one request at a time, whichever threads ask."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._running = threading.Lock()
        self.id, self.name = backend.id, backend.name

    def availability(self) -> Availability:
        return self.backend.availability()

    def facts(self) -> Iterator[FactGroup]:
        return self.backend.facts()

    def load(self) -> tuple[Fact, ...]:
        return self.backend.load()

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return self.backend.levels(spec)

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        with self.turn(context.token):
            return self.backend.run(request, level, context)

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        with self._running:
            return self.backend.mean_squared_error(first, second)

    def close(self) -> None:
        self.backend.close()

    @contextmanager
    def turn(self, token: CancelToken) -> Iterator[None]:
        """Keep other threads from the backend while the block runs."""
        while not self._running.acquire(timeout=_WAIT_SECONDS):
            token.check()
        try:
            yield
        finally:
            self._running.release()


class LibrarySession:
    """The backends and the costs of this process, made on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backends: dict[str, Backend] | None = None
        self._cards: dict[int, OneByOne] = {}
        self._costs = Costs(default_path())

    def run(
        self,
        recipe: Recipe,
        source: Source,
        options: RunOptions,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Result:
        token = PolledToken(cancel)
        try:
            results = execute_recipe(
                recipe,
                source,
                self.backends(),
                token,
                progress or no_progress,
                self._costs,
                options=options,
            )
            for result in results:
                for notice in result.notices:
                    _logger.info("%s", notice)
        except BaseException:
            token.cancel()  # Ctrl+C, or an error of a callback: other threads would go on
            raise
        return result

    def filtered(
        self,
        request: Request,
        planes: NDArray[Any],
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> NDArray[Any]:
        """Return the planes that the processor makes of others of any type.

        `request`: a step for a picture of their shape, whose samples do not count.
        """
        token = PolledToken(cancel)
        levels = request.step.filter.levels(Device.CPU)
        level = next((each for each in levels if each.id == request.options.level), levels[-1])
        context = RunContext(RunLog(), token, progress or no_progress)
        try:
            return self.cpu().filtered(request, planes, level, context)
        except BaseException:
            token.cancel()
            raise

    def backends(self) -> dict[str, Backend]:
        from kernelscope.backends import create_backends

        with self._lock:
            if self._backends is None:
                self._backends = {
                    key: backend if key == Device.CPU else OneByOne(backend)
                    for key, backend in create_backends(emulated=True).items()
                }
            return self._backends

    def cpu(self) -> CpuBackend:
        cpu = self.backends()[Device.CPU.value]
        assert isinstance(cpu, CpuBackend)
        return cpu

    @contextmanager
    def card(self, ordinal: int, token: CancelToken | None = None) -> Iterator[CudaBackend]:
        """Provide a GPU by its number, to the calling thread alone."""
        from kernelscope.backends.cuda import CudaBackend

        gpu = self.backends()[Device.GPU.value]
        assert isinstance(gpu, OneByOne)
        assert isinstance(gpu.backend, CudaBackend)
        if gpu.backend.ordinals[0] != ordinal:
            with self._lock:
                gpu = self._cards.setdefault(ordinal, OneByOne(CudaBackend((ordinal,))))
        with gpu.turn(token or CancelToken()):
            assert isinstance(gpu.backend, CudaBackend)
            usable(Device.GPU, {Device.GPU.value: gpu.backend})
            yield gpu.backend

    def close(self) -> None:
        """Release threads and device memory; the next run makes new ones."""
        with self._lock:
            backends, self._backends = self._backends or {}, None
            cards, self._cards = self._cards, {}
        close_all([*backends.values(), *cards.values()])


_session = LibrarySession()


def session() -> LibrarySession:
    return _session


def _start_again() -> None:
    """Forget the session of the parent process, whose threads are not in this one."""
    global _session
    _session = LibrarySession()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
