"""A card made up for tests: its memory lies in arrays, its kernels are functions of Python.

It does nothing before somebody waits for it: copies and launches are queued on their stream, and
done by the thread that waits for the stream, or for an event behind them. Who forgets to wait finds
the earlier contents; the target of a download is poisoned until then.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cuda import CudaBackend, memory
from kernelscope.backends.cuda.card import GpuContext, Lane
from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.cuda.memory import Pool, ReadyMemory, Staging
from kernelscope.backends.cuda.page_locked import ResultMemory
from kernelscope.backends.cuda.thread import OwnerThread
from kernelscope.engine.backend import Availability

Kernel = Callable[..., float]
"""Called with the arguments of a launch; returns how many seconds the launch took."""

CACHE_BYTES = 1 << 10

CONSTANT_BYTES = 1 << 10
"""Size of each constant of a module."""

ATTRIBUTES = {
    "CLOCK_RATE": 1_980_000,
    "L2_CACHE_SIZE": CACHE_BYTES,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MULTIPROCESSOR_COUNT": 2,
}

UNTOUCHED = 0xAB
"""Content of new memory: a pattern that cannot be mistaken for zeros."""


class Error(Exception):
    """Stands in for pycuda.driver.Error."""


class CardFull(Error):
    """Stands in for pycuda.driver.MemoryError."""


class FakeStream:
    """Stands in for a stream: work that is queued, in order, until someone waits for it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._queue: deque[tuple[Callable[[], None], tuple[Allocation, ...]]] = deque()
        self._begun = self._queued = 0
        self._lock = threading.RLock()

    def add(self, work: Callable[[], None], *addresses: int) -> int:
        """Queue something that uses these addresses; return its number."""
        uses = tuple(self._driver.at(address) for address in addresses)
        with self._lock:
            self._queue.append((work, uses))
            self._queued += 1
            return self._queued

    def synchronize(self) -> None:
        self.reach(self._queued)

    def reach(self, number: int) -> None:
        """Do everything up to the action with this number; after one that fails, nothing more."""
        with self._lock:
            while self._begun < number:
                self._begun += 1
                try:
                    self._queue.popleft()[0]()
                except BaseException:
                    self._queue.clear()
                    self._begun = self._queued
                    raise

    def waits_with(self, allocation: Allocation) -> bool:
        """Return whether anything that is still queued uses an allocation."""
        with self._lock:
            return any(allocation in uses for _, uses in self._queue)


class Allocation:
    """Stands in for a DeviceAllocation; notices when it is freed twice or while it is used."""

    def __init__(self, driver: Driver, address: int, size: int) -> None:
        self._driver, self._address = driver, address
        self.data = np.full(size, UNTOUCHED, np.uint8)

    def __int__(self) -> int:
        return self._address

    def assert_unused(self) -> None:
        assert not self._driver.users_of(self), "freed while in use"

    def free(self) -> None:
        self.assert_unused()
        assert self._driver.live.pop(self._address, None) is self, "freed twice"


class CheckedPool(Pool):
    """Notices when memory is given back while it is used; what is kept loses its content."""

    def put(self, memory: Any, size: int) -> None:
        memory.assert_unused()
        memory.data.fill(UNTOUCHED)
        super().put(memory, size)


