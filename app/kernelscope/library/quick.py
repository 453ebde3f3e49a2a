"""Calls of microseconds, and the first calls of a process: both without request, log and thread.

The first call with given arguments and a type and shape of array goes the usual way, which checks
everything. Its `Quick` is kept and does the rest for the next array of that type and shape.
Whatever that way adds (estimates, transparency, the unit of floats, a GPU, cancel) has no `Quick`.

Before Numba is there, NumPy filters small pictures, with the same bytes: Numba takes a second to
load, and its code to be read, which a call that takes a millisecond does not repay. So it waits for
a call that comes a third time, or until NumPy has worked for as long as loading is worth: a script
of a few calls never loads it.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.recipe import Recipe
from kernelscope.engine.scaling import facts_of_whole
from kernelscope.engine.step import Step
from kernelscope.images.image import DTYPES, is_finite
from kernelscope.library.arguments import SHARED, Argument, check_common
from kernelscope.library.arrays import MOST_CHANNELS
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import Cpu, CpuTask, FilterSpec

if TYPE_CHECKING:
    from kernelscope.library.session import LibrarySession

_MOST_SAMPLES = 2**22
"""Arrays beyond take milliseconds, beside which the usual way takes no time."""

_MOST_SECONDS = 0.02
"""Longer runs can be cancelled, as those of the usual way."""

_SHARED_SECONDS = 40e-6
"""From here on a second thread may save more than it costs, which is 5 to 15 µs: it is tried."""

_SURELY_SHARED_SECONDS = 1e-3
"""From here on it is so even if the machine was busy when the time was taken."""

_ENOUGH = 8
"""Runs from which on the least time counts: others may have waited for a busy machine."""

_AGAIN = 64
"""After this many runs the slower way, with or without other threads, is tried once more."""

_logger = logging.getLogger("kernelscope")


def key_of(array: Any, named: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return all that a `Quick` depends on; None for an array that has none.

    Raises `TypeError` for arguments that are no numbers or texts.
    """
    if type(array) is not np.ndarray or array.flags.num & _PLAIN != _PLAIN:
        return None
    if _logger.isEnabledFor(logging.INFO):
        return None
    # 3, 3.0 and True are equal, and one of them may be refused.
    types = map(type, named.values()) if named else ()
    return (array.dtype, array.shape, *named.items(), *types)


_PLAIN = 0x101
"""C-contiguous and aligned, as NumPy's headers have them."""


class Quick:
    """A step on the processor, for arrays of one type and shape."""

    def __init__(self, step: Step, level: str, array: NDArray[Any], threads: int) -> None:
        self._step, self._level, self._threads = step, level, threads
        self._dtype, self._is_float = array.dtype, array.dtype.kind == "f"
        self._shape, self._made, self._given = shapes_of(step, array)
        self._runs, self._alone, self._shared = 0, math.inf, math.inf  # least times, in seconds
        self._code: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._calls_code = False

    def __call__(self, array: NDArray[Any]) -> NDArray[Any] | None:
        """Return the result; None if the usual way has to make it, or to say why there is none."""
        if self._alone > _MOST_SECONDS and self._runs >= _ENOUGH:
            return None
        if self._is_float and not is_finite(array):
            return None
        source, output = array.reshape(self._shape), np.empty(self._made, self._dtype)
        if self._calls_code and self._code is not None:
            code, others = self._code
            code(source, output, *others)
            if self._alone > _SHARED_SECONDS:
                self._runs += 1
                self._calls_code = self._runs % _AGAIN != 0
        elif not self._compute(source, output):
            return None
        if self._is_float and not is_finite(output):
            return None
        return output.reshape(self._given)

    def _compute(self, source: NDArray[Any], output: NDArray[Any]) -> bool:
        """Compute, and note the time; return False if a kernel is not compiled yet."""
        step, shares = self._step, self._shares()
        source.flags.writeable = False
        task = CpuTask(source, output, step.parameters, step.border, self._level)
        cpu = _session().cpu()
        begun = time.perf_counter()
        if not cpu.compute(step.filter, task, self._threads if shares else 1):
            return False
        seconds = time.perf_counter() - begun
        if shares:
            self._shared = min(self._shared, seconds)
        else:
            self._alone = min(self._alone, seconds)
        self._runs += 1
        if self._runs == _ENOUGH:
            self._code = cpu.code_of(step.filter, task)
        is_retried = self._runs % _AGAIN == 0
        self._calls_code = self._runs >= _ENOUGH and not self._shares() and not is_retried
        return True

    def _shares(self) -> bool:
        """Return whether the next run is for several threads: tried after runs on one, then known.

        Where other programs are busy a second thread may cost more than it saves, until they end.
        """
        if self._threads == 1 or self._runs == 0:
            return False
        if self._runs < _ENOUGH:
            return self._alone > _SURELY_SHARED_SECONDS
        if self._runs < 2 * _ENOUGH or self._alone <= _SHARED_SECONDS:
            return self._alone > _SHARED_SECONDS
        return (self._shared < self._alone) != (self._runs % _AGAIN == 0)


