"""Every specialisation of every kernel, as the filters' own plans ask for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from app import filters
from app.filters.launch import CudaTask, Launch
from app.filters.spec import FilterSpec
from tests.test_contract import parameters_of, test_module

DTYPES = tuple(map(np.dtype, (np.uint8, np.uint16, np.float32)))


def launches(
    spec: FilterSpec, dtypes: Sequence[np.dtype[Any]] = DTYPES
) -> Iterator[tuple[str, Launch]]:
    """Yield (label, launch) for the filter's test cases at every level, type and border."""
    assert spec.plan_cuda is not None
    module = test_module(spec.id)
    assert module is not None
    for case, level, dtype, border, channels in itertools.product(
        range(len(module.CASES)), spec.gpu_levels, dtypes, spec.borders, (1, 3)
    ):
        parameters = parameters_of(spec.id, case)
        shape = (128, 128, channels)
        task = CudaTask(
            shape, spec.output_shape(shape, parameters, border), dtype, parameters, border, level.id
        )
        yield f"{parameters} {level.id} {dtype} {border}", spec.plan_cuda(task)


def defines(spec: FilterSpec, dtypes: Sequence[np.dtype[Any]] = DTYPES) -> list[dict[str, str]]:
    """Return the distinct sets of macros with which the filter's source is compiled."""
    distinct = {tuple(sorted(launch.defines.items())) for _, launch in launches(spec, dtypes)}
    return [dict(items) for items in sorted(distinct)]


def representatives(
    spec: FilterSpec, dtypes: Sequence[np.dtype[Any]] = DTYPES
) -> list[dict[str, str]]:
    """Return every set of macros but for the border, and every border with one of them.

    The border decides about a few lines that do not depend on the other macros.
    """
    usual = str(spec.borders[0].code)
    first: dict[str, set[str]] = {}
    chosen = []
    for macros in defines(spec, dtypes):
        others = {name: value for name, value in macros.items() if name != "BORDER"}
        names = first.setdefault(" ".join(others), set())
        if macros["BORDER"] == usual or macros["BORDER"] not in names:
            names.add(macros["BORDER"])
            chosen.append(macros)
    return chosen


def gpu_filters() -> list[FilterSpec]:
    return [spec for spec in filters.discover().values() if spec.plan_cuda is not None]
