"""Level serial keeps its promise: one thread, and no vector instructions."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.filters.median.cpu import HUANG
from kernelscope.jit import Kernel
from kernelscope.spec.borders import Border
from kernelscope.spec.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.spec.samples import Kind
from tests.contract.test_pictures import test_module

pytestmark = pytest.mark.slow

PACKED = re.compile(
    r"\s(v?p(add|sub|mull?|madd|min|max|cmp|abs|avg|sll|sra|srl|mov[sz]x)\w*"
    r"|v?(add|sub|mul|div|sqrt|min|max|cvt\w+2)p[sd])\s"
)
"""Instructions of x86 that calculate with several numbers at once."""


def single_levels() -> Iterator[Any]:
    """Yield each filter that draws nothing, with each of its levels on one thread."""
    for spec in (*filters.discover().values(), *filters.discover(Kind.VOLUME).values()):
        if spec.category in ("Noise", "Teaching"):
            continue
        for level in spec.levels("cpu"):
            if level.single:
                yield pytest.param(spec, level.id, id=f"{spec.id}-{level.id}")


def assembly(kernel: Kernel, arguments: tuple[Any, ...]) -> str:
    """Return the assembly that Numba generates for `kernel`; none if it comes from a cache."""
    import numba

    dispatcher = numba.njit(nogil=True)(kernel.function)
    dispatcher.compile(tuple(numba.typeof(argument) for argument in (*arguments, 0, 0)))
    (text,) = dispatcher.inspect_asm().values()
    return str(text)


def packed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if PACKED.search(line + " ")]


def forms(spec: FilterSpec, level: str, dtype: np.dtype[Any]) -> Iterator[CpuPass]:
    """Yield the passes of a level that differ in code, over all cases of the filter's test."""
    import numba

    shape = (4, 16, 16, 2) if spec.kind is Kind.VOLUME else (16, 16, 3)
    source = np.random.default_rng(0).uniform(0, 100, shape).astype(dtype)
    source.flags.writeable = False
    seen = set()
    for case in getattr(test_module(spec.id), "CASES", [{}]):
        values = spec.resolve(source, spec.validate(case))
        output = np.zeros(spec.output_shape(shape, values, Border.REFLECT), dtype)
        task = CpuTask(source, output, values, Border.REFLECT, level)
        for each in spec.implementation(Cpu).plan(task):
            code = (each.kernel, tuple(map(numba.typeof, each.arguments)))
            # The first and the last part take little time; estimates are those of level parallel.
            if each.cost == 1 and code not in seen:
                seen.add(code)
                yield each


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86")
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("spec", "level"), list(single_levels()))
def test_no_vector_instructions(spec: FilterSpec, level: str, dtype: type[np.generic]) -> None:
    if spec.kind is Kind.VOLUME and dtype is not np.float32:
        pytest.skip("volumes are float32")
    if level == HUANG.id and dtype is np.float32:
        pytest.skip("Huang's histogram counts whole numbers")
    checked = list(forms(spec, level, np.dtype(dtype)))
    assert checked
    for each in checked:
        assert isinstance(each.kernel, Kernel)
        text = assembly(each.kernel, each.arguments)
        assert text.count("\n") > 100
        assert packed(text) == [], each.kernel.function.__name__


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86")
def test_vector_instructions_would_be_seen() -> None:
    spec = filters.get("mean")
    source = np.zeros((16, 16, 1), np.uint8)
    task = CpuTask(source, source.copy(), spec.validate({}), Border.REFLECT, "parallel")
    (sweep,) = spec.implementation(Cpu).plan(task)
    assert isinstance(sweep.kernel, Kernel)
    assert packed(assembly(sweep.kernel, sweep.arguments))
