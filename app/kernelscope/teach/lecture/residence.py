"""How many blocks a multiprocessor holds, and the cards for which the lecture says so."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelscope.traffic.gpus import GPUS, Limits

WARP = 32
"""Threads of a warp on every card."""


_NAMES = ("H100", "GeForce RTX 2080 Ti", "GeForce GTX 660 Ti", "GeForce GTX 480")

SHOWN = {
    (name := each.name.removeprefix("GeForce ")): replace(each, name=name)
    for each in reversed(GPUS)
    if each.name in _NAMES
}
"""The project's own and those of sources M, N and V, by the name that the pages give."""


def limits_of(card: str) -> Limits:
    limits = SHOWN[card].limits
    assert limits is not None
    return limits


@dataclass(frozen=True)
class Residence:
    """How many blocks a multiprocessor holds at a time, and why no more."""

    by: dict[str, int]
    """Blocks that each limit alone would allow, by its name."""
    warps: int
    most_warps: int

    @property
    def blocks(self) -> int:
        """Blocks of a multiprocessor at a time; 0 if the card refuses the launch."""
        return min(self.by.values())

    @property
    def limits(self) -> tuple[str, ...]:
        """Names of the limits that are reached first: several may be at once."""
        return tuple(name for name, allowed in self.by.items() if allowed == self.blocks)

    @property
    def occupancy(self) -> float:
        """Resident warps as a share of the most that a multiprocessor holds."""
        return self.blocks * self.warps / self.most_warps


def residence(limits: Limits, threads: int, registers: int, shared_bytes: int) -> Residence:
    """Return how many blocks of a kernel a multiprocessor holds.

    - `threads`: of a block.
    - `registers`: of a thread.
    - `shared_bytes`: of a block.
    """
    warps = -(-threads // WARP)
    of_warp = _up(registers * WARP, limits.register_unit)
    warps_by_registers = limits.registers // of_warp if registers <= limits.thread_registers else 0
    shared = _up(shared_bytes, limits.shared_unit) + limits.shared_system
    fits = shared_bytes <= limits.block_shared
    by = {
        "threads": limits.threads // WARP // warps if threads <= limits.block_threads else 0,
        "blocks": limits.blocks,
        "registers": warps_by_registers // warps,
        "shared memory": (limits.shared // shared if shared else limits.blocks) if fits else 0,
    }
    return Residence(by, warps, limits.threads // WARP)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
