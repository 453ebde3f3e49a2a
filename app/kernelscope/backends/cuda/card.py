"""One GPU and the long-lived thread that owns its context."""

from __future__ import annotations

import atexit
import functools
import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

from kernelscope.backends.cuda import info, memory
from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.cuda.memory import MOST_BYTES, SHARE, Allocation, Pool, Resident, Staging
from kernelscope.backends.cuda.page_locked import PORTABLE, ResultMemory
from kernelscope.backends.cuda.thread import OwnerThread
from kernelscope.base.errors import DeviceUnavailable

_logger = logging.getLogger(__name__)


def _resident_blocks(code: bytes, kernel: str, threads: int, shared_bytes: int) -> int | None:
    """Return the most blocks of a kernel on a multiprocessor of the current context's device.

    None where the driver has no libraries (before CUDA 12) or refuses. PyCUDA keeps the handles of
    its functions to itself, so the driver loads the cubin once more, as a library, and unloads it
    afterwards. `threads` and dynamic shared bytes are of a block.
    """
    try:
        return _ask(code, kernel, threads, shared_bytes)
    except Exception as error:  # the bindings raise several kinds for a missing library
        _logger.debug("the driver does not know the occupancy of %s: %s", kernel, error)
        return None


def _ask(code: bytes, kernel: str, threads: int, shared_bytes: int) -> int:
    from cuda.bindings import driver

    library = _value(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
    try:
        handle = _value(driver.cuLibraryGetKernel(library, kernel.encode()))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if shared_bytes > 48 * 1024:
            device = _value(driver.cuCtxGetDevice())
            _value(driver.cuKernelSetAttribute(most, shared_bytes, handle, device))
        function = driver.CUfunction(int(handle))
        return int(
            _value(
                driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared_bytes)
            )
        )
    finally:
        driver.cuLibraryUnload(library)


def _value(answer: tuple[Any, ...]) -> Any:
    """Return the value of a call of the driver, or raise its status."""
    status, *values = answer
    if int(status) != 0:
        raise RuntimeError(status.name)
    return values[0] if values else None


_Value = TypeVar("_Value")

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no implicit order with the legacy stream

MOST_KEPT = 192
"""Plans, the steps of requests, and launches that a device keeps: about four of them a setting."""

LIKELY = 64
"""An allocation below this fraction of the last known free memory does not query the driver."""

COPY_PROBE_BYTES = 256 << 20
"""Size of the copy that measures bandwidth: several times the largest L2."""


class Lane:
    """A thread with its own staging buffers, for copies that overlap the kernels of a device.

    `enter` is called on the thread to begin with, and returns the buffers; `leave` at its end.
    """

    def __init__(self, name: str, enter: Callable[[], Staging], leave: Callable[[], None]) -> None:
        self._thread = OwnerThread(name)
        self._leave = leave
        try:
            self._staging = self._thread.call(enter)
        except BaseException:
            self._thread.end()
            raise

    def submit(self, copy: Callable[..., None], *arguments: Any) -> Future[tuple[float, float]]:
        """Let ``copy(staging, *arguments)`` run on the thread.

        The future holds its start, by `time.perf_counter`, and its duration in seconds.
        """
        return self._thread.submit(self._timed, copy, *arguments)

    def _timed(self, copy: Callable[..., None], *arguments: Any) -> tuple[float, float]:
        start = time.perf_counter()
        copy(self._staging, *arguments)
        return start, time.perf_counter() - start

    def cut_uploads(self, piece_bytes: int) -> None:
        """Have uploads cut into pieces of this size, while no copy is under way."""
        self._staging.piece_bytes = piece_bytes

    def close(self, free: bool) -> None:
        """End the thread; the staging buffers are given back unless the context is lost."""
        if free:
            self._thread.call(self._staging.free)
        self._thread.call(self._leave)
        self._thread.end()


