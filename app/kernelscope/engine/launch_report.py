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
    """How the last launch of a run looked, for the kernel viewer.

    Attributes
    ----------
    filter_id, kernel : str
    grid, block : tuple of int
        Blocks and threads of a block, in x and y (and z).
    shared_bytes : int
        Dynamic shared memory of a block.
    resources : Resources or None
        None where the compiler's log does not say.
    occupancy : float or None
        Theoretical: resident warps / most warps of a multiprocessor. None where the driver does
        not say.
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
