"""The rules of timing in code; ``resources/docs/benchmark.md`` has them in words."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LONGEST = 1.0  # limit of a run in seconds; a slower one is timed on a smaller part

REPEAT = 11
"""Timed runs of each row; from 10 on the interval of a ratio excludes one outlier at each end."""

COLD, WARM = "cold", "warm"  # state of the caches
_USUAL_CACHE = 32 * 2**20  # size in bytes of the last-level cache if the system does not report it


@functools.cache
def last_cache() -> int:
    """Return the bytes of the largest cache of the first core, as Linux reports them."""
    return max(cache_sizes(Path("/sys/devices/system/cpu/cpu0/cache")), default=_USUAL_CACHE)


def cache_sizes(folder: Path) -> Iterator[int]:
    for path in folder.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text.endswith("K") and text[:-1].isdecimal():
            yield int(text[:-1]) * 1024


class Evictor:
    """Empties the CPU's caches by rewriting a block that is larger than they are."""

    @functools.cached_property
    def block(self) -> NDArray[np.int64]:
        return np.zeros(2 * last_cache() // 8, np.int64)

    def evict(self) -> None:
        block = self.block
        block += 1


class Load:
    """Measures the number of cores that other programs keep busy, from its creation on."""

    def __init__(self) -> None:
        self._start = _clocks()

    def others(self) -> float | None:
        """Return the mean number of cores since then; None if the system does not report it."""
        now = _clocks()
        if self._start is None or now is None:
            return None
        (wall, busy, own), (wall_then, busy_then, own_then) = now, self._start
        if wall - wall_then < 10 * _tick():
            return None  # shorter than the clocks can resolve
        others = (busy - busy_then) - (own - own_then)
        return max(0.0, others / (wall - wall_then))


def _tick() -> float:
    """Return the resolution of the system's clocks in seconds."""
    return 1 / os.sysconf("SC_CLK_TCK")


def _clocks() -> tuple[float, float, float] | None:
    """Return seconds of wall-clock time, of all busy cores, and of this process."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft, *_ = map(int, first.split()[1:])
    busy = (user + nice + system + interrupts + soft) * _tick()
    return time.perf_counter(), busy, time.process_time()
