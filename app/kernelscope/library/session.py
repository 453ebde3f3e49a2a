"""Runs recipes and requests on arrays: the backends of the process, shared by its threads.

The CPU backend serves several threads at once; those of GPUs serve one after the other. A process
that was forked starts with backends of its own, because threads do not survive a fork. A recipe
runs on a GPU where its array lies there, else on the host.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled, InvalidParameter
from kernelscope.engine.backend import Backend, close_all
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
from kernelscope.images.levels import given_levels, own_levels_of, with_levels
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.library import arrays
from kernelscope.library.arguments import check_common
from kernelscope.library.arrays import device_array
from kernelscope.library.containers import unwrapped
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

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        with self.turn(context.token):
            return self.backend.run(request, level, context)

    def mean_squared_error(self, first: Image, second: Image) -> float | None:
        with self._running:
            return self.backend.mean_squared_error(first, second)

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
                    key: backend if key == Device.CPU else cast(Backend, OneByOne(backend))
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
        close_all([*backends.values(), *cast(list[Backend], list(cards.values()))])


_session = LibrarySession()


def session() -> LibrarySession:
    return _session


def _start_again() -> None:
    """Forget the session of the parent process, whose threads are not in this one."""
    global _session
    _session = LibrarySession()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)


def run_steps(
    recipe: Recipe,
    listed: Sequence[tuple[str, ArrayLike]],
    given: Mapping[str, Any],
    *,
    as_volumes: bool,
) -> tuple[Any, ...]:
    """Return the results of a recipe for arrays: on a GPU, of the first one that lies there.

    `listed`: the arrays with their names for messages: one picture, or the components of a scan.
    `given`: the arguments that every function has.
    """
    there = [array for name, each in listed if (array := device_array(each, name)) is not None]
    if not there:
        return run_on_host(recipe, listed, given, as_volumes=as_volumes)
    from kernelscope.library import on_device

    if not as_volumes and on_device.runs_there(recipe, there[0], given):
        result = on_device.run_there(recipe, listed[0][0], there[0], given)
        if result is not None:
            return (result,)
    made = run_on_host(recipe, listed, given, as_volumes=as_volumes)
    return on_device.stored(made, there[0])


def filtered_volumes(
    recipe: Recipe, listed: Sequence[tuple[str, ArrayLike]], given: Mapping[str, Any]
) -> Any:
    """Return the result of a recipe for a volume; a tuple of results if it has components."""
    check_common(given)
    plain, wraps = zip(*(unwrapped(each, name, given["nan"]) for name, each in listed), strict=True)
    named = [(name, each) for (name, _), each in zip(listed, plain, strict=True)]
    made = run_steps(recipe, named, given, as_volumes=True)
    # Beside a volume on a GPU all results lie there.
    wrapped = tuple(
        wrap(each) if isinstance(each, np.ndarray) else each
        for wrap, each in zip(wraps, made, strict=True)
    )
    return wrapped if len(wrapped) > 1 else wrapped[0]


def run_on_host(
    recipe: Recipe,
    listed: Sequence[tuple[str, ArrayLike]],
    given: Mapping[str, Any],
    *,
    as_volumes: bool,
) -> tuple[NDArray[Any], ...]:
    options = RunOptions(Device(given["device"]), given["level"])
    source: Source
    if as_volumes:
        source = Scan(
            tuple(_with_levels(each, given) for each in arrays.scan(listed, given["nan"]).volumes)
        )
    else:
        ((name, array),) = listed
        array = arrays.host_array(array, name)  # once: it may lie on a card
        slice_of = arrays.as_slice(array)
        if slice_of is not None:
            made = run_on_host(recipe, [(name, slice_of)], given, as_volumes=True)[0]
            return (made.reshape(array.shape),)
        source = _with_levels(arrays.picture(array, name, given["nan"]), given)
    result = session().run(recipe, source, options, given["progress"], given["cancel"])
    if isinstance(result.output, Image):
        channels_last = np.shape(listed[0][1])[2:] == (1,)
        return (arrays.of_picture(result.output, channels_last),)
    return arrays.of_scan(result.scan)


_Any = TypeVar("_Any", bound=Image | Volume)


def _with_levels(source: _Any, given: Mapping[str, Any]) -> _Any:
    """Return a source with the levels that were given.

    Raises
    ------
    InvalidParameter
        If its type has its own.
    """
    levels = given_levels(given.get("white"), given.get("black"))
    if levels is not None and (own := own_levels_of(source)):
        raise InvalidParameter(own, "Leave it out, or give floats.")
    return with_levels(source, levels)


def components_of(name: str, array: ArrayLike, components: Any) -> list[tuple[str, ArrayLike]]:
    """Return a volume and its further components with their names."""
    if isinstance(components, np.ndarray) and components.ndim == 3:
        raise InvalidParameter("components: this is one volume.", "Give a list: [t2, pd].")
    if not isinstance(components, Iterable):
        kind = type(components).__name__
        raise InvalidParameter(f"components: {kind} is no list.", "Give a list: [t2, pd].")
    return [(name, array), *((f"components[{i}]", each) for i, each in enumerate(components))]
