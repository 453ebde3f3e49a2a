"""Level serial keeps its promise: one thread, and no vector instructions."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.base.jit import JitKernel
from kernelscope.filters.median.cpu import HUANG
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.samples import Kind
from tests.contract.test_pictures import test_module

pytestmark = pytest.mark.slow

PACKED = re.compile(
    r"\s(v?p(add|sub|mull?|madd|min|max|cmp|abs|avg|sll|sra|srl|mov[sz]x)\w*"
    r"|v?(add|sub|mul|div|sqrt|min|max|cvt\w+2)p[sd])\s"
)
"""Instructions of x86 that calculate with several numbers at once."""


def single_levels() -> Iterator[Any]:
    """Yield each filter that draws nothing, with each of its levels on one thread, and types."""
    number = 0
    for spec in (*filters.discover().values(), *filters.discover(Kind.VOLUME).values()):
        if spec.category in ("Noise", "Teaching"):
            continue
        for level in [level for level in spec.levels("cpu") if level.single]:
            dtypes: list[Any] = [np.uint8, np.float32]
            if spec.kind is Kind.VOLUME:
                dtypes = [np.float32]
            elif level is HUANG:  # it counts whole numbers
                dtypes = [np.uint8]
            number += 1
            for dtype in dtypes:
                name = f"{spec.id}-{level.id}-{np.dtype(dtype)}"
                lane = () if dtype is dtypes[number % len(dtypes)] else pytest.mark.exhaustive
                yield pytest.param(spec, level.id, dtype, id=name, marks=lane)


def assembly(kernel: JitKernel, arguments: tuple[Any, ...]) -> str:
    """Return the assembly of `kernel`: the code in the cache is disassembled by binutils.

    Without those it is compiled again, since Numba has the assembly of no code from a cache.
    """
    if program := shutil.which("objdump"):
        types = kernel.types_of(*arguments, 0, 0)
        kernel.compile_for(types)
        cache = kernel.dispatcher._cache
        key = cache._index_key(types, kernel.dispatcher.targetctx.codegen())
        (_, _, (code, _)), *_ = cache._cache_file.load(key)
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(code)
            command = (program, "--disassemble", "--no-show-raw-insn", file.name)
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return re.sub(r"^ *[0-9a-f]+:\t(\S+) *", r"\t\1\t", text, flags=re.MULTILINE)
    import numba

    dispatcher = numba.njit(nogil=True)(kernel.function)
    dispatcher.compile(kernel.types_of(*arguments, 0, 0))
    (text,) = dispatcher.inspect_asm().values()
    return str(text)


def packed(text: str) -> list[str]:
    """Return the lines of `text` that calculate with several numbers at once.

    Left out is the conversion of *one* unsigned number of 64 bits to a double on processors without
    AVX-512: its halves are put beside each other, and constants of memory taken from both.
    """
    found, writers = [], dict[str, str]()
    for line in text.splitlines():
        code, _, operands = line.strip().partition("\t")
        registers = re.findall(r"%[xyz]mm\d+", operands)
        if PACKED.search(line + " "):
            halves = bool(registers) and writers.get(registers[0], "").endswith("punpckldq")
            if not (halves and code.endswith("subpd") and ")," in operands):
                found.append(line.strip())
        if registers:
            writers[registers[-1]] = code
    return found


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
@pytest.mark.parametrize(("spec", "level", "dtype"), list(single_levels()))
def test_no_vector_instructions(spec: FilterSpec, level: str, dtype: type[np.generic]) -> None:
    """Of half of the levels whole numbers, of the other half floats; all of them if exhaustive."""
    checked = list(forms(spec, level, np.dtype(dtype)))
    assert checked
    for each in checked:
        assert isinstance(each.kernel, JitKernel)
        text = assembly(each.kernel, each.arguments)
        assert text.count("\n") > 100
        assert packed(text) == [], each.kernel.function.__name__


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86")
def test_vector_instructions_would_be_seen() -> None:
    spec = filters.get("mean")
    source = np.zeros((16, 16, 1), np.uint8)
    source.flags.writeable = False  # as in the program
    task = CpuTask(source, source.copy(), spec.validate({}), Border.REFLECT, "parallel")
    (sweep,) = spec.implementation(Cpu).plan(task)
    assert isinstance(sweep.kernel, JitKernel)
    assert packed(assembly(sweep.kernel, sweep.arguments))


def test_only_the_conversion_of_one_number_is_left_out() -> None:
    unpack, subtract = "\tvpunpckldq\t(%rax), %xmm0, %xmm0\n", "\tvsubpd\t(%rdx), %xmm0, %xmm1\n"
    move = "\tmovq\t64(%rsp), %rax\n"
    assert packed(unpack + subtract) == []
    assert packed(unpack + move + subtract) == []
    assert len(packed(subtract)) == 1
    assert len(packed(unpack + "\tvmovsd\t(%rax), %xmm0\n" + subtract)) == 1
    assert len(packed(unpack + subtract.replace("xmm0", "xmm2"))) == 1
    assert len(packed(unpack + "\tvsubpd\t%xmm2, %xmm0, %xmm0\n")) == 1
    assert len(packed(unpack + "\tvaddpd\t(%rdx), %xmm0, %xmm1\n")) == 1
