"""The rules of timing. Every time that the bench reports is taken by them.

What is timed
    On the CPU the stage *compute*: everything but making room for the result and wrapping it.
    On a GPU the kernels, between CUDA events, while the card is kept busy just before so that
    the host's way to the launch is not timed; and apart from that the run end to end, from
    pageable memory to pageable memory: upload, kernel, download, wrapping, a new picture each
    time. Of a library's function on the CPU the call, on a GPU the call between events.
Clocks
    `time.perf_counter` on the host, events on the card.
What is not counted
    Compiling, and the first run of each row, which warms up.
Caches
    *cold*, the rule: before each timed run the data are moved to a new place and a block of
    twice the last cache is rewritten (on a card before each launch), so that what is read
    comes from memory as it does from a picture that was just opened. *warm*: nothing is done
    about them. Each row names which of the two it was.
Batches
    Events tell half a microsecond apart at best, and the card's own way to a kernel and out of it
    takes one or two. So kernels that take less than 50 microseconds are timed in batches, of as
    many launches as take 200 (128 at most), and the mean is what is reported: the time from one
    launch to the next. All are queued before the first begins. *cold*, the cache is emptied before
    the batch, and each of its launches reads a copy of the picture and writes a result of its own
    (the tables that all read, and what one kernel of a plan leaves to the next, are in the cache
    by the second launch). Each row says how many launches its times are the mean of.
Turns
    Whatever runs on the same device on the same data takes turns, so that a disturbance hits
    all of them; libraries are compared with our result first, and how they differ is told.
Long runs
    A run that would take longer than `LONGEST` seconds (a plan may say otherwise) is timed on a
    smaller part, and the row says so. Where such rows are compared, times are scaled by the
    work, which grows as the pixels do, or as their square where each sees the whole image.
    Both the size that was timed with its time and the scaled time are shown, ≈ before that.
What is reported
    Every repeat. The median and the quartiles stand for them; none is dropped. Whether one is
    faster than another is judged by an interval of the ratio of medians, see `statistics`.
What is compared
    The same quantity, of equal work: computing with computing, whole runs with whole runs. Figures
    of the sources' authors stand beside the same quantity only, see `figures`.
Load
    How many cores other programs kept busy meanwhile stands in each row.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LONGEST = 1.0
"""Seconds that a run may take before it is timed on a smaller part."""

REPEAT = 11
"""Timed runs of each row; from 10 on the interval of a ratio leaves out an outlier at each end."""

COLD, WARM = "cold", "warm"
"""What the caches were; see above."""

_USUAL_CACHE = 32 * 2**20
"""Bytes of a last cache where nobody tells."""


@functools.cache
def last_cache() -> int:
    """Return the bytes of the largest cache of the first core, as Linux knows them."""
    return max(_cache_sizes(Path("/sys/devices/system/cpu/cpu0/cache")), default=_USUAL_CACHE)


def _cache_sizes(folder: Path) -> Iterator[int]:
    for path in folder.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text.endswith("K") and text[:-1].isdecimal():
            yield int(text[:-1]) * 1024


class Evictor:
    """Empties the CPU's caches by rewriting a block that is larger than they are."""

    @functools.cached_property
    def _block(self) -> NDArray[np.int64]:
        return np.zeros(2 * last_cache() // 8, np.int64)

    def evict(self) -> None:
        """Rewrite the block, on the calling thread."""
        block = self._block
        block += 1


class Load:
    """Measures how many cores other programs keep busy, from its creation on."""

    def __init__(self) -> None:
        self._start = _clocks()

    def others(self) -> float | None:
        """Return the mean number of cores since then; None where the system does not tell."""
        now = _clocks()
        if self._start is None or now is None:
            return None
        (wall, busy, own), (wall_then, busy_then, own_then) = now, self._start
        if wall - wall_then < 10 * _tick():
            return None  # shorter than the clocks can tell
        others = (busy - busy_then) - (own - own_then)
        return max(0.0, others / (wall - wall_then))


def _tick() -> float:
    """Return the resolution of the system's clocks in seconds."""
    return 1 / os.sysconf("SC_CLK_TCK")


def _clocks() -> tuple[float, float, float] | None:
    """Return seconds of the wall's clock, of all cores being busy, and of this process."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft, *_ = map(int, first.split()[1:])
    busy = (user + nice + system + interrupts + soft) * _tick()
    return time.perf_counter(), busy, time.process_time()
