"""One GPU and the long-lived thread that owns its context."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from app.backends.cuda.compiler import Cubin
from app.backends.cuda.memory import Resident, Staging
from app.backends.cuda.thread import OwnerThread
from app.errors import DeviceUnavailable

_logger = logging.getLogger(__name__)
_Value = TypeVar("_Value")

NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING: no implicit order with the legacy stream."""

COPY_PROBE_BYTES = 256 << 20
"""Size of the copy that measures bandwidth: several times the largest L2."""


class Device:
    """A GPU's primary context, pushed once on a thread of its own.

    All methods but `call` and `close` run on that thread. Everything that was made in the
    context is freed before it is popped, and it is popped before the thread ends, also when
    nobody closes the device; otherwise the process aborts on exit.

    Parameters
    ----------
    ordinal : int
        Number of the device.
    """

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.lost = False
        self._thread = OwnerThread(f"kernelscope-gpu-{ordinal}")
        self._context: Any = None
        try:
            self.call(self._open)
        except BaseException:
            self.close()
            raise
        atexit.register(self.close)

    def call(self, function: Callable[..., _Value], *arguments: Any) -> _Value:
        """Run `function` on the device's thread and return what it returns."""
        return self._thread.call(function, *arguments)

    def close(self) -> None:
        """Free everything and end the thread."""
        atexit.unregister(self.close)
        try:
            self.call(self._close)
        finally:
            self._thread.end()

    def _open(self) -> None:
        import pycuda.driver as cuda

        self.cuda = cuda
        self.resident = Resident()
        self.staging: Any = None  # a Staging, once there is a context
        self._modules: dict[bytes, Any] = {}
        self._copy_rate: float | None = None
        try:
            cuda.init()
            self.handle = cuda.Device(self.ordinal)
            context = self.handle.retain_primary_context()
            context.push()
            self._context = context
            self.stream = cuda.Stream(NON_BLOCKING)
            self.staging = Staging(self.stream)
        except cuda.Error as error:
            raise DeviceUnavailable(
                f"GPU {self.ordinal} could not be opened: {error}.",
                "Check it with nvidia-smi; another program may hold it or its memory.",
            ) from error
        major, minor = self.handle.compute_capability()
        self.architecture = f"sm_{major}{minor}"

    def _close(self) -> None:
        if self._context is None:
            return
        if self.staging is not None:
            self.staging.close(free=not self.lost)
        if not self.lost:
            self.resident.clear()
            self._drop()
        self._context.pop()
        self._context.detach()
        self._context = None
        if self.lost:
            # PyCUDA frees nothing in a context that it knows to be gone, and says nothing.
            self._drop()

    def _drop(self) -> None:
        self.resident.forget()
        self.staging = self.stream = None
        self._modules.clear()

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

    def function(self, cubin: Cubin, name: str) -> tuple[Any, Any]:
        """Return (module, function) of a cubin, loaded once."""
        module = self._modules.get(cubin.code)
        if module is None:
            module = self._modules[cubin.code] = self.cuda.module_from_buffer(cubin.code)
        return module, module.get_function(name)

    def free_memory(self) -> int:
        """Return the bytes that are free on the card now."""
        free, _ = self.cuda.mem_get_info()
        return int(free)

    def allocate(self, size: int, keep: Any = None) -> Any:
        """Allocate device memory, letting go of resident images other than `keep` if needed.

        Raises
        ------
        pycuda.driver.MemoryError
            If it does not fit even then.
        """
        return self.make_room(lambda: self.cuda.mem_alloc(max(size, 1)), keep)

    def make_room(self, make: Callable[[], _Value], keep: Any = None) -> _Value:
        """Return what `make` allocates; see `allocate`."""
        while True:
            try:
                return make()
            except self.cuda.MemoryError:
                if not self.resident.evict(keep):
                    raise

    def copy_rate(self) -> float | None:
        """Return the measured bytes per second, read + written, of a copy on the card.

        None while there is too little free memory to measure it.
        """
        if self._copy_rate is None and self.free_memory() > 3 * COPY_PROBE_BYTES:
            self._copy_rate = self._measure_copy_rate()
        return self._copy_rate

    def _measure_copy_rate(self) -> float:
        cuda, size = self.cuda, COPY_PROBE_BYTES
        source = cuda.mem_alloc(size)
        try:
            target = cuda.mem_alloc(size)
        except cuda.MemoryError:
            source.free()
            raise
        try:
            # The sanitizer reports copies of what was never written.
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
