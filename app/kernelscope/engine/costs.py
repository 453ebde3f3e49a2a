"""The cost of runs on this machine, from which Auto chooses the faster device.

The time of a filter is modelled as a line: overhead + slope × samples. With 2 ms for 1 million
samples and 5 ms for 4 million, the line is 1 ms + 1 ms per million, so 2.5 million should take
3.5 ms. Each kind of run (filter, settings, device, sample type) has its own line.
"""

from __future__ import annotations

import atexit
import json
import logging
import math
import statistics
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from kernelscope.base import atomic, json_fields
from kernelscope.base.errors import AppError
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result

_logger = logging.getLogger(__name__)

KEPT_POINTS = 12
"""Runs remembered of each kind: enough for a few sizes, few enough to forget outliers."""

REACH = 8
"""Predictions reach from 1/8 of the smallest measured size to 8 times the largest: small pictures
say little about the cost of a sample, large ones little about the overhead."""

OVERHEAD_SECONDS = 1e-4  # overhead that is assumed until two sizes have been measured, in seconds

_SAVE_SECONDS = 10.0
"""Runs of known kinds are written this often, and at the end: writing a file takes milliseconds, a
small picture a tenth of one."""

_MOST_BYTES = 1 << 22  # largest size of the file; real ones stay far below

SizeAndTime = tuple[Annotated[int, (1, 1 << 50)], Annotated[float, (1e-12, 1e9)]]
"""(samples of the input, seconds). In an edited file values may be beyond these limits."""


def default_path() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("kernelscope", appauthor=False) / "costs.json"


class Costs:
    """The last runs on each device, and the line through them.

    Runs are of one kind if they agree in `Request.cost_key`. They are stored in a small file: the
    first run of a kind at once, others every few seconds and when the process ends. If the file is
    damaged or cannot be written, knowledge is lost, but never a run.

    - `path`: the file; without it the costs are lost with this object.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._points: dict[str, list[SizeAndTime]] | None = None
        self._cold: dict[str, SizeAndTime] = {}
        """The first run of each kind in this process, which loaded its code and found caches,
        clocks and page tables cold: it goes with the second."""
        self._saved = -math.inf

    def record(self, result: Result, device: str) -> None:
        """Learn from a run on the device of this name.

        Uploads count if they happened, so that the median of the last runs reflects how the
        device is used here.
        """
        request = result.request
        with self._lock:
            key = _key(request, device, result.level)
            points = self._load().setdefault(key, [])
            is_new = not points
            cold = self._cold.pop(key, None)
            if cold in points:
                points.remove(cold)
            points.append((math.prod(request.source.shape), result.seconds))
            if result.first:
                self._cold[key] = points[-1]
            del points[:-KEPT_POINTS]
            if is_new or time.monotonic() - self._saved > _SAVE_SECONDS:
                self._save()
            elif self._path is not None:
                _unsaved.add(self)

    def save(self) -> None:
        """Write the entries that are not in the file yet."""
        with self._lock:
            if self in _unsaved:
                self._save()

    def predict(self, request: Request, device: str, level: str) -> float | None:
        samples = math.prod(request.source.shape)
        key = _key(request, device, level)
        with self._lock:
            points = self._load().get(key)
            if points == [self._cold.get(key)]:
                return None
        sizes = [size for size, _ in points or ()]
        if not points or not min(sizes) / REACH <= samples <= max(sizes) * REACH:
            return None
        overhead, slope = line(points)
        return overhead + slope * samples

    def _load(self) -> dict[str, list[SizeAndTime]]:
        if self._points is None:
            self._points = _read(self._path) if self._path else {}
        return self._points

    def _save(self) -> None:
        self._saved = time.monotonic()
        _unsaved.discard(self)
        if self._path is not None:
            try:
                atomic.own_folder(self._path.parent)
                atomic.replace(
                    self._path, json.dumps(self._points).encode(), private=True, durable=False
                )
            except OSError as error:
                _logger.warning("costs cannot be kept in %s: %s", self._path, error)


_unsaved: set[Costs] = set()


@atexit.register
def _save_all() -> None:
    for costs in tuple(_unsaved):
        costs.save()


def line(points: list[SizeAndTime]) -> tuple[float, float]:
    """Return (overhead, seconds per sample), neither negative, that fit `points` best.

    Least squares of relative errors, so that small pictures count as much as large ones, over
    the median of each size. A single size leaves the overhead open: `OVERHEAD_SECONDS`, or
    half of the time if that is less.
    """
    sizes = {size for size, _ in points}
    medians = [(n, statistics.median(t for size, t in points if size == n)) for n in sizes]
    if len(medians) == 1:
        ((size, seconds),) = medians
        overhead = min(OVERHEAD_SECONDS, seconds / 2)
        return overhead, (seconds - overhead) / size
    # Minimise sum (a u + b v - 1)² with u = 1 / t, v = n / t.
    u = [1 / max(t, 1e-9) for _, t in medians]
    v = [n / max(t, 1e-9) for n, t in medians]
    uu, uv, vv = (_dot(u, u), _dot(u, v), _dot(v, v))
    lines = [(0.0, sum(v) / vv), (sum(u) / uu, 0.0)]
    determinant = uu * vv - uv * uv
    if determinant > 0:  # it can vanish if one time is a millionth of another
        overhead = (sum(u) * vv - sum(v) * uv) / determinant
        slope = (sum(v) * uu - sum(u) * uv) / determinant
        if overhead >= 0 and slope >= 0:
            lines.append((overhead, slope))

    def error(line: tuple[float, float]) -> float:
        overhead, slope = line
        return sum((overhead * a + slope * b - 1) ** 2 for a, b in zip(u, v, strict=True))

    return min(lines, key=error)


def _dot(x: list[float], y: list[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _key(request: Request, device: str, level: str) -> str:
    """Return the kind of a run at a level of the device of this name."""
    _, kind = request.cost_at(RunOptions(level=level)).split(", ", 1)
    return f"{device}, {kind}"


def _read(path: Path) -> dict[str, list[SizeAndTime]]:
    """Return the points that `Costs` stored; none if the file is missing or damaged."""
    try:
        text = atomic.read_own(path, _MOST_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        _logger.warning("costs are learnt again: %s", error)
        return {}
    try:
        points = json_fields.parse(text, path.name).typed(Mapping[str, tuple[SizeAndTime, ...]])
    except AppError as error:
        _logger.warning("the damaged costs are replaced: %s", error)
        return {}
    return {key: [*those] for key, those in points.items()}
