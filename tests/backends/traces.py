"""Parts of traces."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from kernelscope.traffic.trace import Trace


def of_thread(trace: Trace, thread: int) -> NDArray[Any]:
    """Return the records of a thread, in order."""
    chosen: NDArray[Any] = trace.records[trace.records["thread"] == thread]
    return chosen