class GpuContext:
    """A GPU's primary context, pushed once on its own thread.

    All methods but `call`, `submit` and `close` run on that thread. Everything that was made in the
    context is freed before it is popped, and it is popped before the thread ends, also when nobody
    closes the device; otherwise the process aborts on exit.

    `batches` are the launches timed together, of each kernel measured so far, and `paces` the units
    of a piece of each kernel that was launched before (see `Pacer`).
    """

    def __init__(self, ordinal: int) -> None:
        self._begin(ordinal)
        self._thread = OwnerThread(f"kernelscope-gpu-{ordinal}")
        self._context: Any = None
        try:
            self._thread.call(self._open)
        except BaseException:
            self.close()
            raise
        atexit.register(self.close)

    def _begin(self, ordinal: int) -> None:
        """Begin with nothing; a card that is made up for tests does as well."""
        self.ordinal = ordinal
        self.lost = False
        self.resident = Resident()
        self.batches: dict[Hashable, int] = {}
        self.paces: dict[Hashable, float] = {}
        self._copiers: list[OwnerThread] = []
        self._lanes: list[Lane] = []
        self._maker: OwnerThread | None = None
        self._modules: dict[bytes, Any] = {}
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._events: list[tuple[Any, Any]] = []
        self._attributes: dict[str, int] = {}
        self._resident_blocks: dict[tuple[bytes, str, int, int], int | None] = {}
        self._copy_rate: float | None = None
        self._last_free = 0

    def call(self, function: Callable[..., _Value], *arguments: Any) -> _Value:
        """Run `function` on the device's thread and return its result.

        After a CUDA error, `lost` says whether the device is. On that thread it runs at once.
        """
        if self._thread.is_current:
            return function(*arguments)
        value: _Value = self._thread.call(self._watch, function, *arguments)
        return value

    def submit(self, function: Callable[..., _Value], *arguments: Any) -> Future[_Value]:
        """Let `function` run as by `call` without waiting; on that thread it runs at once."""
        if self._thread.is_current:
            return self._thread.run(function, *arguments)
        return self._thread.submit(self._watch, function, *arguments)

    def close(self) -> None:
        """Free everything and end the thread."""
        atexit.unregister(self.close)
        try:
            self._thread.call(self._close)
        finally:
            self._thread.end()

    def _open(self) -> None:
        import pycuda.driver as cuda

        self.cuda = cuda
        self.staging: Any = None  # a Staging, once there is a context
        self.results: Any = None  # a ResultMemory, likewise
        self.pool: Any = None  # a Pool, likewise
        self._copiers = [OwnerThread(f"kernelscope-copy-{n}") for n in range(memory.COPIERS)]
        try:
            cuda.init()
            self.handle = cuda.Device(self.ordinal)
            context = self.handle.retain_primary_context()
            context.push()
            self._context = context
            self.stream = cuda.Stream(NON_BLOCKING)
            self.staging = Staging(self.stream, self._copiers)
            self.results = ResultMemory(self._lock, self._unlock)
            most = min(MOST_BYTES, int(self.handle.total_memory() * SHARE))
            self.pool = Pool(cuda.mem_alloc, most)
        except cuda.Error as error:
            raise DeviceUnavailable(
                f"GPU {self.ordinal} could not be opened: {error}.",
                "Check it with nvidia-smi; another program may hold it or its memory.",
            ) from error
        major, minor = self.handle.compute_capability()
        self.architecture = f"sm_{major}{minor}"

    def _lock(self, address: int, size: int) -> bool:
        """Register host memory with the driver, which PyCUDA does for whole arrays only."""
        try:
            from cuda.bindings import driver

            (status,) = driver.cuMemHostRegister(address, size, PORTABLE)
        except Exception:  # the bindings raise several kinds for a missing library
            return False
        return int(status) == 0

    def _unlock(self, address: int) -> None:
        from cuda.bindings import driver

        driver.cuMemHostUnregister(address)

    def _close(self) -> None:
        for copier in self._copiers:
            copier.end()
        if self._context is None:
            return
        for lane in self._lanes:
            lane.close(free=not self.lost)
        if self.results is not None:
            self.results.close(lost=self.lost)  # first: the maker stops at its next block then
        if self._maker is not None:
            self._maker.call(self._context.pop)
            self._maker.end()
        if not self.lost:
            if self.staging is not None:
                self.staging.free()
            self.resident.clear()
            if self.pool is not None:
                self.pool.release()
            self._drop()
        self._context.pop()
        self._context.detach()
        self._context = None
        if self.lost:
            # PyCUDA frees nothing in a context that it knows to be gone, and says nothing.
            self._drop()

    def _drop(self) -> None:
        self.resident.forget()
        if self.pool is not None:
            self.pool.forget()
        self.staging = self.stream = None
        self._lanes.clear()
        self._modules.clear()
        self._kept.clear()
        self._events.clear()
        self.batches.clear()
        self.paces.clear()

    def _watch(self, function: Callable[..., _Value], *arguments: Any) -> _Value:
        try:
            return function(*arguments)
        except BaseException as error:
            if isinstance(error, self.cuda.Error):
                self.look_for_loss()
            if not self.lost:
                # Events and memory have to go on this thread; the error takes its frames elsewhere.
                traceback.clear_frames(error.__traceback__)
            raise

    def open_lanes(self, cards: int) -> None:
        """Start the copy threads, unless they are running, for a run on this many cards."""
        for name in ("up", "down")[len(self._lanes) :]:
            self._lanes.append(self._lane(f"kernelscope-gpu-{self.ordinal}-{name}"))
        self.uploads.cut_uploads(memory.upload_piece_bytes(cards))

    @property
    def uploads(self) -> Lane:
        return self._lanes[0]

    @property
    def downloads(self) -> Lane:
        return self._lanes[1]

    def _lane(self, name: str) -> Lane:
        """Return a new lane, on whose thread the context is current too."""

        def enter() -> Staging:
            self._context.push()
            try:
                return Staging(self.cuda.Stream(NON_BLOCKING), self._copiers)
            except BaseException:
                self._context.pop()
                raise

        return Lane(name, enter, self._context.pop)

    def grow_results(self) -> None:
        """Let memory for further results be made, on a thread of its own: nobody waits for it."""
        if self._maker is None:
            self._maker = OwnerThread(f"kernelscope-gpu-{self.ordinal}-pages")
            self._maker.submit(self._context.push)
        self._maker.submit(self.results.grow)

    def wait(self, event: Any) -> None:
        """Wait for an event or a stream, and notice if the context is lost."""
        try:
            event.synchronize()
        except self.cuda.Error:
            self.look_for_loss()
            raise

    def look_for_loss(self) -> None:
        """Find out, after an error, whether the context is still good for anything."""
        try:
            self.cuda.Context.synchronize()
        except self.cuda.Error:
            self.lost = True

    def free(self, *things: Any) -> None:
        """Free allocations and textures, unless they are lost with the context."""
        if not self.lost:
            for thing in things:
                thing.free()

    def attribute(self, name: str) -> int:
        """Return an attribute of the device; it is asked for once: a clock rate takes 0.6 ms."""
        if name not in self._attributes:
            attribute = getattr(self.cuda.device_attribute, name)
            self._attributes[name] = int(self.handle.get_attribute(attribute))
        return self._attributes[name]

    @functools.cached_property
    def peak_rate(self) -> float | None:
        """The most operations per second in single precision, see `info.peak_rate`."""
        return info.peak_rate(self.cuda, self.ordinal)

    def take_events(self) -> tuple[Any, Any]:
        """Return two events that nobody uses, to time the work between them."""
        return self._events.pop() if self._events else (self.cuda.Event(), self.cuda.Event())

    def give_events(self, pair: tuple[Any, Any]) -> None:
        """Keep two events for the next launch: nobody waits for them, or reads them, any more."""
        self._events.append(pair)

    def kept(self, key: Hashable) -> Any:
        """Return the thing that `keep` got under a key, or None."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def keep(self, key: Hashable, thing: Any) -> None:
        """Keep something for later runs, as one of the last `MOST_KEPT`; nothing under None."""
        if key is None:
            return
        self._kept[key] = thing
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def has_loaded(self, cubin: Cubin) -> bool:
        return cubin.code in self._modules

    def function(self, cubin: Cubin, name: str) -> tuple[Any, Any]:
        """Return (module, function) of a cubin, loaded once."""
        module = self._modules.get(cubin.code)
        if module is None:
            module = self._modules[cubin.code] = self.cuda.module_from_buffer(cubin.code)
        return module, module.get_function(name)

    def resident_blocks(
        self, cubin: Cubin, kernel: str, threads: int, shared_bytes: int
    ) -> int | None:
        """Return the most blocks of a kernel that a multiprocessor runs at a time, if known."""
        key = cubin.code, kernel, threads, shared_bytes
        if key not in self._resident_blocks:
            self._resident_blocks[key] = _resident_blocks(*key)
        return self._resident_blocks[key]

    def free_memory(self) -> int:
        """Return the bytes that are free on the card now, or kept for the next allocation."""
        free, _ = self.cuda.mem_get_info()
        self._last_free = int(free)
        return self._last_free + int(self.pool.size)

    @property
    def likely_free(self) -> int:
        """Estimate of the free bytes: a small part of those that were free when last asked.

        Asking takes the driver longer than small pictures take the card.
        """
        return self._last_free // LIKELY

    def allocate(self, size: int, keep: Any = None) -> Allocation:
        """Allocate device memory, letting go of resident images other than `keep` if needed.

        Raises `pycuda.driver.MemoryError` if it does not fit even then.
        """
        pool: Pool = self.pool
        return self.make_room(lambda: pool.take(max(size, 1)), keep)

    def make_room(self, make: Callable[[], _Value], keep: Any = None) -> _Value:
        """Return the object that `make` allocates; see `allocate`."""
        while True:
            try:
                return make()
            except self.cuda.MemoryError:
                if not self.pool.release() and not self.resident.evict(keep):
                    raise

    @property
    def known_copy_rate(self) -> float | None:
        """The result of `copy_rate` if it has been measured."""
        return self._copy_rate

    def copy_rate(self) -> float | None:
        """Return the measured bytes per second, read + written, of a copy on the card.

        None while there is too little free memory to measure it.
        """
        if self._copy_rate is None and self.free_memory() > 3 * COPY_PROBE_BYTES:
            self._copy_rate = self._measure_copy_rate()
        return self._copy_rate

    def _measure_copy_rate(self) -> float:
        cuda, size = self.cuda, COPY_PROBE_BYTES
        self.pool.release()
        source = cuda.mem_alloc(size)
        try:
            target = cuda.mem_alloc(size)
        except cuda.MemoryError:
            source.free()
            raise
        try:
            # The sanitizer reports copies of memory that was never written.
            cuda.memset_d8_async(int(source), 0, size, self.stream)
            times = []
            for _ in range(7):
                start, end = cuda.Event(), cuda.Event()
                start.record(self.stream)
                cuda.memcpy_dtod_async(int(target), int(source), size, self.stream)
                end.record(self.stream)
                end.synchronize()
                times.append(end.time_since(start) * 1e-3)
            return float(2 * size / sorted(times)[len(times) // 2])
        finally:
            source.free()
            target.free()
