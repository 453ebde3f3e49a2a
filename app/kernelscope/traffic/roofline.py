"""Lower bounds of a kernel's time on a card, from its counted traffic.

The traffic of a launch with a part of a card, divided by the part's rate, is a time below which the
launch cannot come: the roofline of Williams, Waterman and Patterson (2009), with a roof for each
memory. The largest bound is the prediction. ``resources/docs/gpu-levels.md`` describes the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kernelscope.schema.levels import TUNED
from kernelscope.traffic.gpus import Gpu
from kernelscope.traffic.totals import Key, Totals, launch_totals
from kernelscope.traffic.trace import SECTOR, Counts, Event, MemorySpace

FAR = 1.5  # times the prediction from which on a measurement calls for an explanation


class Limiter(StrEnum):
    MEMORY = "device memory"
    CACHE = "L2 cache"
    LOADS = "loads and stores"
    TEXTURE = "texture units"
    ARITHMETIC = "arithmetic"


@dataclass(frozen=True)
class Prediction:
    seconds: float  # the largest bound of each launch, added up
    limit: Limiter  # the part behind most of it
    bounds: dict[Limiter, float]
    """Seconds that each part needs alone; those without a published rate are missing."""

    def is_far(self, measured: float) -> bool:
        """Return whether a time in seconds differs by more than `FAR` times."""
        return not self.seconds / FAR <= measured <= self.seconds * FAR


def predict(launches: Sequence[Counts], card: Gpu) -> Prediction:
    total, limits = 0.0, dict.fromkeys(Limiter, 0.0)
    bounds: dict[Limiter, float] = {}
    for each in launches:
        found = bounds_of(each, card)
        limit = max(found, key=lambda part: found[part])
        total += found[limit]
        limits[limit] += found[limit]
        for part, seconds in found.items():
            bounds[part] = bounds.get(part, 0.0) + seconds
    return Prediction(total, max(limits, key=lambda part: limits[part]), bounds)


def bounds_of(counts: Counts, card: Gpu) -> dict[Limiter, float]:
    """Return the seconds that each part of a card needs for a launch."""
    totals = launch_totals(counts)
    operations = counts.scene.operations * float(np.prod(counts.scene.output_shape))
    # Multiprocessors without a block do nothing.
    share = min(counts.scene.blocks / card.multiprocessors, 1.0)
    found = {
        Limiter.MEMORY: _memory_sectors(totals, card) * SECTOR / card.bandwidth,
        Limiter.LOADS: _load_clocks(totals, card) / (card.multiprocessors * share * card.clock),
    }
    if counts.scene.level != TUNED.id:  # there instructions may do more: tensor cores, packed bytes
        found[Limiter.ARITHMETIC] = operations / (2 * card.cores * share * card.clock)
    if card.cache_clock is not None:
        sectors = sum(each.block_sectors for each in totals.values())
        found[Limiter.CACHE] = sectors * SECTOR / (card.cache_clock * card.clock)
    fetches = totals.get((MemorySpace.TEXTURE, Event.READ))
    if fetches is not None and card.texels is not None:
        found[Limiter.TEXTURE] = fetches.accesses / (card.texels * share)
    return found


def _memory_sectors(totals: dict[Key, Totals], card: Gpu) -> float:
    """Return the sectors that go to device memory at least."""
    sectors = 0.0
    for (space, _), each in totals.items():
        if card.is_cached or space is MemorySpace.TEXTURE:
            sectors += each.footprint
        elif space is MemorySpace.GLOBAL:  # half a warp asks for one segment at least
            sectors += max(each.sectors, 2 * each.requests)
    return sectors


def _load_clocks(totals: dict[Key, Totals], card: Gpu) -> float:
    """Return the clocks of multiprocessors that loads and stores take, on all of them."""
    clocks = 0.0
    for (space, _), each in totals.items():
        if space is MemorySpace.GLOBAL:
            clocks += each.requests * card.load_clocks
        elif space is MemorySpace.SHARED:
            clocks += each.wavefronts * card.shared_clocks
    return clocks
