"""The first calls of a process: NumPy filters small pictures, with the same bytes.

Numba takes a second to load, and its code to be read, which a call that takes a millisecond does
not repay. So it waits for a call that comes a third time, or until NumPy has worked for as long as
loading is worth: a script of a few calls never loads it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.step import Step
from kernelscope.library.arguments import Argument, check_common
from kernelscope.library.arrays import MOST_CHANNELS
from kernelscope.library.quick import is_usual, shapes_of
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import Cpu, CpuTask

_MOST_SECONDS = 0.3
"""Time for NumPy in a process: a third of the time that loading takes."""

_MOST_CELLS = 2**22
"""Cells of all masks of a picture that NumPy takes a tenth of a second for."""

_MOST_ALIKE = 2
"""Calls with the same arguments, type and shape: more are a loop, which compiled code is for."""

_spent = 0.0
_alike: Counter[Hashable] = Counter()


def by_numpy(
    step: Step, given: Mapping[str, Any], arguments: Sequence[Argument], key: Hashable
) -> NDArray[Any] | None:
    """Return the result of NumPy; None if compiled code is there, or pays.

    `key`: equal for calls that are alike.
    """
    global _spent
    if "numba" in sys.modules or _spent > _MOST_SECONDS or _alike[key] >= _MOST_ALIKE:
        return None
    array: NDArray[Any] = given[arguments[0].name]
    if given["level"] is not None or given["device"] not in (Device.AUTO, Device.CPU):
        return None
    if array.dtype.kind != "u" or not is_usual(step, given, arguments):
        return None
    check_common(given)
    spec = step.filter
    if spec.noise is not None:  # whose sums of floats are rounded elsewhere
        return None
    side = 2 * spec.radius(step.parameters) + 1
    if min(array.shape[:2]) < max(side, MOST_CHANNELS + 1):  # or the usual way asks for the axes
        return None
    if array.size * side**2 > _MOST_CELLS:
        return None
    begun = time.perf_counter()
    shape, made, wanted = shapes_of(step, array)
    source, output = array.reshape(shape), np.empty(made, array.dtype)
    source.flags.writeable = False
    level = spec.levels(Device.CPU)[-1].id
    task = CpuTask(source, output, step.parameters, step.border, level)
    passes = spec.implementation(Cpu).uncompiled(task)
    for sweep in passes:
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    spec.keep_rim(source, output, step.parameters, step.border)
    _alike[key] += 1
    _spent += time.perf_counter() - begun
    return output.reshape(wanted) if passes else None
