"""Four cards as data: those of sources M, N and V, and the project's own.

Limits of a multiprocessor by compute capability are those of the *CUDA C++ Programming Guide*,
table “Technical Specifications per Compute Capability” (for 1.x and 2.x of its release 6.5), and
of the *CUDA Occupancy Calculator*. Bandwidth is the theoretical one of the maker's data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
"""Threads of a warp on every card."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card, and the limits of one of its multiprocessors.

    Attributes
    ----------
    capability : str
        Compute capability.
    multiprocessors : int
    bandwidth : float
        Bytes per second of device memory.
    threads, blocks, registers, shared : int
        Most on a multiprocessor at a time; shared memory in bytes.
    block_threads, block_shared, thread_registers : int
        Most of one block, and of one thread.
    shared_unit, shared_system : int
        Bytes in steps of which a block gets shared memory; bytes that the system adds to each.
    register_unit : int
        Registers in steps of which a warp gets its own.
    """

    name: str
    capability: str
    multiprocessors: int
    bandwidth: float
    threads: int
    blocks: int
    registers: int
    shared: int
    block_threads: int = 1024
    block_shared: int
    thread_registers: int = 255
    shared_unit: int = 256
    shared_system: int = 0
    register_unit: int = 256


CARDS = {
    card.name: card
    for card in (
        Card(
            name="H100",
            capability="9.0",
            multiprocessors=132,
            bandwidth=3352e9,
            threads=2048,
            blocks=32,
            registers=65536,
            shared=228 << 10,
            block_shared=227 << 10,
            shared_unit=128,
            shared_system=1 << 10,
        ),
        Card(
            name="RTX 2080 Ti",
            capability="7.5",
            multiprocessors=68,
            bandwidth=616e9,
            threads=1024,
            blocks=16,
            registers=65536,
            shared=64 << 10,
            block_shared=64 << 10,
        ),
        Card(
            name="GTX 660 Ti",
            capability="3.0",
            multiprocessors=7,
            bandwidth=144.2e9,
            threads=2048,
            blocks=16,
            registers=65536,
            shared=48 << 10,
            block_shared=48 << 10,
            thread_registers=63,
        ),
        Card(
            name="GTX 480",
            capability="2.0",
            multiprocessors=15,
            bandwidth=177.4e9,
            threads=1536,
            blocks=8,
            registers=32768,
            shared=48 << 10,
            block_shared=48 << 10,
            thread_registers=63,
            shared_unit=128,
            register_unit=64,
        ),
    )
}
"""By name. Source F's NVIDIA 210 (capability 1.2) allots registers by blocks and is left out."""


@dataclass(frozen=True)
class Residence:
    """How many blocks a multiprocessor holds at a time, and why no more.

    Attributes
    ----------
    by : mapping
        Blocks that each limit alone would allow, by its name.
    """

    by: dict[str, int]
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


def residence(card: Card, threads: int, registers: int, shared_bytes: int) -> Residence:
    """Return how many blocks of a kernel a multiprocessor holds.

    Parameters
    ----------
    threads : int
        Of a block.
    registers : int
        Of a thread.
    shared_bytes : int
        Of a block.
    """
    warps = -(-threads // WARP)
    of_warp = _up(registers * WARP, card.register_unit)
    warps_by_registers = card.registers // of_warp if registers <= card.thread_registers else 0
    shared = _up(shared_bytes, card.shared_unit) + card.shared_system
    fits = shared_bytes <= card.block_shared
    by = {
        "threads": card.threads // WARP // warps if threads <= card.block_threads else 0,
        "blocks": card.blocks,
        "registers": warps_by_registers // warps,
        "shared memory": (card.shared // shared if shared else card.blocks) if fits else 0,
    }
    return Residence(by, warps, card.threads // WARP)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
