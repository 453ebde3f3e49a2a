"""Every specialisation of every kernel, as the filters' own plans ask for it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np

from kernelscope import filters
from kernelscope.filters.shared import correlation_cuda
from kernelscope.schema import launch as launching
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import TUNED, Level

DTYPES = tuple(map(np.dtype, (np.uint8, np.uint16, np.float32)))


def tuned_at_any_size() -> AbstractContextManager[Any]:
    """Have level *tuned* keep to its own kernels, however small a picture is."""
    return mock.patch.object(launching, "BY_SIZE", False)


def _tasks(spec: FilterSpec) -> Iterator[tuple[Level, CudaTask]]:
    """Yield the filter's test cases at every level, type and border, of one channel and others.

    Some kernels are for one channel alone; for more of them, their number takes turns.
    """
    # Modules of filters use what stands here, and the contract imports them all.
    from tests.contract.test_pictures import parameters_of, test_module

    module = test_module(spec.id)
    assert module is not None
    cases = [parameters_of(spec.id, case) for case in range(len(module.CASES))]
    axes = cases, spec.levels("gpu"), DTYPES
    for turn, (parameters, level, dtype) in enumerate(itertools.product(*axes)):
        for number, border in enumerate(spec.borders, turn + turn // len(DTYPES)):
            for channels in (1, 2 + number % 3):
                shape = (128, 128, channels)
                output = spec.output_shape(shape, parameters, border)
                yield level, CudaTask(shape, output, dtype, parameters, border, level.id)


def plans(spec: FilterSpec) -> Sequence[tuple[Level, CudaPlan]]:
    """Return (level, plan) for the filter's test cases at every level, type and border."""
    return _plans(spec.id)


@functools.lru_cache(maxsize=1)  # those of all filters would fill the memory
def _plans(filter_id: str) -> Sequence[tuple[Level, CudaPlan]]:
    spec = filters.get(filter_id)
    plan = spec.implementation(Cuda).plan
    with tuned_at_any_size():  # others are launches of another level
        return [(level, CudaPlan.of(plan(task))) for level, task in _tasks(spec)]


def launches(spec: FilterSpec) -> Iterator[tuple[Level, Launch]]:
    """Yield (level, launch) of all `plans`."""
    for level, plan in plans(spec):
        for launch in plan.launches:
            yield level, launch


def assert_modules_have_one_value(plan: CudaPlan) -> None:
    """Fail if two launches of a plan want different constants of the same module.

    Constants are copied when a launch is prepared, and all are before the first one runs. An
    emulated launch brings its own, so that its results would be right.
    """
    known: dict[tuple[frozenset[tuple[str, str]], str], bytes] = {}
    for launch in plan.launches:
        for name, values in launch.constants.items():
            key = frozenset(launch.defines.items()), name
            wanted = np.asarray(values).tobytes()
            assert known.setdefault(key, wanted) == wanted, f"{launch.kernel}: {name}"


def small_launches(spec: FilterSpec) -> Iterator[tuple[Level, Launch]]:
    """Yield the launches of level *tuned* that have a shape of their own for small pictures."""
    for level, task in _tasks(spec):
        if level is TUNED:
            for launch in CudaPlan.of(spec.implementation(Cuda).plan(task)).launches:
                if launch.kernel.endswith(f"_{TUNED.id}"):
                    yield level, launch
            # Masks of bytes in pictures that are too small for the tensor cores.
            with (
                tuned_at_any_size(),
                mock.patch.object(correlation_cuda, "products_pay", return_value=False),
            ):
                plan = CudaPlan.of(spec.implementation(Cuda).plan(task))
            for launch in plan.launches:
                if "DOT" in launch.defines:
                    yield level, launch


def defines(spec: FilterSpec) -> list[dict[str, str]]:
    """Return the distinct sets of macros with which the filter's source is compiled."""
    return [dict(items) for items in sorted(tuple(sorted(macros)) for macros in kernels(spec))]


def kernels(spec: FilterSpec) -> Mapping[frozenset[tuple[str, str]], set[str]]:
    """Return which kernels are launched of the source compiled with each set of macros."""
    return _kernels(spec.id)


@functools.cache  # plans of thousands of cases
def _kernels(filter_id: str) -> Mapping[frozenset[tuple[str, str]], set[str]]:
    spec, found = filters.get(filter_id), dict[frozenset[tuple[str, str]], set[str]]()
    for _, launch in itertools.chain(launches(spec), small_launches(spec)):
        found.setdefault(frozenset(launch.defines.items()), set()).add(launch.kernel)
    return found


def covering(
    sets: Sequence[dict[str, str]], together: int, without: Collection[tuple[str, str]] = ()
) -> list[dict[str, str]]:
    """Return a few of `sets` that have all values of each macro, or of `together` macros, if 2.

    Values of macros that others compile may be left out. All of the sets take half an hour, and
    are left to the tests on a GPU.
    """
    found = {
        frozenset(choice.items()): set(itertools.combinations(sorted(choice.items()), together))
        for choice in sets
    }
    left, chosen = set().union(*found.values()), list[dict[str, str]]()
    left -= {(each,) for each in without}
    while left:
        best = max(found, key=lambda choice: len(found[choice] & left))
        left -= found[best]
        chosen.append(dict(best))
    return chosen


def gpu_filters() -> list[FilterSpec]:
    return [spec for spec in filters.discover().values() if spec.levels("gpu")]
