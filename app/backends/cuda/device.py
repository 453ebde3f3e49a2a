"""One GPU and the long-lived thread that owns its context."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from app.backends.cuda.compiler import Cubin
from app.backends.cuda.memory import Resident, Staging
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
    context is freed before it is popped; otherwise the process aborts on exit.

    Parameters
    ----------
    ordinal : int
        Number of the device.
    """

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.lost = False
        self._thread = ThreadPoolExecutor(1, f"kernelscope-gpu-{ordinal}")
        self._context: Any = None
        try:
            self.call(self._open)
        except BaseException:
            self._thread.shutdown()
            raise

    def call(self, function: Callable[..., _Value], *arguments: Any) -> _Value:
        """Run `function` on the device's thread and return what it returns."""
        return self._thread.submit(function, *arguments).result()

    def close(self) -> None:
        """Free everything and end the thread."""
        self.call(self._close)
        self._thread.shutdown()

    def _open(self) -> None:
        import pycuda.driver as cuda

        try:
            cuda.init()
            self.handle = cuda.Device(self.ordinal)
            self._context = self.handle.retain_primary_context()
            self._context.push()
        except cuda.Error as error:
            raise DeviceUnavailable(
                f"GPU {self.ordinal} could not be opened: {error}.",
                "Check it with nvidia-smi; another program may hold it or its memory.",
            ) from error
        self.cuda = cuda
        major, minor = self.handle.compute_capability()
        self.architecture = f"sm_{major}{minor}"
        self.stream = cuda.Stream(NON_BLOCKING)
        self.staging = Staging(self.stream)
        self.resident = Resident()
        self._modules: dict[int, Any] = {}
        self._cubins: dict[int, Cubin] = {}
        self._copy_rate: float | None = None

    def _close(self) -> None:
        if self._context is None:
            return
        try:
            if not self.lost:
                self.stream.synchronize()
                self.resident.clear()
                self.staging.free()
            self.resident.forget()
            self._modules.clear()
            del self.stream, self.staging
        finally:
            self._context.pop()
            self._context.detach()
            self._context = None

    def function(self, cubin: Cubin, name: str) -> tuple[Any, Any]:
        """Return (module, function) of a cubin, loaded once."""
        key = id(cubin)
        module = self._modules.get(key)
        if module is None:
            module = self.cuda.module_from_buffer(cubin.code)
            self._modules[key] = module
            self._cubins[key] = cubin  # keeps the id from being given to another cubin
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
        while True:
            try:
                return self.cuda.mem_alloc(max(size, 1))
            except self.cuda.MemoryError:
                if not self.resident.evict(keep):
                    raise

    def copy_rate(self) -> float:
        """Return the measured bytes per second, read + written, of a copy on the card."""
        if self._copy_rate is None:
            self._copy_rate = self._measure_copy_rate()
        return self._copy_rate

    def _measure_copy_rate(self) -> float:
        cuda, size = self.cuda, COPY_PROBE_BYTES
        try:
            source, target = self.allocate(size), self.allocate(size)
        except cuda.MemoryError:
            return 0.0
        try:
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
