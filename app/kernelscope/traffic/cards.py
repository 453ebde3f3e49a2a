"""Published data of graphics cards, from the one of source F to those of today.

Each row is one GPU. Where a figure is not published, as the bandwidth of most level-2 caches, it
is None, and no bound follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """A graphics card, by its data sheet.

    Attributes
    ----------
    name : str
    year : int
        Of its appearance; 0 for the card of this computer.
    capability : tuple of int
        Compute capability.
    multiprocessors, cores : int
        Cores are those for single precision, of all multiprocessors.
    clock : float
        Highest clock of the cores in hertz.
    bandwidth : float
        Of device memory, in bytes per second.
    cache : int, optional
        Bytes of the level-2 cache; 0 if loads from global memory go past it.
    cache_clock : int, optional
        Bytes that the level-2 cache delivers in a clock.
    texels : float, optional
        Texels per second, unfiltered and of 32 bits at most.
    source : str
        Address of the data.
    """

    name: str
    year: int
    capability: tuple[int, int]
    multiprocessors: int
    cores: int
    clock: float
    bandwidth: float
    cache: int | None
    cache_clock: int | None = None
    texels: float | None = None
    source: str = ""

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


_M, _G, _KIB, _MIB = 1e6, 1e9, 1 << 10, 1 << 20

CARDS = (
    Card("GeForce 210", 2009, (1, 2), 2, 16, 1402 * _M, 8 * _G, 0, None, 4.712 * _G,
         "http://amdarea51.de/vgas/vga_formular.php?ID=23"),
    Card("Tesla S2050, one GPU", 2010, (2, 0), 14, 448, 1150 * _M, 148.4 * _G, 768 * _KIB, None,
         32.2 * _G, "https://factopedia.org/compare?direction=asc&ids=95307-95698"),
    Card("GeForce GTX 480", 2010, (2, 0), 15, 480, 1401 * _M, 177.4 * _G, 768 * _KIB, None,
         42 * _G, "http://www.guru3d.com/articles-pages/msi-geforce-gtx-480-lightning-review,2.html"),
    Card("GeForce GT 540M", 2011, (2, 1), 2, 96, 1344 * _M, 28.8 * _G, 256 * _KIB, None,
         10.75 * _G, "https://gpu.spicedreamphone.com/en/gpu/nvidia/geforce-gt-540m"),
    Card("GeForce GT 640M, DDR3", 2012, (3, 0), 2, 384, 625 * _M, 28.8 * _G, None, None, None,
         "http://www.notebookinfo.de/grafikkarten/mittelklasse-grafikkarten/"
         "nvidia-geforce-gtx-600m/nvidia-geforce-gt-640m/"),
    Card("GeForce GTX 660 Ti", 2012, (3, 0), 7, 1344, 980 * _M, 144.2 * _G, 384 * _KIB, None,
         None, "https://guru3d.com/review/evga-geforce-gtx-660-ti-sc-review/page-4"),
    Card("GeForce GTX 1060, 6 GB", 2016, (6, 1), 10, 1280, 1708 * _M, 192.2 * _G, 1536 * _KIB,
         None, 136.7 * _G, "https://cputronic.com/gpu/nvidia-geforce-gtx-1060-6-gb"),
    Card("Tesla T4", 2018, (7, 5), 40, 2560, 1590 * _M, 320 * _G, 4 * _MIB, None, 254.4 * _G,
         "https://sysrqmts.com/en/gpus/nvidia/tesla/t4"),
    Card("GeForce RTX 2080 Ti", 2018, (7, 5), 68, 4352, 1545 * _M, 616 * _G, None, None,
         420.2 * _G, "https://gpu.spicedreamphone.com/ru/gpu/nvidia/geforce-rtx-2080-ti"),
    Card("A100, 40 GB", 2020, (8, 0), 108, 6912, 1410 * _M, 1555 * _G, 40 * _MIB, 5120,
         609.1 * _G, "https://www.techpowerup.com/gpu-specs/a100-sxm4-40-gb.c3506"),
    Card("GeForce RTX 3060", 2021, (8, 6), 28, 3584, 1777 * _M, 360 * _G, 3 * _MIB, None,
         199 * _G, "https://askgeek.io/ru/gpus/NVIDIA/GeForce-RTX-3060-GA104"),
    Card("GeForce RTX 4090", 2022, (8, 9), 128, 16384, 2520 * _M, 1008 * _G, 72 * _MIB, None,
         1290 * _G, "https://holynerdvana.blogspot.com/2022/10/nvidia-geforce-rtx-4090-specifications.html"),
    Card("H100", 2022, (9, 0), 132, 16896, 1980 * _M, 3350 * _G, 50 * _MIB, 5120, 1045 * _G,
         "https://glennklockwood.com/garden/processors/h100"),
    Card("H200", 2024, (9, 0), 132, 16896, 1980 * _M, 4800 * _G, 50 * _MIB, 5120, 1045 * _G,
         "https://www.saulelectric.com/nvidia-h200.html"),
)  # fmt: skip
"""By year. Bytes a clock of level 2 follow from Table 3 of PMC10448217; texels of Hopper from four
units of a multiprocessor, as those of the A100; the clock of the 2080 Ti from its texels, by 272
units; that of the H200 is the H100's."""


def card(name: str) -> Card | None:
    """Return the card with a name; case does not matter."""
    return next((each for each in CARDS if each.name.casefold() == name.casefold()), None)


def card_here(facts: Mapping[str, str]) -> Card | None:
    """Return the card that the driver describes; None if it leaves out a rate.

    Parameters
    ----------
    facts : mapping of str to str
        Values by the names of the window *GPU*: ``{"Highest clock": "1,980"}``.
    """
    try:
        name = facts["Name"]
        major, minor = map(int, facts["Compute capability"].split("."))
        multiprocessors = _number(facts["Multiprocessors"])
        cores = _number(facts["CUDA cores"].partition(" ")[0])
        clock = _number(facts["Highest clock"]) * _M
        bandwidth = _number(facts["Theoretical bandwidth"]) * _G
    except (KeyError, ValueError):
        return None
    like = next(
        (
            each
            for each in CARDS
            if (each.capability, each.multiprocessors) == ((major, minor), multiprocessors)
        ),
        None,
    )  # with as many multiprocessors of a kind it has the same caches and texture units
    return Card(
        name, 0, (major, minor), int(multiprocessors), int(cores), clock, bandwidth,
        like.cache if like else None,
        like.cache_clock if like else None,
        like.texels * clock / like.clock if like and like.texels else None,
    )  # fmt: skip


def _number(text: str) -> float:
    return float(text.replace(",", ""))
