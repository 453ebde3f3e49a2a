"""The backends of a worker process, which all its tasks share."""

from __future__ import annotations

from kernelscope.backends import create_backends
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.once import once
from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import Device


@once
def worker_tools(threads: int | None) -> tuple[dict[str, Backend], Costs]:
    """Return the backends and the costs of this process, whose CPU has this many threads."""
    backends = create_backends(emulated=True)
    return {**backends, Device.CPU.value: CpuBackend(threads)}, Costs()
