"""The one list of graphics cards: published data, from the one of source F to those of today."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelscope.base.paths import RESOURCES
from kernelscope.base.text import enumerated
from kernelscope.traffic.trace import WARP


@dataclass(frozen=True)
class Limits:
    """Most of a multiprocessor, of a block and of a thread, by compute capability.

    Shared memory is in bytes: a block gets it in steps of `shared_unit`, and the system adds
    `shared_system` to each. A warp gets its registers in steps of `register_unit`.
    """

    threads: int
    blocks: int
    registers: int
    shared: int
    block_threads: int
    block_shared: int
    thread_registers: int
    shared_unit: int
    shared_system: int
    register_unit: int


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A graphics card, by its data sheet; None where a figure is not published."""

    name: str
    year: int  # of its appearance; 0 for the card of this computer
    capability: tuple[int, int]  # compute capability
    # Cores are those for single precision, of all multiprocessors.
    multiprocessors: int
    cores: int
    clock: float  # highest clock of the cores in hertz
    bandwidth: float  # of device memory, in bytes per second
    cache: int | None = None  # bytes of the level-2 cache; 0 if loads from global memory go past it
    cache_clock: int | None = None  # bytes that the level-2 cache delivers in a clock
    texels: float | None = None  # texels per second, unfiltered and of 32 bits at most
    limits: Limits | None = None
    source: str = ""  # address of the data

    @property
    def is_here(self) -> bool:
        """Whether it is the card of this computer."""
        return not self.year

    @property
    def is_cached(self) -> bool:
        """Whether loads from global memory go through caches: since capability 2.0."""
        return self.capability >= (2, 0)

    @property
    def load_clocks(self) -> int:
        """Clocks in which a multiprocessor takes the addresses of a warp's load or store.

        8, 16 and 32 units for loads and stores: CUDA C++ Programming Guide, "Compute
        Capabilities", and the white papers on Fermi and Kepler.
        """
        if self.capability < (2, 0):
            return 4
        return 2 if self.capability < (3, 0) else 1

    @property
    def shared_clocks(self) -> int:
        """Clocks of a turn of shared memory, in which a warp reads 32 words without conflicts.

        A bank has a word every two clocks until capability 3.0, and 16 banks serve half a warp
        until 2.0: CUDA C Programming Guide 3.2, appendix G.
        """
        if self.capability < (2, 0):
            return 4
        return 2 if self.capability < (3, 0) else 1


def _read() -> Iterator[Gpu]:
    data = tomllib.loads((RESOURCES / "gpus.toml").read_text(encoding="utf-8"))
    limits = {name: Limits(**fields) for name, fields in data["limits"].items()}
    for fields in data["gpu"]:
        capability = tuple(fields.pop("capability"))
        yield Gpu(capability=capability, limits=limits.get("{}.{}".format(*capability)), **fields)


GPUS = tuple(_read())  # of ``resources/gpus.toml``, by year


def gpu(name: str) -> Gpu | None:
    return next((each for each in GPUS if each.name.casefold() == name.casefold()), None)


def gpu_here(facts: Mapping[str, str]) -> Gpu | None:
    """Return the card that the driver describes; None if it leaves out a rate.

    - `facts`: values by the names of the window *GPU*: ``{"Highest clock": "1,980"}``.
    """
    try:
        name = facts["Name"]
        major, minor = map(int, facts["Compute capability"].split("."))
        multiprocessors = _number(facts["Multiprocessors"])
        cores = _number(facts["CUDA cores"].partition(" ")[0])
        clock = _number(facts["Highest clock"]) * 1e6
        bandwidth = _number(facts["Theoretical bandwidth"]) * 1e9
    except (KeyError, ValueError):
        return None
    like = next(
        (
            each
            for each in GPUS
            if (each.capability, each.multiprocessors) == ((major, minor), multiprocessors)
        ),
        None,
    )  # with as many multiprocessors of a kind it has the same caches and texture units
    return Gpu(
        name=name,
        year=0,
        capability=(major, minor),
        multiprocessors=int(multiprocessors),
        cores=int(cores),
        clock=clock,
        bandwidth=bandwidth,
        cache=like.cache if like else None,
        cache_clock=like.cache_clock if like else None,
        texels=like.texels * clock / like.clock if like and like.texels else None,
        limits=like.limits if like else None,
    )


def _number(text: str) -> float:
    return float(text.replace(",", ""))


@dataclass(frozen=True)
class Residence:
    """How many blocks a multiprocessor holds at a time, and why no more."""

    by: dict[str, int]  # blocks that each limit alone would allow, by its name
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


def occupancy_on(target: str, threads: int, registers: int, shared_bytes: int) -> str:
    """Return the computed occupancy by a kernel: ``75 % of H100 and H200, as registers allow``.

    Of blocks as `residence` takes them; empty for a `target`, like ``sm_90``, without known limits.
    """
    cards = [each for each in GPUS if target == "sm_{}{}".format(*each.capability)]
    if not cards or cards[0].limits is None:
        return ""
    held = residence(cards[0].limits, threads, registers, shared_bytes)
    names = enumerated([each.name for each in cards])
    return f"{100 * held.occupancy:.0f} % of {names}, as {enumerated(held.limits)} allow"
