"""Level serial is what it says: one thread, and no vector instructions."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app import filters
from app.filters.jit import Kernel
from app.filters.spec import Border, FilterSpec, FilterTask

PACKED = re.compile(
    r"\s(v?p(add|sub|mull?|madd|min|max|cmp|abs|avg|sll|sra|srl|mov[sz]x)\w*"
    r"|v?(add|sub|mul|div|sqrt|min|max|cvt\w+2)p[sd])\s"
)
"""Instructions of x86 that calculate with several numbers at once."""


def single_levels() -> Iterator[Any]:
    """Yield each filter that draws nothing, with each of its levels on one thread."""
    for spec in filters.discover().values():
        if spec.category in ("Noise", "Teaching"):
            continue
        for level in spec.cpu_levels:
            if level.single:
                yield pytest.param(spec, level.id, id=f"{spec.id}-{level.id}")


def assembly(kernel: Kernel, arguments: tuple[Any, ...]) -> str:
    """Return what Numba makes of `kernel`; it shows that of nothing that comes from a cache."""
    import numba

    dispatcher = numba.njit(nogil=True)(kernel.function)
    dispatcher.compile(tuple(numba.typeof(argument) for argument in (*arguments, 0, 0)))
    (text,) = dispatcher.inspect_asm().values()
    return str(text)


def packed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if PACKED.search(line + " ")]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86")
@pytest.mark.parametrize(("spec", "level"), list(single_levels()))
def test_no_vector_instructions(spec: FilterSpec, level: str) -> None:
    source = np.zeros((16, 16, 3), np.uint8)
    source.flags.writeable = False
    values = spec.validate({})
    shape = spec.output_shape(source.shape, values, Border.REFLECT)
    task = FilterTask(source, np.zeros(shape, np.uint8), values, Border.REFLECT, level)
    # What comes first and last takes no time worth mentioning.
    for sweep in [each for each in spec.plan_cpu(task) if each.cost]:
        text = assembly(sweep.kernel, sweep.arguments)
        assert text.count("\n") > 100
        assert packed(text) == []


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86")
def test_vector_instructions_would_be_seen() -> None:
    spec = filters.get("mean")
    source = np.zeros((16, 16, 1), np.uint8)
    task = FilterTask(source, source.copy(), spec.validate({}), Border.REFLECT, "parallel")
    (sweep,) = spec.plan_cpu(task)
    assert packed(assembly(sweep.kernel, sweep.arguments))
