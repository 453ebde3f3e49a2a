"""Covering arrays, a few rows of a product of axes with every pair of values of two axes; loops."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def all_pairs(
    *axes: Sequence[Any], need_not: Callable[[int, Any, int], bool] | None = None
) -> list[tuple[Any, ...]]:
    """Return rows with one value of each axis; every pair of values of two axes is in a row.

    Always the same rows for axes of the same lengths. Pairs of a value of one axis with those of a
    later one are left to chance if `need_not`, which gets both axes by number, says so.
    """
    apart = frozenset(
        ((one, index), two)
        for one, two in itertools.combinations(range(len(axes)), 2)
        for index, value in enumerate(axes[one])
        if need_not and need_not(one, value, two)
    )
    return [
        tuple(axis[index] for axis, index in zip(axes, row, strict=True))
        for row in _rows(tuple(map(len, axes)), apart)
    ]


@functools.cache
def _rows(
    sizes: tuple[int, ...], apart: frozenset[tuple[tuple[int, int], int]]
) -> list[tuple[int, ...]]:
    """Return the indices: each row takes the first pair that is left, and others with it."""
    order = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])  # most values first
    left = dict.fromkeys(
        ((one, first), (two, second))
        for one, two in itertools.combinations(order, 2)
        for first, second in itertools.product(range(sizes[one]), range(sizes[two]))
        if (min((one, first), (two, second)), max(one, two)) not in apart
    )
    if len(sizes) == 1:
        return [(index,) for index in range(sizes[0])]
    used = {(axis, index): 0 for axis in order for index in range(sizes[axis])}
    rows = []
    while left:
        row = dict(next(iter(left)))
        for axis in order:
            if axis not in row:
                # Most new pairs; of as many the value that was taken least.
                row[axis] = max(
                    range(sizes[axis]),
                    key=lambda index: (
                        sum(_pair(order, (axis, index), each) in left for each in row.items()),
                        -used[axis, index],
                    ),
                )
        for one, two in itertools.combinations(order, 2):
            left.pop(((one, row[one]), (two, row[two])), None)
        for each in row.items():
            used[each] += 1
        rows.append(tuple(row[axis] for axis in range(len(sizes))))
    return rows


def _pair(
    order: list[int], one: tuple[int, int], two: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    return (one, two) if order.index(one[0]) < order.index(two[0]) else (two, one)


def in_turn(*axes: Sequence[Any], every: int) -> list[Any]:
    """Return all rows as parameters of a test: every third or so, and the others if exhaustive.

    Each value comes as often as any other of its axis, with others in turn.
    """
    return [
        pytest.param(
            *(axis[index] for axis, index in zip(axes, row, strict=True)),
            marks=() if sum(row) % every == 0 else pytest.mark.exhaustive,
        )
        for row in itertools.product(*(range(len(axis)) for axis in axes))
    ]


def together(names: str | Sequence[str], values: Iterable[Any]) -> Callable[..., Any]:
    """Have one item go through the parameters of a test, where `pytest.mark.parametrize` has many.

    An item takes 5 ms: this is for checks that take less, and change no fixture.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def loop(*self: Any, **fixtures: Any) -> None:
            for row in rows:
                own = dict(zip(keys, row if len(keys) > 1 else (row,), strict=True))
                try:
                    test(*self, **own, **fixtures)
                except BaseException as error:
                    error.add_note(f"with {own}")
                    raise

        taken = inspect.signature(test)
        left = [each for name, each in taken.parameters.items() if name not in keys]
        loop.__signature__ = taken.replace(parameters=left)  # type: ignore[attr-defined]
        return loop

    return decorate
