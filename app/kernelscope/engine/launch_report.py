"""Report of a GPU backend on the kernel that it launched, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    registers: int  # for each thread
    spill_bytes: int  # stores and loads of registers that did not fit, for each thread
    stack_bytes: int  # local memory of each thread
    # Static shared memory of a block, constant bank of the module.
    shared_bytes: int
    constant_bytes: int


@dataclass(frozen=True)
class LaunchReport:
    filter_id: str
    kernel: str
    # Blocks and threads of a block, in x and y (and z).
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int  # dynamic shared memory of a block
    resources: Resources | None  # None if the compiler's log does not state them
    occupancy: float | None
    """Theoretical: resident warps / maximum of warps of a multiprocessor. None if the driver does
    not report it."""
    compiler: str = ""  # compiler of the kernel: ``nvcc 13.0 through PyCUDA``
