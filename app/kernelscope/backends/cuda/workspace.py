"""Device memory of a run, kept under a name from one slab to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any

from kernelscope.backends.cuda.card import GpuContext


class Workspace:
    """Device memory that a run needs on the way, kept from one slab to the next.

    `keep` is the key of the source that has to stay on the card. `stage` returns a context that
    times its block under a name: ``allocate``, ``free``.
    """

    def __init__(
        self, device: GpuContext, stage: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self.keep: object = None
        self._device, self._stage = device, stage
        self._kept: dict[Hashable, tuple[Any, int]] = {}

    def get(self, name: Hashable, size: int) -> int:
        """Return the address of `size` bytes or more, the same ones for a name while they do."""
        allocation, there = self._kept.pop(name, (None, 0))
        if allocation is None or there < size:
            if allocation is not None:
                with self._stage("free"):
                    self._device.free(allocation)
            with self._stage("allocate"):
                allocation, there = self._device.allocate(size, self.keep), size
        self._kept[name] = allocation, there
        return int(allocation)

    def free(self) -> None:
        """Free everything, unless the context is lost: its allocations must not be touched."""
        if self._kept and not self._device.lost:
            with self._stage("free"):
                self._device.free(*(allocation for allocation, _ in self._kept.values()))
            self._kept.clear()