def quick(
    step: Step, given: Mapping[str, Any], arguments: Sequence[Argument]
) -> Callable[[NDArray[Any]], NDArray[Any] | None] | None:
    """Return a quicker way for a call that has just gone the usual way; None if it needs that way.

    A call that may use a GPU is a request in each way; its arguments are read once.
    """
    name = arguments[0].name
    array, spec = given[name], step.filter
    if array.size > _MOST_SAMPLES or not is_usual(step, given, arguments):
        return None
    backends = _session().backends()
    gpu = backends.get(Device.GPU.value)
    has_gpu = gpu is not None and gpu.availability().available and bool(gpu.levels(spec))
    if given["device"] != Device.CPU and (given["device"] != Device.AUTO or has_gpu):
        from kernelscope.library.session import run_on_host

        recipe, others = Recipe((step,)), {**given, name: None}
        return lambda array: run_on_host(recipe, [(name, array)], others, as_volumes=False)[0]
    named = [each for each in spec.levels(Device.CPU) if given["level"] in (None, each.id)]
    if not named:
        return None
    threads = 1 if named[-1].single else _session().cpu().threads
    return Quick(step, named[-1].id, array, threads)


def shapes_of(step: Step, array: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
    source = (*array.shape, 1)[:3]
    made = step.filter.output_shape(source, step.parameters, step.border)
    loses_colour = array.shape[2:] == (3,) and made[2] == 1
    is_grey = loses_colour or (array.ndim == 2 and made[2] == 1)
    return source, made, made[:2] if is_grey else made


def is_usual(step: Step, given: Mapping[str, Any], arguments: Sequence[Argument]) -> bool:
    """Return whether the passes of a step over the samples are all that a call asks for."""
    array = given[arguments[0].name]
    if array.dtype not in DTYPES or array.shape[2:] not in ((), (1,), (3,)):
        return False
    if not is_plain(step, floats=array.dtype.kind == "f"):
        return False
    shared = (each for each in arguments if each.name in SHARED)
    return all(_is_default(given[each.name], each.default) for each in shared)


def _session() -> LibrarySession:
    from kernelscope.library.session import session  # with the whole engine

    return session()


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))


def is_plain(step: Step, *, floats: bool) -> bool:
    """Return whether the passes of a step are all that there is to it."""
    spec = step.filter
    if spec.noise or spec.resolve is not FilterSpec.resolve:
        return False
    if step.without_effect(grey=True):  # there may be a notice for the log
        return False
    why, _ = facts_of_whole(step, levels=floats)
    return not why


_MOST_NUMPY_SECONDS = 0.3
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
    if "numba" in sys.modules or _spent > _MOST_NUMPY_SECONDS or _alike[key] >= _MOST_ALIKE:
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
