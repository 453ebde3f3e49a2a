"""Report of a GPU backend on the kernel that it launched, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel, as the assembler reports them.

    Attributes
    ----------
    registers : int
        For each thread.
    spill_bytes : int
        Stores and loads of registers that did not fit, for each thread.
    stack_bytes : int
        Local memory of each thread.
    shared_bytes, constant_bytes : int
        Static shared memory of a block, constant bank of the module.
    """

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    constant_bytes: int


@dataclass(frozen=True)
class LaunchReport:
    """The last launch of a run, for the kernel viewer.

    Attributes
    ----------
    filter_id, kernel : str
    grid, block : tuple of int
        Blocks and threads of a block, in x and y (and z).
    shared_bytes : int
        Dynamic shared memory of a block.
    resources : Resources or None
        None if the compiler's log does not state them.
    occupancy : float or None
        Theoretical: resident warps / maximum of warps of a multiprocessor. None if the driver does
        not report it.
    compiler : str
        Compiler of the kernel: ``nvcc 13.0 through PyCUDA``.
    """

    filter_id: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    resources: Resources | None
    occupancy: float | None
    compiler: str = ""
