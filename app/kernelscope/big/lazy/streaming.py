"""Computes a lazy source block by block, into a file, within a limit of memory.

Two blocks are read and computed at a time, and written in their order::

    thread 1    | read 1 | compute 1 | read 3 | compute 3 |
    thread 2    | read 2 | ...... compute 2 | read 4 | compute 4 |
    main thread                      | write 1 | write 2 | write 3 |
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from kernelscope.base import memory
from kernelscope.big.lazy.blocks import AT_ONCE
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.files.lazy import LazySource
from kernelscope.schema.crop import Box

STAGE = "blocks"  # name of the stage in progress reports


class Sink(Protocol):
    def write(self, box: Box, samples: NDArray[Any]) -> None:
        """Write a block; called on one thread, in the order of the blocks."""


@dataclass(frozen=True)
class Streamed:
    blocks: int
    samples: int
    seconds: float
    """From the first block read to the last one written, without the flush to the disk."""
    peak_bytes: int | None
    """Most memory that the process had resident since it began; None if the system does not report
    it."""


def stream(
    source: LazySource,
    sink: Sink,
    boxes: Sequence[Box],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    at_once: int = AT_ONCE,
) -> Streamed:
    """Compute the boxes of a source and write them, in their order.

    `at_once`: blocks that are read and computed at a time. Raises the first failure; the token is
    set, so that other blocks end soon.
    """
    token = token or CancelToken()
    start = time.perf_counter()
    waiting: deque[tuple[Box, Future[NDArray[Any]]]] = deque()
    left = iter(boxes)
    with ThreadPoolExecutor(at_once, "kernelscope-block") as pool:

        def begin() -> None:
            box = next(left, None)
            if box is not None:
                waiting.append((box, pool.submit(source.read, box)))

        for _ in range(at_once):
            begin()
        try:
            for done in range(len(boxes)):
                box, future = waiting.popleft()
                samples = future.result()
                del future
                token.check()
                begin()
                sink.write(box, samples)
                del samples  # before the next result is waited for
                progress(STAGE, (done + 1) / len(boxes))
        except BaseException:
            token.cancel()  # blocks that are being computed, which nobody wants any more
            for _, future in waiting:
                future.cancel()
            raise
    samples_written = sum(box.pixels for box in boxes)
    return Streamed(len(boxes), samples_written, time.perf_counter() - start, memory.peak())
