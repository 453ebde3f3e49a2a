"""Calls of microseconds: the filter runs on the array at once, without request, log and thread.

The first call with given arguments and a type and shape of array goes the usual way, which checks
everything. Its `Quick` is kept and does what remains for the next array of that type and shape.
Whatever that way adds (estimates, transparency, the unit of floats, a GPU, cancel) has no `Quick`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.scaling import ignores_levels
from kernelscope.engine.step import Step
from kernelscope.images.image import DTYPES, is_finite
from kernelscope.library.session import session
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import CpuTask, FilterSpec

_MOST_SAMPLES = 2**22
"""Arrays beyond take milliseconds, beside which the usual way takes no time."""

_MOST_SECONDS = 0.02
"""Longer runs can be cancelled, as those of the usual way."""

_SHARED_SECONDS = 100e-6
"""From here on a second thread saves more than it costs."""

_ENOUGH = 3
"""Runs from which on the least time counts: others may have waited for a busy machine."""

_USUAL: dict[str, Any] = {"within": None, "axis": None, "grey": False, "white": None, "black": None}
_USUAL |= {"progress": None, "cancel": None, "channel_axis": None, "axes": None, "alpha": False}
_USUAL |= {"cval": 0, "out": None}

_logger = logging.getLogger("kernelscope")


def key_of(array: Any, named: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return all that a `Quick` depends on; None for an array that has none.

    Raises `TypeError` for arguments that are no numbers or texts.
    """
    if type(array) is not np.ndarray or array.size > _MOST_SAMPLES:
        return None
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned) or _logger.isEnabledFor(logging.INFO):
        return None
    # 3, 3.0 and True are equal, and one of them may be refused.
    key = (array.dtype, array.shape, *named.items(), *map(type, named.values()))
    hash(key)
    return key


class Quick:
    """A step on the processor, for arrays of one type and shape."""

    def __init__(self, step: Step, level: str, array: NDArray[Any], threads: int) -> None:
        spec, parameters = step.filter, step.parameters
        self._spec, self._parameters, self._border = spec, parameters, step.border
        self._level, self._threads = level, threads
        self._shape = (*array.shape, 1)[:3]
        self._made = spec.output_shape(self._shape, parameters, step.border)
        self._given = self._made if array.ndim == 3 or self._made[2] > 1 else self._made[:2]
        if array.shape[2:] == (3,) and self._made[2] == 1:
            self._given = self._made[:2]
        self._runs, self._seconds = 0, math.inf  # the least of all threads together

    def __call__(self, array: NDArray[Any]) -> NDArray[Any] | None:
        """Return the result; None if the usual way has to make it, or to say why there is none."""
        floats = array.dtype.kind == "f"
        if self._runs >= _ENOUGH and self._seconds > _MOST_SECONDS:
            return None
        if floats and not is_finite(array):
            return None
        source = array.reshape(self._shape)
        source.flags.writeable = False
        output = np.empty(self._made, array.dtype)
        task = CpuTask(source, output, self._parameters, self._border, self._level)
        cpu = session().backends()[Device.CPU.value]
        assert isinstance(cpu, CpuBackend)
        threads = self._threads if self._runs and self._seconds > _SHARED_SECONDS else 1
        begun = time.perf_counter()
        if not cpu.compute(self._spec, task, threads):
            return None
        self._seconds = min(self._seconds, (time.perf_counter() - begun) * threads)
        self._runs += 1
        return output.reshape(self._given) if not floats or is_finite(output) else None


def quick(step: Step, given: Mapping[str, Any], array: NDArray[Any]) -> Quick | None:
    """Return the `Quick` of a call that has just gone the usual way; None if it needs that way."""
    if array.dtype not in DTYPES or array.shape[2:] not in ((), (1,), (3,)):
        return None
    if any(given.get(name, usual) != usual for name, usual in _USUAL.items()):
        return None
    if not is_plain(step, floats=array.dtype.kind == "f"):
        return None
    backends, spec = session().backends(), step.filter
    gpu = backends.get(Device.GPU.value)
    has_gpu = gpu is not None and gpu.availability().available and bool(gpu.levels(spec))
    if given["device"] != Device.CPU and (given["device"] != Device.AUTO or has_gpu):
        return None
    named = [each for each in spec.levels(Device.CPU) if given["level"] in (None, each.id)]
    if not named:
        return None
    cpu = backends[Device.CPU.value]
    assert isinstance(cpu, CpuBackend)
    return Quick(step, named[-1].id, array, 1 if named[-1].single else cpu.threads)


def is_plain(step: Step, *, floats: bool) -> bool:
    """Return whether the passes of a step are all that there is to it."""
    spec = step.filter
    if spec.noise or spec.resolve is not FilterSpec.resolve or step.estimates:
        return False
    if step.without_effect:  # a notice for the log
        return False
    # Black and white of floats, and with them the sign of results, follow from the samples.
    return not floats or ignores_levels(step)
