"""A card made up for tests: its memory lies in arrays, its kernels are functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.backends.cuda.compiler import Cubin
from app.backends.cuda.device import Device
from app.backends.cuda.memory import Resident

Kernel = Callable[..., float]
"""Called with the arguments of a launch; returns how many seconds the launch took."""

CACHE_BYTES = 1 << 10

ATTRIBUTES = {
    "CLOCK_RATE": 1_980_000,
    "L2_CACHE_SIZE": CACHE_BYTES,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65_536,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233_472,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "WARP_SIZE": 32,
}

UNTOUCHED = 0xAB
"""What new memory is full of: nobody should take it for zeros."""


class Error(Exception):
    """Stands in for pycuda.driver.Error."""


class CardFull(Error):
    """Stands in for pycuda.driver.MemoryError."""


class Allocation:
    """Stands in for a DeviceAllocation, and notices when it is freed twice."""

    def __init__(self, driver: Driver, address: int, size: int) -> None:
        self._driver, self._address = driver, address
        self.data = np.full(size, UNTOUCHED, np.uint8)

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        assert self._driver.live.pop(self._address, None) is self, "freed twice"


class Event:
    """Stands in for an event; time is what the kernels say."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._at = float("nan")

    def record(self, stream: Any) -> None:
        self._at = self._driver.clock

    def synchronize(self) -> None:
        pass

    def time_since(self, other: Event) -> float:
        return (self._at - other._at) * 1e3


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
        return 1024

    def prepared_async_call(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        stream: Any,
        *arguments: int,
        shared_size: int = 0,
    ) -> None:
        assert len(arguments) == len(self._signature)
        self._driver.calls.append(self._name)
        self._driver.clock += self._kernel(*arguments)


class Driver:
    """Stands in for pycuda.driver.

    Parameters
    ----------
    memory : int
        Bytes of the card.
    refused : collection of int
        Allocations, counted from 0, for which there is no memory whatever is free.

    Attributes
    ----------
    live : dict of int to Allocation
        What is allocated, by address.
    peak : int
        Most bytes that were ever allocated at a time.
    calls : list of str
        Launches, copies and fills, in order.
    modules : dict of bytes to dict of str to Kernel
        The kernels of each cubin.
    """

    Error, MemoryError = Error, CardFull
    device_attribute = SimpleNamespace(**{name: name for name in ATTRIBUTES})
    function_attribute = SimpleNamespace(MAX_THREADS_PER_BLOCK="threads")

    def __init__(self, memory: int, refused: Collection[int] = ()) -> None:
        self.memory, self.refused = memory, refused
        self.live: dict[int, Allocation] = {}
        self.allocations = self.peak = 0
        self.calls: list[str] = []
        self.modules: dict[bytes, dict[str, Kernel]] = {b"hold": {"hold": lambda cycles: 0.0}}
        self.clock = 0.0
        self._next = 1 << 12

    @property
    def used(self) -> int:
        return sum(allocation.data.size for allocation in self.live.values())

    def mem_get_info(self) -> tuple[int, int]:
        return self.memory - self.used, self.memory

    def mem_alloc(self, size: int) -> Allocation:
        number, self.allocations = self.allocations, self.allocations + 1
        if number in self.refused or self.used + size > self.memory:
            raise CardFull
        allocation = self.live[self._next] = Allocation(self, self._next, size)
        self._next += size + (1 << 12)
        self.peak = max(self.peak, self.used)
        return allocation

    def memcpy_htod_async(self, target: int, source: NDArray[Any], stream: Any) -> None:
        self.calls.append("upload")
        self.bytes_at(target, source.nbytes)[:] = source.reshape(-1).view(np.uint8)

    def memcpy_dtoh_async(self, target: NDArray[Any], source: int, stream: Any) -> None:
        self.calls.append("download")
        target.reshape(-1).view(np.uint8)[:] = self.bytes_at(source, target.nbytes)

    def memset_d8_async(self, target: int, value: int, size: int, stream: Any) -> None:
        self.calls.append("memset")
        self.bytes_at(target, size)[:] = value

    def Event(self) -> Event:  # noqa: N802 (PyCUDA's name)
        return Event(self)

    def module_from_buffer(self, code: bytes) -> Any:
        kernels = self.modules[code]
        return SimpleNamespace(get_function=lambda name: Function(self, name, kernels[name]))

    def bytes_at(self, address: int, size: int | None = None) -> NDArray[np.uint8]:
        """Return `size` bytes from `address` on, or all of the allocation that lies there."""
        for start, allocation in self.live.items():
            if start <= address < start + allocation.data.size:
                data = allocation.data[address - start :]
                assert size is None or size <= data.size, "runs over the end"
                return data[:size]
        raise AssertionError(f"nothing is allocated at {address}")

    def rows_at(self, address: int, dtype: Any, samples: int) -> NDArray[Any]:
        """Return the rows of `samples` that fit into the allocation at `address`."""
        row_bytes = np.dtype(dtype).itemsize * samples
        data = self.bytes_at(address)
        return data[: data.size // row_bytes * row_bytes].view(dtype).reshape(-1, samples)


class FakeStaging:
    """Copies at once; what staging buffers are for is tested on a GPU."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def upload(self, source: NDArray[Any], target: int) -> None:
        self._driver.memcpy_htod_async(target, source, None)

    def download(self, source: int, target: NDArray[Any]) -> None:
        self._driver.memcpy_dtoh_async(target, source, None)


class FakeCard(Device):
    """The real `Device`, with how it makes room and what it frees, over a made-up driver."""

    def __init__(self, memory: int, refused: Collection[int] = ()) -> None:
        self.ordinal, self.lost, self.architecture = 0, False, "sm_90"
        self.cuda: Driver = Driver(memory, refused)
        self.handle: Any = SimpleNamespace(get_attribute=ATTRIBUTES.__getitem__)
        self.stream: Any = SimpleNamespace(synchronize=lambda: None)
        self.staging = FakeStaging(self.cuda)
        self.resident = Resident()
        self._modules: dict[bytes, Any] = {}


class FakeCubins:
    """Stands in for the cache of compiled kernels: the code of each is its filter's name."""

    def get(self, filter_id: str, *specialisation: Any) -> Cubin:
        return Cubin(filter_id.encode(), "")
