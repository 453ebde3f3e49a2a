"""The rules of timing, which hold for every time that the bench reports.

Timed
    On the CPU the stage *compute*: everything but allocating and wrapping the result.
    On a GPU the kernels, between CUDA events; a spinning kernel keeps the GPU busy until they are
    queued, so that the host's launch overhead is not timed. Separately, the run end to end, from
    pageable memory to pageable memory: upload, kernel, download, wrapping, with a new picture each
    time. For a library's function the call; on a GPU the call between events.
Clocks
    `time.perf_counter` on the host, events on the card.
Not timed
    Compilation, and the first run of each row, which warms up.
Caches
    *cold*, the default: before each timed run the data move to a new place and a block of twice
    the size of the last-level cache is rewritten (on a GPU before each launch), so that the data
    are read from memory, as those of a picture that was just opened are. *warm*: the caches are
    left as they are. Each row states which of the two applies.
Batches
    Events resolve half a microsecond at best, and starting and finishing a kernel takes the GPU one
    or two. So kernels that take less than 50 microseconds are timed in batches that take about 200
    (128 launches at most), and the mean is reported: the time from one launch to the next. All are
    queued before the first begins. *cold*: the cache is emptied before the batch, and each of its
    launches reads its own copy of the picture and writes its own result (shared tables, and data
    that one kernel of a plan leaves to the next, are cached from the second launch on). Each row
    states the number of launches that its times are the mean of.
Turns
    Levels and libraries that run on the same device on the same data take turns, so that a
    disturbance hits all of them. Libraries are first compared with our result; differences are
    reported.
Long runs
    A run that would take longer than `LONGEST` seconds (or the limit of the plan) is timed on a
    smaller part, and the row says so. To compare such rows, times are scaled by the work, which is
    proportional to the pixels, or to their square if each pixel depends on the whole image. Both
    are shown: the timed size with its time, and the scaled time after ≈.
Reported
    Every repeat. The median and the quartiles summarise them; none is dropped. The interval of the
    ratio of medians decides whether one is faster than another, see `statistics`.
Compared
    The same quantity, of equal work: computing with computing, whole runs with whole runs.
    Published figures are shown only next to the same quantity, see `figures`.
Load
    Each row states how many cores other programs kept busy during the measurement.
"""

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

COLD, WARM = "cold", "warm"  # state of the caches; see above
_USUAL_CACHE = 32 * 2**20  # size in bytes of the last-level cache if the system does not report it


@functools.cache
def last_cache() -> int:
    """Return the bytes of the largest cache of the first core, as Linux reports them."""
    return max(cache_sizes(Path("/sys/devices/system/cpu/cpu0/cache")), default=_USUAL_CACHE)


def cache_sizes(folder: Path) -> Iterator[int]:
    """Yield the sizes in bytes of the caches that Linux lists in `folder`."""
    for path in folder.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text.endswith("K") and text[:-1].isdecimal():
            yield int(text[:-1]) * 1024


class Evictor:
    """Empties the CPU's caches by rewriting a block that is larger than they are."""

    @functools.cached_property
    def block(self) -> NDArray[np.int64]:
        """The memory to rewrite, twice the size of the last cache."""
        return np.zeros(2 * last_cache() // 8, np.int64)

    def evict(self) -> None:
        """Rewrite the block, on the calling thread."""
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