class Event:
    """Stands in for an event; the kernels decide its time."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._at: float | None = None
        self._stream: FakeStream | None = None
        self._number = 0

    def record(self, stream: FakeStream) -> None:
        self._at = None
        self._stream, self._number = stream, stream.add(self._arrive)

    def _arrive(self) -> None:
        self._at = self._driver.clock

    def synchronize(self) -> None:
        if self._stream is not None:
            self._stream.reach(self._number)

    def query(self) -> bool:
        return self._driver.late or self._at is not None

    def time_since(self, other: Event) -> float:
        assert self._at is not None, "nobody waited for the end"
        assert other._at is not None, "nobody waited for the beginning"
        return (self._at - other._at) * 1e3


class PageLocked(np.ndarray[Any, Any]):
    """Stands in for page-locked memory."""

    freed = False

    def free(self) -> None:
        assert not self.freed, "freed twice"
        self.freed = True


class Stacks(threading.local):
    """The contexts that are pushed, thread by thread."""

    def __init__(self) -> None:
        self.pushed: list[Context] = []


class Context:
    """Stands in for a primary context, which every thread pushes for itself."""

    def __init__(self, stacks: Stacks, attached: list[Context]) -> None:
        self._stacks, self._attached = stacks, attached
        attached.append(self)

    def push(self) -> None:
        self._stacks.pushed.append(self)

    def pop(self) -> None:
        assert self._stacks.pushed.pop() is self

    def detach(self) -> None:
        self._attached.remove(self)

    @staticmethod
    def synchronize() -> None:
        pass


class Function:
    """Stands in for a kernel of a loaded module."""

    num_regs = 32
    shared_size_bytes = 0

    def __init__(self, driver: Driver, name: str, kernel: Kernel) -> None:
        self._driver, self._name, self._kernel = driver, name, kernel
        self._signature = ""

    def prepare(self, signature: str) -> None:
        self._signature = signature

    def get_attribute(self, attribute: Any) -> int:
        return 1024 if attribute == "threads" else self._driver.dynamic.get(self._name, 48 << 10)

    def set_attribute(self, attribute: Any, value: int) -> None:
        assert attribute == "dynamic"
        self._driver.dynamic[self._name] = value

    def prepared_async_call(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        stream: FakeStream,
        *arguments: int,
        shared_size: int = 0,
    ) -> None:
        assert len(arguments) == len(self._signature)
        if shared_size > self.get_attribute("dynamic"):
            raise Error("cuLaunchKernel failed: invalid argument")
        self._driver.calls.append(self._name)
        pointers = [
            argument
            for kind, argument in zip(self._signature, arguments, strict=True)
            if kind == "P"
        ]
        stream.add(lambda: self._launch(pointers, arguments), *pointers)

    def _launch(self, pointers: Sequence[int], arguments: Sequence[int]) -> None:
        with contextlib.ExitStack() as uses:
            for number, address in enumerate(pointers):
                uses.enter_context(self._driver.using(address, writing=number > 0))
            self._driver.clock += self._kernel(*arguments)


class Driver:
    """Stands in for pycuda.driver.

    Parameters
    ----------
    memory : int
        Bytes of the card.
    refused : collection of int
        Allocations, counted from 0, for which there is no memory whatever is free.
    copy_seconds : float
        How long a copy takes by the clock on the wall; threads may do other things meanwhile.

    Attributes
    ----------
    live : dict of int to Allocation
        The allocations, by address.
    peak : int
        Most bytes that were ever allocated at a time.
    calls : list of str
        Launches, copies and fills, in the order of their beginning.
    modules : dict of bytes to dict of str to Kernel
        The kernels of each cubin.
    """

    Error, MemoryError = Error, CardFull
    device_attribute = SimpleNamespace(**{name: name for name in ATTRIBUTES})
    function_attribute = SimpleNamespace(
        MAX_THREADS_PER_BLOCK="threads", MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic"
    )
    event_flags = SimpleNamespace(DISABLE_TIMING=2)
    host_alloc_flags = SimpleNamespace(DEVICEMAP=2)
    Context = Context

    def __init__(
        self, memory: int, refused: Collection[int] = (), copy_seconds: float = 0.0
    ) -> None:
        self.memory, self.refused, self.copy_seconds = memory, refused, copy_seconds
        self.live: dict[int, Allocation] = {}
        self.constants: dict[int, Allocation] = {}
        self.mapped: dict[int, Allocation] = {}
        self.allocations = self.peak = 0
        self.calls: list[str] = []
        self.dynamic: dict[str, int] = {}  # bytes of shared memory that kernels may ask for
        self.modules: dict[bytes, dict[str, Kernel]] = {
            b"hold": {"hold": lambda cycles: 0.0},
            b"haar": {"haar": lambda *arguments: 0.0, "haar_digit": self._haar_digit},
            b"components": {"put": self._put, "take": self._take, "peak": self._peak},
        }
        self.clock = 0.0
        self.late = False
        self._next = 1 << 12
        self.attached: list[Context] = []
        self.page_locked: list[PageLocked] = []
        self._stacks = Stacks()
        self._uses: list[tuple[Allocation, bool]] = []
        self._lock = threading.Lock()
        self._streams: list[FakeStream] = []

    @property
    def used(self) -> int:
        return sum(allocation.data.size for allocation in self.live.values())

    def mem_get_info(self) -> tuple[int, int]:
        return self.memory - self.used, self.memory

    def mem_alloc(self, size: int) -> Allocation:
        with self._lock:
            number, self.allocations = self.allocations, self.allocations + 1
            if number in self.refused or self.used + size > self.memory:
                raise CardFull
            allocation = self.live[self._next] = Allocation(self, self._next, size)
            self._next += size + (1 << 12)
            self.peak = max(self.peak, self.used)
            return allocation

    def memcpy_htod_async(self, target: int, source: NDArray[Any], stream: FakeStream) -> None:
        self.calls.append("upload")
        # The driver reads ordinary memory before it returns, page-locked memory when it is time.
        data = source if _is_page_locked(source) else source.copy()

        def copy() -> None:
            with self.using(target, writing=True):
                time.sleep(self.copy_seconds)
                self.bytes_at(target, data.nbytes)[:] = data.reshape(-1).view(np.uint8)

        stream.add(copy, target)

    def memcpy_dtoh_async(self, target: NDArray[Any], source: int, stream: FakeStream) -> None:
        self.calls.append("download")
        target.reshape(-1).view(np.uint8)[:] = UNTOUCHED

        def copy() -> None:
            with self.using(source, writing=False):
                time.sleep(self.copy_seconds)
                target.reshape(-1).view(np.uint8)[:] = self.bytes_at(source, target.nbytes)

        stream.add(copy, source)

    def memset_d8_async(self, target: int, value: int, size: int, stream: FakeStream) -> None:
        self.calls.append("memset")
        stream.add(lambda: self.bytes_at(target, size).fill(value), target)

    @contextmanager
    def using(self, address: int, *, writing: bool) -> Iterator[None]:
        """Hold the allocation at an address: it must not be written while others use it."""
        with self._lock:
            use = self.at(address), writing
            for other, other_writes in self._uses:
                assert other is not use[0] or not (writing or other_writes), "used by two at once"
            self._uses.append(use)
        try:
            yield
        finally:
            with self._lock:
                self._uses.remove(use)

    def users_of(self, allocation: Allocation) -> int:
        with self._lock:
            users = sum(other is allocation for other, _ in self._uses)
        return users + sum(stream.waits_with(allocation) for stream in self._streams)

    def Event(self, flags: int = 0) -> Event:  # noqa: N802 (PyCUDA's name)
        return Event(self)

    def init(self) -> None:
        pass

    def Device(self, ordinal: int) -> Any:  # noqa: N802
        return SimpleNamespace(
            name=lambda: f"Card {ordinal}",
            retain_primary_context=lambda: Context(self._stacks, self.attached),
            compute_capability=lambda: (9, 0),
            pci_bus_id=lambda: f"bus {ordinal}",
            get_attribute=ATTRIBUTES.__getitem__,
            total_memory=lambda: self.memory,
        )

    def Stream(self, flags: int) -> Any:  # noqa: N802
        assert self._stacks.pushed, "no context"
        return self.new_stream()

    def new_stream(self) -> FakeStream:
        self._streams.append(FakeStream(self))
        return self._streams[-1]

    def pagelocked_empty(self, shape: Any, dtype: Any, mem_flags: int = 0) -> Any:
        if mem_flags == self.host_alloc_flags.DEVICEMAP:
            return self._mapped(shape)
        assert self._stacks.pushed, "no context"
        self.page_locked.append(PageLocked(shape, dtype))
        self.page_locked[-1].fill(UNTOUCHED)
        return self.page_locked[-1].view(np.ndarray)

    def _mapped(self, size: int) -> Any:
        """Return host memory that kernels reach, with its address in place of its bytes."""
        with self._lock:
            address = self._next
            self.mapped[address] = Allocation(self, address, size)
            self._next += size + (1 << 12)
        return SimpleNamespace(base=SimpleNamespace(get_device_pointer=lambda: address))

    def memcpy_dtod_async(self, target: int, source: int, size: int, stream: FakeStream) -> None:
        self.calls.append("copy")

        def copy() -> None:
            with self.using(target, writing=True), self.using(source, writing=False):
                self.bytes_at(target, size)[:] = self.bytes_at(source, size)

        stream.add(copy, target, source)

    def module_from_buffer(self, code: bytes) -> Any:
        kernels = self.modules[code]
        constants: dict[str, Allocation] = {}

        def get_global(name: str) -> tuple[Allocation, int]:
            with self._lock:
                if name not in constants:
                    constants[name] = Allocation(self, self._next, CONSTANT_BYTES)
                    self.constants[self._next] = constants[name]
                    self._next += CONSTANT_BYTES
                return constants[name], CONSTANT_BYTES

        return SimpleNamespace(
            get_function=lambda name: Function(self, name, kernels[name]), get_global=get_global
        )

    def _put(self, part: int, whole: int, count: int, components: int) -> float:
        values = self.bytes_at(part).view(np.float32)[:count]
        self.bytes_at(whole).view(np.float32)[::components][:count] = values
        return 0.0

    def _take(self, whole: int, part: int, count: int, components: int) -> float:
        values = self.bytes_at(whole).view(np.float32)[::components][:count]
        self.bytes_at(part).view(np.float32)[:count] = values
        return 0.0

    def _peak(self, whole: int, most: int, count: int, components: int) -> float:
        values = self.bytes_at(whole).view(np.float32)[::components][:count]
        self.bytes_at(most).view(np.float32)[0] = np.abs(values).max()
        return 0.0

    def _haar_digit(self, *arguments: float) -> float:
        found = self.bytes_at(int(arguments[4])).view(np.float32)
        found.reshape(-1, 4)[:] = 1, 3, 9, 9
        return 0.0

    def bytes_at(self, address: int, size: int | None = None) -> NDArray[np.uint8]:
        """Return `size` bytes from `address` on, or all of the allocation that lies there."""
        allocation = self.at(address)
        data = allocation.data[address - int(allocation) :]
        assert size is None or size <= data.size, "runs over the end"
        return data[:size]

    def at(self, address: int) -> Allocation:
        for start, allocation in (self.live | self.constants | self.mapped).items():
            if start <= address < start + allocation.data.size:
                return allocation
        raise AssertionError(f"nothing is allocated at {address}")

    def rows_at(self, address: int, dtype: Any, samples: int) -> NDArray[Any]:
        """Return the rows of `samples` that fit into the allocation at `address`."""
        row_bytes = np.dtype(dtype).itemsize * samples
        data = self.bytes_at(address)
        return data[: data.size // row_bytes * row_bytes].view(dtype).reshape(-1, samples)


def install(driver: Driver, patch: pytest.MonkeyPatch) -> None:
    """Let modules that import pycuda.driver find `driver`."""
    package: Any = ModuleType("pycuda")
    package.driver = driver
    patch.setitem(sys.modules, "pycuda", package)
    patch.setitem(sys.modules, "pycuda.driver", cast(Any, driver))
    patch.setattr("kernelscope.backends.cuda.card.Pool", CheckedPool)


def _is_page_locked(array: NDArray[Any]) -> bool:
    base: Any = array
    while base is not None and not isinstance(base, PageLocked):
        base = base.base
    return base is not None


class FakeStaging(Staging):
    """The real buffers and waits, over a made-up driver; nobody touches pages beforehand."""

    def __init__(self, driver: Driver, stream: FakeStream, copiers: Sequence[OwnerThread]) -> None:
        self._cuda, self._stream, self._copiers = driver, stream, copiers
        self._memory = np.empty((memory.CHUNKS, memory.CHUNK_BYTES), np.uint8).view(PageLocked)
        self._events = [driver.Event() for _ in range(memory.CHUNKS)]

    def give_pages(self, target: NDArray[Any]) -> ReadyMemory:
        return ReadyMemory([], [])

    def free(self) -> None:
        pass


class FakeCard(GpuContext):
    """The real `GpuContext`, with its threads and its freeing of memory, over a made-up driver.

    Attributes
    ----------
    opened : list of FakeCard
        All of them, for the tests' fixture to close.
    """

    opened: ClassVar[list[FakeCard]] = []

    def __init__(
        self,
        memory: int,
        refused: Collection[int] = (),
        *,
        ordinal: int = 0,
        copy_seconds: float = 0.0,
        most_locked: int = 1 << 30,
        most_kept: int = 1 << 30,
    ) -> None:
        self._begin(ordinal)
        self.architecture = "sm_90"
        self.cuda: Driver = Driver(memory, refused, copy_seconds)
        self.handle: Any = SimpleNamespace(get_attribute=ATTRIBUTES.__getitem__)
        self.stream: Any = self.cuda.new_stream()
        self._copiers = [OwnerThread(f"made-up-copy-{ordinal}")]
        self.staging = FakeStaging(self.cuda, self.stream, self._copiers)
        self.locked: dict[int, int] = {}
        self.results = ResultMemory(self._lock, self._unlock, most_locked)
        self.pool = CheckedPool(self.cuda.mem_alloc, most_kept)
        self._copy_rate = 1e12
        self._context: Any = SimpleNamespace(
            push=lambda: None, pop=lambda: None, detach=lambda: None
        )
        self._thread = OwnerThread(f"made-up-{ordinal}")
        self.opened.append(self)

    def _lock(self, address: int, size: int) -> bool:
        self.locked[address] = size
        return True

    def _unlock(self, address: int) -> None:
        del self.locked[address]

    def resident_blocks(
        self, cubin: Cubin, kernel: str, threads: int, shared_bytes: int
    ) -> int | None:
        most: int = ATTRIBUTES["MAX_THREADS_PER_MULTIPROCESSOR"]
        return most // threads

    def _lane(self, name: str) -> Lane:
        staging: Any = FakeStaging(self.cuda, self.cuda.new_stream(), self._copiers)
        return Lane(name, lambda: staging, lambda: None)


class FakeCubins:
    """Stands in for the cache of compiled kernels: the code of each is its filter's name."""

    title = "made up 1.0"

    def get(self, filter_id: str, *specialisation: Any) -> Cubin:
        return Cubin(filter_id.encode(), "")


def installed(monkeypatch: pytest.MonkeyPatch, *devices: str) -> Driver:
    """Return a driver that `CudaBackend` finds in place of the real one, with these devices."""
    driver = Driver(64 << 20)
    install(driver, monkeypatch)
    monkeypatch.setattr(CudaBackend, "_cache", FakeCubins())
    summary = " + ".join(devices)
    monkeypatch.setattr(CudaBackend, "_availability", Availability(True, summary, devices=devices))
    return driver
