"""Ground for the oracles of the noise filters: their random numbers, drawn by NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask, FilterSpec


def draw(
    source: NDArray[Any],
    seed: int,
    numbers: Callable[[np.random.RandomState, NDArray[np.float64]], Any],
) -> NDArray[np.float64]:
    """Return ``numbers(stream, row)`` of every row, each with a stream of its own.

    Parameters
    ----------
    source : ndarray, shape (height, width, channels)
        Without alpha; its rows are passed as float64, shape (width, channels).
    """
    words = np.random.SeedSequence(seed).generate_state(len(source))
    rows = zip(words, source.astype(np.float64), strict=True)
    return np.stack([numbers(np.random.RandomState(word), row) for word, row in rows])


def white_of(source: NDArray[Any]) -> float:
    return 1.0 if source.dtype.kind == "f" else float(np.iinfo(source.dtype).max)


def add_noise(
    spec: FilterSpec, source: NDArray[Any], level: str = "parallel", **values: Any
) -> NDArray[Any]:
    """Return `source`, shape (height, width, channels), with the noise of `spec`."""
    output = np.zeros_like(source)
    source = source.view()
    source.flags.writeable = False  # as in the program
    task = CpuTask(source, output, spec.validate(values), Border.REFLECT, level)
    for sweep in spec.implementation(Cpu).plan(task):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return output


def even(value: float, dtype: Any = np.float32, side: int = 512, channels: int = 1) -> NDArray[Any]:
    """Return an even picture whose `side` is long enough for statistics."""
    return np.full((side, side, channels), value, dtype)
